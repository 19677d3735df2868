"""What an export is: the rows, parts and manifest of one UTC day, and the state of a paused run.

- A row is a line of JSON in UTF-8: every column in order, null where empty. Characters that a
  reader may take for a line's end or a terminal for a command are escaped.
- A part is gzip (RFC 1952) without time or file name, so equal rows give equal bytes.
- The manifest says which parts make up the day, and by their SHA-256 whether they are those it
  means; it says nothing of the run that wrote it. Readers go by it, never by a listing.
- A part number beyond five digits grows wider; the order of parts is the manifest's.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from orbweaver.core.record import COLUMNS, DAY_MS, day_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orbweaver.core.record import PageRecord

# Of the rows: a column that changes its meaning or goes away raises it, a new last one does not.
SCHEMA = 1
# Of the saved state; another version's is passed over and the day begun anew.
STATE_VERSION = 1
GZIP_LEVEL = 6
# zlib's window of 32 KiB, in gzip's framing: it writes mtime 0 and no name.
GZIP_WBITS = 31
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PART_NAME = re.compile(r"part-(\d{5,})\.jsonl\.gz")
# C1 controls and DEL steer terminals, U+2028 and U+2029 end lines for some readers (JSON leaves
# all of them raw), and a lone surrogate has no UTF-8.
UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
SURROGATE_MIN = 0xD800
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
EVENTS = 'an export event is {}, {"day": "YYYY-MM-DD"}, that with "resume": true, or a schedule\'s'


class ExportEventError(ValueError):
    """An event asks for nothing that can be exported; the text says what it may be."""


# --- rows -------------------------------------------------------------------------------------


def row(record: PageRecord) -> bytes:
    """Render a record as one line."""
    cells = {name: getattr(record, name) for name in COLUMNS}
    cells["fetched_at"] = iso(record.fetched_at)
    return UNSAFE.sub(_mend, ENCODER.encode(cells)).encode() + b"\n"


def iso(at_ms: int) -> str:
    """Write a moment as ISO 8601, UTC, to the millisecond."""
    moment = EPOCH + timedelta(milliseconds=at_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _mend(match: re.Match[str]) -> str:
    code = ord(match[0])
    lone = SURROGATE_MIN <= code < SURROGATE_MIN + 0x800
    return "\ufffd" if lone else f"\\u{code:04x}"


# --- files ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a day's files are, below a prefix that is empty or ends in a slash."""

    prefix: str
    day: str

    @property
    def folder(self) -> str:
        """What the names of the day's files begin with."""
        return f"{self.prefix}dt={self.day}/"

    @property
    def manifest(self) -> str:
        """Key of the manifest."""
        return f"{self.folder}manifest.json"

    @property
    def state(self) -> str:
        """Key of a paused run's state: outside the folder that readers look into."""
        return f"{self.prefix}_work/dt={self.day}/state.json"

    def surplus(self, keys: Iterable[str], count: int) -> tuple[str, ...]:
        """Of these keys, the parts numbered `count` and above; other files are not ours."""
        found = []
        for key in keys:
            match = PART_NAME.fullmatch(key.removeprefix(self.folder))
            if match and int(match[1]) >= count:
                found.append(key)
        return tuple(found)


def part_name(number: int) -> str:
    """Name a part, counted from 0."""
    return f"part-{number:05d}.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a manifest says of one part; `bytes` and `sha256` are of the file as it lies there."""

    name: str
    rows: int
    bytes: int
    sha256: str


def intact(part: Part, body: bytes | None) -> bool:
    """Whether the file under a part's name is there, and is that part."""
    return body is not None and hashlib.sha256(body).hexdigest() == part.sha256


