"""Failures of proxies."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from orbweaver.model.http_exchange import Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Leaf, server_context
from tests.integration.fetcher.origin import answer, request, serving
from tests.integration.fetcher.proxy import ForwardProxy, Way, proxying
from tests.integration.fetcher.through import (
    CREDENTIALS,
    HTML,
    SECRETS,
    closed_port,
    failed,
    fetching,
)
from tests.sites.steps import Act

pytestmark = pytest.mark.usefixtures("trusted")


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("way", [Way.AUTHENTICATE, None])
async def test_broken_proxy_is_replaced_by_another(
    secure: bool, way: Way | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    book = {"good.test": "127.0.0.1"}
    bad = ForwardProxy(way=way or Way.FORWARD, authorization="Basic other", book=book)
    good = ForwardProxy(book=book)
    context = server_context(Leaf(), tmp_path) if secure else None
    async with (
        serving([answer(b"<p>hi", HTML), Act.CLOSE], tls=context) as origin,
        proxying(bad),
        proxying(good),
    ):
        if way is None:
            bad.port = await closed_port()
        async with fetching(bad.url(CREDENTIALS), good.url(CREDENTIALS)) as fetcher:
            url = origin.url("/", "good.test")
            results = [await fetcher.fetch(request(url)) for _ in range(3)]
            alone = [await fetcher.fetch(request(url)) for _ in range(1)]
    assert all(isinstance(result, Response) and result.status == 200 for result in results + alone)
    assert len(bad.heads) <= 1
    assert not any(secret in caplog.text for secret in SECRETS)
    assert not any(secret in repr(vars(line)) for line in caplog.records for secret in SECRETS)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("way", [Way.AUTHENTICATE, None])
async def test_request_without_usable_proxy_is_deferred(
    secure: bool, way: Way | None, dialled: list[tuple[str, int]]
) -> None:
    """A deferral is no attempt, and the request is never sent directly."""
    async with (
        serving([answer(b"<p>hi", HTML)]) as origin,
        proxying(ForwardProxy(way=way or Way.FORWARD, authorization="Basic other")) as proxy,
    ):
        if way is None:
            proxy.port = await closed_port()
        async with fetching(proxy.url(CREDENTIALS)) as fetcher:
            url = origin.url("/", "site.test")
            asking = request(url.replace("http:", "https:") if secure else url)
            first, second = [failed(await fetcher.fetch(asking)) for _ in range(2)]
    assert first.reason is second.reason is Reason.PROXY
    assert first.later_s is not None
    assert 1 <= first.later_s <= 10
    assert origin.connections == 0
    assert {port for _, port in dialled} == {proxy.port}
    assert len(dialled) == 1, "nothing is asked of a proxy in quarantine"


@pytest.mark.parametrize(
    ("way", "reason", "detail"),
    [
        (Way.BAD_GATEWAY, Reason.PROXY, "the proxy answered 502 to CONNECT"),
        (Way.FORBID, Reason.PROXY, "the proxy answered 403 to CONNECT"),
        (Way.CLOSE, Reason.DISCONNECTED, "the connection was closed before the head of the answer"),
        (Way.HANG, Reason.TIMEOUT, "not connected within 0.3 s"),
    ],
)
async def test_failed_tunnel_counts_as_attempt(way: Way, reason: Reason, detail: str) -> None:
    """The cause is unknown; the next attempt uses another proxy."""
    proxies = [ForwardProxy(way=way), ForwardProxy(way=way)]
    async with (
        proxying(proxies[0]),
        proxying(proxies[1]),
        fetching(*(proxy.url(CREDENTIALS) for proxy in proxies)) as fetcher,
    ):
        for _ in range(2):
            asking = request("https://site.test:8443/", total_s=0.3)
            failure = failed(await fetcher.fetch(asking))
            assert failure.reason is reason
            assert failure.detail == detail
            assert failure.later_s is None
    assert sorted(len(proxy.heads) for proxy in proxies) == [1, 1]


async def test_bad_gateway_of_plain_request_is_answer() -> None:
    """The answer can be the target's own; the next request uses another proxy."""
    proxies = [ForwardProxy(way=Way.BAD_GATEWAY), ForwardProxy(way=Way.BAD_GATEWAY)]
    async with (
        proxying(proxies[0]),
        proxying(proxies[1]),
        fetching(*(proxy.url() for proxy in proxies)) as fetcher,
    ):
        for _ in range(2):
            result = await fetcher.fetch(request("http://site.test:8080/"))
            assert isinstance(result, Response)
            assert result.status == 502
    assert sorted(len(proxy.heads) for proxy in proxies) == [1, 1]


@pytest.mark.parametrize(
    "leaf", [Leaf(issuer="unknown"), Leaf(days=(-20, -10)), Leaf(names=("other.test",))]
)
async def test_bad_target_certificate_is_not_blamed_on_proxy(leaf: Leaf, tmp_path: Path) -> None:
    proxy = ForwardProxy(book={"good.test": "127.0.0.1"})
    async with (
        serving([answer(b"<p>hi", HTML)], tls=server_context(leaf, tmp_path)) as origin,
        proxying(proxy),
        fetching(proxy.url(CREDENTIALS)) as fetcher,
    ):
        for _ in range(2):
            failure = failed(await fetcher.fetch(request(origin.url("/", "good.test"))))
            assert (failure.reason, failure.later_s) == (Reason.TLS, None)
    assert len(proxy.heads) == 2
    assert origin.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "leaf",
    [
        Leaf(issuer="unknown", addresses=("127.0.0.1",)),
        Leaf(days=(-20, -10), addresses=("127.0.0.1",)),
        Leaf(addresses=("127.0.0.2",)),
    ],
    ids=["unknown issuer", "expired", "of another address"],
)
async def test_proxy_certificate_is_verified(scheme: str, leaf: Leaf, tmp_path: Path) -> None:
    theirs = server_context(leaf, tmp_path)
    proxy = ForwardProxy()
    async with proxying(proxy, tls=theirs), fetching(proxy.url(CREDENTIALS)) as fetcher:
        failure = failed(await fetcher.fetch(request(f"{scheme}://site.test:8080/")))
    assert (failure.reason, proxy.heads) == (Reason.PROXY, [])
    assert failure.later_s is not None


@pytest.mark.parametrize("text", ["", "{}", "[]", '["http://user:pa%3Ass@"]', '"http://pa:ss@h"'])
async def test_invalid_proxy_list_stops_proxied_requests(
    text: str, dialled: list[tuple[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        serving([answer(b"<p>hi", HTML)]) as origin,
        fetching(text=text) as fetcher,
    ):
        failure = failed(await fetcher.fetch(request(origin.url())))
    assert failure.reason is Reason.PROXY
    assert failure.later_s == pytest.approx(30, abs=1)
    assert dialled == []
    assert [line.message for line in caplog.records] == ["proxies.unreadable"]
    assert not any(secret in repr(vars(caplog.records[0])) for secret in SECRETS)
