"""`python -m bench.attacks [name …]`: cost of hostile pages, with and without a budget.

Each page runs in its own process. First the page is read in that process to its end, for up to
`WITHOUT_S` seconds. Then the worker's reader reads it. Results are CPU, memory, and how long the
event loop was blocked. Totals include the event loop and the child process.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.reader import BudgetReader
from orbweaver.model.crawl import Crawl
from orbweaver.worker.page_reading import ReadingJob, job_of, read
from tests.attacks import ATTACKS, BY_NAME

URL = "https://attack.example/a/b"
WITHOUT_S = 30
WAIT_MS = 60_000
USAGE = 2


def main() -> int:
    match sys.argv[1:]:
        case ["--one", name, way]:
            print(json.dumps(_one(name, way)))
            return 0
        case names:
            pass
    if unknown := [name for name in names if name not in BY_NAME]:
        print(f"there is no {', '.join(unknown)}: {', '.join(BY_NAME)}", file=sys.stderr)
        return USAGE
    print(f"{'page':22}{'KB':>6}{'before s':>10}{'MB':>6}{'in all s':>10}{'loop ms':>9}{'MB':>6}")
    for attack in ATTACKS:
        if names and attack.name not in names:
            continue
        before, after = _measured(attack.name, "before"), _measured(attack.name, "after")
        cpu = f"{before['cpu']:.2f}" if before else f"> {WITHOUT_S}"
        memory = f"{before['mb']:.0f}" if before else ""
        print(
            f"{attack.name:22}{after['kb']:6.0f}{cpu:>10}{memory:>6}{after['cpu']:10.2f}"
            f"{after['loop'] * 1000:9.1f}{after['mb']:6.0f}  {after['why']}",
            flush=True,
        )
    return 0


def _measured(name: str, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.attacks", "--one", name, way]
    done = subprocess.run(command, capture_output=True, check=False)
    found: dict[str, float] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def _one(name: str, way: str) -> dict[str, float | str]:
    attack = BY_NAME[name]
    crawl = replace(Crawl(id="a-1", name="a", started_at_ms=0), **attack.crawl)
    html, answer = "html" in attack.kind, attack.answer
    job = job_of(crawl, URL, answer, 0, html=html, agent="orbweaver", links_max=5_000)
    read(replace(job, answer=replace(answer, body=b"<p>x")))  # imports must not count for a page
    if way == "before":
        spent_s = round(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (spent_s + WITHOUT_S, spent_s + WITHOUT_S))
        began_s, before = time.process_time(), _resident_mb()
        read(job)
        return {"cpu": time.process_time() - began_s, "mb": max(0, _peak_mb() - before)}
    return asyncio.run(_by_reader(job))


async def _by_reader(job: ReadingJob) -> dict[str, float | str]:
    clock = SystemClock()
    reader = BudgetReader(clock=clock)
    began_s, before = time.thread_time(), _resident_mb()
    found = await reader.read(job, "https://attack.example", clock.now_ms() + WAIT_MS)
    loop_s = time.thread_time() - began_s
    mb = max(0, _peak_mb() - before)
    reader.close()
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    why = getattr(found, "why", None)
    return {
        "kb": len(job.body) / 1024,
        "loop": loop_s,
        "cpu": loop_s + child.ru_utime + child.ru_stime,
        "mb": max(mb, child.ru_maxrss / 1024),
        "why": f"{type(found).__name__.lower()}: {why}" if why else "",
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _resident_mb() -> float:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - not a path of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
