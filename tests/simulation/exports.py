"""I7: the readers' view of exports, checked at each change in the bucket.

A visible manifest lists existing files with the right hashes, sizes and rows: a crash leaves no
partial export (case 28). The files hold every record of that day once and nothing else. Records
stored after the request can be missing: then the day is exported again. The same records give the
same bytes. Once no run is active, no file or run state remains that no manifest names.

Exception: overlapping runs that saw different records can mix their files until the last of them
has checked the result. If that run fails five times, the mixture stays until the next run, and the
manifest's hashes do not match.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

from orbweaver.exporting.chunk import page_row
from orbweaver.model.columns import PAGES
from orbweaver.model.page_record import PageRecord
from tests.memory import World
from tests.simulation.tables import line_of
from tests.simulation.trace import Trace

Records = dict[tuple[str, str], "PageRecord"]
# With hourly exports, the previous day is exported too until this time of the morning.
LATE_HOURS = 2
# Maximum orders of one unit (part of a day) in flight, in multiples of one run's maximum.
COPIES_MAX = 40


def days_wanted(event: Mapping[str, Any], span: str) -> tuple[str, ...]:
    """Return an event's days: its own list, or days derived from the schedule's time."""
    if "day" in event:
        return (str(event["day"]),)
    moment = datetime.fromisoformat(event["time"]).astimezone(UTC)
    before = (moment.date() - timedelta(days=1)).isoformat()
    if span == "day":
        return (before,)
    today = moment.date().isoformat()
    return (before, today) if moment.hour < LATE_HOURS else (today,)


@lru_cache(maxsize=4_096)
def day_asked(at_ms: int) -> str:
    return date.fromordinal(date(1970, 1, 1).toordinal() + at_ms // 86_400_000).isoformat()


def manifest_of(day: str) -> str:
    return f"exports/manifests/dt={day}.json"


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One invocation of the exporter."""

    day: str
    running: bool = True


@dataclass(slots=True, kw_only=True)
class Span:
    """Time from a day's first request until no run is active or requested."""

    records: Records
    # Records that existed at the last request.
    asked: Records
    runs: int = 0
    waiting: int = 0
    orders: int = 0
    overlapped: bool = False
    mixed: bool = False
    # An event or order failed for the last time: any result is allowed except a wrong manifest.
    given_up: bool = False
    # Since a run was given up, only hourly events arrived. These may leave the day to that run.
    gives_way: bool = False


