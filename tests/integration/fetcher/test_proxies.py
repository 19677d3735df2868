"""Asking by way of proxies: what reaches whom, what fails how, and what is never done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.clock import SystemClock
from orbweaver.adapters.http import HttpFetcher, Limits
from orbweaver.adapters.http_proxy import Proxies, ProxyingFetcher
from orbweaver.adapters.memory import MemorySecrets, World
from orbweaver.core.exchange import Failure, Response
from orbweaver.core.outcome import Reason
from tests.integration.fetcher.authority import Leaf, authority, server_context
from tests.integration.fetcher.origin import LOOPBACK, Names, answer, request, serving
from tests.integration.fetcher.proxy import ForwardProxy, Way, proxying
from tests.sites.steps import Act

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    from orbweaver.core.address import Network

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
    allowed: tuple[Network, ...] = LOOPBACK,
    proxies_allowed: tuple[Network, ...] = LOOPBACK,
    text: str | None = None,
) -> AsyncIterator[ProxyingFetcher]:
    """Make a fetcher over a list of proxies."""
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
        proxies=Proxies(secrets=MemorySecrets(world), name="pool", clock=clock),
        clock=clock,
    )
    try:
        yield fetcher
    finally:
        await fetcher.aclose()


@pytest.fixture(autouse=True)
def _trusted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fetchers trust the one authority."""
    store = tmp_path_factory.mktemp("trusted") / "trusted.pem"
    store.write_bytes(authority("trusted").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(store))


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Note every address that is dialled."""
    seen: list[tuple[str, int]] = []
    connect = socket.socket.connect

    def noted(sock: socket.socket, address: tuple[str, int]) -> None:
        seen.append((address[0], address[1]))
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    return seen


async def closed_port() -> int:
    """Find a port where nobody listens."""
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


def failed(result: Response | Failure) -> Failure:
    """Expect a failure that shows no credentials."""
    assert isinstance(result, Failure), result
    assert not any(secret in repr(result) for secret in SECRETS)
    return result


# --- what reaches whom ------------------------------------------------------------------------


async def test_plain_request_by_way_of_a_proxy() -> None:
    """The proxy is given its credentials with every request, the target never sees them."""
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
    assert [head.split(" ")[1] for head in proxy.heads] == [url, url]
    assert all(f"Proxy-Authorization: {BASIC}\r\n" in head for head in proxy.heads)
    for asked in origin.asked:
        assert asked.target == "/a%2Fb/%7e?q=%20x;y|z"
        assert b"uthorization" not in asked.head
        assert asked.header("user-agent") == "spider/1"


async def test_tunnel(tmp_path: Path, dialled: list[tuple[str, int]]) -> None:
    """CONNECT carries credentials and our own user agent; what is inside is the target's alone."""
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
async def test_proxy_that_is_spoken_to_over_tls(tmp_path: Path, secure: bool) -> None:
    """An https proxy is verified like any server, and takes plain requests and tunnels alike."""
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
        result = await fetcher.fetch(request(origin.url("/", "good.test")))
    assert isinstance(result, Response), result
    assert len(proxy.heads) == 1


async def test_direct_request_passes_proxies_by() -> None:
    """A crawl that wants no proxy gets none, though the stack has some."""
    async with (
        serving([answer(b"<p>hi", HTML)]) as origin,
        proxying() as proxy,
        fetching(proxy.url()) as fetcher,
    ):
        result = await fetcher.fetch(replace(request(origin.url()), direct=True))
    assert isinstance(result, Response)
    assert proxy.heads == []


