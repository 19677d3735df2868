"""Commands for dead letters: dlq list, show, redrive, purge.

While a command reads letters, other readers cannot receive these letters. The command releases them
when it ends, and before it waits for a confirmation.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orbweaver.cli import text
from orbweaver.cli.command import (
    STACK_JSON,
    actions,
    answer,
    combined_options,
    command,
    confirmed,
    option,
)
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, NOT_FOUND, OK
from orbweaver.cli.session import Session, chosen
from orbweaver.control.crawl_control import ControlError
from orbweaver.frontier.dead_letters import (
    EVERYTHING,
    HOPELESS,
    NEW,
    UNKNOWN_CRAWL,
    Case,
    DeadLetterGroup,
    DeadLetterSelection,
    group_by_cause,
    outline,
)
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.control.dead_letter_admin import DeadLetterAdmin, Found

LIMIT = 10_000
RATE_PER_S = 50
SAY_MS = 3_000
URLS_SHOWN, SAMPLE_CHARS = 25, 100
HEAD = ("letters", "cause", "oldest", "newest", "for example")
_STAY = {
    HOPELESS: "can never succeed; --malformed sends them anyway",
    UNKNOWN_CRAWL: "of a crawl that does not exist",
    NEW: "arrived meanwhile",
}


def dlq(arguments: Namespace, around: CliContext) -> int:
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


def _undertaker(session: Session) -> DeadLetterAdmin:
    from orbweaver.app.wiring import undertaker_of

    return undertaker_of(session.ports)


async def _find(selection: DeadLetterSelection, arguments: Namespace, around: CliContext) -> Found:
    async with chosen(arguments, around) as session:
        return await _undertaker(session).find(selection, limit=arguments.limit)


# --- list and show ------------------------------------------------------------------------------


async def _list(arguments: Namespace, around: CliContext) -> int:
    found = await _find(_selection(arguments), arguments, around)
    groups = group_by_cause(found.cases)
    counts = {"letters": len(found.cases), "causes": len(groups), "cut": found.cut}
    lines = text.table([HEAD, *map(_row, groups)] if groups else [], right=(0,))
    answer(arguments, around, (*map(_cause, groups), {"type": "result", **counts}), *lines)
    if not arguments.json:
        count = text.plural(len(found.cases), "dead letter")
        around.note(f"{count}: `orbweaver dlq show ID` shows one in detail" if groups else count)
    _say_cut(found.cut, arguments, around)
    return OK


def _say_cut(cut: bool, arguments: Namespace, around: CliContext) -> None:
    if cut:
        looked = f"{arguments.limit:,}"
        around.note(f"there are more: only {looked} were read; --limit N reads more")


async def _show(arguments: Namespace, around: CliContext) -> int:
    found = await _find(EVERYTHING, arguments, around)
    wanted = arguments.letter
    cases = [case for case in found.cases if wanted in (case.letter.id, _own_id(case))]
    cases = cases or [case for case in found.cases if case.letter.id.startswith(wanted)]
    for place, case in enumerate(cases):
        told = _told(case)
        more = len(case.references) - len(told["urls"])
        cells = {**told, "urls": None}.items()
        rows = [(key, str(cell)) for key, cell in cells if cell is not None]
        rows += [("urls", url) for url in told["urls"]]
        rows += [("urls", f"and {more:,} more")] if more else []
        lines = ([""] if place else []) + text.table(text.labelled(rows))
        answer(arguments, around, {"type": "letter", **told}, *lines)
    if not cases:
        around.note(f"there is no dead letter {text.cut(wanted, 80)!r}")
    _say_cut(found.cut and not cases, arguments, around)
    return OK if cases else NOT_FOUND


# --- redrive and purge --------------------------------------------------------------------------


async def _redrive(arguments: Namespace, around: CliContext) -> int:
    selection = _selection(arguments)
    if (selection == EVERYTHING) is not arguments.all:
        problem = "give --reason or --host, or --all, but not both"
        raise ControlError(f"orbweaver dlq redrive: {problem}")
    if arguments.rate == 0:
        raise ControlError("orbweaver dlq redrive: --rate: give 1 or more per second")
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


def _purge(arguments: Namespace, around: CliContext) -> int:
    selection = _selection(arguments)
    only: frozenset[str] | None = None
    if not arguments.yes:
        found = asyncio.run(_find(selection, arguments, around))
        _say_cut(found.cut, arguments, around)
        only = frozenset(case.letter.id for case in found.cases)
        question = f"delete {text.plural(len(only), 'dead letter')}?"
        warned = "crawls whose URLs are in them will never finish"
        if only and not confirmed(around, "dlq purge", question, warned):
            around.note("nothing was deleted")
            return FAILED

    async def go() -> tuple[int, bool]:
        async with chosen(arguments, around) as session:
            return await _undertaker(session).purge(selection, limit=arguments.limit, only=only)

    purged, cut = (0, False) if only == frozenset() else asyncio.run(go())
    said = f"{text.plural(purged, 'dead letter')} deleted"
    answer(arguments, around, {"type": "result", "purged": purged}, said)
    if only is None:
        _say_cut(cut, arguments, around)
    return OK


# --- words --------------------------------------------------------------------------------------


def _row(group: DeadLetterGroup) -> tuple[str, ...]:
    sample = group.sample
    parts = (sample.letter.id, sample.crawl or "", _first_url(sample) or outline(sample))
    words = text.cut(" ".join(filter(None, parts)), SAMPLE_CHARS)
    times = (_moment(group.oldest_ms), _moment(group.newest_ms))
    return (f"{group.count:,}", group.cause, *times, words)


def _cause(group: DeadLetterGroup) -> dict[str, Any]:
    sample = group.sample
    return {
        "type": "cause",
        "cause": group.cause,
        "letters": group.count,
        "kinds": dict(group.kinds),
        "oldest": _moment(group.oldest_ms),
        "newest": _moment(group.newest_ms),
        "sample": {
            "id": sample.letter.id,
            "crawl": sample.crawl,
            "url": _first_url(sample),
            "body": None if sample.references else outline(sample),
        },
    }


def _first_url(case: Case) -> str | None:
    return redacted(case.references[0]) if case.references else None


def _moment(at_ms: int) -> str:
    """Format a time in UTC, to the second. Returns "unknown" for an invalid number."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _own_id(case: Case) -> str | None:
    """Return the id of the message in a dead letter, as logs and tables show it.

    The message is a pack or a seed message. None: it has no id.
    """
    return getattr(case.message, "id", None)


