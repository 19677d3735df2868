"""Reads the checks from checks.txt, runs them and makes their report.

A test compares the checks with docs/aws-assumptions.md, which lists each assumption with its
checks. If a check has an error (refusal, lost connection, unexpected answer), only this check
fails. The error is reported by operation and code. If AWS does not accept the credentials, the
remaining checks are skipped. A stack that the doctor has deployed is always removed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from infra.config import Config
from infra.keys import ConfigError
from localstack import deployed, removal
from localstack.doctor import own, probes, reads
from localstack.doctor.ground import Check, Finding, Ground, Result, failed, judged, safe, skipped
from localstack.doctor.script import Script
from localstack.errors import LocalStackError
from orbweaver import __version__

FIRST = "account.credentials"
ODD = (LookupError, TypeError, ValueError, AttributeError, StopIteration, ResponseParserError)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The report, remedies by check id, and whether AWS accepted the credentials."""

    report: dict[str, Any]
    advice: tuple[tuple[str, str], ...]
    reached: bool

    @property
    def failed(self) -> bool:
        return bool(self.advice)


def examine(ground: Ground, *, show: Callable[[Check, Finding], None]) -> Examined:
    """Run the checks, show each result, and return the report."""
    ground.stack = own.STACK if ground.full else ground.stack
    ground.config = Config.from_context({"target": "local"} if ground.emulator else {})
    entries: list[dict[str, Any]] = []
    advice: list[tuple[str, str]] = []
    reached = True
    try:
        for check in checks():
            began = time.monotonic()
            finding = _skip_reason(check, ground, reached=reached) or _run(check, ground)
            entries.append(_entry(check, finding, round(1000 * (time.monotonic() - began))))
            if finding.result is Result.FAILED:
                advice.append((check.id, check.do))
            if ground.full or not check.full:
                show(check, finding)
            if check.id == FIRST:
                reached = finding.result is Result.PASSED
                if reached and not ground.full:
                    _look(ground)
    finally:
        own.remove_stack(ground)
        ground.close()
    return Examined(report=_report(ground, entries), advice=tuple(advice), reached=reached)


def _look(ground: Ground) -> None:
    """Read outputs, resources and settings of the deployed stack into `ground`, if it exists."""
    try:
        found = deployed.describe(ground.stack, ground.environment)
        if found is None or not found.exists:
            return
        ground.outputs = found.outputs
        ground.resources = tuple(removal.resources_of(ground.stack, ground.lend))
        ground.given = deployed.context_of(ground.stack, ground.environment)
        local = {"target": "local"} if ground.emulator else {}
        ground.config = Config.from_context({**ground.given, **local, "stack_name": ground.stack})
    except (LocalStackError, ConfigError, *ODD):
        # This error is ignored. The checks examine each resource, and report unreadable ones.
        return


def _skip_reason(check: Check, ground: Ground, *, reached: bool) -> Finding | None:
    """Return a finding with the reason why a check is skipped, or None if it must run."""
    if not reached:
        return skipped("credentials are not accepted")
    if check.full and not ground.full:
        return skipped("it needs --full")
    if check.not_on_emulator and ground.emulator:
        return skipped(f"not on the emulator: {check.not_on_emulator}")
    if check.stack and not ground.outputs:
        return skipped("there is no stack")
    return None


def _run(check: Check, ground: Ground) -> Finding:
    try:
        return check.run(ground)
    except ClientError as error:
        # The name of the operation is not text from AWS, so it can be shown.
        return failed(
            f"{error.operation_name} was refused", code=safe(error.response["Error"]["Code"])
        )
    except BotoCoreError as error:
        return failed(f"AWS could not be asked: {type(error).__name__}")
    except LocalStackError:
        return failed("AWS could not be asked")
    except OSError as error:
        return failed(f"it could not be reached: {type(error).__name__}")
    except ODD as error:
        return failed(f"the answer has another form: {type(error).__name__}")


def _entry(check: Check, finding: Finding, took_ms: int) -> dict[str, Any]:
    named = {"id": check.id, "title": check.title, "assumptions": list(check.assumptions)}
    found = {"result": str(finding.result), "seen": dict(finding.seen), "took_ms": took_ms}
    return {**named, **found, **({"why": finding.why} if finding.why else {})}


def _report(ground: Ground, entries: list[dict[str, Any]]) -> dict[str, Any]:
    named = ground.environment.get("AWS_REGION", "")
    report: dict[str, Any] = {
        "version": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": "local" if ground.emulator else "aws",
        "full": ground.full,
        "region": named if reads.REGION.fullmatch(named) else "(not a region's name)",
        "stack": ground.stack,
        "checks": entries,
        "left": entries[-1]["seen"].get("left", 0),
    }
    masked: dict[str, Any] = reads.everything(report)
    return masked


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
