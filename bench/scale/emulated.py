"""Run polite crawls on the emulated stack, and compare them with the model.

    python -m bench.scale.emulated [--run 1x600] [--run 10x300]

The deployed template, its functions and queues run on this machine, in real time. Hosts are the
model's, each on its own loopback address, with the same latencies, error rates and numbers of
links. The emulator starts two workers at once. Batches and memory are the defaults of AWS. As on
every emulated stack, rounds are short and waiting is free, so the model has these conditions, too.
Costs are the counts of the stack's own meter at AWS's prices.

A host with one request per second takes as many seconds as it has pages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from aiohttp import web

from bench.scale.bills import Run
from bench.scale.model import Model
from bench.scale.web import Web
from infra.worker import LOCAL_ROUND_S
from orbweaver.model.http_exchange import Response
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.scale.web import Host

WORKERS, PORT = 2, 4_777
RUNS = ("1x600", "10x300")
# Without links; with links a page has about 30 KB.
BODY = "<p>" + "words of a page " * 1_700
OK, ROBOTS = 200, "/robots.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Serves the model's hosts on this machine."""

    model: Web
    total_ms: int

    async def answer(self, host: Host, request: web.BaseRequest) -> web.StreamResponse:
        """Respond as the model does, with its latency. The first page always exists."""
        now_ms = round(time.monotonic() * 1000)
        answer, took_ms = self.model.ask(host, now_ms, 0, self.total_ms)
        if not isinstance(answer, Response):
            await asyncio.sleep(2 * self.total_ms / 1000)  # longer than any timeout
            return web.Response(status=OK)
        await asyncio.sleep(took_ms / 1000)
        if request.path == ROBOTS:
            return web.Response(status=404)
        number = int(request.path.removeprefix("/"))
        if number and answer.status != OK:
            return web.Response(status=answer.status)
        return web.Response(text=self.page(host, number), content_type="text/html")

    def page(self, host: Host, number: int) -> str:
        random, plan = Random(number), self.model.plan
        linked = [random.randrange(host.pages) for _ in range(plan.links)]
        # These links make every page reachable.
        linked += [min(number + 1, host.pages - 1), *range(min(plan.links_everywhere, host.pages))]
        links = " ".join(f'<a href="/{one}">page {one}</a>' for one in linked)
        return f"<html><title>Page {number}</title><p>{links}</p>{BODY}</html>"

    async def serve(self, ready: threading.Event, seeds: list[str]) -> None:
        for at, host in enumerate(self.model.hosts.values()):
            host.found = host.pages
            runner = web.ServerRunner(web.Server(partial(self.answer, host)))
            await runner.setup()
            await web.TCPSite(runner, f"127.0.0.{at + 1}", 0).start()
            seeds.append(f"http://127.0.0.{at + 1}:{runner.addresses[0][1]}/0")
        ready.set()
        await asyncio.Event().wait()


def _command(folder: Path, *words: str) -> str:
    program = str(Path(sys.executable).with_name("orbweaver"))
    done = subprocess.run(
        [program, *words, "--port", str(PORT)], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2_000:]}")
    return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Result of a crawl: requeues per page, minutes, and dollars per million pages."""

    requeues: float
    minutes: float
    dollars: float
    terms: Mapping[str, float]


def modelled(run: Run) -> Seen:
    model = Model(run.scenario)
    model.settings = replace(model.settings, round_s=float(LOCAL_ROUND_S), waits_billed="no")
    result = model.run()
    books = result.books
    terms = {str(term): round(usd, 2) for term, usd in books.dollars_a_million.items()}
    return Seen(
        requeues=round(books.counts["deferrals"] / books.counts["ended"], 2),
        minutes=round((result.finished_ms or 0) / 60_000, 1),
        dollars=round(sum(books.dollars_a_million.values()), 2),
        terms=terms,
    )


def emulated(run: Run) -> Seen:
    scenario, settings = run.scenario, Settings()
    sites = Sites(
        model=Web(scenario.web, scenario.seed, scenario.minutes),
        total_ms=round(settings.fetch_total_s * 1000),
    )
    ready, seeds = threading.Event(), list[str]()
    threading.Thread(target=asyncio.run, args=(sites.serve(ready, seeds),), daemon=True).start()
    ready.wait(10)
    context = ("-c", f"batch_size={run.batch}", "-c", "batch_window_s=1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _command(folder, "local", "up", "--fresh", *context)
        try:
            delay = f"{run.delay_ms / 1000:g}"
            _command(folder, "start", *seeds, "--name", "polite", "--delay", delay, "--wait")
            status = json.loads(_command(folder, "status", "polite", "--json"))
            cost = json.loads(_command(folder, "cost", "polite", "--json"))
        finally:
            _command(folder, "local", "down")
    return Seen(
        requeues=round(status["deferrals"] / cost["pages"], 2),
        minutes=round(status["elapsed_s"] / 60, 1),
        dollars=round(cost["usd_per_million_pages"], 2),
        terms={
            term: round(used["usd_per_million_pages"], 2) for term, used in cost["terms"].items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale.emulated", description=__doc__)
    parser.add_argument("--run", action="append", metavar="HOSTSxPAGES", help="may be repeated")
    asked = parser.parse_args()
    for words in asked.run or RUNS:
        hosts, pages = map(int, words.split("x"))
        run = Run(hosts=hosts, host_pages=pages, workers=WORKERS)
        print(f"{run.name}: modelled {modelled(run)}", flush=True)
        print(f"{run.name}: emulated {emulated(run)}", flush=True)


if __name__ == "__main__":
    main()
