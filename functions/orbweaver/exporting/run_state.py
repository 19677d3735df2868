"""Define the state of an export run: messages to its workers, and files that they share.

A run is one attempt to export a scope. Runs are ordered by their ids. The last run is current, and
a worker of an earlier run stops. All files are below `_work/` and are removed with the run.

An event requests days: `{}` means the previous day, `{"day": "YYYY-MM-DD"}` means that day. A
schedule's event contains its own time, so that a repeated or late event requests the same day.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from orbweaver.exporting.manifest import (
    WORK,
    ExportEventError,
    File,
    Manifest,
    Sums,
    check_day,
    columns_as_json,
    columns_of_json,
    manifest_path,
)
from orbweaver.model.columns import Column, Table
from orbweaver.model.page_record import DAY_MS, day_of
from orbweaver.model.value import positional_value_class, value_class

EVENTS = 'an export event is {}, {"day": "YYYY-MM-DD"} or a schedule\'s'
SPANS = ("day", "hour")
# Records can be late for this time: a record is stored minutes after its URL was requested, and a
# message may be requeued meanwhile.
LATE_HOURS = 2
# A run that takes longer than this is considered dead.
RUN_MS_MAX = 3 * 3_600_000


class ExportEvents(Protocol):
    """The event bus, as exporters use it."""

    async def exported(self, manifest: Manifest, key: str) -> None:
        """Announce an export. `key` is the path of its manifest in the bucket.

        A repeated call sends the same event id.
        """


class Catalogue(Protocol):
    """Catalogue of tables for queries."""

    async def register(self, table: Table) -> None:
        """Register a table, or add its new columns to the registered one.

        A table with this name that Orbweaver did not register is not changed.
        """

    async def remove(self, folder: str) -> int:
        """Remove the tables of exports in a folder. Returns their number."""


class Orders(Protocol):
    """The queue of messages to exporters."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        """Send messages, each as its body and its group (a crawl or a day).

        Returns when the queue has accepted all messages.
        """


VERSION = 1
# Decides which worker continues a unit: the worker with the highest ticket. Each message has a new
# ticket, so that only one of several workers continues. A ticket is a turn and a random value. The
# higher turn is higher. Among equal turns, the random value decides.
Ticket: TypeAlias = tuple[int, str]
FIRST: Ticket = (-1, "")
# Name of the unit that exports the change feed of a crawl. Its files are in a table of their own.
CHANGES = "changes"
RUN = re.compile(r"(\d{13,})-([0-9a-f]+)")


@value_class
class ExportScope:
    """The records to export: all of a day, or only one crawl's records of that day."""

    day: str
    crawl: str | None = None

    @property
    def manifest(self) -> str:
        return manifest_path(self.day, self.crawl)

    @property
    def state_folder(self) -> str:
        """Folder with the state of all runs of this scope."""
        whose = "all/" if self.crawl is None else f"crawl={self.crawl}/"
        return f"{WORK}dt={self.day}/{whose}"

    @property
    def runs(self) -> str:
        """Prefix of the files that name the runs of this scope."""
        return f"{self.state_folder}runs/"


