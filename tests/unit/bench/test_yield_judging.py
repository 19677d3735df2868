"""Yield benchmark: number of articles found over time, read from an access log."""

from __future__ import annotations

import pytest

from bench.yields import judging, mediawiki, repositories, static
from bench.yields.judging import Request, Truth

TRUTH = Truth(articles=frozenset({"/a", "/b", "/c", "/d"}), aliases={"/short": "/b"})


def request(target: str, *, status: int = 200, method: str = "GET") -> Request:
    return Request(at_us=0, status=status, method=method, target=target)


def found(*requests: Request) -> list[int]:
    """Return the number of new articles per request; each target is its own key."""
    return judging.novel(requests, TRUTH, lambda target: [target])


def test_requests_are_sorted_by_start() -> None:
    """The server logs a request when it ends."""
    lines = ["30\t200\tGET /third HTTP/1.1\n", "10\t200\tGET /slow HTTP/1.1\n"]
    lines += ["20\t404\tHEAD /second HTTP/1.1\n"]
    assert [
        (request.target, request.status, request.method) for request in judging.requests_of(lines)
    ] == [("/slow", 200, "GET"), ("/second", 404, "HEAD"), ("/third", 200, "GET")]


def test_requests_before_crawl_start_are_ignored() -> None:
    lines = ["10\t200\tGET /before HTTP/1.1\n", "20\t408\t-\n", "20\t200\tGET /its HTTP/1.1\n"]
    assert [request.target for request in judging.requests_of(lines, since_us=20)] == ["/its"]


@pytest.mark.parametrize("line", ["10 200 GET / HTTP/1.1", "x\t200\tGET /", ""])
def test_log_of_other_format_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        judging.requests_of([line])


def test_escaped_bytes_of_log_are_percent_encoded() -> None:
    r"""Apache writes `\xe4` for a byte."""
    line = '1\t200\tGET /m\\xc3\\xa4rz\\"\\\\x HTTP/1.1'
    assert judging.requests_of([line])[0].target == '/m%c3%a4rz"\\x'


def test_article_is_found_once_under_any_url() -> None:
    asked = [request(target) for target in ("/short", "/b", "/a", "/a", "/else")]
    assert found(*asked) == [1, 0, 1, 0, 0]


def test_only_successful_get_finds_article() -> None:
    assert found(
        request("/a", status=301), request("/a", status=304), request("/a", status=500)
    ) == [0, 0, 0]
    assert found(request("/a", method="HEAD"), request("/a", method="POST")) == [0, 0]


def test_share_is_missing_after_end_of_crawl() -> None:
    counts = [1, 0, 1, 1, 0]
    assert judging.shares(counts, 4, [1, 4, 5, 6]) == [0.25, 0.75, 0.75, None]


def test_area_rewards_early_articles() -> None:
    assert judging.area([2, 2, 0, 0], 4, 4) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert judging.area([0, 0, 2, 2], 4, 4) == pytest.approx((0 + 0 + 0.5 + 1) / 4)
    assert judging.area([2, 2], 4, 4) == judging.area([2, 2, 0, 0], 4, 4)
    assert judging.area([], 4, 4) == 0


def test_verdict_has_found_articles_and_shares() -> None:
    requests = [request("/a"), request("/a?sort=up"), request("/b?sort=up"), request("/b")]
    verdict = judging.judged(requests, TRUTH, lambda target: [target], [2, 5])
    assert verdict["found"] == 2
    assert verdict["shares"] == {"2": 0.25, "5": None}


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("/index.php/Main_Page", ["Main_Page"]),
        ("/index.php/talk:some_page", ["Talk:Some_page"]),
        ("/index.php?title=some%20page", ["Some_page"]),
        ("/index.php?title=%C3%89t%C3%A9", ["Été"]),
        ("/index.php?title=A&action=view", ["A"]),
        ("/index.php?title=A&action=edit", []),
        ("/index.php?title=A&oldid=7", []),
        ("/index.php?title=A&redirect=no", []),
        ("/index.php/A?diff=7", []),
        ("/load.php?title=A", []),
        ("/", []),
    ],
)
def test_mediawiki_key_is_current_text_of_page(target: str, keys: list[str]) -> None:
    assert list(mediawiki.keys_of(target)) == keys


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("/web.git/tree/a/b.py", ["file a/b.py"]),
        ("/web.git/tree/a/b.py?id=1", ["file a/b.py"]),
        ("/web.git/plain/a/b.py?h=main", ["file a/b.py"]),
        ("/web.git/commit/?id=0af", ["commit 0af"]),
        ("/web.git/commit/a/b.py?id=0af", []),
        ("/web.git/tree/", []),
        ("/web.git/diff/a/b.py?id=0af", []),
        ("/web.git/log/a/b.py", []),
        ("/", []),
    ],
)
def test_cgit_key_is_whole_file_or_commit(target: str, keys: list[str]) -> None:
    assert list(repositories.cgit_keys(target)) == keys


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("/?p=web.git;a=blob;f=a/b.py;h=1;hb=2", ["file a/b.py"]),
        ("/?p=web.git&a=blob_plain&f=a/b.py", ["file a/b.py"]),
        ("/?p=web.git;a=commit;h=0af", ["commit 0af"]),
        ("/?p=web.git;a=blobdiff;f=a/b.py;h=1", []),
        ("/?p=web.git;a=history;f=a/b.py", []),
        ("/?p=web.git;a=blob;h=1", []),
    ],
)
def test_gitweb_key_is_whole_file_or_commit(target: str, keys: list[str]) -> None:
    assert list(repositories.gitweb_keys(target)) == keys


def test_autoindex_key_excludes_sorted_listings() -> None:
    assert list(static.keys_of("/docs/?C=N;O=D")) == []
    assert list(static.keys_of("/docs/a%20b/")) == ["/docs/a b/"]
    assert list(static.keys_of("/docs/a.html?x=1")) == ["/docs/a.html"]
