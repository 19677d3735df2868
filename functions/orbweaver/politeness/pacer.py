"""Waiting for a host's slots: reserved some at a time, each used on time or not at all.

Slots that were reserved together are a block: so many delays and one slack behind them. Within a
block the pacer keeps the delay itself, from one request to the next, so that lateness adds up to no
more than the slack, and the next block begins no sooner than a delay after the last request.

Who waits alone pays for all of the time: a visit waits for a slot only where that costs less than
to come back (`WaitLimit`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orbweaver.model.ports import Clock
from orbweaver.politeness.host_schedule import (
    PROBE_MS,
    Host,
    is_doubtful,
    slack_ms,
    spacing_ms,
)

if TYPE_CHECKING:
    from orbweaver.politeness.ports import SlotStore

# A slot that lapsed while we were busy is replaced this often before the URL is sent round.
LAPSES_MAX = 5
# A reservation takes a moment itself: slots are asked for from this far ahead, further with
# every one that lapsed, so that a slow table or a busy process still meets its slots.
LEAD_MS, LEAD_GROWTH = 20, 4
# Whether a host was blocked meanwhile is looked up this long before a slot; without a delay it
# is how old that knowledge may be.
LOOK_MS = 1_000
# A block is about this long: crawls that ask the same host take turns by blocks. A visit waits for
# its first slot for as long, whatever that costs.
BLOCK_MS = 10_000


class WaitLimit(Protocol):
    """How long a visit may wait for one slot, as it is now."""

    def wait_ms(self) -> float:
        """How long waiting costs less than coming back."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Waits as long as it takes: where waiting costs nothing."""

    def wait_ms(self) -> float:
        """See `WaitLimit`."""
        return float("inf")


UNLIMITED = Unlimited()


