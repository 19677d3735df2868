"""Number of main headings of a page."""

from __future__ import annotations

import pytest

from orbweaver.parsing.headings import BEFORE_BYTES_MAX, H1_MAX, count_h1
from orbweaver.parsing.page import parse

PAGES = {
    b"": 0,
    b"<h1": 0,
    b"<h10>": 0,
    b"<h1>a</h1>": 1,
    b"<H1 class=a>b</H1><h1\n>": 2,
    b"<!-- <h1> --><h1>a</h1>": 1,
    b"<script>'<h1>'</script><template><h1></h1></template>": 0,
    b"<textarea><h1></textarea><!-- a --><script></script><h1>": 1,
    b"<h1>" * 99: H1_MAX,
    b"<!--" + b" " * BEFORE_BYTES_MAX + b"<h1>": 1,
}


@pytest.mark.parametrize("html", PAGES)
def test_count_h1_ignores_hidden_headings(html: bytes) -> None:
    assert count_h1(html) == PAGES[html]


@pytest.mark.parametrize("filler", [b"", b"<p>text</p>" * 9_000])
def test_page_of_any_size_has_number_of_headings(filler: bytes) -> None:
    page = parse(b"<h1>a</h1>" + filler + b"<h1>b</h1>", "https://a.example/", "text/html")
    assert page.h1 == 2
