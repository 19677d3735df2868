"""What a container uses: counted at its clients, by crawl and stage, until a commit takes it."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.hooks import HierarchicalEmitter

from orbweaver.adapters.meter import (
    CRAWLS_MAX,
    LINE_BYTES,
    PLATFORM_BYTES,
    Meter,
    MeteredFetcher,
    MeteredStream,
)
from orbweaver.core.exchange import Request, Response
from orbweaver.core.units import Stage, Term, units_of

TABLES = {
    "Stack-urls": "urls",
    "Stack-hosts": "hosts",
    "Stack-packs": "packs",
    "Stack-crawls": "crawls",
}
AWS = "https://dynamodb.us-east-1.amazonaws.com/"
EMULATOR = "http://127.0.0.1:4566/"


@dataclass
class Named:
    """Something with a name, as botocore's models have them."""

    name: str
    service_model: Any = None


@dataclass
class Answered:
    """The head of an answer."""

    status_code: int
    url: str


@dataclass
class FakeClient:
    """A client of a service, whose answers the test gives."""

    service: str
    events: HierarchicalEmitter = field(default_factory=HierarchicalEmitter)

    @property
    def meta(self) -> FakeClient:
        return self

    @property
    def service_model(self) -> FakeClient:
        return self

    @property
    def service_id(self) -> FakeClient:
        return self

    @property
    def service_name(self) -> str:
        return self.service

    def hyphenize(self) -> str:
        return self.service

    def ask(
        self,
        operation: str,
        asked: dict[str, Any],
        answer: dict[str, Any] | None,
        *,
        url: str = EMULATOR,
        status: int = 200,
    ) -> None:
        """Emit what botocore emits of a call; without an answer, those of one that was lost."""
        model = Named(operation, self)
        context: dict[str, Any] = {}
        name = f"{self.service}.{operation}"
        said = {"params": asked, "model": model, "context": context}
        self.events.emit(f"provide-client-params.{name}", **said)
        if answer is None:
            self.events.emit(f"after-call-error.{name}", exception=TimeoutError(), context=context)
        else:
            self.events.emit(
                f"after-call.{name}",
                http_response=Answered(status, url),
                parsed=answer,
                model=model,
                context=context,
            )


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """Start a clock."""
    return Clock()


@pytest.fixture
def meter(clock: Clock) -> Meter:
    """Make a meter of a function with 1,000 MB."""
    return Meter(tables=TABLES, memory_mb=1_000, clock_s=clock)


def used(meter: Meter) -> dict[str, int]:
    """Spell what this invocation used, without what every one does."""
    tally = meter.total.tally
    return {key: n for key, n in tally.items() if not key.endswith(".run")}


# --- requests -----------------------------------------------------------------------------------

PUT = {"TableName": "Stack-urls", "Item": {"k": {"S": "x" * 2_000}}}
ADD = {
    "TableName": "Stack-crawls",
    "Key": {"k": {"S": "a"}},
    "UpdateExpression": "ADD #n :n",
    "ExpressionAttributeNames": {"#n": "n"},
    "ExpressionAttributeValues": {":n": {"N": "1"}},
}
INSERT = {
    "Statement": "INSERT INTO \"Stack-urls\" VALUE {'k': ?, 'long': ?}",
    "Parameters": [{"S": "a"}, {"B": b"x" * 1_500}],
}
SELECT = {"Statement": 'SELECT * FROM "Stack-urls" WHERE k = ?', "Parameters": [{"S": "a"}]}
KEYS = [{"k": {"S": name}} for name in "abc"]
LARGE = {"k": {"S": "a"}, "b": {"B": b"x" * 9_000}}
HOST = {"host": {"S": "https://a.example"}}
ROBOTS = {"host": {"S": "https://a.example#robots"}}
FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}
CANCELLED = {
    "Error": {"Code": "TransactionCanceledException"},
    "CancellationReasons": [{"Code": "ConditionalCheckFailed", "Item": LARGE}, {"Code": "None"}],
}
ACTIONS = {"TransactItems": [{"Put": PUT}, {"Update": ADD}]}


