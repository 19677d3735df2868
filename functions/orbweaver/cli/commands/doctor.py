"""`doctor`: check an AWS account for all that the stack needs, and write a report.

Without `--full` it writes nothing to AWS. With `--full` it writes only to a stack that it deploys
and removes. It prints a line per check, then a fix for each failed check. The report contains no
secrets (localstack/doctor/reads.py), so it can be shared.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orbweaver.cli.command import (
    answer,
    command,
    context,
    json_option,
    option,
    shared,
    stack_options,
)
from orbweaver.cli.commands.crawl import checked
from orbweaver.cli.commands.steer import context_of
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError, WriteError
from orbweaver.cli.live.display import Display
from orbweaver.cli.session import Stalled, environment_in, opened
from orbweaver.cli.stack import ENDPOINT, REGIONS, StackUnreachable, settings_from
from orbweaver.control.crawl_control import ControlError
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.errors import PortError
from orbweaver.model.outcome import Outcome

if TYPE_CHECKING:
    from localstack.doctor.ground import Check, Finding

PAGES_MAX, DELAY_MS, CRAWL_S_MAX = 5, 500, 180


def doctor(arguments: Namespace, around: CliContext) -> int:
    from localstack.doctor import examine
    from localstack.doctor.ground import Ground

    if arguments.url and not arguments.full:
        raise UsageError("orbweaver doctor: --url needs --full: add it")
    if arguments.url:
        checked(_plan(arguments.url, delay_ms=0), around)
    environment = environment_in(arguments, around)
    ground = Ground(
        environment=environment,
        region_from=_region_from(arguments, around.environment, environment),
        stack=arguments.stack,
        full=arguments.full,
        url=arguments.url,
        context=context_of(arguments, around),
        crawl=lambda outputs, url: asyncio.run(_crawl(url, outputs, environment, around)),
        say=around.note,
    )

    def show(check: Check, finding: Finding) -> None:
        if not arguments.json:
            around.write(_line(check, finding))

    found = examine.examine(ground, show=show)
    answer(arguments, around, found.report, *_summary(found.report, found.advice))
    if arguments.out is not None:
        file = around.folder / arguments.out
        try:
            file.write_text(json.dumps(found.report, indent=2) + "\n")
        except OSError as error:
            raise WriteError(f"{file} cannot be written ({error.strerror})") from error
        around.note(f"the report is in {arguments.out}; it contains no secrets")
    if not found.reached:
        raise StackUnreachable("AWS does not accept the credentials: log in, or name a profile")
    return FAILED if found.failed else OK


def _region_from(arguments: Namespace, given: Mapping[str, str], chosen: Mapping[str, str]) -> str:
    """Return the source of the region: emulator, option, environment variable or profile."""
    if chosen.get(ENDPOINT):
        return "the emulator"
    if arguments.region:
        return "--region"
    return next((name for name in REGIONS if given.get(name)), "the profile")


def _line(check: Check, finding: Finding) -> str:
    seen = ", ".join(f"{key} {value}" for key, value in finding.seen.items())
    said = "; ".join(filter(None, (finding.why, seen)))
    return f"{finding.result:<8}{check.id:<24}{check.title}{f'  ({said})' if said else ''}"


def _summary(report: Mapping[str, Any], advice: tuple[tuple[str, str], ...]) -> list[str]:
    results = [one["result"] for one in report["checks"]]
    counts = (f"{results.count(word)} {word}" for word in ("passed", "failed", "skipped"))
    lines = ["", ", ".join(counts), *(f"{name}: {do}" for name, do in advice)]
    probes = sum(one.get("why") == "it needs --full" for one in report["checks"])
    if probes and not report["full"]:
        lines.append(f"{probes} of them need --full, which deploys a stack for some minutes")
    return lines


def _plan(url: str, *, delay_ms: int) -> CrawlSpec:
    return CrawlSpec(seeds=(url,), pages_max=PAGES_MAX, delay_ms=delay_ms)


async def _crawl(
    url: str, outputs: Mapping[str, str], environment: Mapping[str, str], around: CliContext
) -> tuple[int, int]:
    """Crawl a few pages on a stack. Return the numbers of fetched and of failed URLs."""
    from localstack.errors import LocalStackError

    try:
        settings = settings_from(outputs, around.machine, environment)
        plan = _plan(url, delay_ms=0 if environment.get(ENDPOINT) else DELAY_MS)
        async with opened(around, settings, environment) as session:
            begun = await session.control.start(plan)
            async with asyncio.timeout(CRAWL_S_MAX):
                view = await session.watch(begun.id, Display())
    except (ControlError, PortError, Stalled, TimeoutError, StackUnreachable) as error:
        around.note(f"the crawl did not end: {error}")
        raise LocalStackError(str(error)) from error
    total = view.reading.status.counters.total
    return total.get(Outcome.FETCHED, 0), total.get(Outcome.FAILED, 0)


_FULL = "deploy a small temporary stack, test its queues, tables, bucket and functions, remove it"
_URL = "with --full on AWS: a page of your own site to crawl, with four more pages"
COMMANDS = (
    command(
        "doctor",
        doctor,
        option("--full", _FULL),
        option("--url URL", _URL),
        option("--out FILE", "write the report to this file, as JSON without secrets"),
        parents=(stack_options, shared(context()), json_option),
    ),
)
