"""A seeded web: sites of every kind, and a log of who asked what when.

A site's pages are known beforehand, so a breadth-first walk of them is the oracle. A URL fails at
most once, a host's robots.txt at most once, a storm of 429 catches a URL at most once or twice:
fewer times than a URL is tried, so what is reachable must be reached.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.core.exchange import Failure, Request, Response
from orbweaver.core.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

ROBOTS = "User-agent: *\nDisallow: /private/\n"
SERVER_TROUBLE = (500, 502, 503, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimPage:
    """One URL of a site: `links` are paths, or whole URLs for other hosts."""

    status: int = 200
    links: tuple[str, ...] = ()
    location: str | None = None
    kind: str = "text/html"
    # Answered or failed like this the first time it is asked for: a status, or a Reason.
    trouble: int | Reason | None = None
    latency_s: float = 0.05
    poison: bool = False


@dataclass(slots=True, kw_only=True)
class Site:
    """One host."""

    origin: str
    pages: dict[str, SimPage]
    robots: str | int | Reason = ROBOTS
    robots_trouble: int | Reason | None = None
    robots_changes_at_s: float | None = None
    crawl_delay_s: float = 0.0
    # From when to when every answer is 429, and what Retry-After says.
    storm_s: tuple[float, float] | None = None
    storm_retry_after_s: int | None = None
    endless: bool = False

    @property
    def rules(self) -> str | None:
        """The text of robots.txt, None where there is none to be had."""
        return None if isinstance(self.robots, int | Reason) else self.robots

    def page(self, path: str) -> SimPage | None:
        """Look a path up; endless sites make pages as they are asked for."""
        if self.endless and path.startswith("/e/"):
            number = int(path.removeprefix("/e/"))
            return SimPage(links=(f"/e/{number + 1}", f"/e/{number * 7 + 3}", "/"))
        return self.pages.get(path)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as the web saw it, in true time."""

    at_s: float
    origin: str
    path: str
    agent: str


class SimWeb:
    """All sites, behind the `Fetcher` port."""

    def __init__(self, sites: list[Site], epoch_s: Callable[[], float]) -> None:
        self.sites = {site.origin: site for site in sites}
        self.asks: list[Ask] = []
        # Host, when it answered 429, and until when it asked to be left alone.
        self.rebuffs: list[tuple[str, float, float]] = []
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._now_s = epoch_s
        self.calm = False

    def robots_of(self, site: Site, at_s: float) -> str:
        """The rules of a site as they stand at a moment."""
        text = site.rules or ""
        if site.robots_changes_at_s is not None and at_s >= site.robots_changes_at_s:
            text += "Disallow: /late/\n"
        if site.crawl_delay_s:
            text += f"Crawl-delay: {site.crawl_delay_s}\n"
        return text

    async def fetch(self, request: Request, poisoned: Callable[[], None]) -> Response | Failure:
        """Answer one request; `poisoned` is called where the asker is to die of the answer."""
        origin, path = _split(request.url)
        self.asks.append(Ask(self._now_s(), origin, path, request.user_agent))
        count = self._asked[request.url]
        self._asked[request.url] += 1
        site = self.sites.get(origin)
        if site is None:
            return Failure(reason=Reason.DNS, detail="no such host")
        if path == "/robots.txt":
            await asyncio.sleep(0.02)
            return self._robots(site, count)
        page = site.page(path)
        await asyncio.sleep(0.02 if page is None else page.latency_s)
        if page is not None and page.poison:
            poisoned()
        return self._answer(site, page, count)

    def _robots(self, site: Site, count: int) -> Response | Failure:
        trouble = site.robots_trouble if count == 0 else None
        if isinstance(site.robots, int | Reason):
            trouble = site.robots
        if isinstance(trouble, Reason):
            return Failure(reason=trouble, detail="robots trouble")
        if trouble is not None:
            return _response(trouble, b"")
        return _response(200, self.robots_of(site, self._now_s()).encode(), kind="text/plain")

    def _answer(  # noqa: PLR0911 - a kind of answer a line
        self, site: Site, page: SimPage | None, count: int
    ) -> Response | Failure:
        if site.storm_s is not None and site.storm_s[0] <= self._now_s() < site.storm_s[1]:
            after = site.storm_retry_after_s
            if after is not None:
                self.rebuffs.append((site.origin, self._now_s(), self._now_s() + after))
            headers = {} if after is None else {"retry-after": str(after)}
            return _response(429, b"", headers=headers)
        if page is None:
            return _response(404, b"not here")
        if page.trouble is not None and count == 0 and not self.calm:
            if isinstance(page.trouble, Reason):
                return Failure(reason=page.trouble, detail="trouble")
            return _response(page.trouble, b"", headers={"retry-after": "2"})
        if page.location is not None:
            return _response(page.status, b"", headers={"location": page.location})
        if page.kind != "text/html":
            return _response(page.status, None, kind=page.kind)
        return _response(page.status, _html(page))