class PartBuffer:
    """Compresses rows as they come: a part is never held uncompressed."""

    def __init__(self) -> None:
        """Begin an empty part."""
        self._stream = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WBITS)
        self._pieces: list[bytes] = []
        self.rows = 0

    def add(self, line: bytes) -> None:
        """Append a row."""
        piece = self._stream.compress(line)
        if piece:
            self._pieces.append(piece)
        self.rows += 1

    def close(self, name: str) -> tuple[Part, bytes]:
        """End the part: what it is, and the file."""
        body = b"".join([*self._pieces, self._stream.flush()])
        digest = hashlib.sha256(body).hexdigest()
        return Part(name=name, rows=self.rows, bytes=len(body), sha256=digest), body


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Which parts make up a day; `crawl` is set where only that crawl's rows were wanted."""

    day: str
    crawl: str | None = None
    parts: tuple[Part, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows the day has."""
        return sum(part.rows for part in self.parts)

    def contradicts(self, part: Part) -> bool:
        """Whether this manifest means another file by that name; one it does not name is free."""
        return any(mine.name == part.name and mine != part for mine in self.parts)


def encode_manifest(manifest: Manifest) -> bytes:
    """Render a manifest as ASCII JSON, the same bytes for the same files."""
    body = {
        "schema": SCHEMA,
        "day": manifest.day,
        "crawl": manifest.crawl,
        "columns": list(COLUMNS),
        "rows": manifest.rows,
        "parts": [asdict(part) for part in manifest.parts],
    }
    return json.dumps(body, indent=2).encode() + b"\n"


def decode_manifest(body: bytes) -> Manifest | None:
    """Read a manifest back; None for what is not one of this schema."""
    try:
        raw = json.loads(body)
        if raw["schema"] != SCHEMA:
            return None
        return Manifest(day=raw["day"], crawl=raw["crawl"], parts=_parts(raw["parts"]))
    except (ValueError, KeyError, TypeError):
        return None


def _parts(raw: list[dict[str, Any]]) -> tuple[Part, ...]:
    return tuple(Part(**part) for part in raw)


# --- a run ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come: all rows up to sort key `after` of `shard` are in `parts`.

    `crawl`, `shards` and `part_rows_max` are what it was begun with: the same cut only follows
    from the same three.
    """

    crawl: str | None
    shards: int
    part_rows_max: int
    shard: int = 0
    after: str | None = None
    parts: tuple[Part, ...] = ()

    def past(self, shard: int, key: str, part: Part) -> Progress:
        """Come further by one part, whose last row had this key."""
        return replace(self, shard=shard, after=key, parts=(*self.parts, part))


def encode_progress(progress: Progress) -> bytes:
    """Render the state of a paused run."""
    return json.dumps({"v": STATE_VERSION, **asdict(progress)}).encode()


def resumed(start: Progress, state: bytes | None) -> Progress:
    """Go on from a saved state; from `start` if it is absent, or of a run begun otherwise."""
    try:
        raw = json.loads(state or b"")
        version = raw.pop("v")
        saved = Progress(**{**raw, "parts": _parts(raw["parts"])})
    except (ValueError, KeyError, TypeError, AttributeError):
        return start
    begun = replace(saved, shard=start.shard, after=start.after, parts=start.parts)
    return saved if version == STATE_VERSION and begun == start else start


# --- what is asked for ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One day to export: from its beginning, or from where a paused run stopped."""

    day: str
    resume: bool = False


def job_of(event: object, now_ms: int) -> Job:
    """Read an event: `{}`, `{"day": …}`, `{"day": …, "resume": true}`, or a schedule's.

    Without a day it is the day before: before the schedule's own time where it has one (a
    delivery may come a day late), before now otherwise.
    """
    if not isinstance(event, dict):
        raise ExportEventError(f"{EVENTS}; not {type(event).__name__}")
    if "detail-type" in event:
        return Job(day=_day_before(event.get("time"), now_ms))
    resume = event.get("resume", False)
    if not event.keys() <= {"day", "resume"} or not isinstance(resume, bool):
        raise ExportEventError(f"{EVENTS}; not {event!r}"[:500])
    if "day" in event:
        return Job(day=check_day(event["day"]), resume=resume)
    if resume:
        raise ExportEventError(f"{EVENTS}; resume needs its day")
    return Job(day=_day_before(None, now_ms))


def _day_before(time: object, now_ms: int) -> str:
    if time is None:
        return day_of(now_ms - DAY_MS)
    try:
        moment = datetime.fromisoformat(str(time))
        day = moment.astimezone(UTC) if moment.tzinfo else moment
        return (day.date() - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError) as error:
        raise ExportEventError(f"not a schedule's time: {time!r}"[:200]) from error


def check_day(day: object) -> str:
    """Pass a day's name through if it is one: `YYYY-MM-DD`, and in the calendar."""
    try:
        # Python also reads 20261121 and 2026-W47-6: only what it writes itself is a day's name.
        if isinstance(day, str) and date.fromisoformat(day).isoformat() == day:
            return day
    except ValueError:
        pass
    raise ExportEventError(f"a day is written YYYY-MM-DD (2026-11-21), not {day!r}"[:200])


def days_between(first_ms: int, last_ms: int) -> tuple[str, ...]:
    """Name the UTC days that two moments and the time between them touch."""
    return tuple(
        day_of(number * DAY_MS) for number in range(first_ms // DAY_MS, last_ms // DAY_MS + 1)
    )
