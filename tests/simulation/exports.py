"""I7: what readers of exports see, at every moment at which something changes in the bucket.

- A visible manifest lists files that are there, with the hashes, sizes and rows it says: no half
  export, whoever died (case 28).
- They hold every record of that day once, and nothing else. Records stored after a run began may
  be missing: the day is then to be exported again.
- The same records give the same bytes.

One excuse, as the exporter's own docstring has it: runs that overlap and saw different records
may mix their parts, until the last of them has audited what stands. Should that one die three
times over, the mixture stays until the next run; its hashes give it away.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from orbweaver.core.export import row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orbweaver.adapters.memory import World
    from orbweaver.core.record import PageRecord
    from tests.simulation.trace import Trace

Records = dict[tuple[str, str], "PageRecord"]


def day_meant(event: Mapping[str, Any]) -> str:
    """Say which day an event is about: its own, or the one before the schedule's time."""
    if "day" in event:
        return str(event["day"])
    moment = datetime.fromisoformat(event["time"])
    return (moment.date() - timedelta(days=1)).isoformat()


def day_asked(at_ms: int) -> str:
    """Name the UTC day of a moment."""
    return date.fromordinal(date(1970, 1, 1).toordinal() + at_ms // 86_400_000).isoformat()


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One invocation of the exporter."""

    day: str
    running: bool = True


@dataclass(slots=True, kw_only=True)
class Span:
    """From when a day is first asked for until nobody is at it, or asked to be."""

    records: Records
    runs: int = 0
    events: int = 0
    overlapped: bool = False
    mixed: bool = False
    died: bool = False
    # An event failed for the last time: it may have left anything but a broken promise.
    given_up: bool = False


class Watch:
    """Looks at the bucket as a reader would."""

    def __init__(self, world: World, trace: Trace) -> None:
        self.found: list[str] = []
        self._world = world
        self._trace = trace
        self._spans: dict[str, Span] = {}
        # Days whose parts a dead run may have left mixed.
        self._left_mixed: set[str] = set()
        self._bytes_of: dict[tuple[str, frozenset[bytes]], str] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._seen: dict[str, bytes] = {}

    # --- who is at it -----------------------------------------------------------------------

    def expect(self, day: str, more: int = 1) -> None:
        """Note that an event about a day is waiting, or is no longer."""
        self._span(day).events += more
        self._close(day)

    def begin(self, day: str) -> Run:
        """Note that a run begins."""
        span = self._span(day)
        span.runs += 1
        if span.runs > 1:
            span.overlapped = True
            self._trace.counts["export overlapped"] += 1
        return Run(day=day)

    def end(self, run: Run) -> None:
        """Note that a run is over, dead or alive; once is enough."""
        if run.running:
            run.running = False
            self._span(run.day).runs -= 1
            self._close(run.day)

    def completed(self, run: Run, day: str) -> None:
        """Note what a run says that it has exported."""
        if day != run.day:
            self.found.append(f"{run.day} was meant, and {day} exported")
        span = self._span(run.day)
        if span.runs == 1 and not span.died and self._broken(run.day):
            self.found.append(f"{run.day}: the last run left the parts of two mixed")

    def died(self, day: str) -> None:
        """Note that a run was killed, perhaps after it changed what another one had audited."""
        self._span(day).died = True

    def rounds_max(self, day: str) -> int:
        """Say after how many rounds a day should have ended: each writes a row or more.

        Runs that overlap go on from each other's state, so that each may do the others' work again.
        """
        return 10 + 4 * len(self._records(day))

    def give_up(self, day: str) -> None:
        """Note that an event about a day has failed for the last time."""
        self._span(day).given_up = True

    def _span(self, day: str) -> Span:
        if day not in self._spans:
            self._spans[day] = Span(records=self._records(day))
        return self._spans[day]

    def _close(self, day: str) -> None:
        span = self._spans[day]
        if span.runs or span.events:
            return
        del self._spans[day]
        self._left_mixed.discard(day)
        if span.mixed and self._broken(day):
            self._left_mixed.add(day)
            self._trace.counts["export left mixed"] += 1
            if not span.given_up:
                self.found.append(f"{day}: the parts of two runs were left mixed")
        elif not span.given_up and f"exports/dt={day}/manifest.json" not in self._world.files:
            self.found.append(f"{day}: asked for, and not exported")

    # --- what is there ----------------------------------------------------------------------

    def look(self) -> None:
        """Check the manifests that are visible, as something has just changed."""
        for day in sorted({*self._spans, *self._left_mixed}):
            manifest = self._world.files.get(f"exports/dt={day}/manifest.json")
            if manifest is None:
                self._seen.pop(day, None)
                continue
            span = self._spans.get(day)
            if span is not None and span.overlapped and self._records(day) != span.records:
                span.mixed = True
            excused = day in self._left_mixed or (span is not None and span.mixed)
            problem = self._broken(day)
            if problem is not None:
                self._trace.counts["export mixed for a moment"] += 1
                if not excused:
                    self.found.append(f"{day}: {problem}")
                continue
            if self._seen.get(day) != manifest and span is not None:
                self._seen[day] = manifest
                self._read(day, manifest, span)

    def _broken(self, day: str) -> str | None:
        """Say what a visible manifest promises and does not keep."""
        folder = f"exports/dt={day}/"
        body = self._world.files.get(f"{folder}manifest.json")
        if body is None:
            return None
        manifest = json.loads(body)
        total = 0
        for part in manifest["parts"]:
            part_body = self._world.files.get(folder + part["name"])
            if part_body is None:
                return f"{part['name']} is not there"
            digest = sha256(part_body).hexdigest()
            if (digest, len(part_body)) != (part["sha256"], part["bytes"]):
                return f"{part['name']} is not the one that the manifest means"
            lines = self._part(digest, part_body)
            if len(lines) != part["rows"]:
                return f"{part['name']} has {len(lines)} rows, not {part['rows']}"
            total += len(lines)
        if total != manifest["rows"] or manifest["day"] != day:
            return f"{total} rows of {day} are not {manifest['rows']} of {manifest['day']}"
        return None

    def _read(self, day: str, manifest: bytes, span: Span) -> None:
        """Check the rows of an export that has just become visible."""
        self._trace.counts["export seen"] += 1
        rows = self._rows(day, manifest)
        counted = Counter(rows)
        if counted.total() != len(counted):
            self.found.append(f"{day}: {counted.total() - len(counted)} rows are there twice")
        now = {row(record) for record in self._records(day).values()}
        then = {row(record) for record in span.records.values()}
        if strange := set(rows) - now - then:
            self.found.append(f"{day}: rows that are no records of it: {sorted(strange)[:2]!r}")
        if lost := (then & now) - set(rows):
            self.found.append(f"{day}: {len(lost)} records lost, such as {min(lost)!r}")
        if self._records(day) != span.records:
            return  # where parts end depends on when the rows came; unchanged records are promised
        same = self._bytes_of.setdefault((day, frozenset(rows)), sha256(manifest).hexdigest())
        if same != sha256(manifest).hexdigest():
            self.found.append(f"{day}: the same rows in other bytes")

    def settled(self, day: str, first: dict[str, bytes], second: dict[str, bytes]) -> None:
        """Check the export of a day about which nobody does anything any more."""
        folder = f"exports/dt={day}/"
        manifest = second.get(f"{folder}manifest.json")
        if manifest is None or self._broken(day) is not None:
            self.found.append(f"{day}: not exported in the end: {self._broken(day)}")
            return
        if first != second:
            self.found.append(f"{day}: a second run changed the files")
        records = sorted(row(record) for record in self._records(day).values())
        if sorted(self._rows(day, manifest)) != records:
            self.found.append(f"{day}: the export is not the day's records")
        names = {f"{folder}{part['name']}" for part in json.loads(manifest)["parts"]}
        names.add(f"{folder}manifest.json")
        if surplus := {name for name in second if f"dt={day}/" in name} - names:
            self.found.append(f"{day}: left behind: {sorted(surplus)[:3]}")

    # --- records and rows -------------------------------------------------------------------

    def days(self) -> list[str]:
        """Name the days that have records."""
        return sorted({day_asked(record.fetched_at) for record in self._world.pages.values()})

    def _records(self, day: str) -> Records:
        """Find the records of a day by when they were asked for, wherever they are filed."""
        return {
            key: record
            for key, record in self._world.pages.items()
            if day_asked(record.fetched_at) == day
        }

    def _rows(self, day: str, manifest: bytes) -> list[bytes]:
        return [line for part in self._parts(day, manifest) for line in part]

    def _parts(self, day: str, manifest: bytes) -> Iterable[list[bytes]]:
        for part in json.loads(manifest)["parts"]:
            body = self._world.files[f"exports/dt={day}/{part['name']}"]
            yield self._part(part["sha256"], body)

    def _part(self, digest: str, body: bytes) -> list[bytes]:
        if digest not in self._lines:
            self._lines[digest] = gzip.decompress(body).splitlines(keepends=True)
        return self._lines[digest]
