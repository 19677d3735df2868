"""The surroundings of a command: output, environment variables, access to this machine."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import TYPE_CHECKING, TextIO

from orbweaver.cli.text import clean_lines, escape_controls
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from orbweaver.app.aws_ports import Ports
    from orbweaver.cli.live.display import Display
    from orbweaver.cli.stack import Machine
    from orbweaver.control.progress.status import View
    from orbweaver.fetching.proxy_pool import Proxy
    from orbweaver.model.http_exchange import Failure, Trust
    from orbweaver.model.ports import Clock, Fetcher
    from orbweaver.model.settings import Settings

    Connect = Callable[[Settings, Mapping[str, str]], AbstractAsyncContextManager[Ports]]
    Reach = Callable[[str, Trust], Awaitable[Failure | None]]
    ReachProxy = Callable[[Proxy], Awaitable[Failure | None]]

_PAUSES = "Ctrl-C pauses the crawl; the same command continues it"
_LEAVES = "Ctrl-C stops watching"


@value_class
class CliContext:
    """Output, environment and machine of a command. Relative paths start at `folder`.

    Tests replace all of these.
    """

    out: TextIO
    err: TextIO
    environment: Mapping[str, str]
    folder: Path
    machine: Machine
    connect: Connect
    web: Callable[[], AbstractAsyncContextManager[Fetcher]]
    clock: Clock
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    # Return why the server of a seed cannot be reached, or why a proxy cannot be used.
    reach: Reach | None = None
    reach_proxy: ReachProxy | None = None
    # Begins to write log events, configured by environment variables.
    start_logging: Callable[[Mapping[str, str]], object] | None = None

    def confirmed(self, question: str) -> bool:
        self.err.write(f"{question} (y/N) ")
        self.err.flush()
        return self.stdin.readline().strip().lower() in ("y", "yes")

    def display(self, arguments: argparse.Namespace) -> Display:
        from orbweaver.cli.live.display import JsonDisplay, JsonLines, Lines, Panel, WarningsOnly

        shows = getattr(arguments, "progress", None) or "auto"
        is_quiet = getattr(arguments, "quiet", False) or shows == "none"
        quiet = WarningsOnly(self.note) if is_quiet else None
        if arguments.json:
            return JsonDisplay(self.out, instead=quiet)
        if quiet is not None:
            return quiet
        if shows == "json":
            return JsonLines(self.err)
        if self.out.isatty() and self.environment.get("TERM", "") not in ("", "dumb"):
            crawling = arguments.command == "crawl"
            footer = (lambda _: _PAUSES) if crawling else _footer_of_watch
            return Panel(self.out, self.environment, footer)
        return Lines(self.out)

    def write(self, *lines: str) -> None:
        """Write lines to the standard output. For a terminal, control characters are escaped."""
        for line in lines:
            print(shown(line, self.out), file=self.out, flush=True)

    def write_bytes(self, body: bytes) -> None:
        """Write bytes to the standard output. A terminal gets them without control characters."""
        buffer = getattr(self.out, "buffer", None)
        if buffer is None or self.out.isatty():
            self.write(clean_lines(body.decode("utf-8", "replace")))
            return
        self.out.flush()
        buffer.write(body)
        buffer.flush()

    def note(self, *lines: str) -> None:
        """Write lines to the standard error, so that they do not go into pipes."""
        for line in lines:
            print(shown(line, self.err), file=self.err, flush=True)


def _footer_of_watch(view: View) -> str:
    from orbweaver.model.crawl import State

    runs = view.crawl.state is State.RUNNING and not view.reading.idle
    return f"{_LEAVES}; the crawl continues" if runs else _LEAVES


def shown(line: str, out: TextIO) -> str:
    """Return a line for `out`. For a terminal, control characters are escaped."""
    return escape_controls(line) if out.isatty() else line
