"""Mutants of the worker and its actors: their actions, order and messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

from orbweaver.frontier import envelope, messages
from orbweaver.frontier import journal as journals
from orbweaver.frontier.journal import Ledger
from orbweaver.model import crawl as crawls
from orbweaver.worker import apply_journal, batch, shutdown
from orbweaver.worker import pack as worker_pack
from tests.simulation import cloud
from tests.simulation.mutant import mutants, poisoned
from tests.simulation.scenario import Scenario


async def _send_before_commit(
    self: Any, crawl: Any, pack_id: str, journal: Any, _place: Any = None, _round: Any = None
) -> Any:
    claimer = apply_journal.claimer_of(crawl, pack_id, journal.at_ms)
    won = await self._frontier.claim(claimer, journal.candidates)
    places = tuple(place for place, target in enumerate(journal.candidates) if target.url in won)
    ledger = Ledger(pack=pack_id, children=places)
    outgoing_packs = journals.outbox(pack_id, crawl.id, journal, ledger)
    if outgoing_packs:
        await self._queue.send(outgoing_packs, express=crawl.express)
    await self._pages.store(journal.records)
    return await self._commit(crawl, pack_id, journal, won)


async def _no_store(self: Any, crawl: Any, pack_id: str, journal: Any, *rest: Any) -> Any:
    """Commit first, store afterwards."""
    unrecorded = replace(journal, records=())
    ledger = await _WHOLE_APPLY(self, crawl, pack_id, unrecorded, *rest)
    await self._pages.store(journal.records)
    return ledger


_WHOLE_APPLY = apply_journal.JournalApplier.__dict__["apply"]


async def _claimed_again(
    self: Any, crawl: Any, pack: str, journal: Any, ledger: Ledger, place: Any, round_: Any
) -> None:
    """Claim without the known ledger, then find it."""
    claimer = apply_journal.claimer_of(crawl, pack, journal.at_ms)
    await self._frontier.claim(claimer, journal.candidates)
    if not ledger.sent:
        await self._send(crawl, pack, journal, ledger, place)


async def _no_resend(*_: Any) -> None:
    await asyncio.sleep(0)


# --- end of a crawl ---------------------------------------------------------------------------


def _balance_without_seeds(self: Any, _crawl: Any) -> bool:
    return bool(self.claimed == self.done)


async def _taken_for_announced(_self: Any, _crawl: Any) -> bool:
    return True


# --- worker -----------------------------------------------------------------------------------


async def _ack_everything(self: Any, deliveries: Any, deadline_ms: int) -> tuple[str, ...]:
    await _WHOLE_RUN(self, deliveries, deadline_ms)
    return ()


_WHOLE_RUN = batch.Worker.__dict__["run"]


def _never_suspect(_pack: Any, _delivery: Any, _known: Any) -> bool:
    return False


def _never_apart(pack: Any, at_ms: int) -> Any:
    return replace(_WHOLE_APART(pack, at_ms), alone=False)


_WHOLE_APART = journals.isolate_urls


def _random_child(_parent: str, _place: object) -> str:
    return f"{_CHANCE.getrandbits(128):032x}"


_CHANCE = Random(0)


def _any_version(raw: dict[str, Any], source: messages.MessageSource) -> Any:
    return _WHOLE_DECODE({**raw, "v": envelope.VERSION} if "v" in raw else raw, source)


_WHOLE_DECODE = messages._decode_object


def _only_this_release(raw: dict[str, Any]) -> Any:
    if "failures" not in raw:
        raise envelope.InvalidError("failures is missing")
    return _WHOLE_PACK(raw)


_WHOLE_PACK = messages._decode_pack


async def _forgotten(self: Any, work: Any) -> bool:
    """Treat interrupted work as finished."""
    await _WHOLE_CUT(self, work)
    return False


async def _failed(self: Any, work: Any) -> bool:
    """Leave interrupted work to the queue, which counts it as a failure."""
    if await _WHOLE_CUT(self, work):
        raise RuntimeError("told to end")
    return False


ENDING = shutdown.ShutdownSignal
_WHOLE_CUT = ENDING.__dict__["run_until_end"]


def _told(plan: Scenario) -> bool:
    """Scenarios whose workers get SIGTERM."""
    return plan.faults.told > 0


def _told_alone(plan: Scenario) -> bool:
    """Those whose tables have no faults."""
    return _told(plan) and not (plan.faults.throttled or plan.faults.unknown)


APPLIER = apply_journal.JournalApplier
MUTANTS = mutants(
    ("send before commit", APPLIER, "apply", _send_before_commit),
    ("store after commit", APPLIER, "apply", _no_store),
    ("outbox not sent again", APPLIER, "resend", _no_resend),
    ("claimed again after the ledger", APPLIER, "resend", _claimed_again),
    ("finished before all seeds are in", crawls.Counters, "balance", _balance_without_seeds),
    ("a finish seen is a finish told", APPLIER, "_announced_soon", _taken_for_announced),
    ("acknowledged on failure", batch.Worker, "run", _ack_everything),
    ("crashed packs stay together", worker_pack, "isolate_urls", _never_apart),
    ("child ids drawn at random", journals, "child_id", _random_child),
    ("messages of any version taken", messages, "_decode_object", _any_version),
    ("messages of the release before refused", messages, "_decode_pack", _only_this_release),
    ("sixteen hops, and no more (RecursiveLoop=Terminate)", cloud, "HOPS_MAX", 16),
)
MUTANTS += mutants(
    ("suspects among the crowd", batch, "is_suspect", _never_suspect), where=poisoned
)
MUTANTS += mutants(
    ("told to end, URLs are forgotten", ENDING, "run_until_end", _forgotten), where=_told
)
MUTANTS += mutants(
    ("told to end, messages are left to wait", ENDING, "run_until_end", _failed), where=_told_alone
)
