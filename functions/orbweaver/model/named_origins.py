"""Decide which non-public servers a crawl may connect to: only servers that its user named.

A user names an address and a port by a seed or a sitemap. So a crawl of a site on this machine
cannot reach other servers of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from orbweaver.model.address_policy import Address, Allowed, Named, is_public, verdict
from orbweaver.model.crawl import Crawl
from orbweaver.model.target import Target
from orbweaver.model.url import host_of, hostname_of

LOCALHOST = "localhost"
# RFC 6761 section 6.3: addresses of `localhost` and all names below it.
LOOPBACK: tuple[Address, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
HTTP_PORT, HTTPS_PORT = 80, 443
NO_ORIGINS: frozenset[str] = frozenset()


def origins_of(crawl: Crawl) -> frozenset[str]:
    """Return the origins that a crawl's user named by seeds and sitemaps."""
    # The seeds of a retry are links of an earlier run, so the seeds of the first run count.
    if crawl.retry_of is not None:
        return _origins(crawl.anchors, ())
    return _origins(crawl.seeds, crawl.sitemap_urls)


@lru_cache(maxsize=16)
def _origins(seeds: tuple[str, ...], sitemaps: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(host_of, (*seeds, *sitemaps)))


def named_origins_for(named: frozenset[str], *targets: Target) -> frozenset[str]:
    """Return `named`, the origins that the crawl names, and the origins that `targets` name.

    A seed sent to a running crawl (POST /seeds, the queue) names its server only for links found
    through it (`Target.local`).
    """
    own = {target.local for target in targets if target.local is not None}
    return named | own if own else named


def non_public_origin_of(url: str) -> str | None:
    """Return a URL's origin if its host is `localhost` or a non-public address, else None."""
    return host_of(url) if any(not is_public(one) for one in _own_addresses(url)) else None


def non_public_names(
    origins: Iterable[str], book: Mapping[str, tuple[Address, ...]] | None = None
) -> Named:
    """Return the non-public addresses and ports of origins. `book` is this machine's hosts file."""
    # The address counts, not its form: `127.0.0.1:8000` and `localhost:8000` are one server.
    return frozenset(
        (address, port_of(origin))
        for origin in origins
        for address in addresses_of(origin, book or {})
        if not is_public(address)
    )


def addresses_of(url: str, book: Mapping[str, tuple[Address, ...]]) -> tuple[Address, ...]:
    """Return the addresses of a URL's host that are known without DNS."""
    return _own_addresses(url) or book.get(_name(url), ())


def problem_with_own_port(urls: Iterable[str], allowed: Allowed) -> str | None:
    """Return a message if one of these URLs leads to a port on which the stack itself listens.

    Returns None if the crawl may start with them.
    """
    for url in urls:
        port = port_of(url)
        for address in _own_addresses(url) if port in allowed.closed else ():
            if not is_public(address):
                why = verdict(str(address), port, allowed)
                return f"{host_of(url)}: {why}"
    return None


def port_of(url: str) -> int:
    origin = host_of(url)
    given = origin[len(origin.partition("://")[0]) + 3 + len(hostname_of(origin)) + 1 :]
    return int(given) if given else HTTPS_PORT if origin.startswith("https:") else HTTP_PORT


def parse_names(text: str) -> dict[str, tuple[Address, ...]]:
    """Parse a hosts file (hosts(5)). Invalid lines are ignored."""
    book: dict[str, tuple[Address, ...]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        try:
            address = ip_address(words[0]) if words else None
        except ValueError:
            continue
        if address is not None:
            for name in map(str.lower, words[1:]):
                book[name] = (*book.get(name, ()), address)
    return book


def _own_addresses(url: str) -> tuple[Address, ...]:
    """Return the addresses of a URL's host that are known without DNS: an address or `localhost`.

    DNS names do not count, because DNS may return another address the next time (rebinding).
    """
    name = _name(url)
    if name == LOCALHOST or name.endswith(f".{LOCALHOST}"):
        return LOOPBACK
    if not (name.startswith("[") or name.rpartition(".")[2].isdigit()):
        return ()
    try:
        address = ip_address(name.strip("[]"))
    except ValueError:
        return ()
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address,)


def _name(url: str) -> str:
    return hostname_of(url).rstrip(".")
