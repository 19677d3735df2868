"""JSON documents about runs for the browser: state, history, settings.

Running crawls are read once for all browser tabs. The API and a crawl's counters have no history.
The chart therefore uses samples taken here. For the time before the first sample, the chart uses
page records, which have the time of each URL.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from orbweaver.api.problems import Refused
from orbweaver.control.definition_keys import BY_PATH
from orbweaver.control.edits import EDITABLE
from orbweaver.control.progress.status import (
    WORKING,
    ProgressMeter,
    StatusReading,
    as_json,
    found_nothing_new,
)
from orbweaver.frontier.retrying import closing
from orbweaver.model.amounts import span
from orbweaver.model.value import value_class

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
CRAWLS_MAX = METERS_MAX = 200
# When a run has `SAMPLES_MAX` samples, every second one is dropped. So the samples always cover the
# whole time. The history from page records has at most `PAST_MAX` points.
SAMPLES_MAX, PAST_MAX = 400, 200

# A crawl in the form of `orbweaver status --json`.
Shown: TypeAlias = Mapping[str, Any]
Sample: TypeAlias = tuple[int, int, int, int, int]


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


@value_class
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


@value_class
class CrawlRead:
    """A crawl as it was read at one moment. `shown` is its JSON form."""

    crawl: Crawl
    shown: Shown
    # True if the crawl ended without a request, because earlier runs had requested all its URLs.
    nothing_new: bool = False
    # Texts about URLs that wait for a retry or a response.
    waiting: tuple[str, ...] = ()


Look: TypeAlias = Callable[[str], Awaitable[CrawlRead]]


class MeteredReadings:
    """Reads crawls in the form of `orbweaver status --json`, and measures the speed of each."""

    def __init__(self, read: Callable[[str], Awaitable[StatusReading]]) -> None:
        self._read = read
        self._meters: OrderedDict[str, ProgressMeter] = OrderedDict()

    async def read(self, crawl: str) -> CrawlRead:
        reading = await self._read(crawl)
        meter = self._meters.setdefault(reading.status.crawl.id, ProgressMeter())
        self._meters.move_to_end(reading.status.crawl.id)
        if len(self._meters) > METERS_MAX:
            self._meters.popitem(last=False)
        view = meter.add(reading)
        return CrawlRead(
            crawl=reading.status.crawl,
            shown=as_json(view),
            nothing_new=found_nothing_new(view),
            waiting=reading.waiting,
        )


@dataclass(slots=True)
class Watched:
    """One watched crawl, with its last reading and its samples (oldest first)."""

    read: CrawlRead | None = None
    read_ms: int | None = None
    step_ms: int = 0
    samples: list[Sample] = field(default_factory=list)
    # Number of done URLs over time before the first reading, from page records. None until they are
    # read.
    past: list[tuple[int, int]] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def last(self) -> CrawlRead:
        """The last reading. Raises LookupError before the first one."""
        if self.read is None:
            raise LookupError("the crawl was not looked at yet")
        return self.read

    def add(self, read: CrawlRead) -> None:
        self.read, shown = read, read.shown
        outcomes = shown["outcomes"]
        pages = outcomes["fetched"] + outcomes["unchanged"]
        sample = (shown["at_ms"], shown["claimed"], shown["done"], pages, outcomes["failed"])
        if self.samples and sample[0] - self.samples[-1][0] < self.step_ms:
            return
        if self.samples and shown["state"] == "finished" and sample[1:] == self.samples[-1][1:]:
            return
        self.samples.append(sample)
        if len(self.samples) > SAMPLES_MAX:
            self.samples = self.samples[::2]
            span_ms = self.samples[-1][0] - self.samples[0][0]
            self.step_ms = span_ms // len(self.samples)


def past_of(done_ms: list[int], until_ms: int) -> list[tuple[int, int]]:
    """Return the number of done URLs over time before `until_ms`, in at most `PAST_MAX` steps."""
    earlier = sorted(at_ms for at_ms in done_ms if at_ms < until_ms)
    step = max(1, -(-len(earlier) // PAST_MAX))
    found = [(at_ms, number) for number, at_ms in enumerate(earlier, 1) if number % step == 0]
    if earlier and found[-1][1] != len(earlier):
        found.append((earlier[-1], len(earlier)))
    return found


class CrawlWatcher:
    """Reads each crawl at most once in `poll_ms`, however many browser tabs show it."""

    def __init__(self, look: Look, now_ms: Callable[[], int], poll_ms: int) -> None:
        self._look = look
        self._now_ms = now_ms
        self._poll_ms = poll_ms
        self._watched: OrderedDict[str, Watched] = OrderedDict()

    async def read(self, crawl: str) -> Watched:
        """Return a crawl with a reading at most `poll_ms` old. Raises the errors of `look`."""
        watched = self._watched.setdefault(crawl, Watched())
        self._watched.move_to_end(crawl)
        if len(self._watched) > CRAWLS_MAX:
            self._watched.popitem(last=False)
        async with watched.lock:
            read_ms = watched.read_ms
            if read_ms is None or self._now_ms() - read_ms >= self._poll_ms:
                watched.add(await self._look(crawl))
                watched.read_ms = self._now_ms()
        return watched

    def forget(self, crawl: str) -> None:
        if (watched := self._watched.get(crawl)) is not None:
            watched.read_ms = None
