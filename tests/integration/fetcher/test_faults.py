"""Server and network faults: each results in a reason, not in an exception."""

from __future__ import annotations

import asyncio
import socket
import time
import tracemalloc

import aiohttp
import pytest

from orbweaver.adapters.web.body import Rate
from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.adapters.web.errors import detail_of
from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.origin import (
    SOON_S,
    TOTAL_S,
    Asked,
    answer,
    chunked,
    fetching,
    request,
    serving,
)
from tests.sites.steps import Act, Step

OK = b"HTTP/1.1 200 OK\r\n"
MIB = 1024 * 1024


async def failed(*steps: Step, limits: Limits | None = None, total_s: float = TOTAL_S) -> Failure:
    """Fetch from a server with these steps; expect a failure and no second request."""
    async with serving(steps) as origin, fetching(limits) as fetcher:
        result = await fetcher.fetch(request(origin.url(), total_s=total_s))
        assert origin.connections == 1
        assert len(origin.asked) <= 1
    assert isinstance(result, Failure), result
    assert result.detail.isprintable()
    assert 0 < len(result.detail) <= 200
    return result


@pytest.mark.parametrize("error", [TimeoutError(), aiohttp.ClientPayloadError()])
def test_error_without_message_is_reported_by_name(error: Exception) -> None:
    assert detail_of(error) == type(error).__name__


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        pytest.param(b"Content-Length: -3\r\n\r\nhello", Reason.PROTOCOL, id="negative"),
        pytest.param(b"Content-Length: +5\r\n\r\nhello", Reason.PROTOCOL, id="signed"),
        pytest.param(b"Content-Length: 5, 6\r\n\r\nhello", Reason.PROTOCOL, id="list"),
        pytest.param(b"Content-Length: 5,\r\n\r\nhello", Reason.PROTOCOL, id="half a list"),
        pytest.param(b"Content-Length: 5, 05\r\n\r\nhello", Reason.PROTOCOL, id="spelled twice"),
        pytest.param(b"Content-Length: 0x5\r\n\r\nhello", Reason.PROTOCOL, id="hexadecimal"),
        pytest.param(b"Content-Length: 9" + b"9" * 30 + b"\r\n\r\n", Reason.PROTOCOL, id="huge"),
        pytest.param(
            b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Reason.PROTOCOL, id="repeated"
        ),
        pytest.param(b"Content-Length: 30\r\n\r\nhello", Reason.DISCONNECTED, id="too big"),
    ],
)
async def test_wrong_content_length_is_detected(head: bytes, reason: Reason) -> None:
    """Content-Length larger or smaller than the body, or invalid (case 36)."""
    assert (await failed(OK + head, Act.CLOSE)).reason is reason


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        pytest.param((b"zz\r\nhello\r\n0\r\n\r\n",), Reason.PROTOCOL, id="no number"),
        pytest.param((b"-5\r\nhello\r\n0\r\n\r\n",), Reason.PROTOCOL, id="negative"),
        pytest.param((b"5\r\nhello, world\r\n0\r\n\r\n",), Reason.PROTOCOL, id="too small"),
        pytest.param((b"f" * 40 + b"\r\nhello",), Reason.PROTOCOL, id="huge"),
        pytest.param((b"5\r\nhello\r\n", 0.02, b"zz\r\n", Act.HANG), Reason.PROTOCOL, id="later"),
        pytest.param((b"5\r\nhello\r\n",), Reason.DISCONNECTED, id="no end"),
        pytest.param((b"5\r\nhel",), Reason.DISCONNECTED, id="half a chunk"),
        pytest.param(
            (b"5\r\nhello\r\n0\r\n", b"A: b\r\n" * 5_000, b"\r\n"),
            Reason.HEADERS_TOO_LARGE,
            id="many trailers",
        ),
        pytest.param(
            (b"5\r\nhello\r\n0\r\nA: ", b"b" * 100_000, b"\r\n\r\n"),
            Reason.HEADERS_TOO_LARGE,
            id="long trailer",
        ),
    ],
)
async def test_wrong_chunks_are_detected_at_once(steps: tuple[Step, ...], reason: Reason) -> None:
    """The connection fails before the body ends (case 37)."""
    started = time.monotonic()
    assert (await failed(chunked(), *steps, Act.CLOSE)).reason is reason
    assert time.monotonic() - started < SOON_S


