"""Sites: the registrable domain that a host belongs to, by the public suffix list.

The list (https://publicsuffix.org/list/, with its private section: `a.github.io` and
`b.github.io` are two sites) comes bundled with the publicsuffixlist package; nothing is downloaded.
It takes 0.1 s to read, which only crawls that ask for it pay, once a container.

A host that is an address, a public suffix itself (`com`, `github.io`) or a single label
(`localhost`) is a site of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from orbweaver.model.url import hostname_of

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4_096)
def site_of(hostname: str) -> str:
    """Return the registrable domain of a canonical URL's host, or the host where there is none."""
    name = hostname.removesuffix(".")
    # In canonical URLs a host whose last label is a number is an IPv4 address.
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return name
    return _suffixes().privatesuffix(name) or name


def is_suffix(hostname: str) -> bool:
    """Whether a name is a public suffix, or a single label: no site of its own."""
    name = hostname.removesuffix(".")
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return False
    return _suffixes().privatesuffix(name) is None


def same_site(url: str, other: str) -> bool:
    """Whether the hosts of two canonical URLs belong to one site, whatever scheme and port."""
    one, two = hostname_of(url), hostname_of(other)
    return one == two or site_of(one) == site_of(two)


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
