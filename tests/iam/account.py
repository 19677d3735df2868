"""An account in this process: moto holds the data, and each function runs under its role.

Handlers, adapters and clients are the deployed ones. `Guard` checks each request by the permissions
that IAM requires (orbweaver.adapters.aws.permissions) and the role's grants, and refuses it as AWS
does.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localstack import layout
from orbweaver.adapters.aws import permissions
from orbweaver.adapters.aws.clients import Aws
from orbweaver.app.aws_ports import Ports
from orbweaver.app.container import Container
from tests.contract.inserts import WithInserts
from tests.contract.worlds import KEYS
from tests.e2e.deeds import Answer, Bench
from tests.e2e.strict import Patient
from tests.iam.book import covers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

HANDLERS = ("worker", "exporter", "api", "starter", "notifier", "delivery", "console")
ISSUER, CLIENT = "https://users.example.com/pool", "console"
BUCKET, THEIRS, SECRET = "bucket", "their-exports", "webhook-key"
QUEUES = {
    "CrawlQueueUrl": "seeds",
    "PackQueueUrl": "crawl",
    "ExpressQueueUrl": "express",
    "DeadLetterQueueUrl": "dead-letters",
    "ExportQueueUrl": "exports",
    "FailedCallsQueueUrl": "failed-calls",
    "DeliveryQueueUrl": "delivery",
    "DeliveryDeadLetterQueueUrl": "delivery-letters",
}
SHARDS = 1  # Each is a unit (part of a day) of an export.
DENIED = "AccessDenied: "
TIME_MS = 60_000


class Guard:
    """Refuses requests that a role does not permit, and records them all."""

    def __init__(self, role: str, granted: frozenset[str]) -> None:
        self.role = role
        self.granted = granted
        self.used: set[str] = set()
        self.refused: list[str] = []

    def watch(self, client: Any) -> None:
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", self._asked)
        events.register_last(f"after-call.{service}", self._answered)

    def check(self, service: str, operation: str, params: Mapping[str, Any]) -> None:
        for needed in permissions.needed(service, operation, params):
            self._check(needed, operation)

    def _check(self, needed: permissions.Permission, operation: str) -> None:
        # Grants name a secret by its full ARN, the request by its name.
        resource = needed.resource.removesuffix(permissions.SUFFIX)
        use = f"{self.role} {needed.action} {resource}"
        self.used.add(use)
        if not any(covers(grant, use) for grant in self.granted):
            self.refused.append(use)
            answer: Any = {
                "Error": {"Code": "AccessDeniedException", "Message": f"not authorized: {use}"},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            }
            raise ClientError(answer, operation)

    def _asked(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        service = model.service_model.service_name
        context["guard"] = service, params
        self.check(service, model.name, params)

    def _answered(self, http_response: Any, model: Any, context: dict[str, Any], **_: Any) -> None:
        if http_response.status_code == HTTPStatus.NOT_FOUND:
            for needed in permissions.absent(*context["guard"]):
                self._check(needed, model.name)


class _Inserts(WithInserts):
    """Insertions as IAM sees them, executed by an unguarded client."""

    def __init__(self, guarded: Any, plain: Any, guard: Guard) -> None:
        super().__init__(plain)
        self._guarded = guarded
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._guarded, name)

    async def batch_execute_statement(self, **parameters: Any) -> dict[str, Any]:
        self._guard.check("dynamodb", "BatchExecuteStatement", parameters)
        return await super().batch_execute_statement(**parameters)


class _Clients(Aws):
    """Guarded clients of a function."""

    def __init__(self, guard: Guard, *watchers: Any) -> None:
        super().__init__(None, *watchers, guard, validates=True)
        self._guard = guard
        self._plain = Aws()

    async def _open(self, service: str) -> Any:
        client = await super()._open(service)
        if service == "dynamodb":
            return _Inserts(client, await self._plain.client(service), self._guard)
        return client

    async def close(self) -> None:
        await super().close()
        await self._plain.close()


class _Function(Container):
    """A container with guarded clients."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard

    async def _opened(self) -> Ports:
        if self._ports is None:
            clients = await self._stack.enter_async_context(_Clients(self.guard, self._meter))
            self._ports = Ports(self._settings, clients, self._meter)
            self._stack.push_async_callback(self._ports.aclose)
        return self._ports

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


@dataclass(frozen=True, slots=True)
class _Context:
    """Lambda's context of an invocation."""

    time_ms: int
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return self.time_ms


