"""`crawl` and `start`: start a crawl from arguments. `crawl` also waits and writes its files.

When `crawl` ends, no process continues in the background. If the command is interrupted, it pauses
the crawl. The same command then continues the crawl.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from orbweaver.cli import export_files, text
from orbweaver.cli.commands import custom
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import OPTIONS
from orbweaver.cli.crawl_plan import plan_of
from orbweaver.cli.exit_codes import NOT_WRITTEN, OK, UsageError, WriteError
from orbweaver.cli.live.display import Display, JsonDisplay
from orbweaver.cli.proxy_options import proxies_given, proxies_of, trouble_of_seed
from orbweaver.cli.session import RunState, Session, Stalled, chosen, opened, store_session
from orbweaver.cli.stack import ENDPOINT, PORT, StackPlace, port_option, settings_from
from orbweaver.cli.store import opened_store, option_again, store_of
from orbweaver.cli.trust_files import check_files, check_stack_has_files
from orbweaver.control.continuation import Continue, Refuse, Replace, Start
from orbweaver.control.crawl_control import with_unused_id
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.control.spec_checks import crawl_of, keyed, unused_logins
from orbweaver.fetching.proxy_config import DIRECT, ProxyConfig
from orbweaver.model.auth import auth_for
from orbweaver.model.crawl import Crawl, State, first_hosts
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.errors import PortError
from orbweaver.model.http_exchange import Failure
from orbweaver.model.settings import workers_for
from orbweaver.model.url import host_of
from orbweaver.model.value import positional_value_class

AWS = "aws"


def checked(plan: CrawlSpec, around: CliContext) -> Crawl:
    """Build the crawl of a plan. Raises UsageError for an invalid plan, before a crawl starts."""
    try:
        crawl = crawl_of(plan, around.clock.now_ms())
    except PlanError as error:
        raise UsageError(f"{OPTIONS.get(error.field, error.field)}: {error}") from error
    check_files(plan, OPTIONS)
    return crawl


def check_needs_no_login(crawl: Crawl, url: str, command: str) -> None:
    """Raise UsageError if a definition has a login for a URL. Only crawls log in."""
    if auth_for(crawl.auth, url) is not None:
        fix = "crawl, or save the page and give the file to `orbweaver extract`"
        raise UsageError(f"{command} does not log in at {host_of(url)}: {fix}")


# --- crawl --------------------------------------------------------------------------------------


def crawl(arguments: Namespace, around: CliContext) -> int:
    """Run a crawl on this machine, in a store or a stack on an emulator, and write its files."""
    display, running = around.display(arguments), RunState()
    try:
        plan = plan_of(arguments, around)
        wanted, context = _checked(plan, arguments, around)
        folder = store_of(arguments, around.folder, around.environment, makes=True)
        work = _on_stack if folder is None else partial(_on_store, folder)
        return work(CrawlCommand(plan, wanted, context, arguments), around, display, running)
    except (KeyboardInterrupt, BrokenPipeError, Stalled) as error:
        from orbweaver.cli.crawl_end import ended_early

        return ended_early(error, running, around, display)
    except WriteError as error:
        display.close()
        export = f"orbweaver export --crawl {running.crawl}{running.option} --out DIR"
        again = f"{running.before}{export}"
        kept = f"{running.crawl} has ended and its records are kept; make room, then: {again}"
        around.note(str(error), kept)
        if isinstance(display, JsonDisplay):
            body = {"type": "result", "crawl": running.crawl, "error": str(error)}
            display.put({**body, "exit_code": NOT_WRITTEN})
        return NOT_WRITTEN
    finally:
        display.close()


@positional_value_class
class CrawlCommand:
    """A requested crawl: plan, the crawl built from the plan, and context keys for its stack."""

    plan: CrawlSpec
    wanted: Crawl
    context: Mapping[str, str]
    arguments: Namespace


def _on_store(
    folder: Path, asked: CrawlCommand, around: CliContext, display: Display, running: RunState
) -> int:
    """Crawl in a store, with workers in this process and in further processes.

    The further processes work from the start if the user gave their number, otherwise as soon as
    this process has work for them.
    """
    from orbweaver.app.further_processes import further_processes
    from orbweaver.app.store_runner import check_others, store_settings
    from orbweaver.app.wiring import keep_made

    running.option = option_again(asked.arguments.store)
    extractor = asked.context.get("extractor", "")
    works = asked.arguments.workers or workers_for(asked.wanted.pages_max)
    settings = store_settings(around.environment, extractor)
    proxies = proxies_of(asked.arguments, around, settings)
    check_others(folder, proxies)
    begun = further_processes(works - 1, folder, settings, around.environment, proxies)
    with begun as further:
        further.warn = display.warn
        if unreached := _unreached(asked.wanted, around, proxies):
            return _cannot_begin(unreached, around, display)

        async def go() -> int:
            left: Counter[str] = Counter()
            open_it = partial(opened_store, folder, around.environment, extractor=extractor)
            opening = open_it(works=works, further=further, left_in_work=left, proxies=proxies)
            async with opening as ports:
                if asked.arguments.workers:
                    further.begin()
                keep_made()
                session = store_session(ports, works=True, left_in_work=left)
                running.release = further.release
                return await _crawl(session, asked.plan, asked.arguments, around, display, running)

        return asyncio.run(go())


def _on_stack(asked: CrawlCommand, around: CliContext, display: Display, running: RunState) -> int:
    """Crawl in a stack on an emulator, with the workers of the stack."""
    wanted, arguments = asked.wanted, asked.arguments
    if proxies_given(arguments):
        fix = "name them in its secret, `-c proxy_secret=NAME` (docs/proxies.md)"
        raise UsageError(f"--proxy and --proxy-list are for a store, and this is a stack: {fix}")
    check_stack_has_files(asked.plan)
    if arguments.target == AWS:
        raise UsageError(
            f"crawl runs on this machine only: use `orbweaver start --target {AWS} --wait`"
        )
    if not around.machine.local() and (unreached := _unreached(wanted, around)):
        return _cannot_begin(unreached, around, display)
    port = PORT if arguments.port is None else arguments.port
    with around.machine.running_stack(port, display.say, asked.context) as stood:
        settings = settings_from(stood.outputs, around.machine, stood.environment)
        custom.check_deployed(settings, wanted.items, f"give {custom.OPTION} FILE")
        running.option = port_option(urlsplit(stood.environment[ENDPOINT]).port or 0)
        if stood.started:
            running.before = f"orbweaver local up{running.option} && "
        elif not settings.names.proxy_secret and (unreached := _unreached(wanted, around)):
            return _cannot_begin(unreached, around, display)

        async def go() -> int:
            async with opened(around, settings, stood.environment) as session:
                return await _crawl(session, asked.plan, arguments, around, display, running)

        return asyncio.run(go())


def _checked(
    plan: CrawlSpec, arguments: Namespace, around: CliContext
) -> tuple[Crawl, dict[str, str]]:
    """Check all options before a crawl starts. Return the crawl and the stack's context keys."""
    wanted = checked(plan, around)
    arguments.files_asked = arguments.format is not None or arguments.out is not None
    arguments.file = None
    if arguments.out is not None:
        from orbweaver.cli.one_file import one_file

        place = around.folder / arguments.out
        arguments.file = one_file(arguments.out, place, arguments.format)
    arguments.format = arguments.format or export_files.FORMATS
    if "warc" in arguments.format and wanted.bodies is Bodies.OFF:
        raise UsageError("--format: warc needs bodies, and this crawl stores none (bodies: off)")
    context = custom.context_of(arguments.extractor, around, wanted.items)
    folder = around.folder / (arguments.out or export_files.OUT)
    if arguments.file is not None:
        folder = folder.parent
    elif arguments.out is not None:
        export_files.check_folder(folder, wanted.name)
    export_files.check_writable(folder)
    return wanted, context


