"""Reads all checks from the file checks.txt.

A test compares the checks with docs/aws-assumptions.md, which lists each assumption with its
checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from infra.config import Config
from localstack.doctor import own, probes, reads
from localstack.doctor.ground import Check, Finding, Ground, judged
from localstack.doctor.script import Script

TABLE = Path(__file__).with_name("checks.txt")
HEAD = re.compile(r"([\w.]+) \[(.*?)\] (.+)")
EXPECTED = re.compile(r"([\w*]+)(>=|<=|=|~)(\S+)")
SETTING = re.compile(r"(?:(\d+)\*)?config\.(\w+)")
FUNCTIONS = {
    name: value
    for module in (own, reads, probes)
    for name, value in vars(module).items()
    if getattr(value, "__module__", "") == module.__name__
}
OPTIONS = ("do", "emulator", "expect", "without")


@cache
def checks() -> tuple[Check, ...]:
    """Return all checks, in order."""
    found: list[Check] = []
    lets: dict[str, Any] = {}
    kind = remedy = ""
    text = re.sub(r"\n {8}", " ", TABLE.read_text(encoding="utf-8"))
    for block in re.split(r"\n(?=\S)", text):
        head, *lines = block.splitlines()
        if head.startswith("let "):
            _, name, value = head.split(" ", 2)
            lets[name] = json.loads(value)
        elif head.startswith("== "):
            kind, remedy = head.removeprefix("== ").split(": ", 1)
        elif named := HEAD.fullmatch(head):
            found.append(
                _check(named, [line.strip() for line in lines if line], lets, kind, remedy)
            )
    return tuple(found)


def _check(
    head: re.Match[str], lines: list[str], lets: dict[str, Any], kind: str, remedy: str
) -> Check:
    pairs = [line.split(" ", 1) for line in lines]
    options = {verb: rest for verb, rest in pairs if verb in OPTIONS}
    steps = tuple(line for line, (verb, _) in zip(lines, pairs, strict=True) if verb not in OPTIONS)

    def run(ground: Ground) -> Finding:
        script = Script(ground, lets, FUNCTIONS)
        found = script.run(steps)
        problems = _problems(script.seen, options.get("expect", ""), ground.config)
        return found or judged([*problems], **script.seen)

    return Check(
        id=head[1],
        title=head[3],
        run=run,
        steps=steps,
        assumptions=tuple(head[2].split()),
        full="full" in kind,
        stack="stack" in kind and "without" not in options,
        do=options.get("do", remedy),
        not_on_emulator=options.get("emulator", ""),
    )


def _problems(seen: dict[str, Any], expect: str, config: Config) -> Iterator[str]:
    """Yield a sentence for each value in `seen` that is missing or differs from `expect`."""
    found = EXPECTED.findall(expect)
    others = seen.keys() - {name for name, _, _ in found}
    is_partial = any(name == "*" for name, _, _ in found)
    for name, sign, wanted in found:
        for key in sorted(others) if name == "*" else [name]:
            value = seen.get(key, "(missing)")
            if is_partial and key not in seen:
                continue
            if not _holds(value, sign, _wanted(wanted, config)):
                yield f"{key} is {value}, expected {sign}{wanted}"


def _wanted(text: str, config: Config) -> Any:
    """Return the expected value that `text` names: a setting or its multiple, JSON, or a word."""
    if setting := SETTING.fullmatch(text):
        factor, name = setting.groups()
        value = FUNCTIONS[name](config) if name in FUNCTIONS else getattr(config, name)
        return int(factor) * int(value) if factor else value
    try:
        return json.loads(text)
    except ValueError:
        return text


def _holds(value: Any, sign: str, wanted: Any) -> bool:
    if wanted == "refused":  # Matches an error code, or a number of refused entries.
        return value not in ("(none)", "(missing)", 0)
    if sign == "~":
        return re.fullmatch(wanted, str(value)) is not None
    if sign == "=":
        return bool(value == wanted)
    is_number = isinstance(value, int | float)
    return is_number and bool(value >= wanted if sign == ">=" else value <= wanted)
