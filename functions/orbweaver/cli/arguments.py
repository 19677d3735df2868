"""The commands and options, and what is said to somebody who mistypes one.

Rules
- An error names the option, the value and the fix, and the nearest name where one is near; the
  exit code is 2.
- Options are never abbreviated: what works today must not mean another option tomorrow.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from orbweaver import __version__
from orbweaver.cli import crawl_options, option_types
from orbweaver.cli.commands import dlq
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.stack import PORT
from orbweaver.exporting.formats import FORMATS
from orbweaver.model.outcome import Outcome
from orbweaver.model.settings import STACK
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGETS = ("local", "aws")


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process, and speaks plainly."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong as a UsageError."""
        text = re.sub(r"^argument (-\S*/)?(\S+): ", r"\2: ", message)
        text = text.replace("expected one argument", "needs a value")
        text = text.replace("the following arguments are required", "still missing")
        raise UsageError(f"{self.prog}: {text}\n{_see(self)}")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read a command line; raises UsageError, and SystemExit for --help and --version."""
    parser, commands = _build()
    if not words:
        raise UsageError(parser.format_help().rstrip())
    command = _command(parser, words, commands)
    _check_options(command, words)
    arguments, rest = parser.parse_known_args(words)
    if hasattr(arguments, "seeds") and not (
        arguments.seeds or arguments.sitemap or arguments.config or rest
    ):
        raise UsageError(f"{command.prog}: still missing: URL\n{_see(command)}")
    if hasattr(arguments, "seeds") and not any(
        word.startswith("-") for word in rest if word != "-"
    ):
        arguments.seeds += rest  # argparse wants all of them side by side
    elif rest:
        problem = "stands before the command" if rest[0].startswith("-") else "is one word too many"
        raise UsageError(f"{command.prog}: {redacted(rest[0])!r} {problem}\n{_see(command)}")
    if getattr(arguments, "target", None) == "aws" and arguments.port is not None:
        fix = "it names a stack on this machine: leave out --target aws"
        raise UsageError(f"{command.prog}: --port: {fix}")
    return arguments


def _command(
    parser: argparse.ArgumentParser,
    words: Sequence[str],
    commands: dict[str, argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Find the parser of the command that is meant; argparse would list all names, in vain."""
    named = [word for word in words if not word.startswith("-")][:2]
    for path in (" ".join(named), *named[:1]):
        if path in commands and (path not in _GROUPS or len(named) == 1):
            return commands[path]
    if not named:
        return parser
    typed = " ".join(named) if named[0] in commands else named[0]
    near = difflib.get_close_matches(typed, commands, n=1)
    hint = f"did you mean `orbweaver {near[0]}`?" if near else _see(parser)
    raise UsageError(f"orbweaver: there is no command {redacted(typed)!r}: {hint}")


