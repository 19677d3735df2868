"""JSON documents about runs for the browser: state, history, settings.

The history consists of the console's earlier readings. The stateless API has no history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.api.problems import Refused
from orbweaver.console.crawl_watcher import CrawlRead, CrawlWatcher, Sample, past_of
from orbweaver.control.definition_keys import BY_PATH
from orbweaver.control.edits import EDITABLE
from orbweaver.control.progress.status import WORKING
from orbweaver.frontier.retrying import closing
from orbweaver.model.amounts import span

if TYPE_CHECKING:
    from orbweaver.control.crawl_control import Control
    from orbweaver.frontier.queues import Depths
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord
    from orbweaver.model.ports import Clock

LIVE_MAX, RUNS_SHOWN = 100, 50
LIST_MS = 60_000
# Reading 5,000 records costs a tenth of a cent on AWS.
RECORDS_READ_MAX = 5_000
URLS_SHOWN = 3
LATEST_MAX = 12
LATEST = ("url", "outcome", "reason", "status", "latency_ms", "fetched_at", "error")
STEERING = (["pause"], ["resume"], ["cancel"])


class ConsolePlace(Protocol):
    """The store or stack that the console shows."""

    @property
    def title(self) -> str: ...

    @property
    def billed(self) -> bool:
        """True if using the store or stack costs money."""

    async def idle_workers(self, crawl: Crawl | None = None) -> str | None:
        """Return a warning if certainly no worker runs, else None.

        If `crawl` is given, the warning names commands for it.
        """

    async def depths(self) -> Depths | None:
        """Return the number of queued messages. None: permission is missing."""

    async def workers(self) -> Mapping[str, str] | None:
        """Return the state of each queue's event source, or None for a store without one."""

    async def alarms(self) -> list[dict[str, Any]] | None:
        """List alarms, raised alarms first. None: permission is missing."""

    async def switch(self, *, on: bool) -> Mapping[str, str] | None:
        """Switch workers and return their states, or None for a store, which has no switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRuns:
    """Reads and describes runs as JSON objects for the browser."""

    control: Control
    watching: CrawlWatcher
    where: ConsolePlace
    clock: Clock
    # Reads the latest records of a crawl. A stack cannot read them in this order.
    newest: Callable[[str, int], list[PageRecord]] | None = None
    # By crawl id: when the runs of the crawl's name were listed, and their ids.
    _listed: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def discard_reading(self, method: str, path: str) -> None:
        """Discard the cached reading of a run if this API request may have changed it."""
        match path.split("/"):
            case ["", "crawls", crawl, *rest] if method == "PATCH" or rest in STEERING:
                self.watching.forget(crawl)

    async def live(self, crawls: list[str]) -> dict[str, Any]:
        """Return the progress of several crawls in the form of `orbweaver status --json`."""
        if not 0 < len(crawls) <= LIVE_MAX:
            raise Refused(400, f"give 1 to {LIVE_MAX} crawls")
        found = await asyncio.gather(*map(self.watching.read, crawls))
        shown = {crawl: one.last.shown for crawl, one in zip(crawls, found, strict=True)}
        return {"billed": self.where.billed, "crawls": shown}

    async def progress(self, crawl_id: str) -> dict[str, Any]:
        """Return a crawl's progress, history, settings and latest pages."""
        watched = await self.watching.read(crawl_id)
        crawl = watched.last.crawl
        if watched.past is None:
            watched.past = []  # only one of several tabs reads it
            watched.past = await self._past(crawl, watched.samples[0])
        return {
            "shown": watched.last.shown,
            "samples": watched.samples,
            "past": watched.past,
            "finished_ms": crawl.finished_at_ms,
            "started_ms": crawl.started_at_ms,
            "paused_ms": crawl.paused_ms,
            "settings": settings_of(crawl),
            "references": crawl.references[:URLS_SHOWN],
            "references_more": max(0, len(crawl.references) - URLS_SHOWN),
            "runs": await self._runs(crawl),
            "latest": [
                {name: getattr(record, name) for name in LATEST}
                for record in (self.newest(crawl.id, LATEST_MAX) if self.newest else ())
            ],
            "notice": await self._notice(watched.last),
            "waiting": watched.last.waiting,
        }

    async def _notice(self, read: CrawlRead) -> str | None:
        if read.crawl.state in WORKING:
            return await self.where.idle_workers()
        return why_nothing(read.crawl) if read.nothing_new else None

    async def _runs(self, crawl: Crawl) -> list[str]:
        """List the runs of a crawl's name, newest first. Cached, because it reads a table."""
        now_ms = self.clock.now_ms()
        known = self._listed.get(crawl.id)
        if known is None or now_ms - known[0] >= LIST_MS:
            # A retry requests only a few URLs, so comparing with it would mislead.
            names = [
                one.id
                for one in await self.control.crawls()
                if one.name == crawl.name and (one.retry_of is None or one.id == crawl.id)
            ]
            known = self._listed[crawl.id] = (now_ms, names[:RUNS_SHOWN])
        return known[1]

    async def _past(self, crawl: Crawl, first: Sample) -> list[tuple[int, int]]:
        """Return the history before the sample `first`, or [] if the run has too many records."""
        if first[2] > RECORDS_READ_MAX:
            return []
        async with closing(self.control.pages(crawl, limit=RECORDS_READ_MAX)) as records:
            done_ms = [record.fetched_at async for record in records]
        return past_of(done_ms, first[0])


def why_nothing(crawl: Crawl) -> str:
    """Explain why a run requested no URL, and how to crawl anyway."""
    said, window = "No URL was requested: ", f"within the window of {span(crawl.window_s)}"
    again = 'To request all URLs again, set dedup.window = "0s".'
    if crawl.resumes and not crawl.pages_own:
        limit = f"{crawl.resumes[0]} used up the limit of {crawl.pages_max:,} pages {window}"
        return f"{said}{limit}. A higher limits.pages continues with the rest. {again}"
    if crawl.resumes:
        return (
            f"{said}the limits and scope of this run exclude all URLs that"
            f" {crawl.resumes[0]} left over."
        )
    seeds = "every seed" if len(crawl.seeds) > 1 else "the seed"
    return f"{said}an earlier run of {crawl.name} requested {seeds} {window}. {again}"


def settings_of(crawl: Crawl) -> dict[str, Any]:
    """Return the editable settings of a crawl by key, without header values."""
    found: dict[str, Any] = {}
    for path in EDITABLE:
        key = BY_PATH[path]
        value = getattr(crawl, key.part)
        if not key.secret:
            found[path] = None if value is None else key.codec.write(value)
    return found
