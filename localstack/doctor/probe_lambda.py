"""Checks of Lambda with a small function that has the worker's role and reads a queue."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from localstack.doctor.ground import (
    Finding,
    Ground,
    expect,
    failed,
    judged,
    probe,
    refusal,
    refused,
    until,
)
from localstack.doctor.probe_sqs import DEAD, QUEUE, Line

if TYPE_CHECKING:
    from collections.abc import Iterator

# Code of the function: it reports marked records as failed, fails on request, or echoes.
CODE = """
import os

def handler(event, context):
    if "Records" in event:
        failed = [one["messageId"] for one in event["Records"] if one["body"] == "fail"]
        return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}
    if event.get("raise"):
        raise RuntimeError("as asked")
    room = os.statvfs("/tmp")
    return {"room_mb": room.f_frsize * room.f_blocks // 2**20, "echo": event.get("echo")}
"""
TIMEOUT_S, HIDDEN_S = 5, 10
UNCHECKED = "it takes settings and sizes that are out of bounds"
PAYLOAD_BYTES_MAX = 6 * 1024 * 1024
ROOM_MB_MIN = 400  # 512 MB, minus the file system's own use
VARIABLES_BYTES = 4097


def _name(ground: Ground) -> str:
    return f"{ground.config.stack_name}-probe"


def _archive() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        file = zipfile.ZipInfo("probe.py")
        file.external_attr = 0o644 << 16
        archive.writestr(file, CODE)
    return body.getvalue()


@contextlib.contextmanager
def function(ground: Ground) -> Iterator[str]:
    """Create the function for the block, and yield its name."""
    client, name = ground.client("lambda"), _name(ground)
    worker = client.get_function_configuration(FunctionName=ground.outputs["WorkerFunction"])
    client.create_function(
        FunctionName=name,
        Runtime=worker["Runtime"],
        Architectures=worker.get("Architectures", ["x86_64"]),
        Role=worker["Role"],
        Handler="probe.handler",
        Code={"ZipFile": _archive()},
        Timeout=TIMEOUT_S,
    )
    try:
        until(ground, lambda: _active(client, name), 60)
        yield name
    finally:
        client.delete_function(FunctionName=name)


def _active(client: Any, name: str) -> bool:
    found = client.get_function_configuration(FunctionName=name)
    return bool(found.get("State", "Active") == "Active")


@contextlib.contextmanager
def _visibility_timeout(ground: Ground, hidden_s: int) -> Iterator[Line]:
    """Set the queue's visibility timeout for the block. Empties the queue before and after."""
    line = Line(ground, QUEUE)

    def hide(seconds: object) -> None:
        attributes = {"VisibilityTimeout": str(seconds)}
        line.sqs.set_queue_attributes(QueueUrl=line.url, Attributes=attributes)

    asked = {"QueueUrl": line.url, "AttributeNames": ["VisibilityTimeout"]}
    before = line.sqs.get_queue_attributes(**asked)["Attributes"]["VisibilityTimeout"]
    line.drain()
    hide(hidden_s)
    try:
        yield line
    finally:
        hide(before)
        line.drain()


def _arn(line: Line) -> str:
    asked = {"QueueUrl": line.url, "AttributeNames": ["QueueArn"]}
    return str(line.sqs.get_queue_attributes(**asked)["Attributes"]["QueueArn"])


@contextlib.contextmanager
def _fed(ground: Ground, name: str, line: Line) -> Iterator[None]:
    """Connect the queue to the function for the block."""
    client = ground.client("lambda")
    source = client.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=_arn(line),
        BatchSize=10,
        MaximumBatchingWindowInSeconds=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )["UUID"]

    def state() -> str:
        try:
            return str(client.get_event_source_mapping(UUID=source)["State"])
        except client.exceptions.ResourceNotFoundException:
            return "gone"

    try:
        until(ground, lambda: state() == "Enabled", 90)
        yield
    finally:
        client.delete_event_source_mapping(UUID=source)
        until(ground, lambda: state() == "gone", 90)


def partial(ground: Ground) -> Finding:
    # On AWS, a removed event source still receives messages for a while.
    hidden_s = HIDDEN_S if ground.emulator else 3 * HIDDEN_S
    with function(ground) as name, _visibility_timeout(ground, hidden_s) as line:
        with _fed(ground, name, line):
            entries = [
                {"Id": str(place), "MessageBody": body}
                for place, body in enumerate(("done", "fail", "done"))
            ]
            line.sqs.send_message_batch(QueueUrl=line.url, Entries=entries)
            until(ground, lambda: taken(ground, QUEUE) == 1, 30)
            ground.pause(1)
        found = until(ground, lambda: line.receive(wait_s=2), 3 * hidden_s)
        bodies = sum(one["Body"] == "fail" for one in found)
        again = all(int(one["Attributes"]["ApproximateReceiveCount"]) > 1 for one in found)
        line.delete(found)
    right = len(found) == bodies == 1 and again
    return expect(right, "other messages came back", came=len(found), named=bodies, again=again)


