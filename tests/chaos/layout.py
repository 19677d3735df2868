"""The site to be crawled, by a seed: its pages, where they link, and what a crawl must come to.

Rules
- Exactly as many pages as asked for can be reached from the first one: the pages are a tree. Links
  across come on top, so that most pages are found many times, by several workers at once; but
  every `LONELY`th page is linked once only, so that a link that gets lost is a page that is missed.
- Some pages are reached through a redirect only; some fail at first, with 500 or with 429.
- Some links lead to what robots.txt forbids.
- Pages lie on several hosts, each with a delay of its own in its robots.txt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

DELAYS_MS = (20, 30, 40, 50)  # a host each
CRAWL_DELAY_MS = min(DELAYS_MS)  # asked for by the crawl itself, for every host
FANOUT = 4
CROSS_LINKS = 6
LONELY = 3
REDIRECTED = 0.03
FAILING = 0.02
BUSY = 0.008
FORBIDDEN = 0.01
RETRY_AFTER_S = 1
FORBIDDEN_PREFIX = "/private/"


class Kind(StrEnum):
    """How a page answers."""

    PLAIN = "plain"
    FAILING = "failing"  # 500, then 200
    BUSY = "busy"  # 429 with Retry-After, then 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something lies."""

    host: int
    path: str

    def url(self, hosts: Sequence[str]) -> str:
        """Spell it."""
        return hosts[self.host] + self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, and where it links."""

    place: Place
    kind: Kind
    links: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A site."""

    pages: tuple[Page, ...]
    redirects: dict[Place, Place]
    forbidden: frozenset[Place]

    @property
    def start(self) -> Place:
        """Return where a crawl begins."""
        return self.pages[0].place

    @property
    def failures(self) -> int:
        """Count the requests that a crawl must make in vain."""
        return sum(page.kind is not Kind.PLAIN for page in self.pages)


def generate(seed: int, pages: int, hosts: int = len(DELAYS_MS)) -> Layout:
    """Lay a site out; the same for the same seed."""
    chance = Random(f"{seed}/site")
    places = [Place(host=chance.randrange(hosts), path=f"/{number}") for number in range(pages)]
    links: list[list[Place]] = [[] for _ in range(pages)]
    redirects: dict[Place, Place] = {}
    forbidden: set[Place] = set()
    for number in range(1, pages):
        way = places[number]
        if chance.random() < REDIRECTED:
            way = Place(host=chance.randrange(hosts), path=f"/moved/{number}")
            redirects[way] = places[number]
        links[(number - 1) // FANOUT].append(way)
    hidden = set(redirects.values())
    known = [place for n, place in enumerate(places) if n % LONELY and place not in hidden]
    for linked in links:
        linked.extend(chance.sample(known, min(CROSS_LINKS, len(known))))
    for number in range(pages):
        if chance.random() < FORBIDDEN:
            place = Place(host=chance.randrange(hosts), path=f"{FORBIDDEN_PREFIX}{number}")
            forbidden.add(place)
            links[number].append(place)
    return Layout(
        pages=tuple(
            Page(place=place, kind=_kind(chance), links=tuple(linked))
            for place, linked in zip(places, links, strict=True)
        ),
        redirects=redirects,
        forbidden=frozenset(forbidden),
    )


def _kind(chance: Random) -> Kind:
    drawn = chance.random()
    if drawn < FAILING:
        return Kind.FAILING
    return Kind.BUSY if drawn < FAILING + BUSY else Kind.PLAIN
