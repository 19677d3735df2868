"""Lists of proxies: a file that changes, and lists of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from yarl import URL

from orbweaver.adapters.web.proxy_client import Proxies
from orbweaver.adapters.web.proxy_sources import FILE_FRESH_MS, file_source, source_of
from orbweaver.fetching.proxy_config import ProxyConfig
from orbweaver.fetching.proxy_pool import Proxy, Wait
from tests.memory import ManualClock

NOW_MS = 1_795_251_600_000


async def test_changed_file_is_read_within_a_second(tmp_path: Path) -> None:
    """A missing file keeps the list for a time, because an editor may be replacing it."""
    file, clock = tmp_path / "proxies.txt", ManualClock(NOW_MS)
    file.write_text("http://me:word@a.test:1\n")
    proxies = Proxies(file_source(file), clock)

    async def pick() -> str:
        clock.at_ms += FILE_FRESH_MS
        found = await proxies.pick("h.test")
        return found.name if isinstance(found, Proxy) else "none"

    assert await pick() == "a.test:1"
    file.write_text("socks5h://b.test:2\n")
    assert await pick() == "b.test:2"
    file.unlink()
    assert await pick() == "b.test:2"
    file.write_text("me:word@c.test")
    assert await pick() == "none"
    assert proxies.trouble.endswith(
        "line 1 has no scheme: write http://HOST:PORT, or https, socks5 or socks5h"
    )
    file.write_text("http://c.test:3")
    assert await pick() == "c.test:3"
    assert not isinstance(await proxies.pick("h.test"), Wait)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.test/", "http_proxy"),
        ("https://a.test/", "HTTPS_PROXY"),
        ("https://b.test/", None),
        ("http://localhost:8000/", None),
    ],
)
def test_source_follows_scheme_and_no_proxy(url: str, name: str | None) -> None:
    config = ProxyConfig(http="http://p.test:1", https="http://q.test:2", no_proxy="b.test")
    source = source_of(config, None)(URL(url))
    assert (source and source.name) == name
