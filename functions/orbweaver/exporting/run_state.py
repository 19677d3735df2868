"""State of an export run: orders to its workers, and files that they leave for each other.

- A *scope* is what is exported: a day, or one crawl's records of it.
- A *run* is one attempt at a scope. Runs are ordered by their ids; the last one counts, and
  a worker whose run is not the last one stops.
- A *unit* is a crawl's records in some of the day's shards, or a crawl's changes. Which units there
  are follows from the records of the day, and the plan keeps it for the whole run.
- A *ticket* says who works on a unit: of several, the one with the highest goes on. Every message
  has a new one, so that copies of a message come down to one.

Everything lies below `_work/`, and goes with the run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

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
from orbweaver.model.columns import Column

VERSION = 1
# Turn and chance: the later turn goes on, and of equal ones any, as long as it is the same for all.
Ticket: TypeAlias = tuple[int, str]
FIRST: Ticket = (-1, "")
# The group of the unit that is a crawl's changes: a part of that group is in a table of its own.
CHANGES = "changes"
RUN = re.compile(r"(\d{13,})-([0-9a-f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """What is exported: a day, or one crawl's records of it."""

    day: str
    crawl: str | None = None

    @property
    def manifest(self) -> str:
        """Where its manifest lies, below the prefix."""
        return manifest_path(self.day, self.crawl)

    @property
    def work(self) -> str:
        """Where its runs leave what they leave."""
        whose = "all/" if self.crawl is None else f"crawl={self.crawl}/"
        return f"{WORK}dt={self.day}/{whose}"

    @property
    def runs(self) -> str:
        """What the names of its runs begin with."""
        return f"{self.work}runs/"


@dataclass(frozen=True, slots=True)
class Unit:
    """Some of the shards of a crawl, group `group` of `groups`; or, with none, its changes."""

    crawl: str
    group: int = 0
    groups: int = 1

    @property
    def name(self) -> str:
        """Its name within the run."""
        return f"{self.crawl}/{self.group:02d}" if self.groups else f"{self.crawl}/{CHANGES}"

    def shards(self, shards: int) -> range:
        """Say which shards of a day are its."""
        if not self.groups:
            return range(0)
        first, end = (shards * place // self.groups for place in (self.group, self.group + 1))
        return range(first, end)


def changes_of(crawl: str) -> Unit:
    """Make the unit that is a crawl's changes."""
    return Unit(crawl=crawl, groups=0)


def groups_of(rows: int, shards: int, unit_rows_max: int) -> int:
    """Say into how many units a crawl is cut whose first shard has so many rows."""
    return max(1, min(shards, -(-rows * shards // unit_rows_max)))


# --- a run --------------------------------------------------------------------------------------


def run_name(at_ms: int, token: str, runs: Iterable[str]) -> str | None:
    """Name the run that a request begins, or its own if it has; None if a later one stands.

    `token` tells requests apart: the same one may arrive twice. A later run began after the
    request came in, so it misses nothing.
    """
    found = sorted(run for run in runs if RUN.fullmatch(run))
    mine = [run for run in found if run.endswith(f"-{token}")]
    if mine:
        return mine[-1] if mine[-1] == found[-1] else None
    # Clocks differ; the last to ask is to be the last.
    last_ms = int(found[-1].partition("-")[0]) if found else 0
    return f"{max(at_ms, last_ms + 1):013d}-{token}"


def begun_ms(run: str) -> int:
    """Say when a run began."""
    return int(run.partition("-")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where files end, and in which formats they are: the same for all units of a run."""

    shards: int
    formats: tuple[str, ...]
    part_rows_max: int
    part_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run consists of."""

    cut: Cut
    units: tuple[Unit, ...] = ()


def encode_plan(plan: RunPlan) -> bytes:
    """Render a plan."""
    units = [*map(astuple, plan.units)]
    return json.dumps({"v": VERSION, "cut": asdict(plan.cut), "units": units}).encode()


def decode_plan(body: bytes) -> RunPlan:
    """Read a plan back; raises ValueError for one of another version."""
    try:
        raw = json.loads(body)
        if raw["v"] != VERSION:
            raise ValueError(f"a plan of version {raw['v']}")
        return RunPlan(
            cut=Cut(**raw["cut"] | {"formats": tuple(raw["cut"]["formats"])}),
            units=tuple(Unit(crawl, group, groups) for crawl, group, groups in raw["units"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no plan: {error}") from error


# --- a unit's state -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProgress:
    """How far a unit has come: all rows up to sort key `after` of `shard` are in `files`.

    `chunk` is the number of the next one; `name` that of the crawl. A unit's changes, which have
    no keys, begin anew. `groups` are those of the unit; None: an earlier release did not say.
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
    groups: int | None = None

    def past(self, chunk: UnitProgress) -> UnitProgress:
        """Come further by one chunk, which says where it ended."""
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
    """Render a unit's state."""
    progress = replace(progress, groups=unit.groups)
    columns = {table: columns_as_json(some) for table, some in progress.columns.items()}
    return json.dumps({"v": VERSION} | asdict(progress) | {"columns": columns}).encode()


def decode_progress(body: bytes | None, unit: Unit) -> UnitProgress:
    """Read a unit's state back; what is absent, or of another version, is the beginning.

    So is what a unit of another plan has come to, which has other shards.
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
    return progress if progress.groups in (None, unit.groups) else UnitProgress()


def manifest_of(scope: ExportScope, states: Sequence[tuple[Unit, UnitProgress]]) -> Manifest:
    """Put together what the units of a run have come to; the same for the same units."""
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


# --- orders -------------------------------------------------------------------------------------


class OrderKind(StrEnum):
    """What a worker is to do: begin a run, work on a unit, or put the manifest."""

    PLAN = "plan"
    UNIT = "unit"
    SEAL = "seal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """A message on the export queue; `run` of a plan is its token."""

    kind: OrderKind
    scope: ExportScope
    run: str
    unit: Unit | None = None
    ticket: Ticket = FIRST


def encode_order(order: ExportOrder) -> str:
    """Render a message as ASCII JSON."""
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
    """Read a message back; raises ExportEventError for what is none."""
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