def _unreached(
    wanted: Crawl, around: CliContext, proxies: ProxyConfig | None = None
) -> list[tuple[str, Failure]]:
    """Return seeds with the failures of their servers, or [] if at least one can be reached.

    Only the first few servers are tried. The test only connects and sends no request, so it needs
    no slot of the hosts. If a server has `proxies`, only these are tried.
    """
    reach = partial(trouble_of_seed, wanted, proxies or DIRECT, around)
    first = {host_of(url): url for url in reversed(wanted.references)}
    tried = [first[host] for host in first_hosts(wanted.references)]

    async def try_all() -> list[Failure | None]:
        return await asyncio.gather(*map(reach, tried))

    found = asyncio.run(try_all())
    failed = [(url, failure) for url, failure in zip(tried, found, strict=True) if failure]
    return failed if len(failed) == len(found) else []


def _cannot_begin(
    unreached: list[tuple[str, Failure]], around: CliContext, display: Display
) -> int:
    from orbweaver.cli.causes import code_of

    display.close()
    why = [f"{url} cannot be reached: {failure.detail}" for url, failure in unreached]
    around.note(*map(text.clean, why), "nothing was crawled")
    code = code_of(unreached[0][1].reason)
    if isinstance(display, JsonDisplay):
        body = {"type": "result", "crawl": None, "error": "; ".join(why)}
        display.put({**body, "exit_code": code})
    return code


