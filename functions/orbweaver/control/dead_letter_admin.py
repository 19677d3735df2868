"""List, redrive and purge dead letters: messages that the queue set aside after many failures.

Letters that are read are hidden from other readers. When an operation ends, even by an error, it
releases the letters that it did not send or delete. If the process is killed, they become visible
after the visibility timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from orbweaver.frontier.dead_letters import (
    HOPELESS,
    NEW,
    NEWER_VERSION,
    UNKNOWN_CRAWL,
    Case,
    message_to_resend,
    read,
)
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import MessageSource, Pack
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import PortError, StoredNewer
from orbweaver.model.ports import Clock
from orbweaver.model.settings import STRIKES_MAX
from orbweaver.model.value import value_class
from orbweaver.worker.seeding import crawl_for

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import DeadLetter, DeadLetterSelection, Revived
    from orbweaver.frontier.ports import Crawls, Packs
    from orbweaver.frontier.queues import DeadLetters, Queue

_log = logging.getLogger(__name__)

# Visibility timeout in seconds. Processing one batch, or reading ten thousand letters, takes less
# time.
HOLD_S = 300
TAKEN_MAX = 40
SENT_AT_ONCE = 10


@value_class
class Found:
    """Selected dead letters. `cut` is True if the limit left letters unread."""

    cases: tuple[Case, ...]
    cut: bool


@value_class
class Redriven:
    """Numbers of letters sent back, and of skipped letters by reason.

    `cut` is True if the limit left letters unread.
    """

    sent: int
    skipped: Mapping[str, int]
    cut: bool


@value_class
class DeadLetterAdmin:
    """Finds, purges (deletes) and redrives (sends back) dead letters."""

    dead_letters: DeadLetters
    queue: Queue
    crawls: Crawls
    packs: Packs
    clock: Clock

    async def find(self, selection: DeadLetterSelection, *, limit: int) -> Found:
        async with _held(self.dead_letters) as held:
            rounds = [some async for some in held.rounds(limit)]
            cases = tuple(case for some in rounds for case in some if selection.matches(case))
            return Found(cases=cases, cut=held.cut)

    async def purge(
        self, selection: DeadLetterSelection, *, limit: int, only: frozenset[str] | None = None
    ) -> tuple[int, bool]:
        """Delete selected dead letters. Returns the number, and whether unread letters exist.

        If `only` is given, only letters with these ids are deleted. So letters that arrived after a
        user saw the list are kept.
        """
        purged = 0
        async with _held(self.dead_letters) as held, aclosing(held.rounds(limit)) as rounds:
            async for some in rounds:
                chosen = [
                    case
                    for case in some
                    if selection.matches(case) and (only is None or case.letter.id in only)
                ]
                await held.delete(chosen)
                purged += len(chosen)
            return purged, held.cut

    async def redrive(
        self,
        selection: DeadLetterSelection,
        *,
        limit: int,
        rate_per_s: int,
        malformed: bool = False,
        say: Callable[[int], None] = lambda _: None,
    ) -> Redriven:
        """Send dead letters back to their queues at a limited rate.

        `say` is the progress callback, with the number of letters sent so far.

        Letters that would fail again are skipped. These are messages of a crawl that does not
        exist. Invalid messages and messages of a newer version are skipped, too, unless `malformed`
        is True.
        """
        sent, skipped = 0, Counter[str]()
        started_ms = self.clock.now_ms()
        step = max(1, min(SENT_AT_ONCE, rate_per_s))
        crawls: dict[str, Crawl | None] = {}
        async with _held(self.dead_letters) as held, aclosing(held.rounds(limit)) as rounds:
            async for some in rounds:
                going: list[Case] = []
                obstacle: str | None
                for case in filter(selection.matches, some):
                    obstacle = NEW
                    if case.letter.sent_at_ms <= started_ms:
                        obstacle = await self._obstacle(case, crawls, malformed=malformed)
                    if obstacle is None:
                        going.append(case)
                    else:
                        skipped[obstacle] += 1
                for start in range(0, len(going), step):
                    batch = going[start : start + step]
                    # After a crash between these two calls, two copies exist. Both have the same
                    # id, so workers process the message once.
                    await self._send(batch, crawls)
                    await held.delete(batch)
                    sent += len(batch)
                    say(sent)
                    await self.clock.sleep(len(batch) / rate_per_s)
            return Redriven(sent=sent, skipped=skipped, cut=held.cut)

    async def _obstacle(
        self, case: Case, crawls: dict[str, Crawl | None], *, malformed: bool
    ) -> str | None:
        """Return why a dead letter would fail again. None: it can succeed."""
        if case.is_hopeless:
            return None if malformed else HOPELESS
        if isinstance(case.message, Newer):
            return None if malformed else NEWER_VERSION
        name = case.crawl or ""
        if name not in crawls:
            try:
                crawls[name] = await crawl_for(self.crawls, name, self.clock.now_ms())
            except StoredNewer:
                return NEWER_VERSION
        return UNKNOWN_CRAWL if crawls[name] is None else None

    async def _send(self, cases: Sequence[Case], crawls: Mapping[str, Crawl | None]) -> None:
        """Send dead letters back, each to the queue of its crawl's priority."""
        await self._forgive([case.message for case in cases if isinstance(case.message, Pack)])
        as_they_are: dict[MessageSource, list[str]] = {}
        lanes: dict[bool, list[Revived]] = {}
        for case in cases:
            message = message_to_resend(case, self.clock.now_ms())
            crawl = crawls.get(case.crawl or "")
            if message is None or crawl is None:
                as_they_are.setdefault(case.letter.source, []).append(case.letter.body)
            else:
                lanes.setdefault(crawl.express, []).append(message)
        for express, messages in lanes.items():
            packs = [
                OutgoingPack(pack=message) for message in messages if isinstance(message, Pack)
            ]
            seeds = [
                item for message in messages if not isinstance(message, Pack) for item in message
            ]
            if packs:
                await self.queue.send(packs, express=express)
            if seeds:
                await self.queue.send_seeds(seeds, express=express)
        for source, bodies in as_they_are.items():
            await self.dead_letters.resend(bodies, source)

    async def _forgive(self, packs: Sequence[Pack]) -> None:
        """Allow one more attempt for messages that reached the maximum number of failures.

        A message that a worker moved to the dead letters has an attempt left already. A message
        that SQS moved has none left.
        """
        single = [pack.id for pack in packs if len(pack.targets) == 1]
        if not single:
            return
        for pack_id, known in (await self.packs.recall(single)).items():
            if known.strikes >= STRIKES_MAX:
                await self.packs.set_strikes(pack_id, STRIKES_MAX - 1)


