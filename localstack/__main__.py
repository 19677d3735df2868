"""`python -m localstack up | down | status`: the stack on this machine, by the shortest way."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from localstack import emulator, layout, lost, stack
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    arguments = _parser().parse_args(words)
    # A polite kill ends like Ctrl-C: by unwinding, so that what was started is stopped.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        match arguments.command:
            case "up":
                return _up(arguments)
            case "down":
                return _down(arguments)
            case _:
                return _status()
    except LocalStackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localstack", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the emulator and deploy the stack to it")
    up.add_argument("--port", type=int, default=emulator.PORT, help="0 takes a free one")
    up.add_argument("--fresh", action="store_true", help="forget what was there before")
    up.add_argument("-c", "--context", action="append", default=[], metavar="KEY=VALUE")
    down = commands.add_parser("down", help="stop the emulator")
    down.add_argument("--port", type=int, default=emulator.PORT)
    down.add_argument("--all", action="store_true", help="every emulator of this checkout")
    commands.add_parser("status", help="list the emulators that run")
    return parser


def _up(arguments: argparse.Namespace) -> int:
    from orbweaver.cli.stacks import LOCAL_CONTEXT

    stood = stack.up(
        port=arguments.port,
        fresh=arguments.fresh,
        context=_context(arguments.context),
        defaults=LOCAL_CONTEXT,
        say=_say,
    )
    for name, value in sorted(stood.outputs.items()):
        print(f"{name} = {value}")
    print(f"export AWS_ENDPOINT_URL={stood.emulator.endpoint_url}")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    ports = [arguments.port]
    if arguments.all:
        ports = [running.port for running in emulator.find_all()]
    stopped = [stack.down(port, say=_say) for port in ports]
    if not any(stopped):
        _say("no emulator runs" if arguments.all else f"no emulator runs on port {ports[0]}")
    return 0


def _status() -> int:
    running = emulator.find_all()
    if not running:
        print("no emulator runs")
    for found in running:
        health = "healthy" if found.is_healthy() else "does not answer"
        print(f"{found.endpoint_url}  process {found.process.pid}  {health}  log {found.log}")
    for port, killed in lost.of_all(layout.INSTANCES).items():
        _say(killed.told(port))
    return 0


def _context(pairs: Sequence[str]) -> Mapping[str, str]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise LocalStackError(f"A context value is given as KEY=VALUE, not as {wrong[0]!r}")
    return dict(pair.split("=", 1) for pair in pairs)


def _say(text: str) -> None:
    print(f"[local] {text}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