def taken(ground: Ground, key: str) -> int:
    """Return the approximate number of messages in a queue, visible or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    asked = {"QueueUrl": ground.outputs[key], "AttributeNames": names}
    found = ground.client("sqs").get_queue_attributes(**asked)["Attributes"]
    return sum(int(found[one]) for one in names)


def hidden(ground: Ground) -> Finding:
    """Check that a queue's visibility timeout must be at least the function's timeout."""
    with function(ground) as name, _visibility_timeout(ground, TIMEOUT_S - 1) as line:
        return _refused(ground, "such a queue", FunctionName=name, EventSourceArn=_arn(line))


def window(ground: Ground) -> Finding:
    with function(ground) as name, _visibility_timeout(ground, HIDDEN_S) as line:
        asked = {"FunctionName": name, "EventSourceArn": _arn(line), "BatchSize": 11}
        return _refused(ground, "a batch of 11 without a window", **asked)


def at_once(ground: Ground) -> Finding:
    """Check that an event source's concurrency limit is at least 2."""
    with function(ground) as name, _visibility_timeout(ground, HIDDEN_S) as line:
        asked = {"FunctionName": name, "EventSourceArn": _arn(line)}
        return _refused(ground, "a limit of 1", **asked, ScalingConfig={"MaximumConcurrency": 1})


def _refused(ground: Ground, what: str, **parameters: Any) -> Finding:
    """Check that Lambda refuses an event source. An accepted one is removed."""
    client = ground.client("lambda")
    made: list[str] = []

    def create(**asked: Any) -> None:
        made.append(client.create_event_source_mapping(**asked, Enabled=False)["UUID"])

    found = refused(create, what, **parameters)
    for source in made:
        client.delete_event_source_mapping(UUID=source)
    return found


def variables(ground: Ground) -> Finding:
    with function(ground) as name:
        values = {"A": "x" * VARIABLES_BYTES}
        return refused(
            ground.client("lambda").update_function_configuration,
            "4,098 bytes of variables",
            FunctionName=name,
            Environment={"Variables": values},
        )


def payload(ground: Ground) -> Finding:
    client = ground.client("lambda")
    with function(ground) as name:
        body = json.dumps({"echo": None, "x": "y" * 1_000_000}).encode()
        status = client.invoke(FunctionName=name, Payload=body)["StatusCode"]
        over = b'"' + b"x" * PAYLOAD_BYTES_MAX + b'"'
        code = refusal(client.invoke, FunctionName=name, Payload=over)
    return expect(bool(code), "more than 6 MB are taken", status=int(status), code=code)


def asynchronous(ground: Ground) -> Finding:
    """Check that a failed asynchronous event reaches the failure queue, together with the error."""
    client, aside = ground.client("lambda"), Line(ground, DEAD)
    aside.drain()
    with function(ground) as name:
        client.put_function_event_invoke_config(
            FunctionName=name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": _arn(aside)}},
        )
        event = json.dumps({"raise": True}).encode()
        client.invoke(FunctionName=name, InvocationType="Event", Payload=event)
        found = until(ground, lambda: aside.receive(wait_s=2), 60, every=2)
    aside.delete(found)
    if not found:
        return failed("it did not come")
    told = json.loads(found[0]["Body"])
    right = told.get("requestPayload") == {"raise": True}
    return expect(right, "the event is not beside the error", came=len(found))


def room(ground: Ground) -> Finding:
    """Check that `/tmp` has its full size."""
    with function(ground) as name:
        answer = ground.client("lambda").invoke(FunctionName=name, Payload=b"{}")
        found = int(json.loads(answer["Payload"].read())["room_mb"])
    return expect(found >= ROOM_MB_MIN, "there is less", room_mb=found)


def wheels(ground: Ground) -> Finding:
    answer = ground.client("lambda").invoke(
        FunctionName=ground.outputs["WorkerFunction"], Payload=json.dumps({"Records": []}).encode()
    )
    said = json.loads(answer["Payload"].read())
    problems = ["it failed"] if answer.get("FunctionError") else []
    whole = isinstance(said, dict) and said.get("batchItemFailures") == []
    problems += [] if whole or problems else ["its answer is another one"]
    return judged(problems, status=int(answer["StatusCode"]))


CHECKS = (
    probe("lambda.wheels", "the worker's code loads with its libraries", wheels, "A26"),
    probe("lambda.partial", "only named messages of a batch come back", partial, "A14"),
    probe(
        "lambda.hidden",
        "a queue must hide as long as a function runs",
        hidden,
        "A03",
        emulator=UNCHECKED,
    ),
    probe("lambda.window", "a batch above ten needs a window", window, "A16", emulator=UNCHECKED),
    probe("lambda.at_once", "a source's limit is two at least", at_once, "A15"),
    probe(
        "lambda.variables",
        "more than 4 KB of variables are refused",
        variables,
        "A23",
        emulator=UNCHECKED,
    ),
    probe("lambda.payload", "a synchronous event has 6 MB", payload, "A25", emulator=UNCHECKED),
    probe("lambda.asynchronous", "what fails asynchronously is put aside", asynchronous, "A24"),
    probe("lambda.room", "a function has its room for files", room, "A22"),
)
