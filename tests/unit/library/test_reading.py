"""The functions for Python programs: results of a crawl, and clear errors."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tomllib
import typing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import orbweaver
from orbweaver.control.definition import read as read_definition
from orbweaver.frontier.stored_content import Keeping, content_to_store
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.url import canonicalize
from orbweaver.parsing.main_text import main_text
from orbweaver.parsing.page import parse
from orbweaver.politeness.robots_txt import parse as parse_robots
from orbweaver.worker.page_reading import ReadingJob, read

FUNCTIONS = Path(orbweaver.__file__).parents[1]
URL = "https://example.com/books/1?utm_source=x"
HTML = """
<html lang="de"><title>Bücher</title><nav><a href="/">Anfang</a></nav>
<main><h1>Der Zauberberg</h1><p class="price">12,50 €</p><p>Ein Roman, <a href="2#a">und noch
einer</a>.</p></main></html>
""".encode("iso-8859-15")
TYPE = "text/html; charset=iso-8859-15"
RULES = tomllib.loads("""
[[items]]
name = "books"
match = "/books/"
[items.fields]
title = "h1"
price = { css = ".price", type = "price", required = true }
""")["items"]
ROBOTS = """
User-agent: *
Disallow: /käse
Disallow: /*?utm_source=
Crawl-delay: 2.5
Sitemap: https://example.com/sitemap.xml
""".encode()


# --- results ------------------------------------------------------------------------------------


def test_page_has_links_items_and_markdown_of_worker() -> None:
    answer = Response(status=200, headers={"content-type": TYPE}, body=HTML)
    keeping = Keeping(bodies=Bodies.OFF, texts=True)
    rules = read_definition({"items": RULES})[0].items
    job = ReadingJob(url=canonicalize(URL), at_ms=0, answer=answer, items=rules, keeping=keeping)
    found = read(job)
    page = orbweaver.parse_page(HTML, URL, TYPE)
    assert page == found.page
    assert page.title == "Bücher"
    assert page.links == ("https://example.com/", "https://example.com/books/2")
    assert orbweaver.extract(RULES, HTML, URL, TYPE) == found.items
    assert found.items is not None
    assert found.items[0].fields == {
        "title": "Der Zauberberg",
        "price": "12.50",
        "price_currency": "EUR",
    }
    stored = content_to_store(keeping, answer, found.page).document
    assert stored is not None
    markdown = orbweaver.to_markdown(HTML, URL, TYPE)
    assert markdown.startswith("# Der Zauberberg\n")
    assert "[und noch einer](https://example.com/books/2" in markdown
    assert markdown == stored["markdown"]


@pytest.mark.parametrize(
    ("reference", "base"),
    [
        ("HTTPS://Example.com:443/a/../b?utm_source=x&id=7#part", None),
        ("../c d", "https://example.com/a/b/"),
        ("//example.org/", "http://example.com/"),
        ("https://user:password@example.com/", ""),
    ],
)
def test_url_of_reference_is_canonical(reference: str, base: str | None) -> None:
    assert orbweaver.canonicalize(reference, base) == canonicalize(reference, base)


def test_robots_txt_is_applied_as_in_a_crawl() -> None:
    robots, own = orbweaver.parse_robots(ROBOTS), parse_robots(ROBOTS)
    assert not robots.allows("orbweaver", "https://EXAMPLE.com/käse")
    assert not robots.allows("orbweaver", "https://example.com/?utm_source=x")
    assert robots.allows("orbweaver/1.0 (+https://example.com/bot)", "https://example.com")
    assert robots.crawl_delay("orbweaver") == own.crawl_delay("orbweaver") == 2.5
    assert robots.sitemaps == own.sitemaps == ("https://example.com/sitemap.xml",)
    assert orbweaver.parse_robots(b"").crawl_delay("orbweaver") is None


def test_rule_of_other_urls_finds_no_items() -> None:
    assert orbweaver.extract(RULES, HTML, "https://example.com/about") == ()


@pytest.mark.parametrize("body", [b"", b"\0\xff<a href", bytearray(b"<p>a"), memoryview(b"<p>a")])
def test_any_bytes_are_read_without_error(body: Any) -> None:
    assert orbweaver.parse_page(body, URL).links == ()
    assert orbweaver.parse_robots(body).allows("a", URL)
    assert orbweaver.extract(RULES, body, URL)[0].problems
    assert isinstance(orbweaver.to_markdown(body, URL), str)


# --- errors -------------------------------------------------------------------------------------

# Arguments that a type checker would refuse.
ANY: Any = orbweaver


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ANY.canonicalize("/a"), ValueError, "or as `base` the page"),
        (lambda: ANY.canonicalize("/a", "b"), ValueError, "base 'b' is no URL of the web"),
        (lambda: ANY.canonicalize("tel:1", URL), ValueError, "not an http or https URL"),
        (lambda: ANY.canonicalize(b"/a"), TypeError, "of type bytes: decode it"),
        (lambda: ANY.canonicalize("/a", 1), TypeError, "base cannot be of type int"),
        (lambda: ANY.parse_robots("User-agent: *"), TypeError, "text.encode()"),
        (lambda: ANY.parse_robots(b"").allows("a", "/b"), ValueError, "give a whole URL"),
        (lambda: ANY.parse_robots(b"").allows(None, URL), TypeError, "agent cannot be None"),
        (lambda: ANY.parse_robots(b"").crawl_delay(1), TypeError, "agent cannot be"),
        (lambda: ANY.parse_page("<p>", URL), TypeError, "text.encode()"),
        (lambda: ANY.parse_page(b"", "page.html"), ValueError, "give a whole URL"),
        (lambda: ANY.parse_page(b"", URL, b"text/html"), TypeError, "content_type cannot"),
        (lambda: ANY.to_markdown(None, URL), TypeError, "body cannot be None"),
        (lambda: ANY.extract(RULES[0], HTML, URL), TypeError, "give a list of tables"),
        (lambda: ANY.extract("h1", HTML, URL), TypeError, "give a list of tables"),
        (lambda: ANY.extract([{}] * 99, HTML, URL), ValueError, "give at most 20"),
        (lambda: ANY.extract([{}], HTML, URL), ValueError, "items[0].match: there is none"),
    ],
)
def test_error_of_wrong_argument_names_fix(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


@pytest.mark.parametrize("function", ["as_html", "needs_rendering", "resolved"])
def test_page_reader_with_fault_returns_empty_page(
    function: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(*_given: object) -> None:
        raise KeyError("href")

    monkeypatch.setattr(f"orbweaver.parsing.page.{function}", fault)
    html = b"<link rel=canonical href=/c><p>Some text.</p>"
    page = orbweaver.parse_page(html, URL)
    assert (page.links, page.text, page.cut) == ((), "", (("unread", 1),))
    assert orbweaver.to_markdown(html, URL) == ""
    assert len(orbweaver.extract(RULES, html, URL)) <= 1
    (logged,) = {record.message for record in caplog.records}
    assert logged == "page.unreadable"


LARGE = HTML + b"<p>x</p>" * 1_000
# 1,000 tags make a tree of 500,000 elements.
HOSTILE = b"<a href=/c>" + b"".join(b"<p><font x=%d>" % at for at in range(1_000))


def test_large_page_read_in_child_equals_page_read_in_place() -> None:
    page = parse(LARGE, canonicalize(URL), TYPE)
    assert orbweaver.extract(RULES, LARGE, URL, TYPE) == orbweaver.extract(RULES, HTML, URL, TYPE)
    assert orbweaver.to_markdown(LARGE, URL, TYPE) == main_text(page.html, page.base).markdown
    longest = LARGE + b"<i></i>" * 50_000
    page = parse(longest, canonicalize(URL), TYPE)
    found = orbweaver.parse_page(longest, URL, TYPE)
    assert found == page
    assert found.text == page.text


def test_page_over_budget_is_left_out_with_reason(caplog: pytest.LogCaptureFixture) -> None:
    (item,) = orbweaver.extract(RULES, HOSTILE, URL)
    assert item.problems == ("reading its items: more than 160 MB",)
    assert orbweaver.to_markdown(HOSTILE, URL) == ""
    assert caplog.messages == ["page.costly"]
    assert orbweaver.parse_page(HOSTILE, URL).links == ("https://example.com/c",)


async def test_program_with_event_loop_reads_large_page() -> None:
    assert orbweaver.extract(RULES, LARGE, URL, TYPE)[0].fields["title"] == "Der Zauberberg"


def test_forked_process_reads_large_page_in_child_of_its_own() -> None:
    orbweaver.to_markdown(LARGE, URL, TYPE)
    forking = multiprocessing.get_context("fork")
    with forking.Pool(1) as pool:
        forked = pool.apply(orbweaver.to_markdown, (LARGE, URL, TYPE))
    assert forked == orbweaver.to_markdown(LARGE, URL, TYPE) != ""


def test_all_problems_of_rules_are_raised_at_once() -> None:
    wrong: list[dict[str, Any]] = [
        {"name": "a", "match": "(", "fields": {"b": "h1["}},
        {"name": "a", "match": "c"},
    ]
    with pytest.raises(ValueError, match="regular expression") as raised:
        orbweaver.extract(wrong, HTML, URL)
    for path in ("items[0].match: ", "items[0].fields.b.css: ", "items[1].name: "):
        assert path in str(raised.value)


# --- the package --------------------------------------------------------------------------------

OUTSIDE = """
import json, sys
import orbweaver
before = sorted(name for name in sys.modules if name.startswith("orbweaver."))
offered = {name: getattr(orbweaver, name).__doc__ for name in orbweaver.__all__}
from orbweaver import *
print(json.dumps({
    "file": orbweaver.__file__,
    "before": before,
    "offered": offered,
    "dir": dir(orbweaver),
    "url": canonicalize("b?utm_source=x", "https://example.com/a"),
    "delay": parse_robots(b"User-agent: *\\nCrawl-delay: 3").crawl_delay("me"),
    "title": parse_page(b"<title>T</title>", "https://example.com/").title,
    "items": [item.fields for item in extract(
        [{"name": "a", "match": ".", "fields": {"t": "h1"}}], b"<h1>T", "https://example.com/")],
    "markdown": to_markdown(b"<h1>T</h1>", "https://example.com/"),
    "heavy": [name for name in ("aiohttp", "botocore", "rich", "aws_cdk") if name in sys.modules],
}))
"""


def test_package_works_from_outside_with_lazy_imports(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OUTSIDE],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": str(FUNCTIONS)},
        check=True,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)
    assert Path(told["file"]) == FUNCTIONS / "orbweaver" / "__init__.py"
    assert told["before"] == []
    assert all(told["offered"].values())
    assert set(orbweaver.__all__) <= set(told["dir"])
    assert (told["url"], told["delay"], told["title"]) == ("https://example.com/b", 3, "T")
    assert (told["items"], told["markdown"], told["heavy"]) == ([{"t": "T"}], "# T", [])


def test_public_names_are_typed_documented_and_listed() -> None:
    assert (FUNCTIONS / "orbweaver" / "py.typed").is_file()
    assert orbweaver.__all__ == sorted(orbweaver.__all__)
    for name in orbweaver.__all__:
        offered = getattr(orbweaver, name)
        assert offered is getattr(import_module(offered.__module__), name)
        assert offered.__doc__
        if not isinstance(offered, type):
            hints = typing.get_type_hints(offered)
            assert hints.keys() == {*offered.__annotations__}
            assert "return" in hints


def test_unknown_name_of_package_is_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'parse_pages'"):
        _ = ANY.parse_pages
