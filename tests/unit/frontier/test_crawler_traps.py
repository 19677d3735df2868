"""Crawler traps, recognized by the form of a URL and by the number of URLs per pattern."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest

from orbweaver.frontier.crawler_traps import (
    PATTERNS_MAX,
    Shares,
    is_reordered_index,
    patterns,
    trap_reason,
)
from orbweaver.model.outcome import Refusal
from orbweaver.model.url import Bounds, canonicalize
from tests.sites import bookshop

SITE = "https://example.com"
DEEP, AGAIN, QUERY = Refusal.PATH_DEPTH, Refusal.REPETITION, Refusal.QUERY
MANUALS = {
    "python": Path("/usr/share/doc/python3.11/html"),
    "postgresql": Path("/usr/share/doc/postgresql-doc-15/html"),
}


@pytest.mark.parametrize(
    ("tail", "refusal"),
    [
        ("/", None),
        ("/2011/11/11/11.html", None),
        ("/" + "/".join(map(str, range(20))) + "/", None),
        ("/" + "/".join(map(str, range(21))), DEEP),
        ("/a/a/b", None),
        ("/a/b/a/b", None),
        ("/a/a/a", AGAIN),
        ("/a/a/a/", AGAIN),
        ("/a/b/a/b/a/b", AGAIN),
        ("/a/x/b/a/y/c/a", AGAIN),
        ("/a//b", None),
        ("/a////b", AGAIN),
        ("/A/a/A/a/", None),
        ("/aa/a/aaa/a", None),
        ("/x?q=/a/a/a/a", None),
        ("/x?" + "&".join(f"p{n}=1" for n in range(20)), None),
        ("/x?" + "&".join(f"p{n}=1" for n in range(21)), QUERY),
        ("/x?tag=a&tag=b&tag=c&tag=d", None),
        ("/x?a=1&a=1", None),
        ("/x?a=1&a=1&a=1", QUERY),
        ("/x?q=" + "y" * 998, None),
        ("/x?q=" + "y" * 999, QUERY),
    ],
)
def test_trap_like_path_or_query_is_refused(tail: str, refusal: Refusal | None) -> None:
    """Examples: deep paths, one segment three times, growing queries (cases 70 and 72)."""
    assert trap_reason(SITE + tail) is refusal


@pytest.mark.parametrize(
    ("origin", "refusal"),
    [
        ("http://www.www.example.com", None),
        ("http://a.a.a.example.com", AGAIN),
        ("https://" + ".".join(f"x{n}" for n in range(21)), DEEP),
        ("http://1.1.1.1", None),
        ("http://[1:1:1:1:1:1:1:1]:8080", None),
    ],
)
def test_growing_host_name_is_refused(origin: str, refusal: Refusal | None) -> None:
    """DNS wildcards answer any name. IP addresses may repeat parts (case 74)."""
    assert trap_reason(f"{origin}/x") is refusal


@pytest.mark.parametrize(
    ("page", "link", "same"),
    [
        ("/pub/", "?C=N;O=D", True),
        ("/pub/?C=N;O=D", "?C=D;O=A", True),
        ("/", "?C=S;O=A;F=2;V=1;P=*.c", True),
        ("/pub/", "?C=M&O=A", True),
        ("/pub/", "/pub/", False),
        # Another page may be the only link to the index.
        ("/", "/pub/?C=M;O=D", False),
        ("/pub/a/", "/pub/?C=M;O=D", False),
        # An application that sorts something else.
        ("/pub/", "?C=N", False),
        ("/pub/", "?C=X;O=D", False),
        ("/pub/", "?C=N;O=U", False),
        ("/pub/", "?C=N&O=D&page=2", False),
        ("/pub/", "?O=D;C=N", False),
        ("/pub/", "?q=/?C=N;O=D", False),
        ("/list.php", "?C=N;O=D", False),
        ("/shop/", "?sort=name&order=asc", False),
    ],
)
def test_reorders_recognizes_index_order_links(page: str, link: str, *, same: bool) -> None:
    """Web servers write these parameters in folder indexes."""
    page_url = canonicalize(SITE + page)
    assert is_reordered_index(canonicalize(link, page_url), page_url) is same


def test_trap_bounds_are_configurable() -> None:
    narrow = Bounds(path_segments_max=1, repeats_max=1, query_parameters_max=1, query_chars_max=5)
    assert trap_reason("http://h/a", narrow) is None
    assert trap_reason("http://h/a/b", narrow) is DEEP
    assert trap_reason("http://h.x/", narrow) is DEEP
    assert trap_reason("http://h/a/b/a", Bounds(repeats_max=1)) is AGAIN
    assert trap_reason("http://h/a?b&c", narrow) is QUERY
    assert trap_reason("http://h/a?123456", narrow) is QUERY


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # A calendar (69), a session in the path and in the query (71), shuffled parameters (72).
        ("/cal/2026/11/?month=1", "/cal/2031/2/?month=12", True),
        ("/(S(lit3py55t21z5v55vlm25s55))/a", "/(S(55s52mlv55v5z12t55yp3til))/b", True),
        (
            "/550e8400-e29b-41d4-a716-446655440000/a",
            "/123e4567-e89b-12d3-a456-426614174000/b",
            True,
        ),
        ("/a?s=x&page=2", "/a?page=3&s=y", True),
        ("/a?item1=x", "/a?item2=y&item3", True),
        # Growing names (77) are in one folder.
        ("/x", "/xx", True),
        # Words and escapes differ.
        ("/a/x", "/b/x", False),
        ("/a?b=1", "/a?c=1", False),
        ("/a?b=1", "/c?b=1", False),
        ("/%C3%A9/", "/%C3%A8/", False),
        ("/%31/", "/%32/", False),
    ],
)
def test_pattern_ignores_numbers_ids_and_parameter_order(
    one: str, other: str, *, same: bool
) -> None:
    assert (patterns(SITE + one)[-1] == patterns(SITE + other)[-1]) is same


def test_pattern_merges_numbered_hosts() -> None:
    assert patterns("http://x1.example.com/") == patterns("http://x22.example.com/")
    assert patterns("http://example.com:8001/") != patterns("http://example.com:8002/")
    assert patterns("http://10.0.0.1/") != patterns("http://10.0.0.2/")
    assert patterns("http://[::1]/") != patterns("http://[::2]/")


def test_urls_beyond_share_of_pattern_are_refused() -> None:
    """Other folders, hosts and crawls are not affected (cases 69, 71, 77)."""
    shares = Shares(Bounds(folder_urls_max=5, query_urls_max=3))
    calendar = [f"{SITE}/cal?month={month}" for month in range(10)]
    assert shares.take("c", calendar[:3]) == set()
    assert shares.take("c", calendar[3:]) == set(calendar[3:])
    grown = [f"{SITE}/{'x' * size}" for size in range(1, 5)]
    assert shares.take("c", grown) == set(grown[2:])
    others = [f"{SITE}/docs/{name}" for name in "abc"] + ["https://other.example/cal?month=1"]
    assert shares.take("c", others) == set()
    assert shares.take("another", calendar[:3]) == set()


def test_share_memory_is_bounded_and_keeps_traps() -> None:
    """Patterns with few URLs are evicted first."""
    shares = Shares(Bounds(folder_urls_max=3))
    shares.take("c", [f"{SITE}/trap/{number}" for number in range(3)])
    letters = ("".join(word) for word in product("abcdefghijklmnopqrstuvwxyz", repeat=3))
    shares.take("c", (f"{SITE}/{word}/{folder}/" for word in letters for folder in "ab"))
    assert len(shares._taken) <= PATTERNS_MAX
    assert shares.take("c", [f"{SITE}/trap/9"]) == {f"{SITE}/trap/9"}


class _Links(HTMLParser):
    """Collects the links of manual pages."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found |= {value for name, value in attrs if name == "href" and value}


