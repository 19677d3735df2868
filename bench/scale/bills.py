"""Compute costs of crawls in the model for the estimate: `python -m bench.scale.bills`.

Figures go into `bills.json`, one per run of `RUNS`; `--only` selects some. The same seed gives the
same figures. All hosts of a run have equally many pages, and none is slow, dead or strict. All else
is as in docs/evidence/scale.md.

Runs that are too large are composed (`HOW`): a run with fewer pages per host, times the effect of
more pages in smaller crawls.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.scale.model import Model
from bench.scale.scenario import Fleet, Scenario, Web
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

BILLS = Path(__file__).with_name("bills.json")
SEED = 1
# Long enough for the last host to finish.
MINUTES = 60.0 * 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Run:
    """A crawl: number of hosts, pages of each, and settings."""

    hosts: int
    host_pages: int
    workers: int = 50
    delay_ms: int = 1_000
    batch: int = 40
    memory_mb: int = Settings().function.memory_mb
    seed: int = SEED

    @property
    def name(self) -> str:
        """The settings that differ from the defaults, as text."""
        rest = (
            f"{self.workers} workers" * (self.workers != 50),
            f"delay {self.delay_ms} ms" * (self.delay_ms != 1_000),
            f"batch {self.batch}" * (self.batch != 40),
            f"{self.memory_mb} MB" * (self.memory_mb != Settings().function.memory_mb),
            f"seed {self.seed}" * (self.seed != SEED),
        )
        return ", ".join((f"{self.hosts} x {self.host_pages}", *filter(None, rest)))

    @property
    def scenario(self) -> Scenario:
        return Scenario(
            seed=self.seed,
            web=Web(
                hosts=self.hosts, pages=self.hosts * self.host_pages, zipf=0.0, slow_share=0.0,
                dead_share=0.0, strict_share=0.0,
            ),
            fleet=Fleet(
                workers_max=self.workers, workers_first=min(5, self.workers),
                batch_size=self.batch, memory_mb=self.memory_mb,
            ),
            delay_ms=self.delay_ms,
            minutes=MINUTES,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Result of a run: dollars per million pages, requeues and deliveries per page."""

    dollars: float
    lambda_dollars: float
    requeues: float
    deliveries: float
    minutes: float

    @classmethod
    def of(cls, run: Run) -> Bill:
        gc.disable()
        try:
            result = Model(run.scenario).run()
        finally:
            gc.enable()
        assert result.finished_ms is not None
        books, ended = result.books, result.books.counts["ended"]
        dollars = {str(term): value for term, value in books.dollars_a_million.items()}
        return cls(
            dollars=round(sum(dollars.values()), 2),
            lambda_dollars=round(dollars["mb_ms"], 2),
            requeues=round(books.counts["deferrals"] / ended, 2),
            deliveries=round(books.counts["deliveries"] / ended, 3),
            minutes=round(result.finished_ms / 60_000, 1),
        )


def _run(hosts: int, host_pages: int, workers: int = 50) -> Run:
    return Run(hosts=hosts, host_pages=host_pages, workers=workers)


