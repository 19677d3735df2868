"""Redaction of any text."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing.pii_redaction import KINDS, redact, redact_bytes

PIECES = r"""
jo@example.com jo.b+c@a-b.co.uk mailto:jo@example.org jo&#64;example.com jo%40example.com @ . a b.c
&#106;&#111;&#64;&#101;&#46;&#99;&#111; jo\u0040example.de &commat; logo@2x.png jörg@müller.de 用户
+49_30_123456 (212)_555-0100 030/1234567 tel:030123 Tel.:_ 912_345_678 01_23_45_67_89 2024-01-02
- _ / ( ) + 0 00 1 12 123 1234 12345 0049 , : ; = % & &nbsp; &#48; <a_href="tel:+4930_123456">
<p> </p> <b_title='+1-800-555-0199'> " ' > < @@ wa.me/49170123456 [email] [phone] fax: sms: %20 %2B
"""
WORDS = [word.replace("_", " ") for word in PIECES.split()]
PIECED = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
TEXTS = st.text() | PIECED | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
RUNS = st.text("0123456789 +-./()", max_size=40)
ADDRESS = re.compile(r"[a-z0-9._+-]+@[a-z0-9.-]*[a-z0-9-]\.[a-z]{2,}", re.IGNORECASE)
# Incomplete UTF-8 sequences, and some text.
PARTS = [b"\xff", b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80", b"a", b" ", b"<p>"]
ODD = st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join)

# File endings that no address has.
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".bmp", ".ico")


@given(TEXTS | RUNS)
def test_redaction_is_idempotent(text: str) -> None:
    once = redact(text, KINDS)
    assert redact(once, KINDS) == once


@given(st.binary())
def test_redaction_of_bytes_is_idempotent(raw: bytes) -> None:
    once = redact_bytes(raw, KINDS)
    assert redact_bytes(once, KINDS) == once


@given(ODD, ODD)
def test_invalid_utf_8_is_kept(before: bytes, after: bytes) -> None:
    given = before + b" jo@example.com +49 30 1234567 " + after
    assert redact_bytes(given, KINDS) == before + b" [email] [phone] " + after


@given(TEXTS)
def test_no_address_survives(text: str) -> None:
    shown = unescape(unquote(redact(text, ["email"])))
    left = [found for found in ADDRESS.findall(shown) if not found.lower().endswith(IMAGES)]
    assert not left, shown


@given(st.text("abc ,;!?<>\n\té漢") | st.sampled_from(["", "a@b", "12.30", "2024-01-02 10:30"]))
def test_text_without_matches_is_unchanged(text: str) -> None:
    assert redact(text, KINDS) is text
    assert redact_bytes(text.encode(), KINDS) == text.encode()


# An address after `<` may be a tag, so it is excluded.
@given(st.lists(st.sampled_from([word for word in WORDS if word != "<"]), max_size=12).map("".join))
def test_elements_of_page_are_kept(inner: str) -> None:
    page = f'<div id="x" title="jo@example.com"><p>{inner}</p></div>'.encode()
    assert tags(redact_bytes(page, KINDS)) == tags(page)


def tags(html: bytes) -> list[str | None]:
    return [node.tag for node in LexborHTMLParser(html).css("*")]
