"""Speed of the server alone: requests sent as fast as they are answered, without processing.

    python -m bench.load URL PATH…

Eight connections each request the next page when the previous one has arrived. The server must be
far faster than any client, or else the benchmark measures the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import time
from urllib.parse import urlsplit

CONNECTIONS = 8
LENGTH = b"Content-Length: "


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
            end = data.index(b"\r\n\r\n") + 4
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
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("url")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seconds", type=float, default=2.0)
    asked = parser.parse_args()
    rate = asyncio.run(load(asked.url, asked.paths, asked.seconds))
    sys.stdout.write(json.dumps({"requests_per_s": rate}) + "\n")


if __name__ == "__main__":
    main()