# --- what fails how ---------------------------------------------------------------------------


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("way", [Way.AUTHENTICATE, None])
async def test_broken_proxy_gives_way_to_another(
    secure: bool, way: Way | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that refuses us, or is not there, is left alone; the next one asks at once."""
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
async def test_nobody_to_ask_through(
    secure: bool, way: Way | None, dialled: list[tuple[str, int]]
) -> None:
    """Without a usable proxy the URL comes later, as no attempt; it is never asked directly."""
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
async def test_tunnel_that_is_not_made(way: Way, reason: Reason, detail: str) -> None:
    """Whose fault that is nobody knows: it is an attempt, and the next one is another proxy's."""
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


async def test_bad_gateway_of_a_plain_request() -> None:
    """It may be the target's own answer, so it is one; the next request goes another way."""
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
async def test_bad_certificate_behind_a_tunnel(leaf: Leaf, tmp_path: Path) -> None:
    """The target is verified through the tunnel, and its fault is not taken for the proxy's."""
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


async def test_certificate_of_a_proxy_is_verified(tmp_path: Path) -> None:
    """A proxy that is not who it says it is gets no credentials, and is left alone."""
    theirs = server_context(Leaf(issuer="unknown", addresses=("127.0.0.1",)), tmp_path)
    proxy = ForwardProxy()
    async with proxying(proxy, tls=theirs), fetching(proxy.url(CREDENTIALS)) as fetcher:
        failure = failed(await fetcher.fetch(request("http://site.test:8080/")))
    assert (failure.reason, proxy.heads) == (Reason.PROXY, [])
    assert failure.later_s is not None


@pytest.mark.parametrize("text", ["", "{}", "[]", '["http://user:pa%3Ass@"]', '"http://pa:ss@h"'])
async def test_list_that_is_none(
    text: str, dialled: list[tuple[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    """A secret that holds no list stops what is meant for proxies, and is not shown."""
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


# --- what is never done -----------------------------------------------------------------------


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
async def test_inner_target_is_not_told_to_a_proxy(
    url: str, dialled: list[tuple[str, int]]
) -> None:
    """Literals and names are judged here before a proxy hears of them."""
    book = {"inner.test": ["10.0.0.1"], "mixed.test": [PUBLIC, "::1"], "public.test": [PUBLIC]}
    async with proxying() as proxy, fetching(proxy.url(), book=book, allowed=()) as fetcher:
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
async def test_unknown_target_is_not_told_to_a_proxy(error: OSError, reason: Reason) -> None:
    """A name that we cannot resolve cannot be judged."""
    book = {"nowhere.test": error}
    async with proxying() as proxy, fetching(proxy.url(), book=book) as fetcher:
        failure = failed(await fetcher.fetch(request("http://nowhere.test/")))
    assert (failure.reason, proxy.heads) == (reason, [])


async def test_public_target_is_judged_once_a_minute(dialled: list[tuple[str, int]]) -> None:
    """A public name goes to the proxy, which then dials what it likes."""
    names = Names({"public.test": [PUBLIC]})
    proxy = ForwardProxy(book={"public.test": "127.0.0.1"}, way=Way.FORBID)
    async with proxying(proxy), fetching(proxy.url(), allowed=()) as fetcher:
        fetcher._direct._resolver = lambda: names
        for _ in range(3):
            result = await fetcher.fetch(request("http://public.test/"))
            assert isinstance(result, Response)
            assert result.status == 403
    assert names.asked == ["public.test"]
    assert {address for address, _ in dialled} == {"127.0.0.1"}


async def test_proxy_on_an_inner_address_is_not_dialled(dialled: list[tuple[str, int]]) -> None:
    """A proxy's own address is guarded too, unless it is on the allow-list."""
    async with (
        proxying() as proxy,
        fetching(
            proxy.url(), "http://inner.test:3128", "http://169.254.169.254:80", proxies_allowed=()
        ) as fetcher,
    ):
        failure = failed(await fetcher.fetch(request("http://site.test:8080/")))
    assert failure.reason is Reason.PROXY
    assert (proxy.heads, dialled) == ([], [])


async def test_a_fetcher_dials_one_kind_only() -> None:
    """There is no way to send a request that is meant for a proxy directly, nor the reverse."""
    dialler = HttpFetcher(allowed=LOOPBACK, dials_proxies=True)
    with pytest.raises(ValueError, match="proxies"):
        await dialler.fetch(request("http://site.test/"))
