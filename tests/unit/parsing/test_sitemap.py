"""Sitemaps in all their formats."""

from __future__ import annotations

import codecs
import gzip
from datetime import UTC, datetime

import pytest

from orbweaver.model.outcome import Refusal
from orbweaver.parsing.sitemap import (
    ENTRIES_MAX,
    LISTED_MAX,
    SitemapEntry,
    SitemapFormat,
    moment_ms,
    read,
)
from orbweaver.parsing.sitemap_xml import Ampersands
from tests.corpora import corpus

URL = "https://example.com/sitemap.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
CORPUS = "sitemaps/crawler-commons"
SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(*paths: str, head: str = HEAD) -> str:
    urls = "".join(f"<url><loc>https://example.com{path}</loc></url>" for path in paths)
    return f'{head}<urlset xmlns="{SPACE}">{urls}</urlset>'


def urls(body: str | bytes, url: str = URL) -> list[str]:
    sitemap = read(body.encode() if isinstance(body, str) else body, url)
    return [entry.url for entry in sitemap.entries]


# --- formats ------------------------------------------------------------------------------------


def test_urlset_lists_pages_with_dates() -> None:
    body = f"""{HEAD}
    <urlset xmlns="{SPACE}">
      <url><loc> https://EXAMPLE.com/a?x=1&amp;y=2#top </loc><lastmod>2026-01-02</lastmod></url>
      <url><lastmod>soon</lastmod><loc>https://example.com/<![CDATA[b?p&q]]></loc></url>
    </urlset>"""
    sitemap = read(body.encode(), URL)
    end_of_day_ms = round(datetime(2026, 1, 3, tzinfo=UTC).timestamp() * 1000) - 1
    assert sitemap.format is SitemapFormat.URLSET
    assert sitemap.entries == (
        SitemapEntry(url="https://example.com/a?x=1&y=2", modified_at_ms=end_of_day_ms),
        SitemapEntry(url="https://example.com/b?p&q"),
    )
    assert (sitemap.listed, sitemap.more, sitemap.problem, sitemap.usable) == (2, False, None, True)


