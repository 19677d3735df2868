"""Webhooks of a deployed stack: one signed notification per finished crawl."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from orbweaver.control.webhook import signature_of
from tests.e2e.stand import Stand, until
from tests.sites import graph
from tests.sites.receiver import Posted, Receiver, receiving

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

NOTIFIER = "Orbweaver-notifier"
CLOCK_S_MAX = 60


def crawled(stand: Stand, folder: Path, name: str, receiver: Receiver) -> dict[str, Any]:
    with graph.serve_in_background({"/": graph.page("Home")}) as site:
        document = {"name": name, "seeds": [site.url], "notify": {"webhook": receiver.url}}
        (file := folder / f"{name}.json").write_text(json.dumps(document))
        ran = stand.orbweaver("start", "--config", str(file), "--delay", "0", "--wait", "--json")
    return ran.result


def verified(stand: Stand, posted: Posted) -> dict[str, Any]:
    """Verify and read a posted body as a receiver with the key."""
    with stand.client("secretsmanager") as secrets:
        key = secrets.get_secret_value(SecretId=stand.outputs["WebhookSecret"])["SecretString"]
    at_s = int(posted.headers["x-orbweaver-timestamp"])
    assert abs(time.time() - at_s) < CLOCK_S_MAX
    assert posted.headers["x-orbweaver-event"] == "CrawlCompleted"
    assert posted.headers["x-orbweaver-signature"] == signature_of(key, at_s, posted.body)
    body: dict[str, Any] = json.loads(posted.body)
    return body


def test_end_of_crawl_is_posted_once_signed(stand: Stand, tmp_path: Path) -> None:
    with receiving() as receiver:
        results = [crawled(stand, tmp_path, name, receiver) for name in ("told-1", "told-2")]
        until(lambda: len(receiver.posted) >= len(results), "both are told", log=stand.log)
        stand.wait_idle()
        bodies = [verified(stand, posted) for posted in receiver.posted]

    assert [body["id"] for body in bodies] == [result["crawl"] for result in results]
    for body, result in zip(bodies, results, strict=True):
        assert (body["state"], body["stop"]) == ("finished", "finished")
        assert body["totals"]["claimed"] == result["claimed"] == 1
        assert body["started_at_ms"] < body["finished_at_ms"]


def test_crawls_of_other_stack_are_ignored(stand: Stand, tmp_path: Path) -> None:
    """Several stacks share the event bus."""
    with receiving() as receiver:
        result = crawled(stand, tmp_path, "ours", receiver)
        until(lambda: receiver.posted, "told", log=stand.log)
        with stand.client("events") as events:
            for stack in ("Second", "Orbweaver"):
                detail = {"stack": stack, "webhook": True, "crawl": result["crawl"]}
                put = events.put_events(
                    Entries=[
                        {
                            "Source": "orbweaver",
                            "DetailType": "CrawlCompleted",
                            "Detail": json.dumps(detail),
                        }
                    ]
                )
                assert put["FailedEntryCount"] == 0
        until(lambda: len(receiver.posted) >= 2, "told again", log=stand.log)
        stand.wait_idle()
        assert len(receiver.posted) == 2


def test_permanent_refusal_is_dead_lettered_after_one_request(stand: Stand, tmp_path: Path) -> None:
    with receiving(410) as receiver:
        result = crawled(stand, tmp_path, "refused", receiver)
        letters = until(
            lambda: stand.take(stand.outputs["FailedCallsQueueUrl"]), "put aside", log=stand.log
        )
        assert len(receiver.posted) == 1

    (letter,) = letters
    assert json.loads(letter["Body"])["detail"]["crawl"] == result["crawl"]
    reason = letter["MessageAttributes"]["reason"]["StringValue"]
    assert reason == "the receiver answered 410: a refusal"


def test_failing_webhook_is_retried_then_dead_lettered(stand: Stand, tmp_path: Path) -> None:
    """Lambda repeats a raised error twice; then the event goes to the queue of failed calls."""
    with receiving(204) as receiver:
        result = crawled(stand, tmp_path, "repeated", receiver)
        until(lambda: receiver.posted, "told", log=stand.log)
        receiver.statuses[:] = [503, 429, 500]
        event = json.dumps({"detail": {"crawl": result["crawl"]}})
        with stand.client("lambda") as functions:
            functions.invoke(FunctionName=NOTIFIER, InvocationType="Event", Payload=event)
        (letter,) = until(
            lambda: stand.take(stand.outputs["FailedCallsQueueUrl"]), "put aside", log=stand.log
        )
        bodies = [verified(stand, posted) for posted in receiver.posted]

    assert len(bodies) == 4
    assert {body["id"] for body in bodies} == {result["crawl"]}
    assert json.loads(letter["Body"])["requestPayload"] == json.loads(event)
