"""A crawl through a SOCKS5 proxy whose address and password come from the stack's secret."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e import enforced
from tests.e2e.stand import names
from tests.e2e.test_login import stored_in
from tests.integration.fetcher.socks import SocksProxy, socksing
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

SECRET = "crawl/proxies"
USER = (b"us@er", b"pa:ss-of-proxy")


@contextmanager
def socksing_in_background(proxy: SocksProxy) -> Iterator[None]:
    """Run a proxy in a thread, because the commands of the test block its own."""
    ready, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with socksing(proxy):
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_crawl_uses_socks_proxy_of_secret(scheme: str, tmp_path: Path) -> None:
    pages = {"/": graph.page("Home", ["/1", "/2"]), "/1": graph.page("1"), "/2": graph.page("2")}
    proxy = SocksProxy(user=USER)
    # The workers and the site end first, so that the proxy has no open connections at its end.
    with (
        socksing_in_background(proxy),
        graph.serve_in_background(pages) as site,
        enforced.standing(tmp_path, {"proxy_secret": SECRET}) as stand,
    ):
        address = f"127.0.0.1:{proxy.port}"
        listed = json.dumps([f"{scheme}://us%40er:pa%3Ass-of-proxy@{address}"])
        with stand.client("secretsmanager") as secrets:
            secrets.create_secret(Name=SECRET, SecretString=listed)
        crawled = stand.start(f"{site.url}/", "--delay", "0")
        shown = [*stored_in(stand)]
        connections = {record.connection for record in site.log.records()}

    assert names(crawled.urls("fetched", "ok"), site.url) == ["/", "/1", "/2"]
    assert {row["proxy"] for row in crawled.rows} == {address}
    assert len(proxy.asked) == len(connections)
    assert {f"http://{host}:{port}" for host, port in proxy.asked} == {site.url}
    assert not [name for name, body in shown if b"ss-of-proxy" in body]
