"""What a person may do with crawls: start, look at, pause, resume, cancel.

Everything here may be repeated after a crash, with the same effect:

    start    create the crawl if absent, then send its seeds; their ids follow from the crawl's id
    resume   set it running, so that nothing more is parked; send what is parked; then forget it
    cancel   set it stopping; send what is parked, so that it drains as everything else does

A message that is sent twice finds its ledger and ends.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from orbweaver.core.crawl import State, Stop
from orbweaver.core.export import days_between
from orbweaver.core.journal import Letter
from orbweaver.core.message import Pack, Seeds, decode, seeds_of
from orbweaver.core.plan import crawl_of
from orbweaver.core.record import shard_of
from orbweaver.core.url import canonicalize, redacted, url_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orbweaver.core.crawl import Books, Crawl
    from orbweaver.core.outcome import Outcome
    from orbweaver.core.plan import Plan
    from orbweaver.core.record import PageRecord
    from orbweaver.ports import Clock, Crawls, Packs, Pages, Queue
    from orbweaver.settings import Settings

T = TypeVar("T")
# Parked packs are sent in steps, so that a crash repeats one step and not all of them.
RELEASE_STEP = 100
LOOKUPS_AT_ONCE = 16


class ControlError(Exception):
    """What was asked cannot be done; the text says why, and what can."""


class UnknownCrawl(ControlError):
    """No crawl has this id or name."""


class Conflict(ControlError):
    """The crawl is not in a state for that, or its id belongs to another crawl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A crawl and its books, as read at one moment."""

    crawl: Crawl
    books: Books
    at_ms: int

    @property
    def elapsed_ms(self) -> int:
        """How long it ran, or has been running."""
        end_ms = self.crawl.finished_at_ms
        return max(0, (self.at_ms if end_ms is None else end_ms) - self.crawl.started_at_ms)


class Control:
    """Starts, shows and steers crawls."""

    def __init__(
        self,
        *,
        queue: Queue,
        crawls: Crawls,
        packs: Packs,
        pages: Pages,
        clock: Clock,
        settings: Settings,
    ) -> None:
        """Take the ports."""
        self._queue = queue
        self._crawls = crawls
        self._packs = packs
        self._pages = pages
        self._clock = clock
        self._settings = settings

    # --- start ------------------------------------------------------------------------------

    async def start(self, plan: Plan) -> Crawl:
        """Start what a plan asks for, or finish starting it; raises PlanError and Conflict."""
        crawl = crawl_of(plan, self._clock.now_ms())
        if await self._crawls.create(crawl):
            await self._send_seeds(crawl)
            return crawl
        standing = await self._crawls.get(crawl.id)
        if standing is None or not same_work(standing, crawl):
            raise Conflict(
                f"the id {crawl.id!r} belongs to a crawl with other seeds or options: give"
                " another name or id, or start it again in a second"
            )
        await self._send_missing_seeds(standing)
        return standing

    async def unfinished(self, plan: Plan) -> Crawl | None:
        """Find the newest run of a plan's name that has not ended, whatever its options."""
        name = crawl_of(plan, self._clock.now_ms()).name
        crawls = await self._crawls.list()
        return next((crawl for crawl in crawls if crawl.name == name and crawl.live), None)

    async def _send_seeds(self, crawl: Crawl) -> None:
        # As of the start, so that whoever sends them sends the same.
        at_ms = crawl.started_at_ms
        seeds = seeds_of(crawl.id, crawl.id, crawl.references, at_ms=at_ms, planned=True)
        await self._queue.send_seeds(seeds, express=crawl.express)

    async def _send_missing_seeds(self, crawl: Crawl) -> None:
        """Send a crawl's seeds again, unless its books say that all of them were taken in."""
        if crawl.continuous or crawl.state is State.FINISHED:
            return
        books = await self._crawls.books(crawl)
        if books.total.get("seeds", 0) < crawl.seeds_planned:
            await self._send_seeds(crawl)

    # --- look -------------------------------------------------------------------------------

    async def find(self, which: str | None = None) -> Crawl:
        """Find a crawl by its id, or the newest one of a name, or the newest one of all."""
        if which is not None and (crawl := await self._crawls.get(which)) is not None:
            return crawl
        crawls = await self._crawls.list()
        found = next((crawl for crawl in crawls if which in (None, crawl.name)), None)
        if found is not None:
            return found
        if which is None:
            raise UnknownCrawl("there is no crawl yet")
        known = [word for crawl in crawls for word in (crawl.id, crawl.name)]
        near = difflib.get_close_matches(which, known, n=1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise UnknownCrawl(f"no crawl has the id or name {redacted(which)!r}{hint}")

    async def crawls(self) -> tuple[Crawl, ...]:
        """List all crawls, newest first."""
        return await self._crawls.list()

    async def status(self, which: str | None = None) -> Status:
        """Read a crawl (see `find`) and its books."""
        crawl = await self.find(which)
        books = await self._crawls.books(crawl)
        return Status(crawl=crawl, books=books, at_ms=self._clock.now_ms())

    async def pages(
        self, crawl: Crawl, *, outcome: Outcome | None = None, limit: int | None = None
    ) -> AsyncIterator[PageRecord]:
        """Read a crawl's page records, day by day, in no order within a day."""
        left = limit
        for day in self._days(crawl):
            for shard in range(self._pages.shards):
                async with _closing(self._pages.read_shard(day, shard, crawl=crawl.id)) as rows:
                    async for _, record in rows:
                        if left is not None and left <= 0:
                            return
                        if outcome in (None, record.outcome):
                            left = None if left is None else left - 1
                            yield record

    async def page(self, url: str, crawl: Crawl | None = None) -> tuple[PageRecord, ...]:
        """Find the records of a URL on the newest day that has any, newest first.

        Looks in one crawl, or in all of them; raises ValueError for what is no URL.
        """
        canonicalize(url)  # or ValueError
        crawls = (crawl,) if crawl is not None else await self._crawls.list()
        owners: dict[str, list[Crawl]] = {}
        for owner in crawls:
            for day in self._days(owner):
                owners.setdefault(day, []).append(owner)
        for day in sorted(owners, reverse=True):
            found = await self._look_up(url, day, owners[day])
            if found:
                return tuple(sorted(found, key=lambda record: -record.fetched_at))
        return ()

    async def _look_up(self, url: str, day: str, crawls: Sequence[Crawl]) -> list[PageRecord]:
        permits = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def one(crawl: Crawl) -> PageRecord | None:
            try:
                wanted = canonicalize(url, tracking=crawl.stripped)
            except ValueError:  # too long with all its parameters
                return None
            digest = url_hash(wanted)
            shard = shard_of(digest, self._pages.shards)
            # Keys are read in order from behind one that stands just before the wanted key.
            before = f"{crawl.id}#{digest[:-1]}"
            rows = self._pages.read_shard(day, shard, after=before, crawl=crawl.id)
            async with permits, _closing(rows):
                async for key, record in rows:
                    if key >= f"{crawl.id}#{digest}":
                        return record if record.url == wanted else None
            return None

        found = await asyncio.gather(*(one(crawl) for crawl in crawls))
        return [record for record in found if record is not None]

    def _days(self, crawl: Crawl) -> tuple[str, ...]:
        """Name the days on which a crawl can have records that are still kept."""
        now_ms = self._clock.now_ms()
        oldest_ms = now_ms - self._settings.page_retention_s * 1000
        last_ms = now_ms if crawl.finished_at_ms is None else crawl.finished_at_ms
        return days_between(max(crawl.started_at_ms, oldest_ms), last_ms)

    # --- steer ------------------------------------------------------------------------------

    async def pause(self, which: str) -> Crawl:
        """Have a crawl set its packs aside instead of asking for them."""
        crawl = await self.find(which)
        return await self._move(crawl, State.PAUSED, allowed=(State.RUNNING, State.PAUSED))

    async def resume(self, which: str) -> Crawl:
        """Have a paused crawl go on; repeats what a resume that died has left undone."""
        crawl = await self.find(which)
        crawl = await self._move(crawl, State.RUNNING, allowed=(State.PAUSED, State.RUNNING))
        await self._release(crawl)
        return crawl

    async def cancel(self, which: str) -> Crawl:
        """End a crawl: what is queued drains without being asked for."""
        crawl = await self.find(which)
        if crawl.continuous:
            raise Conflict(
                f"the crawl {crawl.id!r} has no end: it can be paused, but not cancelled"
            )
        crawl = await self._move(
            crawl,
            State.STOPPING,
            allowed=(State.RUNNING, State.PAUSED, State.STOPPING),
            stop=Stop.CANCELLED,
        )
        await self._release(crawl)
        return crawl

    async def _move(
        self, crawl: Crawl, state: State, *, allowed: Sequence[State], stop: Stop | None = None
    ) -> Crawl:
        moved = replace(crawl, state=state, stop=stop)
        if not await self._crawls.move(moved, allowed):
            standing = await self._crawls.get(crawl.id) or crawl
            raise Conflict(f"the crawl {crawl.id!r} is {standing.state}: {_FIX[standing.state]}")
        return moved

    async def _release(self, crawl: Crawl) -> None:
        """Send what is parked, and seeds that never arrived, then forget what was parked."""
        await self._send_missing_seeds(crawl)
        parked = list((await self._packs.parked(crawl.id)).items())
        for start in range(0, len(parked), RELEASE_STEP):
            some = dict(parked[start : start + RELEASE_STEP])
            await self._send_again(crawl, some)
            await self._packs.unpark(crawl.id, list(some))

    async def _send_again(self, crawl: Crawl, bodies: Mapping[str, str]) -> None:
        messages = [decode(body) for body in bodies.values()]
        packs = [Letter(pack=message) for message in messages if isinstance(message, Pack)]
        seeds = [message for message in messages if isinstance(message, Seeds)]
        if packs:
            await self._queue.send(packs, express=crawl.express)
        if seeds:
            await self._queue.send_seeds(seeds, express=crawl.express)


@asynccontextmanager
async def _closing(rows: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """End a reading that is left in its middle at once, and not when it is found unused."""
    try:
        yield rows
    finally:
        if isinstance(rows, AsyncGenerator):
            await rows.aclose()


_FIX = {
    State.RUNNING: "pause it or cancel it",
    State.PAUSED: "resume it or cancel it",
    State.STOPPING: "it ends once its queue has drained",
    State.FINISHED: "start it again",
}


# What is of a run and not of its work.
_OF_THE_RUN = ("id", "started_at_ms", "state", "stop", "finished_at_ms", "announced")


def same_work(one: Crawl, other: Crawl) -> bool:
    """Whether two crawls ask for the same: all but id, time and state."""
    return one == replace(other, **{name: getattr(one, name) for name in _OF_THE_RUN})