def test_index_lists_sitemaps() -> None:
    body = f"""<sitemapindex xmlns="{SPACE}"><sitemap><loc>https://example.com/1.xml</loc>
    <lastmod>2026-01-02T03:04:05Z</lastmod></sitemap></sitemapindex>"""
    sitemap = read(body.encode(), URL)
    at_ms = round(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp() * 1000)
    assert (sitemap.format, sitemap.entries) == (SitemapFormat.INDEX, ())
    assert sitemap.sitemaps == (
        SitemapEntry(url="https://example.com/1.xml", modified_at_ms=at_ms),
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("https://example.com/a\r\nhttps://example.com/b", ["/a", "/b"]),
        ("\n\n  https://example.com/a  \rnonsense\nhttps://example.com/a\n", ["/a"]),
        (codecs.BOM_UTF8 + b"https://example.com/a\n", ["/a"]),
        ("https://example.com/a\n".encode("utf-16"), ["/a"]),
        (("<rss version='0.91'><channel><link>https://example.com/</link>"
          "<item><link>/a</link><guid>nonsense</guid></item>"
          "<item><guid>https://example.com/b</guid></item>"
          "<item><guid isPermaLink='false'>7bd204c6</guid></item></channel></rss>"),
         ["/a", "/b"]),
        (("<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/'>"
          "<item><link>https://example.com/a</link></item></rdf:RDF>"),
         ["/a"]),
        (("<feed xmlns='http://www.w3.org/2005/Atom'><link href='/'/><entry>"
          "<source><link href='/d'/></source><link rel='self' href='/self'/>"
          "<link href='a'/><link href='/c'/></entry></feed>"),
         ["/a"]),
        ("<!DOCTYPE rss PUBLIC '-//X' 'http://x/'>" + urlset("/a&nbsp;b", head=""), ["/ab"]),
        (urlset("/a").encode("utf-16"), ["/a"]),
        (urlset("/a", head="").encode("utf-16-le"), ["/a"]),
        (urlset("/a", head="").encode("utf-16-be"), ["/a"]),
        (urlset("/a", head="<?xml version='1.0' encoding='utf-16'?>"), ["/a"]),
        (urlset("/ä", head="<?xml version='1.0' encoding='gbk'?>").encode("gbk", "ignore"), ["/"]),
        (urlset("/ж", head="<?xml version='1.0' encoding='windows-1251'?>").encode("cp1251"),
         ["/%D0%B6"]),
        (urlset("/a", head="<?xml version='1.0' encoding='no-such'?>"), ["/a"]),
        ("\n  " + urlset("/a"), ["/a"]),
        (urlset("/a\x0b\x00", "/b"), ["/a", "/b"]),
        (urlset("/a").replace(SPACE, "http://example.com/none"), ["/a"]),
        (urlset("/a").replace(f' xmlns="{SPACE}"', ""), ["/a"]),
        ("<URLSET><URL><LOC>https://example.com/a</LOC></URL></URLSET>", ["/a"]),
        ("<s:urlset><s:url><s:loc>https://example.com/a</s:loc></s:url></s:urlset>", ["/a"]),
        ("<s:urlset><url><loc>https://example.com/a</loc></url></s:urlset>", ["/a"]),
        (("<urlset><url><loc>https://example.com/a</loc><loc>https://example.com/b</loc>"
          "<image:image><image:loc>https://example.com/i</image:loc></image:image>"
          "<image><loc>https://example.com/j</loc></image><news:loc>x</news:loc>"
          "<xhtml:link rel='alternate' href='https://example.com/de'/></url></urlset>"),
         ["/a"]),
        (("<feed xmlns='http://www.w3.org/2005/Atom'><entry>"
          "<link rel='alternate' type='application/json' href='/j'/>"
          "<link rel='self' href='/s'/>"
          "<link type='text/html; charset=utf-8' href='https://example.com/a'/>"
          "<link type='text/html' href='/b'/></entry></feed>"),
         ["/a"]),
        ("<urlset><url>https://example.com/a<x>y</x></url><url/></urlset>", ["/a"]),
        (gzip.compress(urlset("/a").encode(), mtime=0), ["/a"]),
        (gzip.compress(b"https://example.com/a\n", mtime=0)
         + gzip.compress(b"https://example.com/b", mtime=0), ["/a", "/b"]),
        (gzip.compress(b"https://example.com/a", mtime=0) + b"\0\0\0", ["/a"]),
    ],
)  # fmt: skip
def test_all_formats_list_same_pages(body: str | bytes, expected: list[str]) -> None:
    assert urls(body) == [f"https://example.com{path}" for path in expected]


