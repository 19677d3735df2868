"""Summary of an ended crawl: outcomes, speed, cost, files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from orbweaver.cli import text
from orbweaver.cli.export_files import ExportResult
from orbweaver.cli.live.lines import (
    cost,
    counted,
    is_complete_refetch,
    items,
    left_out,
    reasons,
    stop_reason,
)
from orbweaver.control.progress import status as progress
from orbweaver.control.progress.status import View
from orbweaver.frontier.resumption import REQUESTED_AGAIN
from orbweaver.model.crawl import Crawl, Stop, spent
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.cuts import COUNTER, PAGES
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import NEEDS_RENDERING, RENDERED
from orbweaver.rendering.launch import INSTALL, find_browser

# The query in the suggested next command.
QUERY = "SELECT url, status, title FROM pages LIMIT 10"


def lines(
    view: View,
    written: ExportResult | None = None,
    before: str = "",
    used_by: Sequence[str] = (),
) -> list[str]:
    """Return the summary as lines.

    `before` is a shell command that must run before the suggested commands. `used_by` are the runs
    that used up the page limit, newest first.
    """
    status = view.reading.status
    crawl = status.crawl
    if progress.found_nothing_new(view):
        has_rest = bool(_links_left(view))
        found = [nothing_new(crawl, before, used_by, has_rest=has_rest)]
        return found if written is None else [*found, "", *map(text.clean, files(written))]
    why = stop_reason(crawl)
    took = text.clock(status.elapsed_ms / 1000)
    ended = f"{crawl.id} finished in {took}" + (f" ({why}): " if why else ": ")
    if crawl.stop is Stop.CANCELLED:
        ended = f"{crawl.id} was cancelled after {took}: "
    fetched = text.plural(view.count(Outcome.FETCHED), "page")
    per_s = text.rate(view.reading.status.pages_per_s)
    fetched += f", {per_s} a second, {text.size(view.count('bytes'))}"
    blocks = [[ended + fetched], outcomes(view), hosts(view)]
    said = {
        "again": requested_again(view),
        "limit": limited(view),
        "left over": left_over(view),
        "not requested": cancelled(view),
        "proxies": rejected_by_proxies(view),
        "nofollow": withdrawn(view),
        "cut": incomplete(view),
        "scripts": unrendered(view),
        "rendered": rendered(view),
        "items": items(view),
        "cost": cost(view),
    }
    blocks += [[f"{label}  {words}"] for label, words in said.items() if words]
    if written is not None:
        asks = query(written)
        blocks += [files(written), [f"next  {asks}"] if asks else []]
    return [text.clean(line) for block in blocks if block for line in ("", *block)][1:]


def outcomes(view: View) -> list[str]:
    """Return a table of the numbers of pages by outcome and reason."""
    rows = [("outcome", "pages", "reasons")]
    rows += [
        (str(outcome), f"{number:,}", reasons(view, outcome))
        for outcome in Outcome
        if (number := view.count(outcome))
    ]
    if refused := view.reasons("refused"):
        rows.append(("(refused)", f"{sum(refused.values()):,}", f"links: {left_out(view)}"))
    return text.table(rows, right=(1,))


def requested_again(view: View) -> str:
    """Describe how many failed or disallowed URLs of earlier runs this run requested again."""
    number = view.count(REQUESTED_AGAIN)
    if not number:
        return ""
    what = "that failed or were disallowed by robots.txt"
    said = f"{text.plural(number, 'URL')} of earlier runs {what}, requested again"
    if view.reading.status.counters.claimed > number:
        return said
    window = text.span(view.crawl.window_s)
    fetched = f"the others were fetched within the window of {window}"
    return f"{said}; {fetched}: --window 0s crawls everything again"


def limited(view: View) -> str:
    """Describe the URLs that used up the page limit (pages, redirects, failures), or return ""."""
    if view.crawl.stop is not Stop.MAX_PAGES or is_complete_refetch(view.crawl):
        return ""
    used = spent(view.total)
    free = view.reading.status.counters.claimed - used
    ended = {outcome: view.count(outcome) for outcome in Outcome}
    ended[Outcome.SKIPPED] = max(0, ended[Outcome.SKIPPED] - free)
    counts = " · ".join(f"{outcome} {number:,}" for outcome, number in ended.items() if number)
    said = f"{text.plural(used, 'URL')} requested: {counts}"
    return f"{said}; {free:,} refused without a request do not count" if free else said


def cancelled(view: View) -> str:
    """Describe how many known URLs a cancelled crawl did not request, or return ""."""
    number = view.reasons(Outcome.SKIPPED).get(Reason.CANCELLED, 0)
    return f"{text.plural(number, 'URL')}: the same command requests them" if number else ""


def rejected_by_proxies(view: View) -> str:
    """Describe how many URLs failed because no proxy accepts its password, or return ""."""
    rejected = Reason.PROXY_REJECTED
    number = view.reasons(Outcome.FAILED).get(rejected, 0)
    number += view.reasons(Reason.ROBOTS_UNREACHABLE).get(rejected, 0)
    if not number:
        return ""
    urls = text.plural(number, "URL")
    fix = "with others, the same command requests them"
    return f"{urls}: no proxy accepts its user and password; {fix}"


def left_over(view: View) -> str:
    """Describe how many links a limit left unrequested, and how to request them, or return ""."""
    crawl, limit = view.crawl, text.plural(view.crawl.pages_max, "page")
    goes_on = {
        Stop.MAX_PAGES: f"beyond the limit of {limit}: the same command with a higher"
        " --max-pages requests them",
        Stop.NOTHING_NEW: "that bring next to nothing new: the same command without"
        " --stop-when-nothing-new requests them",
    }
    links = _links_left(view)
    if crawl.stop not in goes_on or not links or is_complete_refetch(crawl):
        return ""
    return f"{links} {goes_on[crawl.stop]}"


def _links_left(view: View) -> str:
    """Describe how many links a page limit left unrequested, or return ""."""
    waiting, exact = progress.count_late_links(view)
    # Links are counted here if the crawl does not order links by usefulness, or has too many. Then
    # a URL that several pages link counts several times.
    beyond = view.count(f"refused.{Refusal.BUDGET}")
    most = "" if exact and not beyond else "at most "
    return f"{most}{text.plural(waiting + beyond, 'link')}" if waiting + beyond else ""


def incomplete(view: View) -> str:
    """Describe how many pages have omitted or truncated parts, or return ""."""
    parts = view.reasons(COUNTER)
    pages = parts.pop(PAGES, 0)
    if not pages:
        return ""
    number, which = text.plural(pages, "page"), f"orbweaver report {view.crawl.id}"
    return f"{number} with omitted parts: {counted(parts)} (column `cut`; {which})"


def rendered(view: View) -> str:
    """Describe how many pages were rendered and how many could not be rendered, or return ""."""
    number, failed = view.count(RENDERED), sum(view.reasons("render.failed").values())
    if not number and not failed:
        return ""
    asked = view.count("render.asked")
    said = f"{text.plural(number, 'page')}, which requested {text.plural(asked, 'file')} more"
    return f"{said}; {text.plural(failed, 'page')} could not be rendered" if failed else said


def unrendered(view: View) -> str:
    """Describe how many pages are empty until their scripts run, or return ""."""
    number = view.count(NEEDS_RENDERING)
    if not number:
        return ""
    pages = view.count(Outcome.FETCHED) + view.count(Outcome.UNCHANGED)
    what = f"{number:,} of {text.plural(pages, 'page')} need scripts to show anything"
    said = f"{what} (column `{NEEDS_RENDERING}`; orbweaver report {view.crawl.id})"
    if view.crawl.render is RenderMode.NEVER:
        return f"{said}; --render auto runs them"
    return said if find_browser() else f"{said}; no browser found: {INSTALL}"


def withdrawn(view: View) -> str:
    """Describe how many links were left out because a seed's page has nofollow, or return ""."""
    number = view.count(f"refused.{Refusal.SEED_NOFOLLOW}")
    if not number:
        return ""
    left = f"{text.plural(number, 'link')} left out, because a seed has nofollow"
    return f"{left} (`orbweaver report`); --ignore-nofollow follows them, for your own sites only"


