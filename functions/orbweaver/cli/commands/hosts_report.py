"""`hosts` shows a crawl's hosts. `report` shows its requests, and the URLs that it left out."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from orbweaver.cli import crawl_summary, text
from orbweaver.cli.command import answer, command, newest, option, repeated
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import OK
from orbweaver.cli.session import chosen, note_older
from orbweaver.control.progress.spending import price
from orbweaver.diagnostics.host_status import HostView
from orbweaver.diagnostics.refusal_report import SCRIPTS, Report, RequestKind, Requests, Skipped
from orbweaver.diagnostics.rule_texts import moment
from orbweaver.model.cuts import COUNTER
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import NEEDS_RENDERING

HEAD = ("host", "claimed", "ended", "failed", "queued", "delay", "robots.txt", "next request")
UNKNOWN = "-"
TITLES = {
    "refused": "links that were not followed",
    "skipped": "URLs that were skipped",
    "failed": "URLs that failed",
    COUNTER: "omitted parts of pages",
    NEEDS_RENDERING: "pages that need scripts",
}
# What users can do about a reason, unless the name of the reason makes it clear.
REMEDIES: Mapping[str, str] = {
    Reason.CONTENT_TYPE: "--exclude avoids the requests, --bodies all stores such files",
    Reason.HTTP_CLIENT_ERROR: "`orbweaver explain URL` names the page with the link; `orbweaver"
    " retry {id}` requests them again",
    SCRIPTS: "look for a sitemap of the site, and for the API that its scripts use",
}


async def hosts(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.which)
        views = await session.control.hosts(crawl.id, arguments.host)
    rows = [HEAD, *(_row(view, around.clock.now_ms()) for view in views)]
    bodies = ({"type": "host", "crawl": crawl.id, **asdict(view)} for view in views)
    answer(arguments, around, bodies, *text.table(rows, right=range(1, 6)))
    if any(view.claimed is None for view in views) and not arguments.json:
        around.note(f"{UNKNOWN}: not counted; {crawl.id} counts only its first hosts")
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
    silent = (
        f"; {text.plural(view.failures, 'request')} without a response" if view.failures else ""
    )
    if view.blocked_until_ms is not None:
        return f"not before {moment(view.blocked_until_ms)}: {view.why}"
    if view.next_slot_ms is not None:
        return f"in {text.clock((view.next_slot_ms - now_ms) / 1000)}{silent}"
    return f"now{silent}"


async def report(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        ports = session.ports
        crawl, newest = await session.control.newest_fetching(arguments.which)
        note_older(around, crawl, newest)
        found = await session.control.report(
            crawl.id,
            files=ports.files,
            backlog=ports.backlog,
            frontier=ports.frontier,
            records_max=arguments.records,
        )
    body: dict[str, Any] = {"type": "report", "crawl": found.crawl.id}
    body["skipped"] = [asdict(line) for line in found.skipped]
    body["pages"] = found.pages
    body["nothing_new"] = found.nothing_new
    body["spared"] = asdict(found.spared)
    body["requests"] = asdict(found.requests)
    lines = (*_lines(found), *spared_lines(found), *_where(found.requests))
    answer(arguments, around, body, *lines)
    return OK


def _meaning(line: Skipped) -> str:
    if not line.taken:
        return line.means
    looked_at = text.plural(line.taken + len(line.samples), "example")
    was = "was" if line.taken == 1 else "were"
    return f"{line.means}; {line.taken} of {looked_at} {was} crawled through another link"


def _lines(found: Report) -> list[str]:
    lines = [found.crawl.id]
    if not found.skipped:
        has_rest = bool(found.spared.links)
        reason = crawl_summary.nothing_new(found.crawl, has_rest=has_rest)
        new = reason if found.nothing_new else ""
        return [f"{lines[0]}: {new}" if new else f"{lines[0]} left nothing out"]
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


# --- where the requests went ---------------------------------------------------------------------

KINDS_SHOWN, SHARE_SHOWN, PERCENT = 20, 0.005, 100
KINDS_HEAD = (
    *("requests", "noindex", "failed", "titles", "bodies", "texts", "led to", "$", "kind"),
)

KINDS_LEGEND = (
    "  titles, bodies, texts: number of different ones, texts of up to 12 pages",
    "  led to: indexable pages whose first link was on a page of this kind",
)


def _where(told: Requests) -> list[str]:
    """Format the kinds of URLs with the most requests, and patterns that exclude useless kinds."""
    if not told.requests:
        return []
    asked, kinds = (
        text.plural(told.requests, "request"),
        [one for one in told.kinds if one.requests],
    )
    shown = [one for one in kinds if one.requests >= SHARE_SHOWN * told.requests][:KINDS_SHOWN]
    rows = [KINDS_HEAD, *map(_kind, shown)]
    table = text.table(rows, right=range(len(KINDS_HEAD) - 1), indent=2)
    examples = [[], *([f"      {text.cut(one.example, 200)}"] for one in shown)]
    lines = ["", f"where the requests went: {asked}, {price(told.usd)} on AWS (estimate)"]
    if told.unread:
        lines[-1] += f"; of the first {told.records:,} records"
    for row, example in zip(table, examples, strict=True):
        lines += [row, *example]
    left = told.requests - sum(one.requests for one in shown)
    if left:
        number = text.plural(len(kinds) - len(shown), "kind")
        rest = f", {told.other_requests:,} of them of others" if told.other_requests else ""
        lines.append(f"  {left:,} more, of {number} (--json){rest}")
    return [*lines, *KINDS_LEGEND, *_exclusions(told)]


def _kind(one: RequestKind) -> tuple[str, ...]:
    pages, failed = (one.outcomes.get(ended, 0) for ended in (Outcome.FETCHED, Outcome.FAILED))
    share = f"{one.noindex * PERCENT / pages:.0f} %" if one.noindex else ""
    texts = f"{one.texts} of {one.texts_read}" if one.texts_read else ""
    about = "" if one.exact else "~"
    distinct = [f"{about}{number:,}" if number else "" for number in (one.titles, one.bodies)]
    led_to = f"{one.led_to:,}" if one.led_to else ""
    fails = f"{failed:,}" if failed else ""
    return (f"{one.requests:,}", share, fails, *distinct, texts, led_to, price(one.usd), one.kind)


def spared_lines(found: Report) -> list[str]:
    """Describe a crawl's late links (requested after all others), and how to request them."""
    told, crawl = found.spared, found.crawl
    if not told.links:
        return []
    title = (
        "late links, which wait until few others are left"
        if crawl.live
        else "late links that were not requested"
    )
    most = "" if told.exact else "at most "
    first = f"; of the first {told.read:,}" if told.read < told.links else ""
    rows = [(f"{one.links:,}", one.kind) for one in told.kinds[:KINDS_SHOWN]]
    lines = ["", f"{title}: {most}{told.links:,}{first}"]
    for one, row in zip(told.kinds, text.table(rows, right=(0,), indent=2), strict=False):
        lines += [row, f"      {text.cut(one.example, 200)}"]
    left = told.read - sum(one.links for one in told.kinds[:KINDS_SHOWN])
    lines += [f"  {left:,} more (--json)"] if left else []
    edit = f"`orbweaver edit {crawl.id} --max-pages N`"
    more = edit if crawl.live else f"a later run of {crawl.name} with a higher limit"
    return [*lines, f"  {more} requests the best of them"]


def _exclusions(told: Requests) -> list[str]:
    """Format exclusion patterns as options, each with the requests and dollars saved."""
    if not told.suggested:
        return []
    saving = {one.exclude: (one.saves_requests, price(one.saves_usd)) for one in told.kinds}
    saved = text.plural(told.saves_requests, "request")
    kinds = "kinds without items, links or unique texts"
    lines = ["", f"patterns for {kinds}: saves {saved}, {price(told.saves_usd)}"]
    for pattern in told.suggested[:KINDS_SHOWN]:
        requests, usd = saving[pattern]
        lines.append(f"  --exclude {shlex.quote(pattern)}   {requests:,} requests, {usd}")
    more = len(told.suggested) - KINDS_SHOWN
    return [*lines, f"  {more:,} more (--json)"] if more > 0 else lines


_HOST = "also show this host: a name, or an origin; may be repeated"
COMMANDS = (
    command(
        "hosts",
        hosts,
        newest(),
        repeated("--host HOST", _HOST),
    ),
    command(
        "report",
        report,
        newest(),
        option("--records N", "read at most this many page records (all)"),
    ),
)
