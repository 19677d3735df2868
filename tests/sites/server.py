"""One loopback HTTP server for every site, with an access log for tests.

A site returns answers (`Site.answer`: a request in, an answer out, no I/O). This module listens,
logs, waits and sends. Rules:

- A request is logged on arrival, with its answer's status, so that the log also has requests whose
  client leaves during a delay. Times are epoch milliseconds that never run backwards.
- Control paths start with `/_site/`, have no links to them and are not logged:
  `/_site/log.json` (`?after=SEQ` for the newer part), `/_site/reset`, and `/_site/NAME.json` for
  each of the site's own `documents`.
- An answer with an `ETag` becomes 304 if the request's `If-None-Match` contains it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

from aiohttp import web

HOST = "127.0.0.1"
CONTROL = "/_site/"
LOG_RECORDS_MAX = 500_000  # A full log drops its oldest records: about 150 MB.
SHUTDOWN_S = 0.1  # After this time, pending answers are dropped.
STATUS_DROPPED = 0  # Status logged for a connection that was closed without an answer.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as a site sees it; `target` is the raw path with its query."""

    method: str
    target: str
    host: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, sent after `delay_s`; `dropped` closes the connection instead."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay_s: float = 0.0
    dropped: bool = False

    def header(self, name: str) -> str | None:
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One logged request; `in_flight` counts unanswered requests at its arrival, with it."""

    seq: int
    at_ms: int
    method: str
    path: str
    status: int
    user_agent: str
    connection: int
    in_flight: int


class AccessLog:
    """Requests in order of arrival."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=LOG_RECORDS_MAX)
        self._seq = 0
        self._epoch_offset_ns = time.time_ns() - time.monotonic_ns()

    def add(self, asked: Asked, *, status: int, connection: int, in_flight: int) -> None:
        self._seq += 1
        self._records.append(
            Record(
                seq=self._seq,
                at_ms=(self._epoch_offset_ns + time.monotonic_ns()) // 1_000_000,
                method=asked.method,
                path=asked.target,
                status=status,
                user_agent=asked.headers.get("User-Agent", ""),
                connection=connection,
                in_flight=in_flight,
            )
        )

    def records(self, *, after: int = 0) -> tuple[Record, ...]:
        return tuple(record for record in list(self._records) if record.seq > after)

    def paths(self) -> list[str]:
        return [record.path for record in list(self._records)]

    def clear(self) -> None:
        """Delete all records; `seq` continues."""
        self._records.clear()


class Site(Protocol):
    """Answers of a site; its server sets `url`, without a final slash."""

    url: str
    log: AccessLog

    def answer(self, asked: Asked) -> Answer: ...

    def reset(self) -> None:
        """Reset the state that requests changed (the server clears the log)."""

    def documents(self) -> Mapping[str, Callable[[], object]]:
        """Return the site's own control documents by name, as functions that return JSON values."""


SiteT = TypeVar("SiteT", bound=Site)
ServedT = TypeVar("ServedT")


class _Door:
    """Translates aiohttp requests and answers for a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._in_flight = 0
        self._connections: WeakKeyDictionary[asyncio.BaseTransport, int] = WeakKeyDictionary()
        self._connections_seen = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request: control paths here, all others by the site."""
        asked = Asked(
            method=request.method,
            target=request.raw_path,
            host=request.host,
            headers=request.headers,
            body=await request.read() if request.method == "POST" else b"",
        )
        if asked.target.startswith(CONTROL):
            return self._control(asked)
        answer = _unchanged_or(self._site.answer(asked), asked)
        self._in_flight += 1
        try:
            self._site.log.add(
                asked,
                status=STATUS_DROPPED if answer.dropped else answer.status,
                connection=self._connection(request.transport),
                in_flight=self._in_flight,
            )
            if answer.delay_s > 0:
                await asyncio.sleep(answer.delay_s)
        finally:
            self._in_flight -= 1
        if answer.dropped and request.transport is not None:
            request.transport.abort()
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    def _connection(self, transport: asyncio.BaseTransport | None) -> int:
        if transport is None:  # The client has left.
            return 0
        if transport not in self._connections:
            self._connections_seen += 1
            self._connections[transport] = self._connections_seen
        return self._connections[transport]

    def _control(self, asked: Asked) -> web.Response:
        split = urlsplit(asked.target)
        name = split.path.removeprefix(CONTROL).removesuffix(".json")
        if name == "log":
            after = int(parse_qs(split.query).get("after", ["0"])[0])
            return _json([dataclasses.asdict(r) for r in self._site.log.records(after=after)])
        if name == "reset":
            reset(self._site)
            return _json({"reset": True})
        document = self._site.documents().get(name)
        return _json(document()) if document else web.Response(status=404)


def reset(site: Site) -> None:
    site.reset()
    site.log.clear()


def _json(value: object) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


def _unchanged_or(answer: Answer, asked: Asked) -> Answer:
    """Return 304 if the client has the answer's `ETag` (RFC 9110, 13.1.2)."""
    etag, known = answer.header("ETag"), asked.headers.get("If-None-Match")
    if etag is None or known is None or answer.status != web.HTTPOk.status_code:
        return answer
    if known.strip() != "*" and etag not in (tag.strip() for tag in known.split(",")):
        return answer
    return Answer(status=304, headers=(("ETag", etag),), delay_s=answer.delay_s)


@contextlib.asynccontextmanager
async def listening(site: SiteT, port: int = 0) -> AsyncIterator[SiteT]:
    """Serve a site in the running event loop and set its `url`; port 0 takes a free one."""
    server = web.Server(_Door(site).handle, access_log=None, keepalive_timeout=60)
    runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port, backlog=1024).start()
        site.url = f"http://{HOST}:{runner.addresses[0][1]}"
        yield site
    finally:
        await runner.cleanup()


def background(site: SiteT, port: int = 0) -> AbstractContextManager[SiteT]:
    """Serve a site from a thread with its own loop, for blocking tests."""
    return in_thread(listening(site, port))


@contextlib.contextmanager
def in_thread(served: AbstractAsyncContextManager[ServedT]) -> Iterator[ServedT]:
    """Enter and leave an asynchronous context in the event loop of a new thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="site", daemon=True)
    thread.start()
    try:
        entered = asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result()
        try:
            yield entered
        finally:
            asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
