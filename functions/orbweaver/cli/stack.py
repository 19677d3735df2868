"""The stack of a command, and what must be known of it.

Rules
- `--port` names a stack on this machine, `--target` decides else; without both the endpoint in the
  environment, a stack that runs on this machine, and then the AWS account that the environment
  names. Where several run and none is named, it is said which was taken.
- The region is that of `--region`, `AWS_REGION`, `AWS_DEFAULT_REGION` or the profile, in this
  order, for every client: both variables name it from then on. Without one a command ends.
- The names of a stack's parts are its outputs; its limits are the variables of its worker, so that
  records are looked for where the worker of that very stack puts them.
- A stack on this machine may crawl this machine, and always may: nothing is deployed anew for it.
  Of the machine it reaches what a crawl's seeds name (model/redacted_names.py), and never the
  emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orbweaver.frontier.queues import Depths
from orbweaver.model.address_policy import THIS_MACHINE
from orbweaver.model.settings import PREFIX, Settings, SettingsError

if TYPE_CHECKING:
    from localstack.alarms import Alarm
    from localstack.sources import Source

    Say = Callable[[str], None]

ENDPOINT = "AWS_ENDPOINT_URL"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
EMULATOR_REGION = "us-east-1"
PORT = 4566
LOCAL_CONTEXT = {"target": "local", "allow_addresses": THIS_MACHINE}
NAMES = {
    "CrawlQueueUrl": "seed_queue_url",
    "PackQueueUrl": "crawl_queue_url",
    "ExpressQueueUrl": "express_queue_url",
    "DeadLetterQueueUrl": "dead_letter_queue_url",
    "UrlsTable": "urls_table",
    "PagesTable": "pages_table",
    "HostsTable": "hosts_table",
    "CrawlsTable": "crawls_table",
    "PacksTable": "packs_table",
    "Bucket": "bucket",
    "ExportQueueUrl": "export_queue_url",
    "ScheduleGroup": "schedule_group",
    "ScheduleRoleArn": "schedule_role",
    "StarterFunctionArn": "starter_function",
    "FailedCallsQueueArn": "failed_calls_queue",
}
# What not every stack has.
EXTRA = {
    "RenderQueueUrl": "render_queue_url",
    "Database": "database",
    "WebhookSecret": "webhook_secret",
    "DeliveryQueueUrl": "delivery_queue_url",
    "DeliveryDeadLetterQueueUrl": "delivery_dead_letter_url",
}
WORKER, RENDERER = "WorkerFunction", "RendererFunction"


class StackUnreachable(Exception):
    """There is no stack to speak to; the text says what to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingStack:
    """A stack on this machine; `started` says that this command started its emulator."""

    environment: Mapping[str, str]
    outputs: Mapping[str, str]
    started: bool
    log: str


