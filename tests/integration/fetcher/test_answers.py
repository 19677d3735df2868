"""Answers: their bodies, headers and limits, and the requests sent."""

from __future__ import annotations

import asyncio
import gzip
import time
from dataclasses import replace

import pytest

from orbweaver.adapters.web.body import DRAIN_BYTES_MAX
from orbweaver.adapters.web.client import Limits
from orbweaver.adapters.web.headers import HEADERS_CHARS_MAX
from orbweaver.model.http_exchange import Condition, Failure, Response, location_of
from orbweaver.model.url import canonicalize
from orbweaver.parsing.sniffing import HEAD_BYTES
from tests.integration.fetcher.origin import (
    HTML,
    SOON_S,
    answer,
    chunked,
    fetching,
    request,
    serving,
)
from tests.sites.steps import Act, Step

PAGE = b"<title>A page</title>"
DATE = "Thu, 15 Jan 2026 12:00:00 GMT"
ANY = frozenset({"*/*"})


async def fetched(*steps: Step, accept: frozenset[str] = HTML, cap: int = 1_000_000) -> Response:
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url(), accept=accept, body_bytes_max=cap))
    assert isinstance(result, Response), result
    return result


@pytest.mark.parametrize(
    ("kind", "accept", "read"),
    [
        ("text/html", HTML, True),
        ("TEXT/HTML; charset=utf-8", HTML, True),
        ("application/pdf", HTML, False),
        ("image/png", HTML, False),
        ("text/html-not", HTML, False),
        ("", HTML, True),
        ("nonsense", HTML, True),
        ("image/png", ANY, True),
    ],
)
async def test_body_is_read_if_type_is_accepted(
    kind: str, accept: frozenset[str], read: bool
) -> None:
    result = await fetched(answer(PAGE, f"Content-Type: {kind}"), accept=accept)
    assert result.body == (PAGE if read else None)


async def test_body_without_type_is_read() -> None:
    assert (await fetched(answer(PAGE))).body == PAGE


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("200 OK", PAGE),
        ("203 Non-Authoritative Information", PAGE),
        ("206 Partial Content", PAGE),
        ("299 Odd", PAGE),
        ("300 Multiple Choices", None),
        ("401 Unauthorized", PAGE),
        ("404 Not Found", None),
        ("410 Gone", None),
        ("429 Too Many Requests", PAGE),
        ("451 Unavailable For Legal Reasons", None),
        ("500 Internal Server Error", None),
        ("503 Service Unavailable", PAGE),
        ("526 Invalid SSL Certificate", None),
        ("999 No", None),
    ],
)
async def test_body_is_read_by_status(status: str, body: bytes | None) -> None:
    result = await fetched(answer(PAGE, "Content-Type: text/html", status=status))
    assert (result.status, result.body) == (int(status[:3]), body)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000000\r\n\r\n", None),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n?", None),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
