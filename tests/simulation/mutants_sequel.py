"""Breaks of going on from an earlier run: what it left out is lost, or asked for beyond a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.frontier.resumption import resumed
from orbweaver.model import crawl as crawls
from orbweaver.worker import apply_journal, retracing
from tests.simulation import going_on
from tests.simulation.mutant import mutants

if TYPE_CHECKING:
    from orbweaver.frontier.journal import Journal, Ledger
    from tests.simulation.scenario import Scenario


def _gone_on(plan: Scenario) -> bool:
    """Take those with a run that goes on from another one."""
    return any(crawl.goes_on for crawl in plan.crawls)


def _surplus_alone(journal: Journal, ledger: Ledger) -> Any:
    return _WHOLE_LEFT_OUT(replace(journal, left=()), ledger)


async def _none_waited(*_: Any) -> list[str]:
    """Look through no late packs: what the limit did not admit waits there."""
    return []


_WHOLE_LEFT_OUT = retracing._left_out


async def _roots_alone(*_: Any) -> list[str]:
    """Look through what a run began with, and no further."""
    return []


def _nothing_carried(*given: Any) -> Any:
    return replace(_WHOLE_RESUMED(*given), pages_carried=0)


_WHOLE_RESUMED = resumed


def _missing_at_first(self: Any, crawl: Any) -> int:
    """Wait for what was planned at the start alone."""
    return int(crawl.seeds_planned > self.total.get("seeds", 0))


def _nothing_more(_pack: str, _crawl: str, _journal: Journal) -> tuple[()]:
    return ()


RETRACER = retracing.Retracer
MUTANTS = mutants(
    ("a sequel finds no links beyond the limit", RETRACER, "_late", _none_waited),
    ("a sequel finds no links left out", retracing, "_left_out", _surplus_alone),
    ("a sequel looks at the beginning alone", RETRACER, "_children", _roots_alone),
    ("a sequel has the limit for itself", going_on, "resumed", _nothing_carried),
    (
        "a sequel ends before all is looked through",
        crawls.Counters,
        "seeds_missing",
        _missing_at_first,
    ),
    ("a sequel sends for no more", apply_journal, "outbox_past", _nothing_more),
    where=_gone_on,
)
