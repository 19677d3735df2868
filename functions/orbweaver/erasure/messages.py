"""Erasure in messages, packs (messages with up to 25 URLs) and journals (their redo logs).

They would restore erased data. In a paused crawl, every claimed URL still needs an outcome, so
packs are processed here as a worker would (docs/protocol.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from orbweaver.erasure.ports import JournalTrace, Lane, Traces
from orbweaver.erasure.rules import ended, in_journal, message_left
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.ports import Catalogue, ExportEvents
from orbweaver.frontier.backlog import Backlog
from orbweaver.frontier.dead_letters import UNKNOWN_CRAWL, DeadLetter
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import Journal, OutgoingPack, late_groups, outbox
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
from orbweaver.frontier.pack_result import PackResult
from orbweaver.frontier.ports import Crawls, Packs, Pages
from orbweaver.frontier.queues import DeadLetters, Queue
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.ports import Clock, Files
from orbweaver.model.version import REMEDY
from orbweaver.worker.apply_journal import JournalApplier
from orbweaver.worker.seeding import result_of
from orbweaver.worker.succession import place_of_message

# Seconds for which received messages are hidden: longer than processing them takes.
HOLD_S = 900
TAKEN_MAX = 40
# Messages of one queue held in memory, about 2.5 KB each.
MESSAGES_MAX = 50_000


class MessageEraser:
    """Erases data in messages and journals. `done` counts the changes, `left` the failures."""

    def __init__(self, stores: Stores, scope: ErasureScope) -> None:
        self._traces = stores.traces
        self._lanes = stores.lanes
        self._dead_letters = stores.dead_letters
        self._queue = stores.queue
        self._packs = stores.packs
        self._backlog = stores.backlog
        self._crawls = stores.crawls
        self._applier = stores.applier
        self._clock = stores.clock
        self._scope = scope
        self._known: dict[str, Crawl | None] = {}
        self.done: Counter[str] = Counter()
        self.left: set[str] = set()

    async def erase(self) -> bool:
        """Process everything once. Return True if there was data in scope."""
        before = self.done.total()
        await self._dead()
        for lane in self._lanes:
            await self._lane(lane)
        await self._parked()
        await self._waiting()
        await self._journals()
        return self.done.total() > before

    async def hidden(self) -> int:
        """Return the approximate number of messages that cannot be received now."""
        return sum([await lane.hidden() for lane in self._lanes])

    # --- queues -----------------------------------------------------------------------------

    async def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters with data in scope, and leave them on the queue."""
        taken = await self._take(self._dead_letters, "the dead-letter queue")
        await self._dead_letters.put_back(taken)
        return [letter for letter in taken if self._holds(letter)]

    async def _dead(self) -> None:
        taken = await self._take(self._dead_letters, "the dead-letter queue")
        try:
            held = [letter for letter in taken if self._holds(letter)]
            for letter in held:
                reason = letter.reason or "received too often"

                async def dead_letter(
                    message: Message, reason: str = reason, source: MessageSource = letter.source
                ) -> None:
                    await self._queue.dead_letter(_body(message), reason, source)

                if await self._settle(decode(letter.body, letter.source), letter.body, dead_letter):
                    await self._dead_letters.delete([letter])
                    taken.remove(letter)
                    self.done["dead_letters"] += 1
        finally:
            await self._dead_letters.put_back(taken)

    async def _lane(self, lane: Lane) -> None:
        taken = await self._take(lane, "the queue")
        for letter in taken:
            message = decode(letter.body, letter.source)
            held = self._holds(letter)
            if held and await self._settle(message, letter.body, self._send):
                self.done["messages"] += 1
            elif isinstance(message, Malformed | Newer):
                await lane.put_back([letter])  # the worker dead-letters or holds it
                continue
            else:
                # Sent again and then deleted, because putting it back would count as a failure. A
                # crash in between leaves a copy, which has no effect.
                await self._send(message)
            await lane.delete([letter])

    async def _take(self, lane: Lane | DeadLetters, where: str) -> list[DeadLetter]:
        found: dict[str, DeadLetter] = {}
        while len(found) < MESSAGES_MAX:
            some = await lane.take(TAKEN_MAX, HOLD_S)
            new = {letter.id: letter for letter in some}
            if not new.keys() - found.keys():
                return list(found.values())
            found |= new
        self.left.add(f"{where} has more than {MESSAGES_MAX:,} messages: run this again")
        return list(found.values())

    def _holds(self, letter: DeadLetter) -> bool:
        message = decode(letter.body, letter.source)
        return message_left(message, letter.body, self._scope) is not message

    async def _send(self, message: Message) -> None:
        if isinstance(message, Malformed | Newer):
            return
        crawl = await self._crawl(message.crawl)
        express = crawl is not None and crawl.express
        match message:
            case Pack():
                await self._queue.send([OutgoingPack(pack=message)], express=express)
            case SeedsMessage():
                await self._queue.send_seeds([message], express=express)
            case Close():
                await self._queue.send_close(message, 0)
            case Loose():
                await self._dead_letters.resend([encode(message)], MessageSource.SEEDS)

    # --- a message --------------------------------------------------------------------------

    async def _settle(
        self, message: Message, body: str, instead: Callable[[Message], Awaitable[None]]
    ) -> bool:
        """Prepare a message to be deleted.

        Return False if it must stay because a worker may use it.
        """
        if isinstance(message, Newer):
            self.left.add(f"messages {message.said}: {REMEDY}, and run this again")
            return False
        left = message_left(message, body, self._scope)
        crawl = None if isinstance(message, Malformed) else await self._crawl(message.crawl)
        if crawl is not None and crawl.live and isinstance(message, Pack | SeedsMessage):
            if crawl.state is not State.PAUSED:
                self._stays(crawl)
                return False
            await self._end(crawl, message, left)
        elif left is not None and left is not message:
            await instead(left)
        return True

    async def _end(self, crawl: Crawl, message: Pack | SeedsMessage, left: Message | None) -> None:
        """Process a message of a paused crawl to its end, as a worker would."""
        known = (await self._packs.recall([message.id])).get(message.id)
        standing = place_of_message(message)
        # With a commit record (ledger), only the next messages are sent. A journal is carried out.
        # Without both, a new journal ends the URLs in scope and sends the others in new packs.
        if known is not None and known.ledger is not None:
            journal, ledger = known.journal, known.ledger
            if journal is not None:
                await self._applier.resend(crawl, message.id, journal, ledger, standing)
            else:
                await self._applier.succession.start_next(crawl, message.id, standing, last=True)
            return
        journal = known.journal if known is not None else None
        if journal is None:
            journal = self._journal(crawl, message, left)
            journal = await self._packs.write_journal(message.id, journal)
        await self._applier.apply(crawl, message.id, journal, standing)

    def _journal(self, crawl: Crawl, message: Pack | SeedsMessage, left: Message | None) -> Journal:
        if isinstance(message, Pack):
            return ended(message, crawl, self._scope, self._clock.now_ms())
        if isinstance(left, SeedsMessage):
            return result_of(left, crawl).journal((), message.at_ms)
        result = PackResult(crawl.id, crawl.hosts_counted)
        if message.planned:
            result.count("seeds")
        return result.journal((), message.at_ms)

    # --- tables -----------------------------------------------------------------------------

    async def _parked(self) -> None:
        async for trace in self._traces.parked():
            message = decode(trace.body)
            if message_left(message, trace.body, self._scope) is message:
                continue
            if await self._settle(message, trace.body, self._send):
                await self._packs.unpark(trace.crawl, [trace.pack])
                self.done["parked"] += 1

    async def _waiting(self) -> None:
        async for trace in self._traces.backlog():
            message = decode(trace.body)
            if message_left(message, trace.body, self._scope) is message:
                continue
            # The message of a pack in flight may not have been sent, or is handled on its queue.
            if await self._settle(
                message, trace.body, _do_nothing if trace.in_flight else self._send
            ):
                await self._backlog.leave(trace.crawl, trace.host, trace.place)
                self.done["waiting"] += 1

    async def _journals(self) -> None:
        async for trace in self._traces.journals():
            if trace.journal is None:
                await self._traces.remove_journals([trace])  # unreadable for every version
            elif in_journal(trace.journal, self._scope) and await self._void_journal(trace):
                await self._traces.remove_journals([trace])
                self.done["journals"] += 1

    async def _void_journal(self, trace: JournalTrace) -> bool:
        """Prepare a journal to be deleted.

        Return False if it must stay because a worker uses it.
        """
        journal = trace.journal
        if journal is None or trace.is_orphan:
            return True
        owner = journal.crawl or next((record.crawl for record in journal.records), "")
        if not owner:
            return await self._is_ownerless_removable(trace.pack)
        crawl = await self._crawl(owner)
        if crawl is None or crawl.state is State.FINISHED:
            return True
        if crawl.state is State.PAUSED:
            known = (await self._packs.recall([trace.pack]))[trace.pack]
            if known.ledger is None:
                await self._applier.apply(crawl, trace.pack, journal)
            else:
                await self._applier.resend(crawl, trace.pack, journal, known.ledger)
        known = (await self._packs.recall([trace.pack]))[trace.pack]
        if known.ledger is not None:
            outgoing = outbox(trace.pack, crawl.id, journal, known.ledger)
            late = late_groups(journal, known.ledger)
            more = outgoing or late or journal.unasked or journal.past or known.ledger.surplus
            if known.ledger.sent or not more:
                return True  # the ledger stays, and contains no URL
        self._stays(crawl)
        return False

    async def _is_ownerless_removable(self, pack: str) -> bool:
        """Return True if a journal of an earlier version, without a crawl id, can be deleted."""
        known = (await self._packs.recall([pack]))[pack]
        if known.ledger is not None and known.ledger.sent:
            return True
        if all(crawl.state is State.FINISHED for crawl in await self._crawls.list()):
            return True
        self.left.add("journals of an earlier version: run this again when no crawl is at work")
        return False

    def _stays(self, crawl: Crawl) -> None:
        self.left.add(
            f"{crawl.id} is {crawl.state} and has come upon it meanwhile: pause it, and run this"
            " again"
        )

    async def _crawl(self, crawl_id: str) -> Crawl | None:
        if crawl_id not in self._known:
            self._known[crawl_id] = await self._crawls.get(crawl_id)
        return self._known[crawl_id]


async def _do_nothing(_: Message) -> None: ...


def _body(message: Message) -> str:
    return UNKNOWN_CRAWL if isinstance(message, Malformed | Newer) else encode(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """All stored data, and the `applier` that carries out journals."""

    traces: Traces
    lanes: Sequence[Lane]
    dead_letters: DeadLetters
    queue: Queue
    packs: Packs
    backlog: Backlog
    crawls: Crawls
    pages: Pages
    files: Files
    applier: JournalApplier
    events: ExportEvents
    clock: Clock
    # The catalogue of item tables, or None without one.
    catalogue: Catalogue | None = None
