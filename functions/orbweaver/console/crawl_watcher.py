"""Read running crawls once for all browser tabs, and keep samples for the chart.

A crawl's counters have no history. The chart therefore uses samples taken here. For the time before
the first sample, the chart uses page records, which have the time of each URL.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.control.progress.status import (
    ProgressMeter,
    StatusReading,
    as_json,
    found_nothing_new,
)

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl

CRAWLS_MAX = METERS_MAX = 200
# When a run has `SAMPLES_MAX` samples, every second one is dropped. So the samples always cover the
# whole time. The history from page records has at most `PAST_MAX` points.
SAMPLES_MAX, PAST_MAX = 400, 200

# A crawl in the form of `orbweaver status --json`.
Shown: TypeAlias = Mapping[str, Any]
Sample: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
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
