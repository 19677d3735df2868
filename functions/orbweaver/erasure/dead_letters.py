"""Erasure in dead letters: messages that no worker could process.

In an unfinished crawl, every claimed URL still needs an outcome. So dead letters of such a crawl
remain on the queue. After a redrive, which sends them to workers again, a worker records their
erased URLs as `skipped: erased`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from orbweaver.erasure.ports import Stores
from orbweaver.erasure.scope import ErasureScope, without
from orbweaver.frontier.dead_letters import DeadLetter
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.messages import (
    Close,
    Loose,
    Malformed,
    Message,
    Pack,
    SeedsMessage,
    decode,
    encode,
)
from orbweaver.model.version import REMEDY

# Seconds for which received letters are hidden: longer than processing them takes.
HOLD_S = 900
TAKEN_MAX = 40
# Maximum number of dead letters in memory, about 2.5 KB each.
LETTERS_MAX = 50_000


class DeadLetterEraser:
    """Erases data in dead letters. `done` counts the changes, `left` the failures."""

    def __init__(self, stores: Stores, scope: ErasureScope) -> None:
        self._dead_letters = stores.dead_letters
        self._queue = stores.queue
        self._crawls = stores.crawls
        self._scope = scope
        self.done: Counter[str] = Counter()
        self.left: set[str] = set()

    async def find(self) -> list[DeadLetter]:
        """Return the dead letters that contain data in scope. All remain on the queue."""
        taken = await self._take()
        await self._dead_letters.put_back(taken)
        return [letter for letter in taken if self._holds(letter)]

    async def erase(self) -> None:
        taken = await self._take()
        try:
            for letter in list(filter(self._holds, taken)):
                if await self._replace(letter):
                    await self._dead_letters.delete([letter])
                    taken.remove(letter)
                    self.done["dead_letters"] += 1
        finally:
            await self._dead_letters.put_back(taken)

    async def _take(self) -> list[DeadLetter]:
        found: dict[str, DeadLetter] = {}
        while len(found) < LETTERS_MAX:
            some = await self._dead_letters.take(TAKEN_MAX, HOLD_S)
            new = {letter.id: letter for letter in some}
            if not new.keys() - found.keys():
                return list(found.values())
            found |= new
        self.left.add(f"more than {LETTERS_MAX:,} dead letters: run this again")
        return list(found.values())

    def _holds(self, letter: DeadLetter) -> bool:
        message = decode(letter.body, letter.source)
        return message_left(message, letter.body, self._scope) is not message

    async def _replace(self, letter: DeadLetter) -> bool:
        """Send a copy of a dead letter without the data in scope, unless nothing remains of it.

        Return False if the letter must remain on the queue: its crawl has not ended, or a newer
        version wrote it.
        """
        message = decode(letter.body, letter.source)
        if isinstance(message, Newer):
            self.left.add(f"messages {message.said}: {REMEDY}, and run this again")
            return False
        left = message_left(message, letter.body, self._scope)
        crawl = None
        if isinstance(message, Pack | SeedsMessage):
            crawl = await self._crawls.get(message.crawl)
        if crawl is not None and crawl.live:
            self.left.add(
                f"dead letters of {crawl.id}, which is {crawl.state}: `orbweaver dlq redrive` ends"
                " their erased URLs"
            )
            return False
        if left is not None and not isinstance(left, Malformed | Newer):
            reason = letter.reason or "received too often"
            await self._queue.dead_letter(encode(left), reason, letter.source)
        return True


def message_left(  # noqa: PLR0911 - one for each kind
    message: Message, body: str, scope: ErasureScope
) -> Message | None:
    """Return what remains of a message after erasing.

    None: nothing. The same object: the message contains no data in scope. `body` is its text.
    """
    if isinstance(message, Malformed):
        return None if scope.text(body) or scope.reference(body.strip()) else message
    if isinstance(message, Newer):
        # Its content is unknown, but a message has only data of its own crawl.
        others = scope.runs and message.crawl and not scope.run(message.crawl)
        return message if others else None
    if scope.run(message.crawl):
        return None
    match message:
        case Pack():
            return _pack_left(message, scope)
        case SeedsMessage() | Loose():
            references = without(message.references, scope)
            if references == message.references:
                return message
            return replace(message, references=references) if references else None
        case Close():
            return message


def _pack_left(pack: Pack, scope: ErasureScope) -> Pack | None:
    if not any(scope.url(one.url) or scope.url(one.referrer) for one in pack.targets):
        return pack
    targets = tuple(
        replace(target, referrer=None) if scope.url(target.referrer) else target
        for target in pack.targets
        if not scope.url(target.url)
    )
    return replace(pack, targets=targets) if targets else None