class Account(Patient):
    """Resources of the stack in moto, with the names that grants use."""

    def __init__(self, endpoint_url: str, kept: ExitStack) -> None:
        self._kept, self._clients = kept, {}
        self.environment = layout.client_environment(endpoint_url)
        self.outputs = {"Bucket": BUCKET, "WebhookSecret": SECRET}
        self.outputs |= {f"{name.title()}Table": name for name in KEYS}
        self.outputs["WorkerFunction"] = "Orbweaver-worker"
        with self.client("dynamodb") as dynamodb:
            for table, keys in KEYS.items():
                dynamodb.create_table(
                    TableName=table,
                    KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
                    AttributeDefinitions=[
                        {"AttributeName": name, "AttributeType": "S"} for name, _ in keys
                    ],
                    BillingMode="PAY_PER_REQUEST",
                )
        with self.client("sqs") as sqs:
            for output, name in QUEUES.items():
                self.outputs[output] = sqs.create_queue(QueueName=name)["QueueUrl"]
        with self.client("s3") as s3:
            for bucket in (BUCKET, THEIRS):
                s3.create_bucket(Bucket=bucket)
        with self.client("glue") as glue:
            glue.create_database(DatabaseInput={"Name": "orbweaver"})
        with self.client("secretsmanager") as secrets:
            secrets.create_secret(Name=SECRET, SecretString="a key of thirty-two letters, or so")

    def variables(self, role: str) -> dict[str, str]:
        urls = {
            "SEED_QUEUE_URL": "CrawlQueueUrl",
            "CRAWL_QUEUE_URL": "PackQueueUrl",
            "EXPRESS_QUEUE_URL": "ExpressQueueUrl",
            "DEAD_LETTER_QUEUE_URL": "DeadLetterQueueUrl",
            "EXPORT_QUEUE_URL": "ExportQueueUrl",
            "DELIVERY_QUEUE_URL": "DeliveryQueueUrl",
            "DELIVERY_DEAD_LETTER_URL": "DeliveryDeadLetterQueueUrl",
        }
        named = {name: self.outputs[output] for name, output in urls.items()}
        named |= {f"{name.upper()}_TABLE": name for name in KEYS}
        named |= {"BUCKET": BUCKET, "DATABASE": "orbweaver", "COPY_BUCKET": THEIRS}
        named |= {"WEBHOOK_SECRET": SECRET, "ALLOW_ADDRESSES": "127.0.0.1:1-65535"}
        named |= {"PAGES_SHARDS": str(SHARDS)}
        named |= {"CONSOLE_ISSUER": ISSUER, "CONSOLE_CLIENT": CLIENT}
        if role == "notifier":
            named["DEAD_LETTER_QUEUE_URL"] = self.outputs["FailedCallsQueueUrl"]
        return {f"ORBWEAVER_{name}": value for name, value in named.items()}


class Functions:
    """All functions, each under its role."""

    def __init__(
        self, account: Account, granted: frozenset[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.granted = granted
        self._all: dict[str, _Function] = {}
        for name, value in account.environment.items():
            patch.setenv(name, value)
        for role in HANDLERS:
            with patch.context() as own:
                for name, value in account.variables(role).items():
                    own.setenv(name, value)
                function = self._all[role] = _Function(Guard(role, granted))
            module = import_module(f"handlers.{role}")
            patch.setattr(module, "container", lambda function=function: function)

    @property
    def used(self) -> frozenset[str]:
        return frozenset().union(*(one.guard.used for one in self._all.values()))

    @contextmanager
    def without(self, *taken: str) -> Iterator[None]:
        """Remove grants for a block; blocks can be nested."""
        before = {name: function.guard.granted for name, function in self._all.items()}
        for function in self._all.values():
            function.guard.granted -= {*taken}
        try:
            yield
        finally:
            for name, function in self._all.items():
                function.guard.granted = before[name]

    def invoke(
        self, role: str, event: dict[str, Any], time_ms: int = TIME_MS
    ) -> tuple[Any, Answer]:
        """Invoke a function as Lambda does; return its reply and the refused permissions."""
        guard = self._all[role].guard
        guard.refused.clear()
        reply, failed = None, False
        try:
            reply = import_module(f"handlers.{role}").handler(event, _Context(time_ms))
        except Exception as error:  # noqa: BLE001 - whatever a function raises, Lambda takes
            failed, guard.refused[:] = True, [*guard.refused, repr(error)]
        refused = [f"{DENIED}{one}" for one in guard.refused]
        said = "\n".join([json.dumps(reply), *refused])
        return reply, Answer(failed=failed, said=said)

    def close(self) -> None:
        for function in self._all.values():
            function.close()


class Here(Bench):
    """Runs deeds (pieces of work, see tests/e2e/deeds.py) with the functions in this process."""

    functions: Functions
    shards = SHARDS

    def _invoke(self, part: str, event: dict[str, Any]) -> tuple[Any, Answer]:
        return self.functions.invoke(part.lower(), event)