RSS = "<rss version='2.0'><channel>{}</channel></rss>"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'{}>{}</feed>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # RSS 2.0: `image` has a `url`, and `textInput` a `link`; neither is an item.
        (RSS.format(
            "<image><url>https://example.com/logo.png</url><link>https://example.com/</link>"
            "</image><item><link>https://example.com/a</link>"
            "<source url='https://example.com/feed'>x</source></item>"
            "<textInput><link>https://example.com/search</link></textInput>"), ["/a"]),
        (("<rdf:RDF xmlns:rdf='r'><image><url>https://example.com/logo</url></image>"
          "<item><link>https://example.com/a</link></item></rdf:RDF>"), ["/a"]),
        (ATOM.format("", "<url><loc>https://example.com/x</loc></url>"
                     "<entry><link href='/a'/></entry>"), ["/a"]),
        ("<urlset><item><link>https://example.com/x</link></item></urlset>", []),
        ("<urlset><sitemap><loc>https://example.com/x</loc></sitemap></urlset>", []),
        # RFC 4287, 2: any element may have an xml:base (XML Base, RFC 3986 section 5.1).
        (ATOM.format(" xml:base='/blog/'", "<entry><link href='a'/></entry>"), ["/blog/a"]),
        (ATOM.format(" xml:base='https://example.com/x/'", "<entry xml:base='y/'>"
                     "<link href='a'/></entry><entry><link href='b'/></entry>"),
         ["/x/y/a", "/x/b"]),
        (ATOM.format(" xml:base='x/'", "<entry><title xml:base='/no/'>t</title>"
                     "<link xml:base='z/' href='a'/><updated>2026-01-02</updated></entry>"),
         ["/x/z/a"]),
        (ATOM.format(" xml:base='/x/'", "<entry><link href='/a'/></entry>"), ["/a"]),
        (ATOM.format(" xml:base=''", "<entry><link href='a'/></entry>"), ["/a"]),
        (ATOM.format(" xml:base='mailto:x'", "<entry><link href='a'/></entry>"), ["/a"]),
        (RSS.format("<item xml:base='/x/'><link>a</link></item>"), ["/x/a"]),
        # An unescaped `&`.
        (urlset("/a?b=1&c=2"), ["/a?b=1&c=2"]),
        (urlset("/a?b&amp;c&#38;d&#x26;e&f"), ["/a?b&c&d&e&f"]),
        (urlset("/a?&&"), ["/a?&&"]),
        (urlset("/a?b&copy=1"), ["/a?b&copy=1"]),
        (("<urlset><url><loc><![CDATA[https://example.com/a?b&c&amp;d]]></loc></url>"
          "<url><loc>https://example.com/e?f&g</loc></url></urlset>"), ["/a?b&c&amp;d", "/e?f&g"]),
    ],
)  # fmt: skip
def test_items_bases_and_ampersands_follow_specifications(body: str, expected: list[str]) -> None:
    assert urls(body) == [f"https://example.com{path}" for path in expected]


def test_ampersands_are_repaired_across_chunk_boundaries() -> None:
    text = urlset("/a?b&c&amp;d&#38;e").replace(
        "</urlset>", "<url><loc><![CDATA[https://example.com/?x]&]]&&]]></loc></url>&</urlset>"
    )
    whole = Ampersands()
    expected = whole.feed(text) + whole.rest()
    assert "?b&amp;c&amp;d&#38;e<" in expected
    assert "?x]&]]&&]]></loc></url>&amp;</urlset>" in expected
    for size in range(1, 40):
        pieces = Ampersands()
        parts = [pieces.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(parts) + pieces.rest() == expected


def test_second_loc_of_item_is_dropped_and_counted() -> None:
    item = "<url><loc>https://example.com/a</loc><loc>https://example.com/b</loc></url>"
    body = f"<urlset>{item}<url><loc>https://example.com/c</loc></url></urlset>".encode()
    sitemap = read(body, URL)
    assert [entry.url[-1] for entry in sitemap.entries] == ["a", "c"]
    assert sitemap.dropped == {Refusal.CUT: 1}
    assert read(body, URL, first=1).dropped == {}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", None),
        (b"  \n ", None),
        (b"<html><body><a href='/x'>x</a></body></html>", "its root element is 'html'"),
        (b"<!doctype html><title>Not found</title>", "not well-formed: "),
        (b"<!DOCTYPE html><html><title>Not found</title>", "its root element is 'html'"),
        (b"not found\n", "no line of the text is a URL"),
        (b"x\n" * 2_000, "no URL in 1,000 lines"),
        (b"\x1f\x8bnonsense", "gzip: Error -3"),
        (b"\x89PNG\r\n\x1a\n\0\0", "no line of the text is a URL"),
        (b"<urlset", "not well-formed: "),
    ],
)
def test_other_body_is_no_sitemap_with_reason(body: bytes, problem: str | None) -> None:
    sitemap = read(body, URL)
    assert not sitemap.usable
    assert (sitemap.entries, sitemap.sitemaps) == ((), ())
    assert sitemap.problem == problem or (sitemap.problem or "").startswith(problem or "?")


