"""Start, pause, resume, cancel, edit and retry crawls.

Every operation can be repeated after a crash with the same effect. If a message is sent twice, both
copies have the same id, so workers process it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.control.continuation import Continue, Decision, Refuse, Replace, Start, decide
from orbweaver.control.crawl_queries import ControlPorts, CrawlQueries, Status
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import crawl_of, keyed
from orbweaver.control.webhook import refusal_of
from orbweaver.frontier import refetch
from orbweaver.frontier.envelope import Newer, WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Close, Pack, Past, SeedsMessage, decode, past_of, seeds_of
from orbweaver.frontier.resumption import resumed, runs_to_continue
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.yield_drop import pages_of, run_to_compare
from orbweaver.model.auth import problem_at_place
from orbweaver.model.crawl import Counts, Crawl, State, Stop, run_id, with_state
from orbweaver.model.errors import Conflict, ControlError, UnknownCrawl
from orbweaver.model.named_origins import problem_with_own_port

if TYPE_CHECKING:
    from orbweaver.control.rerun import Retrier

__all__ = [
    "Conflict",
    "Control",
    "ControlError",
    "ControlPorts",
    "Status",
    "UnknownCrawl",
    "same_work",
]

# Number of parked packs (messages of a paused crawl) to send in one step. After a crash, only one
# step is repeated.
RELEASE_STEP = 100
# A cancelled crawl ends after this many seconds, even if some of its messages are still invisible.
CLOSE_S = 35
# A cancelled crawl that no worker processes ends after `CLOSE_AT_ONCE_S`. A command waits `END_S`
# for the end, and checks every `END_POLL_S`.
CLOSE_AT_ONCE_S = 2
END_S, END_POLL_S = 60.0, 0.2
# Maximum number of concurrent reads of earlier runs' counters.
COUNTERS_AT_ONCE = 4
# Maximum number of attempts to store an edit while others edit the crawl.
EDIT_TRIES = 10


class Control(CrawlQueries):
    """Starts, edits, pauses, resumes, cancels and retries crawls."""

    def __init__(
        self, ports: ControlPorts, *, underway: Callable[[str], Counts] | None = None
    ) -> None:
        super().__init__(ports, underway=underway)
        self._queue = ports.queue
        self._packs = ports.packs
        self._refuse_without_proxies = ports.refuse_without_proxies

    # --- start ------------------------------------------------------------------------------

    async def start(
        self, plan: CrawlSpec, idempotency_key: str | None = None, *, goes_on: bool = True
    ) -> Crawl:
        return (await self.begin(plan, idempotency_key, goes_on=goes_on))[0]

    async def begin(
        self, plan: CrawlSpec, idempotency_key: str | None = None, *, goes_on: bool = True
    ) -> tuple[Crawl, bool]:
        """Start the crawl of a plan, or complete an interrupted start.

        The returned flag is False if the crawl existed already. Several calls with the same
        `idempotency_key` start one crawl, even at the same time. The run continues earlier runs of
        its name that left URLs out, unless `goes_on` is False.
        """
        if idempotency_key is not None:
            plan = keyed(plan, idempotency_key)
        crawl = crawl_of(plan, self._clock.now_ms())
        self.check(crawl)
        others = await self._crawls.list()
        if plan.id is None:
            crawl = with_unused_id(crawl, others)
        crawl = await self._compared(crawl, others)
        if goes_on:
            crawl = await self._resumed(crawl, others)
        await self._check_proxies(crawl)
        if await self._crawls.create(crawl):
            # Seed messages are sent after the crawl is stored, and their ids derive from the
            # crawl's id. So a repeated start has the same effect.
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
        """Raise ControlError for a seed at the stack, or an unusable webhook or login."""
        allowed = self._settings.fetching.allowed
        problem = problem_with_own_port(crawl.references, allowed) if allowed.networks else None
        if problem is not None:
            raise ControlError(f"seeds: {problem}")
        if crawl.webhook is not None:
            signing = bool(self._settings.names.webhook_secret)
            why = refusal_of(crawl.webhook, signing=signing, allowed=allowed)
            if why is not None:
                raise ControlError(f"notify.webhook: {why}")
        names = self._settings.names
        why = problem_at_place(crawl.auth, names.stack if names.hosts_table else None)
        if why is not None:
            raise ControlError(f"auth: {why}")

    async def _check_proxies(self, crawl: Crawl) -> None:
        """Raise ControlError if the workers lack the proxies that earlier runs used."""
        if self._refuse_without_proxies is not None and (
            why := await self._refuse_without_proxies(crawl)
        ):
            raise ControlError(why)

    async def _compared(self, crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
        """Copy the previous run's page count, because that run can expire before this run ends."""
        run = run_to_compare(crawl, others)
        if run is None:
            return crawl
        return replace(crawl, pages_before=pages_of((await self._crawls.counters(run)).total))

    async def _resumed(self, crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
        runs = runs_to_continue(crawl, others, self._settings.retention.ledger_retention_s)
        return resumed(crawl, runs, await self._totals(runs))

    async def _totals(self, runs: Sequence[Crawl]) -> dict[str, Counts]:
        counters = await all_of((self._crawls.counters(run) for run in runs), COUNTERS_AT_ONCE)
        return {run.id: read.total for run, read in zip(runs, counters, strict=True)}

    async def decide(self, plan: CrawlSpec, *, busy: Callable[[], bool]) -> Decision:
        """Decide how a crawl command treats unfinished runs (`control/continuation.py`).

        `busy` returns True if a worker of another process might be active. Raises ControlError if
        the workers lack the proxies of the run.
        """
        wanted = crawl_of(plan, self._clock.now_ms())
        others = await self._crawls.list()
        # A process registers before it starts a crawl. So it is known if its crawl is listed.
        decision = decide(wanted, others, busy=busy())
        await self._check_proxies(decision.run if isinstance(decision, Continue) else wanted)
        return decision

    async def execute(self, plan: CrawlSpec, decision: Decision, *, silent_ms: int = 0) -> Crawl:
        """Execute a decision and return the run that crawls. Raises PlanError and Conflict.

        A replaced run ends only if a worker is active. For `silent_ms` see `resume`.
        """
        match decision:
            case Continue(run=run, changes=changes):
                if changes:
                    await self._take_over(run, crawl_of(plan, self._clock.now_ms()), changes)
                return await self.resume(run.id, silent_ms=silent_ms)
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
        from orbweaver.control.definition_keys import BY_PATH

        parts = [BY_PATH[path].part for path, _, _ in changes]
        options = {part: getattr(wanted, part) for part in parts}
        await self._amend(run, lambda crawl: replace(crawl, **options))

    async def _end(self, run: Crawl) -> None:
        if run.live:
            await self.cancel(run.id, close_s=CLOSE_AT_ONCE_S)
        for _ in range(round(END_S / END_POLL_S)):
            crawl = await self._crawls.get(run.id)
            if crawl is None or crawl.state is State.FINISHED:
                return
            await self._clock.sleep(END_POLL_S)
        raise Conflict(f"{run.id} was cancelled and has not ended yet: try again in a minute")

    async def _send_seeds(self, crawl: Crawl) -> None:
        # The time of the crawl's start, so that repeated sends produce the same message.
        at_ms = crawl.started_at_ms
        seeds = seeds_of(crawl.id, crawl.id, crawl.references, at_ms=at_ms, planned=True)
        pasts = [past_of(crawl.id, crawl.id, Past(run=run), run, at_ms) for run in crawl.resumes]
        await self._queue.send_seeds([*seeds, *pasts], express=crawl.express)

    async def _send_missing_seeds(self, crawl: Crawl) -> None:
        """Send a crawl's seeds again, unless its counters show that all seeds were processed."""
        if crawl.continuous or crawl.state is State.FINISHED:
            return
        counters = await self._crawls.counters(crawl)
        if counters.seeds_missing(crawl):
            await self._send_seeds(crawl)

    async def retry(
        self, which: str, *, reasons: Sequence[str] = (), host: str | None = None
    ) -> tuple[Crawl, ...]:
        """Start runs that request the failed URLs of a run again. Returns () if no URL failed.

        Unfinished retries of these URLs are also returned. New runs do not contain their URLs.
        """
        crawl = await self.newest_requesting(which)
        await self._check_proxies(crawl)
        return await self._retrier().retry(crawl, reasons, host)

    async def refetch(self, plan: CrawlSpec) -> tuple[Crawl, ...]:
        """Start runs that request pages again of which the plan stores other content."""
        crawl = crawl_of(plan, self._clock.now_ms())
        self.check(crawl)
        await self._check_proxies(crawl)
        return await self._retrier().refetch(crawl, await self._runs_to_refetch(crawl))

    async def outdated_pages(self, plan: CrawlSpec) -> tuple[int, frozenset[str]]:
        """Return how many pages `refetch` would request, and the settings that differ."""
        crawl = crawl_of(plan, self._clock.now_ms())
        found, settings = await self._retrier().outdated(crawl, await self._runs_to_refetch(crawl))
        return (0 if found is None else len(found.depths)), settings

    async def _runs_to_refetch(self, crawl: Crawl) -> tuple[Crawl, ...]:
        kept_s = self._settings.retention.ledger_retention_s
        return refetch.runs_of(crawl, await self._crawls.list(), kept_s)

    def _retrier(self) -> Retrier:
        # Imported on use, because it is rarely needed at a cold start.
        from orbweaver.control.rerun import Retrier

        return Retrier(
            lookout=self, crawls=self._crawls, clock=self._clock, send=self._send_missing_seeds
        )

    # --- edit -------------------------------------------------------------------------------

    async def edit(
        self, which: str, changes: Mapping[str, object], lines: str | None = None
    ) -> Crawl:
        """Change limits, delay, concurrency, patterns or rules of a crawl that has not ended.

        `changes` is a definition document (see `control/edits.py`), `lines` the content of its
        `seeds_file`. Raises DefinitionError and Conflict.
        """
        from orbweaver.control.edits import apply_document

        return await self._amend(
            await self.find(which), lambda crawl: apply_document(crawl, changes, lines)
        )

    async def _amend(self, crawl: Crawl, change: Callable[[Crawl], Crawl]) -> Crawl:
        for _ in range(EDIT_TRIES):
            if not crawl.live:
                raise Conflict(f"the crawl {crawl.id!r} is {crawl.state}: {_FIX[crawl.state]}")
            wanted = change(crawl)
            if wanted.pages_max != crawl.pages_max:
                from orbweaver.control.edits import distribute_budget

                wanted = distribute_budget(wanted, crawl, await self._crawls.counters(crawl))
            if wanted == crawl:
                return crawl
            if await self._crawls.edit(wanted, crawl):
                return replace(wanted, edits=crawl.edits + 1)
            crawl = await self._crawls.get(crawl.id) or crawl
        raise Conflict(f"the crawl {crawl.id!r} is being edited by others: look at it, try again")

    # --- steer ------------------------------------------------------------------------------

    async def pause(self, which: str) -> Crawl:
        """Pause a crawl. Workers park its messages instead of requesting their URLs."""
        crawl = await self.find(which)
        return await self._move(crawl, State.PAUSED, allowed=(State.RUNNING, State.PAUSED))

    # The crawl is set to running before parked messages are sent, so that workers do not park them
    # again.
    async def resume(self, which: str, *, silent_ms: int = 0) -> Crawl:
        """Resume a paused crawl, or complete a resume that was interrupted.

        `silent_ms` is the time in which no worker processed the crawl. It counts as a pause.
        """
        crawl = await self.find(which)
        await self._check_proxies(crawl)
        if crawl.state is State.RUNNING and silent_ms:
            since_ms = self._clock.now_ms() - silent_ms
            crawl = replace(crawl, paused_at_ms=max(crawl.started_at_ms, since_ms))
        crawl = await self._move(crawl, State.RUNNING, allowed=(State.PAUSED, State.RUNNING))
        await self._release(crawl)
        return crawl

    async def cancel(self, which: str, close_s: int = CLOSE_S) -> Crawl:
        """End a crawl after `close_s` seconds, in which workers drop its messages unrequested."""
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
        # The end is scheduled before parked messages are sent, so that workers drop these messages.
        close = Close(crawl=crawl.id, at_ms=self._clock.now_ms())
        await self._queue.send_close(close, close_s)
        await self._release(crawl)
        return crawl

    async def _move(
        self, crawl: Crawl, state: State, *, allowed: Sequence[State], stop: Stop | None = None
    ) -> Crawl:
        wanted = with_state(crawl, state, stop, self._clock.now_ms())
        if not await self._crawls.move(wanted, allowed):
            standing = await self._crawls.get(crawl.id) or crawl
            raise Conflict(f"the crawl {crawl.id!r} is {standing.state}: {_FIX[standing.state]}")
        return wanted

    async def _release(self, crawl: Crawl) -> None:
        """Send parked messages and missing seeds, then delete the parked messages."""
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
    State.STOPPING: "it ends within about a minute",
    State.FINISHED: "start it again",
}


def with_unused_id(crawl: Crawl, others: Sequence[Crawl]) -> Crawl:
    """Give a crawl the next unused id, if its id belongs to an ended or a different crawl."""
    taken = {other.id: other for other in others}
    at_ms = crawl.started_at_ms
    while (other := taken.get(crawl.id)) and not (other.live and same_work(other, crawl)):
        at_ms += 1000
        crawl = replace(crawl, id=run_id(crawl.name, at_ms))
    return crawl


def same_work(one: Crawl, other: Crawl) -> bool:
    """Whether two crawls have equal options. Ids, times, states and edits are not compared."""
    return one.work == other.work
