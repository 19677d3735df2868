"""Mutants of the guards: the simulation must detect each of them.

A mutant replaces one method or value in one process while it is active. Any violation counts,
because one mutant shows in several places.
"""

from __future__ import annotations

from tests.simulation import (
    mutants_backlog,
    mutants_bodies,
    mutants_budgets,
    mutants_claims,
    mutants_export,
    mutants_late,
    mutants_rendering,
    mutants_retry,
    mutants_rules,
    mutants_sequel,
    mutants_tables,
    mutants_together,
    mutants_web,
    mutants_worker,
)

MUTANTS = (
    *mutants_tables.MUTANTS,
    *mutants_worker.MUTANTS,
    *mutants_web.MUTANTS,
    *mutants_export.MUTANTS,
    *mutants_budgets.MUTANTS,
    *mutants_retry.MUTANTS,
    *mutants_rules.MUTANTS,
    *mutants_sequel.MUTANTS,
    *mutants_bodies.MUTANTS,
    *mutants_together.MUTANTS,
    *mutants_claims.MUTANTS,
    *mutants_backlog.MUTANTS,
    *mutants_late.MUTANTS,
    *mutants_rendering.MUTANTS,
)
