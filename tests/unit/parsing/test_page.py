"""Links, title, robots directives and metadata that are read from a page."""

from __future__ import annotations

import time

import pytest

from orbweaver.parsing import page as pages
from orbweaver.parsing.html_scan import TREE_TAGS_MAX
from orbweaver.parsing.page import Page, parse
from orbweaver.parsing.robots_tag import wishes_of

URL = "https://example.com/a/b?c"
# More tags than are parsed into a tree, so that tests of small pages also cover large ones.
FILLING = "<p></p>" * TREE_TAGS_MAX


@pytest.fixture(params=["", FILLING], ids=["whole", "outline"])
def filling(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def read(html: str, url: str = URL) -> Page:
    return parse(html.encode(), url, "text/html; charset=utf-8")


LINKS = [
    ("", []),
    ("<a>x</a><a name=x><area><a data-href=/x>", []),
    ("<a href=\"/1\">x</a><AREA HREF=2><a href=' ../3 '>", ["/1", "/a/2", "/3"]),
    ("<a href>x</a><a href=''><a href='#x'>", ["/a/b?c"]),
    ("<a href=/2><a href=/1><a href=/2#x><a href='/x/../1'>", ["/2", "/1"]),
    ("<a href=/1?x&amp;y=&eacute;&copy=1>", ["/1?x&y=%C3%A9&copy=1"]),
    ("<a href=/1 href=/2>", ["/1"]),
    ("<a href='/x #y'><a href='/z#y #'>", ["/x%20", "/z"]),
    ("<a href=?x#y><a href=' ?y'>", ["/a/b?x", "/a/b?y"]),
    ("<a href='/ü?ü'>", ["/%C3%BC?%C3%BC"]),
    ("<a href='/\0x'>", ["/%EF%BF%BDx"]),
    ("<a href=\thttps://example.com/1?utm_source=x>", ["/1"]),
    ("<div><table><a href=/1><td><a href=/2></table><a href=/3>", ["/1", "/2", "/3"]),
    ("<svg><a xlink:href=/1></a><a xlink:href=/x href=/2></a></svg>", ["/1", "/2"]),
    ("<svg><g xlink:href=/x /><link rel=next><link xlink:href=/x rel=next /></svg>", []),
    ("<svg><a href=/1></svg><noscript><a href=/2></noscript>", ["/1", "/2"]),
    ("<p title='<a href=/x>'><!-- <a href=/x> --><script>'<a href=/x>'</script>", []),
    ("<style><a href=/x></style><textarea><a href=/x></textarea><title><a href=/x></title>", []),
    ("<template><a href=/x></template><iframe><a href=/x></iframe><a href=/1>", ["/1"]),
    ("<link rel=alternate href=/x><link href=/x><iframe src=/x></iframe><form action=/x>", []),
    ("<img src=/x><link rel='nexts preview' href=/x>", []),
    ("<link rel=next href=/2><a href=/1><link rel='start Prev' href=/0>", ["/2", "/1", "/0"]),
    (
        "<frameset><frame src=/1><FRAMESET><frame src='/2' name=x></frameset></frameset>",
        ["/1", "/2"],
    ),
    ("<link rel=previous href=1><link href=/2 rel='canonical next'>", ["/a/1", "/2"]),
    ("<a href=/1>x<a href=/2", ["/1"]),
    ("<a href=/1>x<a href='/2>", ["/1"]),
]


@pytest.mark.parametrize(("html", "links"), LINKS)
def test_links_come_from_a_and_area_elements(html: str, links: list[str], filling: str) -> None:
    page = read(filling + html)
    assert page.links == tuple(f"https://example.com{link}" for link in links)
    assert page.links_cut == page.links_nofollow == page.links_foreign == page.links_invalid == 0


BASES = [
    ("<base href=/x/>", "https://example.com/x/y"),
    ("<base href=z/>", "https://example.com/a/z/y"),
    ("<base href='//other.example/z?q#f'>", "https://other.example/y"),
    ("<base href=http://other.example:80>", "http://other.example/y"),
    ("<base href=/1/><base href=/2/>", "https://example.com/1/y"),
    ("<base target=x><base href=/2/>", "https://example.com/2/y"),
    ("<base href><base href=/2/>", "https://example.com/a/y"),
    ("<base href='javascript:1'>", "https://example.com/a/y"),
    ("<base href='data:text/html,x'>", "https://example.com/a/y"),
    ("<base href='mailto:x@y'>", "https://example.com/a/y"),
    ("<base href='http://['><base href=/2/>", "https://example.com/a/y"),
    ("<p><a href=z><base href=/late/>", "https://example.com/late/z https://example.com/late/y"),
    ("<!-- <base href=/x/> -->", "https://example.com/a/y"),
]


@pytest.mark.parametrize(("html", "links"), BASES)
def test_first_valid_base_applies_to_all_links(html: str, links: str, filling: str) -> None:
    assert read(f"{html}<a href=y>{filling}").links == tuple(links.split())


def test_foreign_and_invalid_references_are_counted(filling: str) -> None:
    page = read(
        "<a href=mailto:x@y><a href='MailTo:x@y'><a href='javascript:void 0'><a href=tel:1>"
        "<a href=data:,x><a href=' whatsapp:x#y'><a href=http://[><a href=https://a:b/>"
        "<a href='java\nscript:1'><a href=android-app://x/><a href=/1><a href=http://[>"
        "<a href=x:1><a href=1:2>" + filling
    )
    assert page.links == ("https://example.com/1", "https://example.com/a/1:2")
    assert page.links_foreign == 7
    assert page.links_invalid == 4
    assert page.links_cut == 0


def test_nofollow_links_are_omitted_and_counted(filling: str) -> None:
    page = read(
        "<a rel=nofollow href=/1><a rel='sponsored NoFollow' href=/2><area rel=nofollow href=/3>"
        "<a rel='nofollower' href=/4><a rel href=/5><a rel=nofollow href=/5>"
        "<link rel='next nofollow' href=/6>" + filling
    )
    assert page.links == ("https://example.com/4", "https://example.com/5")
    assert page.links_nofollow == 5
    assert not page.nofollow


def test_nofollow_links_have_up_to_five_samples(filling: str) -> None:
    links = "".join(f"<a href=/{n} rel=nofollow>" for n in (1, 1, *range(2, 9)))
    page = read("<a href=mailto:x rel=nofollow><a href=/0>" + links + filling)
    assert page.withdrawn == tuple(f"https://example.com/{n}" for n in range(1, 6))
    assert (page.links, page.links_nofollow) == (("https://example.com/0",), 10)
    page = read("<meta name=robots content=nofollow><a href=/2><a href=/1 rel=nofollow>" + filling)
    assert page.withdrawn == ("https://example.com/2", "https://example.com/1")


def test_nofollow_can_be_ignored(filling: str) -> None:
    html = "<link rel='next nofollow' href=/1><a rel=nofollow href=/2><a href=/3>" + filling
    head = "<meta name=robots content=nofollow>"
    for page in (
        parse(html.encode(), URL, None, obey_nofollow=False),
        parse((head + html).encode(), URL, None, obey_nofollow=False),
        parse(html.encode(), URL, None, obey_nofollow=False, robots_tag="nofollow"),
    ):
        assert page.links == tuple(f"https://example.com/{n}" for n in (1, 2, 3))
        assert (page.links_nofollow, page.withdrawn) == (0, ())
    assert page.nofollow


@pytest.mark.parametrize(
    ("meta", "nofollow", "noindex"),
    [
        ("name=robots content=nofollow", True, False),
        ("name=ROBOTS content='index, NOFOLLOW'", True, False),
        ("name=robots content='noindex,nofollow'", True, True),
        ("name=robots content='noindex nofollow'", True, True),
        ("name=robots content='noindex;nofollow'", True, True),
        ("name=robots content=none", True, True),
        ("name=robots content=noindex", False, True),
        ("name=orbweaver content=noindex", False, True),
        ("name=robots content='all'", False, False),
        ("name=robots content", False, False),
        ("name=googlebot content=nofollow", False, False),
        ("property=robots content=nofollow", False, False),
        ("name content=nofollow", False, False),
    ],
)
def test_meta_robots_is_obeyed(meta: str, filling: str, *, nofollow: bool, noindex: bool) -> None:
    page = read(f"<a href=/1><a href=/2 rel=nofollow><p><meta {meta}>{filling}")
    assert (page.nofollow, page.noindex) == (nofollow, noindex)
    assert page.links == (() if nofollow else ("https://example.com/1",))
    assert page.links_nofollow == (2 if nofollow else 1)


@pytest.mark.parametrize("said", ["name=robots", "name=description", "http-equiv=refresh"])
def test_meta_element_without_content_is_ignored(said: str, filling: str) -> None:
    page = read(f"<meta {said} href=/x>{filling}<a href=/y>")
    assert (page.nofollow, page.description, page.refresh) == (False, None, None)
    assert page.links == ("https://example.com/y",)


@pytest.mark.parametrize(
    ("tag", "wishes"),
    [
        ("", {""}),
        ("NoIndex, NOFOLLOW", {"noindex", "nofollow"}),
        ("googlebot: nofollow", set()),
        ("googlebot: noindex, nofollow", set()),
        ("noindex; nofollow", {"noindex", "nofollow"}),
        ("googlebot: nofollow, orbweaver: noindex, noarchive", {"noindex", "noarchive"}),
        ("robots: none", {"none"}),
        ("max-snippet: 5, nofollow", {"5", "nofollow"}),
        ("otherbot: noindex, *: nofollow", {"nofollow"}),
        (
            "unavailable_after: Sun, 25 Jun 2010 15:00:00 PST, nofollow",
            {"sun", "00:00 pst", "nofollow"},
        ),
        ("unavailable_after: 25 Jun 2010, noindex", {"25 jun 2010", "noindex"}),
    ],
)
def test_x_robots_tag_applies_to_all_agents_or_ours(tag: str, wishes: set[str]) -> None:
    assert wishes_of(tag) == wishes


def test_x_robots_tag_is_obeyed() -> None:
    page = parse(b"<a href=/1>", URL, None, robots_tag="noindex, nofollow")
    assert (page.nofollow, page.noindex, page.links, page.links_nofollow) == (True, True, (), 1)
    assert parse(b"<a href=/1>", URL, None, robots_tag="all").links == ("https://example.com/1",)


def test_links_are_limited_and_rest_is_counted() -> None:
    html = b"".join(b"<a href=/%d><a href=/%d#x>" % (n, n) for n in range(20))
    page = parse(html, URL, None, links_per_page_max=5)
    assert page.links == tuple(f"https://example.com/{n}" for n in range(5))
    assert page.links_cut == 15
    page = parse(b"<a href=http://[><a href=mailto:x>" + html, URL, None, links_per_page_max=2)
    assert page.links == ("https://example.com/0",)
    assert (page.links_invalid, page.links_foreign, page.links_cut) == (1, 1, 19)
    many = b"".join(b"<a href=/%d>" % n for n in range(pages.LINKS_MAX + 10))
    assert (len(read(many.decode()).links), read(many.decode()).links_cut) == (pages.LINKS_MAX, 10)


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n\t B&amp;<b>C </title>", "A B&<b>C"),
        ("<title></title><title>second</title>", "second"),
        ("<body><title>in the body</title>", "in the body"),
        ("<title>first<title>still</title>", "first<title>still"),
        ("<title>unclosed <p>", "unclosed <p>"),
        ("<title>" + "x " * 600 + "</title>", ("x " * 250).strip()),
        ("<title> \n </title>", None),
        ("<p>none", None),
    ],
)
def test_title_is_one_line_of_at_most_500_characters(html: str, title: str | None) -> None:
    assert read(html).title == title


