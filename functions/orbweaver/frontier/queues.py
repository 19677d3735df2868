"""The queues: what is to be crawled, and what never could be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Close, MessageSource, SeedsMessage

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How many messages are on the queues, all together: about, as SQS counts them."""

    waiting: int = 0
    in_work: int = 0
    delayed: int = 0
    dead: int = 0
    # For how long a message is held back from when a worker took it; 0 where it is unknown.
    hidden_s: int = 0
    # Copies of packs that a worker has taken on. Each is due if its worker dies.
    copies: int = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is left that could still be worked on."""
        return self.waiting + self.in_work + self.delayed + self.copies == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Receipt handle of a message in flight, and the name of its queue."""

    handle: str
    queue: str


class Queue(Protocol):
    """The queue of packs, its express and its render lane, and the dead-letter queue."""

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        """Send packs; returns once every one of them is accepted.

        Packs that go past others (`OutgoingPack.express`) take the express lane in any case. Those
        for workers with a browser (`Pack.render`) take the render lane, if there is one.
        """

    async def send_seeds(self, seeds: Sequence[SeedsMessage], *, express: bool) -> None:
        """Send seeds; returns once every one of them is accepted."""

    async def send_close(self, close: Close, delay_s: int) -> None:
        """Send word that a cancelled crawl is to end, on the express lane."""

    async def hold(self, waiting: Sequence[WaitingMessage], *, express: bool) -> None:
        """Send bodies of newer versions again, byte for byte, with the longest delay.

        They are counted as received anew. Each keeps its crawl's group, and says since when it
        waits.
        """

    async def retry_soon(self, receipts: Sequence[Receipt], delay_s: int) -> None:
        """Make messages in flight visible after a delay instead of the visibility timeout.

        A message that is not in flight any more is passed over.
        """

    async def bury(
        self, body: str, reason: str, source: MessageSource = MessageSource.PACKS
    ) -> None:
        """Put a message that can never succeed on the dead-letter queue.

        With its reason, and which kind of queue it came from: it is read as such ever after.
        """


class DeadLetters(Protocol):
    """The dead-letter queue, as an operator's commands see it."""

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        """Take some dead letters, hidden from other readers for so long. None once all are taken.

        The same one may come twice.
        """

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """Show dead letters to all readers again; what is not held any more is passed over."""

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        """Remove dead letters that were taken."""

    async def resend(
        self, bodies: Sequence[str], source: MessageSource = MessageSource.PACKS
    ) -> None:
        """Send bodies as they are to the queue that they belong to."""
