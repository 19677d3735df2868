"""POST requests of the webhook notifier (same address guard, no redirects), HEAD requests."""

from __future__ import annotations

import threading

import pytest

from orbweaver.adapters.web.client import HttpFetcher
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.origin import TOTAL_S, fetching
from tests.sites import graph
from tests.sites.receiver import Receiver, receiving
from tests.sites.server import Answer, Asked

BODY = b'{"a":1}'


def posting(receiver: Receiver, **changes: object) -> Request:
    parts: dict[str, object] = {
        "url": receiver.url,
        "user_agent": "mine/1",
        "accept": frozenset(),
        "body_bytes_max": 1_000,
        "total_s": TOTAL_S,
        "headers": (("Content-Type", "application/json"), ("X-Own", "1")),
        "body": BODY,
    }
    return Request(**{**parts, **changes})  # type: ignore[arg-type] # the fields' own types


async def test_body_is_posted_once() -> None:
    with receiving(204) as receiver:
        async with fetching() as fetcher:
            answer = await fetcher.fetch(posting(receiver))
        (posted,) = receiver.posted
    assert isinstance(answer, Response)
    assert answer.status == 204
    assert (posted.target, posted.body) == ("/hook", BODY)
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["content-length"] == str(len(BODY))
    assert (posted.headers["user-agent"], posted.headers["x-own"]) == ("mine/1", "1")


@pytest.mark.parametrize("length", [None, "0", "5000000"])
async def test_head_request_ends_after_headers(length: str | None) -> None:
    seen: list[str] = []

    def script(asked: Asked) -> Answer:
        seen.append(asked.method)
        headers = () if length is None else (("Content-Length", length),)
        return Answer(status=200, headers=(("Content-Type", "text/html"), *headers))

    with graph.serve_in_background({"/": script}) as site:
        async with fetching() as fetcher:
            for _ in range(2):
                request = Request(
                    url=f"{site.url}/",
                    user_agent="mine/1",
                    accept=frozenset(),
                    body_bytes_max=1_000,
                    total_s=TOTAL_S,
                    head=True,
                )
                answer = await fetcher.fetch(request)
                assert isinstance(answer, Response)
                assert (answer.status, answer.body) == (200, None)
    assert seen == ["HEAD", "HEAD"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_post_does_not_follow_redirects(status: int) -> None:
    with receiving(status) as receiver:
        async with fetching() as fetcher:
            answer = await fetcher.fetch(posting(receiver))
        assert len(receiver.posted) == 1
    assert isinstance(answer, Response)
    assert answer.status == status


async def test_post_to_private_address_is_refused() -> None:
    with receiving() as receiver:
        fetcher = HttpFetcher()
        answer = await fetcher.fetch(posting(receiver))
        await fetcher.aclose()
        assert receiver.posted == []
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.ADDRESS


async def test_post_reads_little_of_answer() -> None:
    with receiving(200) as receiver:
        receiver.says = b"x" * 5_000_000
        async with fetching() as fetcher:
            answer = await fetcher.fetch(posting(receiver))
    assert isinstance(answer, Response)
    assert len(answer.body or b"") <= 1_000


async def test_post_meets_total_limit() -> None:
    with receiving() as receiver:
        receiver.waits = threading.Event()
        async with fetching() as fetcher:
            answer = await fetcher.fetch(posting(receiver, total_s=0.3))
        assert len(receiver.posted) == 1
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.TIMEOUT
