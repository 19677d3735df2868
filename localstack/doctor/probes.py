"""Steps of probes (checks that write) that checks.txt cannot express."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from localstack.doctor.ground import Seen
from localstack.doctor.script import Script
from orbweaver.adapters.aws.usage_requests import dynamodb

RIVALS = 8
RECEIVE = "sqs.receive_message QueueUrl=$ExpressQueueUrl"
POLLS_MAX, EMPTY_MAX = 20, 3
CONDITION = "ConditionalCheckFailedException"
GET = 'dynamodb.get_item TableName=$UrlsTable Key={"k": {"S": "$key-0"}} ConsistentRead=true'
# In the order of UTF-8 bytes, which differs from UTF-16 and from the alphabet of any language.
SORTED = ("A", "Z", "a", "zz", "é", "ﾭ", "\U0001f600")
# Requests whose reported capacity is compared with the expected capacity.
REQUESTS = {
    "put_item": 'TableName=$UrlsTable Item={"k": {"S": "$key-2"}, "b": {"S": "$x_2500"}}',
    "get_item": 'TableName=$UrlsTable Key={"k": {"S": "$key-2"}} ConsistentRead=true',
    "batch_get_item": 'RequestItems={"$UrlsTable": {"Keys": "$keys_3", "ConsistentRead": true}}',
    "batch_write_item": 'RequestItems={"$UrlsTable": "$puts_2"}',
    "transact_write_items": 'TransactItems=[{"Put": {"TableName": "$UrlsTable", "Item":'
    ' {"k": {"S": "$key-new"}, "b": {"S": "$x_1500"}},'
    ' "ConditionExpression": "attribute_not_exists(k)"}}]',
    "query": 'TableName=$PagesTable KeyConditionExpression="#d = :d"'
    ' ExpressionAttributeNames={"#d": "day"} ExpressionAttributeValues={":d": {"S": "$key"}}',
}
# Code of a temporary function: it reports marked records as failed, raises an error if asked, or
# returns the size of its temporary folder.
CODE = """
import os

