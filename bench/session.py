"""One benchmark from start to end: sites one after another, rounds, turns, results."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import contest, figures, measure
from bench.contest import Client, Contest
from bench.figures import Run
from bench.serving import STOP_S, stop
from bench.sites import Generated, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SCHEMA = 1
LOAD_PAGES = 64
TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
SYSTEM_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The sites, clients and limits of a measurement."""

    places: Sequence[Place]
    clients: Sequence[Client]
    rounds: int
    once: bool  # one turn per round for each client
    pages: int
    limit_s: float
    load_s: float


class Served:
    """A site's server in its own process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = str(self._read()["url"])

    def ask(self, word: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with code {self._process.wait(STOP_S)}")
        said: dict[str, Any] = json.loads(line)
        return said


@contextlib.contextmanager
def serving(place: Place, pages: int, folder: Path) -> Iterator[Served]:
    words = [sys.executable, "-m", "bench.server", place.site.name, "--pages", str(pages)]
    if place.tls:
        words += ["--tls", str(folder)]
    process = subprocess.Popen(
        words,
        cwd=contest.ROOT,
        env={**os.environ, "PYTHONPATH": str(contest.ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    with process:
        try:
            yield Served(process)
        finally:
            stop(process)


class Session:
    """Runs all measurements. `say` writes lines, `show` overwrites one line."""

    def __init__(
        self, asked: Asked, folder: Path, say: Callable[[str], None], show: Callable[[str], None]
    ) -> None:
        self._asked, self._folder, self._say, self._show = asked, folder, say, show
        self._contest = Contest(trust(folder), folder, say)
        self._done = 0
        self.results: dict[str, Any] = {
            "schema": SCHEMA,
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "at_once": contest.AT_ONCE,
            "rounds": asked.rounds,
            "turns": {
                client.name: client.turns
                for client in asked.clients
                if client.turns > 1 and not asked.once
            },
            "clients": {client.name: client.title for client in asked.clients},
            "sites": {},
            "runs": [],
            "void": [],
        }

    def run(self) -> dict[str, Any]:
        """Measure everything. If this fails, `results` has the results so far."""
        contest.compile_ours()
        began_s = time.monotonic()
        with contextlib.closing(self._contest):
            for place in self._asked.places:
                with serving(place, self._asked.pages, self._folder) as served:
                    self._site(place, served)
                self.results["took_s"] = round(time.monotonic() - began_s)
        return self.results

    def _site(self, place: Place, served: Served) -> None:
        url = served.url + place.site.start
        report = served.ask("reset")
        self._say(f"\n{place.title}: {report['served']:,} pages served")
        self.results["sites"][place.name] = {"title": place.title}
        known = report["served"] if isinstance(place.site, Generated) else None
        if any(client.stack is contest.Stacked.WARM for client in self._asked.clients):
            self._warm_up(url)
        for number in range(self._asked.rounds):
            taking = [client for client in self._asked.clients if number < client.rounds_max]
            turns = {client.name: 1 if self._asked.once else client.turns for client in taking}
            names = figures.sequence(turns, number)
            runs = [self._turn(contest.ALL[name], place, served, number) for name in names]
            if number == 0 and runs:
                self._load(place, served, runs[0])
            for run, why in zip(runs, figures.faults(runs, known), strict=True):
                self.results["runs"].append({**run.as_json(), "void": why})
                if why:
                    about = {"client": run.client, "round": number, "why": why}
                    self._say(f"  round {number + 1} of {run.client} is void: {why}")
                    self.results["void"].append({"site": place.name, **about})

    def _warm_up(self, url: str) -> None:
        ran = self._measured(self._contest.warm_up(url))
        if ran.code:
            self._say(f"  warming the stack up failed: {ran.err}")

    def _turn(self, client: Client, place: Place, served: Served, number: int) -> Run:
        turn = self._contest.turn(client, served.url + place.site.start)
        served.ask("reset")
        load = os.getloadavg()[0]
        name = f"  round {number + 1} of {self._asked.rounds}  {client.name:<11}"

        def tick(_: measure.Usage) -> None:
            self._done += 1
            if self._done % 5 == 0:
                self._show(f"{name}{served.ask('count')['requests']:>8,} requests")

        try:
            ran = self._measured(turn, tick)
        finally:
            turn.after()
        run = run_of(client, place.name, number, ran, served.ask("report"), load)
        self._say(name + line_of(run))
        return run

    def _measured(
        self, turn: contest.Turn, tick: Callable[[measure.Usage], None] = lambda _: None
    ) -> measure.Ran:
        return measure.run(
            turn.words,
            environment=turn.environment,
            folder=contest.ROOT,
            limit_s=self._asked.limit_s,
            beside=turn.beside,
            tick=tick,
        )

    def _load(self, place: Place, served: Served, run: Run) -> None:
        """Measure the server alone, on pages that were just requested."""
        paths = sorted(run.paths)[:LOAD_PAGES]
        if not paths:
            return
        before = served.ask("reset")
        words = [sys.executable, "-m", "bench.server", served.url, *paths]
        turn = contest.Turn(
            words=[*words, "--seconds", str(self._asked.load_s)],
            environment={
                **contest.environment(self._folder / "authorities.pem"),
                "PYTHONPATH": str(contest.ROOT),
            },
        )
        ran, report = self._measured(turn), served.ask("report")
        rate = ran.said.get("requests_per_s", 0.0)
        cpu_us = 1e6 * (report["cpu_s"] - before["cpu_s"]) / max(1, report["requests"])
        self.results["sites"][place.name]["server"] = {"requests_per_s": rate, "cpu_us": cpu_us}
        self._say(f"  the server alone: {rate:,.0f} requests/s, {cpu_us:,.0f} µs of CPU each")


def run_of(
    client: Client, site: str, number: int, ran: measure.Ran, report: dict[str, Any], load: float
) -> Run:
    """Combine the client's result, the server's report and the machine's measurements."""
    said = contest.got(client, ran.said)
    failure = ""
    if ran.code is None:
        failure = "it had not ended when its time was over"
    elif ran.code:
        failure = f"code {ran.code}: {(ran.err or ran.out)[-300:].strip()}"
    elif not ran.said:
        failure = f"it said nothing of itself: {ran.err[-300:].strip()}"
    cpu_before_s = ran.cpu_before_s(report["first_s"]) if report["first_s"] else 0.0
    return Run(
        site=site,
        client=client.name,
        round=number,
        paths=frozenset(report["pages"]),
        requests=report["requests"],
        bytes=report["bytes"],
        crawl_s=max(1e-9, report["last_s"] - report["first_s"]),
        overall_s=ran.ended_s - ran.started_s,
        cpu_s=ran.cpu_s - cpu_before_s,
        cpu_overall_s=ran.cpu_s,
        resident_bytes_max=ran.resident_bytes_max,
        load_before=load,
        failure=failure,
        **said,
    )