def hosts(view: View) -> list[str]:
    rows = [("host", "done", "failed")]
    rows += [
        (row.site, f"{row.done:,}", f"{row.failed:,}")
        for row in view.hosts
        if row.done is not None and row.failed is not None
    ]
    return text.table(rows, right=(1, 2)) if len(rows) > 1 < len(view.hosts) else []


def files(written: ExportResult) -> list[str]:
    if not written.parts:
        return [f"no records, so no files in {written.folder}", *_contents(written)]
    table = text.table(
        [
            (str(path), text.plural(rows, "row"), text.size(number))
            for path, rows, number in written.parts
        ],
        right=(1, 2),
    )
    return [*table, *_contents(written)]


def _contents(written: ExportResult) -> list[str]:
    """Describe which runs' rows the files contain, which they lack, and the file replaced."""
    if written.file is None and not written.absent:
        return []
    newest, *older = written.runs or (None,)
    also = f" and {text.plural(len(older), 'earlier run')} of the same crawl" if older else ""
    best = ", the newest record of each URL" if older else ""
    found = [] if newest is None else [f"  rows of {newest}{also}{best}"]
    if written.absent:
        found[0] += f"; earlier runs of the same crawl have {text.plural(written.absent, 'page')}"
        found.append(f"  `orbweaver export --crawl {written.name} --out pages.csv` writes all")
    if written.file is not None and written.file.replaced_bytes is not None:
        size = text.size(written.file.replaced_bytes)
        found.append(f"  it replaced the earlier file of {size}")
    return found


