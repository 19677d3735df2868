"""The health of hosts, noted for all workers: rebuffs, silence, recovery.

- A host that asks to be left alone (429, 503) is blocked at once.
- A host that gives no answer, or keeps us out, so many times in a row is blocked too. Then one
  request tries it (`politeness/pacer.py` takes the turn), and further ones follow or the next block
  does.

How long answers take is known to each container for itself. It sets the pace of the next ones and,
where a crawl has no delay, how many requests are made at once (`politeness/host_load.py`).
An answer costs nothing here unless the host was in trouble. A note that cannot be written is lost:
the next answer brings another. The rules: `politeness/host_schedule.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orbweaver.model.errors import Transient
from orbweaver.model.ports import Clock
from orbweaver.politeness.host_load import Load, load_after, places_of
from orbweaver.politeness.host_schedule import (
    Host,
    block_until_ms,
    pace_after_silence,
    pace_of,
)

if TYPE_CHECKING:
    from random import Random

    from orbweaver.politeness.ports import Hosts

_log = logging.getLogger(__name__)
# Hosts whose pace and load are remembered.
PACES_MAX = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What a container knows of a host; `silent`: a request without an answer was the last."""

    pace_ms: int = 0
    load: Load = field(default_factory=Load)
    silent: bool = False


_UNKNOWN = _Known()


class HostHealth:
    """Notes what happened to requests."""

    def __init__(self, *, hosts: Hosts, clock: Clock, random: Random) -> None:
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def heard(self, host: str, latency_ms: int, *, well: bool, silent: bool = False) -> None:
        """Note how long an answer took; if `silent`, for how long there was none."""
        known = self._known.pop(host, _UNKNOWN)
        if silent:
            pace_ms = pace_after_silence(known.pace_ms, latency_ms)
        else:
            pace_ms = pace_of(known.pace_ms, latency_ms, well=well)
        load = load_after(known.load, latency_ms, self._clock.now_ms(), well=well)
        self._keep(host, replace(known, pace_ms=pace_ms, load=load))

    def _keep(self, host: str, known: _Known) -> None:
        self._known[host] = known
        if len(self._known) > PACES_MAX:
            self._known.popitem(last=False)

    def pace_ms(self, host: str) -> int:
        """How long a host takes, as far as this container knows."""
        return self._known.get(host, _UNKNOWN).pace_ms

    def places(self, host: str, most: int) -> int:
        """How many requests at once a host is asked with, of at most so many."""
        return places_of(self._known.get(host, _UNKNOWN).load, most)

    async def suffered(self, host: str, *, probe: bool) -> None:
        """Note that a host did not answer, or kept us out."""
        self._keep(host, replace(self._known.pop(host, _UNKNOWN), silent=True))
        with _unless_lost(host):
            await self._hosts.fail(host, self._clock.now_ms(), self._random.random(), probe=probe)

    async def answered(self, host: str, *, troubled: bool) -> None:
        """Note that a host answered, if it was silent: `troubled`, before it was asked, or since.

        The answers of requests that are made at once come between the silences of others.
        """
        known = self._known.get(host, _UNKNOWN)
        if not troubled and not known.silent:
            return
        if known.silent:
            self._known[host] = replace(known, silent=False)
        with _unless_lost(host):
            if (await self._hosts.look(host)).failures:
                await self._hosts.recover(host)

    async def rebuffed(self, host: str, retry_after_s: float | None, at_ms: int) -> None:
        """Leave a host alone that wants it; it was asked at `at_ms`."""
        now_ms = self._clock.now_ms()
        with _unless_lost(host):
            state = await self._hosts.look(host)
            until_ms, strikes = block_until_ms(state, now_ms, retry_after_s, self._random, at_ms)
            if until_ms > state.blocked_until_ms:
                await self._hosts.block(host, until_ms, strikes, now_ms)

    async def blocked_s(self, host: str) -> float:
        """How long a host is left alone from now on."""
        left_ms = 0
        with _unless_lost(host):
            state: Host = await self._hosts.look(host)
            left_ms = max(0, state.blocked_until_ms - self._clock.now_ms())
        return left_ms / 1000


class Places(asyncio.Semaphore):
    """Places at a host, of which some are withheld while it is slow: those that are released."""

    def __init__(self, health: HostHealth, host: str, most: int) -> None:
        self._health, self._host, self._most = health, host, most
        self._withheld = self._wanted()
        super().__init__(most - self._withheld)

    def release(self) -> None:
        """Give a place back; it and those that were withheld may be taken as the host allows."""
        wanted = self._wanted()
        if self._withheld < wanted:
            self._withheld += 1
            return
        super().release()
        while self._withheld > wanted:
            self._withheld -= 1
            super().release()

    def _wanted(self) -> int:
        return self._most - self._health.places(self._host, self._most)


@contextmanager
def _unless_lost(host: str) -> Iterator[None]:
    """Go on without a note that cannot be written: the answer it is about is worth more."""
    try:
        yield
    except Transient as error:
        _log.warning("host.note_lost", extra={"host": host, "error": str(error)})
