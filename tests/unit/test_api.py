"""The HTTP API takes seeds whole, or says why not."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.api import BODY_BYTES_MAX, SEEDS_MAX, Api, Reply
from orbweaver.core.crawl import State
from orbweaver.core.message import Seeds
from tests.unit.stage import CRAWL, SITE, Stage, fail_on


def event(body: Any, *, method: str = "POST", resource: str = "/seeds") -> dict[str, Any]:
    """Make an event as API Gateway does."""
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    return {
        "httpMethod": method,
        "resource": resource,
        "body": text,
        "isBase64Encoded": False,
        "requestContext": {"requestId": "r1"},
    }


async def ask(stage: Stage, request: dict[str, Any]) -> Reply:
    """Ask the API over a stage."""
    return await Api(queue=stage.queue, crawls=stage.crawls, clock=stage.clock).answer(request)


async def test_seeds_are_accepted() -> None:
    """URLs of a live crawl go on its queue as seeds, and the answer says how many."""
    stage = Stage()
    stage.begin(replace(CRAWL, express=True))
    reply = await ask(stage, event({"urls": [f"{SITE}/a", f"{SITE}/b"], "crawl": CRAWL.id}))
    assert reply == Reply(status=202, body={"crawl": CRAWL.id, "accepted": 2})
    assert [mail.express for mail in stage.world.sent] == [True]
    (seeds,) = stage.sent()
    assert isinstance(seeds, Seeds)
    assert seeds.references == (f"{SITE}/a", f"{SITE}/b")


async def test_the_first_url_makes_the_default_crawl() -> None:
    """A request without a crawl belongs to the default one, bare or in JSON."""
    stage = Stage()
    for body in ({"url": f"{SITE}/a"}, f"{SITE}/b"):
        assert (await ask(stage, event(body))).status == 202
    assert list(stage.world.crawls) == ["default"]


async def test_a_repeated_request_sends_the_same_seeds() -> None:
    """The ids follow from the request's id, so a repetition is found out (case 80)."""
    stage = Stage()
    for _ in range(2):
        await ask(stage, event({"url": f"{SITE}/a"}))
    one, other = stage.sent()
    assert one.id == other.id


async def test_a_binary_body_is_read() -> None:
    """The gateway may hand a body over in base64."""
    stage = Stage()
    body = base64.b64encode(json.dumps({"url": SITE}).encode()).decode()
    assert (await ask(stage, {**event(body), "isBase64Encoded": True})).status == 202


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (None, 400, "body is empty"),
        ("{", 400, "neither a URL nor valid JSON"),
        ({"url": SITE, "depth": 3}, 400, "unknown field 'depth'"),
        ({"v": 1, "seeds": "s", "crawl": "c", "at": 0, "urls": [SITE]}, 400, "give url or urls"),
        ({"url": SITE, "crawl": "nobody"}, 404, "there is no crawl 'nobody'"),
        ({"url": SITE, "crawl": CRAWL.id}, 409, "is finished: start another"),
        ({"urls": [SITE] * (SEEDS_MAX + 1)}, 413, "at most 10,000 URLs"),
        ("x" * (BODY_BYTES_MAX + 1), 413, "over 1,000,000 bytes"),
    ],
)
async def test_what_does_not_fit_is_said(body: Any, status: int, detail: str) -> None:
    """A request that cannot be taken has a status and a reason, and enqueues nothing (case 79)."""
    stage = Stage()
    stage.begin(replace(CRAWL, state=State.FINISHED))
    reply = await ask(stage, event(body))
    assert reply.status == status == reply.body["status"]
    assert detail in reply.body["detail"]
    assert stage.world.sent == []


async def test_one_bad_url_refuses_the_request() -> None:
    """All URLs are taken or none, and each bad one is named with its problem (case 79)."""
    stage = Stage()
    urls = [f"{SITE}/a", "nonsense", "file:///etc/passwd"]
    reply = await ask(stage, event({"urls": urls}))
    assert reply.status == 400
    assert reply.body["detail"] == "2 URLs cannot be crawled"
    assert [refused["url"] for refused in reply.body["refused"]] == urls[1:]
    assert all(refused["problem"] for refused in reply.body["refused"])
    assert stage.world.sent == []


@pytest.mark.parametrize("body", ["%%%", base64.b64encode(b"\xff").decode()])
async def test_a_binary_body_that_is_no_text_is_refused(body: str) -> None:
    """Bytes that are not UTF-8, or not base64, are the caller's mistake."""
    reply = await ask(Stage(), {**event(body), "isBase64Encoded": True})
    assert (reply.status, reply.body["detail"]) == (400, "the body is not UTF-8 text")


@pytest.mark.parametrize(("method", "resource"), [("GET", "/seeds"), ("POST", "/"), (None, None)])
async def test_there_is_one_route(method: str, resource: str) -> None:
    """What the gateway does not route here is not found."""
    assert (await ask(Stage(), event("", method=method, resource=resource))).status == 404


async def test_trouble_of_ours_is_worth_another_try() -> None:
    """A table or queue that is busy answers 503."""
    stage = Stage(gate=fail_on("queue.send"))
    reply = await ask(stage, event({"url": SITE}))
    assert (reply.status, reply.body["detail"]) == (503, "try again: queue.send")
