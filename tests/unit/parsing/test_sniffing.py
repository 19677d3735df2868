"""Content type of a body, from its header and first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.parsing.sniffing import BINARY, HEAD_BYTES, HTML, TEXT, XHTML, XML, kind_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PAGE = b"<!doctype html><title>x</title>"
XML_PAGE = b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'


def typed(content_type: str | None, **headers: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return named if content_type is None else {"content-type": content_type, **named}


@pytest.mark.parametrize(
    "content_type",
    [None, "", ";", "html", "text", "*/*", "unknown/unknown", "Application/Unknown", BINARY],
)
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", HTML),
        (PAGE, HTML),
        (b"\xef\xbb\xbf" + PAGE, HTML),
        ("\ufeff<html>".encode("utf-16-le"), HTML),
        ("\ufeff<html>".encode("utf-16-be"), HTML),
        (b" \r\n\t<HTML lang=en>", HTML),
        (b"<!-- x --><p>", HTML),
        (b"<a href=/x>y</a>", HTML),
        (b"<p/>", HTML),
        (b"<article>", TEXT),  # not on the list of the MIME Sniffing Standard
        (b"<htmlx>", TEXT),
        (XML_PAGE, XHTML),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "x">', XHTML),
        (b'<?xml version="1.0"?><rss>', XML),
        (b"BMW is a word", TEXT),
        (b"plain words", TEXT),
        ("grüße".encode("latin-1"), TEXT),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
        (PNG, "image/png"),
        (b"GIF89a\x01\0\x01\0", "image/gif"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"PK\x03\x04\x14\0", "application/zip"),
        (b"\x1f\x8b\x08\0", "application/x-gzip"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"wOF2\0\x01", "font/woff"),
        (b"\x7fELF\x02\x01\x01\0", BINARY),
        (b"\x01\x02\x03", BINARY),
    ],
)
def test_kind_without_usable_header_follows_bytes(
    content_type: str | None, head: bytes, kind: str
) -> None:
    """The header is missing, broken, or means "unknown" (case 59)."""
    assert kind_of(typed(content_type), head) == kind


@pytest.mark.parametrize(
    ("headers", "head", "kind"),
    [
        # HTML is trusted, unless the body is clearly binary
        (typed("text/html; charset=x"), b"words", HTML),
        (typed("application/xhtml+xml"), b"<p>", XHTML),
        (typed("text/html"), b"BMW is a word", HTML),
        (typed("text/html"), b"ID3 tags and MZ", HTML),
        (typed("text/html"), PNG, "image/png"),
        (typed("text/html"), b"%PDF-1.7", "application/pdf"),
        (typed("text/html"), b"\xff\xd8\xff", "image/jpeg"),
        (typed("text/html"), bytes(range(32)), BINARY),
        (typed("text/html"), b"<p>\0\x01\x02 with dirt", HTML),
        (typed("text/html"), "<p>grüße".encode("utf-16-le"), HTML),
        (typed("text/html"), b"\x1b$B<l\x1b(B", HTML),  # ISO-2022-JP
        (typed("text/html"), b"\xfe\xff\0\x01", HTML),  # the byte order mark proves text
        # plain text is trusted, unless the body is a whole HTML page
        (typed("text/plain"), PAGE, HTML),
        (typed("text/plain; charset=utf-8"), b"\n<html>", HTML),
        (typed("text/plain"), b"<p>an example", TEXT),
        (typed("text/plain"), PNG, "image/png"),
        (typed("text/plain"), b"\0\x01", BINARY),
        # nosniff is obeyed
        (typed("text/plain", x_content_type_options="NoSniff"), PAGE, TEXT),
        (typed(BINARY, x_content_type_options="nosniff"), PAGE, BINARY),
        (typed(None, x_content_type_options="nosniff"), PAGE, TEXT),
        (typed(None, x_content_type_options="nosniff"), XML_PAGE, XML),
        (typed(BINARY, content_disposition="attachment; filename=x"), PAGE, BINARY),
        (typed("text/plain", content_disposition=" Attachment"), PAGE, TEXT),
        # other Content-Types are trusted
        (typed("application/json"), PAGE, "application/json"),
        (typed("image/svg+xml"), PAGE, "image/svg+xml"),
    ],
)
def test_kind_with_header_follows_header_unless_clearly_wrong(
    headers: dict[str, str], head: bytes, kind: str
) -> None:
    """Only obvious mistakes are corrected (case 59)."""
    assert kind_of(headers, head) == kind


@given(st.binary(max_size=64), st.sampled_from([None, "text/html", "text/plain", BINARY]))
def test_kind_depends_only_on_first_bytes(head: bytes, content_type: str | None) -> None:
    head = head.ljust(HEAD_BYTES, b" ")
    assert kind_of(typed(content_type), head) == kind_of(typed(content_type), head + PNG + PAGE)
