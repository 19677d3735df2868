"""Commands for dead letters: dlq list, show, redrive, purge.

What a command looks at is hidden from other readers while it runs, and put back at its end; while
a person is asked, nothing is held.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from typing import TYPE_CHECKING

from orbweaver.cli import dead_letter_text, text
from orbweaver.cli.command import STACK_JSON, actions, answer, command, option, together
from orbweaver.cli.exit_codes import FAILED, OK
from orbweaver.cli.session import Session, Surroundings, chosen
from orbweaver.control.crawl_control import ControlError
from orbweaver.frontier.dead_letters import (
    EVERYTHING,
    HOPELESS,
    NEW,
    UNKNOWN_CRAWL,
    DeadLetterSelection,
    grouped,
)

if TYPE_CHECKING:
    from orbweaver.control.dead_letter_admin import Undertaker

LIMIT = 10_000
RATE_PER_S = 50
SAY_MS = 3_000
_STAY = {
    HOPELESS: "can never succeed; --malformed sends them all the same",
    UNKNOWN_CRAWL: "of a crawl that does not exist",
    NEW: "that came meanwhile",
}


def dlq(arguments: Namespace, around: Surroundings) -> int:
    """List, show, send back or throw away dead letters."""
    if arguments.limit == 0:
        raise ControlError("orbweaver dlq: --limit: give 1 or more")
    match arguments.action:
        case "list":
            return asyncio.run(_list(arguments, around))
        case "show":
            return asyncio.run(_show(arguments, around))
        case "redrive":
            return asyncio.run(_redrive(arguments, around))
        case _:
            return _purge(arguments, around)


def _selection(arguments: Namespace) -> DeadLetterSelection:
    return DeadLetterSelection(reason=arguments.reason, host=arguments.host)


def _undertaker(session: Session) -> Undertaker:
    from orbweaver.control.dead_letter_admin import Undertaker

    ports = session.ports
    return Undertaker(
        dead_letters=ports.dead_letters,
        queue=ports.queue,
        crawls=ports.crawls,
        packs=ports.packs,
        clock=ports.clock,
    )


# --- list and show ------------------------------------------------------------------------------


async def _list(arguments: Namespace, around: Surroundings) -> int:
    async with chosen(arguments, around) as session:
        found = await _undertaker(session).find(_selection(arguments), limit=arguments.limit)
    groups = grouped(found.cases)
    if arguments.json:
        around.write(*(json.dumps(dead_letter_text.group_json(group)) for group in groups))
        counts = {"letters": len(found.cases), "causes": len(groups), "cut": found.cut}
        around.write(json.dumps({"type": "result", **counts}))
    elif groups:
        rows = [dead_letter_text.HEAD, *(dead_letter_text.group_row(group) for group in groups)]
        around.write(*text.table(rows, right=(0,)))
    if not arguments.json:
        count = text.plural(len(found.cases), "dead letter")
        around.note(f"{count}: `orbweaver dlq show ID` says more of one" if groups else count)
    _say_cut(found.cut, arguments, around)
    return OK


def _say_cut(cut: bool, arguments: Namespace, around: Surroundings) -> None:
    if cut:
        looked = f"{arguments.limit:,}"
        around.note(f"there are more: only {looked} were looked at; --limit N looks at more")


async def _show(arguments: Namespace, around: Surroundings) -> int:
    async with chosen(arguments, around) as session:
        found = await _undertaker(session).find(EVERYTHING, limit=arguments.limit)
    wanted = arguments.letter
    cases = [
        case for case in found.cases if wanted in (case.letter.id, dead_letter_text.own_id(case))
    ]
    cases = cases or [case for case in found.cases if case.letter.id.startswith(wanted)]
    for place, case in enumerate(cases):
        told = dead_letter_text.told(case)
        if arguments.json:
            around.write(json.dumps({"type": "letter", **told}))
            continue
        urls = told.pop("urls")
        rows = [(key, text.clean(str(cell))) for key, cell in told.items() if cell is not None]
        rows += [("" if place else "urls", text.clean(url)) for place, url in enumerate(urls)]
        more = len(case.references) - len(urls)
        rows += [("", f"and {more:,} more")] if more else []
        around.write(*([""] if place else []), *text.table(rows))
    if not cases:
        around.note(f"there is no dead letter {text.cut(wanted, 80)!r}")
    _say_cut(found.cut and not cases, arguments, around)
    return OK if cases else FAILED


# --- redrive and purge --------------------------------------------------------------------------


async def _redrive(arguments: Namespace, around: Surroundings) -> int:
    selection = _selection(arguments)
    if (selection == EVERYTHING) is not arguments.all:
        problem = "give --reason or --host, or --all for all of them, and not both"
        raise ControlError(f"orbweaver dlq redrive: {problem}")
    if arguments.rate == 0:
        raise ControlError("orbweaver dlq redrive: --rate: give 1 or more a second")
    said_ms = around.clock.now_ms()

    def say(sent: int) -> None:
        nonlocal said_ms
        if around.clock.now_ms() - said_ms >= SAY_MS:
            said_ms = around.clock.now_ms()
            if arguments.json:
                around.write(json.dumps({"type": "progress", "sent": sent}))
            else:
                around.note(f"{text.plural(sent, 'letter')} sent back so far")

    async with chosen(arguments, around) as session:
        done = await _undertaker(session).redrive(
            selection,
            limit=arguments.limit,
            rate_per_s=arguments.rate,
            malformed=arguments.malformed,
            say=say,
        )
    body = {"sent": done.sent, "skipped": dict(done.skipped), "cut": done.cut}
    said = f"{text.plural(done.sent, 'letter')} sent back"
    answer(arguments, around, {"type": "result", **body}, said)
    if not arguments.json:
        left = sorted(done.skipped.items())
        around.note(*(f"{count:,} left: {_STAY[why]}" for why, count in left))
    _say_cut(done.cut, arguments, around)
    return OK


def _purge(arguments: Namespace, around: Surroundings) -> int:
    selection = _selection(arguments)
    only: frozenset[str] | None = None
    if not arguments.yes:
        only = asyncio.run(_ids(selection, arguments, around))
        if only and not _confirmed(len(only), around):
            around.note("nothing was thrown away")
            return FAILED

    async def go() -> tuple[int, bool]:
        async with chosen(arguments, around) as session:
            return await _undertaker(session).purge(selection, limit=arguments.limit, only=only)

    purged, cut = (0, False) if only == frozenset() else asyncio.run(go())
    said = f"{text.plural(purged, 'dead letter')} thrown away"
    answer(arguments, around, {"type": "result", "purged": purged}, said)
    if only is None:
        _say_cut(cut, arguments, around)
    return OK


async def _ids(
    selection: DeadLetterSelection, arguments: Namespace, around: Surroundings
) -> frozenset[str]:
    async with chosen(arguments, around) as session:
        found = await _undertaker(session).find(selection, limit=arguments.limit)
    _say_cut(found.cut, arguments, around)
    return frozenset(case.letter.id for case in found.cases)


def _confirmed(count: int, around: Surroundings) -> bool:
    if not around.stdin.isatty():
        raise ControlError("orbweaver dlq purge: no terminal to ask at: give --yes")
    around.note("a crawl whose URLs are among them will never be finished")
    return around.confirmed(f"throw {text.plural(count, 'dead letter')} away?")


_LIMIT = option("--limit N", f"look at no more letters than this ({LIMIT:,})", default=LIMIT)
_SELECTED = together(
    _LIMIT,
    option("--reason WORDS", "those with these words in it"),
    option("--host HOST", "those with a URL of this host"),
)
_REDRIVE = together(
    _SELECTED,
    option("--all", "all of them"),
    option("--rate N", f"at most so many a second ({RATE_PER_S})", default=RATE_PER_S),
    option("--malformed", "also what can never succeed"),
)
_LETTER = option("letter ID", "a letter's id, or how it begins")
COMMANDS = (
    command(
        "dlq",
        "dead letters, which no worker could do: list, show, redrive, purge",
        dlq,
        actions(
            STACK_JSON,
            list=("count dead letters by cause", _SELECTED),
            show=("show one dead letter", together(_LIMIT, _LETTER)),
            redrive=("send dead letters back to the queue, where they go on", _REDRIVE),
            purge=("throw dead letters away", together(_SELECTED, option("--yes", "do not ask"))),
        ),
        parents=(),
    ),
)
