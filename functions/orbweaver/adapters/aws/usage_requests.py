"""Billed units of requests to SQS, S3 and EventBridge.

SQS and EventBridge bill one unit for each started 64 KB. Sources: pricing pages of Amazon SQS,
Amazon S3 and Amazon EventBridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orbweaver.budget.billing_units import Term, chunks, text_bytes

S3_FREE = frozenset({"DeleteObject", "DeleteObjects", "DeleteBucket", "AbortMultipartUpload"})
# S3 has two prices: one for these, and one for GET and all others.
S3_PUTS = ("Put", "Copy", "Post", "List", "Create", "Upload", "Complete")


def sqs(asked: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[Term, int]:
    messages: Iterable[Mapping[str, Any]] = (
        answer.get("Messages") or asked.get("Entries") or (asked,)
    )
    return Term.SQS, chunks(sum(map(_message_bytes, messages)))


def _message_bytes(message: Mapping[str, Any]) -> int:
    size = text_bytes(message.get("MessageBody") or message.get("Body") or "")
    for name, attribute in (message.get("MessageAttributes") or {}).items():
        size += text_bytes(name) + sum(len(part) for part in attribute.values())
    return size


def s3(operation: str) -> tuple[Term, int]:
    if operation in S3_FREE:
        return Term.S3_GET, 0
    return (Term.S3_PUT if operation.startswith(S3_PUTS) else Term.S3_GET), 1


def events(asked: Mapping[str, Any]) -> tuple[Term, int]:
    entries = asked.get("Entries") or ()
    return Term.EVENTS, sum(chunks(_event_bytes(entry)) for entry in entries)


def _event_bytes(entry: Mapping[str, Any]) -> int:
    texts = (entry.get("Source"), entry.get("DetailType"), entry.get("Detail"))
    return sum(text_bytes(text) for text in (*texts, *entry.get("Resources", ())) if text)
