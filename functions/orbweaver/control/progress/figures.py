"""Format numbers and durations as texts."""

from __future__ import annotations

BYTES_STEP = 1_000
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
# Durations from which `roughly` uses minutes, hours and days.
MINUTES_FROM_S, HOURS_FROM_S, DAYS_FROM_S = 90, 90 * MINUTE_S, 36 * HOUR_S


def clock(seconds: float) -> str:
    """Format a duration as `0:07`, `12:05`, `1:02:03` or `2 d 03:00`."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, DAY_S)
    hours, rest = divmod(rest, HOUR_S)
    minutes, left = divmod(rest, MINUTE_S)
    if days:
        return f"{days} d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def span(seconds: int) -> str:
    """Format a setting's duration in its largest whole unit: `7 days`, `90 minutes`, `1 second`."""
    for unit, word in ((DAY_S, "day"), (HOUR_S, "hour"), (MINUTE_S, "minute")):
        if seconds and seconds % unit == 0:
            return plural(seconds // unit, word)
    return plural(seconds, "second")


def roughly(seconds: float) -> str:
    """Format a duration rounded to one unit: `40 s`, `4 min`, `3 h`, `2 days`."""
    seconds = max(0.0, seconds)
    if seconds < MINUTES_FROM_S:
        return f"{max(1, round(seconds))} s"
    if seconds < HOURS_FROM_S:
        return f"{round(seconds / MINUTE_S)} min"
    if seconds < DAYS_FROM_S:
        return f"{round(seconds / HOUR_S)} h"
    return f"{seconds / DAY_S:,.0f} days"


def pace(delay_ms: int) -> str:
    """Format a delay between requests: `250 ms`, `1.5 s`."""
    return f"{delay_ms} ms" if delay_ms < 1000 else f"{delay_ms / 1000:g} s"  # noqa: PLR2004 - a second


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def size(number: int) -> str:
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < BYTES_STEP:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= BYTES_STEP
    return f"{value:.1f} TB"


def rate(per_s: float) -> str:
    return f"{per_s:.1f}" if per_s < 100 else f"{per_s:,.0f}"  # noqa: PLR2004 - three digits do