class Watch:
    """Checks the bucket as a reader sees it."""

    def __init__(self, world: World, trace: Trace) -> None:
        self.found: list[str] = []
        self._world = world
        self._trace = trace
        self._spans: dict[str, Span] = {}
        # Days whose files a dead run may have mixed.
        self._left_mixed: set[str] = set()
        # Days with a run that was given up. Hourly events leave the day to it until it is too old.
        self._given_up: set[str] = set()
        self._bytes_of: dict[tuple[str, frozenset[bytes]], str] = {}
        self._digests: dict[bytes, str] = {}
        self._lines: dict[PageRecord, bytes] = {}
        self._seen: dict[str, bytes] = {}

    def ask(self, day: str) -> None:
        span = self._span(day)
        span.asked, span.gives_way = self._records(day), False

    def expect(self, day: str, more: int = 1) -> None:
        """Record that an event or order for a day starts (`more` is 1) or stops (-1) waiting."""
        self._span(day).waiting += more
        self._close(day)

    def ordered(self, day: str, body: str) -> None:
        """Record an order; their number must not grow without bound."""
        span = self._span(day)
        span.orders += 1
        if json.loads(body)["kind"] == "unit" and json.loads(body)["ticket"][0] > 0:
            self._trace.counts["export continued"] += 1
        if span.waiting > COPIES_MAX + 10 * len(self._records(day)):
            self.found.append(f"{day}: {span.waiting} orders wait at once")

    def begin(self, day: str) -> Run:
        span = self._span(day)
        span.runs += 1
        if span.runs > 1:
            span.overlapped = True
            self._trace.counts["export overlapped"] += 1
        return Run(day=day)

    def end(self, run: Run) -> None:
        """Record the end of an invocation once, whether it succeeded or died."""
        if run.running:
            run.running = False
            self._span(run.day).runs -= 1
            self._close(run.day)

    def rounds_max(self, day: str) -> int:
        """Return the maximum rounds of a day: each round writes at least one row.

        Units (parts of a day) whose files another run changed are written again.
        """
        return 30 + 4 * len(self._records(day))

    def give_up(self, day: str) -> None:
        """Record that an event or order for a day failed for the last time."""
        self._span(day).given_up = True

    def _span(self, day: str) -> Span:
        if day not in self._spans:
            records = self._records(day)
            gives_way = day in self._given_up
            self._spans[day] = Span(records=records, asked=records, gives_way=gives_way)
        return self._spans[day]

    def _close(self, day: str) -> None:
        span = self._spans[day]
        if span.runs or span.waiting:
            return
        del self._spans[day]
        self._given_up.discard(day)
        if span.given_up or span.gives_way:
            self._given_up.add(day)
        self._left_mixed.discard(day)
        if span.mixed and self._broken(day):
            self._left_mixed.add(day)
            self._trace.counts["export left mixed"] += 1
            if not span.given_up:
                self.found.append(f"{day}: the files of two runs were left mixed")
        elif not (span.given_up or span.gives_way):
            manifest = self._world.files.get(manifest_of(day))
            if manifest is None:
                self.found.append(f"{day}: asked for, and not exported")
            elif lost := self._lost(day, manifest, span):
                self.found.append(f"{day}: {lost} records were there when it was last asked for")
            elif surplus := self._surplus(day):
                self.found.append(f"{day}: left behind: {surplus[:3]}")

    def _lost(self, day: str, manifest: bytes, span: Span) -> int:
        """Count the records that an export must have and lacks."""
        wanted = self._lines_of(span.asked) & self._lines_of(self._records(day))
        found = self._rows(manifest).values()
        return max((len(wanted.difference(rows)) for rows in found), default=len(wanted))

    def look(self) -> None:
        for day in sorted({*self._spans, *self._left_mixed}):
            manifest = self._world.files.get(manifest_of(day))
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
        """List the errors of a visible manifest."""
        body = self._world.files.get(manifest_of(day))
        if body is None:
            return None
        manifest = json.loads(body)
        total: Counter[str] = Counter()
        for file in manifest["files"]:
            found = self._world.files.get(f"exports/{file['path']}")
            if found is None:
                return f"{file['path']} is not there"
            if (self._digest(found), len(found)) != (file["sha256"], file["bytes"]):
                return f"{file['path']} is not the one that the manifest means"
            rows = found.count(b"\n")
            if rows != file["rows"]:
                return f"{file['path']} has {rows} rows, not {file['rows']}"
            total[file["format"]] += rows
        if any(rows != sum(manifest["rows"].values()) for rows in total.values()):
            return f"{dict(total)} rows are not {manifest['rows']}"
        return None if manifest["day"] == day else f"{day} is said to be {manifest['day']}"

    def _read(self, day: str, manifest: bytes, span: Span) -> None:
        """Check the rows of a newly visible export."""
        self._trace.counts["export seen"] += 1
        records = self._records(day)
        now, then = self._lines_of(records), self._lines_of(span.records)
        for name, rows in self._rows(manifest).items():
            counted = Counter(rows)
            if counted.total() != len(counted):
                self.found.append(f"{day}: {counted.total() - len(counted)} rows twice in {name}")
            if strange := counted.keys() - now - then:
                self.found.append(f"{day}: rows that are no records: {sorted(strange)[:2]!r}")
            if lost := (then & now) - counted.keys():
                self.found.append(f"{day}: {len(lost)} records lost, such as {min(lost)!r}")
        if records != span.records:
            return  # Arrival times of rows decide where one file ends and the next begins.
        same = self._bytes_of.setdefault((day, frozenset(now)), self._digest(manifest))
        if same != self._digest(manifest):
            self.found.append(f"{day}: the same rows in other bytes")

    def settled(self, day: str, first: dict[str, bytes], second: dict[str, bytes]) -> None:
        manifest = second.get(manifest_of(day))
        if manifest is None or self._broken(day) is not None:
            self.found.append(f"{day}: not exported in the end: {self._broken(day)}")
            return
        if first != second:
            self.found.append(f"{day}: a second run changed the files")
        records = sorted(self._lines_of(self._records(day)))
        found = self._rows(manifest)
        if any(sorted(rows) != records for rows in found.values()) or (records and not found):
            self.found.append(f"{day}: the export is not the day's records")
        if surplus := self._surplus(day):
            self.found.append(f"{day}: left behind: {surplus[:3]}")

    def _surplus(self, day: str) -> list[str]:
        """List files of a day that its manifest omits, and leftover run state."""
        named = {manifest_of(day)}
        for file in json.loads(self._world.files[manifest_of(day)])["files"]:
            named.add(f"exports/{file['path']}")
        ours = (key for key in self._world.files if key.startswith("exports/"))
        return sorted(key for key in ours if f"dt={day}" in key and key not in named)

    def days(self) -> list[str]:
        return sorted({day_asked(record.fetched_at) for record in self._world.pages.values()})

    def _records(self, day: str) -> Records:
        """Return a day's records by request time, even if they are stored under another day."""
        return {
            key: record
            for key, record in self._world.pages.items()
            if day_asked(record.fetched_at) == day
        }

    def _lines_of(self, records: Records) -> set[bytes]:
        lines = set()
        for record in records.values():
            if record not in self._lines:
                self._lines[record] = line_of(page_row(record))
            lines.add(self._lines[record])
        return lines

    def _rows(self, manifest: bytes) -> dict[str, list[bytes]]:
        """Read the page rows of a manifest's files, by format."""
        found: dict[str, list[bytes]] = {}
        for name, body in self._bodies(manifest):
            found.setdefault(name, []).extend(body.splitlines(keepends=True))
        return found

    def _bodies(self, manifest: bytes) -> Iterable[tuple[str, bytes]]:
        for file in json.loads(manifest)["files"]:
            if file["table"] == PAGES.name:
                yield file["format"], self._world.files[f"exports/{file['path']}"]

    def _digest(self, body: bytes) -> str:
        if body not in self._digests:
            self._digests[body] = sha256(body).hexdigest()
        return self._digests[body]
