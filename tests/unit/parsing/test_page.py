"""What is read from a page."""

from __future__ import annotations

import time

import pytest

from orbweaver.parsing import page as pages
from orbweaver.parsing.html_scan import TREE_TAGS_MAX
from orbweaver.parsing.page import Page, parse
from orbweaver.parsing.robots_tag import wishes_of

URL = "https://example.com/a/b?c"
# More tags than are parsed into a tree: what is said of small pages holds for large ones as well.
FILLING = "<p></p>" * TREE_TAGS_MAX


@pytest.fixture(params=["", FILLING], ids=["whole", "outline"])
def filling(request: pytest.FixtureRequest) -> str:
    """Return what makes a page as large as wanted."""
    return str(request.param)


def read(html: str, url: str = URL) -> Page:
    """Read a page in UTF-8."""
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
def test_links_are_what_a_and_area_refer_to(html: str, links: list[str], filling: str) -> None:
    """Links are canonical, in document order, each once."""
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
def test_the_first_base_counts(html: str, links: str, filling: str) -> None:
    """The first base with a reference is the base of all, if it is http or https."""
    assert read(f"{html}<a href=y>{filling}").links == tuple(links.split())


def test_what_is_no_link_is_counted(filling: str) -> None:
    """References of other schemes and invalid ones are counted, each once."""
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


def test_nofollow_links_are_left_out(filling: str) -> None:
    """A link with rel=nofollow does not count, unless another one leads there."""
    page = read(
        "<a rel=nofollow href=/1><a rel='sponsored NoFollow' href=/2><area rel=nofollow href=/3>"
        "<a rel='nofollower' href=/4><a rel href=/5><a rel=nofollow href=/5>"
        "<link rel='next nofollow' href=/6>" + filling
    )
    assert page.links == ("https://example.com/4", "https://example.com/5")
    assert page.links_nofollow == 5
    assert not page.nofollow


def test_what_is_withdrawn_has_examples(filling: str) -> None:
    """Web addresses, each once, up to five; of a page that withdraws all in the page's order."""
    links = "".join(f"<a href=/{n} rel=nofollow>" for n in (1, 1, *range(2, 9)))
    page = read("<a href=mailto:x rel=nofollow><a href=/0>" + links + filling)
    assert page.withdrawn == tuple(f"https://example.com/{n}" for n in range(1, 6))
    assert (page.links, page.links_nofollow) == (("https://example.com/0",), 10)
    page = read("<meta name=robots content=nofollow><a href=/2><a href=/1 rel=nofollow>" + filling)
    assert page.withdrawn == ("https://example.com/2", "https://example.com/1")


def test_nofollow_need_not_be_obeyed(filling: str) -> None:
    """Links are in the page's order then, and the page still tells what it asks for."""
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
    """Where the page says nofollow it has no links, and they are counted."""
    page = read(f"<a href=/1><a href=/2 rel=nofollow><p><meta {meta}>{filling}")
    assert (page.nofollow, page.noindex) == (nofollow, noindex)
    assert page.links == (() if nofollow else ("https://example.com/1",))
    assert page.links_nofollow == (2 if nofollow else 1)


@pytest.mark.parametrize("said", ["name=robots", "name=description", "http-equiv=refresh"])
def test_a_meta_element_without_content_says_nothing(said: str, filling: str) -> None:
    """One that has an `href`, as no meta element should, is no error either."""
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
def test_x_robots_tag_may_name_agents(tag: str, wishes: set[str]) -> None:
    """Directives count that are for all agents or for ours; an agent's name holds till the next."""
    assert wishes_of(tag) == wishes


def test_x_robots_tag_is_obeyed() -> None:
    """The header's wishes count like the page's own."""
    page = parse(b"<a href=/1>", URL, None, robots_tag="noindex, nofollow")
    assert (page.nofollow, page.noindex, page.links, page.links_nofollow) == (True, True, (), 1)
    assert parse(b"<a href=/1>", URL, None, robots_tag="all").links == ("https://example.com/1",)


