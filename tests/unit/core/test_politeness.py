"""When a host may be asked: slots, the waiting line, blocks."""

from __future__ import annotations

from random import Random

import pytest

from orbweaver.core.politeness import (
    BLOCK_JITTER,
    BLOCK_S_MAX,
    HORIZON_MS,
    STRIKES_FORGIVEN_MS,
    Host,
    block_until_ms,
    delay_of,
    grant,
    slack_ms,
    spacing_ms,
    turn,
)

NOW_MS = 1_795_251_600_000
HOST = "https://example.com"


class Fixed(Random):
    """A random source that says the same every time."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


@pytest.mark.parametrize(
    ("delay_ms", "slack"),
    [(0, 0), (1, 10), (200, 10), (1_000, 50), (2_000, 100), (60_000, 100)],
)
def test_slack_is_a_small_part_of_the_delay(delay_ms: int, slack: int) -> None:
    """A slot may be used 5 % of the delay late, within 10 to 100 ms; spacing makes up for it."""
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
def test_the_longest_delay_counts(crawl_ms: int, robots_s: float | None, delay_ms: int) -> None:
    """A host's own wish is honoured up to a minute, and never shortens a crawl's (case 68)."""
    assert delay_of(crawl_ms, robots_s) == delay_ms


@pytest.mark.parametrize(
    ("tat_ms", "until_ms", "first_ms", "count"),
    [
        (0, 5_000, 0, 4),  # nobody there, room for all
        (0, 2_500, 0, 3),
        (0, 0, 0, 1),
        (1_500, 2_500, 1_500, 2),
        (2_500, 2_500, 2_500, 1),
        (2_501, 2_500, 2_501, 0),  # beyond the horizon
        (-9_000, 2_500, 0, 3),  # long idle: no credit is saved up
    ],
)
def test_slots_follow_the_last_one(tat_ms: int, until_ms: int, first_ms: int, count: int) -> None:
    """Slots begin where the last reservation ended, or now, and start no later than allowed."""
    got = grant(NOW_MS + tat_ms, 4, 1_000, NOW_MS, NOW_MS + until_ms)
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
def test_who_gets_no_slot_stands_in_line(
    line_ms: int, tat_ms: int, return_ms: int, end_ms: int
) -> None:
    """URLs return when those before them are served, within what a queue can hold."""
    got = turn(NOW_MS + line_ms, NOW_MS + tat_ms, 3, 1_000, NOW_MS)
    assert got == (NOW_MS + return_ms, NOW_MS + end_ms)


@pytest.mark.parametrize(
    ("strikes", "wait_s"),
    [(0, 60), (1, 120), (2, 240), (9, 30_720), (11, BLOCK_S_MAX), (5_000, BLOCK_S_MAX)],
)
def test_blocks_double_up_to_a_day(strikes: int, wait_s: int) -> None:
    """Every strike in a row doubles how long a host is left alone (case 45)."""
    host = Host(name=HOST, strikes=strikes, struck_at_ms=NOW_MS - 1_000)
    until_ms, count = block_until_ms(host, NOW_MS, None, Fixed(0))
    assert (until_ms - NOW_MS, count) == (wait_s * 1_000, strikes + 1)


@pytest.mark.parametrize(
    ("retry_after_s", "wait_s"),
    [(0.0, 0), (-5.0, 0), (7.5, 7.5), (315_360_000.0, BLOCK_S_MAX)],
)
def test_retry_after_goes_before(retry_after_s: float, wait_s: float) -> None:
    """What the server says is taken, from nothing to a day (case 45)."""
    host = Host(name=HOST, strikes=3, struck_at_ms=NOW_MS)
    until_ms, strikes = block_until_ms(host, NOW_MS, retry_after_s, Fixed(0))
    assert (until_ms - NOW_MS, strikes) == (wait_s * 1_000, 4)


def test_jitter_only_ever_adds() -> None:
    """Workers return up to a tenth later than asked, and never earlier."""
    latest = block_until_ms(Host(name=HOST), NOW_MS, 100.0, Fixed(1))[0]
    assert latest - NOW_MS == round(100_000 * (1 + BLOCK_JITTER))


@pytest.mark.parametrize(
    ("struck_ms", "blocked_ms", "strikes"),
    [
        (STRIKES_FORGIVEN_MS, STRIKES_FORGIVEN_MS, 1),
        (STRIKES_FORGIVEN_MS, STRIKES_FORGIVEN_MS - 1, 8),
        (STRIKES_FORGIVEN_MS - 1, STRIKES_FORGIVEN_MS, 8),
    ],
)
def test_half_an_hour_of_quiet_forgives(struck_ms: int, blocked_ms: int, strikes: int) -> None:
    """Strikes are forgiven half an hour after the last one and after the end of its block."""
    host = Host(
        name=HOST,
        strikes=7,
        struck_at_ms=NOW_MS - struck_ms,
        blocked_until_ms=NOW_MS - blocked_ms,
    )
    assert block_until_ms(host, NOW_MS, 1.0, Fixed(0))[1] == strikes


def test_a_block_is_never_shortened() -> None:
    """A shorter wish does not end a longer block."""
    host = Host(name=HOST, blocked_until_ms=NOW_MS + 50_000, strikes=1, struck_at_ms=NOW_MS)
    assert block_until_ms(host, NOW_MS, 1.0, Fixed(0)) == (NOW_MS + 50_000, 2)
