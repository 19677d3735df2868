"""Mutants of continued runs: left-out URLs are lost, or requested beyond a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.resumption import resumed
from orbweaver.model import crawl as crawls
from orbweaver.worker import apply_journal, earlier_runs
from tests.simulation import going_on
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def _gone_on(plan: Scenario) -> bool:
    """Scenarios with a continued run."""
    return any(crawl.goes_on for crawl in plan.crawls)


def _surplus_alone(journal: Journal, ledger: Ledger) -> Any:
    return _WHOLE_LEFT_OUT(replace(journal, left=()), ledger)


async def _none_waited(*_: Any) -> list[str]:
    """Ignore late packs, where URLs over the limit wait."""
    return []


_WHOLE_LEFT_OUT = earlier_runs._left_out


async def _roots_alone(*_: Any) -> list[str]:
    """Read only a run's first packs."""
    return []


def _nothing_carried(*given: Any) -> Any:
    return replace(_WHOLE_RESUMED(*given), pages_carried=0)


_WHOLE_RESUMED = resumed


def _missing_at_first(self: Any, crawl: Any) -> int:
    """Wait only for URLs planned at the start."""
    return int(crawl.seeds_planned > self.total.get("seeds", 0))


def _nothing_more(_pack: str, _crawl: str, _journal: Journal) -> tuple[()]:
    return ()


RETRACER = earlier_runs.EarlierRunReader
MUTANTS = mutants(
    ("a sequel finds no links beyond the limit", RETRACER, "_late", _none_waited),
    ("a sequel finds no links left out", earlier_runs, "_left_out", _surplus_alone),
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
