"""Loopback servers with scripted answers, and names that resolve to them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from aiohttp.abc import AbstractResolver, ResolveResult

from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.adapters.web.large_bodies import LargeBodies
from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.http_exchange import Request
from tests.sites.steps import Step, play

# Allows the whole machine; test_reach.py tests a crawl's limits.
LOOPBACK = parse_allowed("127.0.0.0/8:1-65535, [::1]:1-65535")
HTML = frozenset({"text/html"})
# Seconds of a request without a limit of its own, and a bound for one with it, on a busy machine.
TOTAL_S, SOON_S = 60.0, 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A received request; `connection` counts from 1."""

    connection: int
    head: bytes

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode("latin-1")

    def header(self, name: str) -> str | None:
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            found, _, value = line.partition(":")
            if found.lower() == name.lower():
                return value.strip()
        return None


class Origin:
    """Requests to a raw server, and its connections."""

    def __init__(self, say: Callable[[Asked], Iterable[Step]]) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.open = 0
        self.busy = asyncio.Event()  # Set when a request arrives.
        self.quiet = asyncio.Event()  # Set when all connections are closed.
        self.port = 0
        self.scheme = "http"
        self._say = say
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, target: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{target}"

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open += 1
        self.quiet.clear()
        number = self.connections
        try:
            await self._converse(reader, writer, number)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # The client left, or the test ended.
        finally:
            self.open -= 1
            if not self.open:
                self.quiet.set()
            self._tasks.discard(task)
            writer.close()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        going_on = True
        while going_on:
            head = await reader.readuntil(b"\r\n\r\n")
            asked = Asked(connection=number, head=head)
            self.asked.append(asked)
            self.busy.set()
            going_on = await play(self._say(asked), reader, writer)


@contextlib.asynccontextmanager
async def serving(
    say: Callable[[Asked], Iterable[Step]] | Iterable[Step], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Origin]:
    """Run a server that answers every request with the same steps, or with those of a callback."""
    if callable(say):
        origin = Origin(say)
    else:
        steps = tuple(say)
        origin = Origin(lambda _: steps)
    server = await asyncio.start_server(
        origin.meet, "127.0.0.1", 0, ssl=tls, ssl_handshake_timeout=1 if tls else None
    )
    origin.port = server.sockets[0].getsockname()[1]
    origin.scheme = "https" if tls else "http"
    try:
        yield origin
    finally:
        server.close()
        await origin.stop()


class Names(AbstractResolver):
    """Resolver with a table of names; raises stored exceptions, other names are unknown."""

    def __init__(self, book: Mapping[str, Iterable[str] | Exception]) -> None:
        self._book = book
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        found = self._book.get(host, OSError(None, "Domain name not found"))
        if isinstance(found, Exception):
            raise found
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in found
        ]

    async def close(self) -> None:
        pass


def answer(body: bytes = b"", *lines: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, lines: Iterable[str] = ()) -> bytes:
    """Encode an answer's head and some chunks, without its end."""
    head = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *lines, "", ""]
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return "\r\n".join(head).encode("latin-1") + b"".join(parts)


def request(
    url: str,
    *,
    accept: frozenset[str] = HTML,
    body_bytes_max: int = 1_000_000,
    total_s: float = TOTAL_S,
    named: frozenset[str] = frozenset(),
) -> Request:
    return Request(
        url=url,
        user_agent="spider/1",
        accept=accept,
        body_bytes_max=body_bytes_max,
        total_s=total_s,
        named=named,
    )


@contextlib.asynccontextmanager
async def fetching(
    limits: Limits | None = None,
    *,
    book: Mapping[str, Iterable[str] | Exception] | None = None,
    tls: ssl.SSLContext | None = None,
    large: LargeBodies | None = None,
) -> AsyncIterator[HttpFetcher]:
    """Open a fetcher that can connect to this machine and uses no DNS."""
    fetcher = HttpFetcher(
        allowed=LOOPBACK,
        limits=limits,
        resolver=lambda: Names(book or {}),
        tls=tls,
        large=large,
    )
    try:
        yield fetcher
    finally:
        await fetcher.aclose()
