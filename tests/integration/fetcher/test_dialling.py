"""Addresses that the fetcher connects to, and names that do not resolve."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from aiohttp.resolver import AsyncResolver, ThreadedResolver

from orbweaver.adapters.web import address_guard
from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.url import canonicalize, hostname_of
from tests.corpora import corpus
from tests.integration.fetcher.origin import (
    LOOPBACK,
    SOON_S,
    Names,
    answer,
    fetching,
    request,
    serving,
)

PUBLIC = "93.184.216.34"


@pytest.fixture(autouse=True)
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every address that a socket connects to, and permit only this machine."""
    seen: list[str] = []
    connect = socket.socket.connect

    def noted(sock: socket.socket, address: tuple[str, int]) -> None:
        seen.append(address[0])
        if not address[0].startswith("127."):
            raise ConnectionRefusedError
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    return seen


async def refused(url: str, book: dict[str, Iterable[str] | Exception] | None = None) -> Failure:
    fetcher = HttpFetcher(resolver=lambda: Names(book or {}))
    result = await fetcher.fetch(request(url))
    await fetcher.aclose()
    assert isinstance(result, Failure), result
    assert result.reason is Reason.ADDRESS, result
    return result


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
        "http://127.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.79.129:2000/",
        "http://[fd00:ec2::254]/",
        f"http://{PUBLIC}:22/",
        f"http://{PUBLIC}:9001/",
    ],
)
async def test_literal_address_is_refused_before_dialling(url: str, dialled: list[str]) -> None:
    """A literal address needs no resolver; the socket factory refuses it (cases 53 and 57)."""
    await refused(url)
    assert dialled == []


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["::1"],
        ["169.254.169.254"],
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "::ffff:192.168.0.1"],
        ["2606:4700::1111", PUBLIC, "fe80::1"],
        ["0.0.0.0"],  # noqa: S104 - an address to refuse
        ["not an address"],
    ],
)
async def test_name_with_one_private_address_is_refused(
    answers: list[str], dialled: list[str]
) -> None:
    """A mixture with public addresses is an attack or a mistake (case 54)."""
    failure = await refused("http://name.test/", {"name.test": answers})
    assert dialled == []
    assert "is" in failure.detail


@pytest.mark.parametrize("port", [22, 25, 6379, 9001])
async def test_unusual_port_of_public_name_is_refused(port: int, dialled: list[str]) -> None:
    """The port is not common for HTTP or HTTPS (case 57)."""
    failure = await refused(f"http://name.test:{port}/", {"name.test": [PUBLIC]})
    assert failure.detail == f"port {port} is not one of 80, 443, 8000, 8080, 8443"
    assert dialled == []


async def test_rebound_name_is_refused_at_socket(dialled: list[str]) -> None:
    """Even if a resolver returns the private address (case 54)."""
    address_guard.Permits(LOOPBACK).grant(frozenset())
    link_local = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))
    with pytest.raises(address_guard.AddressRefusedError):
        address_guard.guarded_socket(link_local)
    assert dialled == []


async def test_name_is_checked_at_each_lookup() -> None:
    """A private address at a later lookup is refused (case 54)."""
    book: dict[str, Iterable[str] | Exception] = {"name.test": ["127.0.0.1"]}
    async with serving([answer(b"x")]) as origin, fetching(book=book) as fetcher:
        assert isinstance(await fetcher.fetch(request(origin.url("/", "name.test"))), Response)
        book["name.test"] = ["127.0.0.1", "10.0.0.1"]
        await fetcher.aclose()
        result = await fetcher.fetch(request(origin.url("/", "name.test")))
    assert isinstance(result, Failure)
    assert result.reason is Reason.ADDRESS


async def test_allow_listed_address_is_dialled(dialled: list[str]) -> None:
    """A local stack can crawl loopback servers on any port."""
    book = {"name.test": ["127.0.0.1"]}
    async with serving([answer(b"x")]) as origin, fetching(book=book) as fetcher:
        for host in ("127.0.0.1", "name.test"):
            assert isinstance(await fetcher.fetch(request(origin.url("/", host))), Response)
        assert origin.asked[1].header("Host") == f"name.test:{origin.port}"
    assert dialled == ["127.0.0.1", "127.0.0.1"]


async def test_resolved_addresses_are_cached() -> None:
    names = Names({"name.test": ["127.0.0.1"]})
    page = answer(b"x", "Connection: close")
    async with serving([page]) as origin:
        fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: names)
        for _ in range(3):
            assert isinstance(await fetcher.fetch(request(origin.url("/", "name.test"))), Response)
        await fetcher.aclose()
    assert names.asked == ["name.test"]


