"""A batch of messages in, the ids of those that are to come back out.

For every message, beside all others of the batch:

    recall   a committed pack sends its outbox again and ends; a journaled one goes on from there
    ingest   references dropped by hand become seeds with an id of their own
    admit    a paused crawl's pack is parked; a stopped crawl's URLs end unasked
    visit    robots, slots, requests, answers          (visit.py)
    journal  what it came to, written once
    settle   claim, store, commit, send                (settle.py)

then, once a crawl: is it finished? A message is acknowledged when all of that is done. One that
can never succeed goes to the dead-letter queue with its reason. A pack that comes a second time
without a journal is cut into single URLs; a single URL that comes a second time is a suspect: it
waits until all others of the batch are done, and is struck before it is tried.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from orbweaver.core.admission import admit_target
from orbweaver.core.crawl import DAY_S, Crawl, State
from orbweaver.core.journal import Draft, Journal, Letter, apart, outbox
from orbweaver.core.message import Loose, Malformed, Message, Pack, Seeds, decode
from orbweaver.core.outcome import Outcome, Refusal
from orbweaver.core.seen import Seen
from orbweaver.ingest import journal_of
from orbweaver.ports import PortError, Recalled
from orbweaver.settle import claimer_of
from orbweaver.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orbweaver.ingest import Ingester
    from orbweaver.ports import Clock, Crawls, Frontier, Metrics, Packs, Queue
    from orbweaver.settings import Settings
    from orbweaver.settle import Settler
    from orbweaver.visit import Visitor

_log = logging.getLogger(__name__)
CRAWL_FRESH_MS = 5_000
# A single URL that was being processed when its worker died, this often, is to blame.
STRIKES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message as the queue handed it over; `receives` counts this time too."""

    id: str
    body: str
    receives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A message is dealt with; `check` names the crawl that may be finished now."""

    check: str | None = None
    recalled: bool = False


class Worker:
    """Processes batches; one a container, its caches outlive an invocation."""

    def __init__(  # noqa: PLR0913 - one argument a port or actor
        self,
        *,
        queue: Queue,
        packs: Packs,
        crawls: Crawls,
        frontier: Frontier,
        ingester: Ingester,
        visitor: Visitor,
        settler: Settler,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
    ) -> None:
        """Take the ports, and the actors of the parts of the path."""
        self._queue = queue
        self._packs = packs
        self._crawls = crawls
        self._frontier = frontier
        self._ingester = ingester
        self._visitor = visitor
        self._settler = settler
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._seen = Seen()
        self._crawls_read: dict[str, tuple[int, Crawl | None]] = {}
        self._spent: set[tuple[str, int]] = set()

    async def run(self, deliveries: Sequence[Delivery], deadline_ms: int) -> tuple[str, ...]:
        """Process a batch; the ids of the messages that are to come back.

        `deadline_ms` is when this invocation is ended from outside; nothing is asked for that
        could not be settled before.
        """
        messages = {delivery.id: decode(delivery.body) for delivery in deliveries}
        ids = [message.id for message in messages.values() if isinstance(message, Pack | Seeds)]
        try:
            recalled = await self._packs.recall(ids) if ids else {}
        except PortError as error:
            _log.warning("batch.recall_failed", extra={"error": str(error)})
            return tuple(delivery.id for delivery in deliveries)
        results = await self._all(deliveries, messages, recalled, deadline_ms)
        failed = [
            delivery.id
            for delivery, result in zip(deliveries, results, strict=True)
            if result is None
        ]
        failed += await self._finish(deliveries, results)
        return tuple(failed)

    async def _all(
        self,
        deliveries: Sequence[Delivery],
        messages: Mapping[str, Message],
        recalled: Mapping[str, Recalled],
        deadline_ms: int,
    ) -> list[Done | None]:
        """Process all messages at once, then the suspects one by one, the least suspect first.

        When one of those brings us down, what came before it is done, and only it was struck.
        """
        results: dict[str, Done | None] = {}
        suspects: list[tuple[int, Delivery]] = []
        crowd: list[Delivery] = []
        for delivery in deliveries:
            message = messages[delivery.id]
            known = recalled.get(message.id) if isinstance(message, Pack) else None
            if isinstance(message, Pack) and _suspect(message, delivery, known):
                suspects.append((known.strikes if known else 0, delivery))
            else:
                crowd.append(delivery)

        async def process(delivery: Delivery) -> None:
            message = messages[delivery.id]
            results[delivery.id] = await self._guarded(delivery, message, recalled, deadline_ms)

        await asyncio.gather(*(process(delivery) for delivery in crowd))
        for _, delivery in sorted(suspects, key=lambda suspect: suspect[0]):
            await process(delivery)
        return [results[delivery.id] for delivery in deliveries]

    def flush(self) -> None:
        """Write out what this invocation counted."""
        self._metrics.flush()

    async def _finish(
        self, deliveries: Sequence[Delivery], results: Sequence[Done | None]
    ) -> list[str]:
        """Check once for each crawl whether it is finished; failing that, its messages return."""
        checks: dict[str, list[tuple[str, bool]]] = {}
        for delivery, result in zip(deliveries, results, strict=True):
            if result is not None and result.check is not None:
                checks.setdefault(result.check, []).append((delivery.id, result.recalled))
        failed: list[str] = []
        for crawl_id, asking in checks.items():
            try:
                recalled = any(again for _, again in asking)
                await self._settler.finish(crawl_id, recalled=recalled)
            except PortError as error:
                _log.warning("crawl.check_failed", extra={"crawl": crawl_id, "error": str(error)})
                failed += [delivery_id for delivery_id, _ in asking]
        return failed

    async def _guarded(
        self,
        delivery: Delivery,
        message: Message,
        recalled: Mapping[str, Recalled],
        deadline_ms: int,
    ) -> Done | None:
        """Process one message; None if it failed by our fault and is to come back."""
        try:
            return await self._process(delivery, message, recalled, deadline_ms)
        except PortError as error:
            _log.warning("message.deferred", extra={"id": delivery.id, "error": str(error)})
        except Exception as error:  # noqa: BLE001 - the one guard: a message's failure is its own
            _log.exception("message.failed", extra={"id": delivery.id, "error": repr(error)})
        self._metrics.add("MessagesFailed", 1)
        return None

    async def _process(
        self,
        delivery: Delivery,
        message: Message,
        recalled: Mapping[str, Recalled],
        deadline_ms: int,
    ) -> Done:
        match message:
            case Malformed():
                return await self._bury(delivery, message.reason)
            case Loose():
                refused = await self._ingester.take(delivery.id, message)
                return Done() if refused is None else await self._bury(delivery, refused)
            case Pack() | Seeds():
                known = recalled.get(message.id, Recalled())
                return await self._advance(delivery, message, known, deadline_ms)
            case _:
                assert_never(message)

    async def _advance(
        self, delivery: Delivery, message: Pack | Seeds, known: Recalled, deadline_ms: int
    ) -> Done:
        """Take a pack or seeds as far as it goes from where earlier deliveries left it."""
        crawl = await self._crawl(message.crawl)
        if crawl is None:
            return await self._bury(delivery, f"unknown crawl {message.crawl[:60]!r}")
        if known.ledger is not None:
            if known.journal is None:
                return Done()  # both are past their retention, and so is every other copy
            await self._settler.resend(crawl, message.id, known.journal, known.ledger)
            more = outbox(message.id, crawl.id, known.journal, known.ledger)
            return Done(check=None if more else crawl.id, recalled=True)
        failures = delivery.receives - 1
        if isinstance(message, Pack):
            failures += message.failures
        if failures + 1 >= self._settings.receive_max:
            return await self._bury(delivery, f"failed {failures} times")
        journal = known.journal
        if journal is None:
            journal = await self._come_to(delivery, message, crawl, failures, deadline_ms)
            if journal is None:
                return Done()
            journal = await self._packs.write_journal(message.id, journal)
        return await self._settle(crawl, message.id, journal)

    async def _come_to(
        self,
        delivery: Delivery,
        message: Pack | Seeds,
        crawl: Crawl,
        failures: int,
        deadline_ms: int,
    ) -> Journal | None:
        """Do the part of the work that happens once; None if the message went elsewhere."""
        if crawl.state is State.PAUSED:
            if await self._packs.park(crawl.id, delivery.body, message.id):
                return None
            self._crawls_read.pop(crawl.id, None)
        if isinstance(message, Seeds):
            return journal_of(message, crawl)
        if failures and len(message.targets) > 1:
            return apart(message, self._clock.now_ms())
        if not failures:
            return await self._visit(message, crawl, deadline_ms)
        if await self._packs.strike(message.id) > STRIKES_MAX:
            await self._bury(delivery, f"crashed its worker {STRIKES_MAX} times")
            return None
        journal = await self._visit(replace(message, failures=failures), crawl, deadline_ms)
        await self._packs.absolve(message.id)
        return journal

    async def _visit(self, pack: Pack, crawl: Crawl, deadline_ms: int) -> Journal | None:
        draft = Draft(crawl.id)
        refused = admit_target(crawl, self._clock.now_ms())
        if refused is not None:
            for _ in pack.targets:
                draft.end_unrecorded(Outcome.SKIPPED, refused)
        else:
            visit = Visit(crawl=crawl, draft=draft, until_ms=self._until_ms(deadline_ms))
            await self._visitor.visit(visit, pack.targets)
        journal = draft.journal(pack.targets, self._clock.now_ms())
        if pack.targets == tuple(item.target for item in journal.again):
            # Nothing was asked: the same pack again, later, costs no write.
            delay_s = min(item.delay_s for item in journal.again)
            await self._queue.send([Letter(pack=pack, delay_s=delay_s)], express=crawl.express)
            self._metrics.add("PacksDeferred", 1)
            return None
        return await self._sift(crawl, pack, draft)

    async def _sift(self, crawl: Crawl, pack: Pack, draft: Draft) -> Journal:
        """Close the draft without the links that are known to be claimed already."""
        at_ms = self._clock.now_ms()
        if (crawl.id, crawl.pages_max) in self._spent:
            dropped = draft.candidates
            draft.refuse(Refusal.BUDGET, len(dropped))
            return draft.journal(pack.targets, at_ms, known=dropped)
        known = self._seen.of(crawl.name, draft.candidates, at_ms)
        asked = [url for url in draft.candidates if url not in known]
        if asked:
            claimer = claimer_of(crawl, pack.id, at_ms)
            held = await self._frontier.known(claimer, asked)
            self._remember(crawl, held)
            known |= held
        return draft.journal(pack.targets, at_ms, known=known)

    async def _settle(self, crawl: Crawl, pack_id: str, journal: Journal) -> Done:
        ledger = await self._settler.apply(crawl, pack_id, journal)
        if ledger is None:
            return Done()
        if ledger.surplus:
            self._spent.add((crawl.id, crawl.pages_max))
        else:
            self._remember(crawl, [target.url for target in journal.candidates])
        self._count(journal)
        more = ledger.children or journal.again
        return Done(check=None if more else crawl.id)

    def _until_ms(self, deadline_ms: int) -> int:
        """When the last request of this invocation may start."""
        settings = self._settings
        latest_ms = deadline_ms - round((settings.fetch_total_s + settings.apply_reserve_s) * 1000)
        return min(latest_ms, self._clock.now_ms() + round(settings.wait_s_max * 1000))

    async def _crawl(self, crawl_id: str) -> Crawl | None:
        now_ms = self._clock.now_ms()
        read_ms, crawl = self._crawls_read.get(crawl_id, (-CRAWL_FRESH_MS, None))
        if crawl is None or not 0 <= now_ms - read_ms < CRAWL_FRESH_MS:
            crawl = await self._crawls.get(crawl_id)
            self._crawls_read[crawl_id] = (now_ms, crawl)
        return crawl

    def _remember(self, crawl: Crawl, urls: Iterable[str]) -> None:
        if not crawl.continuous or crawl.window_s >= DAY_S:
            self._seen.add(crawl.name, urls, self._clock.now_ms())

    def _count(self, journal: Journal) -> None:
        for key, number in journal.tally.items():
            if "." not in key:
                self._metrics.add(key, number)

    async def _bury(self, delivery: Delivery, reason: str) -> Done:
        await self._queue.bury(delivery.body, reason)
        _log.error("message.buried", extra={"id": delivery.id, "reason": reason})
        self._metrics.add("MessagesBuried", 1)
        return Done()


def _suspect(pack: Pack, delivery: Delivery, known: Recalled | None) -> bool:
    """Whether a pack may have brought a worker down: one URL, here before, and no journal."""
    if known is not None and (known.journal is not None or known.ledger is not None):
        return False
    return len(pack.targets) == 1 and (delivery.receives > 1 or pack.failures > 0)