async def _crawl(
    session: Session,
    plan: CrawlSpec,
    arguments: Namespace,
    around: CliContext,
    display: Display,
    running: RunState,
) -> int:
    stalled: Stalled | None = None
    running.may_have_begun = True
    try:
        begun = await _begun_or_none(session, plan, arguments, display)
        if begun is None:
            from orbweaver.cli.outdated_pages import NO_PAGES

            display.say(NO_PAGES)
            return OK
        running.crawl = begun.id
        display.say(f"crawl {begun.id}")
        view = await session.watch(begun.id, display)
    except Stalled as error:
        # A dead letter prevents the end of its crawl. The files of the stored pages are written
        # anyway.
        stalled, view = error, error.view
    except (asyncio.CancelledError, BrokenPipeError):
        await _pause(session, plan, arguments, running)
        raise
    running.state = view.crawl.state
    running.release()
    # An import at the top of this module would delay the first request.
    from orbweaver.cli import crawl_end
    from orbweaver.cli.outdated_pages import outdated_pages

    written = await crawl_end.write_at_end(session, view, arguments, around, display)
    if stalled is not None:
        return crawl_end.give_up(view, around, display, written, running.option)
    ended = await crawl_end.ended_crawl(session, view)
    display.close()
    ended = replace(
        ended,
        written=written,
        before=running.before,
        used_by=await crawl_end.runs_with_pages(session, view),
        earlier=await crawl_end.earlier_files(session, view, around.folder, running),
        retries=await crawl_end.unfinished_retries(session, view),
        outdated=await outdated_pages(session, plan, is_refetch=arguments.refetch is not None),
    )
    return crawl_end.conclude(ended, arguments.fail_above, around, display)


async def _begun_or_none(
    session: Session, plan: CrawlSpec, arguments: Namespace, display: Display
) -> Crawl | None:
    """Begin or continue a crawl. None: a refetch has nothing to request."""
    if arguments.refetch is None:
        return await _begin(session, plan, display)
    runs = await session.control.refetch(plan)
    _say_others(display, runs[1:])
    return runs[0] if runs else None


async def _pause(
    session: Session, plan: CrawlSpec, arguments: Namespace, running: RunState
) -> None:
    """Pause the crawl of an interrupted command, if the command stored one."""
    if running.crawl is None:
        if arguments.refetch is not None:  # a plan does not identify runs of a refetch
            return
        decision = await session.decision_after_interrupt(plan)
        running.may_have_begun = decision is None
        if not isinstance(decision, Continue):
            return
        running.crawl = decision.run.id
    running.state = await session.pause(running.crawl)


async def _begin(session: Session, plan: CrawlSpec, display: Display) -> Crawl:
    """Start a crawl, or continue the unfinished run that has the same seeds."""
    decision = await session.control.decide(plan, busy=session.place.has_others)
    match decision:
        case Start(beside=beside):
            for run in beside:
                from orbweaver.cli.crawl_end import unfinished_retry

                seeds = f"{run.id}, with the same name and other seeds, has not finished"
                display.say(await unfinished_retry(session, run) or seeds)
            begun, is_new = await _started(session, plan, display.say)
            if not is_new:  # the same command started at the same time
                from orbweaver.cli.live.lines import joined

                display.say(joined(begun, session.place.others))
            return begun
        case Continue(run=run, changes=changes):
            from orbweaver.cli.live.lines import joined

            is_running = run.state is State.RUNNING
            joins = is_running and session.place.has_others()
            gone = f"continuing {run.id}, which had not finished"
            display.say(joined(run, session.place.others) if joins else gone)
            if is_running and not joins:
                display.say(await _left_behind(session, run))
            for key, was, now in changes:
                display.say(f"  {key}: {_value(was)} -> {_value(now)}")
            silent_ms = 0 if joins else session.place.silent_ms
            return await session.control.execute(plan, decision, silent_ms=silent_ms)
        case Replace(run=run, keys=keys):
            why = f"had another {', '.join(keys)}" if keys else "was cancelled"
            display.say(f"{run.id} had not finished and {why}: it ends, and a new run continues it")
        case Refuse():
            pass
    begun = await session.control.execute(plan, decision)
    _say_continued(begun, display.say)
    return begun


