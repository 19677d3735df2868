"""TLS handshake faults: unfinished handshakes, plain ports, unverified contexts."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.fetching.response_verdict import SPEAKS_TLS
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Issuer, Leaf, server_context
from tests.integration.fetcher.origin import SOON_S, TOTAL_S, answer, fetching, request, serving
from tests.sites.steps import Act


@asynccontextmanager
async def listening(
    meet: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Run a server below HTTP and TLS; yield its https URL."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await meet(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(65_536):
        pass


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Start a handshake, one byte at a time."""
    for byte in b"\x16\x03\x03\x0f\xff\x02" + bytes(1_000):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.01)


async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a handshake in plain HTTP."""
    await reader.read(65_536)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    ("meet", "limits", "total_s", "reason"),
    [
        pytest.param(stall, Limits(connect_s=0.1), TOTAL_S, Reason.CONNECT, id="handshake-stall"),
        pytest.param(drip, Limits(connect_s=0.1), TOTAL_S, Reason.CONNECT, id="handshake-drip"),
        pytest.param(drip, None, 0.1, Reason.TIMEOUT, id="handshake-drip-total"),
        pytest.param(plain, None, TOTAL_S, Reason.TLS, id="plain-http-on-443"),
    ],
)
async def test_unfinished_handshake_meets_connect_limit(
    meet: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    limits: Limits | None,
    total_s: float,
    reason: Reason,
) -> None:
    started = time.monotonic()
    async with listening(meet) as url, fetching(limits) as fetcher:
        result = await fetcher.fetch(request(url, total_s=total_s))
    assert isinstance(result, Failure)
    assert result.reason is reason, result
    assert time.monotonic() - started < SOON_S


@pytest.mark.parametrize("issuer", [None, "trusted", "itself"])
async def test_plain_request_at_tls_port_is_reported(issuer: Issuer | None, tmp_path: Path) -> None:
    """From the hostile site's list (tests/sites/hostile): tls-on-80.

    A server without issuer answers with an alert. The others close the connection.
    """
    tls = server_context(Leaf(issuer=issuer), tmp_path) if issuer else None
    alert = (b"\x15\x03\x01\x00\x02\x02\x16", Act.CLOSE)
    async with serving(alert, tls=tls) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url().replace("https:", "http:")))
    assert isinstance(result, Failure)
    assert (result.reason, result.detail) == (Reason.TLS, SPEAKS_TLS)


async def test_body_of_400_without_type_and_length_is_read() -> None:
    """Go answers a plain request at a TLS port so."""
    text = b"Client sent an HTTP request to an HTTPS server.\n"
    steps = (b"HTTP/1.0 400 Bad Request\r\n\r\n" + text, Act.CLOSE)
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response)
    assert result.body == text


async def test_hsts_of_plain_answer_is_ignored() -> None:
    page = answer(b"", "Strict-Transport-Security: max-age=31536000")
    async with serving([page]) as origin, fetching() as fetcher:
        for _ in range(2):
            assert isinstance(await fetcher.fetch(request(origin.url())), Response)


@pytest.mark.parametrize("field", ["check_hostname", "verify_mode"])
def test_context_without_verification_is_refused(field: str) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    if field == "verify_mode":
        context.verify_mode = ssl.CERT_NONE
    with pytest.raises(ValueError, match="does not verify"):
        HttpFetcher(tls=context)
