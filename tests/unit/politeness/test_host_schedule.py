"""Time at which a host may be requested: slots, queue position, blocks."""

from __future__ import annotations

from random import Random

import pytest

from orbweaver.politeness.host_schedule import (
    BLOCK_JITTER,
    BLOCK_S,
    BLOCK_S_MAX,
    DOWN_S,
    FAILURES_MAX,
    HORIZON_MS,
    ROUNDS_MAX,
    STRIKES_FORGIVEN_MS,
    Host,
    after_failure,
    block_until_ms,
    delay_of,
    grant_slots,
    is_doubtful,
    is_down,
    join_queue,
    pace_after_silence,
    pace_of,
    slack_ms,
    spacing_ms,
    strikes_of,
)

NOW_MS = 1_795_251_600_000
HOST = "https://example.com"


class Fixed(Random):
    """A random source that always returns the same number."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


@pytest.mark.parametrize(
    ("delay_ms", "slack"), [(0, 0), (1, 10), (200, 10), (1_000, 50), (2_000, 100), (60_000, 100)]
)
def test_slack_is_5_percent_of_delay_within_limits(delay_ms: int, slack: int) -> None:
    """The slack is 10 to 100 ms and is added to the spacing."""
    assert slack_ms(delay_ms) == slack
    assert spacing_ms(delay_ms) == delay_ms + slack


@pytest.mark.parametrize(
    ("crawl_ms", "robots_s", "delay_ms"),
    [
        (1_000, None, 1_000),
        (1_000, 0.0, 1_000),
        (1_000, 10.0, 10_000),
        (30_000, 10.0, 30_000),
        (1_000, 86_400.0, 60_000),
        (1_000, -1.0, 1_000),
        (0, 0.25, 250),
    ],
)
def test_longest_delay_applies(crawl_ms: int, robots_s: float | None, delay_ms: int) -> None:
    """A Crawl-delay counts up to a minute, and never shortens the delay of the crawl (case 68)."""
    assert delay_of(crawl_ms, robots_s) == delay_ms


@pytest.mark.parametrize(
    ("tat_ms", "until_ms", "first_ms", "count"),
    [
        (0, 5_000, 0, 4),  # the host is free, with room for all
        (0, 2_500, 0, 3),
        (0, 0, 0, 1),
        (1_500, 2_500, 1_500, 2),
        (2_500, 2_500, 2_500, 1),
        (2_501, 2_500, 2_501, 0),  # beyond the horizon
        (-9_000, 2_500, 0, 3),  # idle for long: unused slots are not saved up
    ],
)
def test_slots_follow_last_reservation(
    tat_ms: int, until_ms: int, first_ms: int, count: int
) -> None:
    got = grant_slots(NOW_MS + tat_ms, 4, 1_000, NOW_MS, NOW_MS + until_ms)
    assert got == (NOW_MS + first_ms, count)


@pytest.mark.parametrize(
    ("line_ms", "tat_ms", "return_ms", "end_ms"),
    [
        (0, 0, 0, 3_000),
        (0, 7_000, 7_000, 10_000),
        (20_000, 7_000, 20_000, 23_000),
        (HORIZON_MS - 1_000, 0, HORIZON_MS - 1_000, HORIZON_MS),
        (HORIZON_MS + 9_000, 0, HORIZON_MS, HORIZON_MS),
    ],
)
def test_urls_without_slot_get_return_time_in_order(
    line_ms: int, tat_ms: int, return_ms: int, end_ms: int
) -> None:
    got = join_queue(NOW_MS + line_ms, NOW_MS + tat_ms, 3, 1_000, NOW_MS, NOW_MS + 5_000)
    assert got == (NOW_MS + return_ms, NOW_MS + end_ms)


@pytest.mark.parametrize(
    ("strikes", "retry_after_s", "wait_s"),
    [
        (0, None, 60),
        (1, None, 120),
        (2, None, 240),
        (9, None, 30_720),
        (11, None, BLOCK_S_MAX),
        (5_000, None, BLOCK_S_MAX),
        # A Retry-After from zero to a day is accepted.
        (3, 0.0, 0),
        (3, -5.0, 0),
        (3, 7.5, 7.5),
        (3, 315_360_000.0, BLOCK_S_MAX),
    ],
)
def test_blocks_double_up_to_a_day(
    strikes: int, retry_after_s: float | None, wait_s: float
) -> None:
    """Each consecutive strike doubles the block, unless the host names one (case 45)."""
    host = Host(name=HOST, strikes=strikes, struck_at_ms=NOW_MS - 1_000)
    until_ms, count = block_until_ms(host, NOW_MS, retry_after_s, Fixed(0), NOW_MS)
    assert (until_ms - NOW_MS, count) == (wait_s * 1_000, strikes + 1)


def test_block_jitter_only_adds_time() -> None:
    latest = block_until_ms(Host(name=HOST), NOW_MS, 100.0, Fixed(1), NOW_MS)[0]
    assert latest - NOW_MS == round(100_000 * (1 + BLOCK_JITTER))


@pytest.mark.parametrize(
    ("struck_ms", "blocked_ms", "strikes"),
    [
        (STRIKES_FORGIVEN_MS, STRIKES_FORGIVEN_MS, 1),
        (STRIKES_FORGIVEN_MS, STRIKES_FORGIVEN_MS - 1, 8),
        (STRIKES_FORGIVEN_MS - 1, STRIKES_FORGIVEN_MS, 8),
    ],
)
def test_strikes_are_forgiven_after_half_an_hour(
    struck_ms: int, blocked_ms: int, strikes: int
) -> None:
    """The last strike and the end of its block must both be that old."""
    host = Host(
        name=HOST, strikes=7, struck_at_ms=NOW_MS - struck_ms, blocked_until_ms=NOW_MS - blocked_ms
    )
    assert block_until_ms(host, NOW_MS, 1.0, Fixed(0), NOW_MS)[1] == strikes
    assert strikes_of(host, NOW_MS) == strikes - 1


def test_block_is_never_shortened() -> None:
    host = Host(name=HOST, blocked_until_ms=NOW_MS + 50_000, strikes=1, struck_at_ms=NOW_MS)
    assert block_until_ms(host, NOW_MS, 1.0, Fixed(0), NOW_MS) == (NOW_MS + 50_000, 2)


@pytest.mark.parametrize(
    ("after_s", "until_s", "strikes"), [(None, 60, 1), (10.0, 60, 1), (90.0, 90, 1)]
)
def test_concurrent_refusals_are_one_strike(
    after_s: float | None, until_s: int, strikes: int
) -> None:
    host = Host(name=HOST, blocked_until_ms=NOW_MS + 60_000, strikes=1, struck_at_ms=NOW_MS - 5)
    got = block_until_ms(host, NOW_MS, after_s, Fixed(0), NOW_MS - 20)
    assert got == (NOW_MS + until_s * 1_000, strikes)
    assert block_until_ms(host, NOW_MS, None, Fixed(0), NOW_MS - 5) == (NOW_MS + 120_000, 2)


def test_silent_host_rests_longer_each_round_until_down() -> None:
    """After five failures, each round sends one request and doubles the block (case 32)."""
    host, now_ms, rests = Host(name=HOST), NOW_MS, []
    for failure in range(1, FAILURES_MAX + ROUNDS_MAX + 2):
        assert is_doubtful(host, now_ms) is (failure > FAILURES_MAX)
        host = after_failure(host, now_ms, 0.0, probe=False)
        assert host.failures == failure
        if host.blocked_until_ms > now_ms:
            rests.append((host.blocked_until_ms - now_ms) // 1_000)
            assert not is_doubtful(host, now_ms)
            assert is_down(host, now_ms) is (failure >= FAILURES_MAX + ROUNDS_MAX)
        now_ms = max(now_ms, host.blocked_until_ms)
        assert not is_down(host, now_ms)
    assert rests == [*(BLOCK_S * 2**turn for turn in range(ROUNDS_MAX)), DOWN_S, DOWN_S]


def test_failures_in_flight_at_block_start_are_ignored() -> None:
    """Requests that fail together count once.

    A probe (single request after a block) always counts.
    """
    host = Host(name=HOST, failures=FAILURES_MAX, blocked_until_ms=NOW_MS + 1, failed_at_ms=NOW_MS)
    assert after_failure(host, NOW_MS, 0.5, probe=False) == host
    after = after_failure(host, NOW_MS, 1.0, probe=True)
    assert after.failures == FAILURES_MAX + 1
    assert after.blocked_until_ms == NOW_MS + round(2_000 * BLOCK_S * (1 + BLOCK_JITTER))
    longer = Host(name=HOST, failures=FAILURES_MAX, blocked_until_ms=NOW_MS + 9_000_000)
    assert after_failure(longer, NOW_MS, 0.0, probe=True).blocked_until_ms == NOW_MS + 9_000_000


def test_silent_host_is_doubtful_from_end_of_rest() -> None:
    host = Host(name=HOST, failures=FAILURES_MAX, blocked_until_ms=NOW_MS)
    assert [is_doubtful(host, NOW_MS + after_ms) for after_ms in (-1, 0, 1)] == [False, True, True]


def test_failures_are_forgiven_after_half_an_hour() -> None:
    host = Host(name=HOST, failures=8, failed_at_ms=NOW_MS, blocked_until_ms=NOW_MS + 1_000)
    last_ms = NOW_MS + 1_000 + STRIKES_FORGIVEN_MS
    assert is_doubtful(host, last_ms - 1)
    assert not is_doubtful(host, last_ms)
    assert after_failure(host, last_ms - 1, 0.0, probe=False).failures == 9
    assert after_failure(host, last_ms, 0.0, probe=False).failures == 1


@pytest.mark.parametrize(
    ("known_ms", "latency_ms", "well", "pace_ms"),
    [
        (0, 200, True, 200),
        (200, 1_000, True, 1_000),  # a slower answer counts at once
        (1_000, 200, True, 600),  # a faster answer counts half
        (1_000, 5, False, 1_000),  # an error is fast, and does not count
        (1_000, 20_000, False, 20_000),
        (0, 500_000, True, 60_000),
        (0, -5, True, 0),
    ],
)
def test_pace_follows_latency_of_host(
    known_ms: int, latency_ms: int, pace_ms: int, *, well: bool
) -> None:
    assert pace_of(known_ms, latency_ms, well=well) == pace_ms


@pytest.mark.parametrize(
    ("known_ms", "waited_ms", "pace_ms"),
    [
        (250, 20_000, 500),  # one silence among many answers does not set the pace
        (15_000, 20_000, 20_000),
        (3_000, 2, 3_000),  # a refused connection is fast, and does not count
        (0, 20_000, 0),
        (50_000, 90_000, 60_000),
    ],
)
def test_silence_doubles_pace(known_ms: int, waited_ms: int, pace_ms: int) -> None:
    assert pace_after_silence(known_ms, waited_ms) == pace_ms


@pytest.mark.parametrize(
    ("crawl_ms", "robots_s", "pace_ms", "delay_ms"),
    [
        (1_000, None, 3_000, 3_000),
        (5_000, None, 3_000, 5_000),
        (0, None, 3_000, 0),
        (1, 9, 3, 9_000),
    ],
)
def test_pace_counts_as_delay(
    crawl_ms: int, robots_s: float | None, pace_ms: int, delay_ms: int
) -> None:
    assert delay_of(crawl_ms, robots_s, pace_ms) == delay_ms
