"""Late links: how many packs of them are sent at a time."""

from __future__ import annotations

import pytest

from orbweaver.frontier.late import due
from orbweaver.model.crawl import Counters, Crawl


@pytest.mark.parametrize(
    ("done", "pages_max", "expected"),
    [
        (0, 1_000, (1, 1)),
        (100, 1_000, (1, 1)),
        (500, 1_000, (1, 4)),
        (1_000, 10_000, (2, 8)),
        (10_000, 100_000, (20, 80)),
        (9_960, 10_000, (2, 2)),
    ],
)
def test_more_are_sent_of_kinds_that_are_not_known(
    done: int, pages_max: int, expected: tuple[int, int]
) -> None:
    """A few of each of them are tried; of both kinds no more than the limit has room for."""
    crawl = Crawl(id="c-1", name="c", started_at_ms=0, pages_max=pages_max)
    counters = Counters(shards=(), total={"claimed": done, "fetched": done})
    assert due(crawl, counters) == expected
