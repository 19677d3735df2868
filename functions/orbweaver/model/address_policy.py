"""Decide which addresses and ports a crawl may connect to: public web servers, or allowed ones.

The decision is about the address that a socket connects to, never about a name. Sources: IANA's
IPv4 and IPv6 Special-Purpose Address Registries; RFC 4291, 6052 and 8215.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from orbweaver.model.value import value_class

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
# Addresses with ports that a user named. A mapped IPv4 address is stored as IPv4.
Named: TypeAlias = AbstractSet[tuple[Address, int]]

NONE_NAMED: Named = frozenset()
PORT_MAX = 65_535

# Only web ports, so that a public name cannot lead to a mail server or a database. The list is the
# Advocate library's.
PORTS = frozenset({80, 443, 8000, 8080, 8443})
# Allow-list of crawlers on one machine: its own servers, if a seed names them.
THIS_MACHINE = "127.0.0.0/8,::1/128"

# Blocks that are not globally reachable, multicast, and the reserved range. `ipaddress.is_global`
# follows IANA's registries too, but differs between Python's patch releases.
_SPECIAL_V4 = {
    IPv4Network(block): what
    for block, what in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared (carrier-grade NAT)"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's platform endpoint"),  # Azure's, in a public block
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "for protocol assignments"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
}
# Tunnels (6to4, Teredo) and NAT64 prefixes for local use are refused, because no public server uses
# them. Only 2000::/3 is public.
_SPECIAL_V6 = {
    IPv6Network(block): what
    for block, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b:1::/48", "NAT64 of local use"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "for protocol assignments"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
}
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


@value_class
class Allowed:
    """Connections that a stack's operator allows in addition to the public web."""

    # Allowed if a user of the crawl named the same address and port (`model/named_origins.py`).
    networks: tuple[Network, ...] = ()
    # Allowed for all crawls (`127.0.0.1:8000`, `10.0.0.0/8:80-90`): network, first and last port.
    always: tuple[tuple[Network, int, int], ...] = ()
    # Ports on which the stack itself listens. They are refused at all addresses that are not
    # public.
    closed: frozenset[int] = frozenset()


PUBLIC_ONLY = Allowed()
# RFC 6761, 6762 and 8375, and ICANN's reservation of 2024.
_PRIVATE_NAMES = (".localhost", ".local", ".internal", ".home.arpa")
# An address or network with its ports: `127.0.0.1:80`, `10.0.0.0/8:80-90`, `[::1]:80`,
# `[fd00::/8]:80`
_OFF_THE_WEB = f"port {{}} is not one of {', '.join(map(str, sorted(PORTS)))}"
_WITH_PORTS = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*)):(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


def verdict(
    address: str, port: int, allowed: Allowed = PUBLIC_ONLY, named: Named | None = NONE_NAMED
) -> str | None:
    """Return why a connection is refused, or None if it is allowed.

    `named` are the addresses and ports that the crawl's user named. None means that all are named,
    for callers without a request.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"{address!r} is not an address"
    dialled = _unmapped(parsed)
    what = _special_kind(dialled)
    if what is not None and port in allowed.closed:
        return f"{address} is {what}, and port {port} there is the stack's own: it is never crawled"
    if _is_open((parsed, dialled), port, allowed):
        return None
    listed = any(form in network for network in allowed.networks for form in (parsed, dialled))
    if listed and (named is None or what is None or (dialled, port) in named):
        return None
    place = f"{format_address(dialled)}:{port}"
    fix = (
        f", and no seed names {place}: give http://{place}/ as a seed,"
        f" or deploy with allow_addresses={place}"
    )
    if what is not None:
        return f"{address} is {what}{fix if listed else ''}"
    return None if port in PORTS else _OFF_THE_WEB.format(port)


def name_verdict(name: str, port: int, *, is_named: bool) -> str | None:
    """Return why a name that only a proxy resolves is refused, or None if it is allowed.

    `is_named`: a seed names this origin.
    """
    if is_named:
        return None
    name = name.lower().rstrip(".")
    if "." not in name or name.endswith(_PRIVATE_NAMES):
        return f"{name} is a name of private networks, and no seed names it"
    return None if port in PORTS else _OFF_THE_WEB.format(port)


def is_public(address: Address) -> bool:
    return _special_kind(_unmapped(address)) is None


def format_address(address: Address) -> str:
    """Return an address in the form of URLs: an IPv6 address has brackets."""
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def parse_allowed(text: str, closed: frozenset[int] = frozenset()) -> Allowed:
    """Parse a comma-separated list of addresses and networks with optional ports.

    `closed` are the ports on which the stack itself listens. Raises ValueError for an invalid list.
    """
    networks: list[Network] = []
    always: list[tuple[Network, int, int]] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        ported = _WITH_PORTS.fullmatch(entry)
        if ported is None:
            networks.append(_network(entry, entry))
            continue
        network = _network(ported[1] if ported[2] is None else ported[2], entry)
        first, last = int(ported[3]), int(ported[4] or ported[3])
        if not 1 <= first <= last <= PORT_MAX:
            raise ValueError(f"{entry!r} has no ports from 1 to {PORT_MAX}, like 8000 or 8000-8010")
        always.append((network, first, last))
    return Allowed(networks=tuple(networks), always=tuple(always), closed=closed)


def _network(text: str, entry: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        message = (
            f"{entry!r} is not an address or network, like 127.0.0.1, 10.0.0.0/8 or"
            f" 127.0.0.1:8000: {error}"
        )
        raise ValueError(message) from error


def _is_open(forms: tuple[Address, Address], port: int, allowed: Allowed) -> bool:
    return any(
        form in network
        for network, first, last in allowed.always
        if first <= port <= last
        for form in forms
    )


def _unmapped(address: Address) -> Address:
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address


def _special_kind(address: Address) -> str | None:
    """Return why an address is not public, or None. A NAT64 address counts as its IPv4 address."""
    if isinstance(address, IPv4Address):
        return next((what for block, what in _SPECIAL_V4.items() if address in block), None)
    if address in _NAT64:
        inside = _special_kind(IPv4Address(int(address) & 0xFFFF_FFFF))
        return None if inside is None else f"NAT64 of an address that is {inside}"
    what = next((what for block, what in _SPECIAL_V6.items() if address in block), None)
    if what is None and address not in _GLOBAL_UNICAST_V6:
        return "not global unicast"
    return what
