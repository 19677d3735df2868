"""Read the entries of a sitemap: pages, child sitemaps, and modification times.

Formats: XML (sitemaps.org), text with one URL a line, RSS 2.0 and Atom (RFC 4287), each optionally
gzipped. The bytes decide the format, because servers send unreliable types. Bad input never raises
an exception. A file that ends early or exceeds a limit gives the entries before that point.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from orbweaver.model.outcome import Refusal
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize
from orbweaver.model.value import value_class
from orbweaver.parsing.sitemap_xml import Spoiled, XmlItem, XmlReader, texts

# Maximum number of URLs of a file (sitemaps.org). Further URLs are counted as cut.
ENTRIES_MAX = 50_000
# Up to this number, further URLs are counted. Then reading stops.
LISTED_MAX = 60_000
LINE_CHARS_MAX = 8_192
# If this many lines of a text contain no URL, it is not a sitemap.
BLIND_LINES_MAX = 1_000
DATE_CHARS_MAX = 60
_NO_PARAMETERS: frozenset[str] = frozenset()


# Matches a line. Blank lines are skipped without a match for each.
_LINE = re.compile(r"\S[^\n]*+")


class SitemapFormat(StrEnum):
    """Format of a sitemap. Values are the names of the XML root elements."""

    URLSET = "urlset"
    INDEX = "sitemapindex"
    RSS = "rss"
    RDF = "rdf"
    ATOM = "feed"
    TEXT = "text"


@value_class
class SitemapEntry:
    """A canonical URL and its modification time (ms since the epoch), if the sitemap has one."""

    url: str
    modified_at_ms: int | None = None


@value_class
class Sitemap:
    """A part of a sitemap: its pages, and the child sitemaps of an index, in file order.

    `listed` counts the references from the beginning of the file to the end of this part. `more`
    means that the file has references after this part. `dropped` counts references of this part
    that are invalid or over the limit. `problem` is the reason why the file could not be read to
    its end.
    """

    format: SitemapFormat | None
    entries: tuple[SitemapEntry, ...] = ()
    sitemaps: tuple[SitemapEntry, ...] = ()
    listed: int = 0
    more: bool = False
    dropped: Mapping[Refusal, int] = field(default_factory=dict)
    problem: str | None = None

    @property
    def usable(self) -> bool:
        """Whether the file is a sitemap.

        A broken file is one only if it has a URL before the problem.
        """
        return self.format is not None and (self.listed > 0 or self.problem is None)


class _PartComplete(Exception):
    """Stops reading, because the requested part is complete."""


class _Reader(Protocol):
    def feed(self, text: str) -> None: ...

    def close(self) -> None: ...


def read(
    body: bytes,
    url: str,
    *,
    first: int = 0,
    count: int = ENTRIES_MAX,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
) -> Sitemap:
    """Read a part of a sitemap found at `url`: `count` references after the first `first` ones.

    Invalid references count, too. URLs must be absolute, except in feeds: there they may be
    relative to the feed or its `xml:base`. `tracking`: parameters to remove from URLs.
    """
    found = _SitemapPart(url, first, count, tracking)
    reader: _Reader | None = None
    problem = None
    try:
        for text in texts(body):
            if reader is None:
                text = text.lstrip()  # noqa: PLW2901 - spaces before an XML declaration spoil it
                if not text:
                    continue
                reader = XmlReader(found.add_item) if text[0] == "<" else _TextReader(found)
            reader.feed(text)
        if reader is not None:
            reader.close()
    except _PartComplete:
        pass
    except Spoiled as spoiled:
        problem = str(spoiled)
    format_ = None
    if isinstance(reader, XmlReader):
        format_ = SitemapFormat(reader.root) if reader.root else None
    elif reader is not None and not found.blind:
        format_ = SitemapFormat.TEXT
    return found.sitemap(format_, problem)


class _SitemapPart:
    def __init__(self, url: str, first: int, count: int, tracking: frozenset[str]) -> None:
        self._tracking = tracking
        self._url = url
        self._first = first
        self._end = min(first + count, ENTRIES_MAX)
        # True while no line was a URL. A part that is not the first was checked when the first part
        # was read.
        self.blind = first == 0
        self._entries: dict[str, SitemapEntry] = {}
        self._sitemaps: dict[str, SitemapEntry] = {}
        self._dropped: Counter[Refusal] = Counter()
        self._listed = 0
        self._more = False
        self._bases: dict[tuple[str, ...], str] = {(): url}

    def add(
        self,
        reference: str,
        *,
        modified: str = "",
        child: bool = False,
        base: str | None = None,
        surplus: int = 0,
    ) -> None:
        """Add the next reference of the file.

        `surplus` is the number of further references of the same item. `base` resolves a relative
        reference.
        """
        place = self._listed
        self._listed += 1
        if place < self._first:
            return
        if place >= ENTRIES_MAX:
            self._dropped[Refusal.CUT] += 1
            if self._listed >= LISTED_MAX:
                raise Spoiled(f"{LISTED_MAX:,} URLs, and more")
            return
        if place >= self._end:
            self._listed -= 1
            self._more = True
            raise _PartComplete
        try:
            if surplus:
                self._dropped[Refusal.CUT] += surplus
            url = canonicalize(reference, base, tracking=self._tracking)
        except ValueError:
            self._dropped[Refusal.INVALID] += 1
            return
        self.blind = False
        entry = SitemapEntry(url=url, modified_at_ms=moment_ms(modified))
        (self._sitemaps if child else self._entries).setdefault(url, entry)

    def add_item(self, item: XmlItem) -> None:
        self.add(
            item.reference,
            modified=item.modified,
            child=item.label == "sitemap",
            base=self._base(item.bases) if item.relative else None,
            surplus=item.surplus,
        )

    def _base(self, bases: tuple[str, ...]) -> str:
        if bases not in self._bases:
            base = self._url
            for reference in bases:
                with contextlib.suppress(ValueError):
                    base = canonicalize(reference, base, tracking=_NO_PARAMETERS)
            self._bases = {bases: base}  # consecutive entries usually have the same base
        return self._bases[bases]

    def sitemap(self, format_: SitemapFormat | None, problem: str | None) -> Sitemap:
        return Sitemap(
            format=format_,
            entries=tuple(self._entries.values()),
            sitemaps=tuple(self._sitemaps.values()),
            listed=self._listed,
            more=self._more,
            dropped=MappingProxyType(dict(self._dropped)),
            problem=problem,
        )


class _TextReader:
    def __init__(self, found: _SitemapPart) -> None:
        self._found = found
        self._rest = ""
        self._lines = 0

    def feed(self, text: str) -> None:
        text = (self._rest + text).replace("\r", "\n")
        end = text.rfind("\n") + 1
        for line in _LINE.findall(text, 0, end):
            self._add(line)
        # An incomplete line is kept for the next piece, up to a length that is too long for a URL.
        self._rest = text[end : end + LINE_CHARS_MAX]

    def close(self) -> None:
        self._add(self._rest)
        if self._found.blind:
            raise Spoiled("no line of the text is a URL")

    def _add(self, line: str) -> None:
        line = line.strip()
        if not line:
            return
        self._lines += 1
        if self._lines > BLIND_LINES_MAX and self._found.blind:
            raise Spoiled(f"no URL in {BLIND_LINES_MAX:,} lines")
        self._found.add(line[:LINE_CHARS_MAX])


# --- dates --------------------------------------------------------------------------------------

_W3C = re.compile(
    r"""(\d{4}) (?: -(\d{1,2}) (?: -(\d{1,2})
    (?: [Tt\ ] (\d{1,2}):(\d{2}) (?: :(\d{2}) (?:[.,](\d{1,9}))? )?
        \ ?(Z|z|[+-]\d{2}(?::?\d{2})?)? )? )? )?""",
    re.VERBOSE | re.ASCII,
)
_DAY = timedelta(days=1)
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_ms(text: str) -> int | None:
    """Return the last moment that a date can mean, in ms. None if it is invalid or before 1970.

    Dates are W3C (NOTE-datetime: sitemaps, Atom) or RFC 822 (RSS). A day, month or year means its
    last millisecond, so that a page that changed on that day counts as changed.
    """
    text = text.strip()
    if not text or len(text) > DATE_CHARS_MAX:
        return None
    match = _W3C.fullmatch(text)
    try:
        moment = _w3c(*match.groups()) if match else _rfc822(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at_ms = (moment - _EPOCH) // _MS
    return at_ms if at_ms >= 0 else None


def _w3c(
    year: str,
    month: str | None,
    day: str | None,
    hour: str | None,
    minute: str | None,
    second: str | None,
    fraction: str | None,
    zone: str | None,
) -> datetime:
    start = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if month is None:
        return start.replace(year=start.year + 1) - _MS
    if day is None:
        return (start + 31 * _DAY).replace(day=1) - _MS
    if hour is None:
        return start + _DAY - _MS
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    moment = start.replace(
        hour=int(hour), minute=int(minute or 0), second=int(second or 0), microsecond=micros
    )
    return moment.replace(tzinfo=_zone(zone))


def _zone(zone: str | None) -> timezone:
    """Parse a time zone: `Z`, `+01:00`, `+0100` or `+01`. A time without a zone is UTC."""
    if zone is None or zone in "Zz":
        return UTC
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))


def _rfc822(text: str) -> datetime:
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
