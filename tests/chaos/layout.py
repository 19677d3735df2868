"""The generated site: pages, links, and the expected result of a crawl.

Rules
- The given number of pages is reachable from the first one: the pages are a tree. Additional links
  make several workers find most pages at once. Every `LONELY`th page has one link only, so that a
  lost link is a missing page.
- Some pages are behind a redirect; some fail first, with 500 or 429.
- Some links lead to pages that robots.txt forbids.
- Pages are on several hosts, each with its own delay in robots.txt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

DELAYS_MS = (20, 30, 40, 50)  # One per host.
CRAWL_DELAY_MS = min(DELAYS_MS)  # Requested by the crawl for every host.
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
    """Answers of a page."""

    PLAIN = "plain"
    FAILING = "failing"  # 500, then 200.
    BUSY = "busy"  # 429 with Retry-After, then 200.


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Host and path."""

    host: int
    path: str

    def url(self, hosts: Sequence[str]) -> str:
        return hosts[self.host] + self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with its links."""

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
        return self.pages[0].place

    @property
    def failures(self) -> int:
        return sum(page.kind is not Kind.PLAIN for page in self.pages)


def generate(seed: int, pages: int, hosts: int = len(DELAYS_MS)) -> Layout:
    """Generate a site, the same for the same seed."""
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
