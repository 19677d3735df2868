"""Decide which delivery may start, resend or release the leased pack of a host.

Each host of a crawl with a delay has a *lease*, a record in its backlog (frontier/backlog.py). The
lease is *held* while the *leased pack*, the one at its place, exists. The *holder* is the pack that
*acquired* the lease. Deliveries of the holder's message send the leased pack. Each change increases
the *epoch*, and an acquisition succeeds only in the epoch that was read. To *release* a lease means
to record that the host has no leased pack. A lease has no time limit. Instead, a delivery of the
holder's message repeats the sending.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from orbweaver.frontier.backlog import Lease, WaitingPack
from orbweaver.model.value import positional_value_class, value_class

# Marks a holder that acquired the lease without the condition on its ledger.
_COPY = "copy/"


class Phase(Enum):
    """State of a delivery's pack.

    UNSENT: committed, and its ledger does not record that its outbox was sent. DONE: it has nothing
    to send. DEAD: it becomes a dead letter.
    """

    UNSENT = "unsent"
    DONE = "done"
    DEAD = "dead"


@value_class
class Asker:
    """A delivery of the message of `pack`. `place` is the place of the pack in the backlog."""

    pack: str
    phase: Phase
    place: str = ""

    @property
    def holder(self) -> str:
        """The holder to record if this delivery acquires or releases the lease."""
        return self.pack if self.phase is Phase.UNSENT else f"{_COPY}{self.pack}"

    @property
    def unsent(self) -> str:
        """The pack whose ledger must not record that its outbox was sent, or an empty string."""
        return self.pack if self.phase is Phase.UNSENT else ""


@positional_value_class
class StartPack:
    """Acquire the free lease for a waiting pack, then send the pack."""

    pack: WaitingPack


@positional_value_class
class HandOver:
    """Replace the asker's pack in the lease by a waiting pack, then send that pack."""

    pack: WaitingPack


@positional_value_class
class ResendPack:
    """Send the leased pack, because its first message may be missing."""

    place: str


class Rest(Enum):
    """RELEASE: record that the asker may not acquire the lease again. LEAVE: do nothing."""

    RELEASE = "release"
    LEAVE = "leave"


Step: TypeAlias = StartPack | HandOver | ResendPack | Rest


def step_of(lease: Lease, asker: Asker) -> Step:
    """Return the step of a delivery that has read a host's lease."""
    acquired = lease.holder in (asker.pack, f"{_COPY}{asker.pack}")
    if not lease.is_held:
        # Another pack is sure to send the first pack, unless this pack changed the lease last.
        may_acquire = asker.phase is Phase.UNSENT or acquired or lease.place == asker.place != ""
        if not may_acquire:
            return Rest.LEAVE
        if lease.first is not None:
            return StartPack(lease.first)
        # A delivery without the condition on the ledger could still acquire the lease after another
        # delivery has deleted the message. So the right to acquire ends before the message does.
        return Rest.LEAVE if asker.phase is Phase.UNSENT else Rest.RELEASE
    if asker.phase is Phase.UNSENT and lease.place == asker.place and lease.first is not None:
        return HandOver(lease.first)
    # A pack that was sent has sent the leased pack, unless it acquired the lease afterwards. It is
    # recorded as sent only if no concurrent delivery has acquired another lease.
    sent = asker.phase is Phase.DONE and lease.holder == asker.pack
    return ResendPack(lease.place) if acquired and not sent else Rest.LEAVE