def test_empty_urlset_is_usable() -> None:
    sitemap = read(b"<urlset/>", URL)
    assert (sitemap.usable, sitemap.listed) == (True, 0)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (urlset("/a").replace("</urlset>", "<url><loc>x"), "not well-formed"),
        (urlset("/a").replace("</urlset>", "<url></loc>"), "not well-formed"),
        (urlset("/a").replace("</urlset>", "<a>" * 60), "in one another"),
        (
            gzip.compress((urlset("/a") + " " * 99_999).encode(), mtime=0)[:-9],
            "the gzipped body ends early",
        ),
    ],
)
def test_entries_before_error_are_kept(body: str | bytes, problem: str) -> None:
    sitemap = read(body.encode() if isinstance(body, str) else body, URL)
    assert [entry.url for entry in sitemap.entries] == ["https://example.com/a"]
    assert sitemap.usable
    assert problem in (sitemap.problem or "")


# --- parts --------------------------------------------------------------------------------------


def test_sitemap_is_read_in_parts_without_gap() -> None:
    body = urlset("/0", "/1", "/2", "/3").replace("https://example.com/2", "nonsense").encode()
    first = read(body, URL, count=3)
    assert [entry.url[-1] for entry in first.entries] == ["0", "1"]
    assert (first.listed, first.more, first.dropped) == (3, True, {Refusal.INVALID: 1})
    second = read(body, URL, first=first.listed, count=3)
    assert [entry.url[-1] for entry in second.entries] == ["3"]
    assert (second.listed, second.more, second.dropped) == (4, False, {})
    beyond = read(body, URL, first=4, count=3)
    assert (beyond.entries, beyond.listed, beyond.usable) == ((), 4, True)


def test_text_sitemap_is_read_in_parts() -> None:
    body = ("https://example.com/0\n" + "nonsense\n" * 3_000).encode()
    part = read(body, URL, first=2, count=3_000)
    assert (part.format, part.usable, part.listed) == (SitemapFormat.TEXT, True, 3_001)


def test_urls_beyond_limit_are_dropped_and_counted() -> None:
    """A file has up to 50,000 URLs; up to 9,999 more are counted but not kept (case 65)."""
    lines = "".join(f"https://example.com/{place}\n" for place in range(LISTED_MAX - 1))
    sitemap = read(lines.encode(), URL)
    assert len(sitemap.entries) == ENTRIES_MAX
    assert (sitemap.dropped, sitemap.more, sitemap.problem) == ({Refusal.CUT: 9_999}, False, None)


def test_entries_are_canonical_by_tracking_list_of_crawl() -> None:
    body = urlset("/a?ref=1&amp;utm_x=2").encode()
    assert urls(body) == ["https://example.com/a?ref=1"]
    (entry,) = read(body, URL, tracking=frozenset({"ref"})).entries
    assert entry.url == "https://example.com/a?utm_x=2"


# --- dates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026", "2026-12-31T23:59:59.999+00:00"),
        ("2026-02", "2026-02-28T23:59:59.999+00:00"),
        ("2024-12", "2024-12-31T23:59:59.999+00:00"),
        (" 2026-11-21\n", "2026-11-21T23:59:59.999+00:00"),
        ("2026-11-21T09:30Z", "2026-11-21T09:30:00+00:00"),
        ("1970-01-01T00:00Z", "1970-01-01T00:00:00+00:00"),
        ("2026-11-21T09:30+01:00", "2026-11-21T08:30:00+00:00"),
        ("2026-11-21T09:30:15-0530", "2026-11-21T15:00:15+00:00"),
        ("2026-11-21t09:30:15.25+02", "2026-11-21T07:30:15.250+00:00"),
        ("2026-11-21 09:30:15", "2026-11-21T09:30:15+00:00"),
        ("2026-11-21T09:30:15.123456789Z", "2026-11-21T09:30:15.123+00:00"),
        ("Sat, 21 Nov 2026 09:30:15 GMT", "2026-11-21T09:30:15+00:00"),
        ("21 Nov 26 09:30:15", "2026-11-21T09:30:15+00:00"),
    ],
)
def test_dates_of_w3c_and_mail_are_parsed(text: str, moment: str) -> None:
    assert moment_ms(text) == round(datetime.fromisoformat(moment).timestamp() * 1000)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-13-01", "2026-02-30", "2026-11-21T25:00Z", "9999", "0000"),
        *("1969-12-31", "2026-11-21T09:30+99:99", "1" * 1_000, "Sat, 99 Nov 2026 99:99:99 GMT"),
        "٢٠٢٦",
    ],
)
def test_invalid_date_is_ignored(text: str) -> None:
    """An invalid date does not reject the entry (case 65)."""
    assert moment_ms(text) is None


