"""The `explain` command: why a URL was or was not crawled, from stored data.

If the run's links are exported, the command also names the pages that link to the URL.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from orbweaver.app.wiring import explainer_of
from orbweaver.cli import text
from orbweaver.cli.command import answer, command, option
from orbweaver.cli.commands.robots_url import canonical
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import OK, UsageError
from orbweaver.cli.query.exported import OUT, from_option
from orbweaver.cli.ruling import ruling_of
from orbweaver.cli.session import Session, chosen
from orbweaver.diagnostics.explanation import Explanation
from orbweaver.diagnostics.url_changes import suggest_url
from orbweaver.diagnostics.url_status import Facts
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import to_fields
from orbweaver.politeness.host_schedule import RobotsEntry
from orbweaver.politeness.robots_cache import RobotsUnreachable

if TYPE_CHECKING:
    from orbweaver.cli.audit.backlinks import Backlinks

TEXT_CHARS_MAX = 80


async def explain(arguments: Namespace, around: CliContext) -> int:
    if suggest_url(arguments.url):  # without a scheme, every URL would be invalid
        canonical(arguments.url)
    async with chosen(arguments, around) as session:
        explainer = explainer_of(session.ports, session.control)

        ask = partial(_robots, session, around) if arguments.fetch else None
        facts, told = await explainer.explain(arguments.url, arguments.crawl, ask)
    body = _body(facts, told)
    found = None
    if body["url"] is not None:
        found = await asyncio.to_thread(_backlinks, arguments, around, body["url"], facts.crawl)
    body["backlinks"] = None if found is None else asdict(found)
    rows = text.labelled((one.about, one.words) for one in told.statements)
    lines = [told.verdict, *text.table(rows, indent=2), *_lines(found)]
    answer(arguments, around, body, *lines)
    return OK


def _backlinks(
    arguments: Namespace, around: CliContext, url: str, crawl: Crawl
) -> Backlinks | None:
    """Return the links to a URL, or explain in a note why they are not known."""
    if not crawl.links:
        around.note("a crawl with --links also shows which pages link here")
        return None
    # Other runs need no DuckDB.
    from orbweaver.cli.audit.backlinks import backlinks_of
    from orbweaver.cli.query.tables import exports_in

    source = Path(arguments.source or OUT)
    try:
        exports = exports_in(around.folder / source, source, None)
        with TemporaryDirectory(prefix="orbweaver-") as folder:
            found = backlinks_of(url, crawl.id, exports, Path(folder))
    except UsageError as error:
        around.note(f"the pages that link here are not known: {error}")
        return None
    if found is None:
        around.note(
            f"the pages that link here are not known: {source} has no links of {crawl.id};"
            " --from names another folder of exports"
        )
    return found


def _lines(found: Backlinks | None) -> list[str]:
    """Return the number of pages that link to a URL, and the first of them."""
    if found is None:
        return []
    counted = f"{text.plural(found.pages, 'page')} {'links' if found.pages == 1 else 'link'} here"
    if found.sitemaps:
        lists = "lists" if found.sitemaps == 1 else "list"
        counted += f", and {text.plural(found.sitemaps, 'sitemap')} {lists} it"
    rows = [
        (text.clean(one.url), one.kind, text.cut(one.text, TEXT_CHARS_MAX) if one.text else "")
        for one in found.first
    ]
    lines = [f"{counted}:" if rows else counted, *text.table(rows, indent=2)]
    if (more := found.pages + found.sitemaps - len(rows)) > 0:
        lines.append(f"  … {more:,} more")
    return lines


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
        from_option,
        option("--fetch", "fetch its robots.txt if no copy is stored"),
    ),
)