async def test_answers_without_body(head: bytes, body: bytes | None) -> None:
    """Headers that describe a body are ignored (case 47)."""
    assert (await fetched(head)).body == body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", ["/b", "", "//host/b", "file:///etc/passwd", "javascript:alert(1)", "/bücher", "?"]
)
async def test_redirect_is_returned_with_location(status: int, location: str) -> None:
    """The fetcher does not follow the redirect (cases 41 and 42)."""
    line = f"Location: {location}".encode()
    head = b"HTTP/1.1 %d Moved\r\nContent-Length: 0\r\n%s\r\n\r\n" % (status, line)
    async with serving([head]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response)
    assert (result.status, result.headers["location"]) == (status, location)
    assert len(origin.asked) == 1


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"X: caf\xc3\xa9", "café"),
        (b"X: caf\xe9", "café"),
        (b"X: a\x1b[31mb\x07", "a\x1b[31mb\x07"),
        (b"X: a\x85b", "a\x85b"),
        (b"X: a\xc2\x85b\xe2\x80\xa8c", "a\x85b\u2028c"),
        (b"X: a\xed\xa0\x80b", "aí\xa0\x80b"),
        (b"X: a\xe2\x80\x8cb\xc2\xadc\xe3\x80\x80d\tz\xc2\xa0", "a\u200cb\xadc\u3000d\tz\xa0"),
        (b"X: a\r\n b", "a b"),
        (b"X:", ""),
        (b"X: first\r\nx: second", "first"),
        (b"Link: <a>\r\nX: y\r\nLink: <b>", "y"),
    ],
)
async def test_header_values_are_unchanged(line: bytes, value: str) -> None:
    """The first of several values counts (case 40)."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%s\r\n\r\n" % line
    assert (await fetched(head)).headers["x"] == value


async def test_non_utf8_header_values_are_kept_as_bytes() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \xe9\r\nY: \xc3\xa9\r\nX: \xff\r\n\r\n"
    assert (await fetched(head)).octets == {"x": b"\xe9"}


# Bytes of a Location, and the target by the URL Standard's parser.
LOCATIONS = [
    (b"/a\xe2\x80\x8cb", "/a%E2%80%8Cb"),  # Zero-width non-joiner.
    (b"/a\xe2\x80\x8db", "/a%E2%80%8Db"),  # Zero-width joiner.
    (b"/a\xc2\xadb", "/a%C2%ADb"),  # Soft hyphen.
    (b"/a\xc2\xa0b", "/a%C2%A0b"),  # No-break space.
    (b"/a\xe3\x80\x80b", "/a%E3%80%80b"),  # Ideographic space.
    (b"/a\xe3\x80\x80", "/a%E3%80%80"),
    (b"\xc2\xa0/a", "/x/%C2%A0/a"),
    (b"/a?\xe2\x80\x8c=\xc2\xa0", "/a?%E2%80%8C=%C2%A0"),
    (b"/a\tb", "/ab"),  # Tabs are removed.
    (b"/a?b\tc", "/a?bc"),
    (b"/a b", "/a%20b"),
    (b"/\xe2\x98\x83%e2%98%83", "/%E2%98%83%e2%98%83"),
    (b"/%\xe2\x98\x83", "/%%E2%98%83"),
    (b"/caf\xe9", "/caf%E9"),
    (b"/\xff?\xff", "/%FF?%FF"),
    (b"/\xc3\xa9\xe9", "/%C3%A9%E9"),
    (b"/\xf0\x9f\x98\x80", "/%F0%9F%98%80"),
    (b"/a\xc2\x85b\x07c", "/a%C2%85b%07c"),  # Control characters inside, not at the end.
]


@pytest.mark.parametrize(("said", "path"), LOCATIONS)
async def test_location_bytes_are_percent_encoded(said: bytes, path: str) -> None:
    """As the URL Standard does (section 4.4)."""
    head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % said
    location = location_of(await fetched(head))
    assert location is not None
    assert canonicalize(location, "https://example.com/x/y") == f"https://example.com{path}"


async def test_set_cookie_lines_are_returned_separately() -> None:
    head = (
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nSet-Cookie: sid=s3cr3t; Path=/\r\n"
        b"SET-COOKIE: a=\xff, b\r\nLocation: /\r\n\r\n"
    )
    answered = await fetched(head)
    assert answered.cookies == (b"sid=s3cr3t; Path=/", b"a=\xff, b")
    assert "s3cr3t" not in repr(replace(answered, headers={}))
    async with serving([answer(PAGE)]) as origin, fetching() as fetcher:
        asked = replace(request(origin.url()), headers=(("Cookie", "sid=s3cr3t; a=b"),))
        await fetcher.fetch(asked)
    assert origin.asked[0].header("Cookie") == "sid=s3cr3t; a=b"
    assert "s3cr3t" not in repr(asked)


async def test_repeated_list_headers_are_joined() -> None:
    lines = ("X-Robots-Tag: noindex", "X-ROBOTS-TAG: nofollow", "Link: <a>", "Link: <b>")
    headers = (await fetched(answer(b"", *lines))).headers
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert headers["link"] == "<a>, <b>"


async def test_robots_tag_of_other_agent_keeps_next_line_for_all() -> None:
    lines = ("X-Robots-Tag: otherbot: noindex", "X-Robots-Tag: nofollow", "X-Robots-Tag: b: none")
    headers = (await fetched(answer(b"", *lines))).headers
    assert headers["x-robots-tag"] == "otherbot: noindex, robots: nofollow, b: none"


async def test_number_of_headers_is_limited() -> None:
    lines = [f"X-{number}: {'v' * 8_000}" for number in range(20)]
    headers = (await fetched(answer(b"", "Early: yes", *lines))).headers
    assert headers["early"] == "yes"
    assert sum(map(len, headers.values())) <= HEADERS_CHARS_MAX


@pytest.mark.parametrize("value", ["120", "Fri, 31 Dec 1999 23:59:59 GMT", "-1", "soon"])
async def test_retry_after_is_returned(value: str) -> None:
    """Any value of Retry-After, with a 429 (case 45)."""
    result = await fetched(answer(b"", f"Retry-After: {value}", status="429 Slow Down"))
    assert (result.status, result.headers["retry-after"]) == (429, value)


@pytest.mark.parametrize(
    "steps",
    [
        (answer(b"x" * 1000),),
        (chunked(b"x" * 1000), b"0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, Act.CLOSE),
    ],
)
@pytest.mark.parametrize(("cap", "truncated"), [(999, True), (1000, False), (1001, False)])
async def test_body_over_limit_is_truncated(
    steps: tuple[Step, ...], cap: int, truncated: bool
) -> None:
    result = await fetched(*steps, cap=cap)
    assert result.body == b"x" * min(cap, 1000)
    assert result.truncated is truncated


@pytest.mark.parametrize(
    "head",
    [
        chunked(lines=["Content-Type: text/html"]),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
    ],
)
async def test_endless_body_is_truncated(head: bytes) -> None:
    """The fetcher closes the connection (case 35)."""
    chunk = b"x" * 65_536
    steps = [head] + [b"%x\r\n%s\r\n" % (len(chunk), chunk)] * 1_000 + [Act.HANG]
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url(), body_bytes_max=200_000))
        assert isinstance(result, Response)
        assert result.truncated
        assert result.body is not None
        assert len(result.body) == 200_000
        again = await fetcher.fetch(request(origin.url(), body_bytes_max=10))
        assert isinstance(again, Response)
        assert origin.connections == 2


@pytest.mark.parametrize(
    ("steps", "connections"),
    [
        ((answer(b"x" * 1000, status="404 Not Found"),), 1),
        ((answer(b"x" * DRAIN_BYTES_MAX, status="404 Not Found"),), 1),
        ((answer(b"x" * 1_000_000, status="404 Not Found"),), 2),
        ((chunked(b"x" * 1000, lines=["Content-Type: image/png"]), b"0\r\n\r\n"), 1),
        ((chunked(*[b"x" * 1000] * 1000, lines=["Content-Type: image/png"]), b"0\r\n\r\n"), 2),
        ((b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 1000, Act.HANG), 2),
        ((b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nx", Act.CLOSE), 2),
        ((b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 9\r\n\r\nx", Act.HANG), 2),
    ],
)
async def test_connection_survives_small_unread_body(
    steps: tuple[Step, ...], connections: int
) -> None:
    async with serving(steps) as origin, fetching(Limits(drain_s=0.1)) as fetcher:
        for _ in range(2):
            result = await fetcher.fetch(request(origin.url()))
            assert isinstance(result, Response), result
            assert result.body is None
    assert origin.connections == connections


async def test_head_is_returned_if_unread_body_times_out() -> None:
    head = b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 9\r\n\r\nx"
    async with serving([head, Act.HANG]) as origin, fetching(Limits(drain_s=30)) as fetcher:
        started = time.monotonic()
        result = await fetcher.fetch(request(origin.url(), total_s=0.5))
        assert time.monotonic() - started < SOON_S
    assert isinstance(result, Response), result


async def test_request_on_the_wire() -> None:
    """The URL is sent byte for byte, with true headers and no cookies or referrer (case 43)."""
    target = "/a%2Fb/%7e/%C3%A9;x=1?q='a'|b&r=%20+%2B&&="
    page = answer(PAGE, "Set-Cookie: id=1; Path=/")
    async with serving([page]) as origin, fetching() as fetcher:
        for _ in range(2):
            assert isinstance(await fetcher.fetch(request(origin.url(target))), Response)
    asked = origin.asked[1]
    assert asked.head.startswith(b"GET " + target.encode() + b" HTTP/1.1\r\n")
    assert asked.header("User-Agent") == "spider/1"
    assert asked.header("Accept") == "text/html, */*;q=0.1"
    assert asked.header("Accept-Encoding") == "gzip, deflate, br, zstd"
    assert asked.header("Host") == f"127.0.0.1:{origin.port}"
    assert asked.header("Cookie") is None
    assert asked.header("Authorization") is None


@pytest.mark.parametrize(("etag", "last_modified"), [('W/"x"', DATE), ('"x"', None), (None, DATE)])
async def test_conditional_request_sends_validators_unchanged(
    etag: str | None, last_modified: str | None
) -> None:
    condition = Condition(etag=etag, last_modified=last_modified)
    unchanged = answer(b"", status="304 Not Modified")
    async with serving([unchanged]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(replace(request(origin.url()), condition=condition))
    assert isinstance(result, Response), result
    assert (result.status, result.body) == (304, None)
    assert origin.asked[0].header("If-None-Match") == etag
    assert origin.asked[0].header("If-Modified-Since") == last_modified


async def test_request_for_any_type_accepts_everything() -> None:
    async with serving([answer(PAGE)]) as origin, fetching() as fetcher:
        await fetcher.fetch(request(origin.url("/robots.txt"), accept=ANY))
    assert origin.asked[0].header("Accept") == "*/*"


async def test_environment_proxy_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would bypass the address guard."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await fetched(answer(PAGE))).body == PAGE


async def test_latency_runs_from_request_to_head() -> None:
    steps = (0.1, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 0.15, b"x")
    async with serving(steps) as origin, fetching(Limits(connections_per_host=1)) as fetcher:
        started = time.monotonic()
        asked = request(origin.url())
        results = await asyncio.gather(*(fetcher.fetch(asked) for _ in range(2)))
        all_ms = (time.monotonic() - started) * 1000
    assert all(result.latency_ms >= 95 for result in results)
    assert sum(result.latency_ms for result in results) <= all_ms - 2 * 145  # The two bodies.


async def test_a_thousand_early_hints_are_ignored() -> None:
    """Interim answers, status 103 (case 38)."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1_000
    assert (await fetched(hints, answer(PAGE))).body == PAGE


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "*/*", ""])
async def test_page_without_page_type_is_read(kind: str) -> None:
    """The first bytes decide for vague types; a page is read to its end (case 59)."""
    page = b"<!doctype html>" + b"<p>x" * 50_000
    async with serving([answer(page, f"Content-Type: {kind}")]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response)
    assert (result.body, result.truncated) == (page, False)


