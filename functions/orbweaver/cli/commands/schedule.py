"""Commands for crawls that recur: schedule put, list, remove."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from orbweaver.cli import text
from orbweaver.cli.command import Command, json_option, stack_options
from orbweaver.cli.commands import custom
from orbweaver.cli.commands.init_check import plan_in
from orbweaver.cli.session import Session, Surroundings, chosen
from orbweaver.control.scheduler import Coming, Timetable

if TYPE_CHECKING:
    import argparse

OK = 0
HELP = "crawls that recur: put, list, remove"
_TEXTS = {
    "put": "have the crawl of a definition recur, as its table [schedule] says",
    "list": "list the crawls that recur",
    "remove": "have a crawl recur no more; runs that were started go on",
}
_HEAD = ("NAME", "WHEN", "TIME ZONE", "NEXT")


def schedule(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Put crawls on a schedule, list those that are, or take one off."""
    act = {"put": _put, "list": _list, "remove": _remove}[arguments.action]
    return asyncio.run(act(arguments, around))


def _timetable(session: Session) -> Timetable:
    ports = session.ports
    return Timetable(schedules=ports.schedules, control=session.control, clock=ports.clock)


async def _put(arguments: argparse.Namespace, around: Surroundings) -> int:
    plan = plan_in(arguments.config, around)
    async with chosen(arguments, around) as session:
        custom.check_deployed(session.settings, plan.items, custom.FIX)
        coming = await _timetable(session).put(plan)
    if arguments.json:
        around.write(json.dumps(_told(coming)))
        return OK
    scheduled = coming.scheduled
    times = [("next", _written(at_ms, scheduled.timezone)) for at_ms in coming.next_ms[:1]]
    times += [("", _written(at_ms, scheduled.timezone)) for at_ms in coming.next_ms[1:]]
    rows = [("name", scheduled.name), ("when", scheduled.expression), *times]
    around.write(*text.table(rows))
    again = "put it again after a change: it is kept as it is now"
    around.note(f"{again}; `orbweaver schedule remove {scheduled.name}` ends it")
    return OK


async def _list(arguments: argparse.Namespace, around: Surroundings) -> int:
    async with chosen(arguments, around) as session:
        found = await _timetable(session).list()
    if arguments.json:
        around.write(*(json.dumps(_told(coming)) for coming in found))
    elif found:
        around.write(*text.table([_HEAD, *(_row(coming) for coming in found)]))
    else:
        around.note("nothing recurs: `orbweaver schedule put --config FILE` has a crawl recur")
    return OK


async def _remove(arguments: argparse.Namespace, around: Surroundings) -> int:
    async with chosen(arguments, around) as session:
        await _timetable(session).remove(arguments.name)
    if arguments.json:
        around.write(json.dumps({"type": "removed", "name": arguments.name}))
    else:
        around.write(f"{text.clean(arguments.name)} recurs no more")
    return OK


def _row(coming: Coming) -> tuple[str, ...]:
    scheduled = coming.scheduled
    cells = (scheduled.name, scheduled.expression, scheduled.timezone or "UTC")
    following = (_written(at_ms, scheduled.timezone) for at_ms in coming.next_ms)
    return (*map(text.clean, cells), next(following, "-"))


def _told(coming: Coming) -> dict[str, Any]:
    """Say all of it but the definition, which may hold secrets."""
    scheduled = coming.scheduled
    return {
        "type": "schedule",
        "name": scheduled.name,
        "expression": scheduled.expression,
        "timezone": scheduled.timezone or "UTC",
        "next": [_moment(at_ms, None).isoformat() for at_ms in coming.next_ms],
    }


def _written(at_ms: int, timezone: str | None) -> str:
    moment = _moment(at_ms, timezone)
    return f"{moment:%Y-%m-%d %H:%M} {timezone or 'UTC'}"


def _moment(at_ms: int, timezone: str | None) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, tz=ZoneInfo(timezone) if timezone else UTC)


def options(command: argparse.ArgumentParser) -> None:
    """Add what belongs to `schedule`."""
    actions = command.add_subparsers(dest="action", metavar="|".join(_TEXTS), required=True)
    put, _, remove = (
        actions.add_parser(
            name, help=help_, description=help_, parents=[stack_options(), json_option()]
        )
        for name, help_ in _TEXTS.items()
    )
    what = "what is to be crawled, and when"
    put.add_argument("--config", type=Path, required=True, metavar="FILE", help=what)
    remove.add_argument("name", metavar="NAME", help="a schedule's name")


COMMANDS = (Command(name="schedule", help=HELP, run=schedule, options=options),)
