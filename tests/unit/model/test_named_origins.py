"""Private addresses and ports that a crawl may request because its seeds name them."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest

from orbweaver.model.address_policy import parse_allowed
from orbweaver.model.crawl import Crawl
from orbweaver.model.named_origins import (
    non_public_names,
    non_public_origin_of,
    origins_of,
    parse_names,
    port_of,
    problem_with_own_port,
)
from orbweaver.model.url import canonicalize

CRAWL = Crawl(
    id="c-1",
    name="c",
    started_at_ms=0,
    seeds=("http://127.0.0.1:8000/a", "http://127.0.0.1:8000/b", "https://example.com/"),
    sitemap_urls=("http://localhost:9000/sitemap.xml",),
)
LOOPBACK = {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("reference", "addresses", "port"),
    [
        ("http://127.0.0.1:8000/x?y", {"127.0.0.1"}, 8000),
        ("http://127.1/", {"127.0.0.1"}, 80),
        ("https://2130706433/", {"127.0.0.1"}, 443),
        ("http://0x7f.1:81/", {"127.0.0.1"}, 81),
        ("http://[::1]/", {"::1"}, 80),
        ("https://[::1]:8443/", {"::1"}, 8443),
        ("http://[::ffff:127.0.0.1]:8000/", {"127.0.0.1"}, 8000),
        ("http://localhost:8000/", LOOPBACK, 8000),
        ("http://LOCALHOST./", LOOPBACK, 80),
        ("http://shop.localhost/", LOOPBACK, 80),
        ("http://10.0.0.5/", {"10.0.0.5"}, 80),
        ("http://box/", {"192.168.0.9", "fd00::9"}, 80),
        ("http://BOX:8080/", {"192.168.0.9", "fd00::9"}, 8080),
        ("http://web/", set(), 80),
        ("http://8.8.8.8/", set(), 80),
        ("https://example.com/", set(), 443),
        ("http://localhost.example.com/", set(), 80),
        ("http://notlocalhost/", set(), 80),
    ],
)
def test_named_by_returns_private_addresses_of_origins(
    reference: str, addresses: set[str], port: int
) -> None:
    names = parse_names("192.168.0.9 box\nfd00::9\tbox other # x\n8.8.8.8 web\nnonsense\n::1\n\n")
    url = canonicalize(reference)
    assert port_of(url) == port
    assert non_public_names([url], names) == {(ip_address(one), port) for one in addresses}


def test_named_by_without_hosts_file_ignores_names() -> None:
    assert non_public_names(["http://box:80"]) == frozenset()


def test_origins_of_contains_seeds_and_sitemaps() -> None:
    assert origins_of(CRAWL) == {
        "http://127.0.0.1:8000",
        "https://example.com",
        "http://localhost:9000",
    }


def test_origins_of_keeps_last_of_ten_thousand_seeds() -> None:
    many = tuple(f"https://h{number}.example/" for number in range(9_999))
    crawl = replace(CRAWL, seeds=(*many, "http://127.0.0.1:8001/"), sitemap_urls=())
    assert (ip_address("127.0.0.1"), 8001) in non_public_names(origins_of(crawl))


def test_origins_of_retry_are_anchors_of_first_run() -> None:
    retry = replace(CRAWL, retry_of="c-0", seeds=("http://127.0.0.1:6379/",), sitemap_urls=())
    assert origins_of(retry) == frozenset()
    retry = replace(retry, anchors=("http://127.0.0.1:8000/",))
    assert origins_of(retry) == {"http://127.0.0.1:8000"}


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8000/a", "http://127.0.0.1:8000"),
        ("http://a.localhost/", "http://a.localhost"),
        ("http://8.8.8.8/", None),
        ("https://example.com/", None),
    ],
)
def test_local_of_returns_only_private_origin(url: str, local: str | None) -> None:
    assert non_public_origin_of(url) == local


def test_closed_by_returns_first_origin_at_closed_port() -> None:
    allowed = parse_allowed("127.0.0.0/8,::1", frozenset({9000, 443}))
    assert problem_with_own_port(CRAWL.references, allowed) == (
        "http://localhost:9000: 127.0.0.1 is loopback, and port 9000 there is the stack's own:"
        " it is never crawled"
    )
    assert problem_with_own_port(CRAWL.seeds, allowed) is None
