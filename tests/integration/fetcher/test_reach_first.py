"""The check that a server is reachable, before any request."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from orbweaver.adapters.web.reach import trouble_at
from orbweaver.model.address_policy import PUBLIC_ONLY
from orbweaver.model.http_exchange import Failure
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.authority import Leaf, server_context
from tests.integration.fetcher.origin import LOOPBACK, Names, answer, serving

PAGE = (answer(b"<title>A page</title>"),)


async def test_reachable_server_gets_no_request() -> None:
    async with serving(PAGE) as origin:
        assert await trouble_at(origin.url(), LOOPBACK) is None
        names = Names({"shop.test": ["127.0.0.1"]})
        url = origin.url("/", "shop.test")
        assert await trouble_at(url, LOOPBACK, resolver=lambda: names) is None
        await asyncio.wait_for(origin.quiet.wait(), 5)
        assert (origin.connections, origin.asked) == (2, [])


async def test_closed_port_is_reported_in_system_words() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        refused = Failure(reason=Reason.CONNECT, detail="connection refused")
        assert await trouble_at(url, LOOPBACK) == refused


@pytest.mark.parametrize(
    ("found", "reason", "said"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            Reason.DNS_UNKNOWN,
            "the name shop.test is not known",
        ),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            Reason.DNS,
            "the name shop.test cannot be looked up: Temporary failure in name resolution",
        ),
        (["10.1.2.3"], Reason.ADDRESS, "10.1.2.3 is private"),
        ([], Reason.DNS_UNKNOWN, "the name has no address"),
    ],
)
async def test_name_errors_are_distinguished(
    found: list[str] | Exception, reason: Reason, said: str
) -> None:
    names = Names({"shop.test": found})
    trouble = await trouble_at("http://shop.test/", PUBLIC_ONLY, resolver=lambda: names)
    assert trouble == Failure(reason=reason, detail=said)


async def test_private_address_is_not_dialled() -> None:
    async with serving(PAGE) as origin:
        refused = Failure(reason=Reason.ADDRESS, detail="127.0.0.1 is loopback")
        assert await trouble_at(origin.url(), PUBLIC_ONLY) == refused
        assert origin.connections == 0


async def test_untrusted_certificate_is_reported(tmp_path: Path) -> None:
    leaf = Leaf(issuer="itself")
    async with serving(PAGE, tls=server_context(leaf, tmp_path)) as origin:
        names = Names({"good.test": ["127.0.0.1"]})
        url = origin.url("/", "good.test")
        said = await trouble_at(url, LOOPBACK, resolver=lambda: names)
    assert said is not None
    assert said.reason is Reason.TLS
    assert said.detail.startswith("the certificate is not in order: it is self-signed")


async def test_server_without_tls_is_reported() -> None:
    async with serving(PAGE) as origin:
        url = origin.url().replace("http:", "https:")
        said = await trouble_at(url, LOOPBACK, connect_s=0.5)
    assert said is not None
    assert said.detail.isprintable()
