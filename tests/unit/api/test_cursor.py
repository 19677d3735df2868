"""Pagination cursors are opaque and valid for one listing only."""

from __future__ import annotations

import base64
import json
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.api import requests
from orbweaver.api.requests import CURSOR_CHARS_MAX, CursorError

LISTING = ("pages", "site-1", "failed")
PLACE = ("2026-11-21", 3, "site-1#00ff")
ALPHABET = string.ascii_letters + string.digits + "-_"


def test_cursor_is_read_back_and_fits_into_url() -> None:
    text = requests.encode_cursor(LISTING, PLACE)
    assert requests.decode_cursor(LISTING, text, PLACE) == PLACE
    assert requests.decode_cursor(LISTING, None, PLACE) == PLACE
    assert set(text) <= set(ALPHABET)


@pytest.mark.parametrize(
    "listing", [("pages", "site-2", "failed"), ("pages", "site-1", ""), ("pages",), ()]
)
def test_cursor_of_other_listing_is_refused(listing: tuple[str, ...]) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(listing, requests.encode_cursor(LISTING, PLACE), PLACE)


@pytest.mark.parametrize("text", ["", "A", "AAAA", "=", "é", "a b", "A" * (CURSOR_CHARS_MAX + 1)])
def test_made_up_cursor_is_refused(text: str) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, text, PLACE)


@given(place=st.integers(0, 10_000), sign=st.sampled_from(ALPHABET))
def test_changed_cursor_is_refused(place: int, sign: str) -> None:
    """Unused bits of the base64 text are checked too."""
    text = requests.encode_cursor(LISTING, PLACE)
    place %= len(text)
    changed = text[:place] + sign + text[place + 1 :]
    if changed != text:
        with pytest.raises(CursorError):
            requests.decode_cursor(LISTING, changed, PLACE)


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, text, PLACE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def forged(body: bytes) -> str:
    """Make a cursor with a valid checksum, as a reader of the source code can."""
    raw = requests._sum(LISTING, body) + body
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@given(
    body=st.binary(max_size=60)
    | JSON.map(lambda value: json.dumps(value).encode())
    | JSON.map(lambda value: json.dumps(value, separators=(",", ":")).encode())
    | st.text(max_size=20).map(lambda text: json.dumps([text], separators=(",", ":")).encode())
    | st.sampled_from([b"[" * 700, b"5", b"{}", b"[NaN]", b"[1e999]", b"[" + b"9" * 600 + b"]"])
)
def test_forged_cursor_is_refused_unless_its_types_fit(body: bytes) -> None:
    """A valid checksum is not enough: each part must be an ASCII text or a whole number."""
    for first in ((), ("",), (0,), (0, ""), PLACE):
        with suppress(CursorError):
            place = requests.decode_cursor(LISTING, forged(body), first)
            assert list(map(type, place)) == list(map(type, first))
            assert all(part.isascii() for part in place if isinstance(part, str))
            assert json.loads(body) == list(place)


@given(raw=st.binary(max_size=80))
def test_any_bytes_without_checksum_are_refused(raw: bytes) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, base64.urlsafe_b64encode(raw).decode(), PLACE)
