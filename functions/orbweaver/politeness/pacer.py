"""Wait for a host's slots, which are reserved in blocks and expire if they are not used on time.

Slots reserved together form a block with one slack (allowed lateness) at its end. Within a block,
the pacer itself keeps the delay between requests. A late request is sent at once, and the following
slots of the block are moved. Slots that no longer fit into the block are released.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from orbweaver.model.ports import Clock
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import (
    PROBE_MS,
    Host,
    is_doubtful,
    slack_ms,
    spacing_ms,
)

if TYPE_CHECKING:
    from orbweaver.politeness.ports import SlotStore

# Attempts to replace a slot that was missed because the process was busy, before the URL is
# requeued.
LAPSES_MAX = 5
# A reservation takes time, so the first slot starts LEAD_MS later. The lead is multiplied by
# LEAD_GROWTH after every missed slot, so that a slow table or a busy process still uses its slots.
LEAD_MS, LEAD_GROWTH = 20, 4
# This long before a slot, the worker checks whether the host is blocked. In a crawl without a
# delay, the check is valid for this time.
LOOK_MS = 1_000
# Requests without a delay share a check of this age, because reading a host takes 25 us.
LOOK_FRESH_MS = 500
# Approximate length of a block of slots. Crawls that request the same host alternate by blocks. A
# visit waits this long for its first slot, whatever it costs.
BLOCK_MS = 10_000


def unlimited_ms() -> float:
    """Return the wait limit where waiting costs nothing."""
    return inf


@value_class
class Turn:
    """Permission to send a request within a time range.

    `troubled` means that the host did not respond to previous requests. `probe` means that this
    request decides whether other workers may request the host. `is_last` means that the visit has
    no more slots.
    """

    slot_ms: int
    to_ms: int
    is_last: bool = True
    troubled: bool = False
    probe: bool = False


class HostRequests:
    """Requests to one host, shared by the visits of a container.

    Only the visit that holds `reserving` reserves slots. `sent_ms` is the time of the last request.
    """

    def __init__(self, host: str, hosts: SlotStore, clock: Clock) -> None:
        self.host, self.hosts, self.clock = host, hosts, clock
        self.reserving = asyncio.Lock()
        self.sent_ms = 0
        self._looked: tuple[Host, int] | None = None

    async def look(self, fresh_ms: int) -> tuple[Host, int]:
        """Return the host's state, and the time of its reading, less than `fresh_ms` ago."""
        now_ms = self.clock.now_ms()
        if self._looked is not None:
            state, looked_ms = self._looked
            # A host with failures may have recovered since.
            if 0 <= now_ms - looked_ms < fresh_ms and not state.failures:
                return self._looked
        looked = self._looked = await self.hosts.read_host(self.host), now_ms
        return looked


