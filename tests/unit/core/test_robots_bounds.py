"""Reading and asking a robots.txt is bounded, whatever it holds."""

from __future__ import annotations

import time

import pytest

from orbweaver.core.robots import BODY_BYTES_MAX, LINE_BYTES_MAX, parse

SITE = "https://example.com"
AGENT = "orbweaver"


def allows(body: bytes, path: str) -> bool:
    """Whether a robots.txt allows a path of a site."""
    return parse(body).allows(AGENT, SITE + path)


def test_500_kib_are_read() -> None:
    """Of a longer file the first 500 KiB count, and no rule is cut in two."""
    start = b"User-agent: *\nDisallow: /first\n"
    last = b"Disallow: /last"
    padding = b"#" * (BODY_BYTES_MAX - len(start) - len(last) - 1) + b"\n"
    whole = start + padding + last
    assert len(whole) == BODY_BYTES_MAX
    for body in (whole, whole + b"\n", whole + b"\r\nDisallow: /after\n"):
        assert not allows(body, "/first")
        assert not allows(body, "/last")
        assert allows(body, "/after")
    assert allows(whole + b"-one\n", "/last")
    assert allows(b"User-agent: *\tDisallow: /" * 50_000, "/")


def test_the_end_of_a_long_line_is_ignored() -> None:
    """Sixteen thousand bytes of a line count."""
    text = b"User-agent: *\nDisallow: /" + b"x" * LINE_BYTES_MAX
    assert not allows(text, "/" + "x" * (LINE_BYTES_MAX - len("Disallow: /")))


AGENT_LINE = b"User-agent: orbweaver\n"


@pytest.mark.parametrize(
    "body",
    [
        b"Disallow: /" + b"*" * 10_000 + b"b",
        b"Disallow: /" + b"*a" * 5_000 + b"$",
        (b"Disallow: /" + b"a*" * 7_000 + b"b\n") * 36,
        (b"Disallow: /" + b"*a" * 900 + b"b$\n") * 250,
        b"Disallow:/b\n" * 40_000,
        AGENT_LINE * 15_000 + b"Disallow:/b\n" * 15_000,
        (AGENT_LINE + b"Disallow:/b\n") * 14_000,
        (AGENT_LINE + b"Crawl-delay:1\n") * 14_000,
        AGENT_LINE * 11_000 + b"Crawl-delay:1\n" * 18_000,
        b"\r" * BODY_BYTES_MAX,
        b":" * BODY_BYTES_MAX,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_no_file_takes_long(body: bytes) -> None:
    """Stars, repeated names and many rules cost no more than their number."""
    before = time.perf_counter()
    robots = parse(AGENT_LINE + body)
    robots.crawl_delay(AGENT)
    assert robots.allows(AGENT, f"{SITE}/" + "a" * 2_000)
    assert time.perf_counter() - before < 10  # a second or less, on a machine at rest
