"""Properties of known claims of a host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.known_claims import MAGIC, KnownClaims, decode

URLS = st.sets(st.text(max_size=12), max_size=60)


def known(urls: set[str]) -> KnownClaims:
    found = KnownClaims()
    found.add(urls)
    return found


@given(URLS, URLS)
def test_added_urls_are_known_after_encoding(added: set[str], others: set[str]) -> None:
    claims = known(added)
    read = KnownClaims()
    read.merge(decode(claims.encode()))
    for found in (claims, read):
        assert {url for url in added | others if found.is_known(url)} == added
    assert (claims.new, read.new) == (len(added), 0)


@given(URLS, URLS)
def test_merge_knows_union_and_counts_own_as_new(here: set[str], there: set[str]) -> None:
    claims = known(here)
    claims.merge(decode(known(there).encode()))
    assert claims.encode() == known(here | there).encode()
    assert claims.new == len(here - there)


@given(URLS, URLS)
def test_discarded_urls_are_unknown(added: set[str], gone: set[str]) -> None:
    claims = known(added)
    claims.discard(gone)
    assert claims.encode() == known(added - gone).encode()


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_decode_to_sorted_digests(body: bytes, marked: bool) -> None:
    found = decode(MAGIC * marked + body)
    assert list(found) == sorted(set(found))
