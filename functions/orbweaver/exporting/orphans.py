"""Pages that a run could have asked for and did not: deleted, or below unread ones.

By what had led to each of them (exporting/changes.py). That one was read, or is gone itself:
nothing leads here any more. It could not be read: it may still lead here. It was not asked for
either: what is so of that one is so of this one. A circle that nothing else leads to is gone.

Memory goes with the number of different referrers, which are far fewer than pages; an exporter with
more of them than it can hold says of nothing that it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orbweaver.exporting.changes import EndedRun, deleted
from orbweaver.exporting.snapshot import SnapshotEntry
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import said_of

ROBOTS = "/robots.txt"


@dataclass(slots=True, kw_only=True)
class Orphans:
    """Decides on what was due and not asked for.

    First everything that is due is `see`n, then each of that is `link`ed and everything else that
    is known passed by; then `stands` says of each.
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
