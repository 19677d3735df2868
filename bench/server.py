"""The server of a benchmark: all answers in memory, one dictionary look-up per request.

    python -m bench.server SITE [--pages N] [--tls FOLDER]

It serves HTTP/1.1 with keep-alive to well-behaved clients, without delay or compression. Its first
output line is its address. Then it reads commands on standard input: `report` prints the requests
since the last `reset`, `count` their number, each as a line of JSON. It stops when the input ends.
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
from urllib.parse import quote

from bench.sites import HTML, ROBOTS, SITES, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST = "127.0.0.1"
END = b"\r\n\r\n"
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.server")
    parser.add_argument("site", choices=SITES)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--tls", type=Path, help="folder with chain.pem and key.pem")
    asked = parser.parse_args()
    tls = None
    if asked.tls is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(asked.tls / "chain.pem", asked.tls / "key.pem")
    shelf = Shelf(SITES[asked.site].entries(asked.pages))
    asyncio.run(serve(shelf, tls))


if __name__ == "__main__":
    main()