async def test_huge_chunk_extension_ends_as_flood() -> None:
    """A huge chunk extension costs neither memory nor time (case 37)."""
    steps = (chunked(), b"5;", *[b"e" * MIB] * 30, b"\r\nhello\r\n0\r\n\r\n")
    async with serving(steps) as origin, fetching() as fetcher:
        tracemalloc.start()
        try:
            result = await fetcher.fetch(request(origin.url()))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(result, Failure)
    assert result.reason is Reason.PROTOCOL
    assert "bytes of framing for" in result.detail
    assert result.received < MIB
    assert peak < 8 * MIB


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"<html>no head at all</html>", id="HTTP/0.9"),
        pytest.param(b"ICY 200 OK\r\n\r\nhello", id="ICY"),
        pytest.param(b"HTTP/1.1 99999 OK\r\n\r\n", id="five digits"),
        pytest.param(b"HTTP/1.1 OK\r\n\r\n", id="no status"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="SSH"),
        pytest.param(b"\x00" * 1000, id="zeros"),
        pytest.param(OK + b"X: a\0b\r\n\r\n", id="NUL in a value"),
        pytest.param(OK + b"X: a\rb\r\n\r\n", id="CR in a value"),
        pytest.param(OK + b"X\x01: a\r\n\r\n", id="control in a name"),
        pytest.param(OK + b"no colon\r\n\r\n", id="no colon"),
    ],
)
async def test_non_http_answer_is_protocol_failure(said: bytes) -> None:
    """The request is not repeated (cases 38 and 40)."""
    assert (await failed(said, Act.CLOSE)).reason is Reason.PROTOCOL


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((OK + b"X: " + b"v" * 70_000 + b"\r\n\r\n",), id="70 KB"),
        pytest.param((OK + b"X: " + b"v" * 33_000 + b"\r\n\r\n",), id="33 KB"),
        pytest.param((OK + b"N" * 33_000 + b": v\r\n\r\n",), id="long name"),
        pytest.param((OK + b"X: v\r\n" * 200 + b"\r\n",), id="200 of them"),
        pytest.param((OK + b"X: ", *[b"v" * 60_000] * 100), id="endless"),
        pytest.param((b"HTTP/1.1 200 " + b"r" * 40_000 + b"\r\n\r\n",), id="long reason"),
    ],
)
async def test_oversized_headers_have_own_reason(steps: tuple[Step, ...]) -> None:
    """The failure differs from an HTTP 400 (case 39)."""
    assert (await failed(*steps, Act.CLOSE)).reason is Reason.HEADERS_TOO_LARGE


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        pytest.param((OK + b"X: ", Act.CLOSE), Reason.DISCONNECTED, id="closed in the head"),
        pytest.param((OK + b"X: ", 0.02, Act.RESET), Reason.DISCONNECTED, id="reset in the head"),
        pytest.param((answer(b"hello")[:-1], Act.CLOSE), Reason.DISCONNECTED, id="in the body"),
        pytest.param(
            (answer(b"hello")[:-1], 0.02, Act.RESET), Reason.DISCONNECTED, id="reset in the body"
        ),
    ],
)
async def test_broken_new_connection_is_failure_after_one_request(
    steps: tuple[Step, ...], reason: Reason
) -> None:
    assert (await failed(*steps)).reason is reason


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_server_closing_at_once_gets_one_tls_handshake(act: Act) -> None:
    async with serving([act]) as origin, fetching() as fetcher:
        for _ in range(2):
            result = await fetcher.fetch(request(origin.url()))
            assert isinstance(result, Failure)
            assert result.reason is Reason.DISCONNECTED
        assert len(origin.asked) == 2
        assert origin.connections == 3