async def _left_behind(session: Session, run: Crawl) -> str:
    """Describe the progress of a run whose workers died, and how many pages it requests again."""
    counters = (await session.control.status(run.id)).counters
    done = f"  {counters.done:,} of {counters.claimed:,} known URLs are done"
    if not (left := session.place.left_in_work.get(run.id, 0)):
        return done
    return f"{done}; up to {text.plural(left, 'page')} in work are requested again"


def _value(value: object) -> str:
    return "none" if value is None else str(value)


async def _started(
    session: Session, plan: CrawlSpec, say: Callable[[str], None]
) -> tuple[Crawl, bool]:
    """Start a crawl and report which earlier runs it continues. False: it existed already."""
    begun, is_new = await session.control.begin(plan)
    for words in unused_logins(begun):
        say(f"warning: {words}")
    _say_continued(begun, say)
    return begun, is_new


def _say_continued(begun: Crawl, say: Callable[[str], None]) -> None:
    """Report the runs that a new run continues."""
    if begun.resumes:
        from orbweaver.cli.live.lines import gone_on

        say(f"continuing {gone_on(begun)}")


def _say_others(display: Display, runs: Sequence[Crawl]) -> None:
    """Report further runs of a refetch, which this command does not watch.

    Many pages need several runs, because the seeds of one run are limited.
    """
    for run in runs:
        display.say(f"{run.id} requests more of them: `orbweaver status {run.id} --watch`")


# --- start --------------------------------------------------------------------------------------


def start(arguments: Namespace, around: CliContext) -> int:
    """Start a crawl and print its id. With --wait, show progress until it ends."""
    from orbweaver.cli import crawl_end
    from orbweaver.cli.outdated_pages import NO_PAGES, outdated_pages

    plan = _named(plan_of(arguments, around), arguments)
    wanted = checked(plan, around)
    # The id is set before the start, so that the user can complete an interrupted start.
    given, plan = plan.id, replace(plan, id=wanted.id)
    display, running = around.display(arguments), RunState()

    async def go() -> int:
        nonlocal plan
        async with chosen(arguments, around, writes=True) as session:
            custom.check_deployed(session.settings, wanted.items, custom.FIX)
            if isinstance(session.place, StackPlace):
                check_stack_has_files(plan)
            if given is None:
                # An ended run can have the same id, if it started in the same second.
                plan = replace(plan, id=with_unused_id(wanted, await session.control.crawls()).id)
            running.crawl = plan.id
            try:
                if arguments.refetch is not None:
                    runs = await session.control.refetch(plan)
                    around.write(*(run.id for run in runs))
                    around.note(NO_PAGES if not runs else f"requested again: {_urls(runs)}")
                    return OK
                begun, _ = await _started(session, plan, around.note)
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
            around.note(*await outdated_pages(session, plan))
            if not arguments.wait:
                around.note(f"watch it with: orbweaver status {begun.id} --watch")
                from orbweaver.control.schedule import recurrence_in

                if recurrence_in(plan) is not None:
                    again = f"orbweaver schedule put --config {arguments.config}"
                    around.note(f"this is a single run; to repeat it on a schedule: {again}")
                return OK
            view = await session.watch(begun.id, display)
            ended = await crawl_end.ended_crawl(session, view)
            display.close()
            return crawl_end.conclude(ended, arguments.fail_above, around, display)

    return crawl_end.timed(
        go(),
        lambda: running.crawl,
        around,
        display,
        lambda: None if running.crawl else crawl_end.NONE_BEGUN,
    )


def _urls(runs: Sequence[Crawl]) -> str:
    return text.plural(sum(len(run.references) for run in runs), "page")


def _named(plan: CrawlSpec, arguments: Namespace) -> CrawlSpec:
    """Derive a run's id from the idempotency key, if the user gave one."""
    key = arguments.idempotency_key
    try:
        return plan if key is None else keyed(plan, key)
    except PlanError as error:
        raise UsageError(f"{OPTIONS[error.field]}: {error}") from error
