"""Digests of claimed URLs, and their file."""

from __future__ import annotations

from array import array
from hashlib import blake2b

import pytest

from orbweaver.frontier import known_claims
from orbweaver.frontier.known_claims import (
    DIGEST_BYTES,
    FILE_BYTES_MAX,
    MAGIC,
    RECENT_BYTES,
    RECENT_MAX,
    KnownClaims,
    decode,
)

SITE = "https://example.com"


def urls(first: int, last: int) -> list[str]:
    return [f"{SITE}/{place}" for place in range(first, last)]


def known(*some: str) -> KnownClaims:
    found = KnownClaims()
    found.add(some)
    return found


def test_added_url_is_known() -> None:
    claims = KnownClaims()
    many = urls(0, 2 * RECENT_MAX + 5)
    claims.add(many)
    claims.add(many)
    assert len(claims) == claims.new == len(many)
    assert all(map(claims.is_known, many))
    assert not any(map(claims.is_known, urls(len(many), len(many) + 100)))
    assert claims.size_bytes == DIGEST_BYTES * 2 * RECENT_MAX + RECENT_BYTES * 5


def test_discarded_url_is_not_known() -> None:
    claims = known(*urls(0, RECENT_MAX), f"{SITE}/new")
    claims.discard([f"{SITE}/7", f"{SITE}/new", f"{SITE}/never"])
    assert not claims.is_known(f"{SITE}/7")
    assert not claims.is_known(f"{SITE}/new")
    assert claims.is_known(f"{SITE}/8")
    assert len(claims) == claims.new == RECENT_MAX - 1


def test_merged_file_adds_claims_and_keeps_new_count() -> None:
    claims = known(*urls(0, 10))
    claims.merge(decode(known(*urls(4, 30)).encode()))
    assert len(claims) == 30
    assert claims.new == 4
    assert all(map(claims.is_known, urls(0, 30)))


def test_stored_claims_are_not_new() -> None:
    claims = known(*urls(0, 10))
    new = claims.new
    claims.encode()
    claims.add(urls(5, 12))
    claims.stored(new)
    assert claims.new == 2
    claims.stored(7)
    assert claims.new == 0


def test_digests_per_host_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_claims, "DIGESTS_MAX", 20)
    claims = known(*urls(0, 30))
    assert len(claims) == claims.new == 20
    other = known(*urls(100, 130))
    claims.merge(decode(other.encode()))
    assert len(claims) == 20
    assert claims.new == 0
    few = known(*urls(0, 15))
    few.merge(decode(known(*urls(100, 110)).encode()))
    assert len(few) == 20
    assert few.new == 15


def test_file_is_magic_and_8_bytes_per_digest() -> None:
    """The lowest byte of a digest is first."""
    body = known(f"{SITE}/").encode()
    assert body == MAGIC + blake2b(f"{SITE}/".encode(), digest_size=8).digest()
    assert len(MAGIC) + 8 * 100_000 == FILE_BYTES_MAX


@pytest.mark.parametrize(
    "body",
    [
        b"",
        MAGIC[:5],
        MAGIC,
        b"other..." + bytes(8),
        MAGIC[:-1] + b"\x02" + bytes(8),
        MAGIC + bytes(7),
        MAGIC + bytes(16),
        MAGIC + b"\x02" + bytes(7) + b"\x01" + bytes(7),
        MAGIC + bytes(FILE_BYTES_MAX),
    ],
    ids=[
        *("empty", "cut", "no digest", "foreign", "newer", "half a digest"),
        *("twice the same", "out of order", "too large"),
    ],
)
def test_invalid_file_is_read_as_empty(body: bytes) -> None:
    assert decode(body) == array("Q")
