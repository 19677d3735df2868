"""`crawl` and `start`: from arguments to a crawl that runs, or to the files of an ended one.

`crawl` keeps nothing running that it started. When it is interrupted it pauses the crawl, so that
no site is asked behind the person's back; the same command again goes on from there.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from urllib.parse import urlsplit

from orbweaver.cli import crawl_options, export_files, text
from orbweaver.cli.command import (
    PORT_HELP,
    WORKERS,
    Command,
    add_formats,
    json_option,
    option,
    out_option,
    stack_options,
    store_option,
    together,
)
from orbweaver.cli.commands import custom
from orbweaver.cli.commands.init_check import plan_of
from orbweaver.cli.crawl_end import (
    Ended,
    conclude,
    give_up,
    pause,
    put_interrupted,
    timed,
    without_pages,
)
from orbweaver.cli.crawl_options import OPTIONS
from orbweaver.cli.exit_codes import FAILED, INTERRUPTED, OK, UsageError
from orbweaver.cli.export_files import Written
from orbweaver.cli.live.display import Display, JsonDisplay
from orbweaver.cli.live.lines import gone_on
from orbweaver.cli.one_file import one_file, shown_as, write_one
from orbweaver.cli.session import Session, Stalled, Surroundings, chosen, opened, store_session
from orbweaver.cli.stack import ENDPOINT, PORT, port_option, settings_from
from orbweaver.cli.store import (
    has_workers,
    opened_store,
    option_again,
    pages_left_in_work,
    store_of,
)
from orbweaver.control.continuation import Continue, Refuse, Replace, Start
from orbweaver.control.crawl_control import renamed
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.control.progress.status import nothing_new
from orbweaver.control.schedule import recurrence_in
from orbweaver.control.spec_checks import crawl_of, keyed
from orbweaver.frontier.refetch import MISSING
from orbweaver.model.crawl import Crawl, State, first_hosts
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.errors import PortError
from orbweaver.model.settings import workers_for
from orbweaver.model.url import host_of

AWS = "aws"
NOTHING_LACKS = "no page of an earlier run lacks its text or body: there is nothing to ask for"


@dataclass(slots=True)
class Running:
    """What has come into being, for the words on how to go on."""

    crawl: str | None = None
    paused: bool = False
    # What has to be run before the crawl can be asked about, and the option that names its stack.
    before: str = ""
    option: str = ""


def checked(plan: CrawlSpec, around: Surroundings) -> Crawl:
    """Make the crawl that a plan asks for, to find mistakes before anything is started."""
    try:
        return crawl_of(plan, around.clock.now_ms())
    except PlanError as error:
        raise UsageError(f"{OPTIONS.get(error.field, error.field)}: {error}") from error


# --- crawl --------------------------------------------------------------------------------------


def crawl(arguments: Namespace, around: Surroundings) -> int:
    """Crawl on this machine, from start to files: on a store, or on a stack on an emulator."""
    plan = plan_of(arguments, around)
    wanted, context = _checked(plan, arguments, around)
    folder = store_of(arguments, around.folder, around.environment, makes=True)
    display = around.display(arguments)
    running = Running()
    work = _on_stack if folder is None else partial(_on_store, folder)
    try:
        return work(CrawlCommand(plan, wanted, context, arguments), around, display, running)
    except KeyboardInterrupt:
        display.close()
        _say_how_to_go_on(around, display, running)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of its output is gone
        around.note(*_how_to_go_on(running))
        raise
    except Stalled as stalled:
        return give_up(stalled.view, around, display)
    except export_files.Unwritten as error:
        display.close()
        export = f"orbweaver export --crawl {running.crawl}{running.option} --out DIR"
        again = f"{running.before}{export}"
        kept = f"{running.crawl} has ended and its records are kept; make room, then: {again}"
        around.note(str(error), kept)
        if isinstance(display, JsonDisplay):
            display.put({"type": "result", "crawl": running.crawl, "error": str(error)})
        return FAILED
    finally:
        display.close()


@dataclass(frozen=True, slots=True)
class CrawlCommand:
    """A crawl that is asked for: as planned, as it would be, and what its stack is to have."""

    plan: CrawlSpec
    wanted: Crawl
    context: Mapping[str, str]
    arguments: Namespace


def _on_store(
    folder: Path, asked: CrawlCommand, around: Surroundings, display: Display, running: Running
) -> int:
    """Crawl with workers of this process, and with further processes.

    These take as long to start as this one to look whether there is anything to crawl.
    """
    from orbweaver.app.store_runner import further_processes, store_settings
    from orbweaver.app.wiring import keep_made

    running.option = option_again(asked.arguments.store)
    extractor = asked.context.get("extractor", "")
    works = asked.arguments.workers or workers_for(asked.wanted.pages_max)
    busy = has_workers(folder)
    settings = store_settings(around.environment, extractor)
    with further_processes(works - 1, folder, settings) as further:
        if unreached := _unreached(asked.wanted, around):
            return _cannot_begin(unreached, around, display)

        async def go() -> int:
            left = {} if busy else await pages_left_in_work(folder, around.environment)
            opening = opened_store(
                folder, around.environment, works=works, extractor=extractor, further=further
            )
            async with opening as ports:
                keep_made()
                session = store_session(ports, works=True, busy=busy, left_in_work=left)
                return await _crawl(session, asked.plan, asked.arguments, around, display, running)

        return asyncio.run(go())


def _on_stack(asked: CrawlCommand, around: Surroundings, display: Display, running: Running) -> int:
    """Crawl with the workers of a stack on an emulator."""
    wanted, arguments = asked.wanted, asked.arguments
    if arguments.target == AWS:
        raise UsageError(f"crawl works on this machine: `orbweaver start --target {AWS} --wait`")
    if not around.machine.local() and (unreached := _unreached(wanted, around)):
        return _cannot_begin(unreached, around, display)
    port = PORT if arguments.port is None else arguments.port
    with around.machine.standing(port, display.say, asked.context) as stood:
        settings = settings_from(stood.outputs, around.machine, stood.environment)
        custom.check_deployed(settings, wanted.items, f"give {custom.OPTION} FILE")
        running.option = port_option(urlsplit(stood.environment[ENDPOINT]).port or 0)
        if stood.started:
            running.before = f"orbweaver local up{running.option} && "
        elif not settings.proxy_secret and (unreached := _unreached(wanted, around)):
            return _cannot_begin(unreached, around, display)

        async def go() -> int:
            async with opened(around, settings, stood.environment) as session:
                return await _crawl(session, asked.plan, arguments, around, display, running)

        return asyncio.run(go())


def _checked(
    plan: CrawlSpec, arguments: Namespace, around: Surroundings
) -> tuple[Crawl, dict[str, str]]:
    """Look at all that can be wrong before anything is started; the crawl, and its stack's keys."""
    wanted = checked(plan, around)
    arguments.files_asked = arguments.format is not None or arguments.out is not None
    arguments.file = None
    if arguments.out is not None:
        place = around.folder / arguments.out
        arguments.file = one_file(arguments.out, place, arguments.format)
    arguments.format = arguments.format or export_files.FORMATS
    if "warc" in arguments.format and wanted.bodies is Bodies.OFF:
        raise UsageError("--format: warc holds bodies, and this crawl stores none (bodies: off)")
    context = custom.context_of(arguments.extractor, around, wanted.items)
    folder = around.folder / (arguments.out or export_files.OUT)
    if arguments.file is not None:
        folder = folder.parent
    elif arguments.out is not None:
        export_files.check_folder(folder, wanted.name)
    export_files.check_writable(folder)
    return wanted, context


