"""Process a batch of messages and return the ids of messages to deliver again.

Messages are processed concurrently. Packs that may have killed a worker (suspects) are processed
one by one at the end. Each crawl is checked once for completion before its messages are
acknowledged. A malformed message becomes a dead letter with its reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from orbweaver.frontier.claims import Recalled
from orbweaver.frontier.envelope import Newer, WaitingMessage
from orbweaver.frontier.messages import (
    Close,
    Loose,
    Malformed,
    Message,
    MessageSource,
    Pack,
    SeedsMessage,
    decode,
    encode,
)
from orbweaver.frontier.queues import Receipt
from orbweaver.frontier.yield_drop import drop_percent
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import PortError, StoredNewer, is_port_error
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Fetcher, Metrics
from orbweaver.model.value import value_class
from orbweaver.model.version import REMEDY
from orbweaver.worker.apply_journal import JournalApplier
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS, RecentCrawls
from orbweaver.worker.fetch_pack import PackFetcher
from orbweaver.worker.pack import Delivery, Done, Hopeless, PackProcessor, Requeued
from orbweaver.worker.rounds import Round
from orbweaver.worker.seeding import Seeder
from orbweaver.worker.shutdown import ShutdownSignal

if TYPE_CHECKING:
    from orbweaver.frontier.pack_result import UncommittedResults
    from orbweaver.worker.ports import WorkerPorts

_log = logging.getLogger(__name__)

# Seconds until a failed message is delivered again, by number of receives. One throttled request
# must not cost the visibility timeout, which is many times a worker's run time. Later failures wait
# for the full timeout, so that an outage does not use up all deliveries.
RETRY_S: Mapping[int, int] = {1: 15, 2: 120}


@value_class
class Held:
    """Result of a message that only a newer version of Orbweaver can read."""

    said: str
    crawl: str


# Result of a message. None: the message must be delivered again, because Orbweaver failed.
Result: TypeAlias = Done | Requeued | Held | None


def _of_nobody(_crawl: str) -> AbstractContextManager[None]:
    return nullcontext()


class Worker:
    """Processes batches of messages. One instance per container, so its caches are reused."""

    def __init__(
        self,
        ports: WorkerPorts,
        *,
        fetcher: Fetcher,
        metrics: Metrics,
        of_crawl: Callable[[str], AbstractContextManager[None]] = _of_nobody,
        underway: UncommittedResults | None = None,
    ) -> None:
        """Build the parts of a worker.

        `of_crawl` opens a context for the work on a crawl. `underway` collects the results that are
        not committed yet.
        """
        settings = ports.settings
        self.ending = ShutdownSignal()
        self._queue = ports.queue
        self._packs = ports.packs
        self._clock = ports.clock
        crawls = RecentCrawls(crawls=ports.crawls, clock=ports.clock)
        self._seeder = Seeder(queue=ports.queue, crawls=ports.crawls, clock=ports.clock)
        self.applier = JournalApplier(ports)
        self.pack_fetcher = PackFetcher(ports, fetcher=fetcher, crawls=crawls, ending=self.ending)
        self.processor = PackProcessor(
            ports,
            crawls=crawls,
            pack_fetcher=self.pack_fetcher,
            applier=self.applier,
            metrics=metrics,
            underway=underway,
        )
        # A worker may have read the crawl just before it was cancelled. It then sends one more
        # request and commits the result.
        request_ms = round(
            (settings.fetching.fetch_total_s + settings.worker.apply_reserve_s) * 1000
        )
        self._through_ms = CRAWL_FRESH_MS + request_ms
        self._metrics = metrics
        self._of_crawl = of_crawl
        self._holder = NewerMessages(ports, metrics)
        self._settings = settings

    async def run(self, deliveries: Sequence[Delivery], deadline_ms: int) -> tuple[str, ...]:
        """Process a batch until `deadline_ms` at the latest. Return the ids of failed messages."""
        # The invocation is killed at `deadline_ms`. The worker sends a request only if it can
        # finish the request and its writes before this time.
        messages = {
            delivery.id: decode(delivery.body, self._source(delivery)) for delivery in deliveries
        }
        ids = [
            message.id for message in messages.values() if isinstance(message, Pack | SeedsMessage)
        ]
        try:
            recalled = await self._packs.recall(ids) if ids else {}
        except PortError as error:
            _log.warning("batch.recall_failed", extra={"error": str(error)})
            await self._retry_soon(deliveries)
            return tuple(delivery.id for delivery in deliveries)
        round_ = Round(
            clock=self._clock,
            settings=self._settings,
            deadline_ms=deadline_ms,
            ending=self.ending,
        )
        results: list[Result] = []
        early: list[Result] = []

        async def batch() -> None:
            results.extend(await self._all(deliveries, messages, recalled, round_))

        async def take_on(pack: Pack) -> None:
            early.append(await self.take_on(pack, round_))

        await round_.run(batch(), take_on)
        failed = [
            delivery.id
            for delivery, result in zip(deliveries, results, strict=True)
            if result is None
        ]
        # Packs are requeued only after all processing, so that a crash makes no copies.
        failed += await self._requeue(deliveries, results)
        failed += await self._finish(deliveries, results, early)
        paired = zip(deliveries, results, strict=True)
        failed += await self._holder.hold_back(
            [(one, why) for one, why in paired if isinstance(why, Held)]
        )
        failing = {*failed}
        await self._retry_soon([one for one in deliveries if one.id in failing])
        return tuple(failed)

    async def _retry_soon(self, failed: Sequence[Delivery]) -> None:
        for receives, delay_s in RETRY_S.items():
            receipts = [
                Receipt(handle=one.handle, queue=one.queue)
                for one in failed
                if one.receives == receives and one.handle
            ]
            if not receipts:
                continue
            try:
                await self._queue.retry_soon(receipts, delay_s)
            except PortError as error:
                _log.warning("messages.not_retried_soon", extra={"error": str(error)})

    async def take_on(self, pack: Pack, round_: Round) -> Result:
        """Process a pack early: its own message is still delayed (worker/rounds.py)."""
        delivery = Delivery(id=pack.id, body=encode(pack), receives=1, early=True)
        try:
            recalled = await self._packs.recall([pack.id])
        except PortError as error:
            _log.warning("batch.recall_failed", extra={"error": str(error)})
            return None
        # If the pack has failed before, or another delivery has started it, its own message
        # continues it.
        if pack.failures or recalled.get(pack.id, Recalled()) != Recalled():
            return None
        while True:
            result = await self._guarded(delivery, pack, recalled, round_)
            if not isinstance(result, Requeued):
                return result
            pack = result.outgoing.pack
            # No URL was requested, so try again after a short pause.
            if not await round_.pause(pack.crawl, result.outgoing.delay_s):
                return await self._sent_again(result, round_)

    async def _sent_again(self, requeued: Requeued, round_: Round) -> Result:
        """Requeue a pack that was started early: with its delayed message, or a new one."""
        outgoing, express = requeued.outgoing, requeued.express
        delay_s = round_.resend_delay_s(outgoing.pack.crawl, outgoing.delay_s)
        if delay_s is None or not round_.leave(outgoing.pack, delay_s):
            return requeued
        try:
            if not await self._queue.release(outgoing.pack, delay_s, express=express):
                await self._queue.send([replace(outgoing, delay_s=delay_s)], express=express)
        except PortError as error:
            _log.warning("packs.not_put_off", extra={"error": str(error)})
            return None
        self._metrics.add(Metric.PACKS_PUT_OFF, 1)
        return requeued

    def _source(self, delivery: Delivery) -> MessageSource:
        return MessageSource.from_queue(delivery.queue, self._settings.queues.pack_queues)

    async def _requeue(
        self, deliveries: Sequence[Delivery], results: Sequence[Result]
    ) -> list[str]:
        """Requeue packs whose URLs were not requested. Return the ids of failed messages."""
        failed: list[str] = []
        for express in (False, True):
            waiting = {
                delivery.id: result.outgoing
                for delivery, result in zip(deliveries, results, strict=True)
                if isinstance(result, Requeued) and result.express is express
            }
            if not waiting:
                continue
            try:
                await self._queue.send(list(waiting.values()), express=express)
                self._metrics.add(Metric.PACKS_PUT_OFF, len(waiting))
            except PortError as error:
                _log.warning("packs.not_put_off", extra={"error": str(error)})
                failed += waiting
        return failed

    async def _all(
        self,
        deliveries: Sequence[Delivery],
        messages: Mapping[str, Message],
        recalled: Mapping[str, Recalled],
        round_: Round,
    ) -> list[Result]:
        results: dict[str, Result] = {}
        suspects: list[tuple[int, Delivery]] = []
        others: list[Delivery] = []
        for delivery in deliveries:
            message = messages[delivery.id]
            if isinstance(message, Pack):
                known = recalled.get(message.id, Recalled())
                if is_suspect(message, delivery, known):
                    suspects.append((known.strikes, delivery))
                    continue
            others.append(delivery)

        async def process(delivery: Delivery) -> None:
            message = messages[delivery.id]
            results[delivery.id] = await self._guarded(delivery, message, recalled, round_)

        await asyncio.gather(*(process(delivery) for delivery in others))
        # Suspects are last. If one kills the worker, all other messages are done, and only it has a
        # strike.
        for _, delivery in sorted(suspects, key=lambda suspect: suspect[0]):
            await process(delivery)
        return [results[delivery.id] for delivery in deliveries]

    def drain(self) -> None:
        """Start no more requests: finish requests in progress and requeue the other URLs."""
        self.ending.resting = True

    def end(self) -> None:
        """Cancel requests in progress and requeue their URLs, because the process must end."""
        self.ending.announce()

    def flush(self) -> None:
        """Send this invocation's metrics."""
        self._metrics.flush()

    async def _finish(
        self, deliveries: Sequence[Delivery], results: list[Result], early: Sequence[Result]
    ) -> list[str]:
        """Check each crawl once for completion. Return the ids of messages to deliver again.

        `early` are the results of packs that were started before their messages arrived.
        """
        checks: dict[str, list[int]] = {
            result.check: []
            for result in early
            if isinstance(result, Done) and result.check is not None
        }
        for index, result in enumerate(results):
            if isinstance(result, Done) and result.check is not None:
                checks.setdefault(result.check, []).append(index)
        failed: list[str] = []
        for crawl_id, asking in checks.items():
            try:
                with self._of_crawl(crawl_id):
                    ended = await self.applier.finish(crawl_id)
                if ended is not None:
                    self._compare(*ended)
            except StoredNewer as error:  # a newer version has stored the crawl meanwhile
                for index in asking:
                    results[index] = Held(said=str(error), crawl=crawl_id)
            except PortError as error:
                _log.warning("crawl.check_failed", extra={"crawl": crawl_id, "error": str(error)})
                failed += [deliveries[index].id for index in asking]
        looks = {result.check_late for result in (*early, *results) if isinstance(result, Done)}
        for crawl_id in sorted(one for one in looks if one is not None):
            try:
                await self.applier.send_promising(crawl_id)
            except (StoredNewer, PortError) as error:
                _log.warning("crawl.look_failed", extra={"crawl": crawl_id, "error": str(error)})
        return failed

    def _compare(self, crawl: Crawl, total: Counts) -> None:
        drop = drop_percent(crawl, total)
        if drop is None:
            return
        self._metrics.observe(Metric.YIELD_DROP_PERCENT, drop)
        if drop:
            told = {"crawl": crawl.id, "percent": drop, "before": crawl.pages_before}
            _log.warning("crawl.fell_short", extra=told)

    async def _guarded(
        self,
        delivery: Delivery,
        message: Message,
        recalled: Mapping[str, Recalled],
        round_: Round,
    ) -> Result:
        try:
            return await self._process(delivery, message, recalled, round_)
        except Exception as error:  # noqa: BLE001 - a failure affects one message only
            said = newer_in(error)
            if said is not None:
                return Held(said=said, crawl=_crawl_of(message))
            told = {"id": delivery.id, "crawl": _crawl_of(message), "error": repr(error)}
            if is_port_error(error):
                _log.warning("message.deferred", extra=told)
            else:
                _log.exception("message.failed", extra=told)
        finally:
            if isinstance(message, Pack | SeedsMessage):
                round_.ended(message.id)
        self._metrics.add(Metric.MESSAGES_FAILED, 1)
        return None

    async def _process(  # noqa: PLR0911 - one return for each kind
        self,
        delivery: Delivery,
        message: Message,
        recalled: Mapping[str, Recalled],
        round_: Round,
    ) -> Done | Requeued | Held:
        match message:
            case Malformed():
                return await self._dead_letter(delivery, message, message.reason)
            case Newer():
                return Held(said=message.said, crawl=message.crawl or "")
            case Loose():
                refused = await self._seeder.send_seeds(delivery.id, message)
                if refused is None:
                    return Done()
                return await self._dead_letter(delivery, message, refused)
            case Close():
                await self._close(message)
                return Done()
            case Pack() | SeedsMessage():
                known = recalled.get(message.id, Recalled())
                if known.newer is not None:
                    return Held(said=known.newer, crawl=message.crawl)
                with self._of_crawl(message.crawl):
                    result = await self.processor.advance(delivery, message, known, round_)
                if not isinstance(result, Hopeless):
                    return result
                done = await self._dead_letter(delivery, message, result.reason)
                if isinstance(message, SeedsMessage):
                    return done
                # Deferred links are sent when few URLs are in flight. A dead letter is no longer in
                # flight, so these links may be due now.
                late = message.late
                has_late = await self.applier.note_dead_letters(
                    message.crawl, 0 if late else len(message.targets)
                )
                return Done(check=message.crawl) if has_late else done
            case _:
                assert_never(message)

    async def _close(self, close: Close) -> None:
        # A worker that read the crawl before its cancellation can commit packs until this time.
        wait_ms = close.at_ms + self._through_ms - self._clock.now_ms()
        if wait_ms > 0:
            await self._queue.send_close(close, -(-wait_ms // 1000))
        else:
            await self.applier.close(close)

    async def _dead_letter(self, delivery: Delivery, message: Message, reason: str) -> Done:
        await self._queue.dead_letter(delivery.body, reason, self._source(delivery))
        told = {"id": delivery.id, "crawl": _crawl_of(message), "reason": reason}
        _log.error("message.buried", extra=told)
        self._metrics.add(Metric.MESSAGES_BURIED, 1)
        return Done()


def _crawl_of(message: Message) -> str:
    return "" if isinstance(message, Malformed) else message.crawl or ""


def is_suspect(pack: Pack, delivery: Delivery, known: Recalled) -> bool:
    """Return True if a pack may have killed a worker.

    Such a pack has one URL, was delivered before, and has no stored result.
    """
    if known.journal is not None or known.ledger is not None or known.newer is not None:
        return False
    if pack.late:
        return False  # a pack of deferred links sends no requests
    failed_before = delivery.receives > 1 or pack.failures > 0 or known.strikes > 0
    return len(pack.targets) == 1 and failed_before


class NewerMessages:
    """Holds back messages that only a newer version can read, for example after a rollback.

    Such a message is sent again unchanged, with the longest delay, so that its receives do not
    count as failures. After `newer_wait_s` seconds it becomes a dead letter that states the remedy
    (docs/upgrade.md).
    """

    def __init__(self, ports: WorkerPorts, metrics: Metrics) -> None:
        self._queue = ports.queue
        self._clock = ports.clock
        self._metrics = metrics
        self._settings = ports.settings

    async def hold_back(self, held: Sequence[tuple[Delivery, Held]]) -> list[str]:
        """Requeue messages, or make them dead letters. Return the ids of failed messages."""
        failed: list[str] = []
        lanes: dict[bool, list[tuple[Delivery, WaitingMessage]]] = {}
        now_ms = self._clock.now_ms()
        for delivery, why in held:
            since_ms = now_ms if delivery.since_ms is None else delivery.since_ms
            told = {"id": delivery.id, "crawl": why.crawl, "why": why.said, "since_ms": since_ms}
            if now_ms - since_ms < self._settings.retention.newer_wait_s * 1000:
                # A message from the seed queue can wait on the queue of packs, where it has the
                # same meaning.
                waiting = WaitingMessage(body=delivery.body, crawl=why.crawl, since_ms=since_ms)
                express = self._settings.queues.is_express(delivery.queue)
                lanes.setdefault(express, []).append((delivery, waiting))
                _log.warning("message.newer", extra=told)
            elif not await self._dead_letter(delivery, f"{why.said}; {REMEDY}, then redrive"):
                failed.append(delivery.id)
        for express, some in lanes.items():
            try:
                await self._queue.hold([waiting for _, waiting in some], express=express)
                self._metrics.add(Metric.MESSAGES_NEWER, len(some))
            except PortError as error:
                _log.warning("messages.not_held", extra={"error": str(error)})
                failed += [delivery.id for delivery, _ in some]
        return failed

    async def _dead_letter(self, delivery: Delivery, reason: str) -> bool:
        try:
            source = MessageSource.from_queue(delivery.queue, self._settings.queues.pack_queues)
            await self._queue.dead_letter(delivery.body, reason, source)
        except PortError as error:
            _log.warning("message.deferred", extra={"id": delivery.id, "error": repr(error)})
            return False
        _log.error("message.buried", extra={"id": delivery.id, "reason": reason})
        self._metrics.add(Metric.MESSAGES_BURIED, 1)
        return True


def newer_in(error: Exception) -> str | None:
    """Describe the newer version's data that caused an error, if that is the cause."""
    if not isinstance(error, ExceptionGroup):
        return str(error) if isinstance(error, StoredNewer) else None
    if error.split(PortError)[1] is not None:
        return None
    return next(filter(None, map(newer_in, error.exceptions)), None)
