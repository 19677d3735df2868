"""Record results of requests to hosts, for all workers: backoffs, missing responses, recovery.

The rules are in `politeness/host_schedule.py`. Response times are not shared: each container uses
its own measurements.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from orbweaver.model.backoff import backoff_s
from orbweaver.model.errors import Transient
from orbweaver.model.outcome import Reason
from orbweaver.model.ports import Clock
from orbweaver.politeness.host_schedule import (
    Host,
    block_until_ms,
    pace_after_silence,
    pace_of,
)

if TYPE_CHECKING:
    from random import Random

    from orbweaver.politeness.ports import Hosts

FIRST = 4
# A response is slow if it takes SLOW_TIMES the average of the first ones, and at least SLOW_MS.
SLOW_TIMES, SLOW_MS = 2, 1_000
# Once slow responses exceed the others by HALVED_AFTER, the number of concurrent requests is
# halved. Each RECOVERED_AFTER responses in a row that are not slow restore RECOVERED_SHARE.
HALVED_AFTER, RECOVERED_AFTER = 4, 32
RECOVERED_SHARE = 1 / 8
_log = logging.getLogger(__name__)
# Number of hosts whose pace and load are remembered.
PACES_MAX = 4_096
# Number of a host's new URLs whose first attempts are remembered. The host counts as failing if
# half of these attempts failed. In this case, retries wait for the host's whole backoff, otherwise
# for a part of it.
TRIED = 16
# Failures that may concern a single page.
OF_A_PAGE = (Reason.HTTP_SERVER_ERROR, Reason.TIMEOUT, Reason.DISCONNECTED)
# A failing page waits for this part of the host's backoff: up to 1, 2 and 4 s by default.
PAGE_PART = 0.1


class Load(NamedTuple):
    """Response times of a host. `share` is the part of its concurrency that is used now.

    `first_ms` is the total time of the first responses. A positive `balance` is the excess of slow
    responses over others. A negative `balance` counts responses in a row that were not slow.
    """

    answers: int = 0
    first_ms: int = 0
    balance: int = 0
    share: float = 1.0
    eased_at_ms: int = 0


def load_after(load: Load, latency_ms: int, now_ms: int, *, well: bool) -> Load:
    """Record a response, or its absence after `latency_ms`. `well` means that it is no error."""
    if load.answers < FIRST:
        first_ms = load.first_ms + latency_ms
        return load._replace(answers=load.answers + 1, first_ms=first_ms) if well else load
    if now_ms - latency_ms < load.eased_at_ms:
        return load  # requested before the last reduction
    slow = latency_ms >= max(SLOW_TIMES * load.first_ms // FIRST, SLOW_MS)
    if not (slow or well):
        return load  # errors are fast, so they restore nothing
    balance = max(0, load.balance) + 1 if slow else load.balance - 1
    if balance == HALVED_AFTER:
        return load._replace(balance=0, share=load.share / 2, eased_at_ms=now_ms)
    if balance == -RECOVERED_AFTER:
        return load._replace(balance=0, share=min(1.0, load.share + RECOVERED_SHARE))
    return load._replace(balance=balance)


def concurrency_of(load: Load, most: int) -> int:
    return max(1, ceil(most * load.share))


@dataclass(slots=True, kw_only=True)
class _Known:
    """Measurements of a host in this container.

    `silent` means that the last request had no response. `tried` has an entry for the first attempt
    of each recent URL: True if it failed.
    """

    pace_ms: int = 0
    load: Load = field(default_factory=Load)
    silent: bool = False
    tried: tuple[bool, ...] = ()
    blocked_until_ms: int = 0


_UNKNOWN = _Known()


class HostHealth:
    """Records results of requests, and derives the pace and the backoff of a host from them."""

    def __init__(self, *, hosts: Hosts, clock: Clock, random: Random) -> None:
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def note_latency(self, host: str, latency_ms: int, *, well: bool, silent: bool = False) -> None:
        """Record a response time, or the time waited if the host was `silent`.

        `well` means that the response was no error.
        """
        known = self._entry(host)
        if silent:
            known.pace_ms = pace_after_silence(known.pace_ms, latency_ms)
        else:
            known.pace_ms = pace_of(known.pace_ms, latency_ms, well=well)
        known.load = load_after(known.load, latency_ms, self._clock.now_ms(), well=well)

    def _entry(self, host: str) -> _Known:
        """Return the measurements of a host, which the caller changes in place."""
        if host not in self._known:
            self._known[host] = _Known()
            if len(self._known) > PACES_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(host)
        return self._known[host]

    def tried(self, host: str, *, failed: bool) -> None:
        """Record the first attempt of a URL. `failed` means that the URL needs another attempt."""
        known = self._entry(host)
        known.tried = (*known.tried, failed)[-TRIED:]

    def backoff_s(self, host: str, reason: Reason, attempt: int, base_s: float) -> float:
        """Return how many seconds to wait after a URL's failed attempt number `attempt`."""
        fails = sum(self._known.get(host, _UNKNOWN).tried) >= TRIED // 2
        if reason in OF_A_PAGE and not fails:
            base_s *= PAGE_PART
        return backoff_s(attempt, self._random, base_s)

    def pace_ms(self, host: str) -> int:
        """Return the delay at which one request at a time keeps the host busy.

        It follows from the response times that this container measured.
        """
        return self._known.get(host, _UNKNOWN).pace_ms

    def concurrency(self, host: str, most: int) -> int:
        return concurrency_of(self._known.get(host, _UNKNOWN).load, most)

    async def note_failure(self, host: str, *, probe: bool) -> None:
        """Record that a host did not respond, or served a block page.

        `probe` means that the request was the single test of a host after a block.
        """
        self._entry(host).silent = True
        with _unless_lost(host):
            await self._hosts.fail(host, self._clock.now_ms(), self._random.random(), probe=probe)

    async def note_answer(self, host: str, *, troubled: bool) -> None:
        """Clear the failures of a host that responded. Writes only after failures.

        `troubled` means that failures of the host were recorded before this request.
        """
        # `silent` is checked too, because responses of concurrent requests may arrive between the
        # failures of others.
        known = self._known.get(host, _UNKNOWN)
        if not troubled and not known.silent:
            return
        if known.silent:  # never true of `_UNKNOWN`, which all hosts share
            known.silent = False
        with _unless_lost(host):
            if (await self._hosts.read_host(host)).failures:
                await self._hosts.recover(host)

    async def back_off(self, host: str, retry_after_s: float | None, at_ms: int) -> None:
        """Block a host that demands a backoff (429, 503). `at_ms` is the time of the request."""
        now_ms = self._clock.now_ms()
        with _unless_lost(host):
            state = await self._hosts.read_host(host)
            until_ms, strikes = block_until_ms(state, now_ms, retry_after_s, self._random, at_ms)
            if until_ms > state.blocked_until_ms:
                await self._hosts.block(host, until_ms, strikes, now_ms)
            self._entry(host).blocked_until_ms = max(until_ms, state.blocked_until_ms)

    def is_blocked(self, host: str) -> bool:
        """Return whether a response to this container has blocked the host.

        A slot's own check of the host can be older than that response.
        """
        return self._known.get(host, _UNKNOWN).blocked_until_ms > self._clock.now_ms()

    async def blocked_s(self, host: str) -> float:
        left_ms = 0
        with _unless_lost(host):
            state: Host = await self._hosts.read_host(host)
            left_ms = max(0, state.blocked_until_ms - self._clock.now_ms())
        return left_ms / 1000


class EasedSemaphore(asyncio.Semaphore):
    """Semaphore of a host that has fewer permits while the host is slow."""

    def __init__(self, health: HostHealth, host: str, most: int) -> None:
        self._health, self._host, self._most = health, host, most
        self._withheld = self._wanted()
        super().__init__(most - self._withheld)

    def release(self) -> None:
        wanted = self._wanted()
        if self._withheld < wanted:
            self._withheld += 1
            return
        super().release()
        while self._withheld > wanted:
            self._withheld -= 1
            super().release()

    def _wanted(self) -> int:
        return self._most - self._health.concurrency(self._host, self._most)


@contextmanager
def _unless_lost(host: str) -> Iterator[None]:
    try:
        yield
    except Transient as error:
        # The response matters more than this record, and the next response causes another write.
        _log.warning("host.note_lost", extra={"host": host, "error": str(error)})