def _unreached(wanted: Crawl, around: Surroundings) -> list[str]:
    """Say why none of the servers that a crawl begins at can be reached; nothing if one can.

    Of many the first few are tried. No request is made, so nothing is asked outside of a slot.
    """
    reach = around.reach
    if reach is None:
        return []
    first = {host_of(url): url for url in reversed(wanted.references)}
    tried = [first[host] for host in first_hosts(wanted.references)]

    async def try_all() -> list[str | None]:
        return await asyncio.gather(*map(reach, tried))

    found = asyncio.run(try_all())
    if None in found:
        return []
    return [f"{url} cannot be reached: {why}" for url, why in zip(tried, found, strict=True)]


def _cannot_begin(unreached: list[str], around: Surroundings, display: Display) -> int:
    display.close()
    around.note(*map(text.clean, unreached), "nothing was crawled")
    if isinstance(display, JsonDisplay):
        body = {"type": "result", "crawl": None, "error": "; ".join(unreached)}
        display.put({**body, "exit_code": FAILED})
    return FAILED


async def _crawl(
    session: Session,
    plan: CrawlSpec,
    arguments: Namespace,
    around: Surroundings,
    display: Display,
    running: Running,
) -> int:
    if arguments.refetch is None:
        begun = await _begin(session, plan, display)
    else:
        runs = await session.control.refetch(plan)
        if not runs:
            display.say(NOTHING_LACKS)
            return OK
        begun, *others = runs
        if others:
            _say_others(display, others)
    running.crawl = begun.id
    stalled: Stalled | None = None
    try:
        display.say(f"crawl {begun.id}")
        view = await session.watch(begun.id, display)
    except Stalled as error:
        # A dead letter holds up the end of its crawl, and not the files of what there is.
        stalled, view = error, error.view
    except (asyncio.CancelledError, BrokenPipeError):
        running.paused = await pause(session, begun.id)
        raise
    written: Written | None = None
    exported: Crawl | None = view.crawl
    if nothing_new(view):
        # Files that the user asked for hold what an earlier run has stored.
        exported = await _stored_run(session, begun) if arguments.files_asked else None
    if exported is not None:
        written = await _written(session, exported, arguments, around, display)
    if stalled is not None:
        return give_up(view, around, display, written, running.option)
    why = await without_pages(session, view)
    display.close()
    ended = Ended(view=view, written=written, why=why, before=running.before)
    return conclude(ended, arguments.fail_above, around, display)


