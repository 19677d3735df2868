"""Run many seeds and print a summary: `python -m tests.simulation --seeds 20000`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.hunt import hunt, note, notes, quickest
from tests.simulation.mutants import MUTANTS
from tests.simulation.run import Result, simulate


def main() -> int:
    """Run the seeds and exit with 1 if an invariant failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="from which on")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--hashes", type=int, nargs="+", help="print these seeds' trace hashes")
    parser.add_argument("--mutants", action="store_true", help="how many seeds each break needs")
    parser.add_argument("--note", action="store_true", help="with --mutants: note which showed it")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if asked.hashes:
        print(*(simulate(seed).trace_hash for seed in asked.hashes))
        return 0
    if asked.mutants:
        return _mutants(noted=asked.note)
    return _seeds(asked.first, asked.seeds, asked.processes)


def _seeds(first: int, count: int, processes: int) -> int:
    started_s = time.monotonic()
    faults: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    virtual_s, asks, broken = 0.0, 0, 0
    with ProcessPoolExecutor(processes) as pool:
        seeds = range(first, first + count)
        for done, result in enumerate(pool.map(simulate, seeds, chunksize=10), 1):
            faults.update(result.counts)
            kinds.update(result.kinds)
            virtual_s += result.virtual_s
            asks += result.asks
            broken += bool(result.violations)
            _tell(result)
            if done % 1_000 == 0:
                print(f"{done} seeds, {broken} broken, {time.monotonic() - started_s:.0f} s")
    print(f"{count} seeds from {first}: {broken} broken, {time.monotonic() - started_s:.0f} s")
    print(f"{virtual_s / 3600:.0f} simulated hours, {asks} requests")
    print("seeds by kind:", _listed(kinds))
    print("faults, and what else occurred:", _listed(faults))
    return 1 if broken else 0


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


def _tell(result: Result) -> None:
    for found in result.violations:
        print(f"seed {result.seed}: {found.invariant}: {found.detail}")


def _mutants(*, noted: bool) -> int:
    places: dict[str, int] = {}
    hints = notes()
    for mutant in MUTANTS:
        caught = quickest(mutant, hints.get(mutant.name)) if noted else hunt(mutant)
        if caught is not None:
            places[mutant.name] = caught.place
        told = "SURVIVED" if caught is None else f"{caught.place:3} seeds  {caught.invariant}"
        print(f"{mutant.name:50} {told}", flush=True)
    if noted:
        note(places)
    return 1 if len(places) < len(MUTANTS) else 0


if __name__ == "__main__":
    sys.exit(main())
