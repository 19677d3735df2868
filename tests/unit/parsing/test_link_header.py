"""The `Link` header of a page."""

from __future__ import annotations

import pytest

from orbweaver.parsing.page import parse

URL = "https://example.com/a/b"
BASE = b"<base href=https://example.com/base/>"


@pytest.mark.parametrize(
    ("header", "canonical", "links"),
    [
        ("", None, []),
        ('</c>; rel="canonical"', "/c", []),
        ("<c>;rel=canonical", "/a/c", []),
        ('<?p=2>; title="a, <b>; c"; rel="next", </1> ; rel=prev', None, ["/a/b?p=2", "/1"]),
        ('</x>; rel="start Canonical next"', "/x", ["/x"]),
        (
            "</de>; rel=alternate; hreflang=de, </f>; rel=alternate; type=application/rss+xml",
            None,
            ["/de"],
        ),
        ('</s.css>; rel=preload; as=style, </y>, </n>; rel=next; anchor="/other"', None, []),
        ('</n>; rel="next nofollow"', None, []),
        ('</a,b>; rel="\\\\"; rel=next, </c>; rel=next', None, ["/c"]),
        ("broken, </c>; rel=next", None, []),
    ],
)
def test_link_header_names_canonical_and_pages(
    header: str, canonical: str | None, links: list[str]
) -> None:
    page = parse(BASE, URL, "text/html", link=header)
    site = "https://example.com"
    assert page.canonical == (canonical and site + canonical)
    assert list(page.links) == [site + link for link in links]