async def _written(
    session: Session, crawl: Crawl, arguments: Namespace, around: Surroundings, display: Display
) -> Written:
    """Write the files of a crawl that has ended, or one file if --out names it."""
    if arguments.file is not None:
        written = await write_one(session, crawl, arguments.file)
        return shown_as(written, arguments.out)
    folder: Path = arguments.out or export_files.OUT / crawl.id
    wanted = export_files.FilesWanted(
        folder=around.folder / folder, formats=arguments.format, say=display.say
    )
    return replace(await export_files.export_crawl(session, crawl, wanted), folder=folder)


async def _stored_run(session: Session, begun: Crawl) -> Crawl | None:
    """Find the last run of a crawl's name that fetched something; None if no run has."""
    run, _ = await session.control.telling(begun.name)
    return None if run.id == begun.id else run


async def _begin(session: Session, plan: CrawlSpec, display: Display) -> Crawl:
    """Start a crawl, or continue the unfinished run that has the same seeds."""
    decision = await session.control.decide(plan, busy=session.place.busy)
    match decision:
        case Start(beside=beside):
            for run in beside:
                display.say(f"{run.id}, of the same name and with other seeds, has not finished")
            return await _started(session, plan, display.say)
        case Continue(run=run, changes=changes):
            display.say(f"continuing {run.id}, which had not finished")
            if run.state is State.RUNNING and not session.place.busy:
                display.say(await _left_behind(session, run))
            for key, was, now in changes:
                display.say(f"  {key}: {_value(was)} -> {_value(now)}")
            return await session.control.take_up(plan, decision)
        case Replace(run=run, keys=keys):
            why = f"had another {', '.join(keys)}" if keys else "was cancelled"
            display.say(f"{run.id} had not finished and {why}: it ends, and a new run continues it")
        case Refuse():
            pass
    begun = await session.control.take_up(plan, decision)
    await _say_continued(session, begun, display.say)
    return begun


async def _left_behind(session: Session, run: Crawl) -> str:
    """Say how far a run came whose workers are gone, and what is requested again."""
    counters = (await session.control.status(run.id)).counters
    done = f"  {counters.done:,} of {counters.claimed:,} known URLs are done"
    if not (left := session.place.left_in_work.get(run.id, 0)):
        return done
    return f"{done}; up to {text.plural(left, 'page')} in work are requested again"


def _value(value: object) -> str:
    return "none" if value is None else str(value)


async def _started(session: Session, plan: CrawlSpec, say: Callable[[str], None]) -> Crawl:
    """Start a crawl, and say which earlier runs it goes on from."""
    begun = await session.control.start(plan)
    await _say_continued(session, begun, say)
    return begun


async def _say_continued(session: Session, begun: Crawl, say: Callable[[str], None]) -> None:
    """Say which earlier runs a run continues, and which of their pages lack something."""
    if begun.resumes:
        say(f"continuing {gone_on(begun)}")
    if lacking := await session.control.lacking(begun):
        say(_lacking(lacking))


def _lacking(pages: int) -> str:
    """Say what the window leaves without text or bodies, and how it gets them."""
    return (
        f"{text.plural(pages, 'page')} of earlier runs were stored without the text or bodies that"
        f" are wanted now, and are not asked for again: --refetch {MISSING} does that, for these"
        " alone"
    )


