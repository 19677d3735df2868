"""Compares the meter with the consumption that three DynamoDB implementations report.

The meter must equal their figures without a gap or double count.

dynalite counts reads and writes by size in all its operations, but does not double a consistent
scan. It has no transactions and no PartiQL. The emulator counts writes by size, also in
transactions, as measured on AWS. It reports one unit per read, statement and inserted item at any
size. DynamoDB Local counts reads and writes by size. It has no PartiQL, reports twice what AWS
bills for transactions, and counts missing items of a batch differently. moto reports a constant per
operation, so it is not used.
"""

from __future__ import annotations

import re
import socket
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pytest

from localstack import layout
from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.usage_dynamodb import used
from orbweaver.adapters.aws.usage_meter import ASKED, UsageMeter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiobotocore.session import AioSession

    from orbweaver.adapters.aws.usage_dynamodb import Used
    from orbweaver.adapters.dynamodb.table import Item

# Dynalite needs Node, so it counts as a server.
pytestmark = pytest.mark.emulator

DYNALITE = layout.ROOT / "node_modules" / "dynalite" / "cli.js"
TABLE = "consumed"
Around: TypeAlias = "tuple[AioSession, pytest.MonkeyPatch]"


def key(name: str) -> Item:
    return {"k": {"S": "all"}, "s": {"S": name}}


def item(name: str, size: int) -> Item:
    """Build an item of this size with attributes of every type."""
    return {
        **key(name),
        "blob": {"B": b"x" * size},
        "number": {"N": "-1234.5"},
        "list": {"L": [{"S": "ä"}, {"BOOL": True}, {"M": {"n": {"N": "100"}}}]},
    }


def add_one(name: str, **more: Any) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "Key": key(name),
        "UpdateExpression": "ADD hits :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        **more,
    }


def query(**more: Any) -> dict[str, Any]:
    values = {":all": {"S": "all"}}
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "k = :all",
        "ExpressionAttributeValues": values,
        **more,
    }


def batch(*names: str, **more: Any) -> dict[str, Any]:
    return {"RequestItems": {TABLE: {"Keys": [key(name) for name in names], **more}}}


def one(name: str, **more: Any) -> dict[str, Any]:
    return {"TableName": TABLE, "Key": key(name), **more}


def kept(operation: str, parameters: dict[str, Any]) -> Any:
    """Build a case, identified by operation and variant."""
    more = parameters.keys() - {"TableName", "Key", "Item", "RequestItems", "TransactItems"}
    return pytest.param(operation, parameters, id="-".join((operation, *sorted(more))))


PUT_NEW = {"PutRequest": {"Item": item("new", 2_000)}}
PUT_NEWER = {"PutRequest": {"Item": item("newer", 100)}}
DELETE_SMALL = {"DeleteRequest": {"Key": key("small")}}
DELETE_ABSENT = {"DeleteRequest": {"Key": key("absent")}}
WRITES = [
    kept("put_item", {"TableName": TABLE, "Item": item("new", 10)}),
    kept("put_item", {"TableName": TABLE, "Item": item("new", 950)}),
    kept("put_item", {"TableName": TABLE, "Item": item("new", 9_000)}),
    kept("put_item", {"TableName": TABLE, "Item": item("three", 100), "ReturnValues": "ALL_OLD"}),
    kept("update_item", add_one("new")),
    kept("update_item", add_one("large", ReturnValues="ALL_NEW")),
    kept("update_item", add_one("large", ReturnValues="ALL_OLD")),
    kept("delete_item", one("small")),
    kept("delete_item", one("absent")),
    kept("delete_item", one("large", ReturnValues="ALL_OLD")),
    kept(
        "batch_write_item",
        {
            "RequestItems": {
                TABLE: [PUT_NEW, PUT_NEWER, DELETE_SMALL, DELETE_ABSENT],
            }
        },
    ),
]
READS = [
    kept("get_item", one("large")),
    kept("get_item", one("large", ConsistentRead=True)),
    kept("get_item", one("absent")),
    kept("get_item", one("absent", ConsistentRead=True)),
    kept("batch_get_item", batch("small", "three", "large", "absent")),
    kept("batch_get_item", batch("small", "large", "absent", ConsistentRead=True)),
    kept("query", query()),
    kept("query", query(ConsistentRead=True)),
    kept("query", query(Limit=2)),
    kept("scan", {"TableName": TABLE}),
]
TRANSACTIONS = [
    kept(
        "transact_write_items",
        {
            "TransactItems": [
                {"Put": {"TableName": TABLE, "Item": item("new", 3_000)}},
                {"Update": add_one("newer")},
                {"Delete": one("small")},
            ]
        },
    ),
]
# The rules cannot know the size of an item that was neither sent nor returned.
UNKNOWN = [
    kept("put_item", {"TableName": TABLE, "Item": item("three", 100)}),
    kept("update_item", add_one("large")),
    kept("delete_item", one("large")),
    kept("get_item", one("large", ProjectionExpression="k")),
    kept("query", query(FilterExpression="attribute_exists(absent)")),
    kept("query", query(Select="COUNT")),
]


