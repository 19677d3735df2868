"""Serve the shop over HTTP. Each request is logged, and faults replace replies."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.sites.json_api.shop import Reply, Shop


@dataclass(slots=True)
class ServedShop:
    """A running server: its URL, the log of its requests, and replies to give instead."""

    url: str = ""
    # Method, path with query, and body of each request.
    log: list[tuple[str, str, bytes]] = field(default_factory=list)
    # Replies by path and query. Each is given once, in order.
    faults: defaultdict[str, list[Reply]] = field(default_factory=lambda: defaultdict(list))

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.log]


@contextmanager
def serving(shop: Shop, port: int = 0) -> Iterator[ServedShop]:
    served = ServedShop()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(b"")

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _reply(self, body: bytes) -> None:
            served.log.append((self.command, self.path, body))
            faults = served.faults[self.path]
            path, _, query = self.path.partition("?")
            reply = faults.pop(0) if faults else shop.reply(self.command, path, query, body)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_words: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