def test_title_is_found_in_large_page() -> None:
    assert read(FILLING + "<title>A &amp; <b></title><a href=/1>").title == "A & <b>"


def test_title_within_svg_is_ignored(filling: str) -> None:
    for drawing in ("<svg>{}</svg>", "<svg><g><g>{}</g></g></svg>", "<svg><a href=/x>{}</a></svg>"):
        html = drawing.format("<title>icon</title>")
        assert read(filling + html + "<title>page</title>").title == "page"
        assert read(filling + html).title is None
    assert read(filling + "<svg></svg><title>page</title>").title == "page"


def test_description_language_and_canonical_are_first_ones(filling: str) -> None:
    page = read(
        "<!doctype html><html lang=' en-GB '><meta name=Description content=' One\n two &amp; '>"
        "<meta name=description content=x><link rel='alternate' href=/x>"
        "<link rel='x Canonical' href='/1?utm_source=y#z'><link rel=canonical href=/2>" + filling
    )
    assert page.description == "One two &"
    assert page.language == "en-GB"
    assert page.canonical == "https://example.com/1"
    assert page.charset == "utf-8"


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<html lang><meta name=description content><link rel=canonical href>",
        "<html lang=''><meta name=description content=' '><link rel=canonical href=mailto:x>",
        "<link href=/x><meta name=description><meta content=x><link rel href=/x>",
    ],
)
def test_missing_or_empty_metadata_is_null(html: str) -> None:
    page = read(html)
    assert (page.title, page.description, page.language, page.canonical) == (None,) * 4


