"""`cost` and `estimate`: actual or expected AWS usage of a crawl, in units and dollars.

Units are metered during the crawl. docs/cost.md lists the usage that counters of crawls do not
contain. Dollars are computed from list prices, even for an emulator, which costs nothing.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from orbweaver.budget.billing_units import Term, Units, units_of
from orbweaver.budget.estimate import (
    BATCH,
    CPU_MB,
    MEMORY_MB,
    PAGES_ASSUMED,
    WORKERS,
    Assumptions,
    estimate,
)
from orbweaver.budget.prices import AS_OF, charged, dollars
from orbweaver.cli import text
from orbweaver.cli.command import STACK_JSON, answer, command, crawl_argument, file, option
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import DEFINITION
from orbweaver.cli.exit_codes import NOT_FOUND, OK
from orbweaver.cli.session import chosen, environment_in
from orbweaver.cli.stack import outputs_of
from orbweaver.control.progress.spending import MILLION, price
from orbweaver.control.spec_checks import crawl_of
from orbweaver.diagnostics.host_status import hosts_of
from orbweaver.model.amounts import in_dollars
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Outcome

MEMORY_MB_MIN = 128
# Default settings of a deployed stack.
STACK: Mapping[str, int] = {
    "worker_memory_mb": MEMORY_MB,
    "worker_concurrency_max": WORKERS,
}
# Numbers from this size on are shown without decimals.
DIGITS = 100
# Displayed name of each term (billed unit).
_NAMES: Mapping[Term, str] = {
    Term.WRITE: "write units",
    Term.READ_HALVES: "read units",
    Term.SQS: "SQS requests",
    Term.S3_PUT: "S3 PUT, LIST",
    Term.S3_GET: "S3 GET",
    Term.EVENTS: "events",
    Term.LOG_BYTES: "bytes logged",
    Term.SENT_BYTES: "bytes sent",
    Term.INVOCATIONS: "invocations",
    Term.MB_MS: "GB-seconds",
    Term.MB_MS_X86: "GB-seconds, x86",
}
# Number of counted units in one displayed unit.
_PARTS: Mapping[Term, int] = {
    Term.READ_HALVES: 2,
    Term.MB_MS: 1024 * 1000,
    Term.MB_MS_X86: 1024 * 1000,
}


async def cost(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        status, billed = await session.control.status(arguments.which), session.place.billed
    units, pages = units_of(status.counters.total), status.counters.total.get(Outcome.FETCHED, 0)
    if not billed:
        spent = charged(status.counters.total) or 0.0
        told = {"type": "cost", "crawl": status.crawl.id, "pages": pages, "usd": 0.0}
        said = f"{status.crawl.id}: nothing; {price(spent)} on AWS (estimate)"
        answer(arguments, around, {**told, "aws_estimate_usd": spent}, said)
        return OK
    if not units and not arguments.json:
        around.note(f"{status.crawl.id}: no usage has been recorded")
        return NOT_FOUND
    body = {"type": "cost", "crawl": status.crawl.id, **as_json(units, pages)}
    body["limit_estimate_usd"] = charged(status.counters.total) or 0.0
    title = f"{status.crawl.id} · {text.plural(pages, 'page')} fetched"
    answer(arguments, around, body, title, "", *lines(units, pages))
    return OK


def estimated(arguments: Namespace, around: CliContext) -> int:
    plan = plan_in(arguments.file, around)
    context = _context(arguments, around)
    crawl = crawl_of(plan, around.clock.now_ms())
    pages = arguments.pages or plan.pages_max or PAGES_ASSUMED
    assumed = Assumptions(
        pages=pages,
        hosts=arguments.hosts or max(1, len(hosts_of(crawl))),
        links=arguments.links,
        body_bytes=arguments.body_bytes,
        answer_s=arguments.answer / 1000,
        memory_mb=max(MEMORY_MB_MIN, _of_stack("worker_memory_mb", arguments.memory, context)),
        workers=_of_stack("worker_concurrency_max", arguments.workers, context),
        batch=arguments.batch_size or BATCH,
    )
    found = estimate(crawl, assumed)
    assumptions = [*_assumptions(crawl, assumed)]
    body = {"type": "estimate", "name": crawl.name, **as_json(found.units, pages)}
    body |= {"least_s": round(found.least_s), "assumed": assumptions}
    answer(
        arguments,
        around,
        body,
        *(f"{crawl.name} · an estimate; no request was sent", ""),
        *(*lines(found.units, pages), "", "assumed"),
        *(f"  {one}" for one in assumptions),
        *("", *_limits(crawl, found.units, found.least_s)),
    )
    return OK


def _context(arguments: Namespace, around: CliContext) -> Mapping[str, Any]:
    """Return the CDK context of cdk.json. With `--deployed`, the stack's values override it."""
    try:
        written = json.loads((around.folder / "cdk.json").read_text())["context"]
    except (OSError, ValueError, TypeError, LookupError):
        written = {}
    context = written if isinstance(written, dict) else {}
    if arguments.deployed:
        environment = environment_in(arguments, around)
        outputs_of(arguments.stack, around.machine, environment, around.note)
        context = {**context, **around.machine.context(arguments.stack, environment)}
    return context


def _of_stack(key: str, asked: int | None, context: Mapping[str, Any]) -> int:
    if asked is not None:
        return asked
    try:
        return max(1, int(context[key]))
    except (ValueError, TypeError, LookupError):
        return STACK[key]


