"""A crawl: its window, page budget and counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.model import crawl_codec
from orbweaver.model.crawl import (
    DAY_S,
    Counters,
    CounterShard,
    Crawl,
    State,
    Stop,
    default_crawl,
    finished,
    first_hosts,
    run_id,
    stop_reason,
    with_state,
)
from orbweaver.model.crawl_settings import WEEK_S, Scope
from orbweaver.model.outcome import Outcome

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
CRAWL = Crawl(id="site-1", name="site", started_at_ms=NOW_MS)
HOUR_MS = 3_600_000


def test_crawl_is_live_until_stopped() -> None:
    live = {state for state in State if replace(CRAWL, state=state).live}
    assert live == {State.RUNNING, State.PAUSED}


@pytest.mark.parametrize(
    ("window_s", "continuous", "stale_before_ms"),
    [
        # A run counts its window back from its start, so its own claims hold for the whole run.
        (WEEK_S, False, NOW_MS - WEEK_S * 1000),
        (0, False, NOW_MS),
        # A continuous crawl counts back from now.
        (WEEK_S, True, NOW_MS + HOUR_MS - WEEK_S * 1000),
        (0, True, NOW_MS + HOUR_MS),
    ],
)
def test_stale_before_follows_window_and_start(
    window_s: int, stale_before_ms: int, *, continuous: bool
) -> None:
    crawl = replace(CRAWL, window_s=window_s, continuous=continuous)
    assert crawl.stale_before_ms(NOW_MS + HOUR_MS) == stale_before_ms


@pytest.mark.parametrize(
    ("window_s", "duration_max_s", "continuous", "hold_s"),
    [
        (WEEK_S, WEEK_S, False, WEEK_S),
        (0, WEEK_S, False, WEEK_S),
        (2 * WEEK_S, WEEK_S, False, 2 * WEEK_S),
        (0, 60, False, WEEK_S),
        (WEEK_S, 60, True, WEEK_S),
        (60, WEEK_S, True, DAY_S),
    ],
)
def test_claim_outlives_run_and_window(
    window_s: int, duration_max_s: int, hold_s: int, *, continuous: bool
) -> None:
    crawl = replace(CRAWL, window_s=window_s, duration_max_s=duration_max_s, continuous=continuous)
    assert crawl.claim_expires_s(NOW_MS) == NOW_MS // 1000 + hold_s


@pytest.mark.parametrize(("pages_max", "shards"), [(1, 1), (1, 16), (100, 16), (1_000_000, 16)])
def test_shard_quotas_add_up_to_page_budget(pages_max: int, shards: int) -> None:
    crawl = replace(CRAWL, pages_max=pages_max, shards=shards)
    quotas = [crawl.shard_quota(shard) for shard in range(shards)]
    assert sum(quotas) == pages_max
    assert max(quotas) - min(quotas) <= 1


def test_default_crawl_is_continuous_and_polite() -> None:
    crawl = default_crawl(NOW_MS)
    assert (crawl.id, crawl.name, crawl.continuous) == ("default", "default", True)
    assert (crawl.depth_max, crawl.shards, crawl.pages_max) == (5, 16, 100_000_000)
    assert crawl.obey_robots
    assert crawl.delay_ms == 1_000


def test_run_id_contains_name_day_and_second() -> None:
    assert run_id("site", NOW_MS + 999) == "site-20261121-090000"


def test_counters_sum_all_shards() -> None:
    counters = Counters.build(
        (
            CounterShard(counts={"claimed": 5, "fetched": 2, "fetched.ok": 2}),
            CounterShard(),
            CounterShard(counts={"claimed": 1, "failed": 1, "failed.dns": 1, "seeds": 1}),
        )
    )
    failed = {"failed": 1, "failed.dns": 1}
    assert counters.total == failed | {"claimed": 6, "fetched": 2, "fetched.ok": 2, "seeds": 1}
    assert (counters.claimed, counters.done) == (6, 3)
    assert (Counters.build(()).claimed, Counters.build(()).done) == (0, 0)


@pytest.mark.parametrize(
    ("counts", "balance"),
    [
        ({}, False),
        ({"seeds": 2}, True),
        ({"seeds": 1}, False),
        ({"seeds": 2, "claimed": 1}, False),
        ({"seeds": 2, "claimed": 1, "fetched": 1}, True),
        (dict.fromkeys(Outcome, 1) | {"seeds": 2, "claimed": 5}, True),
    ],
)
def test_counters_balance_when_seeds_are_taken_and_claims_have_outcome(
    counts: dict[str, int], *, balance: bool
) -> None:
    crawl = replace(CRAWL, seeds_planned=2)
    assert Counters.build((CounterShard(counts=counts),)).balance(crawl) is balance


@pytest.mark.parametrize(
    ("stop", "counts", "reason"),
    [
        (None, {}, Stop.FINISHED),
        (None, {"refused.budget": 1}, Stop.MAX_PAGES),
        (None, {"refused.budget": 1, "skipped.duration": 1}, Stop.DURATION),
        (Stop.CANCELLED, {"skipped.duration": 1}, Stop.CANCELLED),
    ],
)
def test_stop_reason_prefers_order_then_time_then_budget(
    stop: Stop | None, counts: dict[str, int], reason: Stop
) -> None:
    crawl, counters = replace(CRAWL, stop=stop), Counters.build((CounterShard(counts=counts),))
    assert stop_reason(crawl, counters) is reason
    end = finished(crawl, counters, NOW_MS + 5)
    assert (end.state, end.stop, end.finished_at_ms) == (State.FINISHED, reason, NOW_MS + 5)


# --- stored form ------------------------------------------------------------------------------


FULL = replace(
    CRAWL,
    seeds=("https://example.com/",),
    scope=Scope.PREFIX,
    user_agent="me",
    state=State.FINISHED,
    stop=Stop.CANCELLED,
    finished_at_ms=NOW_MS,
    announced=True,
)


@pytest.mark.parametrize(
    "crawl",
    [
        CRAWL,
        FULL,
        replace(FULL, tracking=()),
        replace(FULL, tracking=("ref", "my_*")),
        default_crawl(NOW_MS),
    ],
)
def test_crawl_round_trips_through_stored_form(crawl: Crawl) -> None:
    assert crawl_codec.from_fields(crawl_codec.to_fields(crawl)) == crawl


def test_crawl_of_other_version_is_read() -> None:
    """Unknown fields are ignored and missing fields take their defaults (case 26)."""
    bare = {"id": "site-1", "name": "site", "started_at_ms": NOW_MS}
    assert crawl_codec.from_fields({**bare, "k": "site-1", "later": 1}) == CRAWL


def test_first_hosts_returns_ten_distinct_hosts_in_order() -> None:
    urls = [f"https://h{number % 12}.example/{number}" for number in range(40)]
    assert first_hosts(urls) == tuple(f"https://h{number}.example" for number in range(10))
    assert first_hosts(urls[:3] * 2) == tuple(f"https://h{number}.example" for number in range(3))


def test_ran_ms_excludes_pauses() -> None:
    crawl = Crawl(id="c", name="c", started_at_ms=1_000)
    assert crawl.ran_ms(4_000) == 3_000
    paused = with_state(with_state(crawl, State.PAUSED, None, 5_000), State.PAUSED, None, 9_000)
    assert paused.ran_ms(60_000) == 4_000
    resumed = with_state(paused, State.RUNNING, None, 65_000)
    assert (resumed.paused_at_ms, resumed.ran_ms(66_000)) == (None, 5_000)
    again = with_state(resumed, State.PAUSED, None, 67_000)
    stopped = with_state(again, State.STOPPING, Stop.CANCELLED, 77_000)
    assert (stopped.stop, stopped.ran_ms(78_000)) == (Stop.CANCELLED, 7_000)
    assert replace(stopped, finished_at_ms=79_000).ran_ms(99_000) == 8_000
