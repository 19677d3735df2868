"""A command, as its module registers it, and the options that several commands take.

Rules
- A module of commands has `COMMANDS`, and a line in `cli/commands/__init__.py`: no other place
  knows its names, its options or what carries it out.
- An option is a value, by `option`; options of several commands are named once, by `shared`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from orbweaver.cli import option_types
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.session import Surroundings
from orbweaver.cli.stack import PORT
from orbweaver.cli.text import clean
from orbweaver.exporting.formats import FORMATS
from orbweaver.model.settings import ALONE_PAGES_MAX, STACK

Run: TypeAlias = Callable[[Namespace, Surroundings], int | Coroutine[Any, Any, int]]
# Adds an option, or some, to a parser or a group of one.
Add: TypeAlias = Callable[[Any], object]
Shared: TypeAlias = Callable[[], ArgumentParser]
Body: TypeAlias = Mapping[str, Any]
PORT_HELP = f"where the emulator listens, and which of several it is ({PORT})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: what carries it out, at once or in an event loop of its own, and its options."""

    name: str
    help: str
    run: Run
    options: Add
    # Options that it shares with others.
    parents: tuple[Shared, ...] = ()


# What a value is read as, by the name that a help has for it.
READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("N", "MB"), option_types.count),
    **dict.fromkeys(("FILE", "DIR"), Path),
    "F,F": option_types.formats,
    "KEY=VALUE": option_types.pair,
    "SIZE": option_types.size_bytes,
    "TIME": option_types.duration_ms,
    "YYYY-MM-DD": option_types.day,
}


def option(named: str, text: str | None = None, **given: Any) -> Add:
    """Make an option of its name and its value's, as in `--limit N`; a switch has no value.

    The name of a value says how it is read: by READERS, or as one of the words in `off|on`. What
    begins with no hyphen is an argument.
    """
    *names, metavar = named.rsplit(" ", 1) if " " in named else (named, "")
    if not metavar:
        given["action"] = "store_true"
    else:
        words = metavar.split("|")
        one_of = option_types.one_of(words) if len(words) > 1 and metavar.islower() else None
        given = {"metavar": metavar, "type": one_of or READERS.get(metavar), **given}
    return lambda parser: parser.add_argument(*names[0].split(", "), help=text, **given)


def repeated(named: str, text: str | None = None, **given: Any) -> Add:
    """Make an option that may be given several times."""
    return option(named, text, action="append", default=[], **given)


def together(*options: Add) -> Add:
    """Make one of several options."""

    def add(parser: Any) -> None:
        for one in options:
            one(parser)

    return add


def group(title: str, *options: Add) -> Add:
    """Show options under a title of their own."""
    return lambda parser: together(*options)(parser.add_argument_group(title))


def either(*options: Add, required: bool = False) -> Add:
    """Take one option of several."""
    return lambda parser: together(*options)(parser.add_mutually_exclusive_group(required=required))


def actions(parents: tuple[Shared, ...], **each: tuple[str, Add]) -> Add:
    """Make the second words of a command, each with its help and its options."""

    def add(parser: Any) -> None:
        made = parser.add_subparsers(dest="action", metavar="|".join(each), required=True)
        for name, (text, options) in each.items():
            shares: Any = [parent() for parent in parents]
            options(made.add_parser(name, help=text, description=text, parents=shares))

    return add


def shared(*options: Add) -> Shared:
    """Name options once that several commands take."""

    @cache
    def parser() -> ArgumentParser:
        made = ArgumentParser(add_help=False)
        together(*options)(made)
        return made

    return parser


_store = option(
    "--store DIR",
    "the folder of crawls on this machine that it works on (.orbweaver)",
    type=option_types.store_folder,
)
store_option = shared(_store)
stack_options = shared(
    group(
        "which store or stack",
        _store,
        option("--target local|aws", "a stack; default: local if up"),
        option(
            "--region NAME", "its AWS region (AWS_REGION, AWS_DEFAULT_REGION, or the profile's)"
        ),
        option("--stack NAME", f"its name ({STACK})", default=STACK),
        option("--port N", "which of the stacks on this machine, where several run"),
    )
)
WORKERS = option(
    "--workers N",
    "processes that work on a store (the cores of this machine; "
    f"one for a crawl of up to {ALONE_PAGES_MAX:,} pages)",
    type=option_types.positive,
)
json_option = shared(option("--json", "JSON, one object a line"))
_TREE = (
    "where the files go, as TABLE/FORMAT/dt=YYYY-MM-DD/ID/part-… (out/ID); or one file of one"
    " crawl: pages.csv, pages.jsonl, RULE.parquet"
)
out_option = shared(option("--out DIR", _TREE))
STACK_JSON = (stack_options, json_option)


def command(
    name: str, text: str, run: Run, *options: Add, parents: tuple[Shared, ...] = STACK_JSON
) -> Command:
    """Make a command; one that is about a stack and can write JSON, unless it says otherwise."""
    return Command(name=name, help=text, run=run, options=together(*options), parents=parents)


add_formats = option("--format F,F", f"some of {','.join(FORMATS)} (jsonl,parquet)")


def context(text: str | None = None) -> Add:
    """Make the option that sets a context key of the stack."""
    return repeated("-c, --context KEY=VALUE", text)


def file(text: str, default: Path) -> Add:
    """Make the argument that names a file, if not the usual one."""
    return option("file FILE", text, nargs="?", default=default)


def which(text: str = "an id or a name", **given: Any) -> Add:
    """Make the argument that names the crawl a command is about."""
    return option("which ID", text, **given)


def newest() -> Add:
    """Make the same where no name means the newest one."""
    return which("an id or a name; default: newest", nargs="?")


def answer(
    arguments: Namespace, around: Surroundings, body: Body | Iterable[Body], *lines: str
) -> None:
    """Write a result: an object or several for a program, clean lines for a person."""
    bodies = (body,) if isinstance(body, Mapping) else body
    around.write(*(map(json.dumps, bodies) if arguments.json else map(clean, lines)))


def confirmed(
    around: Surroundings, name: str, question: str, *notes: str, fix: str = "--yes"
) -> bool:
    """Ask whether a command may go on, where there is a terminal to ask at; raises UsageError."""
    if not around.stdin.isatty():
        raise UsageError(f"orbweaver {name}: there is no terminal to ask at: give {fix}")
    around.note(*notes)
    return around.confirmed(question)
