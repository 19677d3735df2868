"""One crawl of one application: started, stopped at its limits, and its requests counted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import measure
from bench.yields.crawlers import Job
from bench.yields.judging import requests_of
from bench.yields.place import ADDRESS
from bench.yields.web import LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.yields.application import Application
    from bench.yields.crawlers import Crawler
    from bench.yields.judging import Request
    from bench.yields.place import Place

TICK_S = 0.1
# Answers in progress when a crawler ends are logged a moment later.
SETTLE_S = 1.5
SAID_CHARS = 600


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


def crawl(
    application: Application, place: Place, port: int, crawler: Crawler, bounds: Bounds
) -> Crawl:
    """Run a crawler on a served application, and read its requests from the log."""
    log = place.path(LOG)
    with tempfile.TemporaryDirectory(prefix="orbweaver-yield-") as folder:
        url = f"http://{ADDRESS}:{port}{application.start}"
        job = Job(url=url, requests=bounds.requests, folder=Path(folder))
        os.truncate(log, 0)
        since_us, began_s = time.time_ns() // 1_000, time.monotonic()
        ended, resident = _run(crawler.words(job), Path(folder), Lines(log, since_us), bounds)
        took_s = time.monotonic() - began_s
        crawler.clear()
        time.sleep(SETTLE_S)
    with log.open(encoding="utf-8", errors="surrogateescape") as lines:
        requests = requests_of(lines, since_us)[: bounds.requests]
    if not requests and ended == "itself":
        ended = "failed: it asked for nothing"
    return Crawl(requests=requests, ended=ended, took_s=took_s, resident_bytes_max=resident)


def _run(
    words: Sequence[str | Path], folder: Path, lines: Lines, bounds: Bounds
) -> tuple[str, int]:
    """Run a command to its end or a limit. Return the reason, and its peak memory."""
    with (folder / "said").open("w+b") as said:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            process_group=0,  # so that Ctrl-C reaches this process first
        )
        try:
            ended, resident = _watch(process, lines, bounds)
        finally:
            _end(process)
    if ended == "itself" and process.returncode < 0:
        ended = f"failed: signal {-process.returncode}"
    if ended == "itself" and process.returncode not in (0, WGET_SAW_ERRORS):
        text = (folder / "said").read_text(errors="replace")
        ended = f"failed: code {process.returncode}: {' '.join(text.split())[-SAID_CHARS:]}"
    return ended, resident


WGET_SAW_ERRORS = 8


def _watch(process: subprocess.Popen[bytes], lines: Lines, bounds: Bounds) -> tuple[str, int]:
    until_s, resident = time.monotonic() + bounds.seconds, 0
    while process.poll() is None:
        resident = max(resident, measure.usage([process.pid]).resident_bytes)
        if lines.count() >= bounds.requests:
            return "requests", resident
        if resident > bounds.bytes:
            return "memory", resident
        if time.monotonic() > until_s:
            return "time", resident
        time.sleep(TICK_S)
    return "itself", resident


class Lines:
    """Counts the requests in a growing log since a moment. Each line is read once."""

    def __init__(self, path: Path, since_us: int) -> None:
        self._path, self._since_us, self._read, self._lines = path, since_us, 0, 0

    def count(self) -> int:
        with self._path.open("rb") as opened:
            opened.seek(self._read)
            whole, newline, _ = opened.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        moments = (int(line.partition(b"\t")[0]) for line in whole.splitlines())
        self._lines += sum(moment >= self._since_us for moment in moments)
        return self._lines


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
