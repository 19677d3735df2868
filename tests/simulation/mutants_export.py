"""Breaks of the exporter.

That runs audit what stands takes a race of three to show: tests/unit/test_exporter_crash.py has it.
"""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from orbweaver import exporter
from orbweaver.core import export, record
from tests.simulation.mutant import mutants

EXPORTER = exporter.Exporter


async def _manifest_first(self: Any, place: Any, buffer: Any, number: int) -> Any:
    """Say that a part is there, then put it."""
    part, body = buffer.close(export.part_name(number))
    manifest = export.Manifest(day=place.day, parts=(part,))
    await self._put(place.manifest, export.encode_manifest(manifest))
    await self._put(place.folder + part.name, body)
    return part


async def _not_withdrawn(self: Any, place: Any, buffer: Any, number: int) -> Any:
    """Replace a part while the manifest that means another one stands."""
    part, body = buffer.close(export.part_name(number))
    await self._put(place.folder + part.name, body)
    return part


def _with_a_stamp(self: Any, name: str) -> Any:
    """Close a part with something of the run in it, as gzip's own header has the time."""
    part, body = _WHOLE_CLOSE(self, name)
    body += gzip.compress(b"", mtime=next(_STAMPS))
    digest = sha256(body).hexdigest()
    return replace(part, bytes=len(body), sha256=digest), body


_WHOLE_CLOSE = export.PartBuffer.__dict__["close"]
_STAMPS = itertools.count(1)


def _an_hour_late(at_ms: int) -> str:
    return _WHOLE_DAY_OF(at_ms + 3_600_000)


_WHOLE_DAY_OF = record.day_of


def _same_day(time: object, _now_ms: int) -> str:
    return datetime.fromisoformat(str(time)).date().isoformat()


def _from_the_shards_beginning(start: Any, state: bytes | None) -> Any:
    return replace(_WHOLE_RESUMED(start, state), after=None)


_WHOLE_RESUMED = export.resumed


async def _not_continued(self: Any, event: Any, *, deadline_ms: int, continuation: Any) -> Any:
    """Leave a day where it is when time is short."""
    job = export.job_of(event, self.clock.now_ms())
    return await self.export(job.day, deadline_ms=deadline_ms, resume=job.resume)


MUTANTS = mutants(
    ("manifest first", EXPORTER, "_write", _manifest_first),
    ("manifest not withdrawn", EXPORTER, "_write", _not_withdrawn),
    ("part not idempotent", export.PartBuffer, "close", _with_a_stamp),
    ("day boundary off by an hour", record, "day_of", _an_hour_late),
    ("the schedule's own day exported", export, "_day_before", _same_day),
    ("continued from the shard's beginning", exporter, "resumed", _from_the_shards_beginning),
    ("a long day is not continued", EXPORTER, "run", _not_continued),
)
