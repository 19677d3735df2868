"""Sections of a site: a run's records summed by the folders of their URLs.

A section contains the URLs below its prefix: a host, then one path segment per level. Queries are
ignored. Sections have at most `LEVELS_MAX` levels, and a site has at most `SECTIONS_MAX` sections.
A URL beyond these limits counts for the deepest section that exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of

LEVELS_MAX, SECTIONS_MAX, SHOWN_MAX = 8, 20_000, 40
# Longer segments are cut to this length.
SEGMENT_CHARS_MAX = 80


@dataclass(slots=True)
class Section:
    """Sums over the records of all URLs below one prefix."""

    urls: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    latency_ms: int = 0
    timed: int = 0
    depth: int = 0
    inner: dict[str, Section] = field(default_factory=dict)

    def add(self, record: PageRecord) -> None:
        self.depth = min(self.depth, record.depth) if self.urls else record.depth
        self.urls += 1
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self.bytes += record.bytes or 0
        if record.latency_ms is not None:
            self.latency_ms += record.latency_ms
            self.timed += 1

    def shown(self, prefix: str) -> dict[str, Any]:
        """Return the section as JSON, without inner sections."""
        return {
            "at": prefix,
            "urls": self.urls,
            "failed": self.outcomes.get(Outcome.FAILED, 0),
            "outcomes": dict(self.outcomes),
            "bytes": self.bytes,
            "latency_ms": round(self.latency_ms / self.timed) if self.timed else None,
            "depth": self.depth,
            "sections": len(self.inner),
        }


class SiteSections:
    """Adds up page records by section of the site."""

    def __init__(self) -> None:
        self.whole = Section()
        self._number = 0

    def add(self, record: PageRecord) -> None:
        section = self.whole
        section.add(record)
        for name in _names(record.url):
            inner = section.inner.get(name)
            if inner is None:
                if self._number >= SECTIONS_MAX:
                    return
                self._number += 1
                inner = section.inner[name] = Section()
            section = inner
            section.add(record)

    def shown(self, prefix: str) -> dict[str, Any] | None:
        """Return a prefix's section and its largest inner sections as JSON. None: no section."""
        section = self.whole
        for name in _names(prefix) if prefix else ():
            found = section.inner.get(name)
            if found is None:
                return None
            section = found
        inner = sorted(section.inner.items(), key=lambda one: (-one[1].urls, one[0]))
        rows = [one.shown(f"{prefix}/{name}" if prefix else name) for name, one in inner]
        within = sum(one.urls for _, one in inner)
        return {
            **section.shown(prefix),
            "inner": rows[:SHOWN_MAX],
            "inner_more": max(0, len(rows) - SHOWN_MAX),
            "urls_more": sum(row["urls"] for row in rows[SHOWN_MAX:]),
            # URLs in no inner section: the section's own page, and URLs that are too deep.
            "own": section.urls - within,
        }


def _names(url: str) -> Iterator[str]:
    """Yield the names of a URL's sections, from the host down."""
    host = host_of(url)
    yield host
    path = url[len(host) :].partition("?")[0]
    for segment in [one for one in path.split("/") if one][: LEVELS_MAX - 1]:
        yield segment[:SEGMENT_CHARS_MAX]
