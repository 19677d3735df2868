"""Comparison of two runs' records: pages that are new, changed, moved, gone, failed or not seen.

A record's state is decided as for exports (`exporting/changes.py`). A page has changed if the
digests of its two bodies differ. A page without a record in the later run can still exist: that run
did not request it, or found no link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orbweaver.exporting.changes import RecordState, seen
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord


class PageDifference(StrEnum):
    """Difference of a page between two runs."""

    NEW = "new"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PageState:
    """The fields of a page record that the comparison of two runs needs."""

    state: RecordState
    still: bool
    sha256: str | None
    title: str | None
    said: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPage:
    """A page with its difference, and its titles in both runs."""

    url: str
    difference: PageDifference
    title_before: str | None = None
    title: str | None = None
    said: str | None = None


def state_of(record: PageRecord) -> PageState:
    return PageState(
        seen(record),
        record.outcome is Outcome.UNCHANGED,
        record.sha256,
        record.title,
        record.error or (None if record.outcome is Outcome.FETCHED else record.reason),
    )


def compared(
    before: Mapping[str, PageState], after: Mapping[str, PageState]
) -> Iterator[ComparedPage]:
    for url, now in after.items():
        was = before.get(url)
        found = _difference(was, now)
        if found is not None:
            title_before = None if was is None else was.title
            said = None if now.state is RecordState.PAGE else now.said
            yield ComparedPage(
                url=url, difference=found, title_before=title_before, title=now.title, said=said
            )
    for url, was in before.items():
        if was.state is RecordState.PAGE and url not in after:
            yield ComparedPage(url=url, difference=PageDifference.NOT_SEEN, title_before=was.title)


def _difference(was: PageState | None, now: PageState) -> PageDifference | None:
    before = was is not None and was.state is RecordState.PAGE
    match now.state:
        case RecordState.PAGE if not before:
            return PageDifference.NEW
        case RecordState.PAGE:
            same = now.still or (was is not None and now.sha256 == was.sha256)
            return PageDifference.UNCHANGED if same else PageDifference.CHANGED
        case _ if not before:
            return None
        case RecordState.LEAD:
            return PageDifference.MOVED
        case RecordState.GONE:
            return PageDifference.GONE
        case _:
            return PageDifference.FAILED


def counts_of(pages: Iterable[ComparedPage]) -> dict[str, int]:
    found = Counter(page.difference for page in pages)
    return {one: found[one] for one in PageDifference}
