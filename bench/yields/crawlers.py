"""The crawlers, with their settings in addition to the common task.

The task: start at one URL, follow the links of its host, obey robots.txt, no delay. Concurrency is
each crawler's default, or 8.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AT_ONCE = 8
PORT = 4_778  # port of the emulated stack
PROJECT = Path(__file__).resolve().parents[2]
CLIENTS = PROJECT / "bench" / "clients"
PEERS_PYTHON = PROJECT / ".local" / "bench" / "peers" / "bin" / "python"
NOT_INSTALLED = "run: .venv/bin/python tools/bootstrap.py bench"

Words = list[str | Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One crawl: start URL, number of requests to judge, and output folder."""

    url: str
    requests: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawler:
    """A crawler and its command. `clear` stops processes that outlive it."""

    name: str
    title: str
    words: Callable[[Job], Words]
    absent: Callable[[], str] = str
    clear: Callable[[], object] = str


def ours(options: Sequence[str] = ()) -> Crawler:
    def words(job: Job) -> Words:
        command: Words = [Path(sys.executable).with_name("orbweaver"), "crawl", job.url]
        command += ["--store", job.folder / "store", "--out", job.folder / "out", "--json"]
        command += ["--delay", "0", "--max-pages", str(job.requests), "--format", "jsonl"]
        return [*command, *options]

    return Crawler(name="ours", title="Orbweaver", words=words)


def _on_stack(job: Job) -> Words:
    script = PROJECT / "bench" / "yields" / "on_stack.py"
    asked = ["--port", str(PORT), "--pages", str(job.requests)]
    return [sys.executable, script, job.url, *asked]


def _stack_down() -> None:
    program = Path(sys.executable).with_name("orbweaver")
    subprocess.run([program, "local", "down", "--port", str(PORT)], check=True)


def _wget(job: Job) -> Words:
    command: Words = ["wget", "--mirror", "--no-parent", "--no-verbose", "--tries=2"]
    command += ["--timeout=20", "--output-file", job.folder / "wget.log"]
    return [*command, "--directory-prefix", job.folder / "mirror", job.url]


def _wget_absent() -> str:
    return "" if shutil.which("wget") else "there is no wget"


def _peer(script: str, *more: str) -> Callable[[Job], Words]:
    def words(job: Job) -> Words:
        return [PEERS_PYTHON, CLIENTS / script, job.url, "--at-once", str(AT_ONCE), *more]

    return words


def _peers_absent() -> str:
    return "" if PEERS_PYTHON.exists() else NOT_INSTALLED


def named(names: Sequence[str], options: Sequence[str] = ()) -> list[Crawler]:
    """Return crawlers by name. Raises KeyError for an unknown name."""
    scrapy, crawlee = "scrapy_spider.py", "crawlee_crawler.py"
    known = (
        ours(options),
        Crawler(
            name="stack", title="Orbweaver, emulated stack", words=_on_stack, clear=_stack_down
        ),
        Crawler(name="wget", title="Wget", words=_wget, absent=_wget_absent),
        Crawler(name="scrapy", title="Scrapy", words=_peer(scrapy), absent=_peers_absent),
        Crawler(
            name="scrapy-breadth",
            title="Scrapy, breadth first",
            words=_peer(scrapy, "--breadth-first"),
            absent=_peers_absent,
        ),
        Crawler(name="crawlee", title="Crawlee", words=_peer(crawlee), absent=_peers_absent),
    )
    table = {crawler.name: crawler for crawler in known}
    return [table[name] for name in names]


NAMES = ("ours", "stack", "wget", "scrapy", "scrapy-breadth", "crawlee")
