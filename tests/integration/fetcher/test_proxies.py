"""Requests by proxies: headers that proxy and target receive, and forbidden combinations."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.adapters.web import proxy_client
from orbweaver.adapters.web.client import HttpFetcher
from orbweaver.model.address_policy import PUBLIC_ONLY, THIS_MACHINE, parse_allowed
from orbweaver.model.http_exchange import Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Leaf, server_context
from tests.integration.fetcher.origin import LOOPBACK, Names, answer, request, serving
from tests.integration.fetcher.proxy import ForwardProxy, Way, proxying
from tests.integration.fetcher.through import (
    BASIC,
    CREDENTIALS,
    HTML,
    PUBLIC,
    failed,
    fetching,
)
from tests.sites.steps import Act

pytestmark = pytest.mark.usefixtures("trusted")


async def test_plain_request_by_proxy() -> None:
    proxy = ForwardProxy(way=Way.AUTHENTICATE, authorization=BASIC, book={"site.test": "127.0.0.1"})
    async with (
        serving([answer(b"<p>hi", HTML), Act.CLOSE]) as origin,
        proxying(proxy),
        fetching(proxy.url(CREDENTIALS)) as fetcher,
    ):
        url = origin.url("/a%2Fb/%7e?q=%20x;y|z", "site.test")
        for _ in range(2):
            result = await fetcher.fetch(request(url))
            assert isinstance(result, Response)
            assert (result.status, result.body) == (200, b"<p>hi")
            assert result.proxy == f"127.0.0.1:{proxy.port}"
    assert [head.split(" ")[1] for head in proxy.heads] == [url, url]
    assert all(f"Proxy-Authorization: {BASIC}\r\n" in head for head in proxy.heads)
    for asked in origin.asked:
        assert asked.target == "/a%2Fb/%7e?q=%20x;y|z"
        assert b"uthorization" not in asked.head
        assert asked.header("user-agent") == "spider/1"


async def test_tunnel(tmp_path: Path, dialled: list[tuple[str, int]]) -> None:
    proxy = ForwardProxy(way=Way.AUTHENTICATE, authorization=BASIC, book={"good.test": "127.0.0.1"})
    async with (
        serving([answer(b"<p>hi", HTML)], tls=server_context(Leaf(), tmp_path)) as origin,
        proxying(proxy),
        fetching(proxy.url(CREDENTIALS)) as fetcher,
    ):
        asking = replace(
            request(origin.url("/x", "good.test")), headers=(("Authorization", "Bearer mine"),)
        )
        for _ in range(2):
            result = await fetcher.fetch(asking)
            assert isinstance(result, Response), result
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT good.test:{origin.port} HTTP/1.1\r\n")
    assert f"Proxy-Authorization: {BASIC}\r\n" in head
    assert "User-Agent: spider/1\r\n" in head
    assert "mine" not in head
    assert [asked.connection for asked in origin.asked] == [1, 1]
    for asked in origin.asked:
        assert asked.header("proxy-authorization") is None
        assert asked.header("authorization") == "Bearer mine"
    assert ("127.0.0.1", proxy.port) in dialled


@pytest.mark.parametrize("secure", [False, True])
async def test_proxy_over_tls(tmp_path: Path, secure: bool) -> None:
    folders = [tmp_path / "proxy", tmp_path / "origin"]
    for folder in folders:
        folder.mkdir()
    theirs = server_context(Leaf(addresses=("127.0.0.1",)), folders[0])
    context = server_context(Leaf(), folders[1]) if secure else None
    proxy = ForwardProxy(book={"good.test": "127.0.0.1"})
    async with (
        serving([answer(b"<p>hi", HTML), Act.CLOSE], tls=context) as origin,
        proxying(proxy, tls=theirs),
        fetching(proxy.url(CREDENTIALS)) as fetcher,
    ):
        result = await fetcher.fetch(request(url := origin.url("/", "good.test")))
    assert isinstance(result, Response), result
    assert (result.status, result.body) == (200, b"<p>hi")
    (head,) = proxy.heads
    asked = f"CONNECT good.test:{origin.port} " if secure else f"GET {url} "
    assert head.startswith(asked)
    assert f"Proxy-Authorization: {BASIC}\r\n" in head
    assert [inside.target for inside in origin.asked] == ["/"]


async def test_direct_request_ignores_proxies() -> None:
    async with (
        serving([answer(b"<p>hi", HTML)]) as origin,
        proxying() as proxy,
        fetching(proxy.url()) as fetcher,
    ):
        result = await fetcher.fetch(replace(request(origin.url()), direct=True))
    assert isinstance(result, Response)
    assert proxy.heads == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/",
        "https://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        f"http://{PUBLIC}:22/",
        f"https://{PUBLIC}:9001/",
        "http://inner.test/",
        "https://mixed.test/",
        "http://public.test:6379/",
    ],
)
async def test_private_target_is_not_sent_to_proxy(
    url: str, dialled: list[tuple[str, int]]
) -> None:
    book = {"inner.test": ["10.0.0.1"], "mixed.test": [PUBLIC, "::1"], "public.test": [PUBLIC]}
    async with (
        proxying() as proxy,
        fetching(proxy.url(), book=book, allowed=PUBLIC_ONLY) as fetcher,
    ):
        for _ in range(2):
            assert failed(await fetcher.fetch(request(url))).reason is Reason.ADDRESS
    assert (proxy.heads, dialled) == ([], [])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(None, "SERVFAIL"), Reason.DNS),
        (socket.gaierror(socket.EAI_NONAME, "not known"), Reason.DNS_UNKNOWN),
    ],
)
async def test_unresolved_target_is_not_sent_to_proxy(error: OSError, reason: Reason) -> None:
    book = {"nowhere.test": error}
    async with proxying() as proxy, fetching(proxy.url(), book=book) as fetcher:
        failure = failed(await fetcher.fetch(request("http://nowhere.test/")))
    assert (failure.reason, proxy.heads) == (reason, [])


async def test_name_unknown_here_is_sent_to_chosen_proxy() -> None:
    """In many networks, only the proxy resolves names of the web; private names stay refused."""
    proxy = ForwardProxy(book={"nowhere.test": "127.0.0.1"})
    async with (
        serving([answer(b"<p>hi", HTML), Act.CLOSE]) as origin,
        proxying(proxy),
        fetching(proxy.url(), book={}, allowed=parse_allowed(THIS_MACHINE)) as fetcher,
    ):
        fetcher._resolves = False
        url = origin.url("/", "nowhere.test")
        result = await fetcher.fetch(request(url, named=frozenset({url.rstrip("/")})))
        for refused in ("http://router/", "http://nowhere.test:6379/"):
            assert failed(await fetcher.fetch(request(refused))).reason is Reason.ADDRESS
    assert isinstance(result, Response), result
    assert result.body == b"<p>hi"
    assert len(proxy.heads) == 1


async def test_public_target_is_checked_once_a_minute(
    dialled: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy then resolves the name itself; the cache is limited."""
    names = Names({"public.test": [PUBLIC], "other.test": [PUBLIC]})
    proxy = ForwardProxy(book={"public.test": "127.0.0.1"}, way=Way.FORBID)
    async with proxying(proxy), fetching(proxy.url(), allowed=PUBLIC_ONLY) as fetcher:
        fetcher._direct._resolver = lambda: names
        for _ in range(3):
            result = await fetcher.fetch(request("http://public.test/"))
            assert isinstance(result, Response)
            assert result.status == 403
        assert names.asked == ["public.test"]
        monkeypatch.setattr(proxy_client, "JUDGED_MAX", 1)
        for name in ("other.test", "public.test"):
            await fetcher.fetch(request(f"http://{name}/"))
        assert names.asked == ["public.test", "other.test", "public.test"]
    assert {address for address, _ in dialled} == {"127.0.0.1"}


async def test_proxy_on_private_address_is_not_dialled(dialled: list[tuple[str, int]]) -> None:
    async with (
        proxying() as proxy,
        fetching(
            proxy.url(),
            "http://inner.test:3128",
            "http://169.254.169.254:80",
            proxies_allowed=PUBLIC_ONLY,
        ) as fetcher,
    ):
        failure = failed(await fetcher.fetch(request("http://site.test:8080/")))
    assert failure.reason is Reason.PROXY
    assert (proxy.heads, dialled) == ([], [])


async def test_fetcher_is_direct_or_proxied_never_both() -> None:
    dialler = HttpFetcher(allowed=LOOPBACK, dials_proxies=True)
    with pytest.raises(ValueError, match="proxies"):
        await dialler.fetch(request("http://site.test/"))