@pytest.mark.parametrize(
    ("operation", "asked", "answer", "tally"),
    [
        ("PutItem", PUT, {}, {"write.claim": 2}),
        ("PutItem", PUT, FAILED, {"write.claim": 2}),
        ("PutItem", PUT, {**FAILED, "Item": LARGE}, {"write.claim": 9}),
        ("PutItem", PUT, {"Error": {"Code": "ThrottlingException"}}, {}),
        ("PutItem", PUT, {"Error": {"Code": "ValidationException"}}, {}),
        ("PutItem", {**PUT, "TableName": "another"}, {}, {"write.other": 2}),
        (
            "PutItem",
            {**PUT, "TableName": "arn:aws:dynamodb:us-east-1:1:table/Stack-packs"},
            {},
            {"write.journal": 2},
        ),
        ("UpdateItem", ADD, {}, {"write.reserve": 1}),
        ("UpdateItem", ADD, {"Attributes": LARGE}, {"write.reserve": 9}),
        ("UpdateItem", {**ADD, "TableName": "Stack-packs"}, {}, {"write.sent": 1}),
        ("PutItem", {"TableName": "Stack-hosts", "Item": HOST}, {}, {"write.host": 1}),
        ("PutItem", {"TableName": "Stack-hosts", "Item": ROBOTS}, {}, {"write.robots": 1}),
        (
            "GetItem",
            {"TableName": "Stack-hosts", "Key": ROBOTS},
            {},
            {"read_halves.robots": 1},
        ),
        ("DescribeTable", {"TableName": "Stack-urls"}, {}, {}),
        ("TransactWriteItems", ACTIONS, {}, {"write.commit": 2 * (2 + 1)}),
        ("TransactWriteItems", ACTIONS, CANCELLED, {"write.commit": 2 * (9 + 1)}),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "Stack-urls", "Key": KEYS[0]}}]},
            {"Responses": [{"Item": LARGE}]},
            {"read_halves.lookup": 4 * 3},
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"Stack-urls": {"Keys": KEYS}}},
            {
                "Responses": {"Stack-urls": [LARGE]},
                "UnprocessedKeys": {"Stack-urls": {"Keys": KEYS[1:2]}},
            },
            {"read_halves.lookup": 3 + 1},
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"Stack-urls": [{"PutRequest": {"Item": LARGE}}] * 2}},
            {"UnprocessedItems": {"Stack-urls": [{"PutRequest": {"Item": LARGE}}]}},
            {"write.claim": 9},
        ),
        (
            "Query",
            {"TableName": "Stack-urls", "ConsistentRead": True},
            {"Items": [LARGE], "Count": 1, "ScannedCount": 3},
            {"read_halves.lookup": 2 * 7},
        ),
        (
            "Query",
            {"TableName": "Stack-urls"},
            {"Items": [], "Count": 0},
            {"read_halves.lookup": 1},
        ),
        (
            "BatchExecuteStatement",
            {"Statements": [INSERT] * 3},
            {
                "Responses": [
                    {},
                    {"Error": {"Code": "DuplicateItem"}},
                    {"Error": {"Code": "ThrottlingError"}},
                ]
            },
            {"write.claim": 2 * 2},
        ),
        (
            "BatchExecuteStatement",
            {"Statements": [{**SELECT, "ConsistentRead": True}]},
            {"Responses": [{"Item": LARGE}]},
            {"read_halves.lookup": 2 * 3},
        ),
        ("ExecuteStatement", SELECT, {"Items": [LARGE]}, {"read_halves.lookup": 3}),
        ("ExecuteStatement", INSERT, {}, {"write.claim": 2}),
    ],
)
def test_requests_to_tables(
    meter: Meter,
    operation: str,
    asked: dict[str, Any],
    answer: dict[str, Any],
    tally: dict[str, int],
) -> None:
    """By size, where no answer says what was consumed, at the stage that its table belongs to."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    client.ask(operation, dict(asked), answer)
    assert used(meter) == {f"units.{key}": number for key, number in tally.items()}


@pytest.mark.parametrize(
    ("url", "told", "units"), [(AWS, 1, 1), (AWS, 7, 7), (EMULATOR, 1, 2), (EMULATOR, 7, 7)]
)
def test_who_is_believed(meter: Meter, url: str, told: float, units: int) -> None:
    """AWS whatever it says, and who plays it no less than what our own rules say."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    asked = dict(PUT)
    capacity = {"TableName": "Stack-urls", "CapacityUnits": told}
    client.ask("PutItem", asked, {"ConsumedCapacity": capacity}, url=url)
    assert used(meter) == {"units.write.claim": units}
    assert asked["ReturnConsumedCapacity"] == "TOTAL"