def test_links_are_encoded_in_charset_of_page() -> None:
    """Paths are escaped in UTF-8, queries in the charset of the page (URL Standard)."""
    html = '<meta charset=windows-1251><title>Книга</title><a href="/книга?книга">'
    page = parse(html.encode("cp1251"), URL, "text/html")
    assert (page.charset, page.title) == ("windows-1251", "Книга")
    path = "%D0%BA%D0%BD%D0%B8%D0%B3%D0%B0"
    assert page.links == (f"https://example.com/{path}?%EA%ED%E8%E3%E0",)
    assert parse(html.encode(), URL, "text/html;charset=utf-8").links[0].endswith(f"?{path}")


def test_text_is_decoded() -> None:
    page = parse("<title>t</title><p>Grün<b>e</b><p>Äpfel".encode("latin-1"), URL, None)
    assert (page.charset, page.text) == ("windows-1252", "Grüne Äpfel")
    assert read(FILLING + "<p>x").text == "x"


@pytest.mark.parametrize("url", ["", "nonsense", "mailto:x@y", "http://", "https://example.com"])
def test_absolute_links_are_read_for_any_page_url(url: str) -> None:
    page = read("<a href=https://example.com/1><a href=https://EXAMPLE.com/%7e>", url)
    expected = ("https://example.com/1", "https://example.com/%7e")
    assert page.links == expected
    here = read("<a href=/1>", url)
    assert (len(here.links), here.links_invalid) == ((1, 0) if url.startswith("https") else (0, 1))