@dataclass(frozen=True, slots=True)
class _Slot:
    """When a request may be made: from a moment to a moment."""

    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Leave to ask a host, from a moment to a moment.

    `troubled` says that the host was silent before, `probe` that others wait for its result.
    """

    slot_ms: int
    to_ms: int
    troubled: bool = False
    probe: bool = False


class Pacer:
    """Slots of one host for one pack."""

    def __init__(
        self,
        *,
        hosts: SlotStore,
        clock: Clock,
        host: str,
        delay_ms: int,
        until_ms: int,
        wait_limit: WaitLimit = UNLIMITED,
        lined: bool = True,
    ) -> None:
        """Reserve for one pack; `lined` says that URLs without a slot join the waiting line."""
        self._hosts = hosts
        self._clock = clock
        self._host = host
        self._delay_ms = delay_ms
        self._until_ms = until_ms
        self._wait_limit = wait_limit
        self._lined = lined
        self._block = max(1, BLOCK_MS // delay_ms) if delay_ms else 0
        self._slots: deque[_Slot] = deque()
        self._asked_ms: int | None = None
        # When those may return that got no slot beside others that did: they have their place.
        self._rest_at_ms: int | None = None
        self._probe = False
        self.turn = Turn(slot_ms=0, to_ms=0)

    async def take(self, wanted: int) -> int | None:
        """Wait for the next slot, reserving up to `wanted` where none is left.

        None once the slot is there and the host may be asked at once (`turn` tells which it
        is); else when to come back.
        """
        self._probe = False
        lead_ms = LEAD_MS if self._delay_ms else 0
        for _ in range(LAPSES_MAX):
            if not self._slots:
                return_at_ms = await self._reserve(wanted, lead_ms)
                if return_at_ms is not None:
                    return return_at_ms
            slot = self._slots.popleft()
            await self._sleep_until(slot.from_ms - LOOK_MS)
            looked_ms = self._clock.now_ms()
            state = await self._hosts.look(self._host)
            return_at_ms = await self._barred(state)
            if return_at_ms is not None:
                return return_at_ms
            await self._sleep_until(slot.from_ms)
            if self._asked_ms is not None:
                await self._sleep_until(self._asked_ms + self._delay_ms)
            now_ms = self._clock.now_ms()
            if now_ms > self._until_ms:
                return now_ms
            # Without a delay a turn lasts as long as what was just read of the host may be trusted.
            to_ms = slot.to_ms if self._delay_ms else looked_ms + LOOK_MS
            if now_ms <= to_ms:
                self.turn = Turn(
                    slot_ms=slot.from_ms,
                    to_ms=to_ms,
                    troubled=state.failures > 0,
                    probe=self._probe,
                )
                return None
            lead_ms *= LEAD_GROWTH
            while self._slots and self._slots[0].from_ms < now_ms:
                self._slots.popleft()
        return self._clock.now_ms()

    @property
    def has_slots(self) -> bool:
        """Whether slots are left that it has reserved."""
        return bool(self._slots)

    async def _barred(self, state: Host) -> int | None:
        """When to come back to a host that is not to be asked now; None if it is."""
        now_ms = self._clock.now_ms()
        if state.blocked_until_ms > now_ms and not self._probe:
            return state.blocked_until_ms
        if is_doubtful(state, now_ms):
            self._probe = await self._hosts.probe(self._host, now_ms + PROBE_MS, now_ms)
            if not self._probe:
                return now_ms + PROBE_MS
        return None

    def asks(self, turn: Turn) -> bool:
        """Begin a request, if that is on time yet: the next one keeps its distance from it."""
        now_ms = self._clock.now_ms()
        if now_ms > turn.to_ms:
            return False
        self._asked_ms = now_ms
        return True

    async def _reserve(self, wanted: int, lead_ms: int) -> int | None:
        """Reserve a block, unless there is a place in line; when to come back if there is none."""
        if self._rest_at_ms is not None:
            return self._rest_at_ms
        now_ms, delay_ms = self._clock.now_ms(), self._delay_ms
        until_ms = self._until_ms
        if delay_ms:
            wait_ms = self._wait_limit.wait_ms()
            if wait_ms < delay_ms and self._asked_ms is not None:
                return self._asked_ms + spacing_ms(delay_ms)
            block = self._block if wait_ms >= delay_ms else 1
            wanted = min(wanted, block)
            # Who has asked for nothing yet has come for one slot at least.
            first_ms = min(delay_ms, BLOCK_MS) if self._asked_ms is None else 0
            patience_ms = max(wait_ms, (block - 1) * delay_ms, first_ms)
            until_ms = round(min(until_ms, now_ms + patience_ms))
        slack = slack_ms(delay_ms)
        # Of a block, the slack is shared out: whatever is granted has its part.
        spacing = delay_ms + -(-slack // wanted)
        got = await self._hosts.reserve(
            self._host, wanted, spacing, now_ms + lead_ms, max(until_ms, now_ms + lead_ms)
        )
        if not got.at_ms:
            return got.return_at_ms if self._lined else await self._free_at_ms(got.return_at_ms)
        late_ms = len(got.at_ms) * (spacing - delay_ms) if delay_ms else LOOK_MS
        first_ms = got.at_ms[0]
        for place in range(len(got.at_ms)):
            from_ms = first_ms + place * delay_ms
            self._slots.append(_Slot(from_ms, from_ms + late_ms))
        if len(got.at_ms) < wanted and until_ms >= self._until_ms:
            rest_ms = got.return_at_ms
            self._rest_at_ms = rest_ms if self._lined else first_ms + len(got.at_ms) * spacing
        return None

    async def _free_at_ms(self, blocked_until_ms: int) -> int:
        """When the host is free, for a visit whose crawl has no other."""
        state = await self._hosts.look(self._host)
        now_ms = self._clock.now_ms()
        if state.blocked_until_ms > now_ms:
            return max(blocked_until_ms, state.blocked_until_ms)
        return max(state.tat_ms, now_ms)

    async def _sleep_until(self, at_ms: int) -> None:
        while (wait_ms := at_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(wait_ms / 1000)
