"""The crawlers, and one crawl of an application: started, and stopped at its limits.

The task: start at one URL, follow the links of its host, obey robots.txt, no delay. Concurrency is
each crawler's default, or 8.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import measure
from bench.contest import CLIENTS, ORBWEAVER, PEERS_PYTHON
from bench.serving import ADDRESS, SAID_CHARS
from bench.yields.application import LOG
from bench.yields.judging import requests_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.serving import Place
    from bench.yields.judging import Request

AT_ONCE = "8"
PORT = 4_778  # port of the emulated stack
STACK_WORKERS = 10
WGET_SAW_ERRORS = 8
# Answers in progress when a crawler ends are logged a moment later.
SETTLE_S = 1.5

Words = list[str | Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One crawl: start URL, number of requests to judge, and output folder."""

    url: str
    requests: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawler:
    """A crawler and its command. `absent` is why it cannot run. `clear` stops what outlives it."""

    title: str
    words: Callable[[Job], Words]
    absent: str = ""
    clear: Callable[[], object] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a crawl."""

    requests: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """A crawl's requests, and the reason for its end."""

    requests: Sequence[Request]
    ended: str  # "itself", "requests", "time", "memory", or "failed: …"
    took_s: float
    resident_bytes_max: int


def crawlers(options: Sequence[str] = ()) -> dict[str, Crawler]:
    """Return all crawlers by name. `options` belong to our own crawl."""
    peers = "" if PEERS_PYTHON.exists() else "run: .venv/bin/python tools/bootstrap.py bench"
    wget = "" if shutil.which("wget") else "there is no wget"
    breadth = _peer("scrapy_spider.py", "--breadth-first")
    return {
        "ours": Crawler(title="Orbweaver", words=lambda job: [*_ours(job), *options]),
        "stack": Crawler(title="Orbweaver, emulated stack", words=_on_stack, clear=_stack_down),
        "wget": Crawler(title="Wget", words=_wget, absent=wget),
        "scrapy": Crawler(title="Scrapy", words=_peer("scrapy_spider.py"), absent=peers),
        "scrapy-breadth": Crawler(title="Scrapy, breadth first", words=breadth, absent=peers),
        "crawlee": Crawler(title="Crawlee", words=_peer("crawlee_crawler.py"), absent=peers),
    }


def _ours(job: Job) -> Words:
    command: Words = [ORBWEAVER, "crawl", job.url, "--store", job.folder / "store", "--json"]
    command += ["--out", job.folder / "out", "--format", "jsonl"]
    return [*command, "--delay", "0", "--max-pages", str(job.requests)]


def _on_stack(job: Job) -> Words:
    """Crawl on a fresh stack, without records of earlier crawls, and up to ten workers at once."""
    at = f"--port {PORT}"
    up = f'"$0" local up --fresh {at} -c worker_concurrency_max={STACK_WORKERS}'
    crawl = f'"$0" crawl {shlex.quote(job.url)} --target local {at} --json --delay 0'
    crawl += f" --max-pages {job.requests} --format jsonl --out out"
    return ["sh", "-c", f"{up} && exec {crawl}", ORBWEAVER]


def _stack_down() -> None:
    subprocess.run([ORBWEAVER, "local", "down", "--port", str(PORT)], check=True)


def _wget(job: Job) -> Words:
    command: Words = ["wget", "--mirror", "--no-parent", "--no-verbose", "--tries=2"]
    command += ["--timeout=20", "--output-file", job.folder / "wget.log"]
    return [*command, "--directory-prefix", job.folder / "mirror", job.url]


def _peer(script: str, *more: str) -> Callable[[Job], Words]:
    return lambda job: [PEERS_PYTHON, CLIENTS / script, job.url, "--at-once", AT_ONCE, *more]


def crawl(place: Place, port: int, crawler: Crawler, bounds: Bounds) -> Crawl:
    """Run a crawler on a served application, and read its requests from the log."""
    log = place.path(LOG)
    with tempfile.TemporaryDirectory(prefix="orbweaver-yield-") as name:
        folder = Path(name)
        job = Job(url=f"http://{ADDRESS}:{port}/", requests=bounds.requests, folder=folder)
        os.truncate(log, 0)
        since_us, began_s = time.time_ns() // 1_000, time.monotonic()
        ended, resident = _run(crawler.words(job), folder, log, bounds)
        took_s = time.monotonic() - began_s
        crawler.clear()
        time.sleep(SETTLE_S)
    with log.open(encoding="utf-8", errors="surrogateescape") as lines:
        requests = requests_of(lines, since_us)[: bounds.requests]
    if not requests and ended == "itself":
        ended = "failed: it asked for nothing"
    return Crawl(requests=requests, ended=ended, took_s=took_s, resident_bytes_max=resident)


def _run(words: Words, folder: Path, log: Path, bounds: Bounds) -> tuple[str, int]:
    """Run a command to its end or a limit. Return the reason, and its peak memory."""

    def tick(sample: measure.Usage) -> str | None:
        if log.read_bytes().count(b"\n") >= bounds.requests:
            return "requests"
        return "memory" if sample.resident_bytes > bounds.bytes else None

    ran = measure.run(
        words,
        environment={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
        folder=folder,
        limit_s=bounds.seconds,
        tick=tick,
    )
    ended = ran.stopped or "itself"
    if ran.code not in (None, 0, WGET_SAW_ERRORS):
        text = " ".join((ran.out + ran.err).split())[-SAID_CHARS:]
        ended = f"failed: code {ran.code}: {text}"
    return ended, ran.resident_bytes_max
