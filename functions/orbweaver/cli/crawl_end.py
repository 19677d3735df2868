"""Report how a watched crawl ended: summary, why it has no pages or stalled, and exit code."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orbweaver.cli import crawl_summary, export_files, text
from orbweaver.cli.causes import code_without_pages
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, INTERRUPTED, OK, STALLED
from orbweaver.cli.export_files import ExportResult
from orbweaver.cli.live.display import Display, JsonDisplay
from orbweaver.cli.one_file import shown_as, write_one
from orbweaver.cli.option_types import Threshold
from orbweaver.cli.session import PAUSE_S, RunState, Session, Stalled
from orbweaver.cli.store import commands_of_retry
from orbweaver.control.progress import status
from orbweaver.control.progress.status import View
from orbweaver.frontier.resumption import carried, count_not_requested
from orbweaver.frontier.retrying import closing
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import PortError
from orbweaver.model.outcome import SUCCESSES, Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.value import value_class

# Maximum number of example URLs for a crawl without pages, and of characters of each.
EXAMPLES, URL_CHARS_MAX = 3, 200
NONE_BEGUN = "interrupted: no crawl has begun, so there is nothing to continue"


@value_class
class EndedCrawl:
    """An ended crawl and its files.

    `why` explains why the crawl has no page, or which seeds failed again. It is None if the crawl
    has pages. `before` is a shell command that must run before other commands about the crawl.
    """

    view: View
    written: ExportResult | None = None
    why: Sequence[str] | None = None
    before: str = ""
    # Runs that used up the page limit, if it left no URL for this run.
    used_by: Sequence[str] = ()
    # Unfinished retries of earlier runs, if this run found nothing new.
    retries: Sequence[str] = ()
    # Where the files of the earlier run are, if this run found nothing new.
    earlier: str = ""
    # Pages of APIs that do not show the next page, with the cause, and the fix.
    paging: Sequence[str] = ()
    # Pages that earlier runs stored with other settings, and the command that requests them.
    outdated: Sequence[str] = ()


def conclude(
    ended: EndedCrawl, fail_above: Threshold | None, around: CliContext, display: Display
) -> int:
    view, written, why = ended.view, ended.written, ended.why
    failed = view.count(Outcome.FAILED)
    too_many = fail_above is not None and fail_above.exceeded(
        failed, view.reading.status.counters.done
    )
    code = FAILED if too_many else OK
    if why is not None:
        code = code_without_pages(view)
    if isinstance(display, JsonDisplay):
        reasons = {} if why is None else {"why": [*why]}
        paging = {"paging": [*ended.paging]} if ended.paging else {}
        outdated = {"outdated": [*ended.outdated]} if ended.outdated else {}
        result = crawl_summary.result(view, written, code)
        display.put({**result, **reasons, **paging, **outdated})
        return code
    if ended.retries:
        around.write("", *(f"nothing new: {said}" for said in ended.retries))
        if written is not None:
            around.write("", *crawl_summary.files(written))
    elif written is not None or not _is_explained(view, why):
        around.write("", *crawl_summary.lines(view, written, ended.before, ended.used_by))
    if ended.earlier and written is None:
        around.write(ended.earlier)
    if why is not None:
        others = [line for line in why if line not in ended.paging]
        around.note(*(["nothing was fetched:", *others] if others else ["nothing was fetched"]))
    if ended.paging:
        around.note("paging of an API ended too early:", *ended.paging)
    around.note(*ended.outdated)
    if too_many:
        around.note(f"{failed:,} failures are above --fail-above")
    return code


async def write_at_end(
    session: Session, view: View, arguments: Namespace, around: CliContext, display: Display
) -> ExportResult | None:
    """Write the files of a run.

    If the run found nothing new, or the reasons name all its URLs, files are written only if the
    user asked for them.
    """
    exported: Crawl | None = view.crawl
    nothing_new = status.found_nothing_new(view)
    if not arguments.files_asked and (
        nothing_new or _is_explained(view, await why_no_pages(session, view))
    ):
        return None
    if nothing_new:  # the files contain the pages of an earlier run
        exported = await export_files.stored_run(session, view.crawl, display.say)
    if exported is None:
        return None
    return await _written(session, exported, arguments, around, display)


async def _written(
    session: Session, crawl: Crawl, arguments: Namespace, around: CliContext, display: Display
) -> ExportResult:
    """Write the files of an ended crawl, or one file if --out names a file."""
    if arguments.file is not None:
        runs = await session.control.with_same_crawl(crawl)
        return shown_as(await write_one(session, runs, arguments.file), arguments.out)
    folder: Path = arguments.out or export_files.OUT / crawl.id
    wanted = export_files.ExportPlan(
        folder=around.folder / folder, formats=arguments.format, say=display.say
    )
    written = await export_files.export_crawl(session, crawl, wanted)
    absent = await export_files.pages_absent(session, crawl, wanted.folder)
    return replace(written, folder=folder, runs=(crawl.id,), absent=absent, name=crawl.name)


async def ended_crawl(session: Session, view: View) -> EndedCrawl:
    """Return an ended crawl with the causes of missing pages, and the queues as they are now."""
    # A worker ends a crawl before it acknowledges the last messages, so `view` may count these.
    reading = replace(view.reading, depths=await session.place.depths())
    view = replace(view, reading=reading)
    why = await why_no_pages(session, view)
    return EndedCrawl(view=view, why=why, paging=await paging_failures(session, view))


async def why_no_pages(session: Session, view: View) -> list[str] | None:
    """Return why a crawl has no page, one line per example URL. None: it has pages."""
    if not status.ended_without_pages(view):
        return None
    # Pages of the runs that this run continues count as pages of the crawl. Then only seeds that
    # failed again are reported.
    if view.crawl.resumes and await _has_pages(session, view.crawl):
        failing = [url async for url in _failed_seeds(session, view.crawl)]
        return _examples(failing, len(failing), view.crawl) if failing else None
    records = session.control.pages(view.crawl, limit=EXAMPLES)
    async with closing(records):
        shown = [_ending(record) async for record in records]
    number = view.reading.status.counters.claimed - count_not_requested(view.total)
    return _examples(shown, number, view.crawl)


def _is_explained(view: View, why: Sequence[str] | None) -> bool:
    """Whether the reasons of a crawl without pages name all its URLs, so that no summary helps."""
    number = view.reading.status.counters.claimed - count_not_requested(view.total)
    return why is not None and 0 < number == len(why) <= EXAMPLES


async def paging_failures(session: Session, view: View) -> list[str]:
    """Return pages of APIs that do not show the next page, and the fix. []: there are none."""
    number = view.reasons(Outcome.FAILED).get(Reason.PAGING, 0)
    if not number:
        return []
    shown: list[str] = []
    records = session.control.pages(view.crawl, outcome=Outcome.FAILED)
    async with closing(records):
        async for record in records:
            if record.reason is Reason.PAGING:
                shown.append(_ending(record))
            if len(shown) == min(number, EXAMPLES):
                break
    fix = "correct `paging` in [[api]]: the same command then requests the page again"
    return [*_examples(shown, number, view.crawl), f"  {fix}"]


async def runs_with_pages(session: Session, view: View) -> tuple[str, ...]:
    """Return the earlier runs whose URLs count towards the page limit.

    Returns () unless this run found nothing new.
    """
    if not status.found_nothing_new(view):
        return ()
    totals = {run: (await session.control.status(run)).counters.total for run in view.crawl.resumes}
    return tuple(run for run, total in totals.items() if carried(total))


async def earlier_files(session: Session, view: View, here: Path, running: RunState) -> str:
    """Return where the files of the newest run with pages are, or the command that writes them.

    Returns "" unless this run found nothing new. `here` is the current folder.
    """
    if not status.found_nothing_new(view):
        return ""
    run = await export_files.stored_run(session, view.crawl, lambda _: None)
    if run is None:
        return ""
    folder = export_files.OUT / run.id
    if export_files.has_files(here / folder, run):
        return f"the files of {run.id} are in {folder}"
    export = f"orbweaver export --crawl {run.id}{running.option} --out {folder}"
    return f"to write the files of {run.id} again: {running.before}{export}"


async def unfinished_retries(session: Session, view: View) -> tuple[str, ...]:
    """Describe unfinished retries of earlier runs. Returns () unless this run found nothing new."""
    if not status.found_nothing_new(view) or not view.crawl.pages_own:
        return ()
    resumes = view.crawl.resumes
    runs = [run for run in await session.control.crawls() if run.live and run.retry_of in resumes]
    said = [await unfinished_retry(session, run) for run in runs]
    return tuple(words for words in said if words)


async def unfinished_retry(session: Session, run: Crawl) -> str:
    """Describe how many URLs a retry must still request. Returns "" if `run` is no retry."""
    if run.retry_of is None:
        return ""
    done = (await session.control.status(run.id)).counters.done
    urls = text.plural(max(0, len(run.references) - done), "URL")
    on_stack = session.place.billed
    then = f"`orbweaver status {run.id} --watch`" if on_stack else commands_of_retry(run)
    return f"{run.id} has {urls} to request: {then}"


def _examples(lines: Sequence[str], number: int, crawl: Crawl) -> list[str]:
    """Return the first `EXAMPLES` lines, and a line with how many of `number` are not shown."""
    shown = [*lines[:EXAMPLES]]
    if (more := number - len(shown)) > 0 and shown:
        shown.append(f"  and {more:,} more: orbweaver pages {crawl.id}")
    return shown


async def _has_pages(session: Session, crawl: Crawl) -> bool:
    for run in crawl.resumes:
        total = (await session.control.status(run)).counters.total
        if any(total.get(outcome) for outcome in SUCCESSES):
            return True
    return False


async def _failed_seeds(session: Session, crawl: Crawl) -> AsyncIterator[str]:
    seeds = frozenset(crawl.references)
    records = session.control.pages(crawl)
    async with closing(records):
        async for record in records:
            if record.url in seeds and record.outcome in (Outcome.FAILED, Outcome.SKIPPED):
                yield _ending(record)


def _ending(record: PageRecord) -> str:
    return f"  {text.cut(record.url, URL_CHARS_MAX)}: {_why(record)}"


def _why(record: PageRecord) -> str:
    return text.clean(record.error or record.reason.means)


async def left_behind(session: Session, crawl: Crawl) -> str | None:
    """Describe the state of a crawl when a command stops watching it. None: it is unknown."""
    try:
        async with asyncio.timeout(PAUSE_S):
            crawl = await session.control.find(crawl.id)
    except (PortError, TimeoutError):
        return None
    match crawl.state:
        case State.PAUSED:
            return f"{crawl.id} is paused: orbweaver resume {crawl.id}"
        case State.FINISHED:
            return f"{crawl.id} is finished: orbweaver status {crawl.id}"
        case state if session.place.idle:
            return f"{crawl.id} is {state}, and no worker runs"
        case State.STOPPING:
            return f"{crawl.id} is stopping: orbweaver status {crawl.id} --watch"
    return f"{crawl.id} continues: orbweaver status {crawl.id} --watch"


def give_up(
    view: View,
    around: CliContext,
    display: Display,
    written: ExportResult | None = None,
    option: str = "",
) -> int:
    """Report that a crawl is stalled, its files and the fix. Return the exit code.

    `option` names the stack or store in the suggested commands.
    """
    display.close()
    crawl, counters, depths = (
        view.reading.status.crawl,
        view.reading.status.counters,
        view.reading.depths,
    )
    dead = depths.dead if depths is not None else 0
    number = counters.claimed - counters.done
    missing = f"{text.plural(number, 'URL')} {'has' if number == 1 else 'have'} no outcome"
    around.note(f"{crawl.id} is stalled: nothing is queued, and {missing}")
    if dead:
        messages = text.plural(dead, "message")
        around.note(f"{messages} on the dead-letter queue: it continues after they are redriven")
        around.note(f"  orbweaver dlq list{option}", f"  orbweaver dlq redrive --all{option}")
    if isinstance(display, JsonDisplay):
        display.put({**crawl_summary.result(view, written, STALLED), "stalled": True})
    elif written is not None:
        around.write("", *crawl_summary.lines(view, written, ""))
    return STALLED


def timed(
    work: Coroutine[Any, Any, int],
    watched: Callable[[], str | None],
    around: CliContext,
    display: Display,
    left: Callable[[], str | None] = lambda: None,
) -> int:
    """Run a command that watches a crawl. Ctrl-C ends the command, but not the crawl.

    `watched` returns the crawl's id, if it is known. `left` describes the state of the crawl when
    the command ends, if it is known.
    """
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        display.close()
        crawl_id = watched()
        again = " ".join(filter(None, ("orbweaver status", crawl_id, "--watch")))
        around.note(left() or f"{crawl_id or 'the crawl'} continues: {again}")
        put_interrupted(display, crawl_id)
        return INTERRUPTED
    except Stalled as stalled:
        return give_up(stalled.view, around, display)
    finally:
        display.close()


def put_interrupted(display: Display, crawl_id: str | None) -> None:
    if isinstance(display, JsonDisplay):
        display.put({"type": "result", "crawl": crawl_id, "interrupted": True})


def ended_early(
    error: BaseException, running: RunState, around: CliContext, display: Display
) -> int:
    """Report why a command ended before its crawl. Return the exit code.

    Raises BrokenPipeError again.
    """
    if isinstance(error, Stalled):
        return give_up(error.view, around, display)
    if isinstance(error, BrokenPipeError):  # the reader of the output is gone
        around.note(*_how_to_go_on(running))
        raise error
    display.close()
    around.note(*_how_to_go_on(running))
    put_interrupted(display, running.crawl)
    return INTERRUPTED


def _how_to_go_on(running: RunState) -> list[str]:
    """Return the state of an interrupted command's crawl, and the commands that continue it."""
    if running.crawl is None:
        if running.may_have_begun:
            return ["interrupted while the crawl began: the same command starts or continues it"]
        return [NONE_BEGUN]
    if running.state is State.FINISHED:
        export = f"{running.before}orbweaver export --crawl {running.crawl}{running.option}"
        return [f"{running.crawl} has finished; to write its files again: {export}"]
    paused = running.state is State.PAUSED
    return [
        f"interrupted: {running.crawl} is {'paused' if paused else 'not finished'}",
        "run the same command again to continue it; to inspect or cancel it:",
        f"  {running.before}orbweaver status {running.crawl}{running.option}",
        f"  {running.before}orbweaver cancel {running.crawl}{running.option}",
    ]