def test_what_a_repeated_transaction_reads(meter: Meter) -> None:
    """An answer may tell writes from reads: the second of the same token only reads."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    capacity = {"TableName": "Stack-urls", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}
    client.ask("TransactWriteItems", dict(ACTIONS), {"ConsumedCapacity": [capacity]}, url=AWS)
    assert used(meter) == {"units.read_halves.commit": 4}


@pytest.mark.parametrize(("answer", "status", "units"), [(None, 0, 2), ({}, 500, 0)])
def test_requests_that_went_wrong(
    meter: Meter, answer: dict[str, Any] | None, status: int, units: int
) -> None:
    """One whose answer was lost may have been carried out; a fault of AWS costs nothing."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    client.ask("PutItem", dict(PUT), answer, status=status)
    assert meter.total.by_term.get(Term.WRITE, 0) == units


TEXT = {"DataType": "String", "StringValue": "y" * 94}


@pytest.mark.parametrize(
    ("service", "operation", "asked", "answer", "tally"),
    [
        ("sqs", "SendMessage", {"MessageBody": "x"}, {}, {"sqs.send": 1}),
        (
            "sqs",
            "SendMessage",
            {"MessageBody": "x" * 65_436, "MessageAttributes": {"r": TEXT}},
            {},
            {"sqs.send": 2},
        ),
        (
            "sqs",
            "SendMessageBatch",
            {"Entries": [{"MessageBody": "x" * 40_000}] * 4},
            {},
            {"sqs.send": 3},
        ),
        ("sqs", "ReceiveMessage", {}, {"Messages": [{"Body": "x" * 70_000}]}, {"sqs.send": 2}),
        ("sqs", "ReceiveMessage", {}, {}, {"sqs.send": 1}),
        ("s3", "PutObject", {"Body": b"x" * 10**6}, {}, {"s3_put.bodies": 1}),
        ("s3", "ListObjectsV2", {}, {}, {"s3_put.bodies": 1}),
        ("s3", "GetObject", {}, {}, {"s3_get.bodies": 1}),
        ("s3", "HeadObject", {}, {"Error": {"Code": "404"}}, {"s3_get.bodies": 1}),
        ("s3", "DeleteObjects", {}, {}, {}),
        (
            "events",
            "PutEvents",
            {"Entries": [{"Source": "s", "Detail": "x" * 70_000}, {"Detail": "{}"}]},
            {},
            {"events.announce": 3},
        ),
        ("secretsmanager", "GetSecretValue", {}, {}, {}),
    ],
)
def test_other_requests(
    meter: Meter,
    service: str,
    operation: str,
    asked: dict[str, Any],
    answer: dict[str, Any],
    tally: dict[str, int],
) -> None:
    """By their number, and every started 64 KB of messages and events."""
    client = FakeClient(service)
    meter.watch(client)
    client.ask(operation, asked, answer)
    assert used(meter) == {f"units.{key}": number for key, number in tally.items()}


# --- for whom -----------------------------------------------------------------------------------


