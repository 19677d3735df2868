"""Workers without the proxies of a crawl must not request its URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.app.proxy_guard import ProxyGuard, lacking_proxies
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.fetching.proxy_config import DIRECT, ProxyConfig
from orbweaver.model.crawl import State
from tests.contract import samples

if TYPE_CHECKING:
    from pathlib import Path

A, B = "http://p.test:1", "http://q.test:2"
LISTED = ProxyConfig(urls=(A,))
SEED = "https://example.com/"


@pytest.mark.parametrize(
    ("before", "now", "proxied", "state"),
    [
        (LISTED, DIRECT, True, State.PAUSED),
        (ProxyConfig(https=A), DIRECT, True, State.PAUSED),
        (LISTED, ProxyConfig(http=A), True, State.PAUSED),
        (LISTED, ProxyConfig(urls=(B,)), True, State.RUNNING),
        (ProxyConfig(https=A), ProxyConfig(https=B), True, State.RUNNING),
        (ProxyConfig(https=A, no_proxy="*"), DIRECT, True, State.RUNNING),
        (LISTED, DIRECT, False, State.RUNNING),
        (DIRECT, DIRECT, True, State.RUNNING),
    ],
)
@pytest.mark.parametrize("retried", [False, True])
async def test_crawl_pauses_if_worker_lacks_its_proxies(
    tmp_path: Path,
    before: ProxyConfig,
    now: ProxyConfig,
    state: State,
    *,
    proxied: bool,
    retried: bool,
) -> None:
    ports = StorePorts(store_settings({}), tmp_path)
    at_ms = ports.clock.now_ms()
    first = samples.crawl(seeds=(SEED,), proxied=proxied, started_at_ms=at_ms)
    retry = samples.crawl(
        id="retry", retry_of=first.id, seeds=(SEED,), proxied=proxied, started_at_ms=at_ms
    )
    with ports.ending:
        await ports.crawls.create(first)
        await ports.crawls.create(retry)
        ports.proxies = before
        await ProxyGuard(ports).check([first.id])
        ports.proxies = now
        crawl = retry if retried else first
        await ProxyGuard(ports).check([crawl.id])
        found = await ports.crawls.get(crawl.id)
        assert found is not None
        assert found.state is state
        why = await lacking_proxies(ports, crawl, now)
        assert ("uses proxies, and the workers have none for" in why) is (state is State.PAUSED)