class _Held:
    """Letters that were received and not yet sent back, deleted or released."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._dead_letters = dead_letters
        self._letters: dict[str, DeadLetter] = {}
        self._seen: set[str] = set()
        self.cut = False

    async def rounds(self, limit: int) -> AsyncGenerator[list[Case], None]:
        """Receive batches of at most `limit` dead letters in total, until no new one arrives."""
        while True:
            # One letter more than `limit` is received, to find out whether more exist.
            wanted = min(TAKEN_MAX, limit + 1 - len(self._seen))
            taken = await self._take(wanted)
            new = {letter.id: letter for letter in taken if letter.id not in self._seen}
            self._seen |= new.keys()
            if not new:
                return
            self.cut = len(self._seen) > limit
            shown = list(new.values())
            yield [read(letter) for letter in (shown[:-1] if self.cut else shown)]
            if self.cut:
                return

    async def _take(self, wanted: int) -> Sequence[DeadLetter]:
        # If this task is cancelled while letters arrive, these letters are noted, so that they are
        # released.
        taking = asyncio.ensure_future(self._dead_letters.take(wanted, HOLD_S))
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(PortError):
                self._note(await taking)
            raise
        self._note(taken)
        return taken

    def _note(self, taken: Sequence[DeadLetter]) -> None:
        self._letters |= {letter.id: letter for letter in taken}

    async def delete(self, cases: Sequence[Case]) -> None:
        letters = [self._letters[case.letter.id] for case in cases]
        await self._dead_letters.delete(letters)
        for letter in letters:
            del self._letters[letter.id]

    async def put_back(self) -> None:
        """Release all held letters. If that fails, they become visible after `HOLD_S`."""
        try:
            await self._dead_letters.put_back(list(self._letters.values()))
        except PortError as error:
            _log.warning("dead_letters.not_put_back", extra={"error": str(error)})


@asynccontextmanager
async def _held(dead_letters: DeadLetters) -> AsyncIterator[_Held]:
    held = _Held(dead_letters)
    try:
        yield held
    finally:
        await held.put_back()
