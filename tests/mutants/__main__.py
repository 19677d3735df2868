"""Draw mutants, test them, print a table; `python -m tests.mutants --help`."""

from __future__ import annotations

import argparse
import json
import queue
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.mutants.covering import Covering, chunks, mirror
from tests.mutants.groups import GROUPS, Mutant, draw, modules
from tests.mutants.trying import Lane, Result

_T = TypeVar("_T")
ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".local" / "mutants"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--count", type=int, default=50, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same mutants")
    parser.add_argument("--groups", default=",".join(GROUPS), help="names, with commas between")
    parser.add_argument("--only", action="append", default=[], help="a pattern of modules' paths")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--measure", action="store_true", help="first note anew what tests run")
    parser.add_argument("--lanes", type=int, default=2, help="how many are tried at once")
    parser.add_argument("--prefix", default="nice", help="a command that runs each test command")
    asked = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    read = modules(ROOT)
    if unknown := set(asked.groups.split(",")) - set(read):
        parser.error(f"no group {', '.join(sorted(unknown))}: there are {', '.join(read)}")
    read = {name: read[name] for name in asked.groups.split(",")}
    mutants = draw(read, count=asked.count, seed=asked.seed, only=asked.only)
    results = HOME / f"seed-{asked.seed}.jsonl"
    known = _known(results, again=asked.again)
    lanes = [
        Lane(ROOT, HOME / "lanes" / str(number), prefix=shlex.split(asked.prefix))
        for number in range(asked.lanes)
    ]
    data = HOME / "measured"
    if asked.measure:
        shutil.rmtree(data, ignore_errors=True)
    data.mkdir(exist_ok=True)

    def note(mutant: Mutant, result: Result) -> None:
        known[_identity(mutant)] = result
        print(_row(mutant, result), flush=True)
        with results.open("a") as file:
            file.write(json.dumps([_identity(mutant), asdict(result)]) + "\n")

    _try([one for one in mutants if _identity(one) not in known], lanes, data, note)
    found = [(one, known[_identity(one)]) for one in mutants]
    noticed = sum(result.noticed_by is not None for _, result in found)
    rate = f"{noticed} of {len(found)} noticed ({noticed / len(found):.1%})"
    table = "\n".join(
        [
            "| id | place | kind | change | noticed by |\n| --- | --- | --- | --- | --- |",
            *(_row(*one) for one in sorted(found, key=lambda one: one[1].noticed_by is not None)),
        ]
    )
    results.with_suffix(".md").write_text(f"{table}\n\n{rate}\n")
    print(f"{rate}; {results.with_suffix('.md')}")
    return 0


def _try(
    mutants: list[Mutant], lanes: list[Lane], data: Path, note: Callable[[Mutant, Result], None]
) -> None:
    """Run the tests of each mutant's own room, then all others for the survivors.

    A room is a folder of the product with its tests. Most mutants are detected in their room, so
    other tests need not be measured.
    """
    survived: dict[Mutant, Result] = {}

    def tried(covering: Covering, near: bool, lane: Lane, mutant: Mutant) -> None:
        result = lane.tried(mutant, covering.tests(mutant, near=near), covering.seconds)
        if near and result.noticed_by is None:
            survived[mutant] = result
            return
        before = survived.get(mutant, Result(None, 0, 0))
        note(
            mutant,
            Result(result.noticed_by, before.tried + result.tried, before.left + result.left),
        )

    for near, asked in ((True, mutants), (False, survived)):
        rooms = {mirror(mutant.path) for mutant in asked}
        named = [chunk for chunk in chunks(ROOT) if chunk.folder in rooms or (asked and not near)]
        missing = [chunk for chunk in named if not chunk.data(data).exists()]
        _each(lanes, missing, lambda lane, chunk: lane.measure(chunk, chunk.data(data)))
        _each(lanes, [*asked], partial(tried, Covering(ROOT, data, named), near))


def _each(lanes: list[Lane], work: Iterable[_T], do: Callable[[Lane, _T], None]) -> None:
    """Work in all lanes (copies of the tree) concurrently; Ctrl-C stops their processes."""
    free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    for lane in lanes:
        free.put(lane)

    def one(item: _T) -> None:
        lane = free.get()
        try:
            do(lane, item)
        finally:
            free.put(lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            for done in [pool.submit(one, item) for item in work]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in lanes:
                lane.stop()
            raise


def _known(results: Path, *, again: bool) -> dict[str, Result]:
    """Read the results of an earlier run of this seed."""
    lines = results.read_text().splitlines() if results.exists() else []
    found = {name: Result(**fields) for name, fields in map(json.loads, lines)}
    return {name: one for name, one in found.items() if one.noticed_by or not again}


def _identity(mutant: Mutant) -> str:
    change = mutant.mutation
    return f"{mutant.path}:{change.line} {change.start} {change.before} -> {change.after}"


def _row(mutant: Mutant, result: Result) -> str:
    change = mutant.mutation
    told = " -> ".join(" ".join(text.split()) for text in (change.before, change.after))
    survived = f"SURVIVED {result.tried} tests, {result.left} left out"
    cells = (mutant.id, f"{mutant.path}:{change.line}", change.kind, f"`{told}`")
    texts = (*cells, result.noticed_by or survived)
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


if __name__ == "__main__":
    sys.exit(main())
