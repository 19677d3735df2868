"""The `schedule` commands for recurring crawls: put, list, pause, resume, remove."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from orbweaver.cli import text
from orbweaver.cli.command import STACK_JSON, actions, answer, combined_options, command, option
from orbweaver.cli.commands import custom
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import OK
from orbweaver.cli.session import Session, chosen
from orbweaver.cli.store import StorePlace, option_again
from orbweaver.cli.trust_files import check_stack_has_files
from orbweaver.control.scheduler import Coming, Timetable

_HEAD = ("NAME", "WHEN", "TIME ZONE", "NEXT")


def schedule(arguments: Namespace, around: CliContext) -> int:
    acts = {"put": _put, "list": _list, "pause": _pause, "resume": _pause, "remove": _remove}
    act = acts[arguments.action]
    return asyncio.run(act(arguments, around))


def _timetable(session: Session) -> Timetable:
    ports = session.ports
    return Timetable(schedules=ports.schedules, control=session.control, clock=ports.clock)


async def _put(arguments: Namespace, around: CliContext) -> int:
    plan = plan_in(arguments.config, around)
    async with chosen(arguments, around) as session:
        custom.check_deployed(session.settings, plan.items, custom.FIX)
        on_store = isinstance(session.place, StorePlace)
        if not on_store:
            check_stack_has_files(plan)
        coming = await _timetable(session).put(plan)
    scheduled = coming.scheduled
    rows = [("name", scheduled.name), ("when", coming.when)]
    rows += [("next", _written(at_ms, scheduled.timezone)) for at_ms in coming.next_ms]
    answer(arguments, around, _told(coming), *text.table(text.labelled(rows)))
    if not arguments.json:
        if coming.warning is not None:
            around.note(f"warning: {coming.warning}")
        again = "after a change to the file, put it again"
        around.note(f"{again}; `orbweaver schedule remove {scheduled.name}` removes it")
        if on_store:
            serve = f"orbweaver serve{option_again(arguments.store)}"
            around.note(f"it fires only while `{serve}` runs")
    return OK


async def _list(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        found = await _timetable(session).list()
    lines = text.table([_HEAD, *map(_row, found)] if found else [])
    answer(arguments, around, map(_told, found), *lines)
    if not found and not arguments.json:
        around.note("there are no schedules: `orbweaver schedule put --config FILE` adds one")
    return OK


async def _pause(arguments: Namespace, around: CliContext) -> int:
    paused = arguments.action == "pause"
    async with chosen(arguments, around) as session:
        coming = await _timetable(session).pause(arguments.name, paused=paused)
    name, _, _, following = _row(coming)
    words = f"{name} is paused" if paused else f"{name} is resumed, next {following}"
    answer(arguments, around, _told(coming), words)
    if paused and not arguments.json:
        around.note(
            f"missed runs are not repeated; continue with `orbweaver schedule resume {name}`"
        )
    return OK


async def _remove(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        await _timetable(session).remove(arguments.name)
    body = {"type": "removed", "name": arguments.name}
    answer(arguments, around, body, f"schedule {arguments.name} removed")
    return OK


def _row(coming: Coming) -> tuple[str, ...]:
    scheduled = coming.scheduled
    cells = (scheduled.name, coming.when, scheduled.timezone or "UTC")
    following = (_written(at_ms, scheduled.timezone) for at_ms in coming.next_ms)
    return (*cells, "paused" if scheduled.paused else next(following, "-"))


def _told(coming: Coming) -> dict[str, Any]:
    """Return a schedule for JSON, without its definition, which can contain secrets."""
    scheduled = coming.scheduled
    return {
        "type": "schedule",
        "name": scheduled.name,
        "when": coming.when,
        "expression": scheduled.expression,
        "timezone": scheduled.timezone or "UTC",
        "paused": scheduled.paused,
        "warning": coming.warning,
        "next": [_moment(at_ms, None).isoformat() for at_ms in coming.next_ms],
    }


def _written(at_ms: int, timezone: str | None) -> str:
    moment = _moment(at_ms, timezone)
    return f"{moment:%Y-%m-%d %H:%M} {timezone or 'UTC'}"


def _moment(at_ms: int, timezone: str | None) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, tz=ZoneInfo(timezone) if timezone else UTC)


_CONFIG = option("--config FILE", "definition with a table [schedule]", required=True)
_NAME = option("name NAME", "name of the schedule")
COMMANDS = (
    command(
        "schedule",
        schedule,
        actions(
            STACK_JSON,
            put=("add or replace the schedule of a definition, from its table [schedule]", _CONFIG),
            list=("list schedules", combined_options()),
            pause=("pause a schedule until it is resumed", _NAME),
            resume=("resume a schedule", _NAME),
            remove=("remove a schedule; started runs continue", _NAME),
        ),
        parents=(),
    ),
)
