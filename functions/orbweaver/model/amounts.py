"""Parse and format amounts: bytes with a unit (`B KB MB GB TB`), dollars, durations, numbers.

Decimal units are powers of 1,000, `KiB MiB GiB TiB` are powers of 1,024. A duration is a number
with `ms s m h d`, or plain seconds.
"""

from __future__ import annotations

import re
from decimal import Decimal

SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(|b|kb|mb|gb|tb|kib|mib|gib|tib)")
DOLLARS = re.compile(r"\$?([0-9]{1,12}(?:\.[0-9]{1,9})?)")
UNITS = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3}
BINARY = {"TIB": 2**40, "GIB": 2**30, "MIB": 2**20, "KIB": 2**10}
NANO = 10**9
DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|)")
UNITS_MS = {"ms": 1, "s": 1_000, "": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES_STEP = 1_000
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
# Durations from which `roughly` uses minutes, hours and days.
MINUTES_FROM_S, HOURS_FROM_S, DAYS_FROM_S = 90, 90 * MINUTE_S, 36 * HOUR_S


class AmountError(ValueError):
    """A text is no valid amount. The message contains an example."""


def size_bytes(text: str) -> int:
    match = SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise AmountError(f"{text[:100]!r} is not a size: give 500MB, 10GB or a number of bytes")
    unit = (UNITS | BINARY | {"": 1, "B": 1})[match[2].upper()]
    return int(Decimal(match[1]) * unit)


def size_text(size: int) -> str:
    """Format a size in bytes, with the largest unit that shows it exactly."""
    for unit, factor in UNITS.items():
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def nanodollars(text: str) -> int:
    """Parse dollars as nanodollars (1e-9 dollars)."""
    match = DOLLARS.fullmatch(text.strip())
    if match is None:
        raise AmountError(f"{text[:100]!r} is not an amount of dollars: give one like 5 or 0.25")
    return int(Decimal(match[1]) * NANO)


def in_dollars(amount: float) -> float:
    return amount / NANO


def dollars_text(amount: int) -> str:
    """Format nanodollars as dollars, without a dollar sign."""
    whole, rest = divmod(amount, NANO)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".")


class DurationError(ValueError):
    """The text is not a valid duration. The message contains examples."""


def duration_ms(text: str) -> int:
    match = DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise DurationError(
            f"{text[:100]!r} is not a duration: give 0s, 250ms, 1.5s, 2h or 7d"
            " (a plain number means seconds)"
        )
    return round(float(match[1]) * UNITS_MS[match[2]])


def duration_text(span_ms: int) -> str:
    """Format a duration in ms, with the largest unit that shows it exactly."""
    names = sorted(filter(None, UNITS_MS), key=lambda name: -UNITS_MS[name])
    for name in names if span_ms else ():
        if span_ms % UNITS_MS[name] == 0:
            return f"{span_ms // UNITS_MS[name]}{name}"
    return "0s"


def duration_s(text: str) -> int:
    """Parse a duration in whole seconds, rounded up, so that 1 ms is not 0."""
    return -(-duration_ms(text) // 1_000)


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
