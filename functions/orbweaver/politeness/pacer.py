"""Waiting for a host's slots: reserved many at a time, each used on time or not at all."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.model.ports import Clock
from orbweaver.politeness.host_schedule import PROBE_MS, is_doubtful, slack_ms, spacing_ms

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Leave to ask a host, at a slot.

    `troubled` says that the host was silent before, `probe` that others wait for its result.
    """

    slot_ms: int
    troubled: bool = False
    probe: bool = False


class Pacer:
    """Slots of one host for one pack."""

    def __init__(
        self, *, hosts: SlotStore, clock: Clock, host: str, delay_ms: int, until_ms: int
    ) -> None:
        self._hosts = hosts
        self._clock = clock
        self._host = host
        self._delay_ms = delay_ms
        self._until_ms = until_ms
        self._slots: deque[int] = deque()
        # When those may return that got no slot beside others that did: they have their place.
        self._rest_at_ms: int | None = None
        self._late_ms = slack_ms(delay_ms) if delay_ms else LOOK_MS
        self.turn = Turn(slot_ms=0)

    async def take(self, wanted: int) -> int | None:
        """Wait for the next slot, reserving up to `wanted` where none is left.

        None once the slot is there and the host may be asked at once (`turn` tells which it
        is); else when to come back.
        """
        probe = False
        lead_ms = LEAD_MS if self._delay_ms else 0
        for _ in range(LAPSES_MAX):
            if not self._slots:
                return_at_ms = await self._reserve(wanted, lead_ms)
                if return_at_ms is not None:
                    return return_at_ms
            slot_ms = self._slots.popleft()
            await self._sleep_until(slot_ms - LOOK_MS)
            state = await self._hosts.look(self._host)
            now_ms = self._clock.now_ms()
            if state.blocked_until_ms > now_ms and not probe:
                return state.blocked_until_ms
            if is_doubtful(state, now_ms):
                probe = await self._hosts.probe(self._host, now_ms + PROBE_MS, now_ms)
                if not probe:
                    return now_ms + PROBE_MS
            await self._sleep_until(slot_ms)
            now_ms = self._clock.now_ms()
            if now_ms > self._until_ms:
                return now_ms
            if self.on_time(slot_ms):
                troubled = state.failures > 0
                self.turn = Turn(slot_ms=slot_ms, troubled=troubled, probe=probe)
                return None
            lead_ms *= LEAD_GROWTH
            while self._slots and self._slots[0] < now_ms:
                self._slots.popleft()
        return self._clock.now_ms()

    def on_time(self, slot_ms: int) -> bool:
        """Whether a slot may still be used."""
        return self._clock.now_ms() <= slot_ms + self._late_ms

    async def _reserve(self, wanted: int, lead_ms: int) -> int | None:
        """Reserve slots, unless there is a place in line; when to come back if there are none."""
        if self._rest_at_ms is not None:
            return self._rest_at_ms
        now_ms = self._clock.now_ms() + lead_ms
        got = await self._hosts.reserve(
            self._host, wanted, spacing_ms(self._delay_ms), now_ms, self._until_ms
        )
        if not got.at_ms:
            return got.return_at_ms
        self._slots.extend(got.at_ms)
        if len(got.at_ms) < wanted:
            self._rest_at_ms = got.return_at_ms
        return None

    async def _sleep_until(self, at_ms: int) -> None:
        while (wait_ms := at_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(wait_ms / 1000)
