"""Commands that only read: status, pages, page, export."""

from __future__ import annotations

import asyncio
import json
import shlex
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orbweaver.cli import crawl_summary, export_files, text
from orbweaver.cli.command import (
    STACK_JSON,
    add_formats,
    answer,
    command,
    crawl_argument,
    exclusive_options,
    newest,
    option,
    out_option,
    progress_option,
)
from orbweaver.cli.commands.robots_url import canonical
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_end import left_behind, timed
from orbweaver.cli.exit_codes import NOT_FOUND, OK, UsageError
from orbweaver.cli.export_files import ExportResult
from orbweaver.cli.live.display import JsonDisplay
from orbweaver.cli.live.lines import heading, rows
from orbweaver.cli.one_file import one_file, shown_as, write_one
from orbweaver.cli.session import Session, chosen, note_older
from orbweaver.control.progress.status import WORKING, ProgressMeter, as_json
from orbweaver.exporting.cells import iso
from orbweaver.exporting.manifest import page_as_json
from orbweaver.frontier.retrying import closing
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.cuts import column_text, describe_cuts, parts_of
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord, day_of
from orbweaver.model.ports import Files
from orbweaver.model.version import NEWER, REMEDY

CRAWLS_SHOWN = 10
# For a text or a body: the names of parts in a record's `cut` (omitted parts) that concern it.
OF = {"text": ("body", "unread", "text", "layout", "text_chars"), "body": ("body", "headers")}


# --- status -------------------------------------------------------------------------------------


def status(arguments: Namespace, around: CliContext) -> int:
    display = around.display(arguments)
    left: str | None = None

    async def go() -> int:
        async with chosen(arguments, around) as session:
            nonlocal left
            crawl, newest = await session.control.newest_fetching(arguments.which)
            note_older(around, crawl, newest)
            if arguments.watch:
                await _note_idle(session, crawl, around)
                try:
                    view = await session.watch(crawl.id, display)
                except asyncio.CancelledError:
                    left = await left_behind(session, crawl)
                    raise
                display.close()
                if isinstance(display, JsonDisplay):
                    display.put(crawl_summary.result(view, None, OK))
                else:
                    around.write("", *crawl_summary.lines(view))
                return OK
            view = ProgressMeter().add(await session.read_closely(crawl.id))
            await _note_idle(session, view.crawl, around)
            lines = (heading(view), *text.table(rows(view), indent=2))
            answer(arguments, around, {"type": "status", **as_json(view)}, *lines)
            if arguments.which is None and not arguments.json:
                await _others(session, view.reading.status.crawl, around)
            return OK

    return timed(go(), lambda: arguments.which, around, display, lambda: left)


async def _note_idle(session: Session, crawl: Crawl, around: CliContext) -> None:
    """Warn if no worker runs, unless the crawl is paused."""
    if crawl.state in WORKING and (off := await session.place.idle_workers(crawl)) is not None:
        around.note(off)


async def _others(session: Session, shown: Crawl, around: CliContext) -> None:
    crawls = [crawl for crawl in await session.control.crawls() if crawl.id != shown.id]
    if crawls:
        around.write("", "other crawls")
        around.write(*(f"  {crawl.id}  {crawl.state}" for crawl in crawls[:CRAWLS_SHOWN]))
    if len(crawls) > CRAWLS_SHOWN:
        around.write(f"  and {len(crawls) - CRAWLS_SHOWN} more")
    if hidden := await session.control.unreadable():
        around.note(f"{hidden:,} more, {NEWER}: {REMEDY} to see them")


# --- pages --------------------------------------------------------------------------------------


async def pages(arguments: Namespace, around: CliContext) -> int:
    outcome = Outcome(arguments.outcome) if arguments.outcome else None
    async with chosen(arguments, around) as session:
        crawl, newest = await session.control.newest_fetching(arguments.which)
        note_older(around, crawl, newest)
        number = 0
        found = session.control.pages(crawl, outcome=outcome, limit=arguments.limit)
        async with closing(found) as records:
            async for record in records:
                number += 1
                around.write(json.dumps(page_as_json(record)) if arguments.json else _line(record))
        if not arguments.json:
            what = text.plural(number, f"{outcome} page" if outcome else "page")
            around.note(f"{what} of {crawl.id}")
        if not number:
            await _point_back(session, crawl, around)
    return OK


async def _point_back(session: Session, crawl: Crawl, around: CliContext) -> None:
    """Name the run before `crawl`. Users who give a name might mean that run."""
    runs = [run for run in await session.control.crawls() if run.name == crawl.name]
    older = [run.id for run in runs if run.started_at_ms < crawl.started_at_ms]
    if older:
        around.note(f"previous run: {older[0]}")


async def page(arguments: Namespace, around: CliContext) -> int:
    url = canonical(arguments.url)
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.crawl) if arguments.crawl else None
        # The URL is passed as typed, because each crawl removes its own set of URL parameters.
        records = await session.control.page(arguments.url, crawl)
        if records and (part := _part_asked(arguments)) is not None:
            file = arguments.screenshot
            return await _pour(session.ports.files, records, around, part, file)
    if not records:
        where = f"in {crawl.id}" if crawl else "in any crawl"
        why = f"`orbweaver explain {shlex.quote(url)}` explains why"
        around.note(f"there is no record of {url} {where}: {why}")
        return NOT_FOUND
    for place, record in enumerate(records):
        cells = json.loads(json.dumps(page_as_json(record)))
        known = [(key, str(cell)) for key, cell in cells.items() if cell is not None]
        answer(arguments, around, cells, *([""] if place else []), *text.table(known))
    return OK


