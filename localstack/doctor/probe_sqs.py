"""Checks of SQS, on the queues of the doctor's own stack, whose workers are off.

All use the express queue, which is emptied before and after each check.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from localstack.doctor.ground import (
    Finding,
    Ground,
    expect,
    failed,
    judged,
    number,
    passed,
    probe,
    refused,
    until,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Callable

QUEUE, DEAD = "ExpressQueueUrl", "DeadLetterQueueUrl"
BYTES_MAX, DELAY_S_MAX, HIDDEN_S_MAX = 1_048_576, 900, 43_200
POLLS_MAX, EMPTY_MAX = 20, 3
UNCHECKED = "it takes numbers that are out of bounds"
REASON = {"reason": {"DataType": "String", "StringValue": "doctor"}}


class Line:
    """A queue of the stack, with the operations that checks need."""

    def __init__(self, ground: Ground, key: str = QUEUE) -> None:
        self.sqs = ground.client("sqs")
        self.url = ground.outputs[key]
        # A short poll asks only some of AWS's servers, so it can miss messages.
        self._poll_s = 0 if ground.emulator else 1

    def send(self, body: str, **options: Any) -> None:
        self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **options)

    def receive(self, *, hidden_s: int = 30, wait_s: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=hidden_s,
            WaitTimeSeconds=wait_s,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        return found

    def delete(self, messages: list[dict[str, Any]]) -> None:
        for one in messages:
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=one["ReceiptHandle"])

    def drain(self) -> None:
        """Delete all messages of the queue."""
        while found := self.receive(wait_s=self._poll_s):
            self.delete(found)


def quiet(tried: Callable[[Line, Ground], Finding]) -> Callable[[Ground], Finding]:
    """Decorate a check: it receives the queue, which is emptied before and after."""

    @functools.wraps(tried)
    def run(ground: Ground) -> Finding:
        line = Line(ground)
        line.drain()
        try:
            return tried(line, ground)
        finally:
            line.drain()

    return run


@quiet
def delay_max(line: Line, _ground: Ground) -> Finding:
    return refused(line.send, "a delay of 901 s", body="late", DelaySeconds=DELAY_S_MAX + 1)


@quiet
def delay(line: Line, ground: Ground) -> Finding:
    line.send("late", DelaySeconds=2)
    early = len(line.receive())
    late = until(ground, lambda: line.receive(wait_s=2), 10)
    line.delete(late)
    right = not early and len(late) == 1
    return expect(right, "it did not hold the message back", early=early, late=len(late))


@quiet
def visibility(line: Line, ground: Ground) -> Finding:
    """Check that a received message stays hidden until released, and receives are counted."""
    line.send("hidden")
    first = until(ground, lambda: line.receive(wait_s=1), 10)
    second = line.receive()
    if not first:
        return failed("the message did not come")
    line.sqs.change_message_visibility(
        QueueUrl=line.url, ReceiptHandle=first[0]["ReceiptHandle"], VisibilityTimeout=0
    )
    third = until(ground, lambda: line.receive(wait_s=1), 10)
    counts = [number(one["Attributes"]["ApproximateReceiveCount"]) for one in [*first, *third]]
    line.delete(third)
    right = not second and counts == [1, 2]
    return expect(right, "it was not hidden, or not counted", hidden=not second, counts=counts)


@quiet
def hidden_max(line: Line, ground: Ground) -> Finding:
    line.send("hidden")
    found = until(ground, lambda: line.receive(wait_s=1), 10)
    if not found:
        return failed("the message did not come")
    handle = found[0]["ReceiptHandle"]
    given = refused(
        line.sqs.change_message_visibility,
        "43,201 s",
        QueueUrl=line.url,
        ReceiptHandle=handle,
        VisibilityTimeout=HIDDEN_S_MAX + 1,
    )
    line.delete(found)
    return given


@quiet
def batch(line: Line, _ground: Ground) -> Finding:
    """Check that a batch can succeed in part, and that the answer names the rejected entries."""
    entries: list[dict[str, Any]] = [
        {"Id": str(place), "MessageBody": "part"} for place in range(10)
    ]
    entries[3]["DelaySeconds"] = DELAY_S_MAX + 1
    answer = line.sqs.send_message_batch(QueueUrl=line.url, Entries=entries)
    taken = len(answer.get("Successful", ()))
    named = [word(one.get("Id"), *map(str, range(10))) for one in answer.get("Failed", ())]
    right = taken == 9 and named == ["3"]  # noqa: PLR2004 - all ten entries except one
    return expect(right, "the answer names others", taken=taken, failed=named)


@quiet
def entries_max(line: Line, _ground: Ground) -> Finding:
    entries = [{"Id": str(place), "MessageBody": "many"} for place in range(11)]
    return refused(line.sqs.send_message_batch, "a batch of 11", QueueUrl=line.url, Entries=entries)


@quiet
def size(line: Line, ground: Ground) -> Finding:
    line.send("x" * BYTES_MAX)
    found = until(ground, lambda: line.receive(wait_s=1), 10)
    came = len(found[0]["Body"]) if found else 0
    line.delete(found)
    if came != BYTES_MAX:
        return failed("the message did not come whole", bytes=came)
    over = refused(line.send, "1,048,577 bytes", body="x" * (BYTES_MAX + 1))
    return over if over.why else passed(bytes=came, **over.seen)


@quiet
def groups(line: Line, _ground: Ground) -> Finding:
    for place in range(3):
        line.send(str(place), MessageGroupId="one")
    found: list[dict[str, Any]] = []
    for _ in range(POLLS_MAX):
        found += line.receive(wait_s=1)
        if len(found) == 3:  # noqa: PLR2004 - the three sent messages
            break
    told = sum(one["Attributes"].get("MessageGroupId") == "one" for one in found)
    line.delete(found)
    right = len(found) == 3  # noqa: PLR2004 - the three sent messages
    return expect(right, "a group that is in work holds others back", came=len(found), told=told)


@quiet
def characters(line: Line, _ground: Ground) -> Finding:
    """Check that a body with U+0000 is refused."""
    return refused(line.send, "U+0000", body="a\0b")


@quiet
def polls(line: Line, _ground: Ground) -> Finding:
    """Check that repeated long polls find all messages, though one poll may return fewer."""
    for place in range(3):
        line.send(str(place))
    found, asked = 0, 0
    while found < 3 and asked < POLLS_MAX:  # noqa: PLR2004 - the three sent messages
        came = line.receive(wait_s=1)
        line.delete(came)
        found, asked = found + len(came), asked + 1
    return expect(found == 3, "some did not come", polls=asked, came=found)  # noqa: PLR2004 - the three sent messages


@quiet
def dead(line: Line, ground: Ground) -> Finding:
    """Check that a message becomes a dead letter after `receive_max` receives."""
    aside = Line(ground, DEAD)
    aside.drain()
    line.send("dead", MessageAttributes=REASON)
    receives = empty = 0
    for _ in range(ground.config.receive_max + POLLS_MAX):
        came = line.receive(hidden_s=0, wait_s=1)
        empty = 0 if came else empty + 1
        if empty == EMPTY_MAX:
            break
        receives += len(came)
    found = until(ground, lambda: aside.receive(wait_s=1), 20)
    kept = bool(found) and found[0].get("MessageAttributes", {}).keys() == REASON.keys()
    aside.delete(found)
    problems = [] if found else ["it is no dead letter"]
    problems += [] if kept or not found else ["its attributes are gone"]
    problems += [] if receives == ground.config.receive_max else ["it came more or less often"]
    return judged(problems, receives=receives, configured=ground.config.receive_max)


CHECKS = (
    probe("sqs.delay", "a delay holds a message back", delay, "A04"),
    probe("sqs.delay_max", "a delay is 900 s at most", delay_max, "A04", emulator=UNCHECKED),
    probe("sqs.visibility", "what was received is hidden and counted", visibility, "A02"),
    probe(
        "sqs.hidden",
        "a message is hidden for 12 hours at most",
        hidden_max,
        "A11",
        emulator=UNCHECKED,
    ),
    probe("sqs.batch", "a batch is taken in part", batch, "A06", emulator=UNCHECKED),
    probe("sqs.entries", "a batch has ten entries", entries_max, "A05"),
    probe("sqs.size", "a message has 1 MiB", size, "A05"),
    probe("sqs.groups", "groups neither order nor block", groups, "A07"),
    probe("sqs.characters", "bodies are characters of XML", characters, "A12"),
    probe("sqs.polls", "polls find all in the end", polls, "A10"),
    probe("sqs.dead", "what fails too often is a dead letter", dead, "A09"),
)
