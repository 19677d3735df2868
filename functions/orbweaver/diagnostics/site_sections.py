"""Sections of a site: a run's records summed up by the folders of their URLs.

A section has the URLs below its prefix: a host first, then a segment of the path after the other,
without queries. What lies deeper than `LEVELS_MAX`, or would make more sections than
`SECTIONS_MAX`, counts for the last section that there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of

LEVELS_MAX, SECTIONS_MAX, SHOWN_MAX = 8, 20_000, 40
# Of a segment; a longer one is a section by its first characters.
SEGMENT_CHARS_MAX = 80


@dataclass(slots=True)
class Section:
    """What is below one prefix."""

    urls: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    latency_ms: int = 0
    timed: int = 0
    depth: int = 0
    inner: dict[str, Section] = field(default_factory=dict)

    def add(self, record: PageRecord) -> None:
        """Count a record."""
        self.depth = min(self.depth, record.depth) if self.urls else record.depth
        self.urls += 1
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self.bytes += record.bytes or 0
        if record.latency_ms is not None:
            self.latency_ms += record.latency_ms
            self.timed += 1

    def shown(self, prefix: str) -> dict[str, Any]:
        """Show the section without those within."""
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
    """Sums records up."""

    def __init__(self) -> None:
        self.whole = Section()
        self._number = 0

    def add(self, record: PageRecord) -> None:
        """Count a record in each section that it lies in."""
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
        """Show a section and the largest of those within; None for one that there is not."""
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
            # The section's own page, or what lies too deep.
            "own": section.urls - within,
        }


def _names(url: str) -> Iterator[str]:
    """Name the sections that a URL lies in, or the steps to the one that a prefix names."""
    host = host_of(url)
    yield host
    path = url[len(host) :].partition("?")[0]
    for segment in [one for one in path.split("/") if one][: LEVELS_MAX - 1]:
        yield segment[:SEGMENT_CHARS_MAX]