def line_of(run: Run) -> str:
    if run.failure:
        return f"  failed: {run.failure}"
    pages = max(1, len(run.paths))
    return (
        f"{len(run.paths):>7,} pages {len(run.paths) / run.crawl_s:>9,.1f} pages/s"
        f" {1000 * run.cpu_s / pages:>8.2f} ms CPU a page"
        f" {run.resident_bytes_max / 2**20:>6,.0f} MB {run.overall_s:>7.1f} s in all"
    )


def trust(folder: Path) -> Path:
    """Make an authority and a server certificate. Return the file of authorities for clients."""
    from tests.integration.fetcher.authority import Leaf, authority, server_context

    server_context(Leaf(addresses=("127.0.0.1",)), folder)
    files = [Path(os.environ[name]) for name in TRUST if name in os.environ]
    system = next((file for file in [*files, SYSTEM_AUTHORITIES] if file.is_file()), None)
    known = system.read_bytes() + b"\n" if system else b""
    found = folder / "authorities.pem"
    found.write_bytes(known + authority("trusted").pem)
    return found


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "build": build(),
        "load": os.getloadavg()[0],
    }


def build() -> str:
    """Describe the interpreter's build, because builds of one version differ in speed."""
    return "the system's" if sys.base_prefix == "/usr" else "built from source"
