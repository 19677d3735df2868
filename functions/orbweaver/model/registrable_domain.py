"""Find the site of a host: its registrable domain by the public suffix list."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from orbweaver.model.url import hostname_of

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4_096)
def site_of(hostname: str) -> str:
    """Return the registrable domain of a canonical URL's host.

    A host that is an address, a public suffix (`com`, `github.io`) or a single label is its own
    site.
    """
    name = hostname.removesuffix(".")
    # In canonical URLs a host whose last label is a number is an IPv4 address.
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return name
    return _suffixes().privatesuffix(name) or name


def is_suffix(hostname: str) -> bool:
    """Whether a name is a public suffix or a single label, not a site."""
    name = hostname.removesuffix(".")
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return False
    return _suffixes().privatesuffix(name) is None


def same_site(url: str, other: str) -> bool:
    """Whether two canonical URLs belong to the same site. Scheme and port may differ."""
    one, two = hostname_of(url), hostname_of(other)
    return one == two or site_of(one) == site_of(two)


# The publicsuffixlist package has the list (https://publicsuffix.org/list/) with its private
# section: `a.github.io` and `b.github.io` are two sites. Loading it takes 0.1 s per container, only
# for crawls that need it.
@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