@dataclass(slots=True, kw_only=True)
class Walk:
    """What a breadth-first walk of the web finds for a crawl."""

    claimed: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)


def walk(  # noqa: C901 - the oracle is to be read in one piece
    web: SimWeb, seeds: list[str], depth_max: int, pages_max: int
) -> Walk:
    """Walk the web as a crawl of scope `host` should: the oracle.

    Poison pages are claimed and never end; robots are taken as they stand at the end.
    """
    found = Walk(claimed=set(seeds))
    level = list(seeds)
    for depth in range(depth_max + 1):
        following: list[str] = []
        while level:
            url = level.pop()
            origin, path = _split(url)
            site = web.sites.get(origin)
            page = site.page(path) if site is not None else None
            if site is None or page is None or page.poison or _forbidden(site, path):
                continue
            if page.location is not None:
                target = page.location if "://" in page.location else origin + page.location
                if _split(target)[0] == origin and target not in found.claimed:
                    found.claimed.add(target)
                    level.append(target)  # a redirect keeps its depth
                continue
            if page.status != 200 or page.kind != "text/html":
                continue
            found.fetched.add(url)
            if depth == depth_max:
                continue
            for link in page.links:
                target = link if "://" in link else origin + link
                if _split(target)[0] == origin and target not in found.claimed:
                    found.claimed.add(target)
                    following.append(target)
            if len(found.claimed) > 4 * pages_max:
                return found
        level = following
    return found


def _forbidden(site: Site, path: str) -> bool:
    if site.rules is None:
        return site.robots != 404
    return "/private/" in site.rules and path.startswith("/private/")


def _split(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}", f"/{path}"


def _html(page: SimPage) -> bytes:
    links = "".join(f'<a href="{link}">x</a>' for link in page.links)
    return f"<title>t</title>{links}".encode()


def _response(
    status: int,
    body: bytes | None,
    *,
    kind: str = "text/html",
    headers: dict[str, str] | None = None,
) -> Response:
    return Response(
        status=status,
        headers={"content-type": kind, **(headers or {})},
        body=body if 200 <= status < 300 else None,
        latency_ms=20,
    )


def build(random: Random, number: int, *, poison: bool) -> Site:
    """Make up one host."""
    origin = f"http://h{number}.test"
    if random.random() < 0.12:
        return Site(origin=origin, pages={"/": SimPage(links=("/e/1",))}, endless=True)
    size = random.choice((1, 3, 8, 20, 60))
    paths = ["/"] + [f"/p/{place}" for place in range(1, size)]
    paths += [f"/private/{place}" for place in range(random.randint(0, 3))]
    pages = {path: _page(random, paths, number) for path in paths}
    # A backbone, so that most of the site can be reached.
    for here, there in itertools.pairwise(paths):
        if random.random() < 0.9 and pages[here].location is None:
            pages[here] = _with_link(pages[here], there)
    pages["/"] = SimPage(links=tuple(dict.fromkeys((*pages["/"].links, *paths[1:4]))))
    if poison and size > 3:
        pages[paths[2]] = SimPage(poison=True)
    site = Site(origin=origin, pages=pages)
    if random.random() < 0.2:
        site.robots = random.choice((404, 404, 500, Reason.CONNECT))
    elif random.random() < 0.3:
        site.robots_trouble = random.choice((503, 429, Reason.TIMEOUT))
    if random.random() < 0.15:
        site.crawl_delay_s = random.choice((0.5, 2.0))
    if random.random() < 0.25:
        start_s = random.uniform(0, 30)
        site.storm_s = (start_s, start_s + random.uniform(1, 40))
        site.storm_retry_after_s = 45
    return site


def _page(random: Random, paths: list[str], number: int) -> SimPage:
    links = [random.choice(paths) for _ in range(random.choice((0, 1, 3, 10)))]
    links += [f"http://h{random.randint(0, 4)}.test/"] * (random.random() < 0.1)
    links += ["/missing"] * (random.random() < 0.1)
    latency_s = random.choice((0.01, 0.05, 0.05, 0.3, 2.0, 12.0 if random.random() < 0.1 else 0.1))
    draw = random.random()
    if draw < 0.08:
        location = random.choice((*paths, f"http://h{number}.test/p/1", "/loop"))
        return SimPage(status=random.choice((301, 302, 307)), location=location)
    if draw < 0.14:
        return SimPage(status=random.choice((404, 410, 403, 501)))
    if draw < 0.18:
        return SimPage(kind="application/pdf")
    trouble: int | Reason | None = None
    if draw < 0.35:
        trouble = random.choice((*SERVER_TROUBLE, Reason.TIMEOUT, Reason.DISCONNECTED))
    return SimPage(links=tuple(links), latency_s=latency_s, trouble=trouble)


def _with_link(page: SimPage, path: str) -> SimPage:
    if page.location is not None or page.status != 200 or page.kind != "text/html":
        return page
    return SimPage(links=(*page.links, path), latency_s=page.latency_s, trouble=page.trouble)