async def test_tasks_are_at_work_for_crawls(meter: Meter) -> None:
    """Each task's uses are its crawl's, whatever runs beside it; a commit takes that crawl's."""

    async def work(crawl: str, number: int) -> None:
        with meter.of(crawl):
            for _ in range(number):
                await asyncio.sleep(0)
                meter.use(Term.WRITE, Stage.CLAIM, 1)
            with meter.at(Stage.ROBOTS):
                meter.use(Term.SQS, Stage.SEND, number)

    await asyncio.gather(work("a", 2), work("b", 3))
    with meter.booking("a") as tally:
        assert tally == {"units.write.claim": 2, "units.sqs.send": 2}
    with meter.booking("b") as tally:
        assert tally == {"units.write.claim": 3, "units.sqs.send": 3}


def test_a_stage_may_be_named(meter: Meter) -> None:
    """Whoever knows better than the table says so, for the crawl that is at work."""
    client = FakeClient("dynamodb")
    meter.watch(client)
    with meter.of("a"), meter.at(Stage.ROBOTS):
        client.ask("PutItem", dict(PUT), {})
    with meter.booking("a") as tally:
        assert tally == {"units.write.robots": 2}


def test_a_commit_that_fails_books_nothing(meter: Meter) -> None:
    """What was used stays to be booked by the next one, and is booked once."""
    with meter.of("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with pytest.raises(RuntimeError), meter.booking("a"):
        raise RuntimeError
    with meter.of("a"):
        meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("a") as tally:
        assert tally == {"units.write.claim": 2}
    with meter.booking("a") as tally:
        assert tally == {}


def test_what_is_nobodys_goes_along(meter: Meter, clock: Clock) -> None:
    """Time, the invocation and its messages are of whoever commits next; the rest, of the next."""
    with meter.invocation(["x" * 70_000, "y"]):
        clock.now_s += 1.5
        with meter.booking("a") as tally:
            assert tally == {
                "units.invocations.run": 1,
                "units.log_bytes.run": PLATFORM_BYTES,
                "units.sqs.receive": 2 + 1,
                "units.mb_ms.run": 1_500_000,
            }
        clock.now_s += 0.5
        assert meter.total.by_term[Term.MB_MS] == 2_000_000
        assert meter.dollars() > 0
    clock.now_s += 3_600  # between invocations
    with meter.booking("b") as tally:
        assert tally == {"units.mb_ms.run": 500_000}


def test_the_total_is_of_one_invocation(meter: Meter) -> None:
    """It begins anew with each."""
    with meter.invocation():
        meter.use(Term.WRITE, Stage.CLAIM, 5)
    with meter.invocation():
        assert Term.WRITE not in meter.total.by_term


def test_crawls_that_never_commit_are_forgotten(meter: Meter) -> None:
    """A container remembers so many; what the first of more used becomes nobody's."""
    for number in range(CRAWLS_MAX + 5):
        with meter.of(f"crawl-{number}"):
            meter.use(Term.WRITE, Stage.CLAIM, 1)
    with meter.booking("another") as tally:
        assert units_of(tally).by_term[Term.WRITE] == 5 + 1


# --- what is sent, what is logged ---------------------------------------------------------------


async def test_what_is_sent_to_the_web(meter: Meter) -> None:
    """The request, by what it holds, and packets that acknowledge the answer."""

    class Web:
        async def fetch(self, _request: Request) -> Response:
            return Response(status=200, headers={}, body=b"", received=100 * 2_896)

    request = Request(
        url="https://example.com/",
        user_agent="spider",
        accept=frozenset(),
        body_bytes_max=1,
        total_s=1,
        headers=(("a", "b"),),
    )
    await MeteredFetcher(Web(), meter).fetch(request)
    assert meter.total.by_term == {Term.SENT_BYTES: 180 + 20 + 6 + 2 + 100 * 52}


def test_what_is_logged(meter: Meter) -> None:
    """Every line, and what CloudWatch adds to it."""
    below = io.StringIO()
    stream = MeteredStream(below, meter)
    stream.write("größe\n")
    stream.flush()
    assert below.getvalue() == "größe\n"
    assert meter.total.by_term == {Term.LOG_BYTES: 8 + LINE_BYTES}
