"""Proxies of a container: reading of the proxy list, and log entries."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import cast

import pytest

from orbweaver.adapters.web.client import FetchResult, HttpFetcher
from orbweaver.adapters.web.proxy_client import (
    DOUBTFUL_MS,
    HELD_MS,
    Proxies,
    ProxyingFetcher,
    Trouble,
)
from orbweaver.adapters.web.proxy_sources import FRESH_MS, secret_source
from orbweaver.fetching.proxy_pool import QUARANTINE_MAX_MS, REJECTIONS_MAX, Proxy, Wait
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from tests.memory import ManualClock

NOW_MS = 1_795_251_600_000
HOST = "example.com"


@dataclass
class FakeSecrets:
    """Contains one text or an error to raise, and counts reads."""

    held: str | Exception = field(
        default_factory=lambda: json.dumps(["http://me:w0rd@p.test:3128"])
    )
    read_times: int = 0

    async def read(self, name: str) -> str:
        assert name == "pool"
        self.read_times += 1
        if isinstance(self.held, Exception):
            raise self.held
        return self.held


@dataclass
class Kept:
    """Proxies of a container and their fake secret."""

    secrets: FakeSecrets = field(default_factory=FakeSecrets)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))

    def __post_init__(self) -> None:
        self.proxies = Proxies(secret_source(self.secrets, "pool"), self.clock)

    async def picks(self, after_ms: int = 0) -> bool:
        self.clock.at_ms += after_ms
        return isinstance(await self.proxies.pick(HOST), Proxy)


async def test_list_is_read_every_two_minutes() -> None:
    kept = Kept()
    for _ in range(100):
        assert await kept.picks()
    assert await kept.picks(FRESH_MS - 1)
    assert kept.secrets.read_times == 1
    assert await kept.picks(1)
    assert await kept.picks(-10 * FRESH_MS)
    assert kept.secrets.read_times == 3


async def test_list_unreadable_for_a_moment_stays_in_use() -> None:
    """The list stays in use for 15 minutes and is read every 30 seconds."""
    kept = Kept()
    assert await kept.picks()
    kept.secrets.held = Transient("throttled")
    assert await kept.picks(FRESH_MS)
    assert await kept.picks(DOUBTFUL_MS - 1)
    assert kept.secrets.read_times == 2
    assert await kept.picks(1)
    assert kept.secrets.read_times == 3
    assert not await kept.picks(HELD_MS)


@pytest.mark.parametrize("held", [Permanent("ResourceNotFoundException"), '["me:w0rd@p"]', ""])
async def test_missing_or_invalid_list_stops_proxies(
    held: str | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept()
    before = kept.secrets.held
    assert await kept.picks()
    kept.secrets.held = held
    assert not await kept.picks(FRESH_MS)
    assert await kept.proxies.pick(HOST) == Wait(until_ms=kept.clock.at_ms + DOUBTFUL_MS)
    kept.secrets.held = before
    assert await kept.picks(DOUBTFUL_MS)
    (line,) = caplog.records
    assert (line.message, vars(line)["source"]) == ("proxies.unreadable", "pool")
    assert "w0rd" not in repr(vars(line))


async def test_broken_proxy_is_logged_once_and_list_is_read_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The proxy's password may have changed, so the secret is read again within 30 seconds."""
    caplog.set_level(logging.INFO)
    kept = Kept()
    proxy = await kept.proxies.pick(HOST)
    assert isinstance(proxy, Proxy)
    for _ in range(64):
        kept.proxies.note(proxy, HOST, Trouble.BROKEN, NOW_MS - 1)
    assert not await kept.picks()
    kept.secrets.held = json.dumps(["http://me:n3w@p.test:3128"])
    assert await kept.picks(DOUBTFUL_MS)
    assert kept.secrets.read_times == 2
    (line,) = caplog.records
    assert line.message == "proxy.quarantined"
    assert (vars(line)["proxy"], vars(line)["rest_s"]) == ("p.test:3128", 10)
    assert "w0rd" not in repr(vars(line))


class RejectingProxy:
    """An `HttpFetcher` to a proxy that rejects the password of each request."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, *_: object) -> FetchResult:
        self.asked += 1
        return FetchResult(answer=Response(status=407, headers={}, body=None), sent=True)

    async def check(self, *_: object) -> tuple[str, ...]:
        return ()


async def test_rejected_password_defers_request_and_later_fails_it() -> None:
    kept, proxy = Kept(), RejectingProxy()
    source = secret_source(kept.secrets, "pool")
    dialler = cast("HttpFetcher", proxy)
    fetcher = ProxyingFetcher(
        direct=dialler, dialler=dialler, source_of=lambda _: source, clock=kept.clock
    )
    request = Request(
        url=f"https://{HOST}/", user_agent="x", accept=frozenset(), body_bytes_max=1, total_s=9.0
    )
    failures = list[Failure]()
    while len(failures) < REJECTIONS_MAX:
        found = await fetcher.fetch(request)
        assert isinstance(found, Failure)
        failures.append(found)
        kept.clock.at_ms += round((found.later_s or 0) * 1_000)
    *deferred, last = failures
    assert sum(one.later_s or 0 for one in deferred) == 150
    assert {one.reason for one in deferred} == {Reason.PROXY}
    assert (last.reason, last.later_s) == (Reason.PROXY_REJECTED, None)
    assert "p.test:3128: the proxy answered 407" in last.detail
    assert await fetcher.fetch(request) == last
    assert proxy.asked == REJECTIONS_MAX
    kept.clock.at_ms += QUARANTINE_MAX_MS
    await fetcher.fetch(request)
    assert proxy.asked == REJECTIONS_MAX + 1


async def test_expired_proxy_list_ignores_late_results() -> None:
    kept = Kept()
    proxy = await kept.proxies.pick(HOST)
    assert isinstance(proxy, Proxy)
    kept.secrets.held = Permanent("gone")
    assert not await kept.picks(FRESH_MS)
    kept.proxies.note(proxy, HOST, None, NOW_MS)
    assert not await kept.picks()
