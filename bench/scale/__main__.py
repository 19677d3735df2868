"""Run the model for the page on scale: `python -m bench.scale`. Figures and tables go into docs/.

The same seed gives the same figures. All of it takes some minutes of one core. `--only` runs a
part, and `--render` writes the tables of existing figures again.

The page compares a rate of pages with AWS's limits, as of November 2026. Sources:
docs.aws.amazon.com: lambda/latest/dg (gettingstarted-limits, services-sqs-scaling,
scaling-behavior), AWSSimpleQueueService/…/quotas-queues, amazondynamodb/…/Limits and
warm-throughput, AmazonS3/…/optimizing-performance, AmazonCloudWatch/…/cloudwatch_limits_cwl.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.pages import fill, grid
from bench.scale.experiments import DELAYS_MS, HOSTS, PART, QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Figures = Mapping[str, Mapping[str, Mapping[str, Any]]]

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"
FIGURES = EVIDENCE / "scale" / "figures.json"
MILLION_A_MINUTE = 1_000_000
TERMS = ("write", "read_halves", "sqs", "s3_put", "log_bytes", "sent_bytes", "mb_ms", "all")
NAMES = ("writes", "reads", "SQS", "S3", "logs", "sent", "Lambda", "**all**")
PARTITION_WRITES, PARTITION_READS = 1_000, 3_000
TABLE_UNITS = 40_000
WARM_WRITES, WARM_READS = 4_000, 12_000
LAMBDAS, MAPPING = 1_000, 1_000
IN_FLIGHT = 120_000
PUTS_A_PREFIX = 3_500
LOG_CALLS = 5_000
# A transaction locks an item for some milliseconds (assumed: 12), so another one fails meanwhile.
TRANSACTIONS_AN_ITEM = 1_000 / 12
CRAWL_FRESH_S = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--only", help=f"some of {','.join(QUESTIONS)}")
    parser.add_argument("--render", action="store_true", help="run nothing, write tables anew")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="where figures are kept")
    asked = parser.parse_args()
    known: dict[str, Any] = {}
    if asked.figures.exists():
        known = json.loads(asked.figures.read_text())
    names = [] if asked.render else (asked.only.split(",") if asked.only else list(QUESTIONS))
    for name in names:
        began_s = time.process_time()
        known[name] = {key: _rounded(asdict(one)) for key, one in QUESTIONS[name]().items()}
        print(f"{name}: {time.process_time() - began_s:.0f} s of CPU", file=sys.stderr, flush=True)
        asked.figures.parent.mkdir(parents=True, exist_ok=True)
        asked.figures.write_text(json.dumps(known, separators=(",", ":")) + "\n")
    if asked.figures == FIGURES:
        render(known, EVIDENCE / "scale.md")


def _rounded(value: Any) -> Any:
    """Round figures to five significant digits, so that the file stays small."""
    match value:
        case float():
            return float(f"{value:.5g}")
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
    return value


def render(figures: Figures, page: Path) -> None:
    """Write the tables of the available figures into the page."""
    fill(page, {name: grid(head, rest) for name, (head, *rest) in _tables(figures)})


def _tables(figures: Figures) -> Iterator[tuple[str, list[list[str]]]]:
    makers = {
        "growth": _growth_rows,
        "grid": _grid_rows,
        "skew": _skew_rows,
        "costs": _cost_rows,
    }
    for name, maker in makers.items():
        if name in figures:
            yield name, maker(figures[name])
    if "whole" in figures:
        yield "whole", _quota_rows(figures["whole"]["whole"])
        yield "rates", _rate_rows(figures["whole"]["whole"])


def _growth_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["fleet", "pages a minute", "a worker", "pages a delivery", "packs waiting for slots"]]
    for name, run in runs.items():
        workers = int(name.split()[0])
        rate = run["pages_a_minute"]
        share = f"{run['wait_share']:.0%} of their time"
        each = [f"{rate:,.0f}", f"{rate / workers:,.0f}", f"{run['pages_a_delivery']:.1f}", share]
        rows.append([name, *each])
    return rows


def _grid_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["hosts", *(f"delay {delay / 1000:g} s" for delay in DELAYS_MS)]]
    for hosts in HOSTS:
        cells = []
        for delay_ms in DELAYS_MS:
            rate = runs[f"{hosts}/{delay_ms}"]["pages_a_minute"]
            share = rate / (hosts * 60_000 / delay_ms)
            cells.append(f"{rate:,.0f} ({share:.0%})")
        rows.append([f"{hosts:,}", *cells])
    return rows


def _skew_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["crawl", "minutes", "deferrals a page", "pages a pack taken on", "$ a million"]]
    for name, run in runs.items():
        end_min = "-" if run["end_min"] is None else f"{run['end_min']:.0f}"
        taken_on = f"{1 / run['taken_on_a_page']:.0f}" if run["taken_on_a_page"] else "-"
        deferrals = f"{run['deferrals_a_page']:.2f}"
        rows.append([name, end_min, deferrals, taken_on, f"{run['dollars']['all']:.2f}"])
    return rows


def _cost_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    rows = [["pages, batches of", *NAMES, "minutes"]]
    for name, run in runs.items():
        pages, size = name.split("/")
        cells = [f"{run['dollars'].get(term, 0):.2f}" for term in TERMS]
        rows.append([f"{int(pages):,}, {size}", *cells, f"{run['end_min'] or 0:.0f}"])
    return rows


def _rate_rows(run: Mapping[str, Any]) -> list[list[str]]:
    rows = [["of 1,000 workers over 100,000 hosts", ""]]
    rate, flying = run["pages_a_minute"] * PART, run["in_flight_most"] * PART
    units = run["units"]
    for name, said in (
        ("pages a minute", f"{rate:,.0f}"),
        ("pages a delivery of a pack", f"{run['pages_a_delivery']:.1f}"),
        ("deferrals a page", f"{run['deferrals_a_page']:.2f}"),
        ("messages in flight, at most", f"{flying:,}"),
        ("write units a page", f"{units['write']:.2f}"),
        ("read units a page", f"{units['read_halves'] / 2:.2f}"),
        ("SQS requests a page", f"{units['sqs']:.3f}"),
        ("S3 PUTs a page", f"{units['s3_put']:.4f}"),
        ("log bytes a page", f"{units['log_bytes']:.0f}"),
        ("GB-seconds a page", f"{units['mb_ms'] / 1_024_000:.4f}"),
        ("$ a million pages", f"{run['dollars']['all']:.2f}"),
    ):
        rows.append([name, said])
    return rows


def _quota_rows(run: Mapping[str, Any]) -> list[list[str]]:
    rows = [["limit", "taken", "of", "share", "what to do"]]
    rate = run["pages_a_minute"] * PART
    found = loads(
        run,
        pages_a_s=MILLION_A_MINUTE / 60,
        workers=-(-MILLION_A_MINUTE * 1_000 // max(1, int(rate))),
        batch_size=40,
        shards=16,
        pages_shards=16,
    )
    for load in found:
        share = f"**{load.share:.0%}**" if load.share > 1 else f"{load.share:.0%}"
        remedy = load.remedy if load.share > 0.7 else ""
        amounts = [f"{load.load:,.0f} {load.unit}", f"{load.limit:,.0f}"]
        rows.append([load.what, *amounts, share, remedy])
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Use of a limit by a rate of pages."""

    what: str
    load: float
    limit: float
    unit: str
    remedy: str

    @property
    def share(self) -> float:
        return self.load / self.limit