def _say_others(display: Display, runs: Sequence[Crawl]) -> None:
    """Name the runs that are not watched here, where one run cannot begin at so many pages."""
    for run in runs:
        display.say(f"{run.id} asks for more of them: `orbweaver status {run.id} --watch`")


def _say_how_to_go_on(around: Surroundings, display: Display, running: Running) -> None:
    around.note(*_how_to_go_on(running))
    put_interrupted(display, running.crawl)


def _how_to_go_on(running: Running) -> list[str]:
    if running.crawl is None:
        return ["interrupted"]
    return [
        f"interrupted: {running.crawl} is {'paused' if running.paused else 'not finished'}",
        "the same command again goes on with it; to look at it or to end it:",
        f"  {running.before}orbweaver status {running.crawl}{running.option}",
        f"  {running.before}orbweaver cancel {running.crawl}{running.option}",
    ]


# --- start --------------------------------------------------------------------------------------


def start(arguments: Namespace, around: Surroundings) -> int:
    """Start a crawl and print its id; with --wait, show it until it ends."""
    plan = _named(plan_of(arguments, around), arguments)
    wanted = checked(plan, around)
    # Named before it is created, so that a start that was cut short can be completed.
    given, plan = plan.id, replace(plan, id=wanted.id)
    display = around.display(arguments)

    async def go() -> int:
        nonlocal plan
        async with chosen(arguments, around, writes=True) as session:
            custom.check_deployed(session.settings, wanted.items, custom.FIX)
            if given is None:
                # Another of the same second may have ended.
                plan = replace(plan, id=renamed(wanted, await session.control.crawls()).id)
            try:
                if arguments.refetch is not None:
                    runs = await session.control.refetch(plan)
                    around.write(*(run.id for run in runs))
                    around.note(NOTHING_LACKS if not runs else f"asked again: {_urls(runs)}")
                    return OK
                begun = await _started(session, plan, around.note)
            except (PortError, asyncio.CancelledError):
                around.note(
                    f"the start of {plan.id} may be incomplete: add --id {plan.id} to repeat it"
                )
                raise
            if (off := await session.place.idle_workers()) is not None:
                around.note(off)
            if isinstance(display, JsonDisplay):
                display.put({"type": "started", "crawl": begun.id, "name": begun.name})
            else:
                around.write(begun.id)
            if not arguments.wait:
                around.note(f"watch it with: orbweaver status {begun.id} --watch")
                if recurrence_in(plan) is not None:
                    again = f"orbweaver schedule put --config {arguments.config}"
                    around.note(f"this is one run; to have it recur: {again}")
                return OK
            view = await session.watch(begun.id, display)
            why = await without_pages(session, view)
            display.close()
            return conclude(Ended(view=view, why=why), arguments.fail_above, around, display)

    return timed(go(), lambda: plan.id, around, display)


def _urls(runs: Sequence[Crawl]) -> str:
    return text.plural(sum(len(run.references) for run in runs), "page")


def _named(plan: CrawlSpec, arguments: Namespace) -> CrawlSpec:
    """Name a run after its key, if it has one."""
    key = arguments.idempotency_key
    try:
        return plan if key is None else keyed(plan, key)
    except PlanError as error:
        raise UsageError(f"{OPTIONS[error.field]}: {error}") from error


# --- options ------------------------------------------------------------------------------------


@cache
def _plan() -> ArgumentParser:
    plan = ArgumentParser(add_help=False)
    crawl_options.add_plan(plan.add_argument_group("what to crawl, and how").add_argument)
    return plan


_CRAWL_OPTIONS = together(
    WORKERS,
    option("--target local|aws", f"crawl with the stack on an emulator; {PORT_HELP}"),
    option("--port N", PORT_HELP),
    option("--extractor FILE", "a module with functions of your own, which [[items]] name"),
    add_formats,
)


def _start_options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--wait", action="store_true", help="show its progress until it ends")
    add("--id", help="name this run; starting it again completes the start")
    key = "the same key again is the same crawl, however often and from where it is started"
    add("--idempotency-key", metavar="KEY", help=key)


COMMANDS = (
    Command(
        name="crawl",
        help="crawl on this machine, from start to files",
        run=crawl,
        options=_CRAWL_OPTIONS,
        parents=(_plan, store_option, json_option, out_option),
    ),
    Command(
        name="start",
        help="start a crawl; prints its id",
        run=start,
        options=_start_options,
        parents=(_plan, stack_options, json_option),
    ),
)
