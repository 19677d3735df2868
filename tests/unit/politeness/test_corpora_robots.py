"""Verdicts on the robots.txt cases of Google and crawler-commons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from orbweaver.politeness.robots_txt import ROBOTS_PATH, parse
from tests.corpora import corpus

# Deliberate difference from Google's matcher: our product tokens may contain digits.
NAMED_WITH_DIGITS = {("AB42bot", "http://example.com/foo/bar"), ("AB42bot", "http://example.com/")}

# Tokens of a textproto: comments, strings, "key:", brackets, words.
TOKEN = re.compile(rb'\s*(?:#[^\n]*|("(?:[^"\\]|\\.)*")|(\w+)\s*:|([\[\]{},])|(\w+))')
ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))")
ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def compliance_cases(text: bytes) -> Iterator[tuple[bytes, str, str, bool]]:
    """Yield robots.txt, agent, URL, and whether the URL is allowed."""
    case: dict[str, bytes] = {}
    key = ""
    for token in TOKEN.finditer(text):
        string, name, bracket, word = token.groups()
        if name:
            key = name.decode()
            case[key] = b""
        elif string:
            case[key] += ESCAPE.sub(unescape, string[1:-1])  # adjacent strings are joined
        elif word:
            case[key] = word
        elif bracket == b"}" and "expected_outcome" in case:
            agent, url = case["useragent"].decode(), case["testurl"].decode()
            yield case["robotstxt"], agent, url, case.pop("expected_outcome") == b"ALLOWED"


def unescape(escape: re.Match[bytes]) -> bytes:
    if escape[1]:
        return bytes.fromhex(escape[1].decode())
    return ESCAPED.get(escape[2], escape[2])


def test_google_compliance_cases_pass_except_own_rules() -> None:
    files = sorted(corpus("robots-ctc").rglob("*.textproto"))
    cases = [case for file in files for case in compliance_cases(file.read_bytes())]
    assert len(cases) >= 400
    wrong = {
        (agent, url)
        for body, agent, url, allowed in cases
        if parse(body).allows(agent, url) is not allowed
    }
    own_file = {(agent, url) for agent, url in wrong if urlsplit(url).path == ROBOTS_PATH}
    assert wrong - own_file == NAMED_WITH_DIGITS


CRAWLER_COMMONS = [
    # file, agent, paths allowed, paths refused
    ("robots-with-utf8-bom.txt", "foobot", "/", "/profile"),
    ("robots-with-utf16le-bom.txt", "foobot", "/", "/profile"),
    ("robots-with-utf16be-bom.txt", "foobot", "/", "/profile"),
    ("www.flot.com-robots.txt", "foobot", "/", "/img/"),
    ("directive-typos-robots.txt", "bot1", "/", "/desallow/ /dissalow/"),
    ("directive-typos-robots.txt", "bot2", "/", "/useragent/"),
    ("directive-typos-robots.txt", "bot3", "/", "/useg-agent/"),
    ("directive-typos-robots.txt", "bot4", "/", "/useragent-no-colon/"),
    ("format-errors-robots.txt", "bot1", "/", "/whitespace-before-colon/ /no-colon/"),
    ("format-errors-robots.txt", "bot2", "/", "/no-colon-useragent/"),
    ("format-errors-robots.txt", "bot3", "/whitespace-before-colon/", "/"),
    ("many-user-agents.txt", "wget", "", "/"),
    ("many-user-agents.txt", "nobody", "/", "/bot-trap/"),
    ("merge-rules.txt", "wget", "/foo/bar/x /chk/bar/x", ""),
    ("merge-rules.txt", "nobody", "/ /chk/bar/x", "/foo/bar/x"),
    ("precedence-of-rules.txt", "wget", "/ /foo/bar", "/bar/foo"),
    ("precedence-of-rules.txt", "testy", "/ /foo/bar", "/foo/blue /foo/ /foo/tar"),
    ("malformed-path.txt", "bot1", "/wiki/", "/wiki/Wikipedia_talk:Mediation_Committee/"),
    ("dos-line-endings.txt", "bot1", "/", ""),
    ("wildcards.txt", "anybot", "/wishlist/universal/page", "/wishlist/bogus /any/gcrnsts"),
    ("rfc9309-example-simple-robots.txt", "foobot", "/example/page.html", "/ /x/index.html"),
    ("rfc9309-example-simple-robots.txt", "bazbot", "/", "/example/page.html"),
    ("rfc9309-example-simple-robots.txt", "quxbot", "/ /example/page.html", ""),
    ("rfc9309-example-simple-robots.txt", "nobody", "/ /publications/doc1.html", "/x.gif"),
    ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/x", ""),
    ("rfc9309-example-longest-match-robots.txt", "foobot", "/", "/example/page/disallowed.gif"),
    ("rfc9309-example-rule-group-merging.txt", "examplebot", "/", "/foo /bar /baz"),
    ("rfc9309-example-rule-group-merging.txt", "nobody", "/ /baz", "/foo /bar"),
    ("rfc9309-example-rule-group-merging.txt", "bazbot", "/ /foo /bar", "/baz"),
    ("crawl-delay-group-merging.txt", "mybot", "/ /login/", "/private/"),
    ("crawl-delay-group-merging.txt", "yourbot", "/", "/private/ /login/"),
    ("crawl-delay-group-merging.txt", "nobody", "/ /private/ /login/", ""),
    ("extensions-group-merging.txt", "mybot", "/", "/private/ /login/"),
    ("extensions-group-merging.txt", "yourbot", "/", "/private/ /login/"),
    ("extensions-group-merging.txt", "nobody", "/llms.txt", "/"),
    ("extension-robots.txt", "mybot", "/", "/private/"),
    ("twitter.com-robots.txt", "nobody", "/", "/x?y /x/with_friends"),
    ("astore.amazon.com-robots.txt", "nobody", "/", ""),
    ("extended-standard-robots.txt", "bot1", "/", ""),
]


@pytest.mark.parametrize(("name", "agent", "allowed", "refused"), CRAWLER_COMMONS)
def test_odd_files_have_verdicts_of_crawler_commons(
    name: str, agent: str, allowed: str, refused: str
) -> None:
    robots = parse(corpus("robots-crawler-commons", name).read_bytes())
    verdicts = {
        path: robots.allows(agent, f"https://example.com{path}")
        for path in f"{allowed} {refused}".split()
    }
    assert verdicts == {
        **dict.fromkeys(allowed.split(), True),
        **dict.fromkeys(refused.split(), False),
    }


@pytest.mark.parametrize(
    ("name", "agent", "delay_s"),
    [
        ("crawl-delay-group-merging.txt", "mybot", 10),
        ("crawl-delay-group-merging.txt", "yourbot", None),
        ("crawl-delay-group-merging.txt", "nobody", 30),
        ("dos-line-endings.txt", "bot1", 1),
        ("astore.amazon.com-robots.txt", "nobody", 5),
        ("twitter.com-robots.txt", "msnbot", 10),
        ("twitter.com-robots.txt", "nobody", None),
    ],
)
def test_crawl_delay_of_odd_files(name: str, agent: str, delay_s: float | None) -> None:
    robots = parse(corpus("robots-crawler-commons", name).read_bytes())
    assert robots.crawl_delay(agent) == delay_s


@pytest.mark.parametrize(
    ("name", "sitemaps"),
    [
        ("sitemap-robots.txt", 3),
        ("sitemap-robots-dedup.txt", 1),
        ("relative-sitemap-robots.txt", 1),
        ("format-errors-robots.txt", 1),
        ("www.flot.com-robots.txt", 1),
        ("wildcards.txt", 8),
    ],
)
def test_sitemaps_of_odd_files(name: str, sitemaps: int) -> None:
    robots = parse(corpus("robots-crawler-commons", name).read_bytes())
    assert len(robots.sitemaps) == sitemaps
    if sitemaps == 3:
        assert robots.sitemaps[2] == "http://domain.com/dir/MixedCased-sitemap.xml"
