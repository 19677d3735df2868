"""Declare commands, and the options that several commands share.

A module of commands defines `COMMANDS` and is listed in `cli/commands/__init__.py`, with a line of
help per command. Options and functions of a command are listed only in its module.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from orbweaver.cli import option_types
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.stack import PORT
from orbweaver.cli.text import clean
from orbweaver.exporting.formats import FORMATS
from orbweaver.model.settings import ALONE_PAGES_MAX, STACK
from orbweaver.model.value import value_class

Run: TypeAlias = Callable[[Namespace, CliContext], int | Coroutine[Any, Any, int]]
# A function that adds options to a parser or to an option group.
Add: TypeAlias = Callable[[Any], object]
Shared: TypeAlias = Callable[[], ArgumentParser]
Body: TypeAlias = Mapping[str, Any]
PORT_HELP = f"emulator port; selects the local stack ({PORT})"


@value_class
class Command:
    """A command: name, options, and the function or coroutine that runs it."""

    name: str
    run: Run
    options: Add
    parents: tuple[Shared, ...] = ()


# Parser of an option's value, by the placeholder of the value in the help.
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
    """Declare an option (`--limit N`) or argument (`file FILE`): its name and its placeholder.

    The placeholder selects the type: a key of `READERS`, or words like `off|on`. An option without
    a placeholder is a switch. `text` is the help.
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
    """Declare an option (see `option`) that users can give several times."""
    return option(named, text, action="append", default=[], **given)


def combined_options(*options: Add) -> Add:
    """Combine the declarations of several options into one."""

    def add(parser: Any) -> None:
        for one in options:
            one(parser)

    return add


def group(title: str, *options: Add) -> Add:
    """Declare a group of options, which the help shows under a title."""
    return lambda parser: combined_options(*options)(parser.add_argument_group(title))


def exclusive_options(*options: Add, required: bool = False) -> Add:
    """Declare options of which users can give at most one, or exactly one if `required`."""
    return lambda parser: combined_options(*options)(
        parser.add_mutually_exclusive_group(required=required)
    )


def actions(parents: tuple[Shared, ...], **each: tuple[str, Add]) -> Add:
    def add(parser: Any) -> None:
        made = parser.add_subparsers(dest="action", metavar="|".join(each), required=True)
        for name, (text, options) in each.items():
            shares: Any = [parent() for parent in parents]
            options(made.add_parser(name, help=text, description=text, parents=shares))

    return add


def shared(*options: Add) -> Shared:
    @cache
    def parser() -> ArgumentParser:
        made = ArgumentParser(add_help=False)
        combined_options(*options)(made)
        return made

    return parser


_store = option(
    "--store DIR",
    "store: folder of crawls on this machine (.orbweaver)",
    type=option_types.store_folder,
)
store_option = shared(_store)
stack_options = shared(
    group(
        "store or stack",
        _store,
        option("--target local|aws", "use a stack (default: the local one if it runs)"),
        option("--region NAME", "AWS region (AWS_REGION, AWS_DEFAULT_REGION, or the profile's)"),
        option("--stack NAME", f"name of the stack ({STACK})", default=STACK),
        option("--port N", "emulator port; selects one of several local stacks"),
    )
)
WORKERS = option(
    "--workers N",
    "worker processes for a store (default: the number of cores; "
    f"1 for a crawl of up to {ALONE_PAGES_MAX:,} pages)",
    type=option_types.processes,
)
PROXIES = combined_options(
    repeated(
        "--proxy URL",
        "send requests through this proxy (http, https, socks5, socks5h); may be repeated",
        type=option_types.proxy,
    ),
    option("--proxy-list FILE", "file of proxies, one URL a line; it is read again if it changes"),
)
json_option = shared(option("--json", "print JSON, one object per line"))
progress_option = shared(
    option(
        "--progress auto|json|none",
        "show steps and progress: on a terminal as a screen, else as lines (auto); as JSON on"
        " the standard error; or not",
    )
)
quiet_option = shared(
    option("--quiet", "print only errors and warnings; with --json also the result")
)
log_options = shared(
    group(
        "log events, on the standard error",
        option("--log-level debug|info|warning|error", "least severe events to write (warning)"),
        option("--log-format text|json", "lines of text (default), or JSON as on AWS"),
    )
)
_TREE = (
    "folder for files like TABLE/FORMAT/dt=YYYY-MM-DD/ID/part-… (out/ID); or one file for one"
    " table of a crawl: pages.csv, pages.jsonl, RULE.parquet"
)
out_option = shared(option("--out DIR", _TREE))
STACK_JSON = (stack_options, json_option)


def command(
    name: str, run: Run, *options: Add, parents: tuple[Shared, ...] = STACK_JSON
) -> Command:
    """Declare a command. By default it has the options of a stack and --json."""
    return Command(name=name, run=run, options=combined_options(*options), parents=parents)


add_formats = option(
    "--format F,F", f"formats, separated by commas: {','.join(FORMATS)} (jsonl,parquet)"
)


def context(text: str = "set a context key of the stack; may be repeated") -> Add:
    return repeated("-c, --context KEY=VALUE", text)


def file(text: str, default: Path) -> Add:
    return option("file FILE", text, nargs="?", default=default)


def crawl_argument(text: str = "id or name of a crawl", **given: Any) -> Add:
    return option("which ID", text, **given)


def newest() -> Add:
    """Declare the argument that names a crawl. The default is the newest crawl."""
    return crawl_argument("id or name of a crawl (default: the newest)", nargs="?")


def answer(
    arguments: Namespace, around: CliContext, body: Body | Iterable[Body], *lines: str
) -> None:
    """Write a result: `body` as JSON with --json, otherwise `lines` without control characters."""
    bodies = (body,) if isinstance(body, Mapping) else body
    around.write(*(map(json.dumps, bodies) if arguments.json else map(clean, lines)))


def confirmed(
    around: CliContext, name: str, question: str, *notes: str, fix: str = "--yes"
) -> bool:
    """Ask for confirmation at the terminal, after the notes.

    Raises UsageError without a terminal. It names `fix`, the option that confirms.
    """
    if not around.stdin.isatty():
        raise UsageError(
            f"orbweaver {name}: cannot ask for confirmation without a terminal: give {fix}"
        )
    around.note(*notes)
    return around.confirmed(question)
