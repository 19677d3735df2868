"""Cursors are opaque, and of one listing alone."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.core import cursor
from orbweaver.core.cursor import CHARS_MAX, CursorError

LISTING = ("pages", "site-1", "failed")
PLACE = ("2026-11-21", 3, "site-1#00ff")
ALPHABET = string.ascii_letters + string.digits + "-_"


def test_a_place_comes_back() -> None:
    """What was written is read, by the same listing, and fits into a URL as it is."""
    text = cursor.encode(LISTING, PLACE)
    assert cursor.decode(LISTING, text) == list(PLACE)
    assert set(text) <= set(ALPHABET)


@pytest.mark.parametrize(
    "listing", [("pages", "site-2", "failed"), ("pages", "site-1", ""), ("pages",), ()]
)
def test_another_listing_does_not_take_it(listing: tuple[str, ...]) -> None:
    """A place in one listing means nothing in another."""
    with pytest.raises(CursorError):
        cursor.decode(listing, cursor.encode(LISTING, PLACE))


@pytest.mark.parametrize("text", ["", "A", "AAAA", "=", "é", "a b", "A" * (CHARS_MAX + 1)])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    """Nothing that was made up is read."""
    with pytest.raises(CursorError):
        cursor.decode(LISTING, text)


@given(place=st.integers(0, 10_000), sign=st.sampled_from(ALPHABET))
def test_a_changed_cursor_is_refused(place: int, sign: str) -> None:
    """No character may be another one, also not in the bits that base64 leaves over."""
    text = cursor.encode(LISTING, PLACE)
    place %= len(text)
    changed = text[:place] + sign + text[place + 1 :]
    if changed != text:
        with pytest.raises(CursorError):
            cursor.decode(LISTING, changed)


@given(text=st.text(max_size=60))
def test_any_text_is_refused_or_read(text: str) -> None:
    """Whatever is sent, nothing else is raised."""
    with pytest.raises(CursorError):
        cursor.decode(LISTING, text)
