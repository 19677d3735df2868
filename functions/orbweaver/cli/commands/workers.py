"""`workers off | on | status`: stop and start all workers of a stack without a deployment.

The command switches all event sources of the worker and, if there is one, of the renderer. Current
batches finish, and all other messages remain in their queues. The command ends when all sources are
switched, or lists the sources that are not. A deployment keeps the setting.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orbweaver.cli import text
from orbweaver.cli.command import answer, command, option
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import environment_in
from orbweaver.cli.stack import (
    WORKER,
    StackUnreachable,
    ask_to_switch,
    outputs_of,
    sources_of,
    workers_of,
)
from orbweaver.cli.store import store_of

if TYPE_CHECKING:
    from localstack.deployed import Source

STEPS_MAX = 120
STEP_S = 1.0
WANTED = {"off": "Disabled", "on": "Enabled"}
THEN = {
    "off": "workers are off: batches in flight finish, and messages wait up to four days."
    " On again: `orbweaver workers on`",
    "on": "workers are on and process waiting messages. Off again: `orbweaver workers off`",
}
_STORE = (
    "a store has no switch: its workers are processes of `orbweaver crawl`, `serve` and"
    " `console`, which Ctrl-C stops; `orbweaver pause` pauses one crawl"
)


async def workers(arguments: Namespace, around: CliContext) -> int:
    if store_of(arguments, around.folder, around.environment) is not None:
        raise UsageError(f"orbweaver workers: {_STORE}")
    environment = environment_in(arguments, around)
    outputs = outputs_of(arguments.stack, around.machine, environment, around.note)
    if WORKER not in outputs:
        raise StackUnreachable(
            "the stack does not name its worker: update it with `orbweaver deploy`"
        )
    functions = workers_of(outputs)
    found = sources_of(functions, around.machine, environment)
    if not found:
        raise StackUnreachable(f"{outputs[WORKER]} has no event source: run `orbweaver deploy`")
    wanted = WANTED.get(arguments.action)
    if wanted is not None:
        found = await _switched(wanted, functions, environment, around)
    states = {source.queue: source.state for source in found}
    rows = [(source.queue, source.state.lower()) for source in found]
    answer(arguments, around, {"type": "workers", "sources": states}, *text.table(rows))
    if wanted is None:
        return OK
    late = [source.queue for source in found if source.state != wanted]
    if late:
        again = f"orbweaver workers {arguments.action}"
        around.note(f"not {wanted.lower()} yet: {', '.join(late)}; repeat `{again}`")
        return FAILED
    around.note(THEN[arguments.action])
    return OK


async def _switched(
    wanted: str, functions: Sequence[str], environment: Mapping[str, str], around: CliContext
) -> tuple[Source, ...]:
    """Switch all event sources, and check at most `STEPS_MAX` times whether they are switched."""
    machine = around.machine
    for _ in range(STEPS_MAX):
        found = ask_to_switch(machine, functions, environment, on=wanted == WANTED["on"])
        if all(source.state == wanted for source in found):
            break
        await around.clock.sleep(STEP_S)
    return sources_of(functions, machine, environment)


COMMANDS = (
    command(
        "workers",
        workers,
        option("action off|on|status", choices=("off", "on", "status"), type=str),
    ),
)
