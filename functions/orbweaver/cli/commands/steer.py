"""Commands that change what runs: pause, resume, cancel; local up and down; deploy, destroy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orbweaver.cli import option_types
from orbweaver.cli.command import (
    PORT_HELP,
    Command,
    add_context,
    add_crawl,
    context_option,
    json_option,
    stack_options,
)
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import Surroundings, chosen, environment_in
from orbweaver.cli.stack import ENDPOINT, PORT, REGIONS, export_line, port_option
from orbweaver.model.settings import STACK

if TYPE_CHECKING:
    import argparse

# The context key that names a file.
EXTRACTOR = "extractor"
THEN = {
    "pause": "what is in work comes to its end, then it waits: `orbweaver resume {id}` goes on",
    "resume": "it goes on: `orbweaver status {id} --watch`",
    "cancel": "it ends once its queue has drained: `orbweaver status {id} --watch`",
}


async def steer(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Pause, resume or cancel a crawl."""
    async with chosen(arguments, around) as session:
        control = session.control
        actions = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}
        crawl = await actions[arguments.command](arguments.which)
        off = await session.idle_workers() if arguments.command == "resume" else None
    if off is not None:
        around.note(off)
    if arguments.json:
        around.write(json.dumps({"type": "result", "crawl": crawl.id, "state": str(crawl.state)}))
    else:
        around.write(f"{crawl.id} is {crawl.state}")
        around.note(THEN[arguments.command].format(id=crawl.id))
    return OK


def local(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Have the stack of this machine up or down, or list what runs."""
    machine = around.machine
    match arguments.action:
        case "up":
            context = context_of(arguments, around)
            fresh, say = arguments.fresh, around.note
            outputs = dict(machine.up(arguments.port, context, fresh=fresh, say=say))
            endpoint = outputs.pop(ENDPOINT)
            around.write(*(f"{name} = {value}" for name, value in sorted(outputs.items())))
            around.write(export_line(endpoint))
            option = port_option(urlsplit(endpoint).port or 0)
            around.note(f"crawl something: orbweaver start URL --wait{option}")
            around.note("the `export` line above has other clients of AWS speak to this stack")
        case "down":
            port = None if arguments.all else arguments.port
            if not machine.down(port, around.note):
                around.note("no emulator runs" + ("" if port is None else f" on port {port}"))
        case _:
            around.write(*(machine.running() or ["no emulator runs"]))
            around.note(*machine.lost())
    return OK


def deploy(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Deploy the stack, or bring it up to date."""
    environment = environment_in(arguments, around)
    context = _named_context(arguments, around)
    name = context.get("stack_name") or around.machine.usual_stack()
    _check_name(name, environment, arguments, around)
    around.note(f"deploying the stack {name!r} {_whereabouts(environment)}")
    outputs = around.machine.deploy(
        environment, context, reset=arguments.reset_context, yes=arguments.yes, say=around.note
    )
    around.write(*(f"{name} = {value}" for name, value in sorted(outputs.items())))
    return OK


def destroy(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Remove the stack."""
    environment = environment_in(arguments, around)
    context = _named_context(arguments, around)
    name = context.get("stack_name") or around.machine.usual_stack()
    around.note(f"removing the stack {name!r} {_whereabouts(environment)}")
    # On AWS it is CDK that asks.
    if environment.get(ENDPOINT) and not arguments.yes and not _confirmed(around):
        around.note("nothing was removed")
        return FAILED
    around.machine.destroy(environment, context, yes=arguments.yes, say=around.note)
    where = environment.get(ENDPOINT) or "AWS"
    around.note(f"there is no stack {name!r} at {where} any more")
    return OK


def _whereabouts(environment: Mapping[str, str]) -> str:
    """Say where a command is about to act, and how it is told to act elsewhere."""
    endpoint = environment.get(ENDPOINT)
    if endpoint:
        return f"on this machine, at {endpoint}; --target aws means the AWS account"
    return f"in the AWS account of these credentials, region {environment[REGIONS[0]]}"


def _confirmed(around: Surroundings) -> bool:
    if not around.stdin.isatty():
        raise UsageError("orbweaver destroy: there is no terminal to ask at: give --yes")
    return around.confirmed("its tables and its bucket go with it: remove it?")


def _check_name(
    name: str, environment: Mapping[str, str], arguments: argparse.Namespace, around: Surroundings
) -> None:
    """Refuse to make a second stack for a name that may be mistyped; raises UsageError."""
    names = [] if arguments.new else around.machine.stacks(environment)
    if names and name not in names:
        raise UsageError(
            f"there is no stack {name!r} yet, but there is {', '.join(names)}: name it by --stack,"
            f" or add --new to make {name!r} beside it"
        )


def context_of(arguments: argparse.Namespace, around: Surroundings) -> dict[str, str]:
    """Read what is given for the stack; files are named from where the command is typed."""
    context = dict(arguments.context)
    if context.get(EXTRACTOR):
        context[EXTRACTOR] = str(around.folder / context[EXTRACTOR])
    return context


def _named_context(arguments: argparse.Namespace, around: Surroundings) -> dict[str, str]:
    """Read what is given for the stack; --stack and -c stack_name are the same."""
    context = context_of(arguments, around)
    if arguments.stack != STACK:
        if context.get("stack_name", arguments.stack) != arguments.stack:
            raise UsageError(
                f"--stack {arguments.stack} and -c stack_name={context['stack_name']} name two"
                " stacks: give one of them"
            )
        context["stack_name"] = arguments.stack
    return context


# --- options ------------------------------------------------------------------------------------

_LOCAL = {
    "up": "start the emulator with the stack deployed to it",
    "down": "stop the emulator; its state is kept",
    "status": "list the emulators that run",
}


def _local_options(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", metavar="up|down|status", required=True)
    up, down, _ = (
        actions.add_parser(name, help=text, description=text) for name, text in _LOCAL.items()
    )
    for one in (up, down):
        one.add_argument("--port", type=option_types.count, default=PORT, help=PORT_HELP)
    up.add_argument("--fresh", action="store_true", help="forget what was there")
    add_context(up, "a setting of the stack, as for `deploy`; may be repeated")
    down.add_argument("--all", action="store_true", help="all of this checkout")


def _deploy_options(command: argparse.ArgumentParser) -> None:
    _destroy_options(command)
    reset = "drop what the stack was deployed with; one key: -c KEY="
    command.add_argument("--reset-context", action="store_true", help=reset)
    second = "make this stack beside others of the account and region"
    command.add_argument("--new", action="store_true", help=second)


def _destroy_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--yes", action="store_true", help="do not ask")


_STEERING = {
    "pause": "have a crawl wait; it costs nothing then",
    "resume": "have a paused crawl go on",
    "cancel": "end a crawl; what is queued is not asked for",
}
COMMANDS = (
    *(
        Command(
            name=name,
            help=help_,
            run=steer,
            options=add_crawl,
            parents=(stack_options, json_option),
        )
        for name, help_ in _STEERING.items()
    ),
    Command(
        name="local",
        help="the stack on this machine: up, down, status",
        run=local,
        options=_local_options,
    ),
    Command(
        name="deploy",
        help="deploy the stack, or bring it up to date",
        run=deploy,
        options=_deploy_options,
        parents=(stack_options, context_option),
    ),
    Command(
        name="destroy",
        help="remove the stack",
        run=destroy,
        options=_destroy_options,
        parents=(stack_options, context_option),
    ),
)
