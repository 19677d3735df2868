"""Commands that change what runs: pause, resume, cancel; local up and down; deploy, destroy."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from urllib.parse import urlsplit

from localstack import extras
from orbweaver.cli import option_types
from orbweaver.cli.command import (
    PORT_HELP,
    actions,
    answer,
    command,
    confirmed,
    context,
    option,
    shared,
    stack_options,
    together,
    which,
)
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import Surroundings, chosen, environment_in
from orbweaver.cli.stack import ENDPOINT, PORT, REGIONS, export_line, port_option
from orbweaver.model.settings import STACK

# The context key that names a file.
EXTRACTOR = "extractor"
THEN = {
    "pause": "what is in work comes to its end, then it waits: `orbweaver resume {id}` goes on",
    "resume": "it goes on: `orbweaver status {id} --watch`",
    "cancel": "it ends once its queue has drained: `orbweaver status {id} --watch`",
}


async def steer(arguments: Namespace, around: Surroundings) -> int:
    """Pause, resume or cancel a crawl."""
    async with chosen(arguments, around) as session:
        control = session.control
        actions = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}
        crawl = await actions[arguments.command](arguments.which)
        off = await session.place.idle_workers() if arguments.command == "resume" else None
    if off is not None:
        around.note(off)
    body = {"type": "result", "crawl": crawl.id, "state": str(crawl.state)}
    answer(arguments, around, body, f"{crawl.id} is {crawl.state}")
    if not arguments.json:
        around.note(THEN[arguments.command].format(id=crawl.id))
    return OK


def local(arguments: Namespace, around: Surroundings) -> int:
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


def deploy(arguments: Namespace, around: Surroundings) -> int:
    """Deploy the stack, or bring it up to date."""
    if arguments.target != "local" and not extras.has_cdk():
        missing = "a deployment needs CDK, which is not installed"
        raise UsageError(f"{missing}: {extras.install_words(extras.DEPLOY)}")
    environment, context, name = _stack_of(arguments, around)
    names = [] if arguments.new else around.machine.stacks(environment)
    if names and name not in names:  # it may be mistyped
        raise UsageError(
            f"there is no stack {name!r} yet, but there is {', '.join(names)}: name it by --stack,"
            f" or add --new to make {name!r} beside it"
        )
    around.note(f"deploying the stack {name!r} {_whereabouts(environment)}")
    outputs = around.machine.deploy(
        environment, context, reset=arguments.reset_context, yes=arguments.yes, say=around.note
    )
    around.write(*(f"{name} = {value}" for name, value in sorted(outputs.items())))
    return OK


def destroy(arguments: Namespace, around: Surroundings) -> int:
    """Remove the stack."""
    environment, context, name = _stack_of(arguments, around)
    around.note(f"removing the stack {name!r} {_whereabouts(environment)}")
    # On AWS it is CDK that asks.
    asked = environment.get(ENDPOINT) and not arguments.yes
    if asked and not confirmed(
        around, "destroy", "its tables and its bucket go with it: remove it?"
    ):
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


def context_of(arguments: Namespace, around: Surroundings) -> dict[str, str]:
    """Read what is given for the stack; files are named from where the command is typed."""
    context = dict(arguments.context)
    if context.get(EXTRACTOR):
        context[EXTRACTOR] = str(around.folder / context[EXTRACTOR])
    return context


def _stack_of(
    arguments: Namespace, around: Surroundings
) -> tuple[Mapping[str, str], dict[str, str], str]:
    """Say which stack is meant, and what is given for it; --stack is the same as -c stack_name."""
    environment, context = environment_in(arguments, around), context_of(arguments, around)
    if arguments.stack != STACK:
        if context.get("stack_name", arguments.stack) != arguments.stack:
            raise UsageError(
                f"--stack {arguments.stack} and -c stack_name={context['stack_name']} name two"
                " stacks: give one of them"
            )
        context["stack_name"] = arguments.stack
    return environment, context, context.get("stack_name") or around.machine.usual_stack()


_PORT = option("--port PORT", PORT_HELP, type=option_types.count, default=PORT)
_UP = together(
    _PORT,
    option("--fresh", "forget what was there"),
    context("a setting of the stack, as for `deploy`; may be repeated"),
)
_DOWN = together(_PORT, option("--all", "all of this checkout"))
_YES = option("--yes", "do not ask")
_RESET = option("--reset-context", "drop what the stack was deployed with; one key: -c KEY=")
_NEW = option("--new", "make this stack beside others of the account and region")
_STACK_CONTEXT = (stack_options, shared(context()))
COMMANDS = (
    command("pause", "have a crawl wait; it costs nothing then", steer, which()),
    command("resume", "have a paused crawl go on", steer, which()),
    command("cancel", "end a crawl; what is queued is not asked for", steer, which()),
    command(
        "local",
        "the stack on this machine: up, down, status",
        local,
        actions(
            (),
            up=("start the emulator with the stack deployed to it", _UP),
            down=("stop the emulator; its state is kept", _DOWN),
            status=("list the emulators that run", together()),
        ),
        parents=(),
    ),
    command(
        "deploy",
        "deploy the stack, or bring it up to date",
        deploy,
        *(_YES, _RESET, _NEW),
        parents=_STACK_CONTEXT,
    ),
    command("destroy", "remove the stack", destroy, _YES, parents=_STACK_CONTEXT),
)