@pytest.fixture(scope="session")
def dynalite() -> Iterator[str]:
    node = layout.node_directory() / "node"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(node), str(DYNALITE), "--host", "127.0.0.1", "--port", str(port)]
    words += ["--createTableMs", "1", "--deleteTableMs", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found is not None, said
        yield found[0]
        process.terminate()


class Bench:
    """A table and a client that records every answer."""

    def __init__(self, client: Any, meter: UsageMeter) -> None:
        self.client = client
        self.meter = meter
        self.seen: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        client.meta.events.register_first("after-call.dynamodb", self._note)

    def _note(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        asked, model = context[ASKED]
        self.seen.append((model.name, asked, parsed))

    async def fill(self) -> None:
        names = ("k", "s")
        await self.client.create_table(
            TableName=TABLE,
            KeySchema=[
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
            ],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            BillingMode="PAY_PER_REQUEST",
        )
        await self.client.get_waiter("table_exists").wait(
            TableName=TABLE, WaiterConfig={"Delay": 0, "MaxAttempts": 100}
        )
        for name, size in (("small", 100), ("three", 3_000), ("large", 20_000)):
            await self.client.put_item(TableName=TABLE, Item=item(name, size))
        self.seen.clear()

    async def ask(self, operation: str, parameters: dict[str, Any]) -> tuple[Used, Used]:
        """Call an operation; return its units by the product's rules and by the meter."""
        with self.meter.invocation():
            await getattr(self.client, operation)(**parameters)
            counted = self.meter.total.by_term
        ((name, asked, answer),) = self.seen
        silent = {part: value for part, value in answer.items() if part != "ConsumedCapacity"}
        ours = used(name, asked, silent, final=False)
        told = used(name, asked, answer, final=True)
        assert {table for table, _ in told} == {TABLE}
        for (_, term), number in told.items():
            assert counted[term] == number
        return ours, told


@pytest.fixture
def around(session: AioSession, monkeypatch: pytest.MonkeyPatch) -> Around:
    return session, monkeypatch


@asynccontextmanager
async def opened(endpoint_url: str, around: Around) -> AsyncIterator[Bench]:
    session, monkeypatch = around
    for variable, value in layout.client_environment(endpoint_url).items():
        monkeypatch.setenv(variable, value)
    meter = UsageMeter(tables={TABLE: "urls"})
    async with Aws(session, meter, validates=True) as aws:
        bench = Bench(await aws.client("dynamodb"), meter)
        await bench.fill()
        try:
            yield bench
        finally:
            await bench.client.delete_table(TableName=TABLE)
            await bench.client.get_waiter("table_not_exists").wait(
                TableName=TABLE, WaiterConfig={"Delay": 0, "MaxAttempts": 100}
            )


@pytest.mark.parametrize(("operation", "parameters"), [*WRITES, *READS])
async def test_meter_matches_dynalite(
    operation: str,
    parameters: dict[str, Any],
    dynalite: str,
    around: Around,
) -> None:
    async with opened(dynalite, around) as bench:
        ours, told = await bench.ask(operation, parameters)
    assert ours == told


@pytest.mark.parametrize(("operation", "parameters"), [*WRITES, *TRANSACTIONS])
async def test_meter_matches_emulator(
    operation: str,
    parameters: dict[str, Any],
    ministack: str,
    around: Around,
) -> None:
    async with opened(ministack, around) as bench:
        ours, told = await bench.ask(operation, parameters)
    assert ours == told


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        *(case for case in (*WRITES, *READS) if not str(case.values[0]).startswith("batch_")),
        kept("batch_get_item", batch("small", "three", "large")),
        kept("batch_get_item", batch("small", "large", ConsistentRead=True)),
        kept("batch_write_item", {"RequestItems": {TABLE: [PUT_NEW, PUT_NEWER, DELETE_SMALL]}}),
    ],
)
async def test_meter_matches_dynamodb_local(
    operation: str,
    parameters: dict[str, Any],
    aws_tables: str,
    around: Around,
) -> None:
    async with opened(aws_tables, around) as bench:
        ours, told = await bench.ask(operation, parameters)
    assert ours == told


async def test_dynamodb_local_overcounts_transactions_and_empty_deletes(
    aws_tables: str, around: Around
) -> None:
    ((operation, parameters),) = (case.values for case in TRANSACTIONS)
    async with opened(aws_tables, around) as bench:
        ours, told = await bench.ask(str(operation), cast("dict[str, Any]", parameters))
    assert (*ours.values(), *told.values()) == (10, 16)
    nothing = {"RequestItems": {TABLE: [DELETE_ABSENT]}}
    async with opened(aws_tables, around) as bench:
        ours, told = await bench.ask("batch_write_item", nothing)
    assert (*ours.values(), *told.values()) == (1, 2)


@pytest.mark.parametrize(("operation", "parameters"), UNKNOWN)
async def test_meter_prefers_reported_units_over_rules(
    operation: str,
    parameters: dict[str, Any],
    dynalite: str,
    around: Around,
) -> None:
    """The rules alone can undercount, never overcount."""
    async with opened(dynalite, around) as bench:
        ours, told = await bench.ask(operation, parameters)
    assert ours.keys() == told.keys()
    assert all(ours[what] < told[what] for what in told)
