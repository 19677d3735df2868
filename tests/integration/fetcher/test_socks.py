"""Requests by SOCKS5 proxies: who resolves names, credentials, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.model.address_policy import PUBLIC_ONLY, THIS_MACHINE, parse_allowed
from orbweaver.model.http_exchange import Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Leaf, server_context
from tests.integration.fetcher.origin import LOOPBACK, answer, request, serving
from tests.integration.fetcher.socks import SocksProxy, socksing
from tests.integration.fetcher.through import (
    BASIC,
    CREDENTIALS,
    HTML,
    PUBLIC,
    closed_port,
    failed,
    fetching,
)

pytestmark = pytest.mark.usefixtures("trusted")
# Allows servers of this machine that a seed names, as crawls in a store.
SEEDS_ONLY = parse_allowed(THIS_MACHINE)
USER = (b"us@er", b"pa:ss")


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(("scheme", "asked"), [("socks5h", "good.test"), ("socks5", "127.0.0.1")])
async def test_page_by_socks(scheme: str, asked: str, secure: bool, tmp_path: Path) -> None:
    """`socks5h` gets names, `socks5` gets checked addresses; the target gets no credentials."""
    context = server_context(Leaf(), tmp_path) if secure else None
    proxy = SocksProxy(user=USER, book={"good.test": "127.0.0.1"})
    book: dict[str, list[str]] = {} if scheme == "socks5h" else {"good.test": ["127.0.0.1"]}
    allowed = SEEDS_ONLY if scheme == "socks5h" else LOOPBACK
    at = f"{scheme}://{CREDENTIALS}@127.0.0.1"
    async with (
        serving([answer(b"<p>hi", HTML)], tls=context) as origin,
        socksing(proxy),
        fetching(f"{at}:{proxy.port}", book=book, allowed=allowed) as fetcher,
    ):
        url = origin.url("/a?b", "good.test")
        named = frozenset({url.removesuffix("/a?b")})
        for _ in range(2):
            result = await fetcher.fetch(request(url, named=named))
            assert isinstance(result, Response), result
            assert (result.status, result.body) == (200, b"<p>hi")
            assert result.proxy == f"127.0.0.1:{proxy.port}"
    assert proxy.asked == [(asked, origin.port)]
    assert [one.target for one in origin.asked] == ["/a?b", "/a?b"]
    assert all(BASIC.encode() not in one.head for one in origin.asked)
    assert all(one.header("proxy-authorization") is None for one in origin.asked)


async def test_other_address_of_target_is_tried() -> None:
    """A name like `localhost` has an IPv6 address, at which its server may not listen."""
    async with (
        serving([answer(b"<p>hi", HTML)]) as origin,
        socksing(SocksProxy(refused=("::1",))) as proxy,
        fetching(
            f"socks5://127.0.0.1:{proxy.port}", book={"good.test": ["::1", "127.0.0.1"]}
        ) as fetcher,
    ):
        result = await fetcher.fetch(request(origin.url("/", "good.test")))
    assert isinstance(result, Response), result
    assert [host for host, _ in proxy.asked] == ["::1", "127.0.0.1"]


@pytest.mark.parametrize(
    ("proxy", "credentials", "said"),
    [
        (SocksProxy(user=USER), "us%40er:wrong@", "rejected the user or password"),
        (SocksProxy(user=USER), "", "needs a user and password, and none is given"),
        (SocksProxy(greeting=b"H"), "", "does not speak SOCKS5"),
        (None, "", "connection refused"),
    ],
)
async def test_broken_socks_proxy_is_named(
    proxy: SocksProxy | None, credentials: str, said: str
) -> None:
    async with socksing(proxy) as running:
        port = running.port if proxy else await closed_port()
        url = f"socks5h://{credentials}127.0.0.1:{port}"
        async with fetching(url) as fetcher:
            failure = failed(await fetcher.fetch(request("http://site.test/")))
    assert failure.reason is Reason.PROXY
    assert failure.later_s is not None
    assert said in failure.detail
    assert f"127.0.0.1:{port}" in failure.detail


@pytest.mark.parametrize(
    ("reply", "said"), [(2, "a rule of the proxy forbids it"), (4, "host unreachable")]
)
async def test_unreached_target_counts_as_attempt(reply: int, said: str) -> None:
    async with (
        socksing(SocksProxy(reply=reply)) as proxy,
        fetching(f"socks5h://127.0.0.1:{proxy.port}") as fetcher,
    ):
        failure = failed(await fetcher.fetch(request("https://site.test/")))
    assert (failure.reason, failure.later_s) == (Reason.PROXY, None)
    assert failure.detail == f"the proxy did not connect to the host: {said}"


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/",
        "https://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost/",
        f"http://{PUBLIC}:22/",
        "http://router/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://public.test:6379/",
    ],
)
async def test_private_target_is_not_sent_to_socks_proxy(scheme: str, url: str) -> None:
    names = ("router", "printer.local", "metadata.google.internal", "localhost")
    book = {name: ["10.0.0.1"] for name in names} | {"public.test": [PUBLIC]}
    async with (
        socksing() as proxy,
        fetching(f"{scheme}://127.0.0.1:{proxy.port}", book=book, allowed=PUBLIC_ONLY) as fetcher,
    ):
        for named in (frozenset[str](), frozenset({url.rstrip("/")})):
            failure = failed(await fetcher.fetch(request(url, named=named)))
            assert failure.reason is Reason.ADDRESS
    assert proxy.connections == 0
