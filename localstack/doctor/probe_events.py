"""Checks of events, secrets and the Glue catalogue. They remove what they create."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

from localstack.doctor.ground import Finding, Ground, expect, failed, judged, probe, until
from localstack.doctor.probe_sqs import Line
from localstack.doctor.probe_tables import key

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY_BYTES, OVER_BYTES = 200_000, 2_000_000
SOURCE = "orbweaver.doctor"
SECRET_BYTES_MAX = 65_536


def _entry(detail: dict[str, Any]) -> dict[str, Any]:
    return {"Source": SOURCE, "DetailType": "doctor", "Detail": json.dumps(detail)}


def put(ground: Ground) -> Finding:
    """Check that an event of 200 KB is accepted, and one of 2 MB rejected with a report."""
    events = ground.client("events")
    taken = events.put_events(Entries=[_entry({"text": "x" * ENTRY_BYTES})])
    refused = 0
    try:
        over = events.put_events(Entries=[_entry({"text": "x" * OVER_BYTES})])
        refused = int(over["FailedEntryCount"])
    except events.exceptions.ClientError:
        refused = 1
    failures = int(taken["FailedEntryCount"])
    problems = ["200 KB are refused"] if failures else []
    problems += [] if refused else ["2 MB are taken"]
    return judged(problems, failed_of_200_kb=failures, failed_of_2_mb=refused)


def rule(ground: Ground) -> Finding:
    """Check that a rule delivers only matching events, and distinguishes `true` from "true"."""
    events = ground.client("events")
    with _queue(ground) as (line, arn), _rule(ground, arn):
        entries = [_entry({"flag": flag, "n": n}) for n, flag in enumerate(("true", True))]

        def came() -> list[dict[str, Any]]:
            # A new rule can miss events for a minute, so they are sent again.
            events.put_events(Entries=entries)
            return line.receive(wait_s=2)

        found = until(ground, came, 90, every=3)
        numbers = [json.loads(one["Body"])["detail"]["n"] for one in found]
        line.delete(found)
    right = set(numbers) == {1}
    return expect(right, "nothing came, or another event", came=len(numbers))


@contextlib.contextmanager
def _queue(ground: Ground) -> Iterator[tuple[Line, str]]:
    sqs = ground.client("sqs")
    url = sqs.create_queue(QueueName=f"{ground.config.stack_name}-events")["QueueUrl"]
    try:
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = arn["Attributes"]["QueueArn"]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        line = Line(ground, "ExpressQueueUrl")
        line.url = url
        yield line, arn
    finally:
        sqs.delete_queue(QueueUrl=url)


@contextlib.contextmanager
def _rule(ground: Ground, arn: str) -> Iterator[None]:
    events, name = ground.client("events"), f"{ground.config.stack_name}-doctor"
    pattern = json.dumps({"source": [SOURCE], "detail": {"flag": [True]}})
    events.put_rule(Name=name, EventPattern=pattern, State="ENABLED")
    try:
        events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
        yield
    finally:
        events.remove_targets(Rule=name, Ids=["queue"])
        events.delete_rule(Name=name)


def secret(ground: Ground) -> Finding:
    """Check that a new version of a secret is read at once, and how its ARN ends."""
    client, name = ground.client("secretsmanager"), f"{ground.config.stack_name}-{key()}"
    made = client.create_secret(Name=name, SecretString="first")
    try:
        client.put_secret_value(SecretId=name, SecretString="second")
        value = client.get_secret_value(SecretId=name)["SecretString"]
        fits = bool(re.search(rf":secret:{re.escape(name)}-[A-Za-z0-9]{{6}}$", made["ARN"]))
        large = "x" * (SECRET_BYTES_MAX + 1)
        try:
            client.put_secret_value(SecretId=name, SecretString=large)
            over = False
        except client.exceptions.ClientError:
            over = True
    finally:
        client.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    problems = [] if value == "second" else ["the former version was read"]
    problems += [] if fits else ["its ARN ends in another way"]
    problems += [] if over or ground.emulator else ["more than 64 KB are taken"]
    return judged(problems, newest=value == "second", arn_fits=fits, large_refused=over)


def catalogue(ground: Ground) -> Finding:
    glue, name = ground.client("glue"), key().replace("-", "_")
    database = {"DatabaseName": ground.outputs["Database"]}
    columns = [{"Name": one, "Type": "string"} for one in ("a", "b")]
    table = {"Name": name, "Parameters": {"x": "1"}, "StorageDescriptor": {"Columns": columns}}
    glue.create_table(**database, TableInput=table)
    try:
        less = {"Name": name, "StorageDescriptor": {"Columns": columns[:1]}}
        glue.update_table(**database, TableInput=less)
        found = glue.get_table(**database, Name=name)["Table"]
    finally:
        glue.delete_table(**database, Name=name)
    left = len(found["StorageDescriptor"]["Columns"])
    if left != 1 or "x" in found.get("Parameters", {}):
        return failed("what was not named is kept", columns=left)
    return expect(True, "", columns=left)


CHECKS = (
    probe(
        "events.put",
        "events are taken up to their size",
        put,
        "A52",
        emulator="it takes events of any size",
    ),
    probe("events.delivered", "a rule delivers what it means", rule, "A53", "A54"),
    probe("secrets.version", "a new version of a secret is read at once", secret, "A63", "A64"),
    probe(
        "catalogue.update",
        "an update replaces a whole table",
        catalogue,
        "A70",
        emulator="it keeps parameters that an update leaves out",
    ),
)
