"""Mutants of backlogs: waiting packs, leased packs, and their successors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.frontier import backlog as values
from orbweaver.frontier.journal import Ledger, outbox
from orbweaver.frontier.messages import Pack, decode, encode
from orbweaver.worker import apply_journal, batch, succession
from orbweaver.worker import lease as lease_rules
from orbweaver.worker.lease import Phase, Rest
from orbweaver.worker.pack import Delivery
from tests.memory.backlog import MemoryBacklog
from tests.simulation.mutant import cancelled, mutants
from tests.simulation.mutants_budgets import limiting
from tests.simulation.scenario import Scenario

SUCCESSION = succession.Succession


def polite(plan: Scenario) -> bool:
    """Scenarios with a crawl that has a delay."""
    return any(crawl.delay_ms for crawl in plan.crawls)


def polite_and_cancelled(plan: Scenario) -> bool:
    """Scenarios with a crawl that has a delay and a cancelled one."""
    return polite(plan) and cancelled(plan)


async def _last_lost(self: Any, crawl: str, host: str, waiting: Any) -> None:
    """Queue all packs but the last of several."""
    await _WHOLE_PUT(self, crawl, host, waiting[: max(1, len(waiting) - 1)])


async def _nothing_out(self: Any, crawl: str, host: str, own: str = "") -> Any:
    """Read a backlog with no leased pack."""
    line = await _WHOLE_LOOK(self, crawl, host, own)
    return replace(line, place="" if line.is_held else line.place, is_held=False, holder="")


async def _put_before(
    self: Any, crawl: Any, pack_id: str, journal: Any, won: Any, *rest: Any
) -> Any:
    """Queue packs before the commit that creates them."""
    places = [place for place, one in enumerate(journal.candidates) if one.url in won]
    ledger = Ledger(pack=pack_id, children=tuple(places))
    outgoing = outbox(pack_id, crawl.id, journal, ledger)
    await self.succession.send(crawl, ledger, outgoing, succession.NOWHERE)
    return await _WHOLE_COMMIT(self, crawl, pack_id, journal, won, *rest)


async def _last_first(self: Any, crawl: str, host: str, own: str = "") -> Any:
    """Read a backlog from its end."""
    line = await _WHOLE_LOOK(self, crawl, host, own)
    places = self._world.backlog[crawl, host]
    waits = sorted(places.keys() - {line.place, own})
    return replace(line, first=places[waits[-1]] if waits else None)


def _by_age(pack: Pack) -> Pack:
    """Order a pack without its depth."""
    express = any(target.express for target in pack.targets)
    return replace(pack, place=f"{0 if express else 1}.{pack.at_ms:014}.{pack.id}")


def _without_priority(pack: Pack) -> Pack:
    """Order a pack without its priority."""
    depth = min(target.depth for target in pack.targets)
    return replace(pack, place=f"1.{depth:06}.{pack.at_ms:014}.{pack.id}")


def _uncounted(outgoing: Any, now_ms: int) -> Any:
    """Queue a pack without the record of counted URLs."""
    waiting = _WHOLE_WAITING(outgoing, now_ms)
    pack = decode(waiting.body)
    assert isinstance(pack, Pack)
    targets = tuple(replace(target, counted=False) for target in pack.targets)
    return replace(waiting, body=encode(replace(pack, targets=targets)))


async def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _without_a_message(
    self: Any, crawl: Any, found: Any, round_: Any, least_s: int = 0, *, again: bool = False
) -> None:
    """Take a pack whose message was not sent."""
    if round_ is not None and round_.accepts_more(crawl.id):
        round_.take_on(self._outgoing(found).pack)
    else:
        await _WHOLE_SEND(self, crawl, found, round_, least_s, again=again)


def _not_sent_again(lease: Any, asker: Any) -> Any:
    """Do not resend an earlier delivery's first packs."""
    if lease.holder in (asker.pack, f"copy/{asker.pack}"):
        return Rest.LEAVE
    return _WHOLE_STEP(lease, asker)


def _not_started(lease: Any, asker: Any) -> Any:
    """Start no pack of a host whose lease another pack changed last."""
    acquired = lease.holder in (asker.pack, f"copy/{asker.pack}")
    if not lease.is_held and asker.phase is Phase.UNSENT and not acquired:
        return Rest.LEAVE
    return _WHOLE_STEP(lease, asker)


def _not_started_by_done(lease: Any, asker: Any) -> Any:
    """Start no pack for a pack that is done."""
    acquired = lease.holder in (asker.pack, f"copy/{asker.pack}")
    if not lease.is_held and asker.phase is Phase.DONE and acquired:
        return Rest.LEAVE
    return _WHOLE_STEP(lease, asker)


def _not_sent_again_for_copy(lease: Any, asker: Any) -> Any:
    """Let an unsent pack ignore a lease that its done or dead delivery acquired."""
    if asker.phase is Phase.UNSENT and lease.is_held and lease.holder == f"copy/{asker.pack}":
        return Rest.LEAVE
    return _WHOLE_STEP(lease, asker)


async def _unrecalled(self: Any, pack: Any, round_: Any) -> Any:
    """Take a pack without a check for its commit."""
    delivery = Delivery(id=pack.id, body=encode(pack), receives=1, early=True)
    return await self._guarded(delivery, pack, {}, round_)


_WHOLE_PUT = MemoryBacklog.__dict__["put"]
_WHOLE_LOOK = MemoryBacklog.__dict__["read"]
_WHOLE_COMMIT = apply_journal.JournalApplier.__dict__["_commit"]
_WHOLE_STEP = lease_rules.step_of
_WHOLE_SEND = SUCCESSION.__dict__["send_waiting"]
_WHOLE_WAITING = values.waiting_of
APPLIER = apply_journal.JournalApplier

MUTANTS = (
    mutants(
        ("a waiting pack lost", MemoryBacklog, "put", _last_lost),
        ("a waiting pack taken twice", MemoryBacklog, "read", _nothing_out),
        ("packs wait before the commit", APPLIER, "_commit", _put_before),
        ("the last is taken first", MemoryBacklog, "read", _last_first),
        ("depth left out of the order", values, "with_place", _by_age),
        ("priority lost in the backlog", values, "with_place", _without_priority),
        ("a place never left", MemoryBacklog, "release", _nothing),
        ("what was begun not sent again", succession, "step_of", _not_sent_again),
        ("a free lease not acquired", succession, "step_of", _not_started),
        ("a done pack starts no other", succession, "step_of", _not_started_by_done),
        ("a copy's pack not sent again", succession, "step_of", _not_sent_again_for_copy),
        ("what is out not read", MemoryBacklog, "get", _nothing),
        ("taken on without a message", SUCCESSION, "send_waiting", _without_a_message),
        ("taken on though it is committed", batch.Worker, "take_on", _unrecalled),
        ("a copy leaves its place to others", SUCCESSION, "start_next", _nothing),
        where=polite,
    )
    + mutants(
        ("a backlog outlives its crawl", APPLIER, "_give_up", _nothing), where=polite_and_cancelled
    )
    + mutants(
        ("a waiting URL counted again", succession, "waiting_of", _uncounted),
        where=limiting("host_pages_max"),
    )
)