class Machine(Protocol):
    """What the commands ask of this machine, and of the account behind an environment."""

    def region(self, environment: Mapping[str, str]) -> str | None:
        """Return the region that the profile of an environment names."""

    def local(self) -> Mapping[int, Mapping[str, str]]:
        """Return the environments of the stacks that run on this machine, by port.

        The one to take where none is named comes first.
        """

    def stopped(self) -> list[int]:
        """Return the ports of stacks whose state is kept and that do not run, used last first."""

    def outputs(
        self, stack: str, environment: Mapping[str, str], say: Say
    ) -> Mapping[str, str] | None:
        """Return a stack's outputs, None if there is none; raises Unreachable.

        One that is being updated is told of, and can be spoken to.
        """

    def usual_stack(self) -> str:
        """Name the stack that is deployed where no name is given: that of cdk.json, if any."""

    def stacks(self, environment: Mapping[str, str]) -> list[str]:
        """Name the stacks of this product that are in an account and region."""

    def sources(self, function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
        """List the event sources of a function; raises Unreachable."""

    def alarms(self, stack: str, environment: Mapping[str, str]) -> tuple[Alarm, ...] | None:
        """List the alarms of a stack; None if they may not be read. Raises Unreachable."""

    def switch(self, source: Source, environment: Mapping[str, str], *, on: bool) -> bool:
        """Switch an event source; False if it takes no update now. Raises Unreachable."""

    def variables(self, function: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return a function's variables; none if they may not be read."""

    def context(self, stack: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the context keys that a stack was deployed with; raises Unreachable."""

    def depths(self, settings: Settings, environment: Mapping[str, str]) -> Depths | None:
        """Count the messages on the queues; None if that may not be read."""

    def standing(
        self, port: int, say: Say, context: Mapping[str, str] | None = None
    ) -> AbstractContextManager[StandingStack]:
        """Have a stack on this machine for the length of a block; stop what was started.

        `context` is deployed on top of what it was deployed with.
        """

    def up(
        self, port: int, context: Mapping[str, str], *, fresh: bool, say: Say
    ) -> Mapping[str, str]:
        """Have a stack stand on this machine; its outputs, and the endpoint."""

    def down(self, port: int | None, say: Say) -> bool:
        """Stop the emulator of a port, or all; False if none ran."""

    def running(self) -> list[str]:
        """Describe the emulators that run, a line each, below it the addresses of their APIs."""

    def lost(self) -> list[str]:
        """Say what emulators have lost that were killed and not started again, a line each."""

    def deploy(
        self,
        environment: Mapping[str, str],
        context: Mapping[str, str],
        *,
        reset: bool,
        yes: bool,
        say: Say,
    ) -> Mapping[str, str]:
        """Deploy the stack with what it was deployed with, unless `reset`; its outputs."""

    def destroy(
        self, environment: Mapping[str, str], context: Mapping[str, str], *, yes: bool, say: Say
    ) -> None:
        """Remove the stack."""


def environment_of(
    target: str | None,
    machine: Machine,
    environment: Mapping[str, str],
    region: str | None = None,
    *,
    port: int | None = None,
    note: Say = lambda _: None,
) -> Mapping[str, str]:
    """Choose the environment to speak to a stack in; raises Unreachable."""
    if port is not None:
        return _on_port(port, machine)
    if target != "aws" and (target == "local" or not environment.get(ENDPOINT)):
        local = machine.local()
        if len(local) > 1:
            taken, *others = local
            named = " or ".join(f"--port {other}" for other in others)
            many = f"{len(local)} stacks run on this machine"
            note(f"{many}; this is the one on port {taken}: {named} for another")
        if local:
            return next(iter(local.values()))
        if target == "local":
            raise StackUnreachable(f"no stack runs on this machine: run {up_again(machine)}")
    return _in_region(region, machine, environment)


def _on_port(port: int, machine: Machine) -> Mapping[str, str]:
    local = machine.local()
    if port not in local:
        ports = ", ".join(map(str, local))
        there = f"; there is one on port {ports}" if local else ""
        raise StackUnreachable(
            f"no stack runs on port {port}: run `orbweaver local up{port_option(port)}`{there}"
        )
    return local[port]


def port_option(port: int) -> str:
    """Write the option that names a stack on this machine, if it needs to be named."""
    return "" if port == PORT else f" --port {port}"


def up_again(machine: Machine) -> str:
    """Write the command that starts the stack of this machine that was used last, or a new one."""
    stopped = machine.stopped()
    return f"`orbweaver local up{port_option(stopped[0]) if stopped else ''}`"


def export_line(endpoint: str) -> str:
    """Write the line that has any client of AWS speak to an emulator, in whatever shell."""
    values = {
        ENDPOINT: endpoint,
        **dict.fromkeys(REGIONS, EMULATOR_REGION),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    return " ".join(["export", *(f"{name}={value}" for name, value in values.items())])


def _in_region(
    given: str | None, machine: Machine, environment: Mapping[str, str]
) -> Mapping[str, str]:
    region = given or next(filter(None, map(environment.get, REGIONS)), None)
    region = region or machine.region(environment)
    if region is None and environment.get(ENDPOINT):
        region = EMULATOR_REGION
    if region is None:
        profile = environment.get("AWS_PROFILE", "default")
        raise StackUnreachable(
            "no AWS region is named: give --region, set AWS_REGION or AWS_DEFAULT_REGION, or put"
            f" a region into the profile {profile!r}; for a stack on this machine run"
            f" {up_again(machine)}; `orbweaver crawl URL` needs neither and makes a store in this"
            " folder, --store DIR names another one"
        )
    return {**environment, **dict.fromkeys(REGIONS, region)}


def outputs_of(
    stack: str, machine: Machine, environment: Mapping[str, str], say: Say
) -> Mapping[str, str]:
    """Learn a stack's parts; raises Unreachable."""
    outputs = machine.outputs(stack, environment, say)
    if outputs is None:
        where = environment.get(ENDPOINT) or "this AWS account and region"
        raise StackUnreachable(
            f"there is no stack {stack!r} at {where}: run `orbweaver deploy`, or"
            f" {up_again(machine)} for one on this machine"
        )
    return outputs


def workers_of(outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Name the functions that take packs, as far as a stack says: worker and renderer."""
    return tuple(outputs[name] for name in (WORKER, RENDERER) if name in outputs)


def sources_of(
    functions: Iterable[str], machine: Machine, environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """List the event sources of functions; raises Unreachable."""
    return tuple(source for one in functions for source in machine.sources(one, environment))


def settings_of(
    stack: str, machine: Machine, environment: Mapping[str, str], say: Say = lambda _: None
) -> Settings:
    """Learn a stack's parts and limits; raises Unreachable."""
    return settings_from(outputs_of(stack, machine, environment, say), machine, environment)


def settings_from(
    outputs: Mapping[str, str], machine: Machine, environment: Mapping[str, str]
) -> Settings:
    """Make settings of a stack's outputs and its worker's variables."""
    missing = [name for name in NAMES if name not in outputs]
    if missing:
        raise StackUnreachable(
            f"the stack does not say its {', '.join(missing)}: bring it up to date with"
            " `orbweaver deploy`"
        )
    values: dict[str, str] = {}
    if WORKER in outputs:
        found = machine.variables(outputs[WORKER], environment)
        values = {key: value for key, value in found.items() if key.startswith(PREFIX)}
    known = {**NAMES, **{name: field for name, field in EXTRA.items() if name in outputs}}
    names = {PREFIX + field.upper(): outputs[name] for name, field in known.items()}
    # So that no crawl is begun at the stack itself.
    own = {name: environment[name] for name in (ENDPOINT,) if name in environment}
    try:
        return Settings.from_environment({**values, **names, **own})
    except SettingsError as error:
        raise StackUnreachable(
            f"the stack's worker has a setting of another version: {error}"
        ) from None
