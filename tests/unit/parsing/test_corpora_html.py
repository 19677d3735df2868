"""Charsets and markup against the tests of html5lib."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing import charset
from orbweaver.parsing.html_scan import outline
from orbweaver.parsing.page import parse
from tests.corpora import corpus

MATTERS = "a, area, base, link, meta, title"


def cases(folder: str) -> list[list[bytes]]:
    """Return the data of all cases in a folder, each followed by its sections."""
    files = sorted(corpus("html5lib", folder).glob("*.dat"))
    blocks = [re.split(rb"(?:^|\n)#data\n", file.read_bytes())[1:] for file in files]
    return [re.split(rb"\n#[a-z-]+\n", block) for blocks_of in blocks for block in blocks_of]


def test_prescan_passes_all_html5lib_encoding_cases() -> None:
    found = cases("encoding")
    assert len(found) >= 82
    for html, name in found:
        # Browsers assume windows-1252 by default; our code looks at the bytes first.
        marked = charset.decode(html, None)[0] if html.startswith(b"\xef\xbb\xbf") else None
        head = html[: charset.PRESCAN_BYTES]
        got = marked or charset.prescan(head) or charset.WINDOWS_1252
        assert got == name.strip().splitlines()[0].decode().lower(), html[:200]


def test_outline_keeps_relevant_elements_of_broken_pages() -> None:
    found = cases("tree-construction")
    assert len(found) >= 321
    for html, *_ in found:
        assert elements(outline(html)) == elements(html), html
        assert parse(html, "https://example.com/", None).charset


def elements(html: bytes) -> set[tuple[str | None, tuple[tuple[str, str | None], ...]]]:
    """Return the elements that matter, without the duplicates that a tree can have."""
    nodes = LexborHTMLParser(html).css(MATTERS)
    return {(node.tag, tuple(node.attributes.items())) for node in nodes}