async def test_corpus_of_private_addresses_is_refused(dialled: list[str]) -> None:
    """Includes unusual spellings of private addresses (case 53)."""
    listed = corpus("ssrf", "vectors.jsonl")
    inner = {"localhost": ["127.0.0.1"], "localhost.": ["::1"], "foo.localhost": ["127.0.0.1"]}
    vectors = [json.loads(line) for line in listed.read_text().splitlines()]
    assert len(vectors) > 30
    fetcher = HttpFetcher(resolver=lambda: Names(inner))
    for vector in vectors:
        url = canonicalize(vector["input"])
        assert hostname_of(url) == vector["normalised_host"]
        result = await fetcher.fetch(request(url))
        blocked = isinstance(result, Failure) and result.reason is Reason.ADDRESS
        assert blocked is (vector["expected"] == "block"), vector
    await fetcher.aclose()
    assert dialled == []


NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


class NameServer(asyncio.DatagramProtocol):
    """A DNS server that gives every query the same code, or no answer."""

    def __init__(self, code: int | None, address: str | None = None) -> None:
        self._code = code
        self._address = address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        if self._code is None:
            return
        end = data.index(b"\0", 12) + 5
        question, records = data[12:end], b""
        if self._address and question[-4:-2] == b"\0\x01":
            records = b"\xc0\x0c\0\x01\0\x01" + struct.pack(">IH", 60, 4)
            records += socket.inet_aton(self._address)
        counts = struct.pack(">HHHHH", 0x8180 | self._code, 1, bool(records), 0, 0)
        self._transport.sendto(data[:2] + counts + question + records, addr)


