"""The server of a benchmark: all answers in memory, one dictionary look-up per request.

    python -m bench.server SITE [--pages N] [--tls FOLDER]

It serves HTTP/1.1 with keep-alive to well-behaved clients, without delay or compression. Its first
output line is its address. Then it reads commands on standard input: `report` prints the requests
since the last `reset`, `count` their number, each as a line of JSON. It stops when the input ends.

    python -m bench.server URL PATH...

This measures a server alone: eight connections each request the next page when the previous one has
arrived. The server must be far faster than any client, or else the benchmark measures the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from bench.sites import HTML, ROBOTS, SITES, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST = "127.0.0.1"
END = b"\r\n\r\n"
LENGTH = b"Content-Length: "
CONNECTIONS = 8
# A page fits, so an answer takes one system call.
SEND_BUFFER_BYTES = 1024 * 1024


@dataclass(slots=True)
class Answer:
    """A prepared answer, and how often it was sent."""

    data: bytes
    # True for a page, which all clients must have fetched.
    page: bool
    body_bytes: int
    given: int = 0


class Shelf:
    """All answers by path, with counts of requests."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.answers: dict[bytes, Answer] = {}
        self.missing = _answer(Entry(path="", status=404, content_type="text/plain"))
        for entry in (Entry(path="/robots.txt", content_type="text/plain", body=ROBOTS), *entries):
            self.answers[quote(entry.path, safe="/:@!$&'()*+,;=~").encode()] = _answer(entry)
        self.reset()

    def reset(self) -> None:
        self.requests = 0
        self.first_s = self.last_s = 0.0
        for answer in (self.missing, *self.answers.values()):
            answer.given = 0

    def get(self, target: bytes) -> bytes:
        """Return the answer for a target, which may have a query."""
        self.requests += 1
        now_s = time.monotonic()
        self.first_s = self.first_s or now_s
        self.last_s = now_s
        answer = self.answers.get(target) or self.answers.get(target.partition(b"?")[0])
        answer = answer or self.missing
        answer.given += 1
        return answer.data

    def report(self) -> dict[str, Any]:
        """Return the requests. Times are values of `time.monotonic` on this machine."""
        asked = [answer for answer in self.answers.values() if answer.given]
        return {
            "served": sum(answer.page for answer in self.answers.values()),
            "first_s": self.first_s,
            "last_s": self.last_s,
            "requests": self.requests,
            "missing": self.missing.given,
            "bytes": sum(answer.given * answer.body_bytes for answer in asked),
            "pages": [
                path.decode()
                for path, answer in self.answers.items()
                if answer.given and answer.page
            ],
            "cpu_s": time.process_time(),
        }


def _answer(entry: Entry) -> Answer:
    lines = [f"HTTP/1.1 {entry.status} {HTTPStatus(entry.status).phrase}", "Server: bench"]
    if entry.content_type:
        lines.append(f"Content-Type: {entry.content_type}")
    if entry.location:
        lines.append(f"Location: {entry.location}")
    lines.append(f"Content-Length: {len(entry.body)}")
    head = "\r\n".join(lines).encode() + END
    page = entry.status == HTTPStatus.OK and entry.content_type == HTML
    return Answer(data=head + entry.body, page=page, body_bytes=len(entry.body))


class Connection(asyncio.Protocol):
    """A connection: receives requests and sends prepared answers."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Configure the socket to send answers whole and at once."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """Answer each complete request. Requests must not have bodies."""
        data = self._rest + data if self._rest else data
        while (end := data.find(END)) >= 0:
            target = data[: data.find(b"\r")].split(b" ")[1]
            self._transport.write(self._shelf.get(target))
            data = data[end + len(END) :]
        self._rest = data


async def serve(shelf: Shelf, tls: ssl.SSLContext | None) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(shelf), HOST, 0, ssl=tls, backlog=1024, reuse_address=True
    )
    port = server.sockets[0].getsockname()[1]
    scheme = "http" if tls is None else "https"
    _say({"url": f"{scheme}://{HOST}:{port}"})
    asked = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    while line := (await asked.readline()).decode().strip():
        if line == "reset":
            shelf.reset()
        _say({"requests": shelf.requests} if line == "count" else shelf.report())
    server.close()


def _say(words: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Asker(asyncio.Protocol):
    """A connection that always requests the next page when one has arrived."""

    def __init__(self, host: str, paths: list[str], start: int) -> None:
        self._requests = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for path in paths]
        self._at = start
        self._left = 0
        self.answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Count down the bytes, and send the next request. A head must arrive in one piece."""
        if self._left == 0:
            end = data.index(END) + len(END)
            at = data.index(LENGTH) + len(LENGTH)
            self._left = end + int(data[at : data.index(b"\r", at)])
        self._left -= len(data)
        if self._left == 0:
            self.answers += 1
            self._ask()

    def _ask(self) -> None:
        self._at += 1
        self._transport.write(self._requests[self._at % len(self._requests)])


async def load(url: str, paths: list[str], seconds: float) -> float:
    """Return the requests per second that a server answers, without processing."""
    split = urlsplit(url)
    host, port = split.hostname or "", split.port or 0
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context() if split.scheme == "https" else None
    askers = [Asker(split.netloc, paths, 7 * number) for number in range(CONNECTIONS)]
    transports = [
        (await loop.create_connection(lambda one=one: one, host, port, ssl=tls))[0]
        for one in askers
    ]
    before, started_s = sum(one.answers for one in askers), time.monotonic()
    await asyncio.sleep(seconds)
    rate = (sum(one.answers for one in askers) - before) / (time.monotonic() - started_s)
    for transport in transports:
        transport.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.server")
    parser.add_argument("site", help=f"{', '.join(SITES)}; with paths: the URL of a server")
    parser.add_argument("paths", nargs="*", help="measure how fast the server gives these")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--tls", type=Path, help="folder with chain.pem and key.pem")
    asked = parser.parse_args()
    if asked.paths:
        _say({"requests_per_s": asyncio.run(load(asked.site, asked.paths, asked.seconds))})
        return
    tls = None
    if asked.tls is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(asked.tls / "chain.pem", asked.tls / "key.pem")
    shelf = Shelf(SITES[asked.site].entries(asked.pages))
    asyncio.run(serve(shelf, tls))


if __name__ == "__main__":
    main()
