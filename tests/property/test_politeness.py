"""Politeness: request distances, blocks and backoff stay within bounds."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.fetching.response_verdict import retry_after_s
from orbweaver.model.backoff import BASE_S, CAP_S, backoff_s
from orbweaver.politeness.host_schedule import (
    AHEAD_MS_MAX,
    BLOCK_JITTER,
    BLOCK_S_MAX,
    DOWN_S,
    HORIZON_MS,
    SLACK_MS_MAX,
    SLACK_MS_MIN,
    Host,
    after_failure,
    block_until_ms,
    grant_slots,
    is_doubtful,
    is_down,
    join_queue,
    pace_after_silence,
    pace_of,
    reserved,
    slack_ms,
    spacing_ms,
)

NOW_MS = 1_795_251_600_000
DELAYS = st.integers(1, 60_000)
MOMENTS = st.integers(NOW_MS - HORIZON_MS, NOW_MS + 2 * HORIZON_MS)
SEEDS = st.integers(0, 2**32)
WANTED = st.integers(1, 25)


@given(
    DELAYS,
    st.lists(st.tuples(st.integers(-5_000, 60_000), WANTED, st.integers(0, 60_000)), max_size=20),
)
def test_slots_never_overlap(delay_ms: int, steps: list[tuple[int, int, int]]) -> None:
    spacing, now_ms, tat_ms = spacing_ms(delay_ms), NOW_MS, 0
    slots: list[int] = []
    for passed_ms, wanted, ahead_ms in steps:
        now_ms += passed_ms
        first_ms, count = grant_slots(tat_ms, wanted, spacing, now_ms, now_ms + ahead_ms)
        assert first_ms >= max(tat_ms, now_ms)
        assert 0 <= count <= wanted
        got = [first_ms + place * spacing for place in range(count)]
        assert all(now_ms <= slot <= now_ms + ahead_ms for slot in got)
        if count:
            tat_ms = first_ms + count * spacing
        slots += got
    for one, other in pairwise(slots):
        assert other - one >= spacing
        assert other - (one + slack_ms(delay_ms)) >= delay_ms


@given(DELAYS, MOMENTS, WANTED, st.integers(0, HORIZON_MS))
def test_grant_is_as_large_as_possible(
    delay_ms: int, tat_ms: int, wanted: int, ahead_ms: int
) -> None:
    spacing = spacing_ms(delay_ms)
    first_ms, count = grant_slots(tat_ms, wanted, spacing, NOW_MS, NOW_MS + ahead_ms)
    assert count == wanted or first_ms + count * spacing > NOW_MS + ahead_ms


@given(DELAYS)
def test_slack_is_within_bounds(delay_ms: int) -> None:
    assert SLACK_MS_MIN <= slack_ms(delay_ms) <= SLACK_MS_MAX
    assert spacing_ms(delay_ms) >= delay_ms + slack_ms(delay_ms)


@given(MOMENTS, MOMENTS, WANTED, DELAYS)
def test_turn_is_within_queue_delay(line_ms: int, tat_ms: int, wanted: int, spacing: int) -> None:
    return_ms, end_ms = join_queue(line_ms, tat_ms, wanted, spacing, NOW_MS, NOW_MS + 5_000)
    assert NOW_MS <= return_ms <= end_ms <= NOW_MS + HORIZON_MS
    assert return_ms >= min(tat_ms, NOW_MS + HORIZON_MS)
    again_ms, _ = join_queue(end_ms, tat_ms, wanted, spacing, NOW_MS, NOW_MS + 5_000)
    assert again_ms >= return_ms


@given(
    st.integers(0, 10_000),
    MOMENTS,
    MOMENTS,
    st.none() | st.floats(allow_nan=False),
    SEEDS,
)
def test_block_is_bounded_and_never_shortened(
    strikes: int, struck_ms: int, blocked_ms: int, after_s: float | None, seed: int
) -> None:
    host = Host(name="h", strikes=strikes, struck_at_ms=struck_ms, blocked_until_ms=blocked_ms)
    until_ms, now_strikes = block_until_ms(host, NOW_MS, after_s, Random(seed), host.struck_at_ms)
    longest_ms = round(BLOCK_S_MAX * 1_000 * (1 + BLOCK_JITTER))
    assert max(NOW_MS, blocked_ms) <= until_ms <= max(NOW_MS + longest_ms, blocked_ms)
    assert now_strikes in (1, strikes + 1)


@given(SEEDS)
def test_blocks_grow_with_every_strike(seed: int) -> None:
    random, now_ms = Random(seed), NOW_MS
    host = Host(name="h")
    waits: list[int] = []
    for _ in range(15):
        until_ms, strikes = block_until_ms(host, now_ms, None, random, now_ms)
        waits.append(until_ms - now_ms)
        host = Host(name="h", blocked_until_ms=until_ms, strikes=strikes, struck_at_ms=now_ms)
        now_ms = until_ms
    longest_ms = BLOCK_S_MAX * 1_000
    assert all(one < other or other >= longest_ms for one, other in pairwise(waits))
    assert waits[0] >= 60_000
    assert waits[-1] >= longest_ms


@given(st.integers(1, 60), SEEDS)
def test_backoff_is_bounded_and_grows(attempt: int, seed: int) -> None:
    ceiling_s = min(CAP_S, BASE_S * 2 ** (attempt - 1))
    wait_s = backoff_s(attempt, Random(seed))
    assert ceiling_s / 2 <= wait_s <= ceiling_s
    assert backoff_s(attempt + 1, Random(seed)) >= wait_s


@given(st.text(max_size=60) | st.text("0123456789 -+:,GMTJanuryMoFeSpctDv", max_size=60))
def test_any_retry_after_is_wait_or_none(value: str) -> None:
    """The wait is never in the past (case 45)."""
    wait_s = retry_after_s(value, NOW_MS)
    assert wait_s is None or wait_s >= 0


@given(
    st.lists(
        st.tuples(st.integers(0, 7_200_000), st.booleans(), st.floats(0, 1)),
        min_size=1,
        max_size=40,
    )
)
def test_block_of_silent_host_is_bounded(
    steps: list[tuple[int, bool, float]],
) -> None:
    host, now_ms = Host(name="https://example.com"), NOW_MS
    for passed_ms, probe, chance in steps:
        now_ms += passed_ms
        after = after_failure(host, now_ms, chance, probe=probe)
        assert after.blocked_until_ms >= host.blocked_until_ms
        assert after.blocked_until_ms - now_ms <= DOWN_S * 1_000 * (1 + BLOCK_JITTER) + 1
        assert after.failures in {1, host.failures, host.failures + 1}
        assert not (is_doubtful(after, now_ms) and is_down(after, now_ms))
        host = after


@given(st.lists(st.tuples(st.integers(0, 200_000), st.sampled_from((True, False, None)))))
def test_errors_never_make_pace_faster(answers: list[tuple[int, bool | None]]) -> None:
    """Only good answers reduce the pace, at most by half. A silence at most doubles it."""
    pace_ms = 0
    for latency_ms, well in answers:
        if well is None:
            new_ms = pace_after_silence(pace_ms, latency_ms)
            assert pace_ms <= new_ms <= min(60_000, 2 * pace_ms, max(pace_ms, latency_ms))
            pace_ms = new_ms
            continue
        new_ms = pace_of(pace_ms, latency_ms, well=well)
        assert min(latency_ms, 60_000) <= new_ms <= 60_000 or (not well and new_ms == pace_ms)
        assert new_ms >= (pace_ms // 2 if well else pace_ms)
        pace_ms = new_ms


@given(st.integers(AHEAD_MS_MAX + 1, 400 * 86_400_000), WANTED)
def test_slot_reserved_by_reset_clock_is_reserved_anew(ahead_ms: int, wanted: int) -> None:
    host = Host(name="https://a.example", tat_ms=NOW_MS + ahead_ms, line_ms=NOW_MS + ahead_ms)
    host, slots = reserved(host, wanted, 1_050, NOW_MS, NOW_MS + 60_000)
    assert slots.at_ms == tuple(NOW_MS + place * 1_050 for place in range(wanted))
    assert host.tat_ms == NOW_MS + wanted * 1_050
