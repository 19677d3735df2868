"""Entry point of the command line: run a command and return its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TextIO

from orbweaver.cli import exit_codes, local_machine
from orbweaver.cli.arguments import parse
from orbweaver.cli.commands import load
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.export_files import WriteError
from orbweaver.cli.session import CliContext
from orbweaver.cli.stack import StackUnreachable
from orbweaver.control.crawl_control import ControlError
from orbweaver.model.address_policy import THIS_MACHINE, Allowed, parse_allowed
from orbweaver.model.errors import PortError, StoredNewer, StoreError
from orbweaver.model.ports import Fetcher
from orbweaver.model.version import REMEDY

USAGE, UNREACHABLE = 2, 3
# Exit code of a program that SIGPIPE ended, as shells report it.
CLOSED = 128 + signal.SIGPIPE


def main(words: Sequence[str] | None = None) -> int:
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
        with contextlib.closing(local_machine.ThisMachine()) as this:
            code = run(sys.argv[1:] if words is None else words, _cli_context(this))
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


def run(words: Sequence[str], around: CliContext) -> int:
    """Run one command and return its exit code. `around` replaces the real terminal and machine."""
    try:
        arguments = parse(words)
        result = load(arguments.command).run(arguments, around)
        return result if isinstance(result, int) else asyncio.run(result)
    except SystemExit as end:  # --help, --version
        return int(end.code or 0)
    except (UsageError, ControlError) as error:
        code, said = USAGE, str(error)
    except (StackUnreachable, StoreError) as error:
        code, said = UNREACHABLE, str(error)
    except ModuleNotFoundError as error:
        code, said = USAGE, _lacking(error)
    except WriteError as error:
        code, said = (
            exit_codes.FAILED,
            f"{error}: free disk space or give another --out, and run it again",
        )
    except StoredNewer as error:
        around.note(f"{error}; {REMEDY} (docs/upgrade.md)")
        return UNREACHABLE
    except PortError as error:
        code = UNREACHABLE
        said = f"cannot reach the stack: {error}; is it up? See `orbweaver local status`"
    except KeyboardInterrupt:
        code, said = exit_codes.INTERRUPTED, "interrupted"
    around.note(said)
    if code == UNREACHABLE:
        around.note(*around.machine.lost_data())
    return code


def _lacking(error: ModuleNotFoundError) -> str:
    """Return which extra is missing. Raises the error again if no extra contains the module."""
    from localstack import extras

    said = extras.missing_extra_text(error)
    if said is None:
        raise error
    return said


def _cli_context(this: local_machine.ThisMachine) -> CliContext:
    from orbweaver.adapters.local.clock import SteadyClock

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
    )


def _report_jump(by_ms: int) -> None:
    way = "forward" if by_ms > 0 else "back"
    seconds = abs(by_ms) // 1000
    said = f"the clock of this machine was set {way} by {seconds:,} s"
    sys.stderr.write(f"{said}: this command keeps the old time\n")


def _allowed(this: local_machine.ThisMachine) -> Allowed:
    """Allow servers of this machine, except its emulators."""
    return parse_allowed(THIS_MACHINE, this.ports())


async def _reach(this: local_machine.ThisMachine, url: str) -> str | None:
    """Return why a server that the user named cannot be reached, or None if it can."""
    from orbweaver.adapters.web.tls import without_authorities

    with without_authorities():  # saves a tenth of the time to the first request
        from orbweaver.adapters.web.reach import trouble_at

    return await trouble_at(url, _allowed(this))


@contextlib.asynccontextmanager
async def _web(this: local_machine.ThisMachine) -> AsyncIterator[Fetcher]:
    from orbweaver.adapters.web.client import HttpFetcher

    async with contextlib.aclosing(HttpFetcher(allowed=_allowed(this))) as fetcher:
        yield fetcher


class _Ending:
    """Signals that end a command as Ctrl-C does. The exit code is 128 plus the signal's number."""

    def __init__(self) -> None:
        self.code = exit_codes.INTERRUPTED

    def listen(self) -> None:
        """Handle the signals. SIGHUP stays ignored under `nohup`."""
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Call the current handler of Ctrl-C. asyncio replaces it while it runs."""
        self.code = 128 + number
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)


def _heed_interrupts() -> None:
    """Make SIGTERM work in a command that a script started with `&`."""
    # Shells without job control make such commands ignore SIGINT (POSIX.1-2024, XCU 2.11). This
    # blocks SIGINT instead of ignoring it, so that `_Ending` finds a handler.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
