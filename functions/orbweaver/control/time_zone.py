"""Calendar days in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def day_in(at_ms: int, zone: str | None) -> str:
    """Return the day of a moment, `YYYY-MM-DD`, in UTC by default; ValueError for no zone."""
    clock = UTC if zone is None else _zone(zone)
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=clock):%Y-%m-%d}"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:  # a folder of zones: OSError
        text = f"{name[:60]!r} is no time zone: give one like Europe/Berlin"
        raise ValueError(text) from error
