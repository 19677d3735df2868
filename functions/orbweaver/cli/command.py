"""A command, as its module registers it, and the options that several commands take.

Rules
- A module of commands has `COMMANDS`, and a line in `cli/commands/__init__.py`: no other place
  knows its names, its options or what carries it out.
- Options of a kind are named once, as a parser that `Command.parents` lists.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.cli import option_types
from orbweaver.cli.session import Surroundings
from orbweaver.cli.stack import PORT
from orbweaver.exporting.formats import FORMATS
from orbweaver.model.settings import STACK

if TYPE_CHECKING:
    Run: TypeAlias = Callable[[Namespace, Surroundings], int | Coroutine[Any, Any, int]]

TARGETS = ("local", "aws")
PORT_HELP = f"where the emulator listens, and which of several it is ({PORT})"


def _no_options(_command: ArgumentParser) -> None:
    """Take nothing but what the parents say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: what carries it out, at once or in an event loop of its own, and its options."""

    name: str
    help: str
    run: Run
    options: Callable[[ArgumentParser], None] = _no_options
    # Options that it shares with others.
    parents: tuple[Callable[[], ArgumentParser], ...] = ()


@cache
def stack_options() -> ArgumentParser:
    """Options that say which stack is meant."""
    parser = ArgumentParser(add_help=False)
    add = parser.add_argument_group("which stack").add_argument
    where = option_types.one_of(TARGETS)
    add("--target", type=where, metavar="local|aws", help="default: local if up")
    region = "its AWS region (AWS_REGION, AWS_DEFAULT_REGION, or the profile's)"
    add("--region", metavar="NAME", help=region)
    add("--stack", default=STACK, metavar="NAME", help=f"its name ({STACK})")
    port = "which of the stacks on this machine, where several run"
    add("--port", type=option_types.count, metavar="N", help=port)
    return parser


@cache
def json_option() -> ArgumentParser:
    """The option that has a program read what is printed."""
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--json", action="store_true", help="JSON, one object a line")
    return parser


@cache
def out_option() -> ArgumentParser:
    """The option that says where files go."""
    parser = ArgumentParser(add_help=False)
    where = "where the files go, as TABLE/FORMAT/dt=YYYY-MM-DD/crawl=ID/part-… (out/ID)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=where)
    return parser


@cache
def context_option() -> ArgumentParser:
    """The option that sets a context key of the stack."""
    parser = ArgumentParser(add_help=False)
    add_context(parser)
    return parser


def add_context(command: ArgumentParser, text: str | None = None) -> None:
    """Add the same with a text of its own."""
    pair: dict[str, Any] = {"type": option_types.pair, "metavar": "KEY=VALUE", "help": text}
    command.add_argument("-c", "--context", action="append", default=[], **pair)


def add_formats(command: ArgumentParser) -> None:
    """Add the option that says in which formats tables are written."""
    text = f"some of {','.join(FORMATS)} (jsonl,parquet)"
    command.add_argument("--format", type=option_types.formats, metavar="F,F", help=text)


def add_crawl(command: ArgumentParser, text: str = "an id or a name", **given: Any) -> None:
    """Add the crawl that a command is about."""
    command.add_argument("which", metavar="ID", help=text, **given)
