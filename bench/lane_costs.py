"""Metered cost of a crawl that renders like a stack, for workers and renderers separately.

    python -m bench.lane_costs mixed [--pages 2000] [--then shell|frame]
    python -m bench.lane_costs FOLDER [--only NAME,NAME]

- It crawls the mixed site (tests/sites/mixed.py), or all applications that bench/framework_shops.py
  built into FOLDER as one crawl of several hosts.
- One worker without a browser and one renderer consume their queues on the emulator. Each is a
  process with the settings of its function. Their AWS usage is counted at the clients and priced as
  by `orbweaver cost`.
- The renderer has one core (`CORE`), a little less than 2,048 MB give, and pays for its
  invocations' time. The worker pays for that time, or for its CPU priced at 1,769 MB if that is
  more, because it has less CPU on AWS than here.
- Further containers would have their own start-up, which the sum does not include.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.app_rendering import served
from bench.units import INVOCATION_MS, MILLION, Line, stack
from localstack import emulator, layout
from orbweaver.adapters.aws.clients import Aws
from orbweaver.app.aws_ports import meter_of
from orbweaver.app.container import connect
from orbweaver.app.wiring import control_of, worker_of
from orbweaver.budget.billing_units import Term, Units, units_of
from orbweaver.budget.prices import dollars, time_term
from orbweaver.budget.rounds import CPU_MB, MEMORY_MB
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.settings import INSTALLED, X86, Settings
from orbweaver.rendering.task import RenderLimits
from tests.sites.mixed import FRAME, SHELL, Mixed, sections_of
from tests.sites.server import background

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection

RENDERER_MB, RENDERER_BATCH = 2048, 5
BATCH = 10  # the batch size of a stack on an emulator
CORE = 1
_TIME = (Term.MB_MS, Term.MB_MS_X86)
EMPTY_WAIT_S = 0.2
DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A function and its queue: settings, batch size, CPU core."""

    settings: Settings
    queue_url: str
    batch: int
    core: int | None = None


def lanes_of(settings: Settings, render_url: str) -> dict[str, Lane]:
    apart = replace(settings, render_queue_url=render_url, waits_billed="yes")
    renders = replace(
        apart,
        browser=INSTALLED,
        apply_reserve_s=apart.apply_reserve_s + RenderLimits().page_s_max,
        memory_mb=RENDERER_MB,
        architecture=X86,
    )
    works = replace(apart, memory_mb=MEMORY_MB)
    return {
        "worker": Lane(settings=works, queue_url=settings.crawl_queue_url, batch=BATCH),
        "renderer": Lane(settings=renders, queue_url=render_url, batch=RENDERER_BATCH, core=CORE),
    }


def run_lane(lane: Lane, crawl: str, out: Connection) -> None:
    """Run a function's container until the crawl ends, and send its usage."""
    if lane.core is not None:
        os.sched_setaffinity(0, {lane.core})
    out.send(asyncio.run(_use(lane, crawl)))


async def _use(lane: Lane, crawl_id: str) -> dict[str, Any]:
    meter = meter_of(lane.settings)
    invocation_ms = lane.settings.apply_reserve_s * 1000 + INVOCATION_MS
    async with connect(lane.settings, meter) as ports, Aws() as uncounted:
        sqs = await uncounted.client("sqs")
        line = Line([worker_of(ports)], meter, sqs, lane.queue_url, round(invocation_ms))
        while True:
            if await line.batch(lane.batch, ports.clock.now_ms()):
                continue
            await asyncio.sleep(EMPTY_WAIT_S)
            crawl = await ports.crawls.get(crawl_id)
            if crawl is None or crawl.finished_at_ms:
                break
    units, children = line.used.units, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = line.used.cpu_s + children.ru_utime + children.ru_stime
    term = time_term(lane.settings.architecture)
    billed = units.by_term.get(term, 0)
    if not lane.settings.browser:
        billed = max(billed, round(line.used.cpu_s * 1000 * CPU_MB))
    terms = {**units.by_term, term: billed}
    return {
        "counts": units.counts,
        "dollars": dollars(terms),
        "of_time": dollars({term: billed}),
        "seconds": units.by_term.get(term, 0) / lane.settings.memory_mb / 1000,
        "cpu_s": cpu_s,
        "batches": line.used.batches,
        "packs": line.used.messages,
    }


