"""Address policy: which addresses and ports may be dialled, and how the allow-list is parsed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.model.address_policy import PORTS, parse_allowed, verdict

LOOPBACK = parse_allowed("127.0.0.0/8,::1")
NAMED = frozenset({(ip_address("127.0.0.1"), 8000), (ip_address("::1"), 8000)})


GLOBAL = """
8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
168.63.129.15 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255
198.20.0.0 223.255.255.255 2001:4860:4860::8888 2606:4700::1111 2a00:1450:4001::200e
::ffff:8.8.8.8 64:ff9b::808:808
"""
# Addresses by their kind.
REFUSED = {
    "this network": "0.0.0.0 0.255.255.255",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd00:ec2::254",
    "shared (carrier-grade NAT)": "100.100.100.200",
    "loopback": "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1",
    "a cloud's platform endpoint": "168.63.129.16",
    "link-local": "169.254.169.254 169.254.170.2 ::ffff:a9fe:a9fe fe80::1 fe80::1%eth0",
    "for protocol assignments": "192.0.0.192 2001:20::1",
    "for documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "6to4 relays": "192.88.99.1",
    "for benchmarks": "198.19.255.255",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1",
    "reserved": "240.0.0.1 255.255.255.255",
    "unspecified": "::",
    "IPv4-compatible": "::7f00:1 ::808:808",
    "not global unicast": "::ffff:0:7f00:1 100::1 5f00::1",
    "NAT64 of an address that is loopback": "64:ff9b::7f00:1",
    "NAT64 of an address that is link-local": "64:ff9b::a9fe:a9fe",
    "NAT64 of local use": "64:ff9b:1::808:808",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "6to4": "2002:7f00:1:: 2002:808:808::1",
    "site-local": "fec0::1",
}


@pytest.mark.parametrize("address", GLOBAL.split())
def test_global_unicast_address_is_dialled(address: str) -> None:
    assert verdict(address, 443) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [(address, kind) for kind, addresses in REFUSED.items() for address in addresses.split()],
)
def test_special_address_is_refused_by_its_kind(address: str, kind: str) -> None:
    assert verdict(address, 80) == f"{address} is {kind}"


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f.1", "127.0.0.1:80", "[::1]"])
def test_invalid_address_is_refused(text: str) -> None:
    assert verdict(text, 80) == f"{text!r} is not an address"


@pytest.mark.parametrize("port", [0, 21, 22, 25, 2000, 6379, 9001, 65_535])
def test_non_web_port_is_refused(port: int) -> None:
    """Public addresses are dialled on web ports only (case 57)."""
    assert verdict("8.8.8.8", port) == f"port {port} is not one of 80, 443, 8000, 8080, 8443"
    assert all(verdict("8.8.8.8", fine) is None for fine in PORTS)


@pytest.mark.parametrize(
    ("address", "port", "any_port", "only_named"),
    [
        ("127.0.0.1", 8000, True, True),
        ("::1", 8000, True, True),
        ("::ffff:127.0.0.1", 8000, True, True),
        ("::ffff:7f00:1", 8000, True, True),
        ("127.0.0.1", 45_678, True, False),
        ("127.0.0.1", 8001, True, False),
        ("127.0.0.1", 80, True, False),
        ("127.0.0.2", 8000, True, False),
        ("127.9.9.9", 22, True, False),
        ("::1", 45_678, True, False),
        ("::1", 80, True, False),
        ("0.0.0.0", 8000, False, False),  # noqa: S104 - an address to refuse
        ("::", 8000, False, False),
        ("::7f00:1", 8000, False, False),
        ("64:ff9b::7f00:1", 80, False, False),
        ("64:ff9b::7f00:1", 8000, False, False),
        ("10.0.0.1", 80, False, False),
        ("10.0.0.1", 8000, False, False),
        ("8.8.8.8", 443, True, True),
        ("8.8.8.8", 8001, False, False),
        ("8.8.8.8", 45_678, False, False),
    ],
)
def test_allow_list_opens_every_port_or_only_named_address_and_port(
    address: str, port: int, *, any_port: bool, only_named: bool
) -> None:
    assert (verdict(address, port, LOOPBACK, None) is None) is any_port
    assert (verdict(address, port, LOOPBACK, NAMED) is None) is only_named


def test_verdict_without_named_addresses_refuses_with_fix() -> None:
    assert verdict("127.0.0.1", 8000, LOOPBACK) == (
        "127.0.0.1 is loopback, and no seed names 127.0.0.1:8000: give http://127.0.0.1:8000/ as a"
        " seed, or deploy with allow_addresses=127.0.0.1:8000"
    )
    assert "give http://[::1]:8000/ as a seed" in str(verdict("::1", 8000, LOOPBACK))


def test_named_address_outside_allow_list_is_refused() -> None:
    assert verdict("127.0.0.1", 8000, parse_allowed("10.0.0.0/8"), NAMED) == "127.0.0.1 is loopback"


@pytest.mark.parametrize("entry", ["127.0.0.1:8000", "127.0.0.0/8:8000-8009", "127.0.0.1/32:8000"])
def test_allow_list_entry_with_ports_needs_no_seed(entry: str) -> None:
    allowed = parse_allowed(entry)
    assert verdict("127.0.0.1", 8000, allowed) is None
    assert verdict("127.0.0.1", 8010, allowed) == "127.0.0.1 is loopback"
    assert verdict("::1", 8000, allowed) == "::1 is loopback"


def test_allow_list_entry_with_ipv6_and_ports_is_parsed() -> None:
    allowed = parse_allowed("[::1]:8000,[fd00::/8]:80-90")
    assert verdict("::1", 8000, allowed) is None
    assert verdict("fd00::5", 85, allowed) is None
    assert verdict("fd00::5", 91, allowed) == "fd00::5 is private"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "10.0.0.5"])
@pytest.mark.parametrize("entry", ["127.0.0.0/8,::1,10.0.0.0/8", "127.0.0.0/8:1-65535"])
def test_ports_of_stack_are_refused_despite_allow_list(address: str, entry: str) -> None:
    allowed = parse_allowed(entry, frozenset({4566}))
    why = verdict(address, 4566, allowed, frozenset({(ip_address(address), 4566)}))
    assert why is not None
    assert why.endswith("port 4566 there is the stack's own: it is never crawled")
    assert verdict("8.8.8.8", 443, parse_allowed("", frozenset({443}))) is None


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("", []),
        (" , ", []),
        ("127.0.0.1", ["127.0.0.1/32"]),
        ("127.0.0.0/8,::1", ["127.0.0.0/8", "::1/128"]),
        (" 10.1.0.0/16 , fd00::/8, ", ["10.1.0.0/16", "fd00::/8"]),
    ],
)
def test_allow_list_is_parsed(text: str, networks: list[str]) -> None:
    assert [str(network) for network in parse_allowed(text).networks] == networks


@pytest.mark.parametrize(
    "text",
    ["localhost", "127.0.0.1,example.org", "10.0.0.1/8", "127.1", "*", "[::1]", "localhost:80"],
)
def test_allow_list_rejects_host_names(text: str) -> None:
    entry = text.rpartition(",")[2]
    with pytest.raises(ValueError, match="is not an address or network") as caught:
        parse_allowed(text)
    assert repr(entry) in str(caught.value)


@pytest.mark.parametrize("entry", ["127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:90-80"])
def test_allow_list_rejects_invalid_ports(entry: str) -> None:
    with pytest.raises(ValueError, match="like 8000 or 8000-8010"):
        parse_allowed(entry)


@given(st.ip_addresses(v=4))
def test_mapped_address_gets_verdict_of_inner_address(inside: IPv4Address) -> None:
    plain = verdict(str(inside), 80)
    mapped = verdict(f"::ffff:{inside}", 80)
    nat64 = verdict(str(IPv6Address((0x64_FF9B << 96) | int(inside))), 80)
    assert (plain is None) is (mapped is None) is (nat64 is None)
    assert verdict(str(IPv6Address((0x2002 << 112) | (int(inside) << 80))), 80) is not None
    assert verdict(f"::{inside}", 80) is not None


@given(st.ip_addresses())
def test_address_not_global_in_python_is_refused(address: IPv4Address | IPv6Address) -> None:
    assert address.is_global or verdict(str(address), 80) is not None
    inside = ip_address(str(address))
    assert not inside.is_multicast or verdict(str(address), 80) is not None
