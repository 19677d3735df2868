"""Webhooks: URLs, request bodies, the meaning of answers, and the webhook of an ended crawl."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.webhook import (
    Delivery,
    NotDelivered,
    Notifier,
    Undelivered,
    WebhookDelivered,
    WebhookError,
    WebhookRefused,
    body_of,
    delivery_of,
    headers_of,
    refusal_of,
    shown,
    signature_of,
    webhook_of,
)
from orbweaver.model.address_policy import PUBLIC_ONLY, parse_allowed
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.errors import Permanent
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from tests.memory import ManualClock, MemoryCrawls, MemoryMetrics, MemoryQueue, MemorySecrets, World
from tests.memory.world import ShardItem
from tests.unit.stage import answer

KEY = "k" * 32
CRAWL = Crawl(
    id="shop-1",
    name="shop",
    started_at_ms=1_000,
    state=State.FINISHED,
    stop=Stop.MAX_PAGES,
    finished_at_ms=9_000,
    webhook="https://example.com/hook",
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com/hook", "https://example.com/hook"),
        (
            "https://EXAMPLE.com:8443/a?utm_source=x&t=1#f",
            "https://example.com:8443/a?utm_source=x&t=1",
        ),
        ("http://127.0.0.1:4711/hook", "http://127.0.0.1:4711/hook"),
        ("http://[::1]:4711/", "http://[::1]:4711/"),
        ("http://10.0.0.7/", "http://10.0.0.7/"),
        ("https://localhost:4711/", "https://localhost:4711/"),
        ("https://example.com/a@b?c=@", "https://example.com/a@b?c=@"),
    ],
)
def test_url_with_https_or_inner_http_is_accepted(text: str, url: str) -> None:
    assert webhook_of(text) == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hook", "not an absolute URL: give an https URL"),
        ("ftp://example.com/", "not an http or https URL: give an https URL"),
        ("http://example.com/", "it is http: give an https URL"),
        ("https://example.com:9999/", "no stack dials its port, 9999: give one of 80, 443, 8000,"),
        ("https://8.8.8.8:22/", "no stack dials its port, 22"),
        ("http://8.8.8.8/", "it is http: give an https URL"),
        ("http://localhost/", "it is http: give an https URL"),
        ("https://secret@example.com/", "give it without user and password"),
        ("https:\\\\secret:x@example.com/", "give it without user and password"),
        (" HTTPS://secret:@example.com/", "give it without user and password"),
    ],
)
def test_url_refusal_has_fix_and_no_secret(text: str, said: str) -> None:
    with pytest.raises(WebhookError) as raised:
        webhook_of(text)
    assert said in str(raised.value)
    assert "secret:" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "allowed", "said"),
    [
        ("https://example.com/", "", None),
        ("https://8.8.8.8/", "", None),
        ("https://8.8.8.8:22/", "", "port 22 is not one of"),
        ("https://127.0.0.1/", "", "127.0.0.1 is loopback"),
        ("http://127.0.0.1:4711/", "127.0.0.0/8", None),
        ("http://127.0.0.1:4566/", "127.0.0.0/8", "port 4566 there is the stack's own"),
        ("http://127.0.0.1:4711/", "10.0.0.0/8", "127.0.0.1 is loopback"),
        ("https://[fd00::1]/", "", "fd00::1 is private"),
        ("http://[::1]/", "::1/128", None),
    ],
)
def test_url_to_address_is_refused_unless_allowed(url: str, allowed: str, said: str | None) -> None:
    why = refusal_of(url, signing=True, allowed=parse_allowed(allowed, frozenset({4566})))
    assert why is None if said is None else said in str(why)


def test_webhook_without_signing_key_is_refused_with_fix() -> None:
    why = refusal_of("https://example.com/", signing=False, allowed=PUBLIC_ONLY)
    assert why is not None
    assert "-c webhook_secret=generate" in why


def test_body_of_crawl_is_always_the_same_bytes() -> None:
    body = body_of(CRAWL, {"fetched.ok": 2, "claimed": 3, "nanodollars": 8, "host.0.done": 3})
    assert json.loads(body) == {
        "event": "CrawlCompleted",
        "version": 2,
        "id": "shop-1",
        "crawl": "shop-1",
        "name": "shop",
        "state": "finished",
        "stop": "max_pages",
        "totals": {"claimed": 3, "fetched.ok": 2},
        "started_at_ms": 1_000,
        "finished_at_ms": 9_000,
    }
    assert body == body_of(CRAWL, {"claimed": 3, "fetched.ok": 2})
    assert b"hook" not in body


def test_headers_sign_time_and_body() -> None:
    """HMAC-SHA256 of time, dot and body, in hexadecimal."""
    headers = dict(headers_of(KEY, 1_700_000_000, b"{}"))
    expected = hmac.new(KEY.encode(), b"1700000000.{}", hashlib.sha256).hexdigest()
    assert headers == {
        "Content-Type": "application/json",
        "X-Orbweaver-Event": "CrawlCompleted",
        "X-Orbweaver-Timestamp": "1700000000",
        "X-Orbweaver-Signature": f"v1={expected}",
    }


@pytest.mark.parametrize("key", ["", "short", "k" * 15])
def test_short_key_signs_nothing(key: str) -> None:
    with pytest.raises(WebhookError, match="16 are the least"):
        signature_of(key, 0, b"")


def test_shown_url_has_no_path_and_query() -> None:
    """Path and query may contain secrets."""
    assert shown("https://example.com:8443/secret?t=1") == "https://example.com:8443"
    assert "hook" not in repr(CRAWL)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (answer(200), WebhookDelivered, None),
        (answer(204), WebhookDelivered, None),
        (answer(301), WebhookRefused, "answered 301: a redirect, which is not followed"),
        (answer(400), WebhookRefused, "answered 400: a refusal"),
        (answer(410), WebhookRefused, "answered 410: a refusal"),
        (answer(408), Undelivered, "answered 408"),
        (answer(429), Undelivered, "answered 429"),
        (answer(500), Undelivered, "answered 500"),
        (answer(599), Undelivered, "answered 599"),
        (Failure(reason=Reason.TIMEOUT, detail="slow"), Undelivered, "timeout: slow"),
        (Failure(reason=Reason.DNS_UNKNOWN, detail="no"), Undelivered, "dns_unknown: no"),
        (Failure(reason=Reason.ADDRESS, detail="inner"), WebhookRefused, "address: inner"),
    ],
)
def test_answer_of_2xx_is_success_and_some_are_retried(
    given: Response | Failure, kind: type[Delivery], said: str | None
) -> None:
    delivery = delivery_of(given)
    assert type(delivery) is kind
    if not isinstance(delivery, WebhookDelivered):
        assert said is not None
        assert said in delivery.why


# --- the sender -----------------------------------------------------------------------------------

NOW_MS = 1_795_251_600_500
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
ENDED = Crawl(
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
        self.world = World(crawls={ENDED.id: ENDED}, secrets={"the-key": KEY})
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


@pytest.mark.parametrize("crawl", [None, replace(ENDED, webhook=None)])
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
