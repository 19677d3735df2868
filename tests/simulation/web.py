"""A seeded web: its answers, and a log of all requests.

A site's pages are known beforehand, so a breadth-first walk gives the expected result. A URL fails
at most once, at most twice on a flapping host. A host's robots.txt fails at most once. A 429 phase
affects a URL at most once or twice. These are fewer failures than tries, so every reachable page
must be reached.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from orbweaver.model.backoff import TOO_MANY_REQUESTS
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from tests.simulation.clock import SimClock
from tests.simulation.meaning import Meaning
from tests.simulation.sites import FLAPS_MAX, SILENCES_MAX, SimPage, Site, shifting

SLOW_S = 10.0


class Asker(Protocol):
    """Source of a request: a process with a clock, which may die of the answer."""

    clock: SimClock
    dead: bool
    journals: int
    stops_s: list[float]

    def kill(self) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request in true time.

    `ahead_s` bounds the clock error of its process during the invocation. `journals` is the number
    of journals (stored results of a batch of URLs) at its start.
    """

    at_s: float
    origin: str
    path: str
    agent: str
    ahead_s: tuple[float, float]
    journals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuff:
    """A 429 with Retry-After, its receiver, and the receiver's clock error."""

    origin: str
    at_s: float
    until_s: float
    ahead_s: tuple[float, float]
    asker: Asker


class SimWeb:
    """All sites, behind the `Fetcher` port."""

    def __init__(
        self, sites: list[Site], epoch_s: Callable[[], float], counts: Counter[str]
    ) -> None:
        self.sites = {site.origin: site for site in sites}
        self.asks: list[Ask] = []
        # Body bytes per requester.
        self.received: Counter[str] = Counter()
        self.rebuffs: list[Rebuff] = []
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._flapped: Counter[str] = Counter()
        # Unanswered requests in a row, per host.
        self.silent: Counter[str] = Counter()
        # Processes with an answer of a silent host that is not recorded yet.
        self._answered: defaultdict[str, list[Asker]] = defaultdict(list)
        # Hosts with a failed record since their silence was recorded.
        self.refused: set[str] = set()
        # Hosts given up after the record of an answer was lost.
        self.unheard: set[str] = set()
        self._now_s = epoch_s
        self._counts = counts

    async def fetch(self, request: Request, asker: Asker) -> Response | Failure:
        origin, path = split(request.url)
        clock = asker.clock
        ask = Ask(
            at_s=self._now_s(),
            origin=origin,
            path=path,
            agent=request.user_agent,
            ahead_s=(clock.least_ms / 1000, clock.most_ms / 1000),
            journals=asker.journals,
        )
        self.asks.append(ask)
        count = self._asked[request.url]
        self._asked[request.url] += 1
        site = self.sites.get(origin)
        if site is None:
            return Failure(reason=Reason.DNS, detail="no such host")
        if path == "/robots.txt":
            trouble = site.robots_trouble if count == 0 else None
            await asyncio.sleep(request.total_s if trouble is Reason.TIMEOUT else 0.02)
            return self._robots(site, trouble)
        page = site.page(path)
        answer = self._answer(site, page, ask, count, asker)
        if page is not None and _unchanged(request, page, answer):
            self._counts["304"] += 1
            answer = _response(304, None)
        answer = await self._sent(request, answer)
        slow_s = 0.02 if page is None else page.latency_s
        if isinstance(answer, Failure):
            self.silent[origin] += 1
        else:
            self.silent[origin] = 0
            self._answered[origin].append(asker)
        if isinstance(answer, Failure) and answer.reason is Reason.TIMEOUT:
            slow_s = request.total_s
        elif isinstance(answer, Response) and answer.status == TOO_MANY_REQUESTS:
            slow_s = 0.02
        self._counts["slow answer"] += slow_s >= SLOW_S
        await asyncio.sleep(slow_s)
        self._heard(site, ask, answer, asker)
        if page is not None and page.poison and isinstance(answer, Response) and answer.body:
            self._counts["poison"] += 1
            asker.kill()
        return answer

    def noted(self, origin: str) -> None:
        """Record that a host's silence, or the end of it, was stored."""
        self._answered.pop(origin, None)
        self.refused.discard(origin)

    def take_for_dead(self, origin: str) -> None:
        """Record that a host is given up, and whether an answer of it failed to be recorded."""
        if origin in self.refused or any(asker.dead for asker in self._answered[origin]):
            self.unheard.add(origin)

    def _heard(self, site: Site, ask: Ask, answer: Response | Failure, asker: Asker) -> None:
        """Record how long the process with this answer must leave a host alone."""
        after_s = site.storm_retry_after_s
        if after_s is None or isinstance(answer, Failure) or answer.status != TOO_MANY_REQUESTS:
            return
        if answer.headers.get("retry-after") == str(after_s):
            self.rebuffs.append(
                Rebuff(
                    origin=site.origin,
                    at_s=ask.at_s,
                    until_s=ask.at_s + after_s,
                    ahead_s=ask.ahead_s,
                    asker=asker,
                )
            )

    async def _sent(self, request: Request, answer: Response | Failure) -> Response | Failure:
        """Truncate a body at the limit and count it; a dying process receives it too."""
        if isinstance(answer, Failure) or answer.body is None:
            return answer
        size = request.body_bytes_max
        if request.room is not None:
            await request.room.grow(len(answer.body))
            size = min(size, request.room.bytes_max)
        body = answer.body[:size]
        self.received[request.user_agent] += len(body)
        return replace(answer, body=body, truncated=len(body) < len(answer.body))

    def _robots(self, site: Site, trouble: int | Reason | None) -> Response | Failure:
        if isinstance(site.robots, int | Reason):
            trouble = site.robots
        if trouble is not None:
            self._counts["robots.txt trouble"] += 1
        if isinstance(trouble, Reason):
            return Failure(reason=trouble, detail="robots trouble")
        if trouble is not None:
            return _response(trouble, b"")
        return _response(200, site.robots_at(self._now_s()).encode(), kind="text/plain")

    def _answer(  # noqa: PLR0911 - a kind of answer a line
        self, site: Site, page: SimPage | None, ask: Ask, count: int, asker: Asker
    ) -> Response | Failure:
        url = ask.origin + ask.path
        spared = self._flapped[url] == FLAPS_MAX or self.silent[ask.origin] == SILENCES_MAX
        if site.down_at(ask.at_s) and not spared:
            self._flapped[url] += 1
            self._counts["host down"] += 1
            return Failure(reason=Reason.CONNECT, detail="down for a moment")
        if site.storm_s is not None and site.storm_s[0] <= ask.at_s < site.storm_s[1]:
            return self._storm(site, ask, asker)
        if page is None:
            return _response(404, b"not here")
        if page.trouble is not None and count == 0:
            self._counts["page trouble"] += 1
            if isinstance(page.trouble, Reason):
                return Failure(reason=page.trouble, detail="trouble")
            return _response(page.trouble, b"", headers={"retry-after": "2"})
        if page.location is not None:
            self._counts["redirect"] += 1
            return _response(page.status, b"", headers={"location": page.location})
        if page.kind != "text/html":
            return _response(page.status, None, kind=page.kind)
        headers = {} if page.etag is None else {"etag": page.etag}
        return _response(page.status, html_of(page), headers=headers)

    def _storm(self, site: Site, ask: Ask, asker: Asker) -> Response:
        self._counts["storm of 429"] += 1
        after_s = site.storm_retry_after_s
        if after_s is None:
            return _response(429, b"")
        return _response(429, b"", headers={"retry-after": str(after_s)})


