"""Late links (requested when few others are in flight): number of packs sent at a time."""

from __future__ import annotations

import pytest

from orbweaver.frontier.late_links import (
    FEW_OUT,
    SOON_DONE,
    has_few_for_promising,
    has_few_in_flight,
    late_links_min,
    late_packs_due,
)
from orbweaver.model.crawl import Counters, Crawl


@pytest.mark.parametrize(
    ("done", "pages_max", "expected"),
    [
        (0, 1_000, 1),
        (250, 1_000, 1),
        (500, 1_000, 2),
        (1_000, 10_000, 4),
        (10_000, 100_000, 40),
        (9_960, 10_000, 2),
    ],
)
def test_due_packs_by_claimed_pages_and_limit(done: int, pages_max: int, expected: int) -> None:
    crawl = Crawl(id="c-1", name="c", started_at_ms=0, pages_max=pages_max)
    counters = Counters(shards=(), total={"claimed": done, "fetched": done})
    assert late_packs_due(crawl, counters) == expected


@pytest.mark.parametrize(
    ("done", "out", "expected"),
    [
        (0, 0, True),
        (0, FEW_OUT, True),
        (0, FEW_OUT + 1, False),
        (64, FEW_OUT, True),
        (64, FEW_OUT + 1, False),
    ],
)
def test_few_links_may_be_in_flight_in_early_crawl(done: int, out: int, expected: bool) -> None:
    counters = Counters(shards=(), total={"claimed": done + out, "fetched": done})
    assert has_few_for_promising(counters) is expected
    later = Counters(shards=(), total={"claimed": SOON_DONE + out, "fetched": SOON_DONE})
    assert has_few_in_flight(later) is has_few_for_promising(later)


@pytest.mark.parametrize(
    ("done", "retrying", "others", "expected"),
    [(90, 1, 0, True), (90, 90, 0, True), (90, 1, 1, False), (90, 91, 0, False)],
)
def test_few_out_with_retries_counts_them_only_if_most_urls_fail(
    done: int, retrying: int, others: int, expected: bool
) -> None:
    counts = {"claimed": done + retrying + others, "fetched": done, "retries": retrying + 5}
    counters = Counters(shards=(), total={**counts, "retries_taken": 5})
    assert has_few_in_flight(counters) is expected
    assert has_few_for_promising(counters) is (expected or others == 1)


@pytest.mark.parametrize(
    ("delay_ms", "expected"), [(0, 1), (5_000, 1), (1_000, 2), (200, 12), (10, 25)]
)
def test_late_least_with_short_delay_keeps_host_busy(delay_ms: int, expected: int) -> None:
    crawl = Crawl(id="c-1", name="c", started_at_ms=0, delay_ms=delay_ms)
    assert late_links_min(crawl) == expected