class Pacer:
    """Reserves slots of one host for one pack (message with up to 25 URLs), and waits for them."""

    def __init__(
        self,
        requests: HostRequests,
        *,
        delay_ms: int,
        until_ms: int,
        wait_limit_ms: Callable[[], float] = unlimited_ms,
        lined: bool = True,
    ) -> None:
        """Prepare to reserve slots. If `lined`, URLs without a slot join the waiting line.

        `wait_limit_ms` returns the longest wait in ms that costs less than requeueing the URLs.
        """
        self._requests = requests
        self._hosts = requests.hosts
        self._clock = requests.clock
        self._host = requests.host
        self._delay_ms = delay_ms
        self._until_ms = until_ms
        self._wait_limit_ms = wait_limit_ms
        self._lined = lined
        self._block = max(1, BLOCK_MS // delay_ms) if delay_ms else 0
        # Start times of unused slots, and the times of the first and the last request that their
        # block allows.
        self._slots: deque[int] = deque()
        self._block_from_ms = self._block_to_ms = 0
        # Earliest time of the next request by other visits: if this pacer uses no further slot, and
        # as reserved.
        self._free_ms = self._reserved_ms = 0
        # Earliest time of this pacer's next request.
        self._next_ms = 0
        self._asked_ms: int | None = None
        # Time to try again for URLs without a slot. None until a reservation had too few slots.
        self._rest_at_ms: int | None = None
        self._probe = False
        self.turn = Turn(slot_ms=0, to_ms=0)

    async def wait_for_slot(self, wanted: int) -> int | None:
        """Wait for the next slot, and reserve up to `wanted` if none is left.

        Returns None when a request may be sent at once, within `turn`. Otherwise returns the time
        in ms to try again.
        """
        self._probe = False
        lead_ms = LEAD_MS if self._delay_ms else 0
        for _ in range(LAPSES_MAX):
            if not self._slots:
                return_at_ms = await self._reserve(wanted, lead_ms)
                if return_at_ms is not None:
                    return return_at_ms
            at_ms = max(self._slots.popleft(), self._next_ms)
            if self._delay_ms and at_ms > self._block_to_ms:
                self._slots.clear()
                continue
            await self._sleep_until(at_ms - LOOK_MS)
            state, looked_ms = await self._requests.look(0 if self._delay_ms else LOOK_FRESH_MS)
            return_at_ms = await self._barred(state)
            if return_at_ms is not None:
                return return_at_ms
            await self._sleep_until(at_ms)
            # A request may have been sent meanwhile. The clock may have been set back.
            sent_ms = min(self._requests.sent_ms, self._clock.now_ms())
            await self._sleep_until(max(self._next_ms, sent_ms + self._delay_ms))
            now_ms = self._clock.now_ms()
            if now_ms > self._until_ms:
                return now_ms
            # Without a delay, a turn lasts as long as the check of the host is valid.
            to_ms = looked_ms + LOOK_MS
            if self._delay_ms:
                to_ms = min(now_ms + slack_ms(self._delay_ms), self._block_to_ms)
            if now_ms <= to_ms:
                self._free_ms = to_ms + self._delay_ms
                self._next_ms = self._free_ms if self._delay_ms else 0
                self.turn = Turn(
                    slot_ms=at_ms,
                    to_ms=to_ms,
                    is_last=not self._slots,
                    troubled=state.failures > 0,
                    probe=self._probe,
                )
                return None
            lead_ms *= LEAD_GROWTH
            self._slots.clear()
        return self._clock.now_ms()

    async def release(self, *, if_late: bool = False) -> None:
        """Release reserved slots that no request will use.

        If the last request was sent after the end of its block, this extends the reservation.
        With `if_late`, it does nothing else.
        """
        unused = self._free_ms != self._reserved_ms and not if_late
        if self._delay_ms and (unused or self._free_ms > self._reserved_ms):
            await self._hosts.release(self._host, self._free_ms, self._reserved_ms)
            self._reserved_ms = self._free_ms
            self._slots.clear()

    async def _barred(self, state: Host) -> int | None:
        """Return the time to try again if the host must not be requested now, else None."""
        now_ms = self._clock.now_ms()
        if state.blocked_until_ms > now_ms and not self._probe:
            return state.blocked_until_ms
        if is_doubtful(state, now_ms):
            self._probe = await self._hosts.take_probe(self._host, now_ms + PROBE_MS, now_ms)
            if not self._probe:
                return now_ms + PROBE_MS
        return None

    def start_request(self, turn: Turn) -> bool:
        """Record the start of a request. Return False, without a record, if `turn` has passed."""
        now_ms = self._clock.now_ms()
        is_over = now_ms > turn.to_ms
        if not is_over:
            self._asked_ms = now_ms
        if self._delay_ms and turn is self.turn:
            # Meanwhile, another task may have reserved a new block.
            if is_over and turn.slot_ms >= self._block_from_ms:
                self._slots.appendleft(turn.slot_ms)
            if self._asked_ms is not None:
                self._next_ms = self._asked_ms + self._delay_ms
                self._free_ms = max(self._block_from_ms, self._next_ms)
        return not is_over

    def note_sent(self) -> None:
        """Record that a request was sent, which may be later than its start."""
        # The host's next slot may be reserved already by another visit, which waits for `sent_ms`.
        self._asked_ms = self._requests.sent_ms = self._clock.now_ms() + 1  # the clock rounds down
        self._next_ms = max(self._next_ms, self._asked_ms + self._delay_ms)
        self._free_ms = max(self._free_ms, self._next_ms)

    async def _reserve(self, wanted: int, lead_ms: int) -> int | None:
        """Reserve a block of slots. Return None, or the time to try again if there is no slot."""
        if self._rest_at_ms is not None:
            return self._rest_at_ms
        now_ms, delay_ms = self._clock.now_ms(), self._delay_ms
        until_ms = self._until_ms
        if delay_ms:
            wait_ms = self._wait_limit_ms()
            if wait_ms < delay_ms and self._asked_ms is not None:
                return self._asked_ms + spacing_ms(delay_ms)
            block = self._block if wait_ms >= delay_ms else 1
            wanted = min(wanted, block)
            # A visit that has sent no request yet waits for at least one slot.
            first_ms = min(delay_ms, BLOCK_MS) if self._asked_ms is None else 0
            patience_ms = max(wait_ms, (block - 1) * delay_ms, first_ms)
            until_ms = round(min(until_ms, now_ms + patience_ms))
        await self.release()
        slack = slack_ms(delay_ms)
        # The slack is divided among the slots, because fewer slots may be granted.
        spacing = delay_ms + -(-slack // wanted)
        got = await self._hosts.reserve(
            self._host, wanted, spacing, now_ms + lead_ms, max(until_ms, now_ms + lead_ms)
        )
        if not got.at_ms:
            return got.return_at_ms if self._lined else await self._free_at_ms(got.return_at_ms)
        late_ms = len(got.at_ms) * (spacing - delay_ms) if delay_ms else LOOK_MS
        first_ms = got.at_ms[0]
        self._free_ms, self._reserved_ms = first_ms, first_ms + len(got.at_ms) * spacing
        # Slots of an earlier block are over. One may have been added during the reservation.
        self._slots = deque(first_ms + place * delay_ms for place in range(len(got.at_ms)))
        self._block_from_ms = first_ms
        self._block_to_ms = self._slots[-1] + late_ms
        if len(got.at_ms) < wanted and until_ms >= self._until_ms:
            rest_ms = got.return_at_ms
            self._rest_at_ms = rest_ms if self._lined else first_ms + len(got.at_ms) * spacing
        return None

    async def _free_at_ms(self, blocked_until_ms: int) -> int:
        """Return the time when the host is free, for a crawl with one pack per host."""
        state = await self._hosts.read_host(self._host)
        now_ms = self._clock.now_ms()
        if state.blocked_until_ms > now_ms:
            return max(blocked_until_ms, state.blocked_until_ms)
        return max(state.tat_ms, now_ms)

    async def _sleep_until(self, at_ms: int) -> None:
        while (wait_ms := at_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(wait_ms / 1000)
