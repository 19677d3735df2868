"""Changes of a run's pages against earlier ones: created, updated, unchanged, deleted.

What is known is the snapshot of the run of the same name that ended last before this one
(exporting/snapshot.py), whichever of them is exported first.

- A page is *created* if there was none, *unchanged* if its body is the same (SHA-256) or the server
  said so (304), and *updated* otherwise. Sitemaps are no pages.
- It is *deleted* if it is gone (404, 410, or a page that says so), if it leads elsewhere (redirect,
  another one as canonical) or if the crawl is to leave it out (noindex).
- Failures and robots.txt change nothing: what is not known to be gone is still there.
- A page that this run did not ask for is as it was, unless it was *due*: no claim held it when the
  run began, so the run would have asked, had anything led to it. A due page is deleted if the run
  went to its own end, and if what led to it is read, gone itself, or deleted for the same reason.
  An own end: no limit was met, it was not cancelled, and no other run of the name held claims. A
  page below one that could not be read is left as it is.
- A run that asks again for failures (`retry_of`) leaves all as it is that it does not ask for. A
  crawl without end (the one bare URLs belong to) has no run before it, so no feed.
- Of a URL that another run asked for later than this one, this one says nothing.

Of a page only the referrer that led to it last is known. Where that one is read and another one
cannot be, the page is deleted, and created again once that one leads to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from orbweaver.exporting.snapshot import SnapshotEntry
from orbweaver.model.columns import CHANGES
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import said_of

ROBOTS = "/robots.txt"
NAMES = tuple(column.name for column in CHANGES.columns)
GONE_STATUSES = frozenset({404, 410})
# What is left out of the data, and may have led to others.
LEFT_OUT = frozenset({Reason.CANONICAL, Reason.NOINDEX})


class Change(StrEnum):
    """What became of a page."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


class RecordState(StrEnum):
    """What a record says of its URL: a page, something that leads on, nothing there, or nothing."""

    PAGE = "page"
    LEAD = "lead"
    GONE = "gone"
    UNKNOWN = "unknown"


def seen(record: PageRecord) -> RecordState:
    """Say what a record says of its URL."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run that has ended, the one before it, and whether what it did not find is gone."""

    crawl: Crawl
    previous: str | None
    whole: bool

    @property
    def id(self) -> str:
        """Its crawl's."""
        return self.crawl.id


def has_feed(crawl: Crawl) -> bool:
    """Whether a crawl is a run that has ended."""
    return _ended(crawl) is not None and not crawl.continuous


def run_of(crawl: Crawl, crawls: Iterable[Crawl]) -> EndedRun:
    """Put a run that has ended in its place among all crawls."""
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


def _ended(crawl: Crawl) -> int | None:
    return crawl.finished_at_ms if crawl.state is State.FINISHED else None


def _order(crawl: Crawl) -> tuple[int, str]:
    return crawl.finished_at_ms or 0, crawl.id


# --- what becomes of one URL --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What is known of a URL from now on, and the row that says what has changed.

    `pending` is for `Orphans` to decide: the entry stands, or is deleted.
    """

    entry: SnapshotEntry | None = None
    row: list[Any] | None = None
    pending: bool = False


def judge(run: EndedRun, before: SnapshotEntry | None, record: PageRecord | None) -> RunVerdict:
    """Say what a run means for a URL, of which this was known and this is recorded."""
    if record is None:
        return RunVerdict(entry=before, pending=before is not None and is_due(run, before))
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
            # Asked for all the same: a claim holds from then on.
            asked = before and replace(before, asked_ms=record.fetched_at)
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
    """Say that what was known of a URL is deleted; None where that was no page."""
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
    """Whether a run would have asked for a URL that anything led to, so that nothing did."""
    crawl = run.crawl
    if not run.whole:
        return False
    said = said_of(crawl.rules, entry.url)
    if said.record is False:  # it may have been asked for
        return False
    window_s = said.window_s if entry.page else None
    return entry.asked_ms < crawl.stale_before_ms(entry.asked_ms, window_s)


def as_row(values: Collection[Any]) -> Mapping[str, Any]:
    """Name the values of a row."""
    return dict(zip(NAMES, values, strict=True))


# --- pages that nothing leads to ----------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Orphans:
    """Decides on pages that a run could have asked for and did not: deleted, or below unread ones.

    By what had led to each of them. That one was read, or is gone itself: nothing leads here any
    more. It could not be read: it may still lead here. It was not asked for either: what is so of
    that one is so of this one. A circle that nothing else leads to is gone.

    First everything that is due is `see`n, then each of that is `link`ed and everything else that
    is known passed by; then `stands` says of each. Memory goes with the number of different
    referrers, which are far fewer than pages; an exporter with more of them than it can hold says
    of nothing that it is deleted.
    """

    run: EndedRun
    # What led to something that is due; of the due itself among that, what had led to it.
    referrers: set[str] = field(default_factory=set)
    _links: dict[str, str | None] = field(default_factory=dict)
    # Of the rest among that: what this run could not read.
    _unread: set[str] = field(default_factory=set)
    # Whose robots.txt led to something that is due; where pages were read.
    _sites: set[str] = field(default_factory=set)
    _answered: set[str] = field(default_factory=set)
    _known: dict[str, bool] = field(default_factory=dict)

    def see(self, entry: SnapshotEntry) -> None:
        """Note something due: what led to it is to be looked for."""
        if entry.referrer is None:
            return
        self.referrers.add(entry.referrer)
        if entry.referrer.endswith(ROBOTS):
            self._sites.add(host_of(entry.referrer))

    def link(self, entry: SnapshotEntry) -> None:
        """Note what had led to something due, if that itself led to others."""
        if entry.url in self.referrers:
            self._links[entry.url] = entry.referrer

    def pass_by(self, entry: SnapshotEntry) -> None:
        """Note something that stands in any case."""
        if entry.crawl != self.run.id:
            if entry.url in self.referrers:
                self._unread.add(entry.url)
        elif self._sites and entry.page:
            site = host_of(entry.url)
            if site in self._sites:
                self._answered.add(site)

    def stands(self, entry: SnapshotEntry) -> bool:
        """Whether something due is left as it is, because what led to it could not be read."""
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
        if url.endswith(ROBOTS):  # never recorded; where a page was read, it was, too
            return host_of(url) not in self._answered
        return said_of(self.run.crawl.rules, url).record is False

    def row(self, entry: SnapshotEntry) -> list[Any] | None:
        """Say that something due is deleted; None for what is no page."""
        return deleted(self.run, entry, self.run.crawl.finished_at_ms or 0)