@pytest.mark.parametrize("manual", MANUALS)
def test_urls_of_large_manuals_are_not_refused(manual: str) -> None:
    root = MANUALS[manual]
    if not root.is_dir():
        pytest.skip(f"the {manual} manual is not installed")
    urls = set()
    for number, file in enumerate(sorted(root.rglob("*.html"))):
        page = f"{SITE}/{file.relative_to(root)}"
        urls.add(page)
        if number % 10 == 0:
            links = _Links()
            links.feed(file.read_text("utf-8", "replace"))
            urls |= {canonicalize(link, page) for link in links.found if link[:7] != "mailto:"}
    assert len(urls) > 500
    assert {url for url in urls if trap_reason(url)} == set()
    assert Shares().take("c", urls) == set()


def test_urls_of_demo_shop_are_not_refused() -> None:
    found = bookshop.Bookshop().expected(SITE).as_json()
    urls = {url for urls in found.values() for url in urls}
    assert len(urls) > 1_400
    assert {url for url in urls if trap_reason(url)} == set()
    assert Shares().take("c", urls) == set()


@pytest.mark.long
def test_longest_urls_take_little_cpu() -> None:
    """Tested with the most expensive shapes of the longest URLs (case 66)."""
    before = time.process_time()
    for tail in ("/a" * 1_000, "/?" + "a&" * 1_000, "/" + "a1" * 1_000, "/" + "0a-" * 600):
        trap_reason(SITE + tail)
        patterns(SITE + tail)
    assert time.process_time() - before < 0.2
