"""TLS proxy in front of an S3 implementation that speaks plain HTTP.

Over TLS the client sends a file as on AWS: the body in chunks (`aws-chunked`) with a trailing
checksum. The proxy records requests and forwards them unchanged, or first answers with an error.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from tests.integration.fetcher.authority import Leaf, authority, server_context

HOST = "127.0.0.1"
BYTES_MAX = 64 * 1024 * 1024
HOP_BY_HOP = frozenset({"connection", "content-length", "transfer-encoding", "date", "server"})
FRAMING = frozenset({"content-length", "expect", "transfer-encoding"})
BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as received."""

    method: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> bytes:
        """Return the body decoded from its chunks, with a verified checksum.

        Returns `raw` if the body is not chunked.
        """
        if self.headers.get("content-encoding") != "aws-chunked":
            return self.raw
        body, at = b"", 0
        while True:
            line = self.raw.index(b"\r\n", at)
            size = int(self.raw[at:line].partition(b";")[0], 16)
            at = line + 2
            if not size:
                break
            body += self.raw[at : at + size]
            at += size + 2
        assert len(body) == int(self.headers["x-amz-decoded-content-length"])
        crc = base64.b64encode(zlib.crc32(body).to_bytes(4, "big"))
        assert self.raw[at:] == b"x-amz-checksum-crc32:" + crc + b"\r\n\r\n"
        return body


@dataclass(slots=True, kw_only=True)
class Front:
    """Received requests, and the number of requests to refuse before one is forwarded."""

    url: str
    bundle: Path
    sent: list[Sent] = field(default_factory=list)
    busy: int = 0


@asynccontextmanager
async def fronted(endpoint_url: str, folder: Path) -> AsyncIterator[Front]:
    """Serve TLS in front of an endpoint; the client must trust `bundle`."""
    bundle = folder / "authority.pem"
    bundle.write_bytes(authority("trusted").pem)
    front = Front(url="", bundle=bundle)
    async with aiohttp.ClientSession(auto_decompress=False) as client:

        async def handle(request: web.Request) -> web.Response:
            raw = await request.read()
            headers = {name.lower(): value for name, value in request.headers.items()}
            front.sent.append(Sent(method=request.method, headers=headers, raw=raw))
            if front.busy:
                front.busy -= 1
                return web.Response(status=503, body=BUSY, content_type="application/xml")
            url = URL(endpoint_url + request.raw_path, encoded=True)
            asked = {name: value for name, value in headers.items() if name not in FRAMING}
            async with client.request(
                request.method, url, data=BytesIO(raw), headers=asked
            ) as answer:
                body = await answer.read()
                kept = {k: v for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP}
                if request.method == "HEAD":
                    kept["Content-Length"] = answer.headers["Content-Length"]
                return web.Response(status=answer.status, body=body, headers=kept)

        app = web.Application(client_max_size=BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        context = server_context(Leaf(names=(), addresses=(HOST,)), folder)
        site = web.TCPSite(runner, HOST, 0, ssl_context=context)
        await site.start()
        host, port = runner.addresses[0][:2]
        front.url = f"https://{host}:{port}"
        try:
            yield front
        finally:
            await runner.cleanup()
