"""Mutants of the exporter.

tests/unit/exporting/test_exporter_crash.py covers faults that show only if a process freezes
between two certain effects.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from orbweaver.exporting import finalizer, run_state, runs, unit_worker
from orbweaver.exporting.manifest import encode_manifest
from orbweaver.model import page_record
from tests.simulation import tables
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario

WORKER, FINALIZER, REPAIRER = unit_worker.UnitWorker, finalizer.Finalizer, finalizer.Repairer


async def _manifest_early(self: Any, order: Any, unit: Any, plan: Any) -> None:
    """Write a manifest after each unit."""
    scope, run = order.scope, order.run
    states = await self.runs.all_progress(scope, run, plan.units)
    manifest = run_state.manifest_of(scope, [item for item in states if item[1].done])
    await self.store.put(scope.manifest, encode_manifest(manifest))
    await _WHOLE_FINISH(self, order, unit, plan)


_WHOLE_FINISH = WORKER.__dict__["_finish"]


async def _not_withdrawn(_self: Any, _scope: Any, _files: Any) -> None:
    """Keep a manifest that describes other files."""


async def _not_cleared(_self: Any, _scope: Any, _crawl: Any, _named: Any) -> None:
    """Keep files of earlier runs."""


def _with_a_stamp(self: Any) -> Any:
    """End a file with a run-specific stamp, like the time in gzip's header."""
    made = _WHOLE_CLOSE(self)
    stamp = json.dumps({"run": next(_STAMPS)}).encode()
    body = made.path.read_bytes().replace(b"\n", stamp + b"\n", 1)
    return tables.made(made.suffix, made.rows, body)


_WHOLE_CLOSE = tables.SimWriter.__dict__["close"]
_STAMPS = itertools.count(1)


def _an_hour_late(at_ms: int) -> str:
    return _WHOLE_DAY_OF(at_ms + 3_600_000)


_WHOLE_DAY_OF = page_record.day_of


def _same_day(time: object, _now_ms: int, _span: str) -> Any:
    return (run_state.ExportJob(day=datetime.fromisoformat(str(time)).date().isoformat()),)


async def _from_the_shards_beginning(
    self: Any, scope: Any, unit: Any, progress: Any, cut: Any
) -> Any:
    async for item in _WHOLE_RECORDS(self, scope, unit, replace(progress, after=None), cut):
        yield item


_WHOLE_RECORDS = unit_worker.RowReader.__dict__["_records"]


async def _not_continued(self: Any, order: Any, unit: Any, progress: Any) -> None:
    """Do not continue a unit when time is short."""
    await self.runs.keep(order.scope, order.run, unit, progress)


async def _joined(self: Any, scope: Any, token: str, at_ms: int) -> Any:
    """Continue any run, however old its read is."""
    names = await self.names(scope)
    return names[-1] if names else await _WHOLE_BEGIN(self, scope, token, at_ms)


_WHOLE_BEGIN = runs.ExportRuns.__dict__["begin"]


async def _left_behind(_self: Any, _order: Any) -> None:
    """Keep a run's state."""


def _one_shard_less(self: Any, shards: int) -> Any:
    return _WHOLE_SHARDS(self, shards)[:3]


_WHOLE_SHARDS = run_state.Unit.__dict__["shards"]


def _asked_again(plan: Scenario) -> bool:
    """Scenarios in which a day is requested more than once."""
    return len(plan.exporter.events) > 1


MUTANTS = mutants(
    ("manifest before all is done", WORKER, "_finish", _manifest_early),
    ("manifest not withdrawn", REPAIRER, "withdraw", _not_withdrawn),
    ("state of a run left", FINALIZER, "_remove", _left_behind),
    ("file not idempotent", tables.SimWriter, "close", _with_a_stamp),
    ("day boundary off by an hour", page_record, "day_of", _an_hour_late),
    ("the schedule's own day exported", run_state, "_scheduled", _same_day),
    (
        "continued from the shard's beginning",
        unit_worker.RowReader,
        "_records",
        _from_the_shards_beginning,
    ),
    ("a long unit is not continued", WORKER, "_go_on", _not_continued),
    ("a shard left out", run_state.Unit, "shards", _one_shard_less),
) + mutants(
    ("files of earlier runs left", REPAIRER, "clear", _not_cleared),
    ("a later request joins an old run", runs.ExportRuns, "begin", _joined),
    where=_asked_again,
)
