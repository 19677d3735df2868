"""Mutants: each breaks one guard of the product on purpose, in this process and temporarily."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.simulation.scenario import PATIENT_S, Scenario
from tests.simulation.sqs import decoded


def anywhere(_plan: Scenario) -> bool:
    return True


def poisoned(plan: Scenario) -> bool:
    """Accept scenarios with a poison page (a page that kills its worker)."""
    return any(page.poison for site in plan.sites for page in site.pages.values())


def forced_in_bounds(plan: Scenario) -> bool:
    """Accept scenarios with a forced run that may return claims, and a run after it."""
    *_, forced, last = plan.crawls[0], *plan.crawls
    return forced.window_s == 0 and forced is not last and forced.name == last.name


def patient(plan: Scenario) -> bool:
    """Accept scenarios with a paused crawl and long visits."""
    return plan.wait_s_max == PATIENT_S


def cancelled(plan: Scenario) -> bool:
    return any(action == "cancel" for crawl in plan.crawls for _, action in crawl.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mutant: `owner.attribute` becomes `broken`."""

    name: str
    owner: Any
    attribute: str
    broken: Any
    # Scenarios that can reveal the mutant. The others are skipped.
    where: Callable[[Scenario], bool] = anywhere

    @contextmanager
    def active(self) -> Iterator[None]:
        """Apply the mutant within a `with` block."""
        whole = self.owner.__dict__[self.attribute]
        decoded.cache_clear()
        setattr(self.owner, self.attribute, self.broken)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, whole)
            decoded.cache_clear()


def mutants(
    *breaks: tuple[str, Any, str, Any], where: Callable[[Scenario], bool] = anywhere
) -> tuple[Mutant, ...]:
    """Build mutants from (name, owner, attribute, replacement)."""
    return tuple(
        Mutant(name=name, owner=owner, attribute=attribute, broken=broken, where=where)
        for name, owner, attribute, broken in breaks
    )