def _part_asked(arguments: Namespace) -> PagePart | None:
    if arguments.screenshot:
        return PagePart.SCREENSHOT
    if arguments.text:
        return PagePart.TEXT
    return PagePart.BODY if arguments.body else None


_WHY = {
    PagePart.BODY: "see `records.bodies`",
    PagePart.TEXT: "set `records.text` in the definition",
    PagePart.SCREENSHOT: "set `render.screenshot` in the definition",
}


async def _pour(
    files: Files,
    records: Sequence[PageRecord],
    around: CliContext,
    what: PagePart,
    file: str | None,
) -> int:
    """Write the newest stored `what`: body, main text, or (only to a file) screenshot."""
    for record in records:
        stored = await read_stored(files, record, what)
        if stored is Missing.NOT_KEPT:
            continue
        if isinstance(stored, Missing):
            around.note(f"the {what} of {record.crawl}, {iso(record.fetched_at)}, {stored}")
            continue
        if file is not None:
            await asyncio.to_thread(Path(file).write_bytes, stored.payload)
            around.note(f"{file}: {len(stored.payload):,} bytes of WebP, {iso(record.fetched_at)}")
            return OK
        lost = [(name, number) for name, number in parts_of(record.cut) if name in OF[what]]
        if lost:
            around.note(f"the {what} is cut: {describe_cuts(column_text(tuple(lost)))}")
        if what is PagePart.TEXT:
            around.write(text.clean_lines(json.loads(stored.payload)["markdown"]))
        else:
            around.write_bytes(stored.body())
        return OK
    crawls = ", ".join(dict.fromkeys(record.crawl for record in records))
    around.note(f"no {what} of it is stored (in {crawls}): {_WHY[what]}")
    return NOT_FOUND


def _line(record: PageRecord) -> str:
    ended = f"{record.outcome:<10} {record.reason:<18} {record.status or '':>3}"
    return text.clean(f"{ended}  {record.url} {record.title or record.error or ''}").rstrip()


# --- export -------------------------------------------------------------------------------------


async def export(arguments: Namespace, around: CliContext) -> int:
    """Write the page records of a crawl, of a day, or of a crawl on one day into files."""
    formats = arguments.format or export_files.FORMATS
    file = None
    if arguments.out is not None:
        file = one_file(arguments.out, around.folder / arguments.out, arguments.format)
    if file is not None and (arguments.crawl is None or arguments.day is not None):
        raise UsageError(f"--out: {arguments.out} is one file: give --crawl ID without --day")
    async with chosen(arguments, around) as session:
        crawl = None
        if arguments.crawl:
            crawl, newest = await session.control.newest_fetching(arguments.crawl)
            note_older(around, crawl, newest)
            if crawl.state is not State.FINISHED:
                around.note(f"{crawl.id} is {crawl.state}: files hold the pages stored so far")
        folder = arguments.out or (export_files.OUT / crawl.id if crawl else export_files.OUT)
        place = around.folder / folder
        if crawl is not None and file is not None:
            # An id exports that run, and a name exports all runs of the crawl.
            is_id = arguments.crawl == crawl.id
            runs = (crawl,) if is_id else await session.control.with_same_crawl(crawl)
            written = shown_as(await write_one(session, runs, file), folder)
            return _exported(written, arguments, around)
        export_files.check_folder(place, crawl.name if crawl else None, crawl.id if crawl else None)
        export_files.check_writable(place)
        wanted = export_files.ExportPlan(folder=place, formats=formats, say=around.note)
        if crawl is not None and arguments.day is None:
            written = await export_files.export_crawl(session, crawl, wanted)
        else:
            day = arguments.day or day_of(around.clock.now_ms())
            written = await export_files.export_day(session, day, crawl, wanted)
        written = replace(written, folder=folder)
        if crawl is not None and not written.rows:
            await _point_back(session, crawl, around)
    return _exported(written, arguments, around)


def _exported(written: ExportResult, arguments: Namespace, around: CliContext) -> int:
    paths = [str(path) for path, _, _ in written.parts]
    out = written.folder if written.file is None else written.file.path
    body = {"type": "result", "out": str(out), "rows": written.rows, "files": paths}
    answer(arguments, around, body, *crawl_summary.files(written))
    return OK


COMMANDS = (
    command(
        "status",
        status,
        newest(),
        option("--watch", "keep showing it until it ends"),
        parents=(*STACK_JSON, progress_option),
    ),
    command(
        "pages",
        pages,
        crawl_argument(),
        option(f"--outcome {'|'.join(Outcome)}", "only pages with this outcome"),
        option("--limit N", "maximum number of pages"),
    ),
    command(
        "page",
        page,
        option("url URL"),
        option("--crawl ID", "only in this crawl"),
        exclusive_options(
            option("--body", "print its body instead, as received"),
            option("--text", "print its main text instead, as Markdown"),
            option("--screenshot FILE", "write its screenshot to a WebP file instead"),
        ),
    ),
    command(
        "export",
        export,
        option("--day YYYY-MM-DD", "default: today, UTC"),
        option("--crawl ID", "only this crawl (without --day: all its days)"),
        add_formats,
        parents=(*STACK_JSON, out_option),
    ),
)
