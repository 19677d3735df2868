"""The real `Machine`: uses the emulator and CDK through `localstack`, and boto3 for AWS.

Imports are inside functions, so that commands like `orbweaver url` do not load boto3.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.cli.stack import (
    ENDPOINT,
    LOCAL_CONTEXT,
    EmulatedStack,
    StackUnreachable,
    start_hint,
)

if TYPE_CHECKING:
    from localstack.deployed import Alarm, Source
    from orbweaver.app.aws_ports import Ports
    from orbweaver.cli.stack import Say
    from orbweaver.frontier.queues import Depths
    from orbweaver.model.settings import Settings


@contextlib.asynccontextmanager
async def connect(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Ports]:
    """Open the real ports of a stack.

    Until the ports are closed, environment variables point this process to this stack.
    """
    from orbweaver.app import container

    others = dict.fromkeys(name for name in os.environ if name.startswith("AWS_"))
    before = _set_variables({**others, **environment})
    try:
        async with container.connect(settings) as ports:
            yield ports
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Set environment variables, or remove them (None). Return the previous values."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


class ThisMachine:
    """Implements `Machine`. The SQS client is kept, because it is used every second."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._queues: dict[str | None, Any] = {}

    def close(self) -> None:
        self._queues.clear()
        self._open.close()

    def local(self) -> Mapping[int, Mapping[str, str]]:
        from localstack import emulator

        kept = [found for found in emulator.find_all() if found.keep]
        kept.sort(key=lambda found: found.port != emulator.PORT)
        return {found.port: found.environment() for found in kept}

    def stopped(self) -> list[int]:
        from localstack import emulator

        return emulator.stopped()

    def region(self, environment: Mapping[str, str]) -> str | None:
        from localstack import cdk

        return cdk.region_of(environment)

    def outputs(
        self, stack: str, environment: Mapping[str, str], say: Say
    ) -> Mapping[str, str] | None:
        from localstack import deployed

        with _reaching(f"{start_hint(self)} starts a stack on this machine"):
            found = deployed.describe(stack, environment)
        if found is None:
            return None
        if not found.exists:
            raise StackUnreachable(found.status_text)
        if not found.is_settled:
            say(found.status_text)
        return found.outputs

    def usual_stack(self) -> str:
        from localstack import deployment

        return deployment.usual_name()

    def stacks(self, environment: Mapping[str, str]) -> list[str]:
        from localstack import deployed

        return deployed.names(environment)

    def sources(self, function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
        from localstack import deployed

        return deployed.read_sources(function, environment)

    def alarms(self, stack: str, environment: Mapping[str, str]) -> tuple[Alarm, ...] | None:
        from localstack import deployed

        return deployed.read_alarms(stack, environment)

    def switch(self, source: Source, environment: Mapping[str, str], *, on: bool) -> bool:
        from localstack import deployed

        return deployed.switch(source, environment, on=on)

    def variables(self, function: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        from botocore.exceptions import BotoCoreError, ClientError

        from localstack import cdk

        try:
            with cdk.client("lambda", environment) as client:
                found = client.get_function_configuration(FunctionName=function)
        except (BotoCoreError, ClientError, StackUnreachable):
            return {}
        variables: dict[str, str] = found.get("Environment", {}).get("Variables", {})
        return variables

    def context(self, stack: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        from localstack import deployed

        return deployed.context_of(stack, environment)

    def depths(self, settings: Settings, environment: Mapping[str, str]) -> Depths | None:
        from botocore.exceptions import BotoCoreError, ClientError

        from localstack import cdk
        from orbweaver.adapters.aws.queue_depths import depths_of

        urls = (settings.queues.seed_queue_url, *settings.queues.pack_queue_urls)
        try:
            endpoint = environment.get(ENDPOINT)
            if endpoint not in self._queues:
                opening = cdk.client("sqs", environment)
                self._queues[endpoint] = self._open.enter_context(opening)
            client = self._queues[endpoint]
            lanes = [_counts(client, url) for url in urls]
            dead = _counts(client, settings.queues.dead_letter_queue_url)
        except (BotoCoreError, ClientError, StackUnreachable):
            return None
        return depths_of(lanes, dead)

    @contextlib.contextmanager
    def running_stack(
        self, port: int, say: Say, context: Mapping[str, str] | None = None
    ) -> Iterator[EmulatedStack]:
        from localstack import extras

        extras.require_cdk()
        from localstack import stack

        with contextlib.ExitStack() as use:
            with _reaching():
                found, started = use.enter_context(stack.shared(port, say=say))
                given = _kept(dict(context or {}), found.directory)
                outputs = stack.bring_up_to_date(
                    found, given, defaults=LOCAL_CONTEXT, working=True, say=say
                )
            yield EmulatedStack(
                environment=found.environment(),
                outputs=outputs,
                started=started,
                log=str(found.log),
            )

    def start_stack(
        self, port: int, context: Mapping[str, str], *, fresh: bool, say: Say
    ) -> Mapping[str, str]:
        from localstack import extras

        extras.require_cdk()
        from localstack import stack

        with _reaching():
            stood = stack.up(
                port=port, fresh=fresh, context=context, defaults=LOCAL_CONTEXT, say=say
            )
        return {**stood.outputs, ENDPOINT: stood.emulator.endpoint_url}

    def down(self, port: int | None, say: Say) -> bool:
        from localstack import emulator, stack

        with _reaching():
            ports = [found.port for found in emulator.find_all()] if port is None else [port]
            stopped = [stack.down(each, say=say) for each in ports]
        return any(stopped)

    def ports(self) -> frozenset[int]:
        from localstack import emulator

        return frozenset(found.port for found in emulator.find_all())

    def running(self) -> list[str]:
        from localstack import cdk, deployed, emulator

        lines = []
        for found in emulator.find_all():
            healthy = found.is_healthy()
            health = "healthy" if healthy else "does not answer"
            lines.append(f"{found.endpoint_url}  {health}  log {found.log}")
            with contextlib.suppress(StackUnreachable):
                stacks = deployed.of_product(found.environment()) if healthy else ()
                apis = ((one.name, one.outputs.get(cdk.API_URL)) for one in stacks)
                lines += [f"  stack {name}, API {url}" for name, url in apis if url]
        return lines

    def lost_data(self) -> list[str]:
        from localstack import emulator

        return emulator.lost_data()

    def deploy(
        self,
        environment: Mapping[str, str],
        context: Mapping[str, str],
        *,
        reset: bool,
        yes: bool,
        say: Say,
    ) -> Mapping[str, str]:
        from localstack import deployment, emulator, stack

        endpoint = environment.get(ENDPOINT)
        with _reaching():
            for found in emulator.find_all():
                if found.endpoint_url == endpoint:
                    return stack.bring_up_to_date(
                        found, context, defaults=LOCAL_CONTEXT, reset=reset, say=say
                    )
            planned = deployment.plan(context, environment, reset=reset)
            outputs = deployment.deploy(planned, environment, yes=yes, say=say)
            deployment.switch(context, outputs, environment)
            return outputs

    def destroy(
        self, environment: Mapping[str, str], context: Mapping[str, str], *, yes: bool, say: Say
    ) -> None:
        from localstack import cdk, emulator

        endpoint = environment.get(ENDPOINT)
        with _reaching():
            if any(found.endpoint_url == endpoint for found in emulator.find_all()):
                context = {**LOCAL_CONTEXT, **context}
            cdk.destroy(environment, context, yes=yes, say=say)


def _kept(context: dict[str, str], folder: Path) -> dict[str, str]:
    """Copy a custom module to the emulator's `folder`, and return `context` with the copy.

    The stack needs the module when it is started again.
    """
    if (module := context.get("extractor")) is not None:
        body = Path(module).read_bytes()
        kept = folder / "extractors" / f"{hashlib.sha256(body).hexdigest()[:16]}.py"
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(body)
        context["extractor"] = str(kept)
    return context


@contextlib.contextmanager
def _reaching(hint: str = "") -> Iterator[None]:
    """Convert errors of AWS clients to StackUnreachable, and add a hint to its message."""
    from localstack.errors import sentence_of

    try:
        yield
    except Exception as error:
        said = str(error) if isinstance(error, StackUnreachable) else sentence_of(error)
        if said is None:
            raise
        raise StackUnreachable("\n".join(filter(None, (said, hint)))) from error


def _counts(client: Any, url: str) -> Mapping[str, str]:
    from orbweaver.adapters.aws.queue_depths import COUNTS

    found: Mapping[str, str] = client.get_queue_attributes(
        QueueUrl=url, AttributeNames=list(COUNTS)
    )["Attributes"]
    return found
