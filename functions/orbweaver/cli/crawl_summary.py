"""The summary of a crawl that has ended: its URLs' outcomes, its speed, its files."""

from __future__ import annotations

import shlex
from typing import Any

from orbweaver.cli import text
from orbweaver.cli.export_files import Written
from orbweaver.cli.live.lines import STOPS, cost, counted, items, left_out, reasons
from orbweaver.control.progress import status as progress
from orbweaver.control.progress.status import View
from orbweaver.frontier.resumption import REQUESTED_AGAIN
from orbweaver.model.crawl import Crawl, Stop, spent
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.model.cuts import COUNTER, PAGES
from orbweaver.model.outcome import Outcome, Refusal
from orbweaver.model.page_record import NEEDS_RENDERING, RENDERED
from orbweaver.rendering.launch import INSTALL, find_browser

# What is typed next, most of the time.
QUERY = "SELECT url, status, title FROM pages LIMIT 10"


def lines(view: View, written: Written | None = None, before: str = "") -> list[str]:
    """Sum a crawl up for a person; `before` has to be run first to ask about it."""
    status = view.reading.status
    crawl = status.crawl
    if progress.nothing_new(view):
        found = [nothing_new(crawl, before)]
        return found if written is None else [*found, "", *map(text.clean, files(written))]
    why = "" if crawl.stop is None else STOPS.get(crawl.stop, f"{crawl.stop} is used up")
    ended = f"{crawl.id} finished in {text.clock(status.elapsed_ms / 1000)}"
    ended += f" ({why}): " if why else ": "
    fetched = text.plural(view.of(Outcome.FETCHED), "page")
    per_s = text.rate(view.reading.status.pages_per_s)
    fetched += f", {per_s} a second, {text.size(view.of('bytes'))}"
    blocks = [[ended + fetched], outcomes(view), hosts(view)]
    said = {
        "again": requested_again(view),
        "limit": limited(view),
        "left over": left_over(view),
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
    """Count pages by outcome and reason, as a table."""
    rows = [("outcome", "pages", "reasons")]
    rows += [
        (str(outcome), f"{number:,}", reasons(view, outcome))
        for outcome in Outcome
        if (number := view.of(outcome))
    ]
    if refused := view.reasons("refused"):
        rows.append(("(not asked)", f"{sum(refused.values()):,}", f"links: {left_out(view)}"))
    return text.table(rows, right=(1,))


def requested_again(view: View) -> str:
    """Count the URLs of earlier runs that failed or were disallowed, and were requested again."""
    number = view.of(REQUESTED_AGAIN)
    if not number:
        return ""
    what = "that failed or were disallowed by robots.txt"
    return f"{text.plural(number, 'URL')} of earlier runs {what}, requested again"


def limited(view: View) -> str:
    """Say which URLs a page limit that was reached counts: pages, redirects, failures."""
    if view.crawl.stop is not Stop.MAX_PAGES:
        return ""
    used = spent(view.total)
    free = view.reading.status.counters.claimed - used
    ended = {outcome: view.of(outcome) for outcome in Outcome}
    ended[Outcome.SKIPPED] = max(0, ended[Outcome.SKIPPED] - free)
    counts = " · ".join(f"{outcome} {number:,}" for outcome, number in ended.items() if number)
    said = f"{text.plural(used, 'URL')} requested: {counts}"
    return f"{said}; {free:,} refused without a request do not count" if free else said


def left_over(view: View) -> str:
    """Count the links that an end before the last one leaves, and say what goes on with them."""
    crawl, limit = view.crawl, text.plural(view.crawl.pages_max, "page")
    goes_on = {
        Stop.MAX_PAGES: f"beyond the limit of {limit}: the same command with a higher"
        " --max-pages goes on with them",
        Stop.NOTHING_NEW: "that bring next to nothing new: the same command without"
        " --stop-when-nothing-new goes on with them",
    }
    waiting, exact = progress.late_links(view)
    # Of a crawl that is not ordered, or that has more than may wait: each time one was found.
    beyond = view.of(f"refused.{Refusal.BUDGET}")
    if crawl.stop not in goes_on or not waiting + beyond:
        return ""
    most = "" if exact and not beyond else "at most "
    return f"{most}{text.plural(waiting + beyond, 'link')} {goes_on[crawl.stop]}"


def incomplete(view: View) -> str:
    """Count the pages of which a part is cut or withheld; nothing where all are whole."""
    parts = view.reasons(COUNTER)
    pages = parts.pop(PAGES, 0)
    if not pages:
        return ""
    number, which = text.plural(pages, "page"), f"orbweaver report {view.crawl.id}"
    return f"{number} with a part left out: {counted(parts)} (column `cut`; {which})"


def rendered(view: View) -> str:
    """Count the pages whose scripts were run, and those that could not be; nothing for none."""
    number, failed = view.of(RENDERED), sum(view.reasons("render.failed").values())
    if not number and not failed:
        return ""
    asked = view.of("render.asked")
    said = f"{text.plural(number, 'page')}, which asked for {text.plural(asked, 'file')} more"
    return f"{said}; {text.plural(failed, 'page')} could not be" if failed else said


def unrendered(view: View) -> str:
    """Count the pages that are empty until their scripts have run; nothing where there are none."""
    number = view.of(NEEDS_RENDERING)
    if not number:
        return ""
    pages = view.of(Outcome.FETCHED) + view.of(Outcome.UNCHANGED)
    what = f"{number:,} of {text.plural(pages, 'page')} need scripts to show anything"
    said = f"{what} (column `{NEEDS_RENDERING}`; orbweaver report {view.crawl.id})"
    if view.crawl.render is RenderMode.NEVER:
        return f"{said}; --render auto runs them"
    return said if find_browser() else f"{said}; no browser is here that could run them: {INSTALL}"


def withdrawn(view: View) -> str:
    """Say that a crawl came no further than its first pages, where they ask for that."""
    number = view.of(f"refused.{Refusal.SEED_NOFOLLOW}")
    if not number:
        return ""
    left = f"{text.plural(number, 'link')} left out, as a first page asks"
    return f"{left} (`orbweaver report`); --ignore-nofollow follows them, on a site of your own"


def hosts(view: View) -> list[str]:
    """Count URLs by host, as a table."""
    rows = [("host", "done", "failed")]
    rows += [
        (row.site, f"{row.done:,}", f"{row.failed:,}")
        for row in view.hosts
        if row.done is not None and row.failed is not None
    ]
    return text.table(rows, right=(1, 2)) if len(rows) > 1 < len(view.hosts) else []


def files(written: Written) -> list[str]:
    """List the files that were written."""
    if not written.parts:
        return [f"no records, so no files in {written.folder}"]
    return text.table(
        [
            (str(path), text.plural(rows, "row"), text.size(number))
            for path, rows, number in written.parts
        ],
        right=(1, 2),
    )


def query(written: Written) -> str:
    """Say what asks the files that were written; empty where there are none that it reads."""
    if written.file is not None:  # a query reads folders with manifests
        return ""
    if not any(path.suffix == ".parquet" for path, _, _ in written.parts):
        return ""
    folder = shlex.quote(str(written.folder))
    return f'orbweaver query --from {folder} "{QUERY}"'


def nothing_new(crawl: Crawl, before: str = "") -> str:
    """Say why nothing was crawled, and how it is crawled all the same."""
    if crawl.resumes and not crawl.pages_own:
        return (
            f"nothing new: the limit of {crawl.pages_max:,} pages is used up by"
            f" {crawl.resumes[0]}, within the window of {text.span(crawl.window_s)}; a higher"
            " --max-pages goes on with what is left, --window 0s crawls all of it again"
        )
    if crawl.resumes:
        return (
            f"nothing new: what {crawl.resumes[0]} left out is left out by these limits and this"
            " scope as well; `orbweaver report` says what it is"
        )
    seeds = "every seed was" if len(crawl.seeds) > 1 else "the seed was"
    return (
        f"nothing new: {seeds} crawled within the window of {text.span(crawl.window_s)};"
        f" --window 0s crawls it again, and `{before}orbweaver explain URL` says what became of it"
    )


def result(view: View, written: Written | None, exit_code: int) -> dict[str, Any]:
    """Sum a crawl up for a machine."""
    body: dict[str, Any] = {"type": "result", **progress.as_json(view)}
    body["nothing_new"] = progress.nothing_new(view)
    body["exit_code"] = exit_code
    if written is not None:
        body["out"] = str(written.folder if written.file is None else written.file.path)
        body["rows"] = written.rows
        body["files"] = [str(path) for path, _, _ in written.parts]
    return body