def loads(
    figures: Mapping[str, Any],
    *,
    pages_a_s: float,
    workers: int,
    batch_size: int,
    shards: int,
    pages_shards: int,
) -> Iterator[Load]:
    """Return the use of each limit by a rate, from the units per page in the model."""

    def load(what: str, amount: float, limit: float, unit: str, remedy: str = "") -> Load:
        return Load(what=what, load=amount, limit=limit, unit=unit, remedy=remedy)

    writes, reads, units = figures["writes"], figures["reads"], figures["units"]
    more = "ask for more concurrent executions"
    yield load("Lambda: concurrent executions, account", workers, LAMBDAS, "workers", more)
    yield load(
        "Lambda: workers on one queue", workers, MAPPING, "workers",
        "`worker_concurrency_max`; beyond 1,000 provisioned pollers",
    )  # fmt: skip
    yield load("SQS: messages in flight, a queue", workers * batch_size, IN_FLIGHT, "messages")
    for table in ("urls", "pages", "packs", "hosts", "crawls"):
        amount = writes[table] * pages_a_s
        ask = f"ask for {_round_up(amount * 1.25):,} a table"
        yield load(f"DynamoDB `{table}`: writes, a table", amount, TABLE_UNITS, "units/s", ask)
        if amount > WARM_WRITES:
            warm = f"warm throughput {_round_up(amount * 1.25):,}, or grow by doubling"
            yield load(f"DynamoDB `{table}`: writes, new", amount, WARM_WRITES, "units/s", warm)
        amount = reads[table] * pages_a_s
        ask = f"ask for {_round_up(amount * 1.25):,} a table"
        if amount > TABLE_UNITS / 4:
            yield load(f"DynamoDB `{table}`: reads, a table", amount, TABLE_UNITS, "units/s", ask)
        if amount > WARM_READS:
            warm = f"warm throughput {_round_up(amount * 1.25):,}, or grow by doubling"
            yield load(f"DynamoDB `{table}`: reads, new", amount, WARM_READS, "units/s", warm)
    a_key = writes["pages"] * pages_a_s / pages_shards
    yield load(
        f"DynamoDB: a key of `pages` (day#shard, {pages_shards} shards)", a_key, PARTITION_WRITES,
        "units/s", f"`pages_shards={_shards_for(writes['pages'] * pages_a_s)}`",
    )  # fmt: skip
    shard = writes["crawls"] * pages_a_s / shards
    yield load(
        f"DynamoDB: a shard of the counters ({shards} shards): units", shard, PARTITION_WRITES,
        "units/s", "more shards",
    )  # fmt: skip
    commits = figures["transactions_a_page"] * pages_a_s / shards
    yield load(
        f"DynamoDB: a shard of the counters ({shards} shards): one transaction at a time", commits,
        TRANSACTIONS_AN_ITEM, "commits/s", "more shards, or one commit for many packs",
    )  # fmt: skip
    yield load(
        "DynamoDB: the crawl's own item: reads", workers / CRAWL_FRESH_S, PARTITION_READS, "units/s"
    )
    yield load("DynamoDB: a host's item: writes", figures["host_writes_most"], PARTITION_WRITES,
               "units/s")  # fmt: skip
    yield load("S3: PUT, a prefix", units["s3_put"] * pages_a_s, PUTS_A_PREFIX, "requests/s")
    yield load("CloudWatch Logs: PutLogEvents, account", units["invocations"] * pages_a_s,
               LOG_CALLS, "calls/s")  # fmt: skip


def _round_up(value: float) -> int:
    return -(-int(value) // 5_000) * 5_000


def _shards_for(units_a_s: float) -> int:
    shards = 16
    while units_a_s / shards > 0.7 * PARTITION_WRITES:
        shards *= 2
    return shards


if __name__ == "__main__":
    main()