async def test_broken_body_is_dropped_and_next_attempt_succeeds() -> None:
    """No part of a broken body is used (case 51)."""

    def say(asked: Asked) -> tuple[Step, ...]:
        whole = answer(b"hello")
        return (whole[:-2], Act.CLOSE) if asked.connection == 1 else (whole,)

    async with serving(say) as origin, fetching() as fetcher:
        first = await fetcher.fetch(request(origin.url()))
        second = await fetcher.fetch(request(origin.url()))
    assert isinstance(first, Failure)
    assert first.reason is Reason.DISCONNECTED
    assert isinstance(second, Response)
    assert second.body == b"hello"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((Act.HANG,), id="no answer"),
        pytest.param((OK, *[b"X: y\r\n", 0.02] * 100), id="slow head"),
        pytest.param((OK + b"Content-Length: 100\r\n\r\n", *[b"x", 0.02] * 100), id="slow body"),
        pytest.param((chunked(b"x" * 1000), Act.HANG), id="stalled body"),
        pytest.param((b"HTTP/1.1 103 Hint\r\n\r\n", 0.02) * 100, id="interim answers"),
    ],
)
async def test_slow_server_meets_total_limit(steps: tuple[Step, ...]) -> None:
    """A server that sends head or body too slowly (case 34)."""
    started = time.monotonic()
    failure = await failed(*steps, total_s=0.2)
    assert failure.reason is Reason.TIMEOUT
    assert failure.detail.endswith("within 0.2 s")
    assert 0.15 < time.monotonic() - started < SOON_S


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((OK + b"Content-Length: 900\r\n\r\n", *[b"x", 0.02] * 100), id="length"),
        pytest.param((OK + b"\r\n", *[b"x", 0.02] * 100), id="no length"),
        pytest.param((chunked(), *[b"1\r\nx\r\n", 0.02] * 100), id="chunks"),
    ],
)
async def test_too_slow_body_is_left_early(steps: tuple[Step, ...]) -> None:
    """The server sends one byte now and then (case 34)."""
    rate = Rate(bytes_min=10_000, after_s=0.1)
    started = time.monotonic()
    failure = await failed(*steps, limits=Limits(rate=rate))
    assert failure.reason is Reason.TIMEOUT
    assert "too few" in failure.detail
    assert 0.08 < time.monotonic() - started < SOON_S


async def test_slow_body_above_minimum_rate_is_read() -> None:
    """A slow body is no failure by itself (case 34)."""
    steps: tuple[Step, ...] = (b"x" * 400, 0.02)
    head = b"Content-Type: text/html\r\nContent-Length: 4000\r\n\r\n"
    steps = (OK + head, *steps * 10)
    limits = Limits(rate=Rate(bytes_min=1_000, after_s=0.05))
    async with serving(steps) as origin, fetching(limits) as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response)
    assert result.body == b"x" * 4_000


@pytest.mark.parametrize(
    "steps", [(Act.HANG,), (OK, Act.HANG), (OK + b"Content-Length: 9\r\n\r\nx", Act.HANG)]
)
async def test_silent_server_meets_idle_limit(steps: tuple[Step, ...]) -> None:
    started = time.monotonic()
    assert (await failed(*steps, limits=Limits(idle_s=0.1))).reason is Reason.TIMEOUT
    assert time.monotonic() - started < SOON_S


async def test_connection_refused() -> None:
    """No server listens on the port (case 32)."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        async with fetching() as fetcher:
            result = await fetcher.fetch(request(url))
    assert isinstance(result, Failure)
    assert result.reason is Reason.CONNECT
    assert result.detail == "connection refused"


async def test_network_unreachable() -> None:
    """The operating system has no route (case 32)."""
    fetcher = HttpFetcher(allowed=parse_allowed("255.255.255.255:80"))
    result = await fetcher.fetch(request("http://255.255.255.255/"))
    await fetcher.aclose()
    assert isinstance(result, Failure)
    assert result.reason is Reason.CONNECT


@pytest.mark.parametrize(
    ("connect_s", "total_s", "reason"),
    [(0.1, TOTAL_S, Reason.CONNECT), (TOTAL_S, 0.1, Reason.TIMEOUT)],
)
async def test_black_hole_meets_connect_limit(
    connect_s: float, total_s: float, reason: Reason
) -> None:
    """The server neither accepts nor refuses the connection (case 33)."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        address = hole.getsockname()
        # With a backlog of zero one connection fits. Further connection requests get no answer.
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        async with fetching(Limits(connect_s=connect_s)) as fetcher:
            started = time.monotonic()
            url = f"http://127.0.0.1:{address[1]}/"
            result = await fetcher.fetch(request(url, total_s=total_s))
            assert 0.08 < time.monotonic() - started < SOON_S
        for filler in fillers:
            filler.close()
    assert isinstance(result, Failure)
    assert result.reason is reason


async def test_cancelled_fetch_leaves_no_connection() -> None:
    async with serving([Act.HANG]) as origin, fetching() as fetcher:
        task = asyncio.create_task(fetcher.fetch(request(origin.url())))
        async with asyncio.timeout(2):
            await origin.busy.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await origin.quiet.wait()
