"""Deeds (pieces of work) of the delivery function over two buckets; see tests/e2e/deeds.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from orbweaver.exporting.manifest import PREFIX, Manifest
from tests.e2e.deeds import Act, Answer
from tests.iam.account import THEIRS, Here
from tests.unit.delivering import exported

TIME_MS = 900_000
ROLE = "delivery"


def _export(bench: Here, *, spoilt: bool = False) -> Manifest:
    """Put an export into the bucket and empty the target.

    If `spoilt`, one file differs from the manifest.
    """
    files: dict[str, bytes] = {}
    manifest = exported(files, {"shop": [b"one", b"two"]})
    with bench.stand.client("s3") as s3:
        for key, body in files.items():
            told = b"other" if spoilt and key != PREFIX + manifest.path else body
            s3.put_object(Bucket=bench.stand.outputs["Bucket"], Key=key, Body=told)
            s3.delete_object(Bucket=THEIRS, Key=key)
    return manifest


def _handed(bench: Here, body: str, *, time_ms: int = TIME_MS, back: bool = False) -> Answer:
    """Send the function an order from its queue; `back`: it must be returned."""
    url = bench.stand.outputs["DeliveryQueueUrl"]
    with bench.stand.client("sqs") as sqs:
        sqs.send_message(QueueUrl=url, MessageBody=body)
        (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    record = {
        "messageId": "message",
        "body": body,
        "receiptHandle": message["ReceiptHandle"],
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    reply, answer = bench.functions.invoke(ROLE, {"Records": [record]}, time_ms)
    expected = {"batchItemFailures": [{"itemIdentifier": "message"}] if back else []}
    bench.stand.take(url)
    return replace(answer, failed=answer.failed or reply != expected)


def _again(bench: Here, prepare: Callable[[], str]) -> Act:
    """Prepare anew each time, because delivered files are not delivered again."""
    return lambda: _handed(bench, prepare())


def copied(bench: Here) -> Act:
    return _again(bench, lambda: json.dumps({"day": _export(bench).day, "to": "bucket"}))


def gone(bench: Here) -> Act:
    return _again(bench, lambda: json.dumps({"day": "2001-01-01", "to": "bucket"}))


def cut_short(bench: Here) -> Act:
    body = json.dumps({"day": _export(bench).day, "to": "bucket"})
    return lambda: _handed(bench, body, time_ms=1)


def spoilt(bench: Here) -> Act:
    """Remove a copy that differs from the manifest, and defer the order."""
    body = json.dumps({"day": _export(bench, spoilt=True).day, "to": "bucket"})
    return lambda: _handed(bench, body, back=True)


def refused(bench: Here) -> Act:
    return lambda: _handed(bench, "{")


COPIED = {
    copied: (
        "delivery s3:GetObject bucket/exports/*",
        "delivery s3:GetObject their-exports/exports/*",
        "delivery s3:PutObject their-exports/exports/*",
        "delivery s3:PutObjectAcl their-exports/exports/*",
        "delivery s3:ListBucket their-exports",
    ),
    gone: ("delivery s3:ListBucket bucket",),
    cut_short: ("delivery sqs:SendMessage delivery",),
    spoilt: (
        "delivery s3:DeleteObject their-exports/exports/*",
        "delivery sqs:ChangeMessageVisibility delivery",
    ),
    refused: ("delivery sqs:SendMessage delivery-letters",),
}
