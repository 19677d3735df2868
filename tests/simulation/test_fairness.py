"""A crawl of ten small hosts beside one with 100,000 queued URLs: about as long as alone.

In virtual time, with fewer workers than AWS gives by default (`worker_concurrency_max`), all of
which the big crawl keeps waiting for the slots of its hosts. Fair queues put the small crawl first
in line; then it waits for a worker, and that is bounded by how long one waits for slots.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.fair import Contest, took_s

pytestmark = [pytest.mark.simulation, pytest.mark.slow, pytest.mark.timeout(300)]

CONTEST = Contest(workers=20)
RATIO_MAX = 1.4
# An invocation that waits longer keeps everybody else waiting for a worker, at every hop.
LONG_WAIT_S = 20.0
WORSE_RATIO_MIN = 2.0


def test_a_small_crawl_beside_a_big_one_takes_about_as_long_as_alone() -> None:
    """With fair queues and short waits the ratio is bounded, however much is queued.

    Over some seeds: one crawl of half a minute takes a visit more or less, which is five seconds.
    """
    contests = [replace(CONTEST, seed=seed) for seed in (1, 2, 3)]
    alone_s = sum(took_s(replace(contest, big_urls=0)) for contest in contests)

    assert sum(map(took_s, contests)) <= RATIO_MAX * alone_s


def test_workers_that_wait_long_are_not_there_for_others() -> None:
    """Why a worker waits for slots no longer than it does."""
    contest = replace(CONTEST, wait_s_max=LONG_WAIT_S, big_urls=50_000)
    alone_s = took_s(replace(contest, big_urls=0))

    assert took_s(contest) >= WORSE_RATIO_MIN * alone_s


def test_without_groups_it_waits_for_all_that_was_queued_before() -> None:
    """What the groups of messages are for: without them the small crawl comes last."""
    contest = replace(CONTEST, fair=False, big_urls=50_000)
    alone_s = took_s(replace(contest, big_urls=0))

    assert took_s(contest) >= WORSE_RATIO_MIN * alone_s
