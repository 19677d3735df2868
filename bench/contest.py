"""The clients: their commands and requirements."""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import sys
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: its description, its largest number of rounds, and its turns in each round.

    `stores`: the stored parts of a page. A peer is absent if the file `installed` is missing.
    """

    name: str
    title: str
    stores: str
    rounds_max: int = 1_000
    turns: int = 1
    peer: bool = False
    script: str = ""
    installed: Path = PEERS_PYTHON
    stack: bool = False
    # The client is a command of this project, and prints the project's form of result.
    ours: bool = False

    @property
    def absent(self) -> str:
        """Return why the client cannot take part, or ""."""
        if self.peer and not self.installed.exists():
            remedy = "`apt-get install wget2`" if self is WGET2 else "`make bench`"
            return f"{self.title} is not installed: run {remedy}"
        if self.stack and not layout.EMULATOR_PYTHON.exists():
            return f"{self.title} needs the emulator: run `make setup`"
        return ""


NOTHING, RECORDS = "nothing", "records"
FLOOR = Client(name="floor", title="Bare loop (aiohttp + lexbor + ada)", stores=NOTHING, turns=4)
WORKER = Client(name="worker", title="Orbweaver, worker alone", stores="records in memory", turns=4)
STORE = Client(
    name="store", title="Orbweaver, one process, no bodies", stores=RECORDS, ours=True, turns=2
)
DEFAULT = Client(
    name="default", title="Orbweaver, default", stores="records, bodies (WARC)", ours=True, turns=2
)
STACK = Client(
    name="stack",
    title="Orbweaver, whole stack, emulated",
    stores=RECORDS,
    stack=True,
    ours=True,
)
COLD = Client(
    name="stack-cold",
    title="Orbweaver, whole stack, from nothing",
    stores=RECORDS,
    stack=True,
    ours=True,
    rounds_max=1,
)
WGET2 = Client(
    name="wget2",
    title="wget2",
    stores="files",
    peer=True,
    script="wget2.py",
    installed=Path(shutil.which("wget2") or "/usr/bin/wget2"),
    turns=2,
)
SPIDER_RS = Client(
    name="spider-rs",
    title="spider-rs",
    stores=NOTHING,
    peer=True,
    script="spider/crawl.mjs",
    installed=SPIDER / "node_modules",
    turns=2,
)
SCRAPY = Client(name="scrapy", title="Scrapy", stores=NOTHING, peer=True, script="scrapy_spider.py")
CRAWLEE = Client(
    name="crawlee",
    title="Crawlee for Python",
    stores="requests",
    peer=True,
    script="crawlee_crawler.py",
)
ALL = {
    client.name: client
    for client in (
        FLOOR,
        WORKER,
        STORE,
        DEFAULT,
        STACK,
        COLD,
        WGET2,
        SPIDER_RS,
        SCRAPY,
        CRAWLEE,
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
        if client is STACK:
            assert self._stack is not None
            emulator = self._stack.emulator
            turn = self._crawl(url, "--port", str(emulator.port))
            return replace(turn, beside=(emulator.process.pid,))
        if client is COLD:
            port = str(free_port())
            remove = partial(shutil.rmtree, layout.INSTANCES / port, ignore_errors=True)
            return replace(self._crawl(url, "--port", port), after=remove)
        if client is STORE:
            return self._crawl(url, *self._own_store(), "--workers", "1")
        if client is DEFAULT:
            return self._crawl(url, *self._own_store(), default=True)
        if client.peer:
            script = CLIENTS / client.script
            program: str | Path = sys.executable if client is WGET2 else PEERS_PYTHON
            words: list[str | Path] = [program, script, url, "--at-once", str(AT_ONCE)]
            if client is SPIDER_RS:  # it chooses the number of concurrent requests itself
                words = [(node.folder() or Path()) / "node", script, url]
            return Turn(words=words, environment=self._environment)
        module = f"bench.clients.{client.name}"
        path = os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
        return Turn(
            words=[sys.executable, "-m", module, url, "--at-once", str(AT_ONCE)],
            environment={**self._environment, "PYTHONPATH": path},
        )

    def warm_up(self, url: str) -> Turn:
        """Return a crawl that warms up a stack for a site. It trusts the same authorities."""
        if self._stack is None:
            trusted = {"SSL_CERT_FILE": self._environment["SSL_CERT_FILE"]}
            self._stack = self._open.enter_context(
                stack.temporary(context=LOCAL_CONTEXT, settings=trusted, say=self._say)
            )
        port = self._stack.emulator.port
        return self._crawl(url, "--port", str(port), "--max-pages", str(WARM_PAGES))

    def _own_store(self) -> tuple[str, str]:
        return "--store", str(self._folder / f"store-{self._crawls}")

    def _crawl(self, url: str, *more: str, default: bool = False) -> Turn:
        self._crawls += 1
        # Runs of the same name would share the record of queued URLs.
        name = f"bench-{self._crawls}"
        options = ["--name", name, "--delay", "0", *more]
        if not default:  # most other clients store no bodies
            options += ["--concurrency", str(AT_ONCE), "--bodies", "off"]
        options += ["--out", str(self._folder / name), "--json"]
        return Turn(words=(ORBWEAVER, "crawl", url, *options), environment=self._environment)


def got(client: Client, said: Mapping[str, Any]) -> dict[str, Any]:
    if not client.ours:
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
