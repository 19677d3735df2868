"""A crawl of ten small hosts beside one with 100,000 queued URLs: about as long as alone.

In virtual time, with fewer workers than AWS gives by default (`worker_concurrency_max`). What the
big crawl has waits for its hosts, and one pack of each is out: it keeps as many workers for a round
as those fill batches.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.fair import Contest, took_s

pytestmark = [pytest.mark.simulation, pytest.mark.slow, pytest.mark.timeout(300)]

CONTEST = Contest(workers=20)
RATIO_MAX = 1.1
# No more workers than the big crawl fills with its hosts.
FILLED, FILLED_RATIO_MAX = 5, 1.5
# 1.9 measured; workers that keep a host busy made the small crawl twice as quick without groups.
WORSE_RATIO_MIN = 1.5


@pytest.mark.parametrize(("workers", "most"), [(20, RATIO_MAX), (FILLED, FILLED_RATIO_MAX)])
def test_a_small_crawl_beside_a_big_one_takes_about_as_long_as_alone(
    workers: int, most: float
) -> None:
    """Whatever waits for its hosts, and also where it has all workers at first.

    Over some seeds: a crawl of half a minute takes a visit more or less, which is five seconds.
    """
    contests = [replace(CONTEST, seed=seed, workers=workers) for seed in (1, 2, 3)]
    alone_s = sum(took_s(replace(contest, big_urls=0)) for contest in contests)

    assert sum(map(took_s, contests)) <= most * alone_s


def test_without_groups_it_waits_for_all_that_was_queued_before() -> None:
    """What the groups of messages are for: of a crawl without a delay all packs are queued."""
    contest = replace(CONTEST, fair=False, waits=False, batch=10, big_urls=20_000)
    contest = replace(contest, big_delay_ms=0, big_latency_s=2.0)
    alone_s = took_s(replace(contest, big_urls=0))

    assert took_s(contest) >= WORSE_RATIO_MIN * alone_s
