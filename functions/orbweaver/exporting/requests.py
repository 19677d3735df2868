"""Read export requests: the days that an event requests.

`{}` means the previous day, `{"day": "YYYY-MM-DD"}` means that day. For a schedule's event its own
time counts, so that a repeated or late event has the same meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orbweaver.exporting.manifest import ExportEventError, check_day
from orbweaver.model.page_record import DAY_MS, day_of

EVENTS = 'an export event is {}, {"day": "YYYY-MM-DD"} or a schedule\'s'
SPANS = ("day", "hour")
# A record is stored minutes after its URL was requested. Its message may be requeued meanwhile.
LATE_HOURS = 2
# A run that takes longer is considered dead.
RUN_MS_MAX = 3 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """One day to export. `gives_way`: skip it while another run of the day is in progress."""

    day: str
    gives_way: bool = False


def jobs_of(event: object, now_ms: int, span: str = "day") -> tuple[ExportJob, ...]:
    """Parse an event. Raises ExportEventError if it is invalid."""
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
    """Return an identity of an event that its repetitions share."""
    if "detail-type" in event and event.get("time") is not None:
        return f"{event.get('id', '')}/{event['time']}"
    return fallback


def _scheduled(time: object, now_ms: int, span: str) -> tuple[ExportJob, ...]:
    moment = _moment(time, now_ms)
    try:
        before = (moment.date() - timedelta(days=1)).isoformat()
    except OverflowError as error:
        raise ExportEventError(f"not a schedule's time: {time!r}"[:200]) from error
    # Daily: the previous day. Hourly: the current day so far, and in the first hours also the
    # previous day, because its last records may have been late.
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
