"""Runs a site in its own process.

`run` is the child's side: it prints one JSON line `{"url": …}` once the site listens, and stops at
SIGTERM or SIGINT. With `LEASHED` in its environment it also stops at the end of its standard input,
so that a child never outlives its parent; a site started by hand needs no input. `start` is the
parent's side: it starts `python -m tests.sites.NAME`, reads that line, and uses the site's control
paths. It blocks, for tests and tools without an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from tests.sites.server import CONTROL, Record, Site, listening

ROOT = Path(__file__).parents[2]
CONTROL_TIMEOUT_S = 30
STOP_TIMEOUT_S = 10
STDIN = 0
LEASHED = "ORBWEAVER_SITE_LEASHED"
READ_BYTES = 4096


def run(site: Site, port: int) -> None:
    """Serve a site until a signal, or until its parent is gone."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_until_told(site, port))


async def _serve_until_told(site: Site, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with listening(site, port):
        sys.stdout.write(json.dumps({"url": site.url}) + "\n")
        sys.stdout.flush()
        if os.environ.get(LEASHED):
            # A thread, not a loop reader: epoll refuses files and /dev/null as standard input.
            threading.Thread(target=_wait_for_stdin_end, args=(loop, stop), daemon=True).start()
        await stop.wait()


def _wait_for_stdin_end(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # An input that is closed from the start counts as its end too.
    with contextlib.suppress(OSError):
        while os.read(STDIN, READ_BYTES):
            pass
    with contextlib.suppress(RuntimeError):  # The loop may have closed before.
        loop.call_soon_threadsafe(stop.set)


class Child:
    """A site that runs in another process."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid
        self._opener = build_opener(ProxyHandler({}))  # Requests to loopback never use a proxy.

    def control(self, name: str) -> Any:  # JSON with the site's own structure.
        """Return a control document, for example `expected.json`."""
        with self._opener.open(self.url + CONTROL + name, timeout=CONTROL_TIMEOUT_S) as answer:
            return json.load(answer)

    def log(self, *, after: int = 0) -> tuple[Record, ...]:
        """Return the access log, or the part of it after a `seq`."""
        return tuple(Record(**row) for row in self.control(f"log.json?after={after}"))

    def reset(self) -> None:
        self.control("reset")


@contextlib.contextmanager
def start(name: str, *arguments: str) -> Iterator[Child]:
    """Run `python -m tests.sites.NAME` with arguments for a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.sites.{name}", *arguments],
        cwd=ROOT,
        env={**os.environ, LEASHED: "yes"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:  # Its exit closes the pipes, which stops the child.
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                message = f"the site {name!r} ended with code {process.wait(STOP_TIMEOUT_S)}"
                raise RuntimeError(message)
            yield Child(json.loads(line)["url"], process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
