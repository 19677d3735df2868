"""Interfaces to the queues, including the dead-letter queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Close, MessageSource, Pack, SeedsMessage
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import DeadLetter


@value_class
class Depths:
    """Number of messages on all queues together. Approximate, as SQS counts them."""

    waiting: int = 0
    in_work: int = 0
    delayed: int = 0
    dead: int = 0
    # Seconds for which a message in work stays invisible, or 0 if unknown.
    hidden_s: int = 0
    # Messages of packs that a worker already processes. Each becomes due if its worker dies.
    copies: int = 0

    @property
    def idle(self) -> bool:
        return self.waiting + self.in_work + self.delayed + self.copies == 0


@value_class
class Receipt:
    """Receipt handle of a message in flight, and the name of its queue."""

    handle: str
    queue: str


class Queue(Protocol):
    """Sends messages to the queues of packs (up to 25 URLs each) and the dead-letter queue."""

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        """Send packs, and return once all are accepted.

        With `express`, all packs use the express queue. Packs with priority
        (`OutgoingPack.express`) always use it. Packs for workers with a browser (`Pack.render`) use
        the render queue, if there is one.
        """

    async def send_seeds(self, seeds: Sequence[SeedsMessage], *, express: bool) -> None:
        """Send seeds, and return once all are accepted."""

    async def send_close(self, close: Close, delay_s: int) -> None:
        """Send the closing message of a cancelled crawl, on the express queue."""

    async def hold(self, waiting: Sequence[WaitingMessage], *, express: bool) -> None:
        """Send messages of a newer version again, unchanged, with the longest delay.

        The queue starts a new count of their receives. Each message keeps the message group of its
        crawl, and the time since which it waits.
        """

    async def release(self, pack: Pack, delay_s: int = 0, *, express: bool) -> bool:
        """Change the delay of a message whose pack this worker started early but did not finish.

        Returns False if the queue cannot change delays. SQS cannot.
        """

    async def retry_soon(self, receipts: Sequence[Receipt], delay_s: int) -> None:
        """Make messages in flight visible after a delay instead of the visibility timeout.

        A message that is no longer in flight is skipped.
        """

    async def dead_letter(
        self, body: str, reason: str, source: MessageSource = MessageSource.PACKS
    ) -> None:
        """Move a message that can never succeed to the dead-letter queue.

        The dead letter has the reason and the kind of the original queue, which readers need to
        decode it.
        """


class DeadLetters(Protocol):
    """The dead-letter queue, for an operator's commands."""

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        """Receive up to `count_max` dead letters, hidden from other readers for `hold_s`.

        Returns none if the queue has no more. A letter can be received twice.
        """

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """Make dead letters visible again. Letters that are no longer hidden are skipped."""

    async def delete(self, letters: Sequence[DeadLetter]) -> None: ...

    async def resend(
        self, bodies: Sequence[str], source: MessageSource = MessageSource.PACKS
    ) -> None:
        """Send message bodies unchanged to the queue from which they came (`source`)."""
