"""Fetchers with proxies for tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.adapters.web.proxy_client import ProxyingFetcher
from orbweaver.adapters.web.proxy_sources import source_of
from orbweaver.fetching.proxy_config import ProxyConfig
from orbweaver.model.address_policy import Allowed
from orbweaver.model.http_exchange import Failure, Response
from tests.integration.fetcher.origin import LOOPBACK, Names
from tests.memory import MemorySecrets, World

HTML = "Content-Type: text/html"
CREDENTIALS = "us%40er:pa%3Ass"
BASIC = "Basic " + b64encode(b"us@er:pa:ss").decode()
SECRETS = ("pa:ss", "pa%3Ass", BASIC, BASIC.removeprefix("Basic "))
PUBLIC = "93.184.216.34"
NAMES = {"site.test": ["127.0.0.1"], "good.test": ["127.0.0.1"]}


@contextlib.asynccontextmanager
async def fetching(
    *urls: str,
    book: Mapping[str, Iterable[str] | Exception] = NAMES,
    allowed: Allowed = LOOPBACK,
    proxies_allowed: Allowed = LOOPBACK,
    text: str | None = None,
) -> AsyncIterator[ProxyingFetcher]:
    world = World(secrets={"pool": json.dumps(urls) if text is None else text})
    limits = Limits(connect_s=2)
    clock = SystemClock()
    fetcher = ProxyingFetcher(
        direct=HttpFetcher(allowed=allowed, resolver=lambda: Names(book), limits=limits),
        dialler=HttpFetcher(
            allowed=proxies_allowed,
            resolver=lambda: Names({}),
            limits=limits,
            dials_proxies=True,
        ),
        source_of=source_of(ProxyConfig(secret="pool"), MemorySecrets(world)),
        clock=clock,
    )
    try:
        yield fetcher
    finally:
        await fetcher.aclose()


async def closed_port() -> int:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


def failed(result: Response | Failure) -> Failure:
    """Expect a failure without credentials in its text."""
    assert isinstance(result, Failure), result
    assert not any(secret in repr(result) for secret in SECRETS)
    return result
