"""Find time zones by name, and calendar days in them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from orbweaver.control.schedule import zone_of


def zone_or_utc(name: str | None) -> tzinfo:
    """Return a time zone, UTC by default. Raises ValueError for an unknown name."""
    if name is None:
        return UTC
    if (zone := zone_of(name)) is None:
        raise ValueError(f"{name[:60]!r} is no time zone: give one like Europe/Berlin")
    return zone


def day_in(at_ms: int, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=zone):%Y-%m-%d}"
