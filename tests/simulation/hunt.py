"""Run seeds with a mutant (a guard of the product broken on purpose) until an invariant fails.

`caught.json` holds the seed that last revealed each mutant (`--mutants --note` writes it). That
seed runs first. If it no longer reveals the mutant, all seeds are tried. The count includes only
seeds that can reveal the mutant at all, so it never exceeds the limit.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.mutant import Mutant
from tests.simulation.run import play
from tests.simulation.scenario import Scenario, scenario

SEEDS_MAX = 400
# More than twice the steps of any of 300 seeds. An endless mutant is detected earlier.
STEPS_MAX = 60_000
# Some mutants run a seed without end. For `caught.json`, a shorter seed is preferred.
QUICK_S, PATIENCE_S = 1.0, 60.0
NOTES = Path(__file__).with_name("caught.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """Seed that revealed a mutant. `place` is its number among the seeds that can reveal it."""

    place: int
    invariant: str


def notes() -> Mapping[str, int]:
    places: dict[str, int] = json.loads(NOTES.read_text())
    return places


def note(caught: Mapping[str, int]) -> None:
    NOTES.write_text(json.dumps(dict(sorted(caught.items())), indent=2) + "\n")


def noted_seeds(mutants: Iterable[Mutant]) -> set[int]:
    places = notes()
    noted = ((mutant, places[mutant.name]) for mutant in mutants if mutant.name in places)
    return {next(itertools.islice(_plans(mutant), place - 1, None)).seed for mutant, place in noted}


def hunt(mutant: Mutant, hint: int | None = None) -> Catch | None:
    """Try seeds until the mutant is detected; None after `SEEDS_MAX` seeds."""
    with mutant.active():
        if hint is not None and 0 < hint <= SEEDS_MAX:
            for plan in itertools.islice(_plans(mutant), hint - 1, hint):
                if found := play(plan, steps_max=STEPS_MAX).violations:
                    return Catch(place=hint, invariant=found[0].invariant)
        for place, plan in enumerate(itertools.islice(_plans(mutant), SEEDS_MAX), 1):
            if found := play(plan, steps_max=STEPS_MAX).violations:
                return Catch(place=place, invariant=found[0].invariant)
    return None


def quickest(mutant: Mutant, hint: int | None = None) -> Catch | None:
    """Try seeds for a limited time, to find one that detects the mutant early.

    Returns None as `hunt` does. A recorded seed that still detects the mutant early is used again.
    """
    best: Catch | None = None
    best_s, started_s = float("inf"), time.perf_counter()
    with mutant.active():
        noted = itertools.islice(enumerate(_plans(mutant), 1), (hint or 1) - 1, hint or 0)
        all_of_them = itertools.islice(enumerate(_plans(mutant), 1), SEEDS_MAX)
        for place, plan in itertools.chain(noted, all_of_them):
            before_s = time.perf_counter()
            found = play(plan, steps_max=STEPS_MAX).violations
            now_s = time.perf_counter()
            if found and now_s - before_s < best_s:
                best, best_s = Catch(place=place, invariant=found[0].invariant), now_s - before_s
            if best and (best_s < QUICK_S or now_s > started_s + PATIENCE_S):
                break
    return best


def _plans(mutant: Mutant) -> Iterator[Scenario]:
    return filter(mutant.where, map(scenario, itertools.count()))
