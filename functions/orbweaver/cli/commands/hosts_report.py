"""Commands that ask why: `hosts`, how a crawl does at each host; `report`, what it left out."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from orbweaver.cli import crawl_summary, text
from orbweaver.cli.command import answer, command, newest, repeated
from orbweaver.cli.exit_codes import OK
from orbweaver.cli.session import Surroundings, chosen
from orbweaver.diagnostics.host_status import HostView
from orbweaver.diagnostics.refusal_report import SCRIPTS, Report, Skipped
from orbweaver.diagnostics.rule_texts import moment
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Reason
from orbweaver.model.page_record import NEEDS_RENDERING

HEAD = ("host", "claimed", "ended", "failed", "queued", "delay", "robots.txt", "next request")
UNKNOWN = "-"
TITLES = {
    "refused": "links that were not followed",
    "skipped": "URLs that were skipped",
    "failed": "URLs that failed",
    COUNTER: "parts of pages that are cut",
    NEEDS_RENDERING: "pages that need scripts",
}
# What a person may do about it, where the meaning does not say it.
REMEDIES: Mapping[str, str] = {
    Reason.CONTENT_TYPE: "--exclude spares the requests, --bodies all stores such files",
    Reason.HTTP_CLIENT_ERROR: "`orbweaver explain URL` names the page with the link; `orbweaver"
    " retry {id}` asks again",
    SCRIPTS: "look for a sitemap of the site, and for the API that its scripts ask",
}


async def hosts(arguments: Namespace, around: Surroundings) -> int:
    """Show how a crawl does at its hosts."""
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.which)
        views = await session.control.hosts(crawl.id, arguments.host)
    rows = [HEAD, *(_row(view, around.clock.now_ms()) for view in views)]
    bodies = ({"type": "host", "crawl": crawl.id, **asdict(view)} for view in views)
    answer(arguments, around, bodies, *text.table(rows, right=range(1, 6)))
    if any(view.claimed is None for view in views) and not arguments.json:
        around.note(f"{UNKNOWN}: {crawl.id} counts the first hosts that it began at")
    return OK


def _row(view: HostView, now_ms: int) -> tuple[str, ...]:
    counts = (view.claimed, view.done, view.failed, view.queued)
    return (
        view.host,
        *(UNKNOWN if count is None else f"{count:,}" for count in counts),
        text.pace(view.delay_ms),
        view.robots,
        _next(view, now_ms),
    )


def _next(view: HostView, now_ms: int) -> str:
    silent = f"; {text.plural(view.failures, 'request')} without an answer" if view.failures else ""
    if view.blocked_until_ms is not None:
        return f"not before {moment(view.blocked_until_ms)}: {view.why}"
    if view.next_slot_ms is not None:
        return f"in {text.clock((view.next_slot_ms - now_ms) / 1000)}{silent}"
    return f"now{silent}"


async def report(arguments: Namespace, around: Surroundings) -> int:
    """Show what a crawl left out, and why, with examples."""
    async with chosen(arguments, around) as session:
        found = await session.control.report(arguments.which)
    body: dict[str, Any] = {"type": "report", "crawl": found.crawl.id}
    body["skipped"] = [asdict(line) for line in found.skipped]
    body["pages"] = found.pages
    body["nothing_new"] = found.nothing_new
    answer(arguments, around, body, *_lines(found))
    return OK


def _meaning(line: Skipped) -> str:
    if not line.taken:
        return line.means
    looked_at = text.plural(line.taken + len(line.samples), "example")
    was = "was" if line.taken == 1 else "were"
    return f"{line.means}; {line.taken} of {looked_at} {was} crawled by another way"


def _lines(found: Report) -> list[str]:
    lines = [found.crawl.id]
    if not found.skipped:
        new = crawl_summary.nothing_new(found.crawl) if found.nothing_new else ""
        return [f"{lines[0]}: {new}" if new else f"{lines[0]} has left nothing out"]
    for kind, title in TITLES.items():
        those = [line for line in found.skipped if line.kind == kind]
        if not those:
            continue
        total = sum(line.count for line in those)
        of = f" of {found.pages:,}" if kind == NEEDS_RENDERING else ""
        share = f" ({100 * total / found.pages:.1f} %)" if of and found.pages else ""
        lines += ["", f"{title}: {total:,}{of}{share}"]
        rows = [(f"{line.count:,}", line.reason, _meaning(line)) for line in those]
        for line, row in zip(those, text.table(rows, right=(0,)), strict=True):
            lines += [f"  {row}", *(f"      {text.cut(url, 200)}" for url in line.samples)]
            lines += [f"      error: {text.cut(cause, 300)}" for cause in line.causes]
            if line.kind != "refused" and line.reason in REMEDIES:
                lines.append(f"      remedy: {REMEDIES[line.reason].format(id=found.crawl.id)}")
    return lines


_HOST = "this one, too: a name, or a URL's beginning; may be repeated"
COMMANDS = (
    command(
        "hosts",
        "show how a crawl does at its hosts: counts, pace, blocks",
        hosts,
        newest(),
        repeated("--host HOST", _HOST),
    ),
    command("report", "say what a crawl left out and why, with examples", report, newest()),
)
