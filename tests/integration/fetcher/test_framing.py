"""Unusual but valid framing, cut into segments in any way (RFC 9112).

Each answer is sent whole, cut at every byte in turn, and byte by byte: its meaning must not change.
A second request then shows what remains on the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from orbweaver.adapters.web.framing import HeadFraming
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Leaf, authority, server_context
from tests.integration.fetcher.origin import Asked, answer, fetching, request, serving
from tests.sites.steps import Act, Step

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"
# Sent bytes, and the expected body.
ODD = {
    "a byte too many": OK + b"Content-Length: 5\r\n\r\nhello!",
    "line ends too many": OK + b"Content-Length: 5\r\n\r\nhello\r\n\r\n",
    "a page too many": OK + b"Content-Length: 5\r\n\r\nhello" + b"<p>more" * 500,
    "an answer too many": OK + b"Content-Length: 5\r\n\r\nhello" + answer(b"smuggled"),
    "an interim answer too many": OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 100 \r\n\r\n",
    "more than chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n" + HELLO + b"surplus",
    "an answer behind chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + HELLO + answer(b"smuggled")
    ),
    "more, and closed": OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello!!",
    "length twice": OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "length apart": OK + b"Content-Length: 5\r\nA: b\r\ncontent-length:5 \r\n\r\nhello",
    "length as a list": OK + b"Content-Length: 5, 5\r\n\r\nhello",
    "length of many": OK + b"Content-Length: 5,5 ,\t5\r\nContent-Length: 5\r\n\r\nhello",
    "length and chunks": OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO,
    "chunks and length": OK + b"Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n" + HELLO,
    "chunks and lengths": (
        OK + b"Content-Length: 3\r\nTransfer-Encoding: CHUNKED\r\nContent-Length: 9\r\n\r\n" + HELLO
    ),
    "after a hint": b"HTTP/1.1 103 Hint\r\nLink: <a>\r\n\r\n"
    + OK
    + b"Content-Length: 5\r\n\r\nhello+",
    "a space before a colon": (
        b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nA\t :b\r\nContent-Length: 5\r\n\r\nhello+"
    ),
    "a space before the length's colon": OK + b"Content-Length : 5\r\n\r\nhello",
    "a space before the coding's colon": OK + b"Transfer-Encoding : chunked\r\n\r\n" + HELLO,
    "a space before one of two lengths": (
        OK + b"Content-Length : 5\r\nContent-Length: 5\r\n\r\nhello"
    ),
    "line feeds alone": OK.replace(b"\r\n", b"\n") + b"Content-Length: 5\n\nhello+",
    "blank lines before": b"\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello+",
    "exposed": OK + b"Access-Control-Expose-Headers: Content-Length, A\r\nContent-Length: 5\r\n\r\n"
    b"hello",
}

SEGMENTS = 12


def cuts(said: bytes) -> Iterable[tuple[Step, ...]]:
    """Yield an answer whole, in two parts at every place, and in small pieces."""
    yield (said,)
    step = max(1, len(said[:400]) // SEGMENTS)
    for at in range(1, min(len(said), 400), step):
        yield (said[:at], 0.001, said[at:])
    head = said[:400]
    small = [head[at : at + 7] for at in range(0, len(head), 7)]
    yield (*(step for piece in small for step in (piece, 0.0005)), said[400:])


@pytest.mark.parametrize("name", ODD)
async def test_unusual_framing_does_not_depend_on_segments(name: str) -> None:
    for steps in cuts(ODD[name]):
        said = asyncio.Event()

        def say(
            asked: Asked, steps: tuple[Step, ...] = steps, said: asyncio.Event = said
        ) -> Iterator[Step]:
            if asked.target == "/next":
                yield answer(b"next")
                return
            yield from steps
            said.set()

        async with serving(say) as origin, fetching() as fetcher, asyncio.timeout(10):
            first = await fetcher.fetch(request(origin.url("/odd")))
            # Bytes that arrive after the next request cannot be distinguished from its answer.
            over = [asyncio.ensure_future(event.wait()) for event in (said, origin.quiet)]
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            for waiting in over:
                waiting.cancel()
            second = await fetcher.fetch(request(origin.url("/next")))
        assert isinstance(first, Response), (steps, first)
        assert (first.status, first.body, first.truncated) == (200, b"hello", False), steps
        assert isinstance(second, Response), (steps, second)
        assert second.body == b"next"
        assert [asked.target for asked in origin.asked] == ["/odd", "/next"]


@pytest.mark.parametrize(
    ("name", "connections"),
    [
        ("exposed", 1),
        ("length twice", 1),
        ("length as a list", 1),
        ("length and chunks", 2),
        ("chunks and length", 2),
        ("a byte too many", 2),
        ("more than chunks", 2),
    ],
)
async def test_connection_is_kept_after_unambiguous_framing(name: str, connections: int) -> None:
    async with serving([ODD[name]]) as origin, fetching() as fetcher:
        for _ in range(2):
            assert isinstance(await fetcher.fetch(request(origin.url())), Response)
    assert origin.connections == connections


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"Content-Length: 5, 6\r\n\r\nhello",
        b"Content-Length: 5\r\nContent-Length: \r\n\r\nhello",
        b"Content-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        b"Content-Length: 5\r\n 5\r\n\r\nhello",
    ],
)
async def test_conflicting_lengths_are_refused(head: bytes) -> None:
    """RFC 9112, section 6.3."""
    for steps in cuts(OK + head):
        async with serving([*steps, Act.CLOSE]) as origin, fetching() as fetcher:
            result = await fetcher.fetch(request(origin.url()))
        assert isinstance(result, Failure), (steps, result)
        assert result.reason is Reason.PROTOCOL


@pytest.mark.parametrize("count", [1, 4])
async def test_headers_of_18_kilobytes_are_read(count: int) -> None:
    lines = [f"X-{number}: {'v' * (18_000 // count)}" for number in range(count)]
    async with serving([answer(b"x", *lines)]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response), result
    assert result.body == b"x"
    assert sum(map(len, result.headers.values())) >= 18_000


def test_held_back_line_is_limited_to_one_kilobyte() -> None:
    """The fetcher holds a line back while it may still be a length; then the parser gets it."""
    framing = HeadFraming()
    given, rest = framing.feed(b"HTTP/1.1 200 OK\r\nContent-Length: ")
    assert (given, rest) == (b"HTTP/1.1 200 OK\r\n", b"")
    given, rest = framing.feed(b"1" * 5_000)
    assert len(given) > 5_000
    assert framing.rest() == b""


async def test_incomplete_length_line_counts_as_started_head() -> None:
    def say(asked: Asked) -> tuple[Step, ...]:
        if asked.target == "/1":
            return (answer(b"x"),)
        return (b"HTTP/1.1 200 OK\r\nContent-Length: 5", Act.CLOSE)

    async with serving(say) as origin, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(request(origin.url("/1"))), Response)
        result = await fetcher.fetch(request(origin.url("/2")))
        assert len(origin.asked) == 2
    assert isinstance(result, Failure)
    assert result.reason is Reason.DISCONNECTED


async def test_reset_within_body_without_length_is_truncation() -> None:
    steps = (OK + b"\r\nhello", 0.05, Act.RESET)
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response), result
    assert (result.body, result.truncated) == (b"hello", True)


class _Secured:
    """A TLS server that answers and ends with or without close_notify."""

    def __init__(self, context: ssl.SSLContext, said: bytes, *, announces: bool) -> None:
        self._context = context
        self._said = said
        self._announces = announces

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, with TLS records built by hand."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=True)

        async def through(act: Callable[[], object]) -> None:
            while True:
                try:
                    act()
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(65_536))
                else:
                    writer.write(outgoing.read())
                    return

        await through(tls.do_handshake)
        await through(lambda: tls.read(65_536))
        tls.write(self._said)
        if self._announces:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.unwrap()  # The server does not wait for the client's close_notify.
        writer.write(outgoing.read())
        await writer.drain()
        sock: socket.socket = writer.get_extra_info("socket")
        sock.shutdown(socket.SHUT_WR)
        await reader.read()
        writer.close()


@pytest.mark.parametrize(
    ("said", "announces", "truncated"),
    [
        pytest.param(OK + b"\r\nhello", True, False, id="announced"),
        pytest.param(OK + b"\r\nhello", False, True, id="without a word"),
        pytest.param(OK + b"Content-Length: 5\r\n\r\nhello", False, False, id="with a length"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + HELLO, False, False, id="with chunks"
        ),
    ],
)
async def test_tls_body_without_close_notify_is_truncated(
    tmp_path: Path, said: bytes, *, announces: bool, truncated: bool
) -> None:
    store = tmp_path / "trusted.pem"
    store.write_bytes(authority("trusted").pem)
    secured = _Secured(server_context(Leaf(), tmp_path), said, announces=announces)
    server = await asyncio.start_server(secured.meet, "127.0.0.1", 0)
    url = f"https://good.test:{server.sockets[0].getsockname()[1]}/"
    trusting = ssl.create_default_context(cafile=store)
    async with fetching(book={"good.test": ["127.0.0.1"]}, tls=trusting) as fetcher:
        result = await fetcher.fetch(request(url))
    server.close()
    assert isinstance(result, Response), result
    assert (result.body, result.truncated) == (b"hello", truncated)
