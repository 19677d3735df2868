"""Export requests: the days that an event asks for.

- `{}` is the day before, `{"day": "YYYY-MM-DD"}` that day, whatever the time.
- A schedule's event means what its own time says, so that a repeated one, or one that comes a day
  late, means the same. By the day: the day before. By the hour: the day as far as it is, and in the
  first hours of a day the day before as well, of which records may have been late.
- A day that is not over gives way to a run of it that is still going on; others begin anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orbweaver.exporting.manifest import ExportEventError, check_day
from orbweaver.model.page_record import DAY_MS, day_of

EVENTS = 'an export event is {}, {"day": "YYYY-MM-DD"} or a schedule\'s'
SPANS = ("day", "hour")
# A record is stored minutes after its URL was asked for; a pack may be requeued meanwhile.
LATE_HOURS = 2
# A run that takes longer is taken for dead.
RUN_MS_MAX = 3 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """One day to export; `gives_way`: not while another run of it is going on."""

    day: str
    gives_way: bool = False


def jobs_of(event: object, now_ms: int, span: str = "day") -> tuple[ExportJob, ...]:
    """Read an event; raises ExportEventError for one that asks for nothing."""
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
    """Tell an event from others, and its repetitions not."""
    if "detail-type" in event and event.get("time") is not None:
        return f"{event.get('id', '')}/{event['time']}"
    return fallback


def _scheduled(time: object, now_ms: int, span: str) -> tuple[ExportJob, ...]:
    moment = _moment(time, now_ms)
    try:
        before = (moment.date() - timedelta(days=1)).isoformat()
    except OverflowError as error:
        raise ExportEventError(f"not a schedule's time: {time!r}"[:200]) from error
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
