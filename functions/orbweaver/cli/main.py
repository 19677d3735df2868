"""Entry point of the command line: run a command and return its exit code.

Imports are inside functions, so that `--version` and `--help` import no module of a command.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from orbweaver.cli import exit_codes
from orbweaver.cli.arguments import parse
from orbweaver.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import FrameType
    from typing import TextIO

    from orbweaver.cli.context import CliContext
    from orbweaver.cli.local_machine import ThisMachine
    from orbweaver.fetching.proxy_pool import Proxy
    from orbweaver.model.address_policy import Allowed
    from orbweaver.model.http_exchange import Failure, Trust
    from orbweaver.model.ports import Fetcher

# Exit code of a program that SIGPIPE ended, as shells report it.
CLOSED = 128 + signal.SIGPIPE
# Number of new objects between garbage collections. With Python's default of 700, collections take
# 6 % of the time until the first request of a crawl, because imports create many objects.
GARBAGE_OBJECTS = 100_000


def main(words: Sequence[str] | None = None) -> int:
    gc.set_threshold(GARBAGE_OBJECTS)
    if _is_closed(1):
        if not _is_closed(2):
            sys.stderr.write("standard output is closed: redirect it to /dev/null instead\n")
        return CLOSED
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # titles may contain characters that the terminal lacks
            stream.reconfigure(errors="replace")
    ending = _Ending()
    with contextlib.suppress(ValueError):  # not in the main thread
        ending.listen()
        _heed_interrupts()
    try:
        with contextlib.ExitStack() as stack:
            around = cache(partial(_cli_context, stack))
            code = run(sys.argv[1:] if words is None else words, around)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended, as in `orbweaver pages ID | head`
        for stream in (sys.stdout, sys.stderr):
            _drain(stream)
        return CLOSED
    return ending.code if code == exit_codes.INTERRUPTED else code


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _drain(stream: TextIO) -> None:
    """Discard a stream's buffer if its reader is gone, because Python flushes it at exit."""
    try:
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run(words: Sequence[str], around: Callable[[], CliContext]) -> int:
    """Run one command and return its exit code.

    `around` is called only if a command runs or an error is printed. Tests pass a function that
    replaces the real terminal and machine.
    """
    interrupted = "interrupted before the command began"
    try:
        arguments = parse(words)
        from orbweaver.cli.running import run_command

        interrupted = "interrupted"
        return run_command(arguments, around())
    except SystemExit as end:  # --help, --version
        return int(end.code or 0)
    except UsageError as error:
        around().note(str(error))
        return exit_codes.USAGE
    except KeyboardInterrupt:
        around().note(interrupted)
        return exit_codes.INTERRUPTED


def _cli_context(stack: contextlib.ExitStack) -> CliContext:
    from pathlib import Path

    from orbweaver.adapters.local.clock import SteadyClock
    from orbweaver.adapters.local.logs import logging_to_stderr
    from orbweaver.cli import local_machine
    from orbweaver.cli.context import CliContext

    this = stack.enter_context(contextlib.closing(local_machine.ThisMachine()))
    return CliContext(
        out=sys.stdout,
        err=sys.stderr,
        environment=os.environ,
        folder=Path.cwd(),
        machine=this,
        connect=local_machine.connect,
        web=partial(_web, this),
        clock=SteadyClock(on_jump=_report_jump),
        reach=partial(_reach, this),
        reach_proxy=_reach_proxy,
        start_logging=lambda environment: stack.enter_context(logging_to_stderr(environment)),
    )


def _report_jump(by_ms: int) -> None:
    way = "forward" if by_ms > 0 else "back"
    seconds = abs(by_ms) // 1000
    said = f"the clock of this machine was set {way} by {seconds:,} s"
    sys.stderr.write(f"{said}: this command keeps the old time\n")


def _allowed(this: ThisMachine) -> Allowed:
    """Return the allowed addresses: servers of this machine, except its emulators."""
    from orbweaver.model.address_policy import THIS_MACHINE, parse_allowed

    return parse_allowed(THIS_MACHINE, this.ports())


async def _reach(this: ThisMachine, url: str, trust: Trust) -> Failure | None:
    """Return why the server of a seed cannot be reached. None: it can be reached."""
    from orbweaver.adapters.web.tls import without_authorities

    with without_authorities():  # saves a tenth of the time to the first request
        from orbweaver.adapters.web.reach import trouble_at

    return await trouble_at(url, _allowed(this), trust=trust)


async def _reach_proxy(proxy: Proxy) -> Failure | None:
    from orbweaver.adapters.web.proxy_client import trouble_with

    return await trouble_with(proxy)


@contextlib.asynccontextmanager
async def _web(this: ThisMachine) -> AsyncIterator[Fetcher]:
    """Open a fetcher with the proxies of the environment."""
    from orbweaver.adapters.local.clock import SystemClock
    from orbweaver.adapters.web.client import HttpFetcher
    from orbweaver.adapters.web.proxy_client import with_proxies
    from orbweaver.app.store_runner import store_proxies, store_settings

    config = store_proxies(os.environ, store_settings({}))
    direct = HttpFetcher(allowed=_allowed(this))
    fetcher = with_proxies(direct, config, SystemClock()) if config else direct
    async with contextlib.aclosing(fetcher):
        yield fetcher


class _Ending:
    """Makes signals like SIGTERM end a command as Ctrl-C does.

    The exit code is 128 plus the signal's number.
    """

    def __init__(self) -> None:
        self.code = exit_codes.INTERRUPTED

    def listen(self) -> None:
        """Handle the signals, but not SIGHUP under `nohup`, which ignores it."""
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Call the current handler of Ctrl-C, which is asyncio's while an event loop runs."""
        self.code = 128 + number
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)


def _heed_interrupts() -> None:
    """Make SIGTERM end a command that a script started with `&`."""
    # Shells without job control make such commands ignore SIGINT (POSIX.1-2024, XCU 2.11). Here
    # SIGINT is blocked instead, so that it has a handler, which `_Ending` needs for other signals.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
