"""Webhook receiver on loopback: records posts and gives scripted answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"
NO_CONTENT = 204


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One request; header names are in lower case."""

    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class Receiver:
    """A receiver with its requests; `statuses` are its answers, the last one repeated."""

    url: str
    statuses: list[int]
    posted: list[Posted] = field(default_factory=list)
    # Body of its answers, and delay before them.
    says: bytes = b""
    waits: threading.Event | None = None

    def take(self, posted: Posted) -> int:
        self.posted.append(posted)
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    server = ThreadingHTTPServer((HOST, 0), _handler_of(receivers := []))
    url = f"http://{HOST}:{server.server_port}/hook"
    receivers.append(Receiver(url=url, statuses=list(statuses) or [NO_CONTENT]))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receivers[0]
    finally:
        if (waits := receivers[0].waits) is not None:
            waits.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler_of(receivers: list[Receiver]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver = receivers[0]
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(Posted(target=self.path, headers=headers, body=body))
            if receiver.waits is not None:
                receiver.waits.wait(30)
            self.send_response(status)
            self.send_header("Location", f"{receiver.url}/elsewhere")
            if status != NO_CONTENT:
                self.send_header("Content-Length", str(len(receiver.says)))
            self.end_headers()
            if status != NO_CONTENT:
                self.wfile.write(receiver.says)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
