"""Earlier runs that a run continues, and the rest of its page limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.messages import child_id, seeds_of
from orbweaver.frontier.resumption import resumed, roots_of, runs_to_continue, same_crawl
from orbweaver.model.api_source import ApiSource
from orbweaver.model.crawl import DAY_S, Counters, CounterShard, Counts, Crawl, State, Stop
from orbweaver.model.crawl_settings import Scope

NOW_MS = 1_795_251_600_000
JOURNALS_S = 26 * DAY_S
SEEDS = ("https://example.com/",)
CRAWL = Crawl(id="new", name="x", started_at_ms=NOW_MS, seeds=SEEDS, seeds_planned=1, pages_max=200)
FIRST = replace(
    CRAWL,
    id="first",
    started_at_ms=NOW_MS - 3_600_000,
    pages_max=60,
    state=State.FINISHED,
    stop=Stop.MAX_PAGES,
)
LIMITED = {"claimed": 60, "fetched": 60, "refused.budget": 9}


def gone_on(crawl: Crawl, *runs: tuple[Crawl, Counts]) -> Crawl:
    """Continue these runs as far as the rules allow."""
    totals = {run.id: total for run, total in runs}
    found = runs_to_continue(crawl, [run for run, _ in runs], JOURNALS_S)
    return resumed(crawl, found, totals)


def test_raised_limit_leaves_difference() -> None:
    """60 of 200 pages are done, so 140 are left."""
    crawl = gone_on(CRAWL, (FIRST, LIMITED))
    assert (crawl.resumes, crawl.pages_carried, crawl.pages_own) == (("first",), 60, 140)
    assert crawl.shard_quota(0) == 140
    assert crawl.seeds_planned == 2


def test_run_with_further_seeds_continues_earlier_run() -> None:
    crawl = replace(CRAWL, seeds=(*SEEDS, "https://example.com/other"), seeds_planned=2)
    assert gone_on(crawl, (FIRST, LIMITED)).resumes == ("first",)


def test_urls_skipped_by_cancel_are_not_carried() -> None:
    total = {"claimed": 60, "fetched": 20, "skipped": 40, "skipped.cancelled": 40}
    crawl = gone_on(CRAWL, (replace(FIRST, stop=Stop.CANCELLED), total))
    assert crawl.pages_carried == 20


def test_run_continues_all_runs_of_its_predecessor() -> None:
    """With limits of 60, 200 and 500, the pages of all runs count."""
    second = replace(
        FIRST, id="second", started_at_ms=NOW_MS - 60_000, pages_max=200, resumes=("first",)
    )
    crawl = gone_on(
        replace(CRAWL, pages_max=500),
        (FIRST, LIMITED),
        (second, {"claimed": 140, "fetched": 140, "refused.budget": 1}),
    )
    assert (crawl.resumes, crawl.pages_own) == (("second", "first"), 300)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "y"},
        {"seeds": ("https://example.com/other",)},
        {"seeds": (*SEEDS, "https://example.com/other")},
        {"sitemap_urls": ("https://example.com/map.xml",)},
        {"state": State.RUNNING},
        {"retry_of": "another"},
        {"started_at_ms": NOW_MS - 8 * DAY_S * 1000},
    ],
)
def test_unrelated_run_is_not_continued(change: dict[str, Any]) -> None:
    assert gone_on(CRAWL, (replace(FIRST, **change), LIMITED)) == CRAWL


@pytest.mark.parametrize("change", [{"window_s": 0}, {"continuous": True}, {"retry_of": "first"}])
def test_retry_or_continuous_run_continues_no_run(change: dict[str, Any]) -> None:
    crawl = replace(CRAWL, **change)
    assert gone_on(crawl, (FIRST, LIMITED)) == crawl


def test_same_crawl_includes_retries_of_retries() -> None:
    again = replace(FIRST, id="again", retry_of="retry", started_at_ms=NOW_MS + 2)
    retry = replace(FIRST, id="retry", retry_of="first", started_at_ms=NOW_MS + 1)
    other = replace(FIRST, id="other", seeds=("https://example.com/other",))
    of_other = replace(FIRST, id="of-other", retry_of="other")
    found = same_crawl(CRAWL, (again, retry, other, of_other, FIRST))
    assert [run.id for run in found] == ["again", "retry", "first"]


def test_run_with_expired_journals_is_not_continued() -> None:
    crawl = replace(CRAWL, window_s=60 * DAY_S)
    for days, expected in ((24, ("first",)), (26, ())):
        run = replace(FIRST, started_at_ms=NOW_MS - days * DAY_S * 1000)
        assert gone_on(crawl, (run, LIMITED)).resumes == expected


API = ApiSource(url="https://a.example/v1", pages_max=3)


@pytest.mark.parametrize(
    ("options", "refused", "goes_on"),
    [
        ({}, "refused.depth", False),
        ({"depth_max": 30}, "refused.depth", True),
        ({"depth_max": 10}, "refused.depth", False),
        ({"depth_max": 30}, "refused.scope", False),
        ({"scope": Scope.DOMAIN}, "refused.scope", True),
        ({"include": ("/a",)}, "refused.include", True),
        ({"exclude": ("/b",)}, "refused.exclude", True),
        ({"include": ("/a",)}, "refused.depth", False),
        ({"apis": (replace(API, pages_max=4),)}, "refused.api_pages", True),
        ({"apis": (replace(API, pages_max=2),)}, "refused.api_pages", False),
    ],
)
def test_finished_run_is_continued_only_if_it_refused_links(
    options: dict[str, Any], refused: str, *, goes_on: bool
) -> None:
    run = replace(FIRST, stop=Stop.FINISHED, apis=(API,))
    crawl = gone_on(replace(CRAWL, **options), (run, {"claimed": 9, "fetched": 9, refused: 3}))
    assert bool(crawl.resumes) is goes_on


EMPTY = replace(FIRST, id="empty", started_at_ms=NOW_MS - 60_000, stop=Stop.FINISHED)
RETRY = replace(FIRST, id="retry", started_at_ms=NOW_MS - 60_000, retry_of="first")
ONE_FAILED = {"claimed": 9, "fetched": 8, "failed": 1}
ONE_DISALLOWED = {"claimed": 9, "fetched": 8, "skipped": 1, "skipped.robots": 1}
ALL_DISALLOWED = {"claimed": 1, "skipped": 1, "skipped.robots": 1}


@pytest.mark.parametrize(
    ("options", "runs", "resumes", "carried"),
    [
        ({}, [(FIRST, LIMITED), (EMPTY, {})], ("first",), 60),
        ({}, [(FIRST, LIMITED), (replace(EMPTY, stop=Stop.CANCELLED), {})], ("empty", "first"), 60),
        ({}, [(replace(FIRST, stop=Stop.FINISHED), ONE_FAILED)], ("first",), 8),
        ({}, [(replace(FIRST, stop=Stop.FINISHED), ONE_DISALLOWED)], (), 0),
        ({}, [(replace(FIRST, stop=Stop.FINISHED), ALL_DISALLOWED)], ("first",), 0),
        (
            {"obey_robots": False},
            [(replace(FIRST, stop=Stop.FINISHED), ONE_DISALLOWED)],
            ("first",),
            8,
        ),
        (
            {"user_agent": "other/1.0"},
            [(replace(FIRST, stop=Stop.FINISHED), ONE_DISALLOWED)],
            ("first",),
            8,
        ),
        ({}, [(FIRST, LIMITED), (RETRY, ONE_FAILED)], ("first", "retry"), 60),
        ({}, [(FIRST, LIMITED), (RETRY, {"claimed": 1, "fetched": 1})], ("first",), 60),
    ],
)
def test_resumed_run_chain_and_carried_pages(
    options: dict[str, Any],
    runs: list[tuple[Crawl, Counts]],
    resumes: tuple[str, ...],
    carried: int,
) -> None:
    crawl = gone_on(replace(CRAWL, **options), *runs)
    assert (crawl.resumes, crawl.pages_carried) == (resumes, carried)


def test_roots_are_ids_of_sent_messages() -> None:
    run = replace(FIRST, resumes=("older",))
    (seeds,) = seeds_of("first", "first", SEEDS, at_ms=run.started_at_ms, planned=True)
    assert roots_of(run) == (seeds.id, child_id("first", "past/older"))


@given(st.integers(1, 500), st.integers(0, 500), st.integers(1, 20))
def test_shards_share_remaining_limit(limit: int, carried: int, shards: int) -> None:
    crawl = replace(CRAWL, pages_max=limit, pages_carried=carried, shards=shards)
    quotas = [crawl.shard_quota(shard) for shard in range(shards)]
    assert sum(quotas) == max(0, limit - carried)
    assert max(quotas) - min(quotas) <= 1


def test_run_waits_for_messages_planned_later() -> None:
    for taken_in, missing in ((1, 3), (3, 1), (4, 0)):
        shard = CounterShard(counts={"seeds": taken_in, "seeds_more": 3})
        counters = Counters.build((shard,))
        assert (counters.seeds_missing(CRAWL), counters.balance(CRAWL)) == (missing, not missing)
