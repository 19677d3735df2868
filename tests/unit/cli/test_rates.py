"""Rates of outcomes over time, and their sparkline."""

from __future__ import annotations

import pytest

from orbweaver.cli.live.screen import sparkline
from orbweaver.control.progress.forecast import BARS_MAX, GAP_MS, RateHistory, Rates

START_MS = 1_795_251_600_000


def seen(*readings: tuple[float, int]) -> Rates:
    history, rates = RateHistory(), Rates(now=0, mean=0, peak=0)
    for after_s, done in readings:
        after_ms = round(after_s * 1000)
        rates = history.add(START_MS + after_ms, done, started_at_ms=START_MS, elapsed_ms=after_ms)
    return rates


@pytest.mark.parametrize(
    ("readings", "now", "mean", "peak"),
    [
        ([(0, 0)], 0, 0, 0),
        ([(10, 50)], 5, 5, 5),  # a single reading covers the whole run
        ([(30, 0), (40, 50)], 5, 1.25, 5),  # no process worked before
        ([(s, 2 * s) for s in range(31)], 2, 2, 2),
        ([*((s, 10 * s) for s in range(21)), (60, 200), (70, 200)], 0, 200 / 70, 10),
        ([(10, 50), (5, 60)], 12, 12, 12),  # the clock was set back
        ([(10, 50), (11, 40)], 0, 40 / 11, 5),  # counts never fall
    ],
)
def test_rates_have_now_mean_and_peak(
    readings: list[tuple[float, int]], now: float, mean: float, peak: float
) -> None:
    rates = seen(*readings)
    assert (rates.now, rates.mean, rates.peak) == pytest.approx((now, mean, peak))


def test_bars_follow_clock_and_leave_gaps() -> None:
    rates = seen((0, 0), (2, 4), (7, 14), (11, 22), (60, 500), (66, 500), (70, 504))
    assert rates.bars[0] == pytest.approx(2)
    assert rates.bars[1:-1] == (None,) * 11
    assert rates.bars[-1] == pytest.approx(0.8)


@pytest.mark.parametrize(("gap_ms", "bars"), [(GAP_MS, (2, 2, 2)), (GAP_MS + 1, (2, None, None))])
def test_readings_closer_than_a_gap_have_bars(gap_ms: int, bars: tuple[float | None, ...]) -> None:
    rates = seen((0, 0), (5, 10), (10, 20), (10 + gap_ms / 1000, 20 + 2 * gap_ms // 1000))
    assert rates.bars == pytest.approx(bars)


def test_bars_are_bounded_after_long_pause() -> None:
    rates = seen((0, 0), (5, 1), (10, 2), (10_000_000, 3), (10_000_005, 4), (10_000_010, 5))
    assert len(rates.bars) == BARS_MAX
    assert rates.bars[-1] == pytest.approx(0.2)
    assert set(rates.bars[:-1]) == {None}


@pytest.mark.parametrize(
    ("numbers", "columns", "lines", "drawn"),
    [
        ([], 8, 1, [""]),
        ([0, 0], 8, 1, ["▁▁"]),
        ([0, 1, 4, 8], 8, 1, ["▁▃▅█"]),
        ([1, None, 8], 8, 1, ["▃·█"]),
        ([1, None, 8], 2, 1, ["·█"]),
        ([0, 0.001, 8], 8, 2, ["  █", "▁▂█"]),
        ([8, None, 4], 8, 3, ["█  ", "█ ▅", "█·█"]),
        ([1, 2], 0, 1, [""]),
        ([1, 2], -3, 0, []),
    ],
)
def test_sparkline_shows_zero_as_lowest_bar_and_unknown_as_dot(
    numbers: list[float | None], columns: int, lines: int, drawn: list[str]
) -> None:
    assert sparkline(numbers, columns, lines) == drawn