@positional_value_class
class Unit:
    """Unit of work of a run: the shards of group `group` of `groups` of a crawl's day.

    If `groups` is 0, the unit is the crawl's change feed. The units follow from the records of the
    day, and the plan stores them for the whole run.
    """

    crawl: str
    group: int = 0
    groups: int = 1

    @property
    def name(self) -> str:
        return f"{self.crawl}/{self.group:02d}" if self.groups else f"{self.crawl}/{CHANGES}"

    def shards(self, shards: int) -> range:
        if not self.groups:
            return range(0)
        first, end = (shards * place // self.groups for place in (self.group, self.group + 1))
        return range(first, end)


def changes_of(crawl: str) -> Unit:
    return Unit(crawl=crawl, groups=0)


def groups_of(rows: int, shards: int, unit_rows_max: int) -> int:
    """Return the number of units of a crawl with `rows` rows in the first of `shards` shards."""
    return max(1, min(shards, -(-rows * shards // unit_rows_max)))


# --- a run --------------------------------------------------------------------------------------


def run_name(at_ms: int, token: str, runs: Iterable[str]) -> str | None:
    """Return the name of a request's run: of the existing run, or of a new one.

    Returns None if a later run exists. `token` identifies the request, which can arrive twice. A
    later run began after the request arrived, so it misses no record.
    """
    found = sorted(run for run in runs if RUN.fullmatch(run))
    mine = [run for run in found if run.endswith(f"-{token}")]
    if mine:
        return mine[-1] if mine[-1] == found[-1] else None
    # Clocks of machines differ, so the new name must sort after the existing names.
    last_ms = int(found[-1].partition("-")[0]) if found else 0
    return f"{max(at_ms, last_ms + 1):013d}-{token}"


def begun_ms(run: str) -> int:
    return int(run.partition("-")[0])


@value_class
class ExportLimits:
    """Limits and formats of files, the same for all units of a run."""

    shards: int
    formats: tuple[str, ...]
    part_rows_max: int
    part_bytes_max: int


@value_class
class RunPlan:
    """Units of work of a run, and the limits of their files."""

    limits: ExportLimits
    units: tuple[Unit, ...] = ()


def encode_plan(plan: RunPlan) -> bytes:
    units = [*map(astuple, plan.units)]
    return json.dumps({"v": VERSION, "cut": asdict(plan.limits), "units": units}).encode()


def decode_plan(body: bytes) -> RunPlan:
    try:
        raw = json.loads(body)
        if raw["v"] != VERSION:
            raise ValueError(f"a plan of version {raw['v']}")
        return RunPlan(
            limits=ExportLimits(**raw["cut"] | {"formats": tuple(raw["cut"]["formats"])}),
            units=tuple(Unit(crawl, group, groups) for crawl, group, groups in raw["units"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no plan: {error}") from error


# --- a unit's state -----------------------------------------------------------------------------


@value_class
class UnitProgress:
    """Progress of a unit: `files` contain all rows up to sort key `after` of `shard`.

    `chunk` is the number of the next chunk, and `name` is the crawl's name. Rows of a change feed
    have no keys, so its unit skips as many rows as it has exported. `groups` is the value of the
    unit.
    """

    ticket: Ticket = FIRST
    done: bool = False
    name: str = ""
    shard: int = 0
    after: str | None = None
    chunk: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    groups: int = 0

    def after_key(self, chunk: UnitProgress) -> UnitProgress:
        return replace(
            self,
            name=chunk.name,
            shard=chunk.shard,
            after=chunk.after,
            chunk=self.chunk + 1,
            rows=dict(Counter(self.rows) + Counter(chunk.rows)),
            outcomes=dict(Counter(self.outcomes) + Counter(chunk.outcomes)),
            files=(*self.files, *chunk.files),
            columns={**self.columns, **chunk.columns},
        )


def encode_progress(progress: UnitProgress, unit: Unit) -> bytes:
    progress = replace(progress, groups=unit.groups)
    columns = {table: columns_as_json(some) for table, some in progress.columns.items()}
    return json.dumps({"v": VERSION} | asdict(progress) | {"columns": columns}).encode()


def decode_progress(body: bytes | None, unit: Unit) -> UnitProgress:
    """Parse the progress of a unit. Missing or invalid data means that the unit has not begun.

    Progress with another value of `groups` belongs to another plan with other shards, so it counts
    as missing.
    """
    try:
        raw = json.loads(body or b"")
        if raw.pop("v") != VERSION:
            return UnitProgress()
        turn, chance = raw["ticket"]
        raw["ticket"] = (turn, chance)
        raw["files"] = tuple(File(**file) for file in raw["files"])
        raw["columns"] = {table: columns_of_json(some) for table, some in raw["columns"].items()}
        progress = UnitProgress(**raw)
    except (ValueError, KeyError, TypeError, AttributeError):
        return UnitProgress()
    return progress if progress.groups == unit.groups else UnitProgress()


def manifest_of(scope: ExportScope, states: Sequence[tuple[Unit, UnitProgress]]) -> Manifest:
    sums: dict[str, Sums] = {}
    files: list[File] = []
    columns: dict[str, tuple[Column, ...]] = {}
    for unit, progress in states:
        files += progress.files
        columns |= progress.columns
        if progress.rows:
            before = sums.get(unit.crawl, Sums(name=progress.name))
            sums[unit.crawl] = Sums(
                name=progress.name,
                rows=dict(Counter(before.rows) + Counter(progress.rows)),
                outcomes=dict(Counter(before.outcomes) + Counter(progress.outcomes)),
            )
    return Manifest(
        day=scope.day,
        crawl=scope.crawl,
        crawls=sums,
        files=tuple(sorted(files, key=lambda file: file.path)),
        columns=columns,
    )


# --- messages -----------------------------------------------------------------------------------


class OrderKind(StrEnum):
    """Kind of a message: start a run, process a unit, or publish the manifest."""

    PLAN = "plan"
    UNIT = "unit"
    SEAL = "seal"


@value_class
class ExportOrder:
    """A message on the export queue. If `kind` is `PLAN`, `run` is the token of the run."""

    kind: OrderKind
    scope: ExportScope
    run: str
    unit: Unit | None = None
    ticket: Ticket = FIRST


def encode_order(order: ExportOrder) -> str:
    body: dict[str, Any] = {
        "v": VERSION,
        "kind": order.kind,
        "day": order.scope.day,
        "crawl": order.scope.crawl,
        "run": order.run,
    }
    if order.unit is not None:
        body |= {"unit": astuple(order.unit), "ticket": order.ticket}
    return json.dumps(body)


def decode_order(body: str) -> ExportOrder:
    """Parse a message. Raises ExportEventError if it is invalid."""
    try:
        raw = json.loads(body)
        kind = OrderKind(raw["kind"] if raw["v"] == VERSION else f"of version {raw['v']}")
        unit, ticket = None, FIRST
        if kind is OrderKind.UNIT:
            crawl, group, groups = raw["unit"]
            unit = Unit(crawl, group, groups)
            turn, chance = raw["ticket"]
            ticket = (turn, chance)
        scope = ExportScope(day=check_day(raw["day"]), crawl=raw["crawl"])
        return ExportOrder(kind=kind, scope=scope, run=raw["run"], unit=unit, ticket=ticket)
    except (ValueError, KeyError, TypeError) as error:
        raise ExportEventError(f"no message of the exporter: {body!r}"[:200]) from error


@value_class
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
