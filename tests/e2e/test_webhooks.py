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
        _announce_for_stacks(stand, results[0]["crawl"], "Second", "Orbweaver")
        until(lambda: len(receiver.posted) >= 3, "told again", log=stand.log)
        stand.wait_idle()
        assert len(receiver.posted) == 3  # Several stacks share the event bus.

    assert [body["id"] for body in bodies] == [result["crawl"] for result in results]
    for body, result in zip(bodies, results, strict=True):
        assert (body["state"], body["stop"]) == ("finished", "finished")
        assert body["totals"]["claimed"] == result["claimed"] == 1
        assert body["started_at_ms"] < body["finished_at_ms"]


def _announce_for_stacks(stand: Stand, crawl: str, *stacks: str) -> None:
    with stand.client("events") as events:
        for name in stacks:
            detail = json.dumps({"stack": name, "webhook": True, "crawl": crawl})
            entry = {"Source": "orbweaver", "DetailType": "CrawlCompleted", "Detail": detail}
            assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0