@asynccontextmanager
async def asking(
    code: int | None, address: str | None = None, limits: Limits | None = None
) -> AsyncIterator[HttpFetcher]:
    """Open a fetcher that uses its own DNS server on this machine."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(code, address), local_addr=("127.0.0.1", 0)
    )
    port = transport.get_extra_info("sockname")[1]
    fetcher = HttpFetcher(
        allowed=LOOPBACK,
        limits=limits,
        resolver=lambda: AsyncResolver(
            nameservers=[f"127.0.0.1:{port}"], timeout=1, tries=1, domains=[]
        ),
    )
    try:
        yield fetcher
    finally:
        await fetcher.aclose()
        transport.close()


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        (NXDOMAIN, Reason.DNS_UNKNOWN, "Domain name not found"),
        (SERVFAIL, Reason.DNS, "DNS server returned general failure"),
        (REFUSED, Reason.DNS, "DNS server refused query"),
        (0, Reason.DNS_UNKNOWN, "DNS server returned answer with no data"),
    ],
)
async def test_unknown_name_differs_from_failed_lookup(
    code: int, reason: Reason, detail: str
) -> None:
    """An unknown name is permanent, a failed lookup temporary (case 31)."""
    async with asking(code) as fetcher:
        result = await fetcher.fetch(request("http://missing.test/"))
    assert isinstance(result, Failure)
    assert (result.reason, result.detail) == (reason, detail)


async def test_silent_name_server_meets_lookup_limit() -> None:
    """The fetcher's own limit, independent of the resolver's (case 31)."""
    async with asking(None, limits=Limits(resolve_s=0.1)) as fetcher:
        started = time.monotonic()
        result = await fetcher.fetch(request("http://silent.test/"))
        assert time.monotonic() - started < SOON_S
    assert isinstance(result, Failure)
    assert (result.reason, result.detail) == (Reason.DNS, "no DNS answer within 0.1 s")


async def test_resolved_name_is_fetched() -> None:
    async with serving([answer(b"x")]) as origin, asking(0, "127.0.0.1") as fetcher:
        assert isinstance(await fetcher.fetch(request(origin.url("/", "name.test"))), Response)
    async with asking(0, "10.1.2.3") as fetcher:
        result = await fetcher.fetch(request("http://name.test/"))
    assert isinstance(result, Failure)
    assert (result.reason, result.detail) == (Reason.ADDRESS, "10.1.2.3 is private")


@pytest.mark.parametrize("host", ["localhost", "foo.localhost"])
async def test_localhost_is_refused_by_its_address(host: str, dialled: list[str]) -> None:
    fetcher = HttpFetcher()
    result = await fetcher.fetch(request(f"http://{host}/"))
    await fetcher.aclose()
    assert isinstance(result, Failure)
    assert result.reason is Reason.ADDRESS
    assert dialled == []


@pytest.mark.parametrize("host", ["l" * 64 + ".test", "a..test", "." * 3, "h." * 127 + "test"])
@pytest.mark.parametrize("resolver", [AsyncResolver, ThreadedResolver])
async def test_name_invalid_in_dns_is_dns_failure(
    host: str, resolver: type[AsyncResolver | ThreadedResolver]
) -> None:
    fetcher = HttpFetcher(resolver=resolver, limits=Limits(resolve_s=1))
    result = await fetcher.fetch(request(f"http://{host}/", total_s=2))
    await fetcher.aclose()
    assert isinstance(result, Failure)
    assert result.reason in {Reason.DNS, Reason.DNS_UNKNOWN}


async def test_unknown_name_of_system_resolver() -> None:
    """The operating system reports the unknown name (case 31)."""
    codes = {socket.EAI_NONAME: Reason.DNS_UNKNOWN, socket.EAI_AGAIN: Reason.DNS}
    for code, reason in codes.items():
        book = {"name.test": socket.gaierror(code, "said so")}
        async with fetching(book=book) as fetcher:
            result = await fetcher.fetch(request("http://name.test/"))
        assert isinstance(result, Failure)
        assert (result.reason, result.detail) == (reason, "said so")


async def test_second_address_is_tried() -> None:
    book = {"name.test": ["127.0.0.2", "127.0.0.1"]}
    async with serving([answer(b"x")]) as origin, fetching(book=book) as fetcher:
        assert isinstance(await fetcher.fetch(request(origin.url("/", "name.test"))), Response)


async def dials(addresses: list[str], dialled: list[str]) -> list[str]:
    """Fetch from a name with these dead addresses. Return the tried addresses."""
    fetcher = HttpFetcher(resolver=lambda: Names({"name.test": addresses}))
    result = await fetcher.fetch(request("http://name.test/"))
    await fetcher.aclose()
    assert isinstance(result, Failure)
    assert result.reason is Reason.CONNECT
    return dialled


V4 = [f"93.184.216.{number}" for number in range(1, 101)]
V6 = [f"2606:4700::{number:x}" for number in range(1, 101)]


@pytest.mark.parametrize(
    ("addresses", "wanted"),
    [
        (V4, set(V4[:4])),
        (V6, set(V6[:4])),
        (V6 + V4, {*V6[:2], *V4[:2]}),
        (V4 + V6, {*V6[:2], *V4[:2]}),
        ([*V4, V6[0]], {*V4[:3], V6[0]}),
        ([V4[0], *V6], {V4[0], *V6[:3]}),
        (V4[:3], set(V4[:3])),
    ],
    ids=["v4", "v6", "v6 first", "v4 first", "a v6", "a v4", "few"],
)
async def test_at_most_four_of_many_addresses_are_dialled(
    addresses: list[str], wanted: set[str], dialled: list[str]
) -> None:
    assert set(await dials(addresses, dialled)) == wanted
    assert len(dialled) == len(wanted)


async def test_many_silent_addresses_take_one_request_time() -> None:
    with contextlib.ExitStack() as stack:
        holes = [stack.enter_context(socket.socket()) for _ in range(4)]
        addresses = [f"127.0.1.{number}" for number in range(1, 101)]
        port = 0
        for hole, address in zip(holes, addresses, strict=False):
            hole.bind((address, port))
            hole.listen(0)
            port = hole.getsockname()[1]
        for hole in holes:  # The server's queue of one connection is full.
            for _ in range(2):
                taken = stack.enter_context(socket.socket())
                taken.setblocking(False)
                taken.connect_ex(hole.getsockname())
        fetcher = HttpFetcher(allowed=LOOPBACK, resolver=lambda: Names({"holes.test": addresses}))
        try:
            async with asyncio.timeout(10):
                result = await fetcher.fetch(request(f"http://holes.test:{port}/", total_s=0.3))
        finally:
            await fetcher.aclose()
    assert isinstance(result, Failure)
    assert (result.reason, result.detail) == (Reason.TIMEOUT, "not connected within 0.3 s")


async def test_other_loopback_address_than_allowed_is_refused() -> None:
    fetcher = HttpFetcher(allowed=parse_allowed("127.0.0.1:1-65535"))
    result = await fetcher.fetch(request("http://127.0.0.2/"))
    await fetcher.aclose()
    assert isinstance(result, Failure)
    assert result.reason is Reason.ADDRESS


@pytest.mark.parametrize("given", ["::1", "127.0.0.1"])
async def test_local_name_is_dialled_at_both_families(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialled: list[str]
) -> None:
    (tmp_path / "hosts").write_text("::1 shop.test\n127.0.0.1 Shop.test\n10.0.0.1 shop.test\n")
    monkeypatch.setattr(address_guard, "NAMES_FILE", tmp_path / "hosts")
    address_guard.names_here.cache_clear()
    try:
        async with (
            serving([answer(b"x")]) as origin,
            fetching(book={"shop.test": [given]}) as fetcher,
        ):
            result = await fetcher.fetch(request(origin.url("/", "shop.test")))
    finally:
        address_guard.names_here.cache_clear()
    assert isinstance(result, Response), result
    assert dialled == [*dict.fromkeys((given, "127.0.0.1"))]
