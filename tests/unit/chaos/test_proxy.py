"""The proxy between a client and a small upstream: forwarded calls and answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.chaos import proxy
from tests.chaos.faults import Fault, Plan, Rates

NONE: dict[str, float] = dict.fromkeys(
    ("throttle", "error", "lost", "held", "partial", "twice", "storm"), 0.0
) | {"life_calls": 1e12}
SEND = {
    "QueueUrl": "http://q/crawl",
    "Entries": [{"Id": str(n), "MessageBody": f"body {n}"} for n in range(4)],
}


class Nobody:
    """Finds no worker, and counts the lookups."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, transport: asyncio.BaseTransport) -> None:
        self.asked += 1


@asynccontextmanager
async def upstream(seen: list[dict[str, Any]]) -> AsyncIterator[str]:
    async def handle(request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.read())
        seen.append(body)
        taken = [{"Id": entry["Id"]} for entry in body["Entries"]]
        return web.json_response({"Successful": taken}, headers={"x-amz-crc32": "1"})

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def sent(fault: Fault | None) -> tuple[proxy.Proxy, list[dict[str, Any]], int, Any]:
    """Send a batch with this fault.

    Return the proxy, the forwarded calls, the status and the answer.
    """
    plan = Plan(1, Rates(**({**NONE, str(fault): 1.0} if fault else NONE)))  # type: ignore[arg-type] # shares only
    seen: list[dict[str, Any]] = []
    async with (
        upstream(seen) as url,
        proxy.standing(plan, url, Nobody()) as between,
        aiohttp.ClientSession() as session,
    ):
        between.armed = True
        headers = {"X-Amz-Target": "AmazonSQS.SendMessageBatch"}
        async with session.post(between.url, json=SEND, headers=headers) as answer:
            assert "x-amz-crc32" not in answer.headers
            return between, seen, answer.status, json.loads(await answer.read())


async def test_call_without_fault_is_forwarded_unchanged() -> None:
    between, seen, status, answer = await sent(None)

    assert (status, seen) == (200, [SEND])
    assert len(answer["Successful"]) == 4
    assert between.sent == [("http://q/crawl", f"body {n}") for n in range(4)]


@pytest.mark.parametrize(("fault", "status"), [(Fault.THROTTLE, 400), (Fault.ERROR, 500)])
async def test_refused_call_is_not_forwarded(fault: Fault, status: int) -> None:
    between, seen, got, answer = await sent(fault)

    assert (got, seen, between.faults[fault]) == (status, [], 1)
    assert "__type" in answer


async def test_partial_batch_names_failed_entries() -> None:
    _, seen, status, answer = await sent(Fault.PARTIAL)

    taken = [entry["Id"] for entry in answer["Successful"]]
    failed = [entry["Id"] for entry in answer["Failed"]]
    assert status == 200
    assert taken == [entry["Id"] for entry in seen[0]["Entries"]]
    assert sorted(taken + failed) == ["0", "1", "2", "3"]
    assert failed


async def test_doubled_batch_is_forwarded_twice() -> None:
    _, seen, status, _ = await sent(Fault.TWICE)

    assert (status, seen) == (200, [SEND, SEND])


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.HELD])
async def test_lost_answer_follows_executed_call(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "HOLD_S", 0.01)
    plan = Plan(1, Rates(**{**NONE, str(fault): 1.0}))  # type: ignore[arg-type] # shares only
    seen: list[dict[str, Any]] = []
    async with (
        upstream(seen) as url,
        proxy.standing(plan, url, Nobody()) as between,
        aiohttp.ClientSession() as session,
    ):
        between.armed = True
        headers = {"X-Amz-Target": "AmazonSQS.SendMessageBatch", "Connection": "close"}
        with pytest.raises(aiohttp.ClientError):
            await session.post(between.url, json=SEND, headers=headers)

    assert seen[0] == SEND
    assert between.faults[fault] == len(seen)


async def test_disarmed_proxy_forwards_every_call() -> None:
    seen: list[dict[str, Any]] = []
    async with (
        upstream(seen) as url,
        proxy.standing(Plan(1, Rates(throttle=1.0)), url, Nobody()) as between,
        aiohttp.ClientSession() as session,
    ):
        headers = {"X-Amz-Target": "AmazonSQS.SendMessageBatch"}
        async with session.post(between.url, json=SEND, headers=headers) as answer:
            assert answer.status == 200

    assert not between.faults


@pytest.mark.parametrize("seed", range(6))
async def test_doomed_worker_is_looked_up_once(seed: int) -> None:
    plan = Plan(seed, Rates(**{**NONE, "life_calls": 1e-9, "later_s_max": 0.0}))  # type: ignore[arg-type] # shares only
    seen: list[dict[str, Any]] = []
    find = Nobody()
    async with (
        upstream(seen) as url,
        proxy.standing(plan, url, find) as between,
        aiohttp.ClientSession() as session,
    ):
        between.armed = True
        headers = {"X-Amz-Target": "AmazonSQS.SendMessageBatch"}
        async with session.post(between.url, json=SEND, headers=headers) as answer:
            status = answer.status

    assert find.asked == 1
    assert (status, seen) in [(200, [SEND]), (500, [])]
    assert between.kills.total() == 0  # no worker was found


async def test_expect_100_continue_is_answered_by_proxy() -> None:
    """S3 clients wait for this answer, and upstream is not asked again."""
    seen: list[dict[str, Any]] = []
    async with (
        upstream(seen) as url,
        proxy.standing(Plan(1, Rates(**NONE)), url, Nobody()) as between,  # type: ignore[arg-type] # shares only
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
        session.put(between.url, json=SEND, expect100=True) as answer,
    ):
        assert answer.status == 200
    assert seen == [SEND]