async def measure(seeds: Sequence[str], depth: int) -> dict[str, Any]:
    async with stack() as (settings, sqs):
        made = await sqs.create_queue(QueueName="render")
        lanes = lanes_of(settings, made["QueueUrl"])
        began_s = time.monotonic()
        async with connect(lanes["worker"].settings) as ports:
            plan = CrawlSpec(
                seeds=tuple(seeds), delay_ms=0, concurrency=16, depth_max=depth,
                render=RenderMode.AUTO,
            )  # fmt: skip
            crawl = await control_of(ports).start(plan)
            used = await _ended(lanes, crawl.id)
            ended = await ports.crawls.get(crawl.id)
            assert ended is not None
            total = (await ports.crawls.counters(ended)).total
    return _summed(used, total, time.monotonic() - began_s)


async def _ended(lanes: dict[str, Lane], crawl: str) -> dict[str, dict[str, Any]]:
    spawning, used = multiprocessing.get_context("spawn"), {}
    started = {}
    for name, lane in lanes.items():
        ours, theirs = spawning.Pipe(duplex=False)
        process = spawning.Process(target=run_lane, args=(lane, crawl, theirs))
        process.start()
        theirs.close()
        started[name] = ours, process
    for name, (ours, process) in started.items():
        used[name] = await asyncio.to_thread(ours.recv)
        await asyncio.to_thread(process.join)
    return used


def _summed(
    used: dict[str, dict[str, Any]], total: Mapping[str, int], took_s: float
) -> dict[str, Any]:
    pages = total.get("fetched", 0)
    # All rendered pages, including those compared with `auto` and not kept.
    tried = total.get("render.compared", 0)
    counted = Units()
    for one in used.values():
        counted.update(units_of(one.pop("counts")))
    spent = sum(one["dollars"] for one in used.values())
    return {
        "pages": pages,
        "rendered": total.get("rendered", 0),
        "compared": tried,
        "sent_unasked": total.get("render.sent_unasked", 0),
        "sent_asked": total.get("render.sent_asked", 0),
        "failed": total.get("failed", 0),
        "dollars_a_million": round(spent / max(1, pages) * MILLION, 2),
        "dollars_a_million_rendered": round(
            used["renderer"]["dollars"] / max(1, tried) * MILLION, 2
        ),
        "seconds": round(took_s, 1),
        "lanes": {name: _rounded(one) for name, one in used.items()},
        "requests_a_million": round(
            dollars({term: n for term, n in counted.by_term.items() if term not in _TIME})
            / max(1, pages) * MILLION, 2,
        ),
    }  # fmt: skip


def _rounded(used: dict[str, Any]) -> dict[str, Any]:
    return {
        key: round(value, 6 if "dollar" in key or key == "of_time" else 1)
        for key, value in used.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lane_costs")
    parser.add_argument("site")
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--then", choices=(SHELL, FRAME), default=SHELL)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    running = emulator.start(port=0, keep=False)
    try:
        os.environ.update(layout.client_environment(running.endpoint_url))
        with ExitStack() as after:
            if given.site == "mixed":
                mixed = Mixed(sections_of(given.pages, given.then))
                after.enter_context(background(mixed))
                urls = [mixed.url]
            else:
                folders = sorted(one for one in Path(given.site).iterdir() if one.is_dir())
                only = set(filter(None, given.only.split(",")))
                wanted = [one for one in folders if not only or one.name in only]
                urls = [after.enter_context(served(one)).url for one in wanted]
            depth = 1 if given.site == "mixed" else DEPTH
            print(json.dumps(asyncio.run(measure([f"{url}/" for url in urls], depth))))
    finally:
        running.stop()


if __name__ == "__main__":
    main()
