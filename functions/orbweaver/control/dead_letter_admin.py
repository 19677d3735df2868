"""List, redrive and purge dead letters: messages that the queue set aside after many failures.

Reading hides letters from other readers for a while. At the end, the remaining letters are
released, even after an error. After a kill they become visible after the timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
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
from orbweaver.worker.seeding import crawl_for

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import DeadLetter, DeadLetterSelection, Revived
    from orbweaver.frontier.ports import Crawls, Packs
    from orbweaver.frontier.queues import DeadLetters, Queue

_log = logging.getLogger(__name__)

# Visibility timeout. It exceeds the time to process one batch, and to read ten thousand letters.
HOLD_S = 300
TAKEN_MAX = 40
SENT_AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Selected dead letters. `cut` is True if more were not read."""

    cases: tuple[Case, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """Numbers of sent letters, and of skipped letters by reason."""

    sent: int
    skipped: Mapping[str, int]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterAdmin:
    """Administers dead letters."""

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
        """Delete dead letters, `only` with these ids. Returns the number, and whether more exist.

        Letters that arrived after the count are kept.
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
        """Send dead letters back at a limited rate. `say` receives the number sent so far.

        It skips letters that would fail again: invalid messages and messages of a newer version
        (both unless `malformed`), and messages of a crawl that does not exist.
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
                    # A crash between these two calls leaves a copy. Its id is the same, so workers
                    # process it once.
                    await self._send(batch, crawls)
                    await held.delete(batch)
                    sent += len(batch)
                    say(sent)
                    await self.clock.sleep(len(batch) / rate_per_s)
            return Redriven(sent=sent, skipped=skipped, cut=held.cut)

    async def _obstacle(
        self, case: Case, crawls: dict[str, Crawl | None], *, malformed: bool
    ) -> str | None:
        """Return why a dead letter would fail again. None: it may succeed."""
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
        """Send dead letters back, each on the queue of its crawl's priority."""
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

        Messages that a worker moved to the dead letters have it already. Messages that SQS moved
        have not.
        """
        single = [pack.id for pack in packs if len(pack.targets) == 1]
        if not single:
            return
        for pack_id, known in (await self.packs.recall(single)).items():
            if known.strikes >= STRIKES_MAX:
                await self.packs.set_strikes(pack_id, STRIKES_MAX - 1)


class _Held:
    """Received letters that are not sent back or deleted yet."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._dead_letters = dead_letters
        self._letters: dict[str, DeadLetter] = {}
        self._seen: set[str] = set()
        self.cut = False

    async def rounds(self, limit: int) -> AsyncGenerator[list[Case], None]:
        """Receive dead letters until there are no new ones, at most `limit`."""
        while True:
            # One more than `limit`, to find out whether more exist.
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
        # Letters that arrive during an interrupt are held as well, and must be released.
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
        """Release all remaining letters. If that fails, they become visible after the timeout."""
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