def test_links_are_bounded() -> None:
    """What is beyond the bound is counted; invalid references use it up, too."""
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
def test_a_title_is_one_line(html: str, title: str | None) -> None:
    """The first title that is not empty counts, in one line of at most 500 characters."""
    assert read(html).title == title


def test_a_title_may_stand_in_a_large_page() -> None:
    """An outline has titles, too."""
    assert read(FILLING + "<title>A &amp; <b></title><a href=/1>").title == "A & <b>"


def test_a_title_of_a_drawing_is_none_of_the_page(filling: str) -> None:
    """A title within svg is a tooltip."""
    for drawing in ("<svg>{}</svg>", "<svg><g><g>{}</g></g></svg>", "<svg><a href=/x>{}</a></svg>"):
        html = drawing.format("<title>icon</title>")
        assert read(filling + html + "<title>page</title>").title == "page"
        assert read(filling + html).title is None
    assert read(filling + "<svg></svg><title>page</title>").title == "page"


def test_what_a_page_says_of_itself(filling: str) -> None:
    """Description, language and canonical URL are the first that there are."""
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
def test_what_a_page_does_not_say_is_none(html: str) -> None:
    """Without an attribute, or with an empty one, nothing is said."""
    page = read(html)
    assert (page.title, page.description, page.language, page.canonical) == (None,) * 4


def test_links_are_read_in_the_charset_of_the_page() -> None:
    """Paths are escaped in UTF-8, queries in the page's charset (URL Standard)."""
    html = '<meta charset=windows-1251><title>Книга</title><a href="/книга?книга">'
    page = parse(html.encode("cp1251"), URL, "text/html")
    assert (page.charset, page.title) == ("windows-1251", "Книга")
    path = "%D0%BA%D0%BD%D0%B8%D0%B3%D0%B0"
    assert page.links == (f"https://example.com/{path}?%EA%ED%E8%E3%E0",)
    assert parse(html.encode(), URL, "text/html;charset=utf-8").links[0].endswith(f"?{path}")


def test_text_is_there_when_asked_for() -> None:
    """The text is that of the whole page, decoded."""
    page = parse("<title>t</title><p>Grün<b>e</b><p>Äpfel".encode("latin-1"), URL, None)
    assert (page.charset, page.text) == ("windows-1252", "Grüne Äpfel")
    assert read(FILLING + "<p>x").text == "x"


@pytest.mark.parametrize("url", ["", "nonsense", "mailto:x@y", "http://", "https://example.com"])
def test_any_url_will_do(url: str) -> None:
    """Absolute links are read wherever the page comes from."""
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
def test_no_page_takes_long(name: str) -> None:
    """Nesting, attributes and size cost no more than their number."""
    before = time.perf_counter()
    assert parse(HOSTILE[name], URL, None).links == ("https://example.com/1",)
    assert time.perf_counter() - before < 10  # a second or less, on a machine at rest


def test_a_quarter_of_a_million_links_are_cut() -> None:
    """A page of more links than can be wanted has 5,000, and the rest is counted."""
    html = b"".join(b"<a href=%d>" % number for number in range(250_000))
    before = time.perf_counter()
    page = parse(html, URL, None)
    assert (len(page.links), page.links_cut) == (5_000, 245_000)
    assert time.perf_counter() - before < 20


def test_what_else_has_an_href_is_no_link() -> None:
    """Only `a` and `area` lead anywhere; drawings and made-up elements refer to their own parts."""
    html = b'<svg><use href="/1"></use></svg><div href="/2">x</div><a href="/3">y</a>'
    page = parse(html, "https://example.com/", "text/html")
    assert page.links == ("https://example.com/3",)


def test_no_language_is_none() -> None:
    """The language is that of the whole page: its root's."""
    html = b'<html><p lang="de">x</p></html>'
    assert parse(html, "https://example.com/", "text/html").language is None
