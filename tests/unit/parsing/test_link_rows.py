"""Rows of the table of links: from HTML and headers to columns."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.frontier.link_table import document_of, rows_in, table_rows
from orbweaver.parsing import link_rows
from orbweaver.parsing.page import Page, parse

URL = "https://example.org/dir/page"
HOST = "https://example.org"
# Makes a page too large for a tree, so that it is read by its outline.
FILLING = "<p>filling</p>" * 4_000
# HTML of an element, with the columns of its row that are not empty.
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("<a href=a.html>A <b>bold</b>\n  &amp; more</a>",
     {"target_url": f"{HOST}/dir/a.html", "kind": "a", "text": "A bold & more"}),
    ("<a href=/b#part rel='NoOpener  author'></a>",
     {"target_url": f"{HOST}/b", "kind": "a", "text": "", "rel": "noopener author"}
     | {"fragment": "part"}),
    ("<a href=x><code class='>'><span>y</span></code></a>",
     {"target_url": f"{HOST}/dir/x", "kind": "a", "text": "y"}),
    ("<a href=x><img alt=z>y</a>", {"target_url": f"{HOST}/dir/x", "kind": "a", "text": "y"}),
    ("<a href='x#a\n\tb'>y</a>",
     {"target_url": f"{HOST}/dir/x", "kind": "a", "text": "y", "fragment": "ab"}),
    ("<a href=/c rel=nofollow>c<img src='data:image/png;base64,eA=='>d</a>",
     {"target_url": f"{HOST}/c", "kind": "a", "text": "cd", "rel": "nofollow"}
     | {"decision": "nofollow"}),
    ("<a href='https://other.example/?utm_source=x&a=1'>e</a>",
     {"target_url": "https://other.example/?a=1", "kind": "a", "text": "e"}
     | {"spelling": "https://other.example/?utm_source=x&a=1"}),
    ("<a href='http://u:secret@other.example/'>e</a>",
     {"target_url": "http://other.example/", "kind": "a", "text": "e"}),
    ("<a href='http://[bad\n'>f</a>",
     {"target_url": "http://[bad", "kind": "a", "text": "f", "decision": "invalid"}),
    (f"<a href=/{'x' * 2_100}>f</a>",
     {"target_url": f"/{'x' * 2_047}", "kind": "a", "text": "f", "decision": "too_long"}),
    (f"<a href='http://{'x.' * 130}example/'>f</a>",
     {"target_url": f"http://{'x.' * 130}example/", "kind": "a", "text": "f"}
     | {"decision": "too_long"}),
    (f"<a href='http://[{'x' * 2_100}'>f</a>",
     {"target_url": f"http://[{'x' * 2_040}", "kind": "a", "text": "f", "decision": "invalid"}),
    ("<map><area href=../area alt=Area></map>",
     {"target_url": f"{HOST}/area", "kind": "area", "text": "Area"}),
    ("<link rel=next href=n>", {"target_url": f"{HOST}/dir/n", "kind": "next", "rel": "next"}),
    ("<link rel=Previous href=p>",
     {"target_url": f"{HOST}/dir/p", "kind": "prev", "rel": "previous"}),
    *(
        (f"<link rel='{rel}' {more} href=/x>",
         {"target_url": f"{HOST}/x", "kind": kind, "rel": rel, "decision": "not_followed"}
         | columns)
        for rel, more, kind, columns in (
            ("canonical", "", "canonical", {}),
            ("alternate", "hreflang=' de-AT '", "hreflang", {"lang": "de-AT"}),
            ("alternate", "type=application/rss+xml", "alternate", {}),
            ("alternate stylesheet", "", "stylesheet", {}),
            ("amphtml", "", "amphtml", {}),
            ("shortcut icon", "", "icon", {}),
        )
    ),
    *(
        (html, {"target_url": f"{HOST}/dir/x", "kind": kind, "decision": "not_followed"} | columns)
        for html, kind, columns in (
            ("<img src=x>", "img", {}),
            ("<img src=x alt>", "img", {"text": ""}),
            ("<img src=x alt='a  b'>", "img", {"text": "a b"}),
            ("<picture><source srcset='x 1x, y 2x'></picture>", "source", {}),
            ("<script src=x>var a = '<a href=no>'</script>", "script", {}),
            ("<iframe src=x><a href=no></a></iframe>", "iframe", {}),
            ("<form action=x><input></form>", "form", {}),
            ("<video src=x></video>", "media", {}),
            ("<object data=x></object>", "media", {}),
            ("<audio><track src=x></audio>", "media", {}),
        )
    ),
    *(
        (html, {})
        for html in (
            "<a href='#top'>top</a>",
            "<a href='mailto:a@example.org'>mail</a>",
            "<a href='javascript:void(0)'>run</a>",
            "<link rel=preload href=x>",
            "<a>no reference</a>",
            "<img alt=none>",
            "<!-- <a href=x>y</a> -->",
        )
    ),
]  # fmt: skip


def rows_of(page: Page) -> list[dict[str, Any]]:
    assert page.rows is not None
    document = document_of(page.rows, URL)
    assert rows_in(document, URL) == page.rows
    return list(table_rows(page.rows))


def parsed(html: str, **options: Any) -> Page:
    return parse(html.encode(), URL, "text/html; charset=utf-8", rows=True, **options)


@pytest.mark.parametrize("filling", ["", FILLING], ids=["tree", "outline"])
@pytest.mark.parametrize(("html", "columns"), ROWS, ids=[html for html, _ in ROWS])
def test_element_becomes_row(html: str, columns: dict[str, Any], filling: str) -> None:
    usual = {"text": None, "position": 0, "decision": "followed"}
    page = parsed(html + filling)
    assert rows_of(page) == ([usual | columns] if columns else [])
    assert page.cut == ()


@pytest.mark.parametrize("filling", ["", FILLING], ids=["tree", "outline"])
def test_rows_are_distinct_and_in_document_order(filling: str) -> None:
    html = "<a href=1>x</a><img src=2><a href=./1>x</a><a href=1>y</a><a href=1>x" + filling
    found = [(row["target_url"][-1], row["text"], row["position"]) for row in rows_of(parsed(html))]
    assert found[:3] == [("1", "x", 0), ("2", None, 1), ("1", "y", 2)]


def test_header_links_and_refresh_have_rows() -> None:
    header = "</n>; rel=next, </de>; rel=alternate; hreflang=de, </s>; rel=stylesheet"
    rows = rows_of(parsed("", link=header, refresh="30; url=later"))
    found = [(row["kind"], row.get("lang"), row["decision"]) for row in rows]
    assert found == [
        ("next", None, "followed"),
        ("hreflang", "de", "followed"),
        ("stylesheet", None, "not_followed"),
        ("refresh", None, "followed"),
    ]


@pytest.mark.parametrize(("obeys", "decision"), [(True, "nofollow"), (False, "followed")])
def test_nofollow_of_page_applies_to_crawled_links(obeys: bool, decision: str) -> None:
    html = "<meta name=robots content=nofollow><a href=1>x</a><img src=2>"
    decisions = [row["decision"] for row in rows_of(parsed(html, obey_nofollow=obeys))]
    assert decisions == [decision, "not_followed"]


def test_links_beyond_limit_of_crawl_are_cut() -> None:
    rows = rows_of(parsed("<a href=1>x</a><a href=2>y</a>", links_per_page_max=1))
    assert [row["decision"] for row in rows] == ["followed", "cut"]


def test_rows_beyond_limits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_rows, "ROWS_MAX", 3)
    page = parsed("".join(f"<a href={number}>{'x' * 300}</a>" for number in range(5)))
    rows = rows_of(page)
    assert dict(page.cut)["link_rows"] == 2
    assert [len(row["text"]) for row in rows] == [link_rows.TEXT_CHARS_MAX] * 3
    monkeypatch.setattr(link_rows, "ROWS_CHARS_MAX", 500)
    page = parsed("".join(f"<a href={number}>{'x' * 300}</a>" for number in range(3)))
    assert (len(rows_of(page)), dict(page.cut)["link_rows"]) == (2, 1)


def test_page_without_rows_option_has_none() -> None:
    assert parse(b"<a href=x>y</a>", URL, "text/html").rows is None


def test_erased_targets_have_no_row() -> None:
    rows = parsed("<a href=1 rel=a>x</a><a href=2 rel=b>y</a><a href=3 rel=b>z</a>").rows
    assert rows is not None
    assert rows.without(lambda _: False) is rows
    left = rows.without(lambda url: url.endswith("2"))
    assert [(row["target_url"][-1], row["rel"], row["text"]) for row in table_rows(left)] == [
        ("1", "a", "x"),
        ("3", "b", "z"),
    ]
