"""Parse and format amounts: bytes with a unit (`B KB MB GB TB`), dollars, and durations.

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
