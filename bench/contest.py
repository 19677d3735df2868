"""The clients: their commands and requirements."""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import sys
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import free_port
from infra import node
from localstack import layout, stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from orbweaver.model.amounts import NANO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from localstack.stack import Stack

ROOT = layout.ROOT
HOME = layout.LOCAL / "bench"
PEERS_PYTHON = HOME / "peers" / "bin" / "python"
CLIENTS = Path(__file__).with_name("clients")
SPIDER = CLIENTS / "spider"
ORBWEAVER = Path(sys.executable).with_name("orbweaver")
AT_ONCE = 64
# Number of pages of a crawl that only warms up a stack.
WARM_PAGES = 60
# Environment variables that clients inherit.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A client's turn: the command to run, and its environment."""

    words: Sequence[str | Path]
    environment: Mapping[str, str]
    # Ids of running processes that work for the command.
    beside: tuple[int, ...] = ()
    after: Callable[[], None] = field(default=lambda: None)


class Stacked(Enum):
    """The stack of a client: one for all its turns, or a new one for each turn."""

    WARM, COLD = "warm", "cold"


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its description, its largest number of rounds, and its turns in each round.

    `stores`: the stored parts of a page. `words` and `options` are the command before and after the
    URL. Without `words` it is `orbweaver crawl`, which prints the project's form of result.
    """

    name: str
    title: str
    stores: str
    words: tuple[str | Path, ...] = ()
    options: tuple[str, ...] = ("--at-once", str(AT_ONCE))
    rounds_max: int = 1_000
    turns: int = 1
    # A peer is absent if this file is missing. Clients of this project have no such file.
    installed: Path | None = None
    remedy: str = "`make bench`"
    stack: Stacked | None = None

    @property
    def absent(self) -> str:
        """Return why the client cannot take part, or ""."""
        if self.installed is not None and not self.installed.exists():
            return f"{self.title} is not installed: run {self.remedy}"
        if self.stack and not layout.EMULATOR_PYTHON.exists():
            return f"{self.title} needs the emulator: run `make setup`"
        return ""


NOTHING, RECORDS = "nothing", "records"
# Most clients store no bodies.
ALIKE = ("--concurrency", str(AT_ONCE), "--bodies", "off")
MODULE = (sys.executable, "-m")
ALL = {
    client.name: client
    for client in (
        Client(
            "floor",
            "Bare loop (aiohttp + lexbor + ada)",
            NOTHING,
            words=(*MODULE, "bench.clients.floor"),
            turns=4,
        ),
        Client(
            "worker",
            "Orbweaver, worker alone",
            "records in memory",
            words=(*MODULE, "bench.clients.worker"),
            turns=4,
        ),
        Client(
            "store",
            "Orbweaver, one process, no bodies",
            RECORDS,
            options=("--workers", "1", *ALIKE),
            turns=2,
        ),
        Client("default", "Orbweaver, default", "records, bodies (WARC)", options=(), turns=2),
        Client(
            "stack", "Orbweaver, whole stack, emulated", RECORDS, options=ALIKE, stack=Stacked.WARM
        ),
        Client(
            "stack-cold",
            "Orbweaver, whole stack, from nothing",
            RECORDS,
            options=ALIKE,
            stack=Stacked.COLD,
            rounds_max=1,
        ),
        Client(
            "wget2",
            "wget2",
            "files",
            words=(sys.executable, CLIENTS / "wget2.py"),
            installed=Path(shutil.which("wget2") or "/usr/bin/wget2"),
            remedy="`apt-get install wget2`",
            turns=2,
        ),
        Client(
            "spider-rs",
            "spider-rs",
            NOTHING,
            words=((node.folder() or Path()) / "node", CLIENTS / "spider/crawl.mjs"),
            options=(),  # it chooses the number of concurrent requests itself
            installed=SPIDER / "node_modules",
            turns=2,
        ),
        Client(
            "scrapy",
            "Scrapy",
            NOTHING,
            words=(PEERS_PYTHON, CLIENTS / "scrapy_spider.py"),
            installed=PEERS_PYTHON,
        ),
        Client(
            "crawlee",
            "Crawlee for Python",
            "requests",
            words=(PEERS_PYTHON, CLIENTS / "crawlee_crawler.py"),
            installed=PEERS_PYTHON,
        ),
    )
}
OURS = ("worker", "store", "default", "stack", "stack-cold")


def environment(authorities: Path) -> dict[str, str]:
    """Return the environment of clients: no user settings, and the trusted authorities."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "SSL_CERT_FILE": str(authorities),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def compile_ours() -> None:
    """Compile this project's modules, as pip compiled the peers. Clients write no bytecode."""
    for folder in ("functions", "localstack", "bench"):
        compileall.compile_dir(ROOT / folder, quiet=1)


