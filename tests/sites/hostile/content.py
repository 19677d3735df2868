"""Cases 58 to 60 and 66: contents of pages."""

from __future__ import annotations

import codecs
from itertools import repeat
from typing import TYPE_CHECKING

from tests.sites.hostile.model import Asked, Row, answer, head, html_of, link

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.sites.steps import Step

MIB = 1024 * 1024
LINE_MIB = 50
WORD = "Köln 東京"
JAPANESE = "東京"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


def _text(title: str, child: str, *, meta: str = "") -> str:
    return f"<!doctype html>{meta}<title>{title}</title>{link(child).decode()}"


def _charset(
    name: str, serves: str, body: bytes, content_type: str, *, title: str, charset: str
) -> Row:
    return Row(
        case=58,
        path=f"/charsets/{name}",
        serves=serves,
        say=html_of(body, f"Content-Type: {content_type}"),
        title=title,
        charset=charset,
        children=(f"/charsets/linked-{name}",),
    )


def _utf8(name: str, meta: str = "") -> bytes:
    return _text(WORD, f"/charsets/linked-{name}", meta=meta).encode()


def _line(asked: Asked) -> Iterable[Step]:
    yield head("Content-Type: text/html", f"Content-Length: {LINE_MIB * MIB}")
    start = b"<!doctype html><title>One line</title>" + link("/shapes/linked-line")
    yield start + b"x" * (MIB - len(start))
    yield from repeat(b"x" * MIB, LINE_MIB - 1)


def _shape(name: str, serves: str, body: bytes, *, after: bool = True) -> Row:
    """Build a page of a link, a difficult part, and a second link."""
    children = (f"/shapes/before-{name}", *((f"/shapes/after-{name}",) if after else ()))
    last = link(f"/shapes/after-{name}")
    return Row(
        case=60,
        path=f"/shapes/{name}",
        serves=serves,
        say=html_of(b"<!doctype html>" + link(children[0]) + body + last),
        children=children,
        ghosts=() if after else (f"/shapes/after-{name}",),
    )


ROWS = (
    _charset(
        "bom-wins",
        "a UTF-8 mark, against header and meta",
        codecs.BOM_UTF8 + _utf8("bom-wins", "<meta charset=shift_jis>"),
        "text/html; charset=windows-1251",
        title=WORD,
        charset="utf-8",
    ),
    _charset(
        "header-wins",
        "a header, against a meta",
        _utf8("header-wins", "<meta charset=euc-jp>"),
        "text/html; charset=utf-8",
        title=WORD,
        charset="utf-8",
    ),
    _charset(
        "meta",
        "a meta alone",
        _text("привет", "/charsets/linked-meta", meta="<meta charset=windows-1251>").encode(
            "cp1251"
        ),
        "text/html",
        title="привет",
        charset="windows-1251",
    ),
    _charset(
        "unknown",
        "a label that means nothing",
        _utf8("unknown"),
        "text/html; charset=klingon",
        title=WORD,
        charset="utf-8",
    ),
    _charset(
        "utf-16",
        "UTF-16 with a mark",
        codecs.BOM_UTF16_LE + _text(WORD, "/charsets/linked-utf-16").encode("utf-16-le"),
        "text/html",
        title=WORD,
        charset="utf-16le",
    ),
    _charset(
        "iso-2022-jp",
        "ISO-2022-JP",
        _text(JAPANESE, "/charsets/linked-iso-2022-jp").encode("iso2022_jp"),
        "text/html; charset=iso-2022-jp",
        title=JAPANESE,
        charset="iso-2022-jp",
    ),
    _charset(
        "truncated",
        "a character that breaks off at the end",
        _utf8("truncated") + "東".encode()[:2],
        "text/html; charset=utf-8",
        title=WORD,
        charset="utf-8",
    ),
    Row(
        case=59,
        path="/types/png",
        serves="an image that is said to be a page, with a link in it",
        say=html_of(PNG + link("/types/ghost"), "Content-Type: text/html"),
        outcome="skipped",
        reason="content_type",
        ghosts=("/types/ghost",),
    ),
    Row(
        case=59,
        path="/types/pdf",
        serves="a PDF without a type, with a link in it",
        say=html_of(PDF + link("/types/ghost"), "X-Nothing: 1"),
        outcome="skipped",
        reason="content_type",
        ghosts=("/types/ghost",),
    ),
    Row(
        case=59,
        path="/types/octets",
        serves="a page that is said to be application/octet-stream",
        say=html_of(
            b"<!doctype html><title>Octets</title>" + link("/types/linked-octets"),
            "Content-Type: application/octet-stream",
        ),
        title="Octets",
        children=("/types/linked-octets",),
    ),
    Row(
        case=59,
        path="/types/untyped",
        serves="a page without a type",
        say=html_of(b"<title>Untyped</title>" + link("/types/linked-untyped"), "X-Nothing: 1"),
        title="Untyped",
        children=("/types/linked-untyped",),
    ),
    Row(
        case=60,
        path="/shapes/line",
        serves=f"{LINE_MIB} MB in one line",
        say=_line,
        reason="truncated",
        title="One line",
        children=("/shapes/linked-line",),
    ),
    _shape("divs", "200,000 nested divs", b"<div>" * 200_000),
    _shape(
        "attributes",
        "a tag with 100,000 attributes",
        b"<p " + b" ".join(b"a%d=%d" % (number, number) for number in range(100_000)) + b">",
    ),
    _shape("comment", "a comment that does not end", b"<!-- ", after=False),
    _shape("script", "a script that does not end", b"<script>", after=False),
    _shape("fonts", "formatting that multiplies", b"<p><font x=1><p><font x=2>" * 3_000),
    Row(
        case=66,
        path="/openings/openings",
        serves="a megabyte of what begins and never ends",
        say=html_of(
            b"<!doctype html>" + link("/openings/before") + b"<a href='<meta charset=" * 40_000
        ),
        children=("/openings/before",),
    ),
    Row(
        case=66,
        path="/openings/spaces",
        serves="a megabyte of spaces within a tag, an entity, a header of commas",
        say=(
            answer(
                link("/openings/after-spaces") + b"<a " + b" " * MIB + b"&" * 100_000,
                "Content-Type: text/html;" + ";" * 4_000,
                "X-Robots-Tag: " + "," * 4_000,
                "Retry-After: " + "1" * 3_000,
            ),
        ),
        children=("/openings/after-spaces",),
    ),
)
