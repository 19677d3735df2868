"""robots.txt files with any content."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.politeness.robots_txt import parse

AGENT = "orbweaver/1.0"
KEYS = "User-agent user-agent useragent Disallow disallow Allow Crawl-delay Sitemap X http"
VALUES = "* orbweaver foo / /x /x/y /*y$ /%e9 5 -1 nan https://example.com/s.xml # $ *"
LINE = st.tuples(
    st.sampled_from(KEYS.split()),
    st.sampled_from([":", ": ", " ", ""]),
    st.sampled_from(VALUES.split()),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
WRITTEN = st.lists(st.tuples(LINE, ENDS), max_size=12).map(
    lambda lines: "".join("".join(line) + end for line, end in lines).encode()
)
URLS = st.text() | st.sampled_from(["https://example.com/x/y?z", "https://example.com/%E9"])


@given(st.binary() | WRITTEN, st.text() | st.just(AGENT), URLS)
def test_any_bytes_are_a_consistent_robots_txt(body: bytes, agent: str, url: str) -> None:
    robots = parse(body)
    verdict = robots.decide(agent, url)
    assert robots.allows(agent, url) is verdict.allowed
    assert verdict.allowed is (verdict.rule is None or verdict.rule.startswith("Allow: "))
    delay_s = robots.crawl_delay(agent)
    assert delay_s is None or 0 <= delay_s < float("inf")
    assert all(robots.sitemaps)


@given(st.text("ab*$", max_size=8), st.text("ab$", max_size=10))
def test_pattern_matches_like_regular_expression(pattern: str, path: str) -> None:
    to_end = pattern.endswith("$")
    expression = re.escape(pattern.removesuffix("$")).replace(r"\*", ".*")
    fits = re.match(f"/{expression}" + ("$(?!\n)" if to_end else ""), f"/{path}") is not None
    robots = parse(f"User-agent: *\nDisallow: /{pattern}".encode())
    assert robots.allows(AGENT, f"https://example.com/{path}") is not fits


@given(st.lists(st.tuples(st.booleans(), st.text("ab*$", max_size=4)), max_size=6))
def test_longest_rule_decides_in_any_order(rules: list[tuple[bool, str]]) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: /{pattern}" for allow, pattern in rules]
    url = "https://example.com/abab"
    there, back = (
        parse("\n".join(["User-agent: *", *order]).encode()).allows(AGENT, url)
        for order in (lines, lines[::-1])
    )
    alone = [
        (len(pattern), allow)
        for (allow, pattern), line in zip(rules, lines, strict=True)
        if parse(f"User-agent: *\n{line}".encode()).decide(AGENT, url).rule
    ]
    assert there is back is max(alone, default=(0, True))[1]