class Contest:
    """Prepares clients' turns. The stack of a client runs from its first turn on."""

    def __init__(self, authorities: Path, folder: Path, say: Callable[[str], None]) -> None:
        self._environment = environment(authorities)
        self._folder = folder
        self._say = say
        self._open = contextlib.ExitStack()
        self._stack: Stack | None = None
        self._crawls = 0

    def close(self) -> None:
        self._open.close()

    def turn(self, client: Client, url: str) -> Turn:
        if client.words:
            own = "" if client.installed else os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
            return Turn(
                words=[*client.words, url, *client.options],
                environment={**self._environment, **({"PYTHONPATH": own} if own else {})},
            )
        match client.stack:
            case None:
                store = str(self._folder / f"store-{self._crawls}")
                return self._crawl(url, "--store", store, *client.options)
            case Stacked.WARM:
                assert self._stack is not None
                emulator = self._stack.emulator
                turn = self._crawl(url, "--port", str(emulator.port), *client.options)
                return replace(turn, beside=(emulator.process.pid,))
            case Stacked.COLD:
                port = str(free_port())
                remove = partial(shutil.rmtree, layout.INSTANCES / port, ignore_errors=True)
                return replace(self._crawl(url, "--port", port, *client.options), after=remove)

    def warm_up(self, url: str) -> Turn:
        """Return a crawl that warms up a stack for a site. It trusts the same authorities."""
        if self._stack is None:
            trusted = {"SSL_CERT_FILE": self._environment["SSL_CERT_FILE"]}
            self._stack = self._open.enter_context(
                stack.temporary(context=LOCAL_CONTEXT, settings=trusted, say=self._say)
            )
        port = self._stack.emulator.port
        return self._crawl(url, "--port", str(port), "--max-pages", str(WARM_PAGES), *ALIKE)

    def _crawl(self, url: str, *more: str) -> Turn:
        self._crawls += 1
        # Runs of the same name would share the record of queued URLs.
        name = f"bench-{self._crawls}"
        options = ["--name", name, "--delay", "0", *more]
        options += ["--out", str(self._folder / name), "--json"]
        return Turn(words=(ORBWEAVER, "crawl", url, *options), environment=self._environment)


def got(client: Client, said: Mapping[str, Any]) -> dict[str, Any]:
    if client.words:
        return {
            "pages": said.get("pages", 0),
            "nanodollars": said.get("nanodollars"),
            "units": said.get("units", {}),
            "versions": said.get("versions", {}),
            "said": {
                name: said[name]
                for name in ("state", "titles", "batches", "messages", "dead")
                if name in said
            },
        }
    outcomes = said.get("outcomes", {})
    counted = said.get("units_dollars")
    dollars = said.get("cost_dollars") if counted is None else counted
    return {
        "pages": outcomes.get("fetched", 0),
        "nanodollars": None if dollars is None else round(dollars * NANO),
        "units": said.get("units", {}),
        "said": {"state": said.get("state"), "outcomes": outcomes},
    }
