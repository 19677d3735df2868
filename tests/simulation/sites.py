"""Sites of every variety, generated from a seed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from random import Random

from orbweaver.model.outcome import Reason

ROBOTS = "User-agent: *\nDisallow: /private/\n"
SERVER_TROUBLE = (500, 502, 503, 429)
# Maximum number of requests for one URL that meet a flapping host while it is down.
FLAPS_MAX = 2
# Consecutive failures while it is down: enough to block it for a minute or two, but not to give it
# up.
SILENCES_MAX = 6
# Forbidden once robots.txt changes; allowed until then.
LATE, EARLY = "/late/", "/early/"


def shifting(path: str) -> bool:
    return path.startswith((LATE, EARLY))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimPage:
    """One URL of a site: `links` are paths, or whole URLs for other hosts."""

    status: int = 200
    links: tuple[str, ...] = ()
    location: str | None = None
    kind: str = "text/html"
    # First answer or failure: a status or a Reason.
    trouble: int | Reason | None = None
    latency_s: float = 0.05
    poison: bool = False
    # Its validator (ETag) for conditional requests.
    etag: str | None = None
    # Links that its scripts add.
    scripted: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Site:
    """One host."""

    origin: str
    pages: dict[str, SimPage]
    robots: str | int | Reason = ROBOTS
    robots_trouble: int | Reason | None = None
    # Time from which `/late/` is forbidden and `/early/` is allowed.
    robots_changes_at_s: float | None = None
    crawl_delay_s: float = 0.0
    # Time span in which every request gets a 429, and its Retry-After.
    storm_s: tuple[float, float] | None = None
    storm_retry_after_s: int | None = None
    # Seconds up, then down, in turn.
    flaps_s: tuple[float, float] | None = None
    endless: bool = False

    @property
    def rules(self) -> str | None:
        return None if isinstance(self.robots, int | Reason) else self.robots

    def robots_at(self, at_s: float) -> str:
        text = self.rules or ""
        if self.robots_changes_at_s is not None:
            text += f"Disallow: {LATE if at_s >= self.robots_changes_at_s else EARLY}\n"
        if self.crawl_delay_s:
            text += f"Crawl-delay: {self.crawl_delay_s}\n"
        return text

    def down_at(self, at_s: float) -> bool:
        if self.flaps_s is None:
            return False
        up_s, down_s = self.flaps_s
        return at_s % (up_s + down_s) >= up_s

    def page(self, path: str) -> SimPage | None:
        """Return a path's page; endless sites create pages on request."""
        if self.endless and path.startswith("/e/"):
            number = int(path.removeprefix("/e/"))
            return SimPage(links=(f"/e/{number + 1}", f"/e/{number * 7 + 3}", "/"))
        return self.pages.get(path)


def build(random: Random, number: int, *, poison: bool) -> Site:
    origin = f"http://h{number}.test"
    if random.random() < 0.06:
        return Site(origin=origin, pages={"/": SimPage(links=("/e/1",))}, endless=True)
    size = random.choice((1, 3, 8, 20, 60))
    paths = ["/"] + [f"/p/{place}" for place in range(1, size)]
    paths += [f"/private/{place}" for place in range(random.randint(0, 3))]
    pages = {path: _page(random, paths, number) for path in paths}
    # A path through all pages, so that most of the site can be reached.
    for here, there in itertools.pairwise(paths):
        if random.random() < 0.9 and pages[here].location is None:
            pages[here] = _with_link(pages[here], there)
    # Without links, so that later requests for them are conditional.
    leaves = {f"/leaf/{place}": SimPage(etag='"leaf"') for place in range(2)}
    pages |= leaves
    pages["/"] = SimPage(links=tuple(dict.fromkeys((*pages["/"].links, *paths[1:4], *leaves))))
    if poison and size > 3:
        pages[paths[2]] = SimPage(poison=True)
    site = Site(origin=origin, pages=pages)
    _trouble(random, site)
    if site.rules is not None and random.random() < 0.3:
        _shift(random, site)
    return site


def _trouble(random: Random, site: Site) -> None:
    if random.random() < 0.2:
        site.robots = random.choice((404, 404, 500, Reason.CONNECT))
    elif random.random() < 0.3:
        site.robots_trouble = random.choice((503, 429, Reason.TIMEOUT))
    if random.random() < 0.15:
        site.crawl_delay_s = random.choice((0.5, 2.0))
    if random.random() < 0.25:
        start_s = random.uniform(0, random.choice((2, 30)))
        site.storm_s = (start_s, start_s + random.uniform(1, 40))
        site.storm_retry_after_s = random.choice((45, 45, 600, None))
    elif random.random() < 0.15:
        _flap(random, site)


def _flap(random: Random, site: Site) -> None:
    """Take a host up and down in turn. With other faults, a URL could exceed its tries."""
    site.flaps_s = (random.choice((3.0, 20.0)), random.choice((1.0, 8.0)))
    site.robots_trouble = None
    site.pages = {path: replace(page, trouble=None) for path, page in site.pages.items()}


def _shift(random: Random, site: Site) -> None:
    """Change robots.txt during the crawl: some pages become forbidden, others allowed."""
    site.robots_changes_at_s = random.choice((random.uniform(0, 60), 3_600.0))
    paths = [f"{folder}{place}" for folder in (LATE, EARLY) for place in range(2)]
    site.pages |= {path: SimPage() for path in paths}
    for path in ("/", *list(site.pages)[:2]):
        for target in paths:
            site.pages[path] = _with_link(site.pages[path], target)


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
    etag = f'"{number}"' if random.random() < 0.5 else None
    return SimPage(links=tuple(links), latency_s=latency_s, trouble=trouble, etag=etag)


def _with_link(page: SimPage, path: str) -> SimPage:
    if page.location is not None or page.status != 200 or page.kind != "text/html" or page.poison:
        return page
    return replace(page, links=(*page.links, path))
