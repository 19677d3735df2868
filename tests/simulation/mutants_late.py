"""Mutants of a crawl's order and limit: waiting, sent and counted links."""

from __future__ import annotations

from typing import Any

from orbweaver.frontier import journal as values
from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.frontier.late_links import group_by_band
from orbweaver.model.crawl import UNSPENT, Counters
from orbweaver.worker import late_packs, pack_context, seeding
from orbweaver.worker.apply_journal import JournalApplier
from orbweaver.worker.late_packs import LatePacks
from tests.memory.backlog import MemoryBacklog
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def ordered(plan: Scenario) -> bool:
    """Scenarios with an ordered crawl."""
    return any(crawl.shards == 1 for crawl in plan.crawls)


def ordered_with_robots(plan: Scenario) -> bool:
    """Scenarios with an ordered crawl that reaches its limit."""
    return any(crawl.shards == 1 and crawl.pages_max <= 60 for crawl in plan.crawls)


def ordered_without_faults(plan: Scenario) -> bool:
    """Scenarios with an ordered crawl and no faults."""
    return plan.faults.none and ordered(plan)


def stopping(plan: Scenario) -> bool:
    """Scenarios with a crawl that stops when no new links come."""
    return any(crawl.stops for crawl in plan.crawls)


def _refused(self: Any, *given: Any) -> Any:
    """Refuse links of barren kinds without a count."""
    prompt, _ = yield from _WHOLE_SORTING(self, *given)
    return prompt, []


async def _last_lost(self: Any, crawl: Any, packs: Any) -> None:
    """Queue all late packs but the last."""
    await _WHOLE_PUT(self, crawl, packs[:-1])


async def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _noted(self: Any, crawl: Any, host: Any, read: Any, at_ms: Any) -> bool:
    """Let all workers send a late pack that was unsent when they looked."""
    await _WHOLE_NOTING(self, crawl, host, read, at_ms)
    return True


def _uncounted(_pack: Any) -> dict[str, int]:
    """Take a late pack without counting it."""
    return {}


async def _unsent(self: Any, crawl: Any, counters: Any) -> bool:
    """Treat waiting links as left out."""
    await _WHOLE_SENDING(self, crawl, counters)
    return False


def _never(*_: Any) -> bool:
    return False


def _promising(_self: Any) -> int:
    """Treat all waiting links as barren."""
    return 0


def _without_surplus(journal: Any, _ledger: Any) -> Any:
    """Drop links over the page limit."""
    return group_by_band(journal.late)


def _twice(self: Any, target: Any, record: Any, counts: Any = values.NOTHING) -> Any:
    """Return a forbidden URL's share twice."""
    found = _WHOLE_FORBIDDING(self, target, record, counts)
    more = {**found.counts, UNSPENT: 2 * found.counts.get(UNSPENT, 0)}
    return type(found)(end=found.end, found=found.found, counts=more)


_WHOLE_SORTING = KindLearner.__dict__["sort_links"]
_WHOLE_PUT = LatePacks.__dict__["put"]
_WHOLE_NOTING = MemoryBacklog.__dict__["note_sent"]
_WHOLE_SENDING = JournalApplier.__dict__["_send_late"]
_WHOLE_FORBIDDING = pack_context.PackContext.__dict__["forbidden"]

MUTANTS = (
    mutants(
        ("barren kinds are refused", KindLearner, "sort_links", _refused),
        ("a late pack lost", LatePacks, "put", _last_lost),
        ("late packs are never sent", LatePacks, "send", _nothing),
        ("a late pack not counted as taken", seeding, "_taken_counts", _uncounted),
        ("a crawl ends while links wait", JournalApplier, "_send_late", _unsent),
        where=ordered,
    )
    + mutants(
        ("beyond the limit means gone", values, "late_groups", _without_surplus),
        ("a share given back twice", pack_context.PackContext, "forbidden", _twice),
        where=ordered_with_robots,
    )
    + mutants(
        ("a late pack sent by all that look", MemoryBacklog, "note_sent", _noted),
        ("a late pack sent while it is under way", late_packs, "_is_recently_sent", _never),
        where=ordered_without_faults,
    )
    + mutants(
        ("promising links are left", Counters, "late_promising", property(_promising)),
        where=stopping,
    )
)