HOSTILE = {
    "divs": b"<div>" * 200_000 + b"<a href=/1>",
    "lists": b"<ul><li>" * 100_000 + b"<a href=/1>",
    "fonts": b"".join(b"<p><font x=%d>" % n for n in range(20_000)) + b"<a href=/1>",
    "misnested": b"<a href=/1><i>" + b"<i><div>" * 50_000,
    "attributes": b"<a href=/1><p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">",
    "link attributes": b"<a href=/1 " + b" ".join(b"a%d" % n for n in range(100_000)) + b">",
    "hidden attributes": b"<a href=/1 " + b" ".join(b'a%d="<>"' % n for n in range(90_000)) + b">",
    "html attributes": b"".join(b"<html a%d>" % n for n in range(50_000)) + b"<a href=/1>",
    "bases": b"<a href=/1>" + b"<base href=/>" * 50_000,
    "templates": b"<a href=/1>" + b"<template>" * 50_000 + b"</template>" * 50_000,
    "anchors": b"<a href=/1>" * 100_000,
    "comment": b"<a href=/1><!--" + b"x" * 5_000_000,
    "one line": b"<a href=/1>" + b"x" * 50_000_000,
    "nulls": b"<a href=/1>" + b"\0" * 5_000_000,
    "no utf-8": b"<a href=/1>" + b"\xff" * 5_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_page_is_parsed_quickly(name: str) -> None:
    before = time.process_time()
    assert parse(HOSTILE[name], URL, None).links == ("https://example.com/1",)
    assert time.process_time() - before < 10  # a second or less on an idle machine


def test_quarter_of_million_links_are_truncated() -> None:
    html = b"".join(b"<a href=%d>" % number for number in range(250_000))
    before = time.process_time()
    page = parse(html, URL, None)
    assert (len(page.links), page.links_cut) == (5_000, 245_000)
    assert time.process_time() - before < 20


def test_href_of_other_elements_is_ignored() -> None:
    html = b'<svg><use href="/1"></use></svg><div href="/2">x</div><a href="/3">y</a>'
    page = parse(html, "https://example.com/", "text/html")
    assert page.links == ("https://example.com/3",)


def test_language_of_inner_element_is_ignored() -> None:
    html = b'<html><p lang="de">x</p></html>'
    assert parse(html, "https://example.com/", "text/html").language is None
