"""Runs the checks and makes their report.

An error in a check (refusal, lost connection, unexpected answer) fails that check only, and is
reported by operation and code. If credentials are not accepted, no other check runs. A deployed
stack is always removed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from infra.config import Config
from infra.keys import ConfigError
from localstack import cdk, deployed, removal
from localstack.doctor import account, masking, own, registry
from localstack.doctor.ground import (
    Check,
    Finding,
    Ground,
    Result,
    code_of,
    failed,
    skipped,
)
from localstack.errors import LocalStackError
from orbweaver import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from localstack.cdk import Say

    Show = Callable[[Check, Finding], None]
    Crawl = Callable[[Mapping[str, str], str], tuple[int, int]]

FIRST = "account.credentials"
ODD = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    StopIteration,
    ResponseParserError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Options of a run. `crawl` crawls a URL with the stack of the given outputs."""

    environment: Mapping[str, str]
    region_from: str
    stack: str
    full: bool = False
    url: str | None = None
    context: Mapping[str, str] = field(default_factory=dict)
    crawl: Crawl | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The report, remedies for failures, and whether AWS answered."""

    report: dict[str, Any]
    advice: tuple[tuple[str, str], ...]
    reached: bool

    @property
    def failed(self) -> bool:
        return bool(self.advice)


def examine(wanted: Wanted, *, say: Say, show: Show) -> Examined:
    """Run the checks, show each result, and return the report."""
    ground = _ground(wanted)
    stack = own.Own(own.context(wanted.environment, wanted.context), say)
    entries: list[dict[str, Any]] = []
    advice: list[tuple[str, str]] = []
    reached, left = True, 0

    def note(check: Check, finding: Finding, took_ms: int = 0) -> None:
        entries.append(_entry(check, finding, took_ms))
        if finding.result is Result.FAILED:
            advice.append((check.id, check.do))
        if not check.full or wanted.full:
            show(check, finding)

    try:
        for check in registry.checks(stack):
            began = time.monotonic()
            finding = _skip_reason(check, ground, wanted, reached=reached) or _run(check, ground)
            note(check, finding, round(1000 * (time.monotonic() - began)))
            if check.id == FIRST:
                reached = finding.result is Result.PASSED
                if reached and not wanted.full:
                    _look(ground)
            if check.id == "own.removed":
                left = int(str(finding.seen.get("left", 0)))
    except BaseException:
        if wanted.full:
            stack.remove(ground)
        raise
    finally:
        ground.close()
    report = _report(wanted, ground, entries, left)
    return Examined(report=report, advice=tuple(advice), reached=reached)


def _ground(wanted: Wanted) -> Ground:
    local = {"target": "local"} if cdk.is_emulator(wanted.environment) else {}
    ground = Ground(
        environment=wanted.environment,
        region_from=wanted.region_from,
        stack=own.STACK if wanted.full else wanted.stack,
        config=Config.from_context(local),
        lend=lambda service: cdk.client(service, wanted.environment),
        url=wanted.url,
    )
    if wanted.crawl is not None:
        crawl = wanted.crawl
        ground.crawl = lambda url: crawl(ground.outputs, url)
    return ground


def _look(ground: Ground) -> None:
    """Read the outputs, resources and settings of the stack, if it exists."""
    try:
        found = deployed.describe(ground.stack, ground.environment)
        if found is None or not found.exists:
            return
        ground.outputs = found.outputs
        ground.resources = tuple(removal.resources_of(ground.stack, ground.lend))
        given = deployed.context_of(ground.stack, ground.environment)
        local = {"target": "local"} if ground.emulator else {}
        named = {**given, **local, "stack_name": ground.stack}
        ground.config, ground.given = Config.from_context(named), frozenset(given)
    except (LocalStackError, ConfigError, *ODD):
        # Ignored, because the checks examine each resource and report unreadable ones.
        return


def _skip_reason(check: Check, ground: Ground, wanted: Wanted, *, reached: bool) -> Finding | None:
    """Return why a check is skipped, or None if it runs."""
    if not reached:
        return skipped("credentials are not accepted")
    if check.full and not wanted.full:
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
        # The operation's name comes from the client, so it is safe to show.
        return failed(f"{error.operation_name} was refused", code=code_of(error))
    except BotoCoreError as error:
        return failed(f"AWS could not be asked: {type(error).__name__}")
    except LocalStackError:
        return failed("AWS could not be asked")
    except OSError as error:
        return failed(f"it could not be reached: {type(error).__name__}")
    except ODD as error:
        return failed(f"the answer has another form: {type(error).__name__}")


def _entry(check: Check, finding: Finding, took_ms: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": check.id,
        "title": check.title,
        "assumptions": list(check.assumptions),
        "result": str(finding.result),
        "seen": dict(finding.seen),
        "took_ms": took_ms,
    }
    return {**entry, "why": finding.why} if finding.why else entry


def _report(
    wanted: Wanted, ground: Ground, entries: list[dict[str, Any]], left: int
) -> dict[str, Any]:
    named = wanted.environment.get("AWS_REGION", "")
    report: dict[str, Any] = {
        "version": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": "local" if ground.emulator else "aws",
        "full": wanted.full,
        "region": named if account.REGION.fullmatch(named) else "(not a region's name)",
        "stack": ground.stack,
        "checks": entries,
        "left": left,
    }
    masked: dict[str, Any] = masking.everything(report)
    return masked
