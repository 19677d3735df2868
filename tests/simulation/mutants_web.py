"""Mutants of politeness: slots, blocks, robots.txt."""

from __future__ import annotations

import asyncio
from typing import Any

from orbweaver.politeness import host_health, host_schedule, pacer, robots_cache
from orbweaver.worker import fetch_pack
from tests.memory import hosts
from tests.simulation.mutant import mutants, patient

_start_request = pacer.Pacer.start_request


async def _free_slots(_self: Any, _wanted: int) -> None:
    """Send requests without a slot."""
    await asyncio.sleep(0)


async def _block_ignored(_self: Any, _host: str, *_: Any) -> None:
    await asyncio.sleep(0)


def _late_is_fine(self: Any, _turn: Any) -> bool:
    """Start a request at any lateness."""
    self._asked_ms = self._clock.now_ms()
    return True


def _soon_again(self: Any, turn: Any) -> bool:
    """Start a request too close to the next one."""
    started = _start_request(self, turn)
    self._next_ms = 0
    return started


def _grant_from_now(
    _tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int
) -> tuple[int, int]:
    return now_ms, min(wanted, max(0, until_ms - now_ms) // spacing + 1)


async def _retries_without_slot(self: Any, visit: Any, targets: Any, delay: int) -> None:
    """Retry at once; only first attempts wait for slots."""
    firsts = [target for target in targets if target.attempt == 1]
    await _WHOLE_WALK(self, visit, firsts, delay)
    for target in targets:
        if target.attempt > 1:
            await _WHOLE_WALK(self, visit, [target], 0)


_WHOLE_WALK = fetch_pack.PackFetcher.__dict__["_request_targets"]


def _always_fresh(_entry: Any, _now_ms: int) -> bool:
    return True


async def _whatever_happened(_self: Any, _visit: Any) -> bool:
    return True


async def _deaf(_self: Any, _host: str, *, troubled: bool) -> None:
    await asyncio.sleep(0)


MUTANTS = mutants(
    ("no slot reserved", pacer.Pacer, "wait_for_slot", _free_slots),
    (
        "no slot reserved on retry",
        fetch_pack.PackFetcher,
        "_request_targets",
        _retries_without_slot,
    ),
    ("slots that overlap", host_schedule, "grant_slots", _grant_from_now),
    ("late slots used", pacer.Pacer, "start_request", _late_is_fine),
    ("the delay not kept within a block", pacer.Pacer, "start_request", _soon_again),
    ("blocks forgotten", hosts.MemoryHosts, "block", _block_ignored),
    ("answers of a silent host not noted", host_health.HostHealth, "note_answer", _deaf),
    ("robots.txt never refreshed", robots_cache, "_fresh", _always_fresh),
) + mutants(
    ("asked on after a pause", fetch_pack.PackFetcher, "_goes_on", _whatever_happened),
    where=patient,
)
