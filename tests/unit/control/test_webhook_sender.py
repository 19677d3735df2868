"""The webhook of an ended crawl: its request, and the handling of refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.webhook import NotDelivered, Notifier, WebhookError, signature_of
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.errors import Permanent
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from tests.memory import ManualClock, MemoryCrawls, MemoryMetrics, MemoryQueue, MemorySecrets, World
from tests.memory.world import ShardItem

NOW_MS = 1_795_251_600_500
KEY = "a key of thirty-two characters.."
URL = "https://receiver.example/secret-path?token=1"
# The last three belong to the stack itself.
COUNTED = {
    "claimed": 2,
    "fetched": 2,
    "fetched.ok": 2,
    "refused.scope": 7,
    "failed": 0,
    "seeds": 1,
    "host.0.done": 2,
    "units.write.claim": 30,
}
CRAWL = Crawl(
    id="shop-1",
    name="shop",
    started_at_ms=NOW_MS - 9_000,
    state=State.FINISHED,
    stop=Stop.FINISHED,
    finished_at_ms=NOW_MS,
    webhook=URL,
)
EVENT = {"detail-type": "CrawlCompleted", "detail": {"id": "shop-1", "crawl": "shop-1"}}
TAKEN = Response(status=204, headers={}, body=None)


class Receiver:
    """A server that records requests and returns given answers."""

    def __init__(self, answer: Response | Failure) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    async def fetch(self, request: Request) -> Response | Failure:
        self.asked.append(request)
        return self.answer


class Stage:
    """A finished crawl and its notifier."""

    def __init__(self, answer: Response | Failure = TAKEN) -> None:
        self.world = World(crawls={CRAWL.id: CRAWL}, secrets={"the-key": KEY})
        self.world.shards["shop-1", 0] = ShardItem(counts=COUNTED)
        self.receiver = Receiver(answer)
        self.metrics = MemoryMetrics()
        self.notifier = Notifier(
            crawls=MemoryCrawls(self.world),
            secrets=MemorySecrets(self.world),
            fetcher=self.receiver,
            queue=MemoryQueue(self.world),
            clock=ManualClock(NOW_MS),
            metrics=self.metrics,
            settings=Settings.of(webhook_secret="the-key", user_agent="mine/1"),
        )

    async def notify(self, event: dict[str, Any] = EVENT) -> dict[str, str]:
        return await self.notifier.notify(event)


async def test_ended_crawl_sends_one_signed_post() -> None:
    stage = Stage()
    assert await stage.notify() == {"webhook": "delivered"}
    (request,) = stage.receiver.asked
    assert (request.url, request.user_agent, request.total_s) == (URL, "mine/1", 10.0)
    assert request.body is not None
    body = json.loads(request.body)
    assert (body["version"], body["id"], body["stop"], body["totals"]) == (
        2,
        "shop-1",
        "finished",
        {"claimed": 2, "fetched": 2, "fetched.ok": 2, "refused.scope": 7},
    )
    headers = dict(request.headers)
    assert headers["X-Orbweaver-Timestamp"] == str(NOW_MS // 1000)
    assert headers["X-Orbweaver-Signature"] == signature_of(KEY, NOW_MS // 1000, request.body)
    assert stage.metrics.totals == {"WebhooksDelivered": 1}


async def test_event_delivered_twice_sends_same_body() -> None:
    stage = Stage()
    await stage.notify()
    await stage.notify()
    one, other = stage.receiver.asked
    assert one.body == other.body


@pytest.mark.parametrize("crawl", [None, replace(CRAWL, webhook=None)])
async def test_crawl_without_webhook_or_deleted_sends_nothing(crawl: Crawl | None) -> None:
    stage = Stage()
    stage.world.crawls.clear()
    if crawl is not None:
        stage.world.crawls[crawl.id] = crawl
    assert await stage.notify() == {"webhook": "none"}
    assert stage.receiver.asked == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(status=503, headers={}, body=None), "shop-1: the receiver answered 503"),
        (Response(status=429, headers={}, body=None), "shop-1: the receiver answered 429"),
        (Failure(reason=Reason.TIMEOUT, detail="slow"), "shop-1: timeout: slow"),
    ],
)
async def test_temporary_refusal_is_raised(answer: Response | Failure, said: str) -> None:
    stage = Stage(answer)
    with pytest.raises(NotDelivered, match=said):
        await stage.notify()
    assert (stage.world.buried, stage.metrics.totals) == ([], {"WebhooksFailed": 1})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Response(status=410, headers={}, body=None), "the receiver answered 410: a refusal"),
        (
            Response(status=302, headers={"location": "http://169.254.169.254/"}, body=None),
            "the receiver answered 302: a redirect, which is not followed",
        ),
        (
            Failure(reason=Reason.ADDRESS, detail="10.0.0.1 is private"),
            "address: 10.0.0.1 is private",
        ),
    ],
)
async def test_permanent_refusal_becomes_dead_letter_at_once(
    answer: Response | Failure, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(answer)
    assert await stage.notify() == {"webhook": "refused"}
    (mail,) = stage.world.buried
    assert (json.loads(mail.body), mail.reason) == (EVENT, reason)
    assert stage.metrics.totals == {"WebhooksRefused": 1}
    assert "secret-path" not in caplog.text + str([vars(record) for record in caplog.records])


async def test_missing_or_short_key_raises_before_sending() -> None:
    stage = Stage()
    stage.world.secrets["the-key"] = "short"
    with pytest.raises(WebhookError):
        await stage.notify()
    stage.world.secrets.clear()
    with pytest.raises(Permanent):
        await stage.notify()
    assert stage.receiver.asked == []


async def test_post_allows_inner_address_of_receiver_only() -> None:
    stage = Stage()
    await stage.notify()
    assert stage.receiver.asked[0].named == {"https://receiver.example"}