def _check_options(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse unknown options before anything else: what follows one is read wrongly."""
    known = [name for action in command._actions for name in action.option_strings]  # noqa: SLF001 - argparse has no public list of its options
    unknown: dict[str, str] = {}
    for word in itertools.takewhile(lambda word: word != "--", words):
        option = word.partition("=")[0]
        short = not word.startswith("--") and word[:2] in known  # -ckey=value
        plain = re.fullmatch(r"-(?:\.?\d.*)?", word)  # a number, or the input
        if word.startswith("-") and option not in known and not short and not plain:
            near = difflib.get_close_matches(option, known, n=1, cutoff=0.5)
            unknown[option] = f": did you mean {near[0]}?" if near else ""
    if unknown:
        lines = [f"{command.prog}: there is no option {one}{hint}" for one, hint in unknown.items()]
        raise UsageError("\n".join([*lines, _see(command)]))


def _see(command: argparse.ArgumentParser) -> str:
    return f"see `{command.prog} --help`"


def _build() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    from orbweaver.cli.commands import deliver, explain, extract, forget, metrics, schedule, workers
    from orbweaver.cli.query import command as querying

    parser = _Parser(prog="orbweaver", description="A web crawler, on AWS or on this machine.")
    parser.add_argument("--version", action="version", version=f"orbweaver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, text: str, *parents: _Parser) -> argparse.ArgumentParser:
        made[name] = commands.add_parser(name, help=text, description=text, parents=list(parents))
        return made[name]

    plan, target, lines, output = _plan(), _target(), _lines(), _output()
    crawl_options.add_definition(add, lines)
    crawl = add("crawl", "crawl on this machine, from start to files", plan, lines, output)
    crawl.add_argument("--port", type=option_types.count, default=PORT, help=_PORT)
    crawl.add_argument("--extractor", type=Path, metavar="FILE", help=_EXTRACTOR)
    _add_formats(crawl)
    start = add("start", "start a crawl; prints its id", plan, target, lines)
    start.add_argument("--wait", action="store_true", help="show its progress until it ends")
    start.add_argument("--id", help="name this run; starting it again completes the start")
    key = "the same key again is the same crawl, however often and from where it is started"
    start.add_argument("--idempotency-key", metavar="KEY", help=key)
    status = add("status", "show how a crawl is doing", target, lines)
    status.add_argument("which", nargs="?", metavar="ID", help="an id or a name; default: newest")
    status.add_argument("--watch", action="store_true", help="until it ends")
    for name, text in _STEERING.items():
        add(name, text, target, lines).add_argument("which", metavar="ID", help="an id or a name")
    crawl_options.add_changing(add, target, lines)
    crawl_options.add_asking(add, target, lines)
    _add_looking(add, target, lines, output)
    explain.options(add("explain", explain.HELP, target, lines))
    extract.options(add("extract", extract.HELP, lines))
    querying.options(add, target)
    deliver.options(add("deliver", deliver.HELP, target, lines))
    _add_local(add("local", "the stack on this machine: up, down, status"), made)
    dlq.add_to(add("dlq", dlq.HELP), made, target, lines)
    forget.options(add("forget", forget.HELP, target, lines))
    metrics.options(add("metrics", metrics.HELP, target))
    schedule.add_to(add("schedule", schedule.HELP), made, target, lines)
    workers.options(add("workers", workers.HELP, target, lines))
    _add_deploying(add, target, lines)
    return parser, made


# Commands of several words.
_GROUPS = ("local", "dlq", "schedule")
_PORT = f"where the emulator listens, and which of several it is ({PORT})"
_EXTRACTOR = "a module with functions of your own, which [[items]] name"
_DEPLOYING = {
    "deploy": "deploy the stack, or bring it up to date",
    "destroy": "remove the stack",
}
_STEERING = {
    "pause": "have a crawl wait; it costs nothing then",
    "resume": "have a paused crawl go on",
    "cancel": "end a crawl; what is queued is not asked for",
}


def _add_deploying(add: Any, target: _Parser, lines: _Parser) -> None:
    from orbweaver.cli.commands import doctor

    doctor.options(add("doctor", doctor.HELP, target, _context(), lines))
    for name, text in _DEPLOYING.items():
        command = add(name, text, target, _context())
        command.add_argument("--yes", action="store_true", help="do not ask")
        if name == "deploy":
            reset = "drop what the stack was deployed with; one key: -c KEY="
            command.add_argument("--reset-context", action="store_true", help=reset)
            second = "make this stack beside others of the account and region"
            command.add_argument("--new", action="store_true", help=second)


def _add_looking(
    add: Any,
    target: _Parser,
    lines: _Parser,
    output: _Parser,
) -> None:
    outcomes = option_types.one_of([str(outcome) for outcome in Outcome])
    pages = add("pages", "list the pages of a crawl", target, lines)
    pages.add_argument("which", metavar="ID", help="a crawl's id or name")
    pages.add_argument("--outcome", type=outcomes, metavar="|".join(Outcome))
    pages.add_argument("--limit", type=option_types.count, metavar="N", help="at most so many")
    page = add("page", "show what became of a URL", target, lines)
    page.add_argument("url", metavar="URL")
    page.add_argument("--crawl", metavar="ID", help="in one crawl only")
    stored = page.add_mutually_exclusive_group()
    stored.add_argument("--body", action="store_true", help="its body instead, as it came")
    stored.add_argument("--text", action="store_true", help="its main text instead, as Markdown")
    export = add("export", "write page records into files", target, lines, output)
    export.add_argument(
        "--day", type=option_types.day, metavar="YYYY-MM-DD", help="default: today, UTC"
    )
    export.add_argument("--crawl", metavar="ID", help="one crawl's records, of all its days")
    _add_formats(export)
    robots = add("robots", "fetch a robots.txt and say what it allows", lines)
    robots.add_argument("url", metavar="URL")
    robots.add_argument("--user-agent", metavar="NAME", help="decide for another one")
    what = "show what a reference means, and whether a crawl would follow it"
    url = add("url", what, target, lines)
    url.add_argument("reference", metavar="REFERENCE")
    url.add_argument("--base", metavar="URL", help="the page that it stands on")
    config = "a crawl's definition; other options that say what a crawl is do not count then"
    url.add_argument("--config", type=Path, metavar="FILE", help=config)
    seed = "a seed of the crawl that decides; may be repeated"
    url.add_argument("--seed", action="append", default=[], metavar="URL", help=seed)
    crawl_options.add_scope(url.add_argument, "host")
    crawl_options.add_parameters(url.add_argument)


def _add_formats(command: argparse.ArgumentParser) -> None:
    text = f"some of {','.join(FORMATS)} (jsonl,parquet)"
    command.add_argument("--format", type=option_types.formats, metavar="F,F", help=text)


def _add_local(local: argparse.ArgumentParser, made: dict[str, argparse.ArgumentParser]) -> None:
    actions = local.add_subparsers(dest="action", metavar="up|down|status", required=True)
    texts = {
        "up": "start the emulator with the stack deployed to it",
        "down": "stop the emulator; its state is kept",
        "status": "list the emulators that run",
    }
    for name, text in texts.items():
        made[f"local {name}"] = actions.add_parser(name, help=text, description=text)
    for name in ("up", "down"):
        made[f"local {name}"].add_argument(
            "--port", type=option_types.count, default=PORT, help=_PORT
        )
    made["local up"].add_argument("--fresh", action="store_true", help="forget what was there")
    settings = "a setting of the stack, as for `deploy`; may be repeated"
    _add_context(made["local up"].add_argument, settings)
    made["local down"].add_argument("--all", action="store_true", help="all of this checkout")


def _plan() -> _Parser:
    plan = _Parser(add_help=False)
    crawl_options.add_plan(plan.add_argument_group("what to crawl, and how").add_argument)
    return plan


def _target() -> _Parser:
    target = _Parser(add_help=False)
    add = target.add_argument_group("which stack").add_argument
    add(
        "--target",
        type=option_types.one_of(TARGETS),
        metavar="local|aws",
        help="default: local if up",
    )
    region = "its AWS region (AWS_REGION, AWS_DEFAULT_REGION, or the profile's)"
    add("--region", metavar="NAME", help=region)
    add("--stack", default=STACK, metavar="NAME", help=f"its name ({STACK})")
    port = "which of the stacks on this machine, where several run"
    add("--port", type=option_types.count, metavar="N", help=port)
    return target


def _lines() -> _Parser:
    lines = _Parser(add_help=False)
    lines.add_argument("--json", action="store_true", help="JSON, one object a line")
    return lines


def _output() -> _Parser:
    output = _Parser(add_help=False)
    help_ = "where the files go, as TABLE/FORMAT/dt=YYYY-MM-DD/crawl=ID/part-… (out/ID)"
    output.add_argument("--out", type=Path, metavar="DIR", help=help_)
    return output


def _context() -> _Parser:
    context = _Parser(add_help=False)
    _add_context(context.add_argument)
    return context


def _add_context(add: Any, text: str | None = None) -> None:
    pair = {"type": option_types.pair, "metavar": "KEY=VALUE", "help": text}
    add("-c", "--context", action="append", default=[], **pair)