# --- the corpus of crawler-commons --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form", "count", "first"),
    [
        ("atom.xml", "feed", 1, "http://example.org/2003/12/13/atom03.html"),
        ("do-not-visit.txt", "text", 1, "http://www.example.com/do-not-visit-here"),
        ("feed.rss", "rss", 4, "https://www.example.com/blog/post/1"),
        ("hebdenbridgetimes-articles-sitemap.xml", "urlset", 74,
         ("http://www.hebdenbridgetimes.co.uk/news/local/"
          "video-tour-de-yorkshire-in-calderdale-1-7242580")),
        ("pagemaps-sitemap.xml", "urlset", 2, "http://www.example.com/foo"),
        ("shinpaideshou-news-sitemap.xml", "urlset", 3,
         ("https://shinpaideshou.wordpress.com/2017/04/25/"
          "job-opening-reischauer-policy-research-fellow/")),
        ("sitemap-images.xml", "urlset", 1,
         "http://www.example.com/images/some_image_landing_page.html"),
        ("sitemap-links.xml", "urlset", 3, "http://www.example.com/english/"),
        ("sitemap-mobile.xml", "urlset", 3, "http://www.example.com/mobile-friendly-1/"),
        ("sitemap-news.xml", "urlset", 2, "http://www.example.org/business/article55.html"),
        ("sitemap-videos-tvshow.xml", "urlset", 1, "https://example.org/my-tv-show/23/13/"),
        ("sitemap-videos.xml", "urlset", 3,
         "http://www.example.com/videos/some_video_landing_page.html"),
        ("sitemap-with-bom.txt", "text", 2, "http://www.domain.com/page1.html"),
        ("sitemap.badns.xml", "urlset", 2, "http://www.example.com/1"),
        ("sitemap.index.xml", "sitemapindex", 15,
         "https://example.com/sitemap.jss?portalCode=10260&lang=en"),
        ("sitemap.ns.xml", "urlset", 2, "http://www.example.com/1"),
        ("sitemap.txt", "text", 2, "http://www.domain.com/page1.html"),
        ("sitemap.txt.gz", "text", 5, "http://www.example.com/"),
        ("xmlRss_pubDate.xml", "rss", 7, "http://www.example.com/article_1"),
        ("xmlSitemap.gz", "urlset", 5, "http://www.example.com/"),
    ],
)  # fmt: skip
def test_corpus(name: str, form: str, count: int, first: str) -> None:
    sitemap = read(corpus(CORPUS, name).read_bytes(), "http://www.example.com/sitemap.xml")
    found = sitemap.entries + sitemap.sitemaps
    assert (sitemap.format, len(found), found[0].url) == (form, count, first)
    assert (sitemap.listed, dict(sitemap.dropped), sitemap.problem) == (count, {}, None)


def test_every_corpus_file_is_tested() -> None:
    folder = corpus(CORPUS)
    (parameters,) = getattr(test_corpus, "pytestmark")  # noqa: B009 - mypy does not know of it
    assert {case[0] for case in parameters.args[1]} == {path.name for path in folder.iterdir()}
