"""Decide how a run changed a page: created, updated, unchanged or deleted.

A run is compared with the snapshot of the previous run: the last run of the same name that ended
before it. The order of exports does not matter. Failures and robots.txt change nothing, because the
page may still exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from orbweaver.exporting.snapshot import SnapshotEntry
from orbweaver.model.columns import CHANGES
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import combined_rule
from orbweaver.model.value import value_class

ROBOTS = "/robots.txt"
NAMES = tuple(column.name for column in CHANGES.columns)
GONE_STATUSES = frozenset({404, 410})
# Reasons for which a page is omitted from the data, although it may have led to other pages.
LEFT_OUT = frozenset({Reason.CANONICAL, Reason.NOINDEX})


class Change(StrEnum):
    """Change of a page. Sitemaps are not pages.

    A page is *created* if it was unknown, *unchanged* if its body has the same SHA-256 or the
    server sent 304, and *updated* otherwise. It is *deleted* in these cases: it is gone (404, 410,
    or soft 404), it leads elsewhere (redirect, other canonical page), it must be omitted (noindex),
    or no page links to it any more (`Orphans`).
    """

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


class RecordState(StrEnum):
    """Meaning of a record for its URL: a page, a pointer to other URLs, a gone page, or unknown."""

    PAGE = "page"
    LEAD = "lead"
    GONE = "gone"
    UNKNOWN = "unknown"


def seen(record: PageRecord) -> RecordState:
    match record.outcome, record.reason:
        case (Outcome.REDIRECTED, _) | (Outcome.FETCHED, Reason.SITEMAP):
            return RecordState.LEAD
        case Outcome.SKIPPED, reason if reason in LEFT_OUT:
            return RecordState.LEAD
        case Outcome.FETCHED, Reason.SOFT_404:
            return RecordState.GONE
        case Outcome.FAILED, Reason.HTTP_CLIENT_ERROR if record.status in GONE_STATUSES:
            return RecordState.GONE
        case ((Outcome.FETCHED | Outcome.UNCHANGED), _):
            return RecordState.PAGE
        case _:
            return RecordState.UNKNOWN


# --- runs ---------------------------------------------------------------------------------------


@value_class
class EndedRun:
    """A run that has ended, and the id of the previous run.

    `whole`: a page that this run did not find is gone. That is true if the run met no limit, was
    not cancelled, and is no retry. Also, all other runs of the name had ended when this run
    ended.
    """

    crawl: Crawl
    previous: str | None
    whole: bool

    @property
    def id(self) -> str:
        return self.crawl.id


def has_feed(crawl: Crawl) -> bool:
    """Whether a crawl is a run that has ended.

    The default crawl, which gets single URLs, never ends.
    """
    return _end_ms(crawl) is not None and not crawl.continuous


def run_of(crawl: Crawl, crawls: Iterable[Crawl]) -> EndedRun:
    """Return an ended run with the previous run. `crawls` are all known runs."""
    others = [other for other in crawls if other.name == crawl.name and other.id != crawl.id]
    mine = _order(crawl)
    before = [other for other in others if has_feed(other) and _order(other) < mine]
    previous = max(before, key=_order, default=None)
    beside = any(
        other.started_at_ms < mine[0] and not (has_feed(other) and _order(other) < mine)
        for other in others
    )
    return EndedRun(
        crawl=crawl,
        previous=None if previous is None else previous.id,
        whole=crawl.stop is Stop.FINISHED and crawl.retry_of is None and not beside,
    )


def _end_ms(crawl: Crawl) -> int | None:
    return crawl.finished_at_ms if crawl.state is State.FINISHED else None


def _order(crawl: Crawl) -> tuple[int, str]:
    return crawl.finished_at_ms or 0, crawl.id


# --- change of one URL --------------------------------------------------------------------------


class RunVerdict(NamedTuple):
    """New snapshot entry of a URL, and the URL's row in the change feed.

    `pending`: whether the entry is kept or deleted is decided later, by `Orphans`.
    """

    entry: SnapshotEntry | None = None
    row: list[Any] | None = None
    pending: bool = False


def judge(run: EndedRun, before: SnapshotEntry | None, record: PageRecord | None) -> RunVerdict:
    """Return the change of a URL.

    `before` is its entry of the previous run, `record` the new record.
    """
    if record is None:
        return RunVerdict(entry=before, pending=before is not None and is_due(run, before))
    # Another run has requested the URL after this run.
    if before is not None and record.fetched_at < before.asked_ms:
        return RunVerdict(entry=before)
    match seen(record):
        case RecordState.PAGE:
            return _page(run, before, record)
        case RecordState.LEAD:
            entry = _entry(run, record, page=False, sha256=None)
            return RunVerdict(entry=entry, row=deleted(run, before, record.fetched_at))
        case RecordState.GONE:
            return RunVerdict(row=deleted(run, before, record.fetched_at))
        case _:
            # The time of the request is kept, because the URL is not due within the dedup window
            # after it.
            asked = before and before._replace(asked_ms=record.fetched_at)
            return RunVerdict(entry=asked)


def _page(run: EndedRun, before: SnapshotEntry | None, record: PageRecord) -> RunVerdict:
    known = before if before is not None and before.page else None
    digest = record.sha256
    if known is None:
        change = Change.CREATED
    elif record.outcome is Outcome.UNCHANGED:
        change, digest = Change.UNCHANGED, digest or known.sha256
    else:
        change = Change.UNCHANGED if digest == known.sha256 else Change.UPDATED
    entry = _entry(run, record, page=True, sha256=digest)
    return RunVerdict(
        entry=entry, row=_row(run, entry.url, change, record.fetched_at, digest, known)
    )


def _entry(run: EndedRun, record: PageRecord, *, page: bool, sha256: str | None) -> SnapshotEntry:
    return SnapshotEntry(record.url, page, sha256, run.id, record.fetched_at, record.referrer)


def deleted(run: EndedRun, before: SnapshotEntry | None, at_ms: int) -> list[Any] | None:
    """Return a row that reports a page as deleted, or None if the URL was not known as a page."""
    if before is None or not before.page:
        return None
    return _row(run, before.url, Change.DELETED, at_ms, None, before)


def _row(
    run: EndedRun,
    url: str,
    change: Change,
    at_ms: int,
    digest: str | None,
    before: SnapshotEntry | None,
) -> list[Any]:
    was = (None, None) if before is None else (before.crawl, before.sha256)
    return [run.id, url, change.value, at_ms, digest, *was]


def is_due(run: EndedRun, entry: SnapshotEntry) -> bool:
    """Whether a run would have requested this URL if any page had linked to it.

    True if the run is whole (`EndedRun`), and no earlier claim of the URL was valid when the run
    began.
    """
    crawl = run.crawl
    if not run.whole:
        return False
    said = combined_rule(crawl.rules, entry.url)
    if said.record is False:  # the run may have requested it without a record
        return False
    window_s = said.window_s if entry.page else None
    return entry.asked_ms < crawl.stale_before_ms(entry.asked_ms, window_s)


def as_row(values: Collection[Any]) -> Mapping[str, Any]:
    return dict(zip(NAMES, values, strict=True))


# --- pages without referrers --------------------------------------------------------------------


# Only the last referrer of each page is known. Example: a second page also links to the page but
# was unreadable. If the last referrer was read, the page is reported as deleted. It is reported as
# created again when a run finds the second page's link.
@dataclass(slots=True, kw_only=True)
class Orphans:
    """Decides whether due pages (`is_due`) that a run did not request are deleted or kept.

    The referrer of a page decides. If the referrer was read or is gone, no page links to the page
    any more. If the referrer was unreadable, it may still link to the page. If the referrer was not
    requested either, the decision on it applies to the page, too. Pages that only link to each
    other in a circle are deleted.

    Call `add` for all due entries. Then call `link` for each of them, and `pass_by` for all other
    entries. Then call `is_kept` for each due entry. Memory grows with the number of distinct
    referrers, which are far fewer than pages.
    """

    run: EndedRun
    # Referrers of due entries. `_links` has the referrer of each due entry that is itself a
    # referrer.
    referrers: set[str] = field(default_factory=set)
    _links: dict[str, str | None] = field(default_factory=dict)
    # Referrers that are not due, and that this run could not read.
    _unread: set[str] = field(default_factory=set)
    # Sites whose robots.txt is a referrer of due entries. `_answered` are those sites of which this
    # run read a page.
    _sites: set[str] = field(default_factory=set)
    _answered: set[str] = field(default_factory=set)
    _known: dict[str, bool] = field(default_factory=dict)

    def add(self, entry: SnapshotEntry) -> None:
        """Record a due entry and its referrer."""
        if entry.referrer is None:
            return
        self.referrers.add(entry.referrer)
        if entry.referrer.endswith(ROBOTS):
            self._sites.add(host_of(entry.referrer))

    def link(self, entry: SnapshotEntry) -> None:
        """Record the referrer of a due entry that is itself a referrer."""
        if entry.url in self.referrers:
            self._links[entry.url] = entry.referrer

    def pass_by(self, entry: SnapshotEntry) -> None:
        """Record an entry of the new snapshot that is not due."""
        if entry.crawl != self.run.id:
            if entry.url in self.referrers:
                self._unread.add(entry.url)
        elif self._sites and entry.page:
            site = host_of(entry.url)
            if site in self._sites:
                self._answered.add(site)

    def is_kept(self, entry: SnapshotEntry) -> bool:
        """Whether a due entry is kept because a referrer was unreadable."""
        path: dict[str, None] = {}
        url, answer = entry.referrer, False
        while url is not None and url not in path:
            if url in self._known or self._unreadable(url):
                answer = self._known.get(url, True)
                break
            path[url] = None
            url = self._links.get(url)
        self._known.update(dict.fromkeys(path, answer))
        return answer

    def _unreadable(self, url: str) -> bool:
        if url in self._unread:
            return True
        if url.endswith(ROBOTS):  # has no record; it was read if a page of the site was read
            return host_of(url) not in self._answered
        return combined_rule(self.run.crawl.rules, url).record is False

    def row(self, entry: SnapshotEntry) -> list[Any] | None:
        return deleted(self.run, entry, self.run.crawl.finished_at_ms or 0)
