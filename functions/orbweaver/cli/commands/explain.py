"""The `explain` command: why a URL was or was not crawled, from stored data."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

from orbweaver.app.wiring import explainer_of
from orbweaver.cli import text
from orbweaver.cli.command import answer, command, option
from orbweaver.cli.commands.robots_url import canonical
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import OK
from orbweaver.cli.ruling import ruling_of
from orbweaver.cli.session import Session, chosen
from orbweaver.diagnostics.explanation import Explanation
from orbweaver.diagnostics.url_changes import suggest_url
from orbweaver.diagnostics.url_status import Facts
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import to_fields
from orbweaver.politeness.host_schedule import RobotsEntry
from orbweaver.politeness.robots_cache import RobotsUnreachable


async def explain(arguments: Namespace, around: CliContext) -> int:
    if suggest_url(arguments.url):  # without a scheme, every URL would be invalid
        canonical(arguments.url)
    async with chosen(arguments, around) as session:
        explainer = explainer_of(session.ports, session.control)

        ask = partial(_robots, session, around) if arguments.fetch else None
        facts, told = await explainer.explain(arguments.url, arguments.crawl, ask)
    rows = text.labelled((one.about, one.words) for one in told.statements)
    answer(arguments, around, _body(facts, told), told.verdict, *text.table(rows, indent=2))
    return OK


def _body(facts: Facts, told: Explanation) -> dict[str, Any]:
    url = next((one.words for one in told.statements if one.about == "url"), None)
    return {
        "url": url,
        "crawl": facts.crawl.id,
        "fate": told.url_status,
        "verdict": told.verdict,
        "refusal": told.refusal,
        "statements": [{"about": one.about, "words": one.words} for one in told.statements],
        "record": None if facts.record is None else to_fields(facts.record),
    }


async def _robots(
    session: Session, around: CliContext, host: str, crawl: Crawl
) -> RobotsEntry | None:
    """Fetch the robots.txt of a host as the crawl would, without storing it."""
    async with around.web() as fetcher:
        ruling, entry = await ruling_of(host, crawl, fetcher, around.clock, session.settings)
    if isinstance(ruling, RobotsUnreachable):
        at_ms = around.clock.now_ms()
        return RobotsEntry(fetched_at_ms=at_ms, verdict="unreachable", detail=ruling.detail)
    return entry


COMMANDS = (
    command(
        "explain",
        explain,
        option("url URL"),
        option("--crawl ID", "in this crawl; default: the newest run with this URL in scope"),
        option("--fetch", "fetch its robots.txt if no copy is stored"),
    ),
)