async def test_body_of_other_kind_is_left() -> None:
    """The fetcher reads only the bytes that it needs to recognise the type (case 59)."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
    steps: list[Step] = [head, *[b"\x7fELF" + b"\0" * 65_536] * 1_000, Act.HANG]
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
        assert isinstance(result, Response)
        assert result.body is not None
        assert len(result.body) == HEAD_BYTES
        assert result.truncated
        async with asyncio.timeout(2):
            await origin.quiet.wait()


async def test_request_for_any_type_is_not_sniffed() -> None:
    body = b"Disallow: /x\n" * 1_000
    async with serving([answer(body)]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url(), accept=frozenset({"*/*"})))
    assert isinstance(result, Response)
    assert result.body == body


@pytest.mark.parametrize("status", ["403 Forbidden", "429 Too Many Requests", "503 Unavailable"])
async def test_start_of_blocking_error_page_is_kept(status: str) -> None:
    body = gzip.compress(b"<title>Just a moment...</title>", mtime=0)
    lines = ("Content-Type: text/html", "Content-Encoding: gzip")
    head = f"HTTP/1.1 {status}\r\n{lines[0]}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".encode()
    chunked = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    for whole in (answer(body, *lines, status=status), chunked):
        async with serving([whole]) as origin, fetching() as fetcher:
            result = await fetcher.fetch(request(origin.url()))
        assert isinstance(result, Response)
        assert result.body == b"<title>Just a moment...</title>"
    said = answer(b"no gzip at all", *lines, status=status)[:-3]
    async with serving([said, Act.CLOSE]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response)
    assert result.body == b""


async def test_other_error_bodies_are_not_kept() -> None:
    for said in (
        answer(b"<p>", "Content-Type: text/html", status="404 Not Found"),
        answer(b"{}", "Content-Type: application/json", status="403 Forbidden"),
    ):
        async with serving([said]) as origin, fetching() as fetcher:
            result = await fetcher.fetch(request(origin.url()))
        assert isinstance(result, Response)
        assert result.body is None


@pytest.mark.parametrize(
    ("sent", "received", "read"),
    [
        (answer(PAGE, "Content-Type: text/html"), len(PAGE), PAGE),
        (
            answer(gzip.compress(PAGE, mtime=0), "Content-Encoding: gzip"),
            len(gzip.compress(PAGE, mtime=0)),
            PAGE,
        ),
        (answer(PAGE, status="404 Not Found"), len(PAGE), None),
        (answer(status="204 No Content"), 0, b""),
    ],
    ids=["read", "coded", "left", "none"],
)
async def test_received_body_bytes_are_reported(
    sent: bytes, received: int, read: bytes | None
) -> None:
    result = await fetched(sent)
    assert (result.received, result.body) == (received, read)


async def test_received_bytes_of_broken_body_are_reported() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\n"
    async with serving([head + PAGE, Act.CLOSE]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Failure)
    assert result.received == len(PAGE)


async def test_answer_contains_sent_request_headers() -> None:
    secret = (("Authorization", "Bearer s3cret"), ("Accept-Language", "de"))
    async with serving((answer(PAGE),)) as origin, fetching() as fetcher:
        wanted = replace(request(origin.url()), headers=secret)
        result = await fetcher.fetch(wanted)
    assert isinstance(result, Response), result
    asked = {name.lower(): value for name, value in result.asked}
    assert asked["host"] == origin.url().split("/")[2]
    assert asked["user-agent"] == wanted.user_agent
    assert asked["authorization"] == "redacted"
    assert asked["accept-language"] == "de"
    assert {"accept", "accept-encoding"} <= asked.keys()
    assert "s3cret" not in str(result.asked)
