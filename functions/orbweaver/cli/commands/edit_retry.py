"""The commands `edit`, for a running crawl, and `retry`, for failed URLs."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orbweaver.cli import crawl_options, text
from orbweaver.cli.command import (
    STACK_JSON,
    answer,
    command,
    crawl_argument,
    group,
    log_options,
    option,
    progress_option,
    quiet_option,
    repeated,
)
from orbweaver.cli.commands.init_check import document_in, unfit
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_end import conclude, ended_crawl, timed
from orbweaver.cli.exit_codes import OK, UsageError
from orbweaver.cli.session import chosen
from orbweaver.control.definition import DefinitionError, DefinitionProblem, put_at
from orbweaver.control.definition_keys import KEYS, PATHS
from orbweaver.control.edits import differences
from orbweaver.model.crawl import Crawl, State

# The 5 s are the time within which workers reload a crawl's definition.
HOLDS = "it takes effect within 5 s, for later requests and links"


async def edit(arguments: Namespace, around: CliContext) -> int:
    parts = crawl_options.given(arguments)
    document: Any = {}
    lines: str | None = None
    if arguments.config is not None:
        document, lines, missing = document_in(arguments.config, around)
        if missing:
            raise _unfit(missing, parts)
    if isinstance(document, dict):
        for key in KEYS:
            if key.part in parts:
                put_at(document, key.path, key.codec.write(parts[key.part]))
    async with chosen(arguments, around) as session:
        was = await session.control.find(arguments.which)
        try:
            crawl = await session.control.edit(was.id, document, lines)
        except DefinitionError as error:
            raise _unfit(error.problems, parts) from error
    said = differences(was, crawl)
    told = {key: {"was": old, "is": new} for key, old, new in said}
    rows = [(key, f"{_word(old)} -> {_word(new)}") for key, old, new in said]
    body = {"type": "result", "crawl": crawl.id, "changed": told}
    answer(arguments, around, body, *text.table(rows))
    if not arguments.json:
        around.note(f"{crawl.id}: {HOLDS}" if said else f"{crawl.id} has these values already")
    return OK


def _unfit(problems: Sequence[DefinitionProblem], parts: dict[str, Any]) -> UsageError:
    """Build one error of all problems. It names `parts` by the options that the user gave."""
    named = {
        PATHS[part]: crawl_options.OPTIONS[part] for part in parts if part in crawl_options.OPTIONS
    }
    renamed = (replace(one, path=named.get(one.path, one.path)) for one in problems)
    return unfit("orbweaver edit", map(str, renamed))


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def retry(arguments: Namespace, around: CliContext) -> int:
    """Start runs that request failed URLs again. With --wait, process them and show progress."""
    display = around.display(arguments)
    watched, paused = f"the retry of {arguments.which}", False

    async def go() -> int:
        nonlocal watched, paused
        works = 1 if arguments.wait else 0
        async with chosen(arguments, around, works=works) as session:
            crawl = await session.control.newest_requesting(arguments.which)
            since_ms = session.ports.clock.now_ms()
            runs = await session.control.retry(
                crawl.id, reasons=arguments.reason, host=arguments.host
            )
            _say_begun(crawl, runs, since_ms, arguments, around)
            run = runs[-1] if runs else crawl
            if run.live and (off := await session.place.idle_workers(run)) is not None:
                around.note(off)
            code = OK
            for run in runs if arguments.wait else ():
                watched = run.id
                if run.state is State.PAUSED:
                    await session.control.resume(run.id)
                try:
                    view = await session.watch(run.id, display)
                except asyncio.CancelledError:
                    if not session.place.has_others():
                        paused = await session.pause(run.id) is State.PAUSED
                    raise
                ended = await ended_crawl(session, view)
                display.close()
                code = max(code, conclude(ended, None, around, display))
            return code

    again = "run the same command again to continue it"
    return timed(
        go(),
        lambda: watched,
        around,
        display,
        lambda: f"interrupted: {watched} is paused; {again}" if paused else None,
    )


def _say_begun(
    crawl: Crawl, runs: Sequence[Crawl], since_ms: int, arguments: Namespace, around: CliContext
) -> None:
    """Report the runs of a retry of `crawl`. Runs that started before `since_ms` are not new."""
    of = {"retry_of": crawl.id}
    begun = [
        {"type": "started", "crawl": run.id, "name": run.name, **of, "urls": len(run.references)}
        for run in runs
    ]
    none = {"type": "result", "crawl": crawl.id, "runs": []}
    answer(arguments, around, begun or none, *(run.id for run in runs))
    if arguments.json or (arguments.quiet and runs):
        return
    if runs:
        urls = sum(len(run.references) for run in runs)
        words = f"{text.plural(urls, 'URL')} of {crawl.id} in {text.plural(len(runs), 'run')}"
        if all(run.started_at_ms < since_ms for run in runs):
            words += ", already started"
        around.note(f"{words}: orbweaver status {runs[-1].id} --watch")
        return
    where = f" on {arguments.host}" if arguments.host else ""
    why = f" for {' or '.join(arguments.reason)}" if arguments.reason else ""
    so_far, then = "", "there is nothing to retry"
    if crawl.live:
        so_far, then = " so far", f"it has not ended: orbweaver status {crawl.id}"
        if crawl.retry_of is not None:
            then = (
                f"it already requests the failed URLs of {crawl.retry_of} again, and has not ended"
            )
            then += f": orbweaver status {crawl.id}"
    around.note(text.clean(f"nothing failed in {crawl.id}{where}{why}{so_far}: {then}"))


_CONFIG = "new definition; keys that cannot change must keep their values"
COMMANDS = (
    command(
        "edit",
        edit,
        crawl_argument(),
        option("--config FILE", _CONFIG),
        group("settings to change", crawl_options.add_changeable),
    ),
    command(
        "retry",
        retry,
        crawl_argument("id of a crawl, or a name (its newest run)"),
        repeated("--reason REASON", "only URLs that failed for this reason; may be repeated"),
        option("--host HOST", "only URLs of this host"),
        option("--wait", "show progress until it ends"),
        parents=(*STACK_JSON, progress_option, quiet_option, log_options),
    ),
)
