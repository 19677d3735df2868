"""The commands and options, and the messages about mistyped ones.

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
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from orbweaver import __version__
from orbweaver.cli.commands import MODULES, load
from orbweaver.cli.exit_codes import UsageError
from orbweaver.model.url import redacted

# Options of other crawlers, and what does the same here.
_ELSEWHERE = {
    "--limit": "--max-pages limits the URLs, --max-bytes the bytes",
    "--timeout": "--duration limits the whole crawl; a request has its own limit of time",
    "--post": "a crawl makes GET requests only",
}


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
    # Only the module of a command that comes first is imported.
    parser, commands = _build(words[:1] if words and words[0] in MODULES else MODULES)
    if not words:
        raise UsageError(parser.format_help().rstrip())
    command = _command(parser, words, commands)
    _check_options(command, words)
    arguments, rest = parser.parse_known_args(words)
    if hasattr(arguments, "seeds") and not (
        arguments.seeds or arguments.seed_lists or arguments.sitemap or arguments.config or rest
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
    """Find the parser of the command; argparse would list all names, in vain."""
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
        problem = f"{option!r} stands before the command: write `orbweaver {behind} … {option} …`"
        raise UsageError(f"orbweaver: {problem}")
    typed = " ".join(named) if named[0] in commands else named[0]
    near = difflib.get_close_matches(typed, {*MODULES, *commands}, n=1)
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
            if said := _ELSEWHERE.get(option):
                unknown[option] = f": {said}"
                continue
            near = _near_option(option, known)
            unknown[option] = f": did you mean {near}?" if near else ""
    if unknown:
        lines = [f"{command.prog}: there is no option {one}{hint}" for one, hint in unknown.items()]
        raise UsageError("\n".join([*lines, _see(command)]))


# Names that other crawlers give to these options.
SYNONYMS = {
    **dict.fromkeys(("--csv", "--jsonl", "--parquet", "--warc"), "--format"),
    **dict.fromkeys(("--output", "--output-dir", "-o", "-O"), "--out"),
    **dict.fromkeys(("--limit", "--max-requests", "--max-urls"), "--max-pages"),
    **dict.fromkeys(("--input-file", "-i", "--seed-file", "--seedFile", "--urls"), "--seeds"),
    **dict.fromkeys(("--depth", "--max-crawl-depth", "--level"), "--max-depth"),
}
# Half of the characters in common is no likeness: --csv is not --saved.
NEAR_SHARE = 0.75


def _near_option(option: str, known: Sequence[str]) -> str | None:
    """Return the known option that was probably meant."""
    if (synonym := SYNONYMS.get(option)) in known:
        return synonym
    names = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(option.lstrip("-"), names, n=1, cutoff=NEAR_SHARE)
    return names[near[0]] if near else None


def _see(command: argparse.ArgumentParser) -> str:
    return f"see `{command.prog} --help`"


def _build(
    names: Iterable[str],
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Make the parser of these commands; theirs by name, `dlq` as well as `dlq list`."""
    parser = _Parser(prog="orbweaver", description="A web crawler, on AWS or on this machine.")
    parser.add_argument("--version", action="version", version=f"orbweaver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made: dict[str, argparse.ArgumentParser] = {}
    for name in names:
        command = load(name)
        parents: list[Any] = [parent() for parent in command.parents]
        made[name] = commands.add_parser(
            name, help=command.help, description=command.help, parents=parents
        )
        command.options(made[name])
        for action in made[name]._actions:  # noqa: SLF001 - as above
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - it has no public name
                made |= {f"{name} {word}": parser for word, parser in action.choices.items()}
    return parser, made
