"""The entries of a sitemap: pages, other sitemaps, and when each was last changed.

Read are the XML of sitemaps.org (`urlset`, `sitemapindex`), text with a URL a line, RSS and Atom,
any of them gzipped. What it is shows in the bytes: servers say all kinds of things.

- A file lists at most 50,000 URLs (sitemaps.org); what is beyond is counted as cut. `first` and
  `count` ask for a part of them: a place is that of a reference in the file, usable or not.
- Nothing raises, whatever the bytes. A file that breaks off, or has to be given up (see
  `sitemap_text` and `sitemap_xml` for the bounds), is good for what came before, and `problem`
  says what happened.
- A URL must be absolute, but those of feeds may be relative to the feed or its `xml:base`. Whether
  one belongs to the crawl is for `admission` to say.
- A modification time is the last moment that it may mean: a day, a month or a year alone ends with
  its last millisecond, so what has changed on that day is not taken for older. Other dates than
  those of W3C (in sitemaps, Atom) and RFC 822 (in RSS) are passed over.

Sources: sitemaps.org/protocol.html; W3C NOTE-datetime; RFC 4287 (Atom); RSS 2.0.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from orbweaver.model.outcome import Refusal
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize
from orbweaver.parsing.sitemap_text import Spoiled, texts
from orbweaver.parsing.sitemap_xml import XmlItem, XmlReader

ENTRIES_MAX = 50_000
# Those beyond are counted up to here, and then the file is given up.
LISTED_MAX = 60_000
LINE_CHARS_MAX = 8_192
# A text whose first lines hold no URL is none.
BLIND_LINES_MAX = 1_000
DATE_CHARS_MAX = 60
_NO_PARAMETERS: frozenset[str] = frozenset()


# Blank ones are passed over without a look at each.
_LINE = re.compile(r"\S[^\n]*+")


class SitemapFormat(StrEnum):
    """What a sitemap is; the names are those of the XML's root elements."""

    URLSET = "urlset"
    INDEX = "sitemapindex"
    RSS = "rss"
    RDF = "rdf"
    ATOM = "feed"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapEntry:
    """A canonical URL, and when it was last changed (ms since the epoch) if that is said."""

    url: str
    modified_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitemap:
    """A part of a sitemap: pages, and other sitemaps of an index, as they follow one another.

    `listed` counts the references read so far, from the file's beginning; `more` says that there
    are others behind this part. `dropped` are those of this part that are no URL, or too many.
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
        """Whether this is a sitemap at all: an empty one is, one that broke before a URL is not."""
        return self.format is not None and (self.listed > 0 or self.problem is None)


class _Enough(Exception):
    """The part that was asked for is complete."""


class _Reader(Protocol):
    """Takes a file in, piece by piece."""

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
    """Read the `count` references behind the first `first` ones of a sitemap found at `url`."""
    found = _SitemapPart(url, first, count, tracking)
    reader: _Reader | None = None
    problem = None
    try:
        for text in texts(body):
            if reader is None:
                text = text.lstrip()  # noqa: PLW2901 - spaces before an XML declaration spoil it
                if not text:
                    continue
                reader = XmlReader(found.add_item) if text[0] == "<" else _Lines(found)
            reader.feed(text)
        if reader is not None:
            reader.close()
    except _Enough:
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
    """Collects the part that was asked for."""

    def __init__(self, url: str, first: int, count: int, tracking: frozenset[str]) -> None:
        self._tracking = tracking
        self._url = url
        self._first = first
        self._end = min(first + count, ENTRIES_MAX)
        # Whether nothing was a URL yet; what stands before this part was looked at with it.
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
        """Take the next reference of the file, seen from `base`; beside it are `surplus` ones."""
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
            raise _Enough
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
        """Take the next item of an XML file."""
        self.add(
            item.reference,
            modified=item.modified,
            child=item.label == "sitemap",
            base=self._base(item.bases) if item.relative else None,
            surplus=item.surplus,
        )

    def _base(self, bases: tuple[str, ...]) -> str:
        """Resolve the bases of an element, from the outside in; what is no URL is passed over."""
        if bases not in self._bases:
            base = self._url
            for reference in bases:
                with contextlib.suppress(ValueError):
                    base = canonicalize(reference, base, tracking=_NO_PARAMETERS)
            self._bases = {bases: base}  # entries mostly have that of the one before
        return self._bases[bases]

    def sitemap(self, format_: SitemapFormat | None, problem: str | None) -> Sitemap:
        """Say what was found."""
        return Sitemap(
            format=format_,
            entries=tuple(self._entries.values()),
            sitemaps=tuple(self._sitemaps.values()),
            listed=self._listed,
            more=self._more,
            dropped=MappingProxyType(dict(self._dropped)),
            problem=problem,
        )


class _Lines:
    """Reads text: a URL a line, blank lines are passed over."""

    def __init__(self, found: _SitemapPart) -> None:
        self._found = found
        self._rest = ""
        self._lines = 0

    def feed(self, text: str) -> None:
        """Take a piece of the text."""
        text = (self._rest + text).replace("\r", "\n")
        end = text.rfind("\n") + 1
        for line in _LINE.findall(text, 0, end):
            self._add(line)
        # What is longer than any URL stays too long, and is no URL.
        self._rest = text[end : end + LINE_CHARS_MAX]

    def close(self) -> None:
        """Take the last line, which may have no end."""
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
    """Return the last moment that a date may mean; None where it means none, or one before 1970."""
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
    """Read `Z`, `+01:00`, `+0100` or `+01`; a time without one is taken for UTC."""
    if zone is None or zone in "Zz":
        return UTC
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))


def _rfc822(text: str) -> datetime:
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