# The grid: numbers of hosts, and of pages per host. A point of the grid is one run, or a smaller
# run and pairs of runs whose ratios show the effect of more pages.
PAGES = (1_500, 6_000, 20_000, 60_000)
GRID = tuple((hosts, pages) for hosts in (1, 10, 100, 1_000, 10_000) for pages in PAGES)
_FROM_150 = (_run(1_000, 1_500), _run(1_000, 150))
_TO_6000 = (_run(1_000, 6_000), _run(1_000, 1_500))
_TO_20000 = (_run(100, 20_000), _run(100, 6_000))
_TO_60000 = (_run(10, 60_000), _run(10, 20_000))
HOW: Mapping[tuple[int, int], tuple[Run, tuple[tuple[Run, Run], ...]]] = {
    (100, 60_000): (_run(100, 20_000), (_TO_60000,)),
    (1_000, 20_000): (_run(1_000, 6_000), (_TO_20000,)),
    (1_000, 60_000): (_run(1_000, 6_000), (_TO_20000,)),
    (10_000, 1_500): (_run(10_000, 150), (_FROM_150,)),
    (10_000, 6_000): (_run(10_000, 150), (_FROM_150, _TO_6000)),
    (10_000, 20_000): (_run(10_000, 150), (_FROM_150, _TO_6000, _TO_20000)),
    (10_000, 60_000): (_run(10_000, 150), (_FROM_150, _TO_6000, _TO_20000)),
}
# Cost of one host with more memory.
MORE_MB = (512, 1_024)
# Further runs: effects of delay, batch, workers and memory, and other sizes. A slow host
# can dominate a bill, so seeds were chosen whose hosts have about average speed.
OTHERS = (
    *(Run(hosts=1, host_pages=pages, memory_mb=mb) for mb in MORE_MB for pages in PAGES),
    Run(hosts=3, host_pages=3_000, delay_ms=500, batch=20, workers=10, seed=7),
    Run(hosts=3, host_pages=10_000, seed=10),
    Run(hosts=25, host_pages=400, workers=4, memory_mb=1_769, seed=9),
    Run(hosts=30, host_pages=1_000, delay_ms=250, seed=4),
    Run(hosts=50, host_pages=800, delay_ms=2_000, workers=3, seed=8),
    Run(hosts=500, host_pages=60, seed=3),
    Run(hosts=1, host_pages=1_500, delay_ms=250, seed=2),
    Run(hosts=1, host_pages=1_500, delay_ms=4_000),
    Run(hosts=1, host_pages=6_000, batch=10),
    Run(hosts=10, host_pages=200),
    Run(hosts=10, host_pages=1_500, delay_ms=0),
    Run(hosts=10, host_pages=1_500, delay_ms=0, batch=10),
    Run(hosts=10, host_pages=1_500, delay_ms=250),
    Run(hosts=10, host_pages=1_500, delay_ms=4_000),
    Run(hosts=10, host_pages=1_500, batch=10),
    Run(hosts=10, host_pages=1_500, workers=2),
    Run(hosts=10, host_pages=1_500, memory_mb=2_048),
    Run(hosts=10, host_pages=1_500, memory_mb=512),
    Run(hosts=10, host_pages=1_500, memory_mb=1_024),
    Run(hosts=10, host_pages=1_500, memory_mb=1_024, delay_ms=0),
    Run(hosts=10, host_pages=1_500, memory_mb=1_024, delay_ms=4_000),
    Run(hosts=100, host_pages=1_500, memory_mb=1_024),
    Run(hosts=100, host_pages=1_500, memory_mb=1_024, delay_ms=0),
    Run(hosts=1_000, host_pages=150, memory_mb=1_024),
    Run(hosts=30, host_pages=1_000, delay_ms=250, seed=6),
    Run(hosts=100, host_pages=200),
    Run(hosts=100, host_pages=1_500, delay_ms=0),
    Run(hosts=100, host_pages=1_500, delay_ms=0, batch=10),
    Run(hosts=100, host_pages=1_500, delay_ms=250),
    Run(hosts=100, host_pages=1_500, delay_ms=4_000),
    Run(hosts=100, host_pages=1_500, batch=10),
    Run(hosts=100, host_pages=1_500, workers=5),
    Run(hosts=200, host_pages=1_500, workers=1),
    Run(hosts=200, host_pages=1_500, workers=10),
    Run(hosts=1_000, host_pages=150, workers=5),
    Run(hosts=1_000, host_pages=1_500, workers=5),
)


def composed(hosts: int, host_pages: int) -> tuple[Run, tuple[tuple[Run, Run], ...]]:
    """Return the runs of a grid point: a run, and pairs of runs whose ratios extend it."""
    return HOW.get((hosts, host_pages), (_run(hosts, host_pages), ()))


def _runs() -> dict[str, Run]:
    found = [*OTHERS]
    for place in GRID:
        run, pairs = composed(*place)
        found += [run, *(one for pair in pairs for one in pair)]
    return {run.name: run for run in sorted(found, key=lambda run: run.hosts * run.host_pages)}


RUNS: Mapping[str, Run] = _runs()


def known() -> dict[str, Bill]:
    return {name: Bill(**bill) for name, bill in json.loads(BILLS.read_text()).items()}


def modelled(bills: Mapping[str, Bill], hosts: int, host_pages: int) -> tuple[float, float]:
    """Return dollars per million pages and requeues per page of a grid point."""
    run, pairs = composed(hosts, host_pages)
    dollars = prod(bills[more.name].dollars / bills[few.name].dollars for more, few in pairs)
    requeues = prod(bills[more.name].requeues / bills[few.name].requeues for more, few in pairs)
    bill = bills[run.name]
    return bill.dollars * dollars, bill.requeues * requeues


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale.bills", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this run; may be repeated")
    asked = parser.parse_args()
    found: dict[str, Any] = json.loads(BILLS.read_text()) if BILLS.exists() else {}
    for name in asked.only or RUNS:
        began_s = time.process_time()
        found[name] = asdict(Bill.of(RUNS[name]))
        print(f"{name}: {time.process_time() - began_s:.0f} s of CPU", file=sys.stderr, flush=True)
        rows = (f"{json.dumps(key)}: {json.dumps(found[key])}" for key in RUNS if key in found)
        BILLS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
