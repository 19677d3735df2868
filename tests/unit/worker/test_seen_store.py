"""Memory of URLs that were claimed before."""

from __future__ import annotations

import pytest

from orbweaver.worker.seen_store import (
    ASKED_MIN,
    CRAWLS_MAX,
    GENERATION_MS,
    GENERATION_URLS_MAX,
    Novelty,
    SeenUrls,
)

NOW_MS = 1_795_251_600_000
MINUTE_MS = 60_000


def test_added_url_is_seen_within_dedup_domain() -> None:
    seen = SeenUrls()
    assert seen.known("a", ["x"], NOW_MS) == set()
    seen.add("a", ["x"], NOW_MS)
    seen.add("a", ["y"], NOW_MS + MINUTE_MS)
    assert seen.known("a", ["x", "y", "z"], NOW_MS + MINUTE_MS) == {"x", "y"}
    assert seen.known("b", ["x"], NOW_MS) == set()


@pytest.mark.parametrize(
    ("minutes", "known"), [(0, True), (29, True), (59, True), (60, False), (-1, False)]
)
def test_seen_url_expires(minutes: int, *, known: bool) -> None:
    """A URL expires after 60 minutes, or when the clock goes back (case 25)."""
    seen = SeenUrls()
    seen.add("a", ["x"], NOW_MS)
    assert (seen.known("a", ["x"], NOW_MS + minutes * MINUTE_MS) == {"x"}) is known


@pytest.mark.parametrize(
    ("added", "forgotten", "known"),
    [
        ({0: "x", 1: "y"}, (), "xy"),
        ({0: "x", 1: "y", 2: "z"}, (), "yz"),
        ({0: "x", 2: "y"}, (), "y"),
        ({0: "xy", 1: "z"}, ("x", "z", "never seen"), "y"),
    ],
    ids=["two generations", "older generation", "expired generation", "released"],
)
def test_urls_of_last_two_generations_are_seen(
    added: dict[int, str], forgotten: tuple[str, ...], known: str
) -> None:
    seen = SeenUrls()
    for generation, urls in added.items():
        seen.add("a", urls, NOW_MS + generation * GENERATION_MS)
    seen.forget("a", forgotten)
    assert seen.known("a", ["x", "y", "z"], NOW_MS + max(added) * GENERATION_MS) == set(known)


def test_seen_urls_are_bounded() -> None:
    seen = SeenUrls()
    for start in range(0, 4 * GENERATION_URLS_MAX, GENERATION_URLS_MAX):
        seen.add("a", [f"{start + place}" for place in range(GENERATION_URLS_MAX)], NOW_MS)
    urls = [f"{place}" for place in range(4 * GENERATION_URLS_MAX)]
    known = seen.known("a", urls, NOW_MS)
    assert known == set(urls[2 * GENERATION_URLS_MAX :])


@pytest.mark.parametrize(
    ("noted", "looks"),
    [
        ((), True),
        (((ASKED_MIN - 1, 0),), True),
        (((ASKED_MIN, 0),), False),
        (((ASKED_MIN, 5),), False),
        (((ASKED_MIN, 6),), True),
        (((1_000, 0), (ASKED_MIN, ASKED_MIN)), True),
        (((ASKED_MIN, ASKED_MIN), *((1_000, 0),) * 8), False),
    ],
    ids=["nothing known", "too little", "new", "nearly new", "not new", "not now", "now"],
)
def test_lookup_is_skipped_if_few_links_are_claimed(
    noted: tuple[tuple[int, int], ...], *, looks: bool
) -> None:
    novelty = Novelty()
    for asked, claimed in noted:
        novelty.note("c", asked, claimed)
    assert novelty.needs_lookup("c") is looks
    assert novelty.needs_lookup("another")


def test_novelty_memory_is_bounded() -> None:
    novelty = Novelty()
    for number in range(CRAWLS_MAX):
        novelty.note(f"c{number}", ASKED_MIN, 0)
    assert not novelty.needs_lookup("c0")
    novelty.note("one more", ASKED_MIN, 0)
    assert novelty.needs_lookup("c0")
    assert not novelty.needs_lookup("one more")
