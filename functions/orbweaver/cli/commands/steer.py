"""Commands that change crawls and stacks: pause, resume, cancel, local, deploy, destroy."""

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
    combined_options,
    command,
    confirmed,
    context,
    crawl_argument,
    option,
    shared,
    stack_options,
)
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError
from orbweaver.cli.session import chosen, environment_in
from orbweaver.cli.stack import ENDPOINT, PORT, REGIONS, export_line, port_option
from orbweaver.model.crawl import State
from orbweaver.model.settings import STACK

# The context key whose value is the path of a file.
EXTRACTOR = "extractor"
THEN = {
    "pause": "packs in flight finish; `orbweaver resume {id}` continues it",
    "resume": "it continues: `orbweaver status {id} --watch`",
    "cancel": "it ends within about a minute: `orbweaver status {id} --watch`",
}


async def steer(arguments: Namespace, around: CliContext) -> int:
    async with chosen(arguments, around) as session:
        control = session.control
        actions = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}
        crawl = await actions[arguments.command](arguments.which)
        works = arguments.command != "pause" and crawl.state is not State.FINISHED
        off = await session.place.idle_workers(crawl) if works else None
    body = {"type": "result", "crawl": crawl.id, "state": str(crawl.state)}
    answer(arguments, around, body, f"{crawl.id} is {crawl.state}")
    if off is not None:
        around.note(off)
    elif not arguments.json:
        around.note(THEN[arguments.command].format(id=crawl.id))
    return OK


def local(arguments: Namespace, around: CliContext) -> int:
    machine = around.machine
    match arguments.action:
        case "up":
            context = context_of(arguments, around)
            fresh, say = arguments.fresh, around.note
            outputs = dict(machine.start_stack(arguments.port, context, fresh=fresh, say=say))
            endpoint = outputs.pop(ENDPOINT)
            around.write(*(f"{name} = {value}" for name, value in sorted(outputs.items())))
            around.write(export_line(endpoint))
            option = port_option(urlsplit(endpoint).port or 0)
            around.note(f"start a crawl: orbweaver start URL --wait{option}")
            around.note("the `export` line above points other AWS clients to this stack")
        case "down":
            port = None if arguments.all else arguments.port
            if not machine.down(port, around.note):
                around.note("no emulator runs" + ("" if port is None else f" on port {port}"))
        case _:
            around.write(*(machine.running() or ["no emulator runs"]))
            around.note(*machine.lost_data())
    return OK


def deploy(arguments: Namespace, around: CliContext) -> int:
    extras.require_cdk()
    environment, context, name = _stack_of(arguments, around)
    names = [] if arguments.new else around.machine.stacks(environment)
    if names and name not in names:  # the name may be mistyped
        raise UsageError(
            f"there is no stack {name!r} yet, but there is {', '.join(names)}: select it with"
            f" --stack, or add --new to create {name!r} as well"
        )
    around.note(f"deploying the stack {name!r} {_whereabouts(environment)}")
    outputs = around.machine.deploy(
        environment, context, reset=arguments.reset_context, yes=arguments.yes, say=around.note
    )
    around.write(*(f"{name} = {value}" for name, value in sorted(outputs.items())))
    return OK


def destroy(arguments: Namespace, around: CliContext) -> int:
    environment, context, name = _stack_of(arguments, around)
    around.note(f"removing the stack {name!r} {_whereabouts(environment)}")
    # Only for an emulator, because CDK itself asks for a confirmation on AWS.
    asked = environment.get(ENDPOINT) and not arguments.yes
    if asked and not confirmed(
        around, "destroy", "this deletes its tables and its bucket: remove it?"
    ):
        around.note("nothing was removed")
        return FAILED
    around.machine.destroy(environment, context, yes=arguments.yes, say=around.note)
    where = environment.get(ENDPOINT) or "AWS"
    around.note(f"there is no stack {name!r} at {where} any more")
    return OK


def _whereabouts(environment: Mapping[str, str]) -> str:
    """Describe which account or emulator a command changes, and how to choose another one."""
    endpoint = environment.get(ENDPOINT)
    if endpoint:
        return f"on this machine, at {endpoint}; --target aws selects the AWS account"
    return f"in the AWS account of these credentials, region {environment[REGIONS[0]]}"


def context_of(arguments: Namespace, around: CliContext) -> dict[str, str]:
    """Return the CDK context that the options set. Paths are relative to the current folder."""
    context = dict(arguments.context)
    if context.get(EXTRACTOR):
        context[EXTRACTOR] = str(around.folder / context[EXTRACTOR])
    return context


def _stack_of(
    arguments: Namespace, around: CliContext
) -> tuple[Mapping[str, str], dict[str, str], str]:
    """Return the stack's environment, CDK context and name, from --stack or `-c stack_name`."""
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
_UP = combined_options(
    _PORT,
    option("--fresh", "delete its previous state"),
    context("set a context key of the stack, as in `deploy`; may be repeated"),
)
_DOWN = combined_options(_PORT, option("--all", "all emulators of this checkout"))
_YES = option("--yes", "do not ask for confirmation")
_RESET = option("--reset-context", "discard the context of earlier deployments; one key: -c KEY=")
_NEW = option("--new", "create this stack although the account and region have others")
_STACK_CONTEXT = (stack_options, shared(context()))
COMMANDS = (
    command("pause", steer, crawl_argument()),
    command("resume", steer, crawl_argument()),
    command("cancel", steer, crawl_argument()),
    command(
        "local",
        local,
        actions(
            (),
            up=("start the emulator and deploy the stack to it", _UP),
            down=("stop the emulator and keep its state", _DOWN),
            status=("list running emulators", combined_options()),
        ),
        parents=(),
    ),
    command(
        "deploy",
        deploy,
        *(_YES, _RESET, _NEW),
        parents=_STACK_CONTEXT,
    ),
    command("destroy", destroy, _YES, parents=_STACK_CONTEXT),
)