def query(written: ExportResult) -> str:
    """Return a command that queries the files, or "" if no file can be queried."""
    if written.file is not None:  # a query reads folders with manifests
        return ""
    if not any(path.suffix == ".parquet" for path, _, _ in written.parts):
        return ""
    folder = shlex.quote(str(written.folder))
    return f'orbweaver query --from {folder} "{QUERY}"'


def nothing_new(
    crawl: Crawl, before: str = "", used_by: Sequence[str] = (), *, has_rest: bool = False
) -> str:
    """Explain why a run requested no URL, and how to crawl anyway.

    `has_rest` is True if the page limit left out links. For `before` and `used_by` see `lines`.
    """
    if crawl.resumes and not crawl.pages_own:
        runs = used_by or crawl.resumes[:1]
        before_it = f" and {len(runs) - 1} before it" if len(runs) > 1 else ""
        rest = "a higher --max-pages crawls the rest, " if has_rest else ""
        return (
            f"nothing new: the limit of {text.plural(crawl.pages_max, 'page')} is used up by"
            f" {runs[0]}{before_it}, within the window of {text.span(crawl.window_s)};"
            f" {rest}--window 0s crawls everything again"
        )
    if crawl.resumes:
        return (
            f"nothing new: these limits and this scope exclude what {crawl.resumes[0]} left"
            " out; see `orbweaver report`; --window 0s crawls everything again"
        )
    seeds = "every seed was" if len(crawl.seeds) > 1 else "the seed was"
    return (
        f"nothing new: {seeds} crawled within the window of {text.span(crawl.window_s)};"
        f" --window 0s crawls it again, and `{before}orbweaver explain URL` shows its result"
    )


def result(view: View, written: ExportResult | None, exit_code: int) -> dict[str, Any]:
    """Return the summary as a JSON object."""
    body: dict[str, Any] = {"type": "result", **progress.as_json(view)}
    body["nothing_new"] = progress.found_nothing_new(view)
    body["exit_code"] = exit_code
    if written is not None:
        body["out"] = str(written.folder if written.file is None else written.file.path)
        body["rows"] = written.rows
        if written.file is not None:
            body["runs"] = [*written.runs]
        body["files"] = [str(path) for path, _, _ in written.parts]
    return body
