"""The scope of an erasure: the URLs, hosts and crawls it covers, and mentions in texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.erasure.scope import ErasureScope, scope_of_crawl, scope_of_host, scope_of_url
from orbweaver.model.crawl import Crawl
from orbweaver.model.url import URL_CHARS_MAX

URL = "https://example.org/people/jane"
WHOLE = ErasureScope(urls=frozenset({URL}))
NAMED = ErasureScope(host="example.org")
CRAWL = Crawl(id="c-1", name="c", started_at_ms=0)


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        (URL, True),
        (f"see {URL}.", True),
        (f"see {URL}. It is", True),
        (f"({URL})…", True),
        (f"{URL}...", True),
        (f"do you know {URL}?", True),
        (f"{URL}?!", True),
        (f"{URL}#top", True),
        (f"{URL}, and", True),
        (f"{URL}.html", False),
        (f"{URL}..html", False),
        (f"{URL}?a=1", False),
        (f"{URL}?=", False),
        (f"{URL}/", False),
        (f"{URL}./", False),
        (f"{URL}-roe", False),
        (f"{URL}0", False),
        (f"{URL}%20", False),
        (f"{URL}~", False),
        (f"{URL}&a", False),
        (f"x{URL}", False),
        (f"/{URL}", False),
        ("", False),
        (None, False),
    ],
)
def test_url_in_text_is_matched_exactly(text: str | None, *, mentioned: bool) -> None:
    assert WHOLE.text(text) is mentioned
    line = (text or "").encode()
    assert WHOLE.line(line) is mentioned
    assert WHOLE.bytes(line) is mentioned
    nothing = replace(WHOLE, urls=frozenset())
    assert not any((nothing.text(text), nothing.line(line), nothing.bytes(line)))


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("https://example.org", True),
        ("see http://example.org.", True),
        ("see http://example.org. It", True),
        ("//example.org:8080/a", True),
        ("https://jane:pw@example.org/", True),
        ("https://example.org.uk/", False),
        ("https://example.org-x/", False),
        ("https://example.organic/", False),
        ("https://an.example.org/", False),
        ("https://other.example/a@example.org", False),
        ("example.org", False),
    ],
)
def test_host_in_text_is_matched_exactly(text: str, *, mentioned: bool) -> None:
    assert NAMED.text(text) is mentioned
    assert NAMED.bytes(text.encode()) is mentioned
    assert ErasureScope(host="https://example.org").text(text) is mentioned


@pytest.mark.parametrize(
    ("body", "mentioned"),
    [
        ('<a href="/people/jane">', True),
        (r'{"url": "https:\/\/example.org\/people\/jane"}', True),
        ("<a href='/people/jane#x'>", True),
        ('<a href="/people/jane/cv">', False),
        ('<a href="/people/jane0">', False),
        ('<a href="/a/people/jane">', False),
    ],
)
def test_path_in_body_is_matched_exactly(body: str, *, mentioned: bool) -> None:
    """Links within the site contain only the path; texts and rows must contain the whole URL."""
    assert WHOLE.bytes(body.encode()) is mentioned
    assert not WHOLE.text('<a href="/people/jane">')
    root = ErasureScope(urls=frozenset({"https://example.org/"}))
    assert not root.bytes(b'<a href="/">')


def test_url_is_matched_in_html_escaping() -> None:
    scope = ErasureScope(urls=frozenset({f"{URL}?a=1&b=2"}))
    assert scope.bytes(b'<a href="/people/jane?a=1&amp;b=2">')
    assert scope.bytes(b'<a href="/people/jane?a=1&b=2">')


@pytest.mark.parametrize(
    ("reference", "in_scope"),
    [
        (URL, True),
        ("HTTPS://EXAMPLE.ORG:443/people/jane#top", True),
        (f"{URL}?utm_source=x", True),
        (f"{URL}?a=1", False),
        ("https://example.org/people/", False),
        ("no url", False),
        (f"{URL}?a={'x' * 3_000}", False),
    ],
)
def test_reference_is_matched_in_any_spelling(reference: str, *, in_scope: bool) -> None:
    assert WHOLE.reference(reference) is in_scope


def test_reference_with_tracking_parameters_is_matched() -> None:
    tracked = f"{URL}?utm_source=x"
    assert ErasureScope(urls=frozenset({tracked})).reference(f"{tracked}#a")
    assert not ErasureScope(urls=frozenset({tracked})).reference(URL)


def test_url_exceeding_length_for_some_crawls() -> None:
    long = f"{URL}?{'&'.join(f'utm_{place}={place}' for place in range(400))}"
    kept = replace(CRAWL, tracking=())
    tracking = tuple(f"utm_{place}" for place in range(400))
    assert len(long) > URL_CHARS_MAX
    assert scope_of_url(long, []).urls == {URL}
    with pytest.raises(ValueError, match="longer"):
        scope_of_url(f"{URL}?a={'x' * URL_CHARS_MAX}", [])
    long = f"{URL}?utm_source={'x' * (URL_CHARS_MAX - len(URL) - 12)}"
    assert len(long) == URL_CHARS_MAX
    assert scope_of_url(long, [kept, replace(CRAWL, tracking=tracking)]).urls == {URL, long}
    assert scope_of_url(f"{long}x", [kept, CRAWL]).urls == {URL}


@pytest.mark.parametrize(
    ("url", "in_scope"),
    [("https://example.org/x", True), ("https://example.org", True), ("", False), (None, False)],
)
def test_host_scope_matches_all_urls_of_host(url: str | None, *, in_scope: bool) -> None:
    assert NAMED.url(url) is in_scope
    assert not NAMED.url("mailto://example.org/x")


@pytest.mark.parametrize(
    ("named", "host"),
    [
        (" Example.ORG/ ", "example.org"),
        ("example.org:8080", "example.org:8080"),
        ("https://example.org/", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
    ],
)
def test_scope_of_host_accepts_name_port_or_scheme(named: str, host: str) -> None:
    assert scope_of_host(named, mentions=True) == ErasureScope(host=host, mentions=True)


def test_scope_of_crawl_with_id_covers_one_run() -> None:
    second = replace(CRAWL, id="c-2")
    assert scope_of_crawl("c-1", [CRAWL, second], {}) == ErasureScope(runs=frozenset({"c-1"}))
    assert scope_of_crawl("c-0", [CRAWL], {"c-0": "c"}) == ErasureScope(runs=frozenset({"c-0"}))
    assert scope_of_crawl("c", [CRAWL], {"c-0": "c", "d-0": "d"}) == ErasureScope(
        runs=frozenset({"c", "c-0", "c-1"}), names=frozenset({"c"})
    )


def test_sample_without_query_is_matched() -> None:
    scope = ErasureScope(urls=frozenset({f"{URL}?a=1"}))
    assert scope.shown(f"{URL}?a=1")
    assert not scope.shown(URL)
    from orbweaver.model.url import redacted

    assert scope.shown(redacted(f"{URL}?a=1"))