def lines(units: Units, pages: int) -> list[str]:
    """Format the usage of a crawl as two tables: by term (billed unit) and by stage of work."""
    terms, number = units.by_term, max(1, pages)
    rows = [("term", "used", "per page", "$ per million pages", "$")]
    for term, used in terms.items():
        amount = used / _PARTS.get(term, 1)
        money = _money(dollars({term: used}), number)
        rows.append((_NAMES[term], _amount(amount), _amount(amount / number), *money))
    rows.append(("in all", "", "", *_money(dollars(terms), number)))
    stages = [("stage", "mostly", "$ per million pages", "$")]
    for stage, part in sorted(units.by_stage.items(), key=lambda one: -dollars(one[1].by_term)):
        stages.append((str(stage), _mostly(part), *_money(dollars(part.by_term), number)))
    return [
        *text.table(rows, right=(1, 2, 3, 4)),
        "",
        *text.table(stages, right=(2, 3)),
        "",
        f"list prices of us-east-1 as of {AS_OF}, without free tier",
    ]


def as_json(units: Units, pages: int) -> dict[str, Any]:
    """Return usage and costs by term (billed unit) and by stage of the work, for JSON."""
    terms = units.by_term
    number = max(1, pages)
    return {
        "pages": pages,
        "usd": round(dollars(terms), 9),
        "usd_per_million_pages": round(dollars(terms) / number * MILLION, 4),
        "prices_as_of": AS_OF,
        "terms": {term: _spelled(term, used, number) for term, used in terms.items()},
        "stages": {stage: part.by_term for stage, part in units.by_stage.items()},
    }


def _spelled(term: Term, used: int, pages: int) -> dict[str, float]:
    spent = dollars({term: used})
    return {
        "used": used,
        "per_page": round(used / pages, 6),
        "usd": round(spent, 9),
        "usd_per_million_pages": round(spent / pages * MILLION, 4),
    }


def _money(spent: float, pages: int) -> tuple[str, str]:
    return f"{spent / pages * MILLION:,.4f}", price(spent)


def _amount(number: float) -> str:
    whole = number >= DIGITS or number == int(number)
    return f"{number:,.0f}" if whole else f"{number:,.4f}"


def _mostly(part: Units) -> str:
    return _NAMES[max(part.by_term, key=lambda term: dollars({term: part.by_term[term]}))]


def _assumptions(crawl: Crawl, assumed: Assumptions) -> Iterator[str]:
    where = text.plural(assumed.hosts, "host")
    pages = text.plural(assumed.pages, "page")
    yield f"{pages} on {where}, each fetched once (--pages, --hosts)"
    if crawl.scope is Scope.ANY and assumed.hosts == 1:
        yield "links to any host are in scope, so there are more hosts: give their number (--hosts)"
    yield f"{text.plural(assumed.links, 'link')} per page (--links)"
    yield f"{text.size(assumed.body_bytes)} per page over the network (--body-bytes)"
    yield f"{assumed.answer_s:g} s until a host responds (--answer)"
    cpu, share = assumed.cpu_ms(texts=crawl.texts), assumed.memory_mb / CPU_MB
    has = f"{assumed.memory_mb:,} MB get {share:.0%} of a CPU"
    yield f"{cpu:.1f} ms of CPU per page; {has} (--memory)"
    workers, packs = text.plural(assumed.workers, "worker"), text.plural(assumed.batch, "message")
    yield f"up to {workers} at once (--workers), up to {packs} each (--batch-size)"
    yield f"bodies: {crawl.bodies}; main texts: {'kept' if crawl.texts else 'not kept'}"
    yield f"a delay of {text.pace(crawl.delay_ms)}" if crawl.delay_ms else "no delay"


def _limits(crawl: Crawl, units: Units, least_s: float) -> Iterator[str]:
    yield f"it takes at least {text.roughly(least_s)}, due to the delay per host"
    if least_s > crawl.duration_max_s:
        yield f"that exceeds its time limit ({text.span(crawl.duration_max_s)}): it ends earlier"
    spent = dollars(units.by_term)
    limit = crawl.nanodollars_max and in_dollars(crawl.nanodollars_max)
    if limit is not None and spent > limit:
        yield f"that exceeds its cost limit ({price(limit)}): it ends earlier"


_PAGES_HELP = f"number of pages (default: the definition's limit, or {PAGES_ASSUMED:,})"
_STACK_HELP = "default: cdk.json of this folder, or"
_MEMORY_HELP = f"memory of a worker ({_STACK_HELP} {MEMORY_MB})"
_WORKERS_HELP = f"maximum number of workers ({_STACK_HELP} {WORKERS})"
_BATCH_HELP = f"messages per batch of a worker (default: {BATCH})"
COMMANDS = (
    command(
        "estimate",
        estimated,
        file(f"definition of the crawl ({DEFINITION})", DEFINITION),
        option("--pages N", _PAGES_HELP),
        option("--hosts N", "number of hosts (default: hosts of the seeds)"),
        option("--links N", "links per page (50)", default=50),
        option("--body-bytes SIZE", "size of a page over the network (30kB)", default=30_000),
        option("--answer TIME", "response time of a host (200ms)", default=200),
        option("--memory MB", _MEMORY_HELP),
        option("--workers N", _WORKERS_HELP),
        option("--batch-size N", _BATCH_HELP),
        option("--deployed", "use the settings of the deployed stack"),
        parents=STACK_JSON,
    ),
    command("cost", cost, crawl_argument()),
)