def handler(event, context):
    if "Records" in event:
        failed = [one["messageId"] for one in event["Records"] if one["body"] == "fail"]
        return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}
    if "raise" in event:
        raise RuntimeError("as asked")
    room = os.statvfs("/tmp")
    return {"room_mb": room.f_frsize * room.f_blocks // 2**20}
"""


def receive_three(script: Script) -> Seen:
    """Receive messages until three have arrived. They are in flight until the check ends."""
    found: list[Any] = []
    polls = 0
    while len(found) < 3 and polls < POLLS_MAX:  # noqa: PLR2004 - the three sent messages
        found, polls = found + script.call(RECEIVE).get("Messages", []), polls + 1
    return {"polls": polls, "came": len(found)}


def receive_until_gone(script: Script) -> Seen:
    """Receive messages without hiding them, until the queue seems empty.

    A message that is received too often becomes a dead letter.
    """
    came = empty = 0
    while empty < EMPTY_MAX and came < script.ground.config.receive_max + POLLS_MAX:
        found = len(script.call(f"{RECEIVE} VisibilityTimeout=0").get("Messages", ()))
        came, empty = came + found, 0 if found else empty + 1
    return {"receives": came}


def _race(script: Script, line: str) -> list[str]:
    """Send the same call several times at once.

    Return the error codes, or reasons of cancellation.
    """
    script.ground.client("dynamodb")  # create the shared client before threads use it

    def one(_rival: int) -> str:
        try:
            script.call(line)
        except ClientError as error:
            response: Any = error.response
            reasons = response.get("CancellationReasons")
            return str(reasons[0].get("Code") if reasons else response["Error"]["Code"])
        return ""

    with ThreadPoolExecutor(RIVALS) as threads:
        return list(threads.map(one, range(RIVALS)))


def competing_puts(script: Script) -> Seen:
    put = 'dynamodb.put_item TableName=$UrlsTable Item={"k": {"S": "$key"}}'
    codes = _race(script, f"{put} ConditionExpression=attribute_not_exists(k)")
    return {"won": codes.count(""), "lost": codes.count(CONDITION), "rivals": RIVALS}


def competing_transactions(script: Script) -> Seen:
    codes = _race(script, "dynamodb.transact_write_items TransactItems=$additions_1")
    through, conflicts = codes.count(""), codes.count("TransactionConflict")
    counted = int(script.call(GET)["Item"]["n"]["N"])
    counts = {"through": through, "conflicts": conflicts, "counted": counted}
    return {**counts, "miscounted": counted - through, "others": RIVALS - through - conflicts}


def consistent_reads(script: Script) -> Seen:
    missed = 0
    for turn in range(20):
        item = f'{{"k": {{"S": "$key-0"}}, "n": {{"N": "{turn}"}}}}'
        script.call(f"dynamodb.put_item TableName=$UrlsTable Item={item}")
        missed += script.call(GET).get("Item", {}).get("n") != {"N": str(turn)}
    return {"reads": 20, "missed": missed}


def order(script: Script) -> Seen:
    for name in reversed(SORTED):
        item = json.dumps({"day": {"S": "$key"}, "k": {"S": name}})
        script.call(f"dynamodb.put_item TableName=$PagesTable Item={item}")
    found = script.call(f"dynamodb.query {REQUESTS['query']}")["Items"]
    return {"places": [SORTED.index(one["k"]["S"]) for one in found]}


def capacity(script: Script) -> Seen:
    """Return the capacity that DynamoDB reports per request: write units, or half read units."""
    names, seen = script.ground.client("dynamodb").meta.method_to_api_mapping, {}
    for method, text in REQUESTS.items():
        asked = script.parameters(text)
        answer = script.ground.call(f"dynamodb.{method}", **asked, ReturnConsumedCapacity="TOTAL")
        seen[method] = sum(dynamodb(names[method], asked, answer).values())
    return seen


def whole_puts(script: Script) -> Seen:
    missed, where = 0, "Bucket=$Bucket Key=exports/_work/$key"
    for place in range(5):
        script.call(f"s3.put_object {where}-{place} Body=$x_10240")
        body = script.call(f"s3.get_object {where}-{place}")["Body"]
        listed = script.call(f"s3.list_objects_v2 Bucket=$Bucket Prefix=exports/_work/$key-{place}")
        missed += body != "x" * 10_240 or listed["KeyCount"] != 1
    return {"puts": 5, "missed": missed}


def secret(script: Script) -> Seen:
    name = f"{script.ground.config.stack_name}-{script.names['key']}"
    fits = re.search(rf":secret:{re.escape(name)}-[A-Za-z0-9]{{6}}$", script.names["_arn"])
    accepted = script.seen["large"] == "(none)" and not script.ground.emulator
    return {"arn_fits": bool(fits), "large_accepted": accepted}


def temporary_function(script: Script) -> Seen:
    """Create a function with the worker's role and runtime. It is deleted when the check ends."""
    client, name = script.ground.client("lambda"), f"{script.ground.config.stack_name}-probe"
    named = {"FunctionName": name}
    worker = client.get_function_configuration(FunctionName=script.ground.outputs["WorkerFunction"])
    like = {key: worker[key] for key in ("Runtime", "Architectures", "Role") if key in worker}
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        file = zipfile.ZipInfo("probe.py")
        file.external_attr = 0o644 << 16
        archive.writestr(file, CODE)
    code = {"ZipFile": body.getvalue()}
    client.create_function(**named, **like, Handler="probe.handler", Code=code, Timeout=5)
    script.undo.callback(client.delete_function, **named)
    client.get_waiter("function_active_v2").wait(**named)
    script.names["_function"] = name
    script.undo.callback(_delete_sources, script)
    return {}


def _delete_sources(script: Script) -> None:
    """Delete the event sources of the temporary function, and wait until they no longer exist."""

    def is_gone() -> bool:
        listed = script.call("lambda.list_event_source_mappings FunctionName=$_function")
        for one in listed["EventSourceMappings"]:
            with contextlib.suppress(ClientError):  # Lambda refuses while it changes the source.
                script.ground.call("lambda.delete_event_source_mapping", UUID=one["UUID"])
        return not listed["EventSourceMappings"]

    script.ground.until(is_gone, 90)
