"""Read export requests: the days that an event requests.

`{}` means the previous day, `{"day": "YYYY-MM-DD"}` means that day. A schedule's event contains its
own time, so that a repeated or late event requests the same day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orbweaver.exporting.manifest import ExportEventError, check_day
from orbweaver.model.page_record import DAY_MS, day_of

EVENTS = 'an export event is {}, {"day": "YYYY-MM-DD"} or a schedule\'s'
SPANS = ("day", "hour")
# Records can be late for this time: a record is stored minutes after its URL was requested, and a
# message may be requeued meanwhile.
LATE_HOURS = 2
# A run that takes longer than this is considered dead.
RUN_MS_MAX = 3 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """One day to export. `gives_way`: skip it while another run of the day is in progress."""

    day: str
    gives_way: bool = False


def jobs_of(event: object, now_ms: int, span: str = "day") -> tuple[ExportJob, ...]:
    """Return the days that an event requests. Raises ExportEventError if the event is invalid.

    `span` is the interval of the schedule: `day` or `hour`.
    """
    if not isinstance(event, dict):
        raise ExportEventError(f"{EVENTS}; not {type(event).__name__}")
    if "detail-type" in event:
        return _scheduled(event.get("time"), now_ms, span)
    if not event.keys() <= {"day"}:
        raise ExportEventError(f"{EVENTS}; not {event!r}"[:500])
    if "day" in event:
        return (ExportJob(day=check_day(event["day"])),)
    return (ExportJob(day=day_of(now_ms - DAY_MS)),)


def identity_of(event: dict[str, Any], fallback: str) -> str:
    """Return a text that is the same for repetitions of an event, or `fallback` without a time."""
    if "detail-type" in event and event.get("time") is not None:
        return f"{event.get('id', '')}/{event['time']}"
    return fallback


def _scheduled(time: object, now_ms: int, span: str) -> tuple[ExportJob, ...]:
    moment = _moment(time, now_ms)
    try:
        before = (moment.date() - timedelta(days=1)).isoformat()
    except OverflowError as error:
        raise ExportEventError(f"not a schedule's time: {time!r}"[:200]) from error
    # A daily schedule exports the previous day. An hourly one exports the current day so far. In
    # the first hours of a day it also exports the previous day, whose last records may have been
    # late.
    if span == "day":
        return (ExportJob(day=before),)
    today = ExportJob(day=moment.date().isoformat(), gives_way=True)
    return (ExportJob(day=before), today) if moment.hour < LATE_HOURS else (today,)


def _moment(time: object, now_ms: int) -> datetime:
    if time is None:
        return datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    try:
        moment = datetime.fromisoformat(str(time))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ExportEventError(f"not a schedule's time: {time!r}"[:200]) from error