def _told(case: Case) -> dict[str, Any]:
    letter = case.letter
    return {
        "id": letter.id,
        "kind": case.kind,
        "message": _own_id(case),
        "crawl": case.crawl,
        "cause": case.cause,
        "reason": letter.reason,
        "receives": letter.receives,
        "failures": case.failures,
        "first_seen": _moment(case.first_seen_ms),
        "last_seen": _moment(case.last_seen_ms),
        "body": None if case.references else outline(case),
        "urls": [redacted(url) for url in case.references[:URLS_SHOWN]],
    }


_LIMIT = option("--limit N", f"read at most this many letters ({LIMIT:,})", default=LIMIT)
_SELECTED = combined_options(
    _LIMIT,
    option("--reason WORDS", "only letters whose cause contains these words"),
    option("--host HOST", "only letters with a URL of this host"),
)
_REDRIVE = combined_options(
    _SELECTED,
    option("--all", "all letters"),
    option("--rate N", f"maximum letters per second ({RATE_PER_S})", default=RATE_PER_S),
    option("--malformed", "also letters that can never succeed"),
)
_LETTER = option("letter ID", "id of a letter, or its beginning")
COMMANDS = (
    command(
        "dlq",
        dlq,
        actions(
            STACK_JSON,
            list=("count dead letters by cause", _SELECTED),
            show=("show one dead letter", combined_options(_LIMIT, _LETTER)),
            redrive=("send dead letters back to their queue", _REDRIVE),
            purge=(
                "delete dead letters",
                combined_options(_SELECTED, option("--yes", "do not ask for confirmation")),
            ),
        ),
        parents=(),
    ),
)
