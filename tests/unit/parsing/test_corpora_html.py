"""Charsets and markup against html5lib's tests (vectors beside the project)."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing import charset
from orbweaver.parsing.html_scan import outline
from orbweaver.parsing.page import parse
from tests.corpora import corpus

MATTERS = "a, area, base, link, meta, title"


def cases(folder: str) -> list[list[bytes]]:
    """Return the data and the sections that follow it, of all cases in a folder."""
    files = sorted(corpus("html5lib", folder).glob("*.dat"))
    blocks = [re.split(rb"(?:^|\n)#data\n", file.read_bytes())[1:] for file in files]
    return [re.split(rb"\n#[a-z-]+\n", block) for blocks_of in blocks for block in blocks_of]


def test_charsets_of_pages() -> None:
    """All 82 pages are said to be in the charset that browsers find."""
    found = cases("encoding")
    assert len(found) >= 82
    for html, name in found:
        # windows-1252 is what browsers take for granted; we look at the bytes first.
        marked = charset.decode(html, None)[0] if html.startswith(b"\xef\xbb\xbf") else None
        head = html[: charset.PRESCAN_BYTES]
        got = marked or charset.prescan(head) or charset.WINDOWS_1252
        assert got == name.strip().splitlines()[0].decode().lower(), html[:200]


def test_outlines_of_odd_pages() -> None:
    """An outline has the elements that matter, and no others, however broken the page is."""
    found = cases("tree-construction")
    assert len(found) >= 321
    for html, *_ in found:
        assert elements(outline(html)) == elements(html), html
        assert parse(html, "https://example.com/", None).charset


def elements(html: bytes) -> set[tuple[str | None, tuple[tuple[str, str | None], ...]]]:
    """Return the elements that matter; a tree has some of them twice."""
    nodes = LexborHTMLParser(html).css(MATTERS)
    return {(node.tag, tuple(node.attributes.items())) for node in nodes}
