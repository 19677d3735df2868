"""Control of crawls: start, pause, resume, cancel; and look at.

Everything here may be repeated after a crash, with the same effect:

    start    create the crawl if absent, then send its seeds; their ids follow from the crawl's id
    resume   set it running, so that nothing more is parked; send what is parked; then forget it
    cancel   set it stopping; have it closed soon; send what is parked, so that it drains till then

A message that is sent twice finds its ledger and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.control.continuation import Continue, Decision, Refuse, Replace, Start, decide
from orbweaver.control.crawl_queries import Lookout, Status
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.definition_keys import BY_PATH
from orbweaver.control.edits import amended, shared_out
from orbweaver.control.retry_failures import Retrier
from orbweaver.control.spec_checks import crawl_of, keyed
from orbweaver.control.webhook import refusal_of
from orbweaver.frontier import refetch
from orbweaver.frontier.envelope import Newer, WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Close, Pack, Past, SeedsMessage, decode, past_of, seeds_of
from orbweaver.frontier.resumption import resumed, within
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.yield_drop import before, pages_of
from orbweaver.model.crawl import Counts, Crawl, State, Stop, moved, run_id
from orbweaver.model.errors import Conflict, ControlError, UnknownCrawl
from orbweaver.model.redacted_names import closed_by
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls, Packs, Pages
    from orbweaver.frontier.queues import Queue
    from orbweaver.model.ports import Clock
    from orbweaver.politeness.ports import Hosts

__all__ = ["Conflict", "Control", "ControlError", "Status", "UnknownCrawl", "same_work"]

# Parked packs are sent in steps, so that a crash repeats one step and not all of them.
RELEASE_STEP = 100
# A cancelled crawl ends this much later, whatever the queue still holds back.
CLOSE_S = 35
# The same for a crawl that no worker is busy with, and how long ending it may take.
CLOSE_AT_ONCE_S = 2
END_S, END_POLL_S = 60.0, 0.2
# Counters of earlier runs that are read at once.
COUNTERS_AT_ONCE = 4
# Each time, another operator's edit came first.
EDIT_TRIES = 10


class Control(Lookout):
    """Starts and steers crawls, and shows them."""

    def __init__(
        self,
        *,
        queue: Queue,
        crawls: Crawls,
        packs: Packs,
        pages: Pages,
        hosts: Hosts,
        clock: Clock,
        settings: Settings,
        underway: Callable[[str], Counts] | None = None,
    ) -> None:
        super().__init__(
            crawls=crawls,
            pages=pages,
            hosts=hosts,
            clock=clock,
            settings=settings,
            underway=underway,
        )
        self._queue = queue
        self._packs = packs

    # --- start ------------------------------------------------------------------------------

    async def start(
        self, plan: CrawlSpec, idempotency_key: str | None = None, *, goes_on: bool = True
    ) -> Crawl:
        """Start what a plan asks for, or finish starting it; raises PlanError and Conflict."""
        return (await self.begin(plan, idempotency_key, goes_on=goes_on))[0]

    async def begin(
        self, plan: CrawlSpec, idempotency_key: str | None = None, *, goes_on: bool = True
    ) -> tuple[Crawl, bool]:
        """Start what a plan asks for, and say whether that began a crawl or found it begun.

        The same key, given again or at once, means the same crawl. It goes on
        from earlier runs of its name that left something out, unless that is not wanted.
        """
        if idempotency_key is not None:
            plan = keyed(plan, idempotency_key)
        crawl = crawl_of(plan, self._clock.now_ms())
        self.check(crawl)
        others = await self._crawls.list()
        if plan.id is None:
            crawl = renamed(crawl, others)
        crawl = await self._compared(crawl, others)
        if goes_on:
            crawl = await self._resumed(crawl, others)
        if await self._crawls.create(crawl):
            await self._send_seeds(crawl)
            return crawl, True
        standing = await self._crawls.get(crawl.id)
        if standing is None or not same_work(standing, crawl):
            raise Conflict(
                f"the id {crawl.id!r} belongs to a crawl with other seeds or options: give"
                " another name or id, or start it again"
            )
        await self._send_missing_seeds(standing)
        return standing, False

    def check(self, crawl: Crawl) -> None:
        """Refuse a crawl that begins at the stack, or an unusable webhook.

        Raises ControlError.
        """
        allowed = self._settings.allowed
        problem = closed_by(crawl.references, allowed) if allowed.networks else None
        if problem is not None:
            raise ControlError(f"seeds: {problem}")
        if crawl.webhook is not None:
            signing = bool(self._settings.webhook_secret)
            why = refusal_of(crawl.webhook, signing=signing, allowed=allowed)
            if why is not None:
                raise ControlError(f"notify.webhook: {why}")

    async def _compared(self, crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
        """Note what the run before came to, which may be long forgotten when this one ends."""
        run = before(crawl, others)
        if run is None:
            return crawl
        return replace(crawl, pages_before=pages_of((await self._crawls.counters(run)).total))

    async def _resumed(self, crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
        """Let a run continue earlier ones of its name, if these left anything out for it."""
        runs = within(crawl, others, self._settings.ledger_retention_s)
        return resumed(crawl, runs, await self._totals(runs))

    async def _totals(self, runs: Sequence[Crawl]) -> dict[str, Counts]:
        counters = await all_of((self._crawls.counters(run) for run in runs), COUNTERS_AT_ONCE)
        return {run.id: read.total for run, read in zip(runs, counters, strict=True)}

    async def decide(self, plan: CrawlSpec, *, busy: bool) -> Decision:
        """Decide what a crawl command does about unfinished runs; see `control/continuation.py`."""
        wanted = crawl_of(plan, self._clock.now_ms())
        return decide(wanted, await self._crawls.list(), busy=busy)

    async def take_up(self, plan: CrawlSpec, decision: Decision) -> Crawl:
        """Carry a decision out: the run that does the work. Raises PlanError and Conflict.

        A run that is replaced needs a worker to end.
        """
        match decision:
            case Continue(run=run, changes=changes):
                if changes:
                    await self._take_over(run, crawl_of(plan, self._clock.now_ms()), changes)
                return await self.resume(run.id)
            case Replace(run=run):
                await self._end(run)
            case Refuse(run=run, keys=keys):
                raise Conflict(
                    f"{run.id} is running with another {', '.join(keys)}: wait until it has ended,"
                    f" end it with `orbweaver cancel {run.id}`, or give --name for another crawl"
                )
            case Start():
                pass
        return await self.start(plan)

    async def _take_over(
        self, run: Crawl, wanted: Crawl, changes: Iterable[tuple[str, Any, Any]]
    ) -> None:
        """Edit a run so that it has the limits and the pace of another crawl."""
        parts = [BY_PATH[path].part for path, _, _ in changes]
        options = {part: getattr(wanted, part) for part in parts}
        await self._amend(run, lambda crawl: replace(crawl, **options))

    async def _end(self, run: Crawl) -> None:
        """Cancel a run that no worker is busy with, and wait until it has ended."""
        if run.live:
            await self.cancel(run.id, close_s=CLOSE_AT_ONCE_S)
        for _ in range(round(END_S / END_POLL_S)):
            crawl = await self._crawls.get(run.id)
            if crawl is None or crawl.state is State.FINISHED:
                return
            await self._clock.sleep(END_POLL_S)
        raise Conflict(f"{run.id} was cancelled and has not ended yet: try again in a minute")

    async def _send_seeds(self, crawl: Crawl) -> None:
        # As of the start, so that every sender sends the same.
        at_ms = crawl.started_at_ms
        seeds = seeds_of(crawl.id, crawl.id, crawl.references, at_ms=at_ms, planned=True)
        pasts = [past_of(crawl.id, crawl.id, Past(run=run), run, at_ms) for run in crawl.resumes]
        await self._queue.send_seeds([*seeds, *pasts], express=crawl.express)

    async def _send_missing_seeds(self, crawl: Crawl) -> None:
        """Send a crawl's seeds again, unless its counters say that all of them were taken in."""
        if crawl.continuous or crawl.state is State.FINISHED:
            return
        counters = await self._crawls.counters(crawl)
        if counters.seeds_missing(crawl):
            await self._send_seeds(crawl)

    async def retry(
        self, which: str, *, reasons: Sequence[str] = (), host: str | None = None
    ) -> tuple[Crawl, ...]:
        """Have what failed in a run asked for again, in new runs: none where nothing failed.

        What is being asked for again by runs that have not ended is left to them; those runs are
        returned, too.
        """
        retrier = Retrier(
            lookout=self, crawls=self._crawls, clock=self._clock, send=self._send_missing_seeds
        )
        return await retrier.retry(await self.requesting(which), reasons, host)

    async def refetch(self, plan: CrawlSpec) -> tuple[Crawl, ...]:
        """Have pages asked for again that earlier runs have without text or bodies wanted now."""
        crawl = crawl_of(plan, self._clock.now_ms())
        self.check(crawl)
        runs = refetch.runs_of(crawl, await self._crawls.list(), self._settings.ledger_retention_s)
        retrier = Retrier(
            lookout=self, crawls=self._crawls, clock=self._clock, send=self._send_missing_seeds
        )
        return await retrier.refetch(crawl, runs)

    async def lacking(self, crawl: Crawl) -> int:
        """Count, about, the pages that earlier runs have without what a crawl wants to store."""
        runs = refetch.runs_of(crawl, await self._crawls.list(), self._settings.ledger_retention_s)
        if not any(refetch.wants_more(crawl, run) for run in runs):
            return 0
        return refetch.count_of(crawl, runs, await self._totals(runs))

    # --- edit -------------------------------------------------------------------------------

    async def edit(
        self, which: str, changes: Mapping[str, object], lines: str | None = None
    ) -> Crawl:
        """Change limits, delay, concurrency, patterns or rules of a crawl that has not ended.

        `changes` is the document of a definition (see `control/edits.py`), `lines` what the file
        holds that it may name as `seeds_file`. Raises DefinitionError and Conflict.
        """
        return await self._amend(
            await self.find(which), lambda crawl: amended(crawl, changes, lines)
        )

    async def _amend(self, crawl: Crawl, change: Callable[[Crawl], Crawl]) -> Crawl:
        for _ in range(EDIT_TRIES):
            if not crawl.live:
                raise Conflict(f"the crawl {crawl.id!r} is {crawl.state}: {_FIX[crawl.state]}")
            wanted = change(crawl)
            if wanted.pages_max != crawl.pages_max:
                wanted = shared_out(wanted, crawl, await self._crawls.counters(crawl))
            if wanted == crawl:
                return crawl
            if await self._crawls.edit(wanted, crawl):
                return replace(wanted, edits=crawl.edits + 1)
            crawl = await self._crawls.get(crawl.id) or crawl
        raise Conflict(f"the crawl {crawl.id!r} is being edited by others: look at it, try again")

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

    async def cancel(self, which: str, close_s: int = CLOSE_S) -> Crawl:
        """End a crawl: workers drain its queue without requests, for `close_s` seconds."""
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
        close = Close(crawl=crawl.id, at_ms=self._clock.now_ms())
        await self._queue.send_close(close, close_s)
        await self._release(crawl)
        return crawl

    async def _move(
        self, crawl: Crawl, state: State, *, allowed: Sequence[State], stop: Stop | None = None
    ) -> Crawl:
        wanted = moved(crawl, state, stop, self._clock.now_ms())
        if not await self._crawls.move(wanted, allowed):
            standing = await self._crawls.get(crawl.id) or crawl
            raise Conflict(f"the crawl {crawl.id!r} is {standing.state}: {_FIX[standing.state]}")
        return wanted

    async def _release(self, crawl: Crawl) -> None:
        """Send what is parked, and seeds that never arrived, then forget what was parked."""
        await self._send_missing_seeds(crawl)
        parked = list((await self._packs.parked(crawl.id)).items())
        for start in range(0, len(parked), RELEASE_STEP):
            some = dict(parked[start : start + RELEASE_STEP])
            await self._send_again(crawl, some)
            await self._packs.unpark(crawl.id, list(some))

    async def _send_again(self, crawl: Crawl, bodies: Mapping[str, str]) -> None:
        read = {body: decode(body) for body in bodies.values()}
        messages = list(read.values())
        packs = [OutgoingPack(pack=message) for message in messages if isinstance(message, Pack)]
        seeds = [message for message in messages if isinstance(message, SeedsMessage)]
        if packs:
            await self._queue.send(packs, express=crawl.express)
        if seeds:
            await self._queue.send_seeds(seeds, express=crawl.express)
        now_ms = self._clock.now_ms()
        newer = [
            WaitingMessage(body=body, crawl=crawl.id, since_ms=now_ms)
            for body, message in read.items()
            if isinstance(message, Newer)
        ]
        if newer:
            await self._queue.hold(newer, express=crawl.express)


_FIX = {
    State.RUNNING: "pause it or cancel it",
    State.PAUSED: "resume it or cancel it",
    State.STOPPING: "it ends once its queue has drained",
    State.FINISHED: "start it again",
}


def renamed(crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
    """Give a crawl the next id where another of the same second has its own, or has ended."""
    taken = {other.id: other for other in others}
    at_ms = crawl.started_at_ms
    while (other := taken.get(crawl.id)) and not (other.live and same_work(other, crawl)):
        at_ms += 1000
        crawl = replace(crawl, id=run_id(crawl.name, at_ms))
    return crawl


def same_work(one: Crawl, other: Crawl) -> bool:
    """Whether two crawls were asked for alike: all but id, time and state, and later edits."""
    return one.work == other.work
