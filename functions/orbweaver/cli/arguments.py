"""Parser of commands and options.

An error names the option, the value, the fix, and the nearest known name. The exit code is 2.
Options cannot be abbreviated, because a new option could make an abbreviation ambiguous.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from orbweaver import __version__
from orbweaver.cli.commands import HELP, MODULES, load
from orbweaver.cli.exit_codes import UsageError

# Options of other crawlers, and the hint that the error about each of them contains.
_ELSEWHERE = {
    "--limit": "--max-pages limits the URLs, --max-bytes the bytes",
    "--post": "a definition has POST requests, as [[api]]",
    "--quiet": "only crawl, start and retry have it; other commands print their result only",
}


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for an error, instead of ending the process."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "allow_abbrev": False})
        # No option begins with a digit, so `-1s` is an invalid value and not a missing one.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        text = re.sub(r"^argument (-\S*/)?(\S+): ", r"\2: ", message)
        text = text.replace("expected one argument", "needs a value")
        text = text.replace("the following arguments are required", "missing argument")
        raise UsageError(f"{self.prog}: {text}\n{_see(self)}")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. Raises UsageError, and SystemExit for --help and --version."""
    typed = next((word for word in words if word in MODULES), None)
    parser, commands = _build(MODULES if typed is None or words[0] != typed else [typed], typed)
    if not words:
        raise UsageError(parser.format_help().rstrip())
    command = _command(parser, words, commands)
    _check_options(command, words)
    arguments, rest = parser.parse_known_args(words)
    if hasattr(arguments, "seeds") and not (
        arguments.seeds or arguments.seed_lists or arguments.sitemap or arguments.config or rest
    ):
        raise UsageError(f"{command.prog}: missing argument: URL\n{_see(command)}")
    if hasattr(arguments, "seeds") and not any(
        word.startswith("-") for word in rest if word != "-"
    ):
        arguments.seeds += rest  # argparse accepts only adjacent words for these
    elif rest:
        problem = "must follow the command" if rest[0].startswith("-") else "is an extra argument"
        raise UsageError(f"{command.prog}: {_redacted(rest[0])!r} {problem}\n{_see(command)}")
    if getattr(arguments, "target", None) == "aws" and arguments.port is not None:
        fix = "it names a stack on this machine: omit --target aws"
        raise UsageError(f"{command.prog}: --port: {fix}")
    return arguments


def parsers(name: str) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command and of its subcommands by their names."""
    return _build([name], name)[1]


def _command(
    parser: argparse.ArgumentParser,
    words: Sequence[str],
    commands: dict[str, argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Return the parser of the command in `words`.

    Raises UsageError, which names the nearest known command.
    """
    named = [word for word in words if not word.startswith("-")][:2]
    groups = {name.partition(" ")[0] for name in commands if " " in name}
    for path in (" ".join(named), *named[:1]):
        if path in commands and (path not in groups or len(named) == 1):
            return commands[path]
    if not named:
        return parser
    behind = next((word for word in words if word in MODULES or word in commands), None)
    if words[0].startswith("-") and behind is not None:
        option = words[0].partition("=")[0]
        problem = f"{option!r} must follow the command: write `orbweaver {behind} … {option} …`"
        raise UsageError(f"orbweaver: {problem}")
    typed = " ".join(named) if named[0] in commands else named[0]
    near = difflib.get_close_matches(typed, {*MODULES, *commands}, n=1)
    hint = f"did you mean `orbweaver {near[0]}`?" if near else _see(parser)
    raise UsageError(f"orbweaver: unknown command {_redacted(typed)!r}: {hint}")


def _check_options(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Raise UsageError for unknown options.

    argparse misreads the words after an unknown option, so it cannot report them.
    """
    known = [name for action in command._actions for name in action.option_strings]  # noqa: SLF001 - argparse has no public list of its options
    unknown: dict[str, str] = {}
    for word in itertools.takewhile(lambda word: word != "--", words):
        option = word.partition("=")[0]
        short = not word.startswith("--") and word[:2] in known  # -ckey=value
        plain = re.fullmatch(r"-(?:\.?\d.*)?", word)  # a number, or `-` for the standard input
        if word.startswith("-") and option not in known and not short and not plain:
            if said := _ELSEWHERE.get(option):
                unknown[option] = f": {said}"
                continue
            near = _near_option(option, known)
            unknown[option] = f": did you mean {near}?" if near else ""
    if unknown:
        lines = [f"{command.prog}: unknown option {one}{hint}" for one, hint in unknown.items()]
        raise UsageError("\n".join([*lines, _see(command)]))


# Options of other crawlers, and the options of Orbweaver with the same meaning.
SYNONYMS = {
    **dict.fromkeys(("--csv", "--jsonl", "--parquet", "--warc"), "--format"),
    **dict.fromkeys(("--output", "--output-dir", "-o", "-O"), "--out"),
    **dict.fromkeys(("--limit", "--max-requests", "--max-urls"), "--max-pages"),
    **dict.fromkeys(
        ("--input-file", "-i", "--seed-file", "--seedFile", "--seeds-file", "--urls"), "--seeds"
    ),
    **dict.fromkeys(("--depth", "--max-crawl-depth", "--level"), "--max-depth"),
}
# Minimum similarity of a suggested option. A lower value would suggest --saved for --csv.
NEAR_SHARE = 0.75


def _near_option(option: str, known: Sequence[str]) -> str | None:
    if (synonym := SYNONYMS.get(option)) in known:
        return synonym
    names = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(option.lstrip("-"), names, n=1, cutoff=NEAR_SHARE)
    return names[near[0]] if near else None


def _redacted(word: str) -> str:
    from orbweaver.model.url import redacted

    return redacted(word)


def _see(command: argparse.ArgumentParser) -> str:
    return f"see `{command.prog} --help`"


def _build(
    names: Iterable[str], typed: str | None
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Build the parser, and map command names (`dlq`, `dlq list`) to their parsers.

    Only the parser of the command `typed` has options, so only the module of that command is
    imported.
    """
    parser = _Parser(prog="orbweaver", description="A web crawler for AWS and for one machine.")
    parser.add_argument("--version", action="version", version=f"orbweaver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made: dict[str, argparse.ArgumentParser] = {}
    for name in names:
        text = HELP[name]
        if name != typed:
            made[name] = commands.add_parser(name, help=text)
            continue
        command = load(name)
        parents: list[Any] = [parent() for parent in command.parents]
        made[name] = commands.add_parser(name, help=text, description=text, parents=parents)
        command.options(made[name])
        for action in made[name]._actions:  # noqa: SLF001 - as above
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - it has no public name
                made |= {f"{name} {word}": parser for word, parser in action.choices.items()}
    return parser, made
