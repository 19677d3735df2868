"""The command that explains: why a URL was or was not crawled, from what a stack has stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orbweaver.app.wiring import explainer_of
from orbweaver.cli import text
from orbweaver.cli.command import Command, json_option, stack_options
from orbweaver.cli.exit_codes import OK
from orbweaver.cli.ruling import ruling_of
from orbweaver.cli.session import Session, Surroundings, chosen
from orbweaver.diagnostics.explanation import Explanation
from orbweaver.diagnostics.url_status import Facts
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import to_fields
from orbweaver.politeness.host_schedule import RobotsEntry
from orbweaver.politeness.robots_cache import RobotsUnreachable

if TYPE_CHECKING:
    import argparse

HELP = "say why a URL was or was not crawled, from what is stored"
ROBOTS_MS_MAX = 60_000


def options(command: argparse.ArgumentParser) -> None:
    """Add what may be typed behind `orbweaver explain`."""
    add = command.add_argument
    add("url", metavar="URL")
    add("--crawl", metavar="ID", help="in this crawl; default: the newest whose scope it lies in")
    fetch = "ask for its robots.txt where no copy is kept"
    add("--fetch", action="store_true", help=fetch)


async def explain(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Say what became of a URL, and why."""
    async with chosen(arguments, around) as session:
        explainer = explainer_of(session.ports, session.control)

        async def ask(host: str, crawl: Crawl) -> RobotsEntry | None:
            return await _robots(host, crawl, session, around)

        facts, told = await explainer.explain(
            arguments.url, arguments.crawl, ask if arguments.fetch else None
        )
    if arguments.json:
        around.write(json.dumps(_body(facts, told)))
        return OK
    around.write(text.clean(told.verdict))
    rows = [(one.about, text.clean(one.words)) for one in told.statements]
    labels = ["", *(about for about, _ in rows)]
    # A label stands once for what follows on it.
    shown = [
        ("" if about == before else about, words)
        for before, (about, words) in zip(labels, rows, strict=False)
    ]
    around.write(*(f"  {line}" for line in text.table(shown)))
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
    host: str, crawl: Crawl, session: Session, around: Surroundings
) -> RobotsEntry | None:
    """Fetch a robots.txt as the crawl would, and keep it nowhere."""
    async with around.web() as fetcher:
        ruling, entry = await ruling_of(
            host,
            crawl,
            fetcher=fetcher,
            clock=around.clock,
            settings=session.settings,
            named=frozenset({host}),
            wait_ms=ROBOTS_MS_MAX,
        )
    if isinstance(ruling, RobotsUnreachable):
        at_ms = around.clock.now_ms()
        return RobotsEntry(fetched_at_ms=at_ms, verdict="unreachable", detail=ruling.detail)
    return entry


COMMANDS = (
    Command(
        name="explain",
        help=HELP,
        run=explain,
        options=options,
        parents=(stack_options, json_option),
    ),
)
