"""Which addresses and ports may be dialled: global unicast on a web port, or allow-listed.

The verdict is on the address a socket would dial, never on a name. Rules:

- Doubt refuses: what is not an address is not dialled.
- An IPv6 address that carries an IPv4 one by which it is reached (mapped, NAT64's well-known
  prefix) is judged by the one inside. Tunnels (6to4, Teredo) and NAT64 prefixes of local use are
  refused whatever is inside: nothing public is served there.
- IPv4: all but the blocks of IANA's special-purpose registry that are not globally reachable,
  multicast and the reserved end. IPv6: 2000::/3 alone, less such blocks in it.
- The ports are those of the web, so that a public name cannot lead to a mail server or a database.
- Allow-listed addresses are free of both rules: a stack on one machine crawls loopback servers.

Sources: IANA's IPv4 and IPv6 Special-Purpose Address Registries (`ipaddress.is_global` follows
them too, but differs between Python's patch releases); RFC 4291, 6052 and 8215; the port list is
the one of the Advocate library.
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Network: TypeAlias = IPv4Network | IPv6Network

PORTS = frozenset({80, 443, 8000, 8080, 8443})

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


def verdict(address: str, port: int, allowed: Iterable[Network] = ()) -> str | None:
    """Say why this address and port must not be dialled; None if they may be."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"{address!r} is not an address"
    dialled = _unmapped(parsed)
    if any(form in network for network in allowed for form in (parsed, dialled)):
        return None
    what = _special(dialled)
    if what is not None:
        return f"{address} is {what}"
    if port not in PORTS:
        return f"port {port} is not one of {', '.join(map(str, sorted(PORTS)))}"
    return None


def parse_allowed(text: str) -> tuple[Network, ...]:
    """Read a comma-separated list of addresses and networks; ValueError names what is neither."""
    return tuple(_network(entry) for part in text.split(",") if (entry := part.strip()))


def _network(entry: str) -> Network:
    try:
        return ip_network(entry)
    except ValueError as error:
        message = f"{entry!r} is not an address or network, like 127.0.0.1 or 10.0.0.0/8: {error}"
        raise ValueError(message) from error


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address


def _special(address: IPv4Address | IPv6Address) -> str | None:
    """Say what an address is if it is not global unicast."""
    if isinstance(address, IPv4Address):
        return next((what for block, what in _SPECIAL_V4.items() if address in block), None)
    if address in _NAT64:
        inside = _special(IPv4Address(int(address) & 0xFFFF_FFFF))
        return None if inside is None else f"NAT64 of an address that is {inside}"
    what = next((what for block, what in _SPECIAL_V6.items() if address in block), None)
    if what is None and address not in _GLOBAL_UNICAST_V6:
        return "not global unicast"
    return what
