"""Yield: what an access log says of the articles that a crawl found, and in which order."""

from __future__ import annotations

import pytest

from bench.yields import autoindex, judging, mediawiki, repositories
from bench.yields.judging import Request, Truth

TRUTH = Truth(articles=frozenset({"/a", "/b", "/c", "/d"}), aliases={"/short": "/b"})


def request(target: str, *, status: int = 200, method: str = "GET") -> Request:
    """Make a request at no time in particular."""
    return Request(at_us=0, status=status, method=method, target=target)


def found(*requests: Request) -> list[int]:
    """Count what each finds where a target is its own key."""
    return judging.novel(requests, TRUTH, lambda target: [target])


def test_requests_are_put_in_the_order_in_which_they_began() -> None:
    """A server logs when an answer ends: what was asked first may be logged last."""
    lines = ["30\t200\tGET /third HTTP/1.1\n", "10\t200\tGET /slow HTTP/1.1\n"]
    lines += ["20\t404\tHEAD /second HTTP/1.1\n"]
    assert [
        (request.target, request.status, request.method) for request in judging.requests_of(lines)
    ] == [("/slow", 200, "GET"), ("/second", 404, "HEAD"), ("/third", 200, "GET")]


def test_what_began_before_the_crawl_is_not_of_it() -> None:
    """Answers to the crawler before that are logged late, and silent connections, are left out."""
    lines = ["10\t200\tGET /before HTTP/1.1\n", "20\t408\t-\n", "20\t200\tGET /its HTTP/1.1\n"]
    assert [request.target for request in judging.requests_of(lines, since_us=20)] == ["/its"]


@pytest.mark.parametrize("line", ["10 200 GET / HTTP/1.1", "x\t200\tGET /", ""])
def test_a_log_of_another_format_is_refused(line: str) -> None:
    """A line that cannot be read is an error, and not a request less."""
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        judging.requests_of([line])


def test_escapes_of_the_log_become_a_target_again() -> None:
    r"""Bytes that Apache writes as `\xe4` are of the URL, as if they had been sent encoded."""
    line = '1\t200\tGET /m\\xc3\\xa4rz\\"\\\\x HTTP/1.1'
    assert judging.requests_of([line])[0].target == '/m%c3%a4rz"\\x'


def test_an_article_is_found_once_under_whatever_url() -> None:
    """The second request for it, and the one for what shows it, too, find nothing."""
    asked = [request(target) for target in ("/short", "/b", "/a", "/a", "/else")]
    assert found(*asked) == [1, 0, 1, 0, 0]


def test_only_an_answered_get_finds() -> None:
    """A redirect to an article, an error, a HEAD and a POST show nothing of it."""
    assert found(
        request("/a", status=301), request("/a", status=304), request("/a", status=500)
    ) == [0, 0, 0]
    assert found(request("/a", method="HEAD"), request("/a", method="POST")) == [0, 0]


def test_shares_are_read_at_points_that_were_reached() -> None:
    """After the end of a crawl there is no share, not the last one again."""
    counts = [1, 0, 1, 1, 0]
    assert judging.shares(counts, 4, [1, 4, 5, 6]) == [0.25, 0.75, 0.75, None]


def test_the_mean_share_tells_early_from_late() -> None:
    """Two orders that find as much differ by when; a crawl that has ended keeps what it had."""
    assert judging.area([2, 2, 0, 0], 4, 4) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert judging.area([0, 0, 2, 2], 4, 4) == pytest.approx((0 + 0 + 0.5 + 1) / 4)
    assert judging.area([2, 2], 4, 4) == judging.area([2, 2, 0, 0], 4, 4)
    assert judging.area([], 4, 4) == 0


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/", "/"),
        ("/robots.txt", "/….txt"),
        ("/docs/big/deep/a", "/docs/big/…"),
        ("/index.php/Special:RecentChanges", "/index.php/Special:…"),
        ("/index.php?title=A&action=edit&section=3", "/index.php?action=edit&section=…&title=…"),
        ("/web.git/diff/a/b.py?id=0af", "/web.git/diff/….py?id=…"),
        ("/web.git/commit/?id=0af", "/web.git/commit/?id=…"),
        ("/?p=web.git;a=blob;f=x.py", "/?a=blob&f=…&p=…"),
        ("/docs/?C=N;O=D", "/docs/?C=…&O=…"),
        ("?only", "/?only=…"),
    ],
)
def test_a_kind_of_request_is_named(target: str, kind: str) -> None:
    """Pages of one kind share a name, and views of one page do not."""
    assert judging.kind_of(target) == kind


def test_a_verdict_says_where_the_requests_went() -> None:
    """Kinds are counted by their requests that brought nothing."""
    requests = [request("/a"), request("/a?sort=up"), request("/b?sort=up"), request("/b")]
    verdict = judging.judged(requests, TRUTH, lambda target: [target], [2, 5])
    assert verdict["found"] == 2
    assert verdict["shares"] == {"2": 0.25, "5": None}
    assert verdict["barren"] == [("/…?sort=up", 2)]


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
def test_what_shows_a_page_of_a_wiki(target: str, keys: list[str]) -> None:
    """Its text as it is now does: no form, no old version, no difference."""
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
def test_what_shows_a_file_or_commit_of_cgit(target: str, keys: list[str]) -> None:
    """The whole of it does: no difference, no log, no commit cut down to a path."""
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
def test_what_shows_a_file_or_commit_of_gitweb(target: str, keys: list[str]) -> None:
    """The whole of it does, with `;` or `&` between parameters."""
    assert list(repositories.gitweb_keys(target)) == keys


def test_a_sorted_listing_is_not_the_folder() -> None:
    """The listing without a query is, and a file under whatever query."""
    assert list(autoindex.keys_of("/docs/?C=N;O=D")) == []
    assert list(autoindex.keys_of("/docs/a%20b/")) == ["/docs/a b/"]
    assert list(autoindex.keys_of("/docs/a.html?x=1")) == ["/docs/a.html"]
