"""Properties of what is known of a host's claims."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.known_claims import MAGIC, KnownClaims, decode

URLS = st.sets(st.text(max_size=12), max_size=60)


def known(urls: set[str]) -> KnownClaims:
    """Claims that are known."""
    found = KnownClaims()
    found.add(urls)
    return found


@given(URLS, URLS)
def test_what_is_added_is_known_and_nothing_else(added: set[str], others: set[str]) -> None:
    """At once, and after it was written down and read."""
    claims = known(added)
    read = KnownClaims()
    read.merge(decode(claims.encode()))
    for found in (claims, read):
        assert {url for url in added | others if found.has(url)} == added
    assert (claims.new, read.new) == (len(added), 0)


@given(URLS, URLS)
def test_two_join_to_what_either_knows(here: set[str], there: set[str]) -> None:
    """And what only this one knew is new."""
    claims = known(here)
    claims.merge(decode(known(there).encode()))
    assert claims.encode() == known(here | there).encode()
    assert claims.new == len(here - there)


@given(URLS, URLS)
def test_what_is_taken_back_is_gone(added: set[str], gone: set[str]) -> None:
    """And nothing else."""
    claims = known(added)
    claims.discard(gone)
    assert claims.encode() == known(added - gone).encode()


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read(body: bytes, marked: bool) -> None:
    """As digests in order, each once, or as none."""
    found = decode(MAGIC * marked + body)
    assert list(found) == sorted(set(found))
