"""Non-public servers that may be dialled all the same: those that a crawl is begun with.

A crawl of a site on this machine reaches that site, and nothing else of the machine. Rules:

- An address and a port are named by a seed, or by a sitemap that a person gave: as an address in
  any form (`127.1`, `[::1]`), as `localhost` or a name below it, or as a name in this
  machine's own file of names. Never by a name of DNS: its servers may answer otherwise
  the next time (rebinding).
- What counts is the address that is dialled and its port, not how a URL writes them: a server that
  a seed names as `127.0.0.1:8000` is the same one under `localhost:8000`.
- Of a run that asks again for what failed, the seeds are what pages led to; what the first run was
  begun with counts (`anchors`).
- A seed that is sent to a crawl that runs (POST /seeds, the queue) names its own server for what is
  found from it (`Target.local`), and for nothing else of the crawl.
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
# RFC 6761 section 6.3: what the name and all below it stand for.
LOOPBACK: tuple[Address, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
HTTP_PORT, HTTPS_PORT = 80, 443
NO_ORIGINS: frozenset[str] = frozenset()


def origins_of(crawl: Crawl) -> frozenset[str]:
    """Return the origins that a crawl is begun with."""
    if crawl.retry_of is not None:
        return _origins(crawl.anchors, ())
    return _origins(crawl.seeds, crawl.sitemap_urls)


@lru_cache(maxsize=16)
def _origins(seeds: tuple[str, ...], sitemaps: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(host_of, (*seeds, *sitemaps)))


def named_for(named: frozenset[str], *targets: Target) -> frozenset[str]:
    """Return the origins that are named for some targets of a crawl, which names some itself."""
    own = {target.local for target in targets if target.local is not None}
    return named | own if own else named


def local_of(url: str) -> str | None:
    """Return the origin of a URL that leads inward by itself; None for one that DNS decides on."""
    return host_of(url) if any(not is_public(one) for one in _own_addresses(url)) else None


def named_by(
    origins: Iterable[str], book: Mapping[str, tuple[Address, ...]] | None = None
) -> Named:
    """Return the addresses and ports of origins; `book` is this machine's file of names."""
    return frozenset(
        (address, port_of(origin))
        for origin in origins
        for address in _own_addresses(origin) or (book or {}).get(_name(origin), ())
        if not is_public(address)
    )


def closed_by(urls: Iterable[str], allowed: Allowed) -> str | None:
    """Say why a crawl must not be begun with these: one is a port of the stack itself."""
    for url in urls:
        port = port_of(url)
        for address in _own_addresses(url) if port in allowed.closed else ():
            if not is_public(address):
                why = verdict(str(address), port, allowed)
                return f"{host_of(url)}: {why}"
    return None


def port_of(url: str) -> int:
    """Return the port that a canonical URL leads to."""
    origin = host_of(url)
    given = origin[len(origin.partition("://")[0]) + 3 + len(hostname_of(origin)) + 1 :]
    return int(given) if given else HTTPS_PORT if origin.startswith("https:") else HTTP_PORT


def parse_names(text: str) -> dict[str, tuple[Address, ...]]:
    """Read a machine's file of names (hosts(5)); lines that are none are passed over."""
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
    """Return the addresses of a URL's host that no DNS is asked for; none for other names."""
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
