"""The generated site: its size, its determinism, and the reachability of each page."""

from __future__ import annotations

from collections import Counter, deque

import pytest

from tests.chaos.layout import LONELY, Kind, Layout, Place, generate
from tests.chaos.site import scripts_of

HOSTS = ["http://one", "http://two", "http://three", "http://four"]


def reached(layout: Layout) -> set[Place]:
    links = {page.place: page.links for page in layout.pages}
    links |= {place: (target,) for place, target in layout.redirects.items()}
    todo, found = deque([layout.start]), {layout.start}
    while todo:
        for link in links[todo.popleft()]:
            if link not in found and link not in layout.forbidden:
                found.add(link)
                todo.append(link)
    return found


@pytest.mark.parametrize("pages", [1, 2, 150, 3_000])
def test_all_requested_pages_are_reachable(pages: int) -> None:
    layout = generate(7, pages)

    expected = {page.place for page in layout.pages}
    assert len(expected) == pages
    assert reached(layout) == expected | layout.redirects.keys()


def test_same_seed_generates_same_site() -> None:
    assert generate(7, 300) == generate(7, 300)
    assert generate(7, 300) != generate(8, 300)


def test_large_site_has_every_kind_of_page() -> None:
    layout = generate(7, 3_000)
    links = Counter(link for page in layout.pages for link in page.links)
    linked_once = [page for page in layout.pages if links[page.place] <= 1]

    assert {page.kind for page in layout.pages} == set(Kind)
    assert layout.redirects
    assert layout.forbidden
    assert len(linked_once) >= 3_000 // LONELY
    assert layout.failures == sum(page.kind is not Kind.PLAIN for page in layout.pages)


def test_every_reachable_place_is_served() -> None:
    layout = generate(7, 300)
    scripts = [scripts_of(layout, host, HOSTS) for host in range(len(HOSTS))]

    assert all(place.path in scripts[place.host] for place in reached(layout))
    assert not any(place.path in scripts[place.host] for place in layout.forbidden)
    assert b"Crawl-delay: 0.05" in getattr(scripts[3]["/robots.txt"], "body", b"")
