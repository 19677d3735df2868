"""Cases 58 to 60 and 66: contents of pages."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from itertools import repeat

from tests.sites.hostile.model import Asked, Row, head, html_of, link
from tests.sites.steps import Step

MIB = 1024 * 1024
LINE_MIB = 50
WORD = "Köln 東京"
JAPANESE = "東京"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


def _text(title: str, name: str, meta: str = "") -> str:
    return f"<!doctype html>{meta}<title>{title}</title>{link(f'/charsets/linked-{name}').decode()}"


def _utf8(name: str, meta: str = "") -> bytes:
    return _text(WORD, name, meta).encode()


def _charset(
    name: str, serves: str, body: bytes, kind: str, *, title: str = WORD, charset: str = "utf-8"
) -> Row:
    say = html_of(body, f"Content-Type: {kind}")
    children = (f"/charsets/linked-{name}",)
    return Row(
        58, f"/charsets/{name}", serves, say, title=title, charset=charset, children=children
    )


def _line(asked: Asked) -> Iterable[Step]:
    yield head("Content-Type: text/html", f"Content-Length: {LINE_MIB * MIB}")
    start = b"<!doctype html><title>One line</title>" + link("/shapes/linked-line")
    yield start + b"x" * (MIB - len(start))
    yield from repeat(b"x" * MIB, LINE_MIB - 1)


def _shape(name: str, serves: str, body: bytes, *, after: bool = True) -> Row:
    """Build a page of a link, a difficult part, and a second link."""
    before, behind = f"/shapes/before-{name}", f"/shapes/after-{name}"
    say = html_of(b"<!doctype html>" + link(before) + body + link(behind))
    children, ghosts = ((before, behind), ()) if after else ((before,), (behind,))
    return Row(60, f"/shapes/{name}", serves, say, children=children, ghosts=ghosts)


ROWS = (
    _charset("bom-wins", "a UTF-8 mark, against header and meta",
             codecs.BOM_UTF8 + _utf8("bom-wins", "<meta charset=shift_jis>"),
             "text/html; charset=windows-1251"),
    _charset("header-wins", "a header, against a meta",
             _utf8("header-wins", "<meta charset=euc-jp>"), "text/html; charset=utf-8"),
    _charset("meta", "a meta alone",
             _text("привет", "meta", "<meta charset=windows-1251>").encode("cp1251"),
             "text/html", title="привет", charset="windows-1251"),
    _charset("unknown", "a label that means nothing",
             _utf8("unknown"), "text/html; charset=klingon"),
    _charset("utf-16", "UTF-16 with a mark",
             codecs.BOM_UTF16_LE + _text(WORD, "utf-16").encode("utf-16-le"),
             "text/html", charset="utf-16le"),
    _charset("iso-2022-jp", "ISO-2022-JP", _text(JAPANESE, "iso-2022-jp").encode("iso2022_jp"),
             "text/html; charset=iso-2022-jp", title=JAPANESE, charset="iso-2022-jp"),
    _charset("truncated", "a character that breaks off at the end",
             _utf8("truncated") + "東".encode()[:2], "text/html; charset=utf-8"),
    Row(59, "/types/png", "an image that is said to be a page, with a link in it",
        html_of(PNG + link("/types/ghost"), "Content-Type: text/html"),
        "skipped: content_type", ghosts=("/types/ghost",)),
    Row(59, "/types/pdf", "a PDF without a type, with a link in it",
        html_of(PDF + link("/types/ghost"), "X-Nothing: 1"),
        "skipped: content_type", ghosts=("/types/ghost",)),
    Row(59, "/types/octets", "a page that is said to be application/octet-stream",
        html_of(b"<!doctype html><title>Octets</title>" + link("/types/linked-octets"),
                "Content-Type: application/octet-stream"),
        title="Octets", children=("/types/linked-octets",)),
    Row(59, "/types/untyped", "a page without a type",
        html_of(b"<title>Untyped</title>" + link("/types/linked-untyped"), "X-Nothing: 1"),
        title="Untyped", children=("/types/linked-untyped",)),
    Row(60, "/shapes/line", f"{LINE_MIB} MB in one line", _line, "fetched: truncated",
        title="One line", children=("/shapes/linked-line",)),
    _shape("divs", "200,000 nested divs", b"<div>" * 200_000),
    _shape("attributes", "a tag with 100,000 attributes",
           b"<p " + b" ".join(b"a%d=%d" % (number, number) for number in range(100_000)) + b">"),
    _shape("comment", "a comment that does not end", b"<!-- ", after=False),
    _shape("script", "a script that does not end", b"<script>", after=False),
    _shape("fonts", "formatting that multiplies", b"<p><font x=1><p><font x=2>" * 3_000),
    Row(66, "/openings/openings", "a megabyte of what begins and never ends",
        html_of(b"<!doctype html>" + link("/openings/before")
                + b"<a href='<meta charset=" * 40_000),
        children=("/openings/before",)),
    Row(66, "/openings/spaces", "a megabyte of spaces within a tag, an entity, a header of commas",
        html_of(link("/openings/after-spaces") + b"<a " + b" " * MIB + b"&" * 100_000,
                "Content-Type: text/html;" + ";" * 4_000, "X-Robots-Tag: " + "," * 4_000,
                "Retry-After: " + "1" * 3_000),
        children=("/openings/after-spaces",)),
)  # fmt: skip
