"""Choose the stack of a command, and read the stack's settings.

- `--port` names a stack on this machine. Otherwise `--target` is `local` or `aws`. Without both
  options, the endpoint in the environment is used. If it is not set, a stack that runs on this
  machine is used, or else the AWS account of the environment.
- The region is the first that is set of `--region`, `AWS_REGION`, `AWS_DEFAULT_REGION` and the
  region of the profile. Both variables are set to the chosen region, so that all clients use it.
  Without a region the command fails.
- The stack's outputs contain the names of its resources. The environment of its worker contains its
  limits, so that commands read records where that worker writes them.
- A stack on this machine can crawl servers of this machine without a new deployment. It only
  requests servers that the seeds name (model/named_origins.py), and never the emulator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from localstack.errors import LocalStackError
from orbweaver.model.address_policy import THIS_MACHINE
from orbweaver.model.errors import Transient
from orbweaver.model.settings import PREFIX, Settings, SettingsError
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from localstack.deployed import Alarm, Source
    from orbweaver.control.crawl_queries import Status
    from orbweaver.frontier.queues import Depths
    from orbweaver.model.crawl import Crawl

    Say = Callable[[str], None]

ENDPOINT = "AWS_ENDPOINT_URL"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
EMULATOR_REGION = "us-east-1"
PORT = 4566
LOCAL_POLL_S, AWS_POLL_S = 1.0, 3.0
# A command that watches a crawl fails if a stack does not answer for this time after an answer. The
# limits are long, because a network can return and a laptop can wake up.
SILENCE_MS_MAX, LOCAL_SILENCE_MS_MAX = 5 * 60_000, 60_000
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
# Optional outputs, which only some stacks have.
EXTRA = {
    "RenderQueueUrl": "render_queue_url",
    "Database": "database",
    "WebhookSecret": "webhook_secret",
    "DeliveryQueueUrl": "delivery_queue_url",
    "DeliveryDeadLetterQueueUrl": "delivery_dead_letter_url",
}
WORKER, RENDERER = "WorkerFunction", "RendererFunction"
# The stack cannot be reached. The message contains the command to run.
StackUnreachable = LocalStackError


@value_class
class EmulatedStack:
    """A stack on this machine. `started` is True if this command started its emulator."""

    environment: Mapping[str, str]
    outputs: Mapping[str, str]
    started: bool
    log: str


class Machine(Protocol):
    """Access to this machine, and to the account of an environment."""

    def region(self, environment: Mapping[str, str]) -> str | None:
        """Return the region of the environment's profile."""

    def local(self) -> Mapping[int, Mapping[str, str]]:
        """Return the environments of this machine's running stacks, by port, default port first."""

    def stopped(self) -> list[int]:
        """Return the ports of stopped stacks whose data are kept, most recently used first."""

    def outputs(
        self, stack: str, environment: Mapping[str, str], say: Say
    ) -> Mapping[str, str] | None:
        """Return a stack's outputs, or None if it does not exist. Raises StackUnreachable.

        If the stack is being updated, `say` reports it, and the outputs are returned anyway.
        """

    def usual_stack(self) -> str:
        """Return the default stack name, from cdk.json if it has one."""

    def stacks(self, environment: Mapping[str, str]) -> list[str]:
        """Return the names of Orbweaver's stacks in an account and region."""

    def sources(self, function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
        """List the event sources of a function. Raises StackUnreachable."""

    def alarms(self, stack: str, environment: Mapping[str, str]) -> tuple[Alarm, ...] | None:
        """List the alarms of a stack. Returns None without permission. Raises StackUnreachable."""

    def switch(self, source: Source, environment: Mapping[str, str], *, on: bool) -> bool:
        """Switch an event source. Returns False if it is busy. Raises StackUnreachable."""

    def variables(self, function: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return a function's environment variables. Empty without permission."""

    def context(self, stack: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the context keys of a stack's deployment. Raises StackUnreachable."""

    def depths(self, settings: Settings, environment: Mapping[str, str]) -> Depths | None:
        """Count queued messages. Returns None without permission."""

    def running_stack(
        self, port: int, say: Say, context: Mapping[str, str] | None = None
    ) -> AbstractContextManager[EmulatedStack]:
        """Provide the stack of a port, with additional context keys, in a `with` block.

        The stack is stopped afterwards if this call started it.
        """

    def start_stack(
        self, port: int, context: Mapping[str, str], *, fresh: bool, say: Say
    ) -> Mapping[str, str]:
        """Start the stack of a port. Return its outputs and the endpoint.

        If `fresh` is True, the data of an earlier stack are deleted.
        """

    def down(self, port: int | None, say: Say) -> bool:
        """Stop the emulator of a port, or (None) all emulators. Returns False if none ran."""

    def running(self) -> list[str]:
        """Describe the running emulators, one per line, then the addresses of their HTTP APIs."""

    def lost_data(self) -> list[str]:
        """Describe the data that were lost because emulators were killed, one line each."""

    def deploy(
        self,
        environment: Mapping[str, str],
        context: Mapping[str, str],
        *,
        reset: bool,
        yes: bool,
        say: Say,
    ) -> Mapping[str, str]:
        """Deploy a stack with the context keys `context`, and return its outputs.

        If the stack exists, it also keeps its other context keys, unless `reset` is True.
        """

    def destroy(
        self, environment: Mapping[str, str], context: Mapping[str, str], *, yes: bool, say: Say
    ) -> None: ...


def environment_of(
    target: str | None,
    machine: Machine,
    environment: Mapping[str, str],
    region: str | None = None,
    *,
    port: int | None = None,
    note: Say = lambda _: None,
) -> Mapping[str, str]:
    """Choose a stack, and return the environment variables for its clients.

    Raises StackUnreachable.
    """
    if port is not None:
        return _on_port(port, machine)
    if target != "aws" and (target == "local" or not environment.get(ENDPOINT)):
        local = machine.local()
        if len(local) > 1:
            taken, *others = local
            named = " or ".join(f"--port {other}" for other in others)
            many = f"{len(local)} stacks run on this machine"
            note(f"{many}; using the one on port {taken}: {named} selects another")
        if local:
            return next(iter(local.values()))
        if target == "local":
            raise StackUnreachable(f"no stack runs on this machine: run {start_hint(machine)}")
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
    """Return the option that names a stack on this machine, or "" for the default port."""
    return "" if port == PORT else f" --port {port}"


def start_hint(machine: Machine) -> str:
    """Return the command that starts this machine's last used stack, or else a new stack."""
    stopped = machine.stopped()
    return f"`orbweaver local up{port_option(stopped[0]) if stopped else ''}`"


def export_line(endpoint: str) -> str:
    """Return a shell command that makes AWS clients use the emulator at `endpoint`."""
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
            f" {start_hint(machine)}; `orbweaver crawl URL` needs neither and makes a store in this"
            " folder, --store DIR names another one"
        )
    return {**environment, **dict.fromkeys(REGIONS, region)}


def outputs_of(
    stack: str, machine: Machine, environment: Mapping[str, str], say: Say
) -> Mapping[str, str]:
    """Return a stack's outputs. Raises StackUnreachable."""
    outputs = machine.outputs(stack, environment, say)
    if outputs is None:
        where = environment.get(ENDPOINT) or "this AWS account and region"
        raise StackUnreachable(
            f"there is no stack {stack!r} at {where}: run `orbweaver deploy`, or"
            f" {start_hint(machine)} for one on this machine"
        )
    return outputs


def workers_of(outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the functions that process packs (batches of URLs): worker and, if any, renderer."""
    return tuple(outputs[name] for name in (WORKER, RENDERER) if name in outputs)


def sources_of(
    functions: Iterable[str], machine: Machine, environment: Mapping[str, str]
) -> tuple[Source, ...]:
    return tuple(source for one in functions for source in machine.sources(one, environment))


def settings_of(
    stack: str, machine: Machine, environment: Mapping[str, str], say: Say = lambda _: None
) -> Settings:
    """Return a stack's settings. Raises StackUnreachable."""
    return settings_from(outputs_of(stack, machine, environment, say), machine, environment)


def settings_from(
    outputs: Mapping[str, str], machine: Machine, environment: Mapping[str, str]
) -> Settings:
    """Build settings from a stack's outputs and its worker's environment variables."""
    missing = [name for name in NAMES if name not in outputs]
    if missing:
        raise StackUnreachable(
            f"the stack lacks the outputs {', '.join(missing)}: update it with `orbweaver deploy`"
        )
    values: dict[str, str] = {}
    if WORKER in outputs:
        found = machine.variables(outputs[WORKER], environment)
        # Without permission to read the variables, the function's name contains the stack's name.
        values = {f"{PREFIX}STACK": outputs[WORKER].removesuffix("-worker")}
        values |= {key: value for key, value in found.items() if key.startswith(PREFIX)}
    known = {**NAMES, **{name: field for name, field in EXTRA.items() if name in outputs}}
    names = {PREFIX + field.upper(): outputs[name] for name, field in known.items()}
    # Settings need the stack's own endpoint, so that a crawl cannot start at the stack itself.
    own = {name: environment[name] for name in (ENDPOINT,) if name in environment}
    try:
        return Settings.from_environment({**values, **names, **own})
    except SettingsError as error:
        raise StackUnreachable(
            f"the stack's worker has a setting of another version: {error}"
        ) from None


@value_class
class StackPlace:
    """A stack: its queues, workers and alarms. Implements `ConsolePlace`.

    `functions` are the names of its worker function and renderer function, if it has them.
    """

    machine: Machine
    settings: Settings
    environment: Mapping[str, str]
    functions: tuple[str, ...] = ()
    stack: str = ""
    billed: bool = True
    others: tuple[int, ...] = ()
    idle: bool = False
    silent_ms: int = 0
    left_in_work: Mapping[str, int] = field(default_factory=dict)

    def has_others(self) -> bool:
        """Return True: workers run elsewhere, and their messages cannot be taken back."""
        return True

    @property
    def poll_s(self) -> float:
        return LOCAL_POLL_S if self.environment.get(ENDPOINT) else AWS_POLL_S

    @property
    def silence_ms_max(self) -> int:
        return LOCAL_SILENCE_MS_MAX if self.environment.get(ENDPOINT) else SILENCE_MS_MAX

    @property
    def title(self) -> str:
        if endpoint := self.environment.get(ENDPOINT):
            return f"the stack on this machine, at {endpoint}"
        return f"the stack on AWS, in {self.environment.get(REGIONS[0], 'its region')}"

    async def depths(self) -> Depths | None:
        return await asyncio.to_thread(self.machine.depths, self.settings, self.environment)

    async def waiting(self, status: Status) -> tuple[str, ...]:  # noqa: ARG002 - a store needs it
        """Return (), because SQS shows messages only to workers."""
        return ()

    async def idle_workers(self, crawl: Crawl | None = None) -> str | None:  # noqa: ARG002 - see above
        try:
            found = await self._sources()
        except StackUnreachable:
            return None
        if not found or not all(source.is_off for source in found):
            return None
        return "All workers are off. Switch them on with `orbweaver workers on`."

    def reclaimed(self) -> bool:
        """Return False: SQS releases messages itself, and an invocation might be running."""
        return False

    async def workers(self) -> Mapping[str, str] | None:
        if not self.functions:
            return None
        with _transient():
            return {source.queue: source.state for source in await self._sources()}

    async def alarms(self) -> list[dict[str, Any]] | None:
        with _transient():
            found = await asyncio.to_thread(self.machine.alarms, self.stack, self.environment)
        return None if found is None else [asdict(alarm) for alarm in found]

    async def switch(self, *, on: bool) -> Mapping[str, str] | None:
        """Request that AWS switches the workers, which takes a while. Return their states."""
        act = partial(ask_to_switch, self.machine, self.functions, self.environment, on=on)
        with _transient():
            await asyncio.to_thread(act)
        return await self.workers()

    async def _sources(self) -> tuple[Source, ...]:
        return await asyncio.to_thread(sources_of, self.functions, self.machine, self.environment)


def ask_to_switch(
    machine: Machine, functions: Iterable[str], environment: Mapping[str, str], *, on: bool
) -> tuple[Source, ...]:
    """Switch the event sources that are not in the wanted state. Return all previous states."""
    found = sources_of(functions, machine, environment)
    for source in found:
        if source.is_off == on:
            machine.switch(source, environment, on=on)
    return found


@contextmanager
def _transient() -> Iterator[None]:
    """Convert StackUnreachable to Transient, so that the console retries."""
    try:
        yield
    except StackUnreachable as error:
        raise Transient(str(error)) from error
