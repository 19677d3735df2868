"""`workers off | on | status`: the kill switch of a stack, without a deployment.

Rules
- All event sources of the worker are switched, whatever queues it has, and those of the renderer,
  where there is one. Batches in work are finished, and messages wait on their queues.
- The command ends when every source says that it is switched, or says which does not.
- A deployment leaves the switch as it is.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orbweaver.cli import text
from orbweaver.cli.command import answer, command, option
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import Surroundings, environment_in
from orbweaver.cli.stack import (
    WORKER,
    Machine,
    StackUnreachable,
    outputs_of,
    sources_of,
    workers_of,
)
from orbweaver.cli.store import store_of

if TYPE_CHECKING:
    from localstack.sources import Source

STEPS_MAX = 120
STEP_S = 1.0
WANTED = {"off": "Disabled", "on": "Enabled"}
THEN = {
    "off": "workers are off: what is in work comes to its end, and messages wait, for as long as"
    " queue_retention_d says (4 days unless it was set). On again: `orbweaver workers on`",
    "on": "workers are on and go on with what waits. Off again: `orbweaver workers off`",
}
_STORE = (
    "a store has no workers that could be switched: they are processes of `orbweaver crawl`,"
    " `serve` and `console`, which Ctrl-C ends; `orbweaver pause` has one crawl wait"
)


async def workers(arguments: Namespace, around: Surroundings) -> int:
    """Switch the workers of a stack, or say how they are switched."""
    if store_of(arguments, around.folder, around.environment) is not None:
        raise UsageError(f"orbweaver workers: {_STORE}")
    environment = environment_in(arguments, around)
    outputs = outputs_of(arguments.stack, around.machine, environment, around.note)
    if WORKER not in outputs:
        raise StackUnreachable("the stack does not name its worker: bring it up to date")
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
    wanted: str, functions: Sequence[str], environment: Mapping[str, str], around: Surroundings
) -> tuple[Source, ...]:
    """Switch every source, and wait until each has taken it, for a bounded time."""
    machine = around.machine
    for _ in range(STEPS_MAX):
        found = ask_to_switch(machine, functions, environment, on=wanted == WANTED["on"])
        if all(source.state == wanted for source in found):
            break
        await around.clock.sleep(STEP_S)
    return sources_of(functions, machine, environment)


def ask_to_switch(
    machine: Machine, functions: Sequence[str], environment: Mapping[str, str], *, on: bool
) -> tuple[Source, ...]:
    """Ask those event sources to switch that are not so; their states before that."""
    found = sources_of(functions, machine, environment)
    for source in found:
        if source.off == on:
            machine.switch(source, environment, on=on)
    return found


COMMANDS = (
    command(
        "workers",
        "switch all workers of a stack off or on, at once; messages wait meanwhile",
        workers,
        option("action off|on|status", choices=("off", "on", "status"), type=str),
    ),
)