@dataclass(slots=True, kw_only=True)
class Walk:
    """Result of a breadth-first walk for a crawl."""

    claimed: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)


def walk(  # noqa: C901 - the oracle is to be read in one piece
    web: SimWeb,
    seeds: list[str],
    pages_max: int,
    meaning: Meaning,
    held: frozenset[str] = frozenset(),
    *,
    redirects_last: bool = False,
) -> Walk:
    """Walk the web as a crawl of scope `host` with these rules should.

    A redirect target keeps its depth, unless a deeper link or redirect came first because its host
    had failures. `redirects_last` assumes that all other links come first, and the deepest of the
    redirects. Poison pages (they kill their worker) are claimed and never end; temporarily
    forbidden pages are leaves. URLs `held` by an earlier run are not claimed.
    """
    level = [seed for seed in seeds if seed not in held]
    found = Walk(claimed=set(level))

    def new(url: str, page: str, depth: int) -> bool:
        free = url not in found.claimed and url not in held
        return free and split(url)[0] == page and depth <= meaning.depth(url)

    def leads(url: str) -> bool:
        origin, path = split(url)
        page = web.sites[origin].page(path) if origin in web.sites else None
        return page is not None and page.location is not None

    late: list[tuple[int, str]] = []
    depth = 0
    while level or late:
        following: list[str] = []
        onward = [url for url in level if leads(url)]
        pages = [url for url in level if not leads(url)]
        if redirects_last:
            late += [(depth, url) for url in onward]
            onward = []
        if not level:
            late.sort()
            depth, last = late.pop()
            onward = [last]
        while onward or pages:
            url = (onward or pages).pop()
            origin, path = split(url)
            site = web.sites.get(origin)
            page = site.page(path) if site is not None else None
            if site is None or page is None or page.poison or not _readable(site, path):
                continue
            if page.location is not None:
                target = page.location if "://" in page.location else origin + page.location
                if new(target, origin, depth):
                    found.claimed.add(target)
                    # The target keeps its depth.
                    (onward if leads(target) else pages).append(target)
                continue
            if page.status != 200 or page.kind != "text/html":
                continue
            found.fetched.add(url)
            for link in (*page.links, *page.scripted) if meaning.follows(url) else ():
                target = link if "://" in link else origin + link
                if new(target, origin, depth + 1):
                    found.claimed.add(target)
                    following.append(target)
            if len(found.claimed) > 4 * pages_max:
                return found
        level = following
        depth += 1
    return found


def _readable(site: Site, path: str) -> bool:
    """True if robots.txt always allows a path; `check_web` checks paths that change."""
    if site.rules is None:
        return site.robots == 404
    return not path.startswith("/private/") and not shifting(path)


def split(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}", f"/{path}"


def _unchanged(request: Request, page: SimPage, answer: Response | Failure) -> bool:
    if request.condition is None or page.etag is None or isinstance(answer, Failure):
        return False
    return answer.status == 200 and request.condition.etag == page.etag


def html_of(page: SimPage, *, shown: bool = False) -> bytes:
    """Return a page's HTML as fetched, or as its scripts show it."""
    links = [*page.links, *(page.scripted if shown else ())]
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    if page.scripted:
        text += '<script src="/app.js"></script>'
        text += f"<p>{'shown by scripts ' * 4}</p>" if shown else '<div id="root"></div>'
    return f"<title>t</title>{text}".encode()


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
