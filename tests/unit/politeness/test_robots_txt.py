"""Rules of a robots.txt: paths, agents, delays and sitemaps."""

from __future__ import annotations

import codecs

import pytest

from orbweaver.politeness.robots_txt import SITEMAPS_MAX, parse

SITE = "https://example.com"
AGENT = "orbweaver/0.1 (+https://example.org/bot; a@example.org)"


def allows(text: str | bytes, path: str, agent: str = AGENT) -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return parse(body).allows(agent, SITE + path)


MATCHES = [
    # pattern, paths that match, paths that do not
    ("/", ["/", "/x", "/?q", "?q"], []),
    ("/fish", ["/fish", "/fish.html", "/fish/x", "/fish?x"], ["/Fish", "/catfish", "/?fish"]),
    ("/fish/", ["/fish/", "/fish/x"], ["/fish", "/fish.html"]),
    ("/fish*", ["/fish", "/fishes"], ["/Fish"]),
    ("/*.php", ["/x.php", "/x/y.php?z", "/x.phpz"], ["/x.PHP", "/php"]),
    ("/*.php$", ["/x.php", "/x/y.php"], ["/x.php?z", "/x.php/", "/x.php5"]),
    ("/fish*.php", ["/fish.php", "/fishes/x.php?y"], ["/Fish.php", "/fis.php"]),
    ("/$", ["/", ""], ["/x", "/?x"]),
    ("/x$", ["/x"], ["/xy", "/x?"]),
    ("/x*$", ["/x", "/xyz"], ["/y"]),
    ("/x**y", ["/xy", "/x1y2"], ["/x"]),
    ("/a*a$", ["/aa", "/aba"], ["/a", "/ab"]),
    ("/ab*bc$", ["/abbc", "/abxbc"], ["/abc"]),
    ("*", ["/", "/x"], []),
    ("*/x", ["/x", "/y/x"], ["/y"]),
    ("x", [], ["/x", "/"]),
    ("$", [], ["/", ""]),
    ("/a$b", ["/a$b", "/a$bc"], ["/a"]),
    ("/a?b=*&c", ["/a?b=1&c", "/a?b=&c=2"], ["/a?c&b=1"]),
    ("/%7ex", ["/%7Ex", "/%7ex", "/~x"], ["/%257Ex"]),
    ("/é", ["/%C3%A9", "/%c3%a9x"], ["/e"]),
    ("/%c3%A9", ["/%C3%A9"], ["/%C3"]),
    ("/%zz", ["/%zz"], ["/%ZZ"]),
    ("/x//y", ["/x//y"], ["/x/y"]),
    # Double escapes match only themselves.
    ("/%2561", [], ["/a", "/%61"]),
    ("/path/file-with-a-%2A.html", [], ["/path/file-with-a-x.html", "/path/file-with-a-.html"]),
    ("/path/foo-%24", [], ["/path/foo-"]),
    ("/%24$", [], ["/$x", "/"]),
    ("/~joe", [], ["/%257Ejoe", "/joe"]),
    ("/a%20b", [], ["/a+b", "/ab"]),
    ("/\ue000", [], ["/*"]),
]


@pytest.mark.parametrize(("pattern", "fits", "others"), MATCHES)
def test_pattern_matches_from_start_of_path(
    pattern: str, fits: list[str], others: list[str]
) -> None:
    text = f"User-agent: *\nDisallow: {pattern}\n"
    assert [path for path in fits if allows(text, path)] == []
    assert [path for path in others if not allows(text, path)] == []


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Disallow: /x\nAllow: /x/", "/x/y", True),
        ("Disallow: /x\nAllow: /x/", "/x", False),
        ("Allow: /x/\nDisallow: /x/y", "/x/y", False),
        ("Allow: /\nDisallow: /", "/x", True),
        ("Disallow: /\nAllow: /", "/x", True),
        ("Disallow: /*.html\nAllow: /x", "/x.html", False),
        ("Disallow: /x*\nAllow: /x", "/x", False),
        ("Disallow: /x%C3%A9\nAllow: /x*y*z", "/x%c3%a9yz", False),
        ("Disallow:", "/x", True),
        ("Disallow:\nDisallow: /x", "/x", False),
        ("Allow:\nDisallow: /x", "/x", False),
        ("Disallow: /\nAllow: /x/index.html", "/x/", True),
        ("Disallow: /\nAllow: /x/index.html", "/x/y", False),
        ("Disallow: /\nAllow: /x/index.htm", "/x/", True),
        ("Disallow: /\nAllow: index.html", "/", False),
        ("Disallow: /x/index.html", "/x/", True),
        # Every reading allows it.
        ("Disallow: /\nAllow: /~joe", "/~joe", True),
        ("Disallow: /\nAllow: /%7Ejoe", "/%7Ejoe", True),
        ("Disallow: /\nAllow: /a%3Ab", "/a%3ab", True),
        ("Disallow: /\nAllow: /x\nDisallow: /x%41", "/xB", True),
        # At least one reading forbids it: Google's matcher, or reserved characters kept apart.
        ("Disallow: /\nAllow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("Disallow: /\nAllow: /a%3Ab", "/a:b", False),
        ("Disallow: /%7Ejoe/\nAllow: /~joe/a:b", "/~joe/a%3Ab", False),
        ("Disallow: /~joe\nAllow: /%7Ejoe/public", "/~joe/public", False),
        # The longest rule wins in each reading.
        ("Disallow: /a\nAllow: /a/~b", "/a/~b", True),
        ("Disallow: /a%3A\nAllow: /a%3A%62", "/a%3A%62", True),
        ("Allow: /a:\nDisallow: /a%3Ab", "/a:b", False),
    ],
)
def test_longest_rule_wins(rules: str, path: str, *, allowed: bool) -> None:
    """RFC 9309 2.2.2 is ambiguous about escapes, so the strictest reading counts."""
    assert allows(f"User-agent: *\n{rules}", path) is allowed


# RFC 9309 2.2.2 (percent-encoding) and 2.2.3 (special characters): the path of a rule, and URLs
# that it matches in at least one reading.
SAME = [
    ("/~joe", "/%7Ejoe /%7ejoe /~joe/x"),
    ("/%7Ejoe", "/~joe /%7ejoe"),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz /foo/bar/%62az"),
    ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    ("/%61", "/a /%61"),
    ("/a", "/%61"),
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
    ("/a%3Ab", "/a:b /a%3ab"),
    ("/a:b", "/a%3Ab"),
    ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html /path/file-with-a-%2a.html"),
    ("/path/file-with-a-*.html", "/path/file-with-a-%2A.html /path/file-with-a-x.html"),
    ("/path/foo-%24", "/path/foo-$ /path/foo-%24 /path/foo-$x"),
    ("/path/foo-$x", "/path/foo-%24x"),
    ("/%24$", "/$ /%24"),
    ("/*%3Ax$", "/a:x /%3Ax"),
    ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84 /foo/bar/%e3%83%84"),
    ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
    ("/a b", "/a%20b /a%20b/c"),
    ("/a%20b", "/a%20b"),
    ('/a"b', "/a%22b"),
    ("/{id}", "/%7Bid%7D /%7bid%7d"),
    ("/a\tb", "/a%09b"),
]


@pytest.mark.parametrize(("pattern", "paths"), SAME)
def test_rule_matches_either_escaping(pattern: str, paths: str) -> None:
    for more in ("", "Allow: /other%41\n", "Allow: /$\n"):
        text = f"User-agent: *\n{more}Disallow: {pattern}\n"
        assert [path for path in paths.split() if allows(text, path)] == []
        verdict = parse(text.encode()).decide(AGENT, SITE + paths.split(maxsplit=1)[0])
        assert verdict.line == 2 + bool(more)


def test_robots_txt_itself_is_allowed() -> None:
    """RFC 9309: `/robots.txt` is implicitly allowed."""
    robots = parse(b"User-agent: *\nDisallow: /")
    assert robots.allows(AGENT, f"{SITE}/robots.txt")
    verdict = robots.decide(AGENT, f"{SITE}/robots.txt")
    assert (verdict.allowed, verdict.line, verdict.rule) == (True, None, None)
    assert not robots.allows(AGENT, f"{SITE}/robots.txt?x")
    assert not robots.allows(AGENT, f"{SITE}/x/robots.txt")


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("orbweaver", AGENT),
        ("OrbWeaver", "orbweaver"),
        ("orbweaver/2.0", "ORBWEAVER/1.0"),
        ("orbweaver bot", "orbweaver"),
        ("orbweaver", "orbweaver (x/y)"),
        ("orbweaver", "orbweaver;x"),
        ("or_b-weaver", "or_b-weaver/1"),
        ("bot2", "bot2/1.0"),
        ("bot2", "bot"),
    ],
)
def test_agent_is_matched_by_product_token(name: str, agent: str) -> None:
    text = f"User-agent: *\nDisallow: /\n\nUser-agent: {name}\nAllow: /"
    assert allows(text, "/x", agent)


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("orb", "orbweaver"),
        ("orbweaverbot", "orbweaver"),
        ("bot", "bot2"),
        ("orbweaver", "my orbweaver"),
        ("", ""),
        ("*", ""),
        ("*bot", "bot"),
        ("**", "x"),
    ],
)
def test_other_agent_names_do_not_match(name: str, agent: str) -> None:
    text = f"User-agent: {name}\nAllow: /y\n\nUser-agent: *\nDisallow: /"
    assert not allows(text, "/x", agent)


GROUPS = b"""
Disallow: /nobody
Crawl-delay: 99

User-agent: a
User-agent: b
Crawl-delay: 1
Sitemap: https://example.com/s.xml
User-agent: c
Unknown: x
Disallow: /abc

Disallow: /abc-too
User-agent: *
Disallow: /any
Crawl-delay: 7
User-agent: A
Disallow: /own
Crawl-delay: 2.5
Crawl-delay: 2
User-agent: * # and so on
Disallow: /any-too
"""


@pytest.mark.parametrize(
    ("agent", "refused", "delay_s"),
    [
        ("a", ["/abc", "/abc-too", "/own"], 2.5),
        ("b", ["/abc", "/abc-too"], 1),
        ("c", ["/abc", "/abc-too"], None),
        ("d", ["/any", "/any-too"], 7),
    ],
)
def test_groups_of_same_agent_are_merged(
    agent: str, refused: list[str], delay_s: float | None
) -> None:
    robots = parse(GROUPS)
    paths = ["/nobody", "/abc", "/abc-too", "/any", "/any-too", "/own"]
    assert [path for path in paths if not robots.allows(agent, SITE + path)] == refused
    assert robots.crawl_delay(agent) == delay_s
    assert robots.sitemaps == ("https://example.com/s.xml",)


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: *\nDisallow: /x\n",
        "user-AGENT:*\ndisALLOW:/x",
        "User-agent: *\rDisallow: /x\r",
        "User-agent: *\r\nDisallow: /x\r\n",
        "\n\n \t User-agent : * \t\n\n Disallow\t:\t/x # why\n",
        "User-agent *\nDisallow /x",
        "User-agent\t*\nDisallow\t \t/x",
        "useragent: *\ndissallow: /x",
        "User agent: *\ndissalow: /x",
        "user-agents: *\ndisalow: /x",
        "User-agent: * anybody\ndiasllow: /x",
        "useg-agent: *\ndisallaw: /x",
        "User-agnet: *\nDisallows: /x",
        "User-agent: *\ndesallow: /x",
        "User-agent: *\n<br>\nDisallow: /x\x00/y",
        "User-agent: *\nDisallow: /x#y",
        b"User-agent: caf\xe9\nUser-agent: *\nDisallow: /x",
        "\ufeffUser-agent: *\nDisallow: /x",
        b"\xefUser-agent: *\nDisallow: /x",
        b"\xef\xbbUser-agent: *\nDisallow: /x",
        codecs.BOM_UTF16_LE + "User-agent: *\nDisallow: /x".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "User-agent: *\r\nDisallow: /x\r\n".encode("utf-16-be"),
        codecs.BOM_UTF16_LE + "User-agent: *\nDisallow: /x\n".encode("utf-16-le") + b"\n",
    ],
)
def test_common_misspellings_are_understood(text: str | bytes) -> None:
    assert not allows(text, "/x")
    assert allows(text, "/y")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# User-agent: *\n# Disallow: /",
        "Disallow: /",
        "User-agent: *\nDissalow / x",
        "User-agent: *\nnot-a-key: /",
        "User-agent: *\n: /\n/",
        "User-agent: *\nNo disallow: /",
        "User-agent * all\nDisallow: /",
        "User-agent: *\n\ufeffDisallow: /",
        b"\xef\x11\xbfUser-agent: *\nDisallow: /",
        b"<!DOCTYPE html><title>404</title>User-agent: * Disallow: /",
        b"\x00" * 1000,
        bytes(range(256)) * 10,
    ],
)
def test_file_without_rules_forbids_nothing(text: str | bytes) -> None:
    assert allows(text, "/x")


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [
        ("0", 0),
        ("10", 10),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5),
        ("86400", 86_400),
        ("9" * 400, None),
        ("-1", None),
        ("", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("1_0", None),
        ("ten", None),
        ("5s", None),
        ("١", None),  # noqa: RUF001 - a digit, but not one of ours
    ],
)
def test_crawl_delay_must_be_plain_number(value: str, delay_s: float | None) -> None:
    robots = parse(f"User-agent: *\nDisallow: /x\ncrawl-delay: {value}\n".encode())
    assert robots.crawl_delay(AGENT) == delay_s
    assert not robots.allows(AGENT, f"{SITE}/x")


def test_robots_equality_ignores_cached_verdicts() -> None:
    body = b"User-agent: *\nDisallow: /x\n"
    asked = parse(body)
    assert not asked.allows(AGENT, f"{SITE}/x")
    assert asked == parse(body)


def test_sitemaps_apply_to_all_agents() -> None:
    robots = parse(
        b"sitemap: https://example.com/B.xml\nUser-agent: *\nSITE-MAP: /a.xml\nDisallow: /\n"
        b"Sitemap:\nSitemap: https://example.com/B.xml\nsitemaps : x y\nSitemap: /\xff\n"
        b"https://example.com/my-sitemap.xml\nhttps://example.com/other.xml\n"
    )
    assert robots.sitemaps == (
        "https://example.com/B.xml",
        "/a.xml",
        "x y",
        "/\ufffd",
        "https://example.com/my-sitemap.xml",
    )
    many = b"".join(b"Sitemap: /%d\n" % number for number in range(SITEMAPS_MAX + 10))
    assert len(parse(many).sitemaps) == SITEMAPS_MAX
    assert (parse(many).sitemaps_cut, parse(b"Sitemap: /1").sitemaps_cut) == (10, 0)


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("/x/y", 4, "Allow: /x/*"),
        ("/x", 3, "Disallow: /x"),
        ("/%c3%a9", 5, "Disallow: /%C3%A9"),
        ("/z/", 7, "Allow: /z/$"),
        ("/y", None, None),
    ],
)
def test_verdict_names_deciding_line_and_rule(
    path: str, line: int | None, rule: str | None
) -> None:
    rules = "\nUser-agent: *\nDisallow: /x\nAllow: /x/*\rDisallow: /é\r\n\nAllow: /z/index.html"
    verdict = parse(rules.encode()).decide(AGENT, SITE + path)
    assert (verdict.line, verdict.rule, verdict.group) == (line, rule, "*")


@pytest.mark.parametrize(
    ("agent", "group"), [("Bot/1.0", "bot"), ("other", "*"), ("", "*"), ("bot2", "bot2")]
)
def test_verdict_names_deciding_group(agent: str, group: str) -> None:
    robots = parse(b"User-agent: bot\nDisallow: /\nUser-agent: BOT2\nUser-agent: *\nAllow: /")
    assert robots.decide(agent, SITE).group == group
    assert parse(b"User-agent: bot\nDisallow: /").decide("other", SITE).group is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://example.com", "/"),
        ("http://example.com?x", "/?x"),
        ("http://example.com;x", "/;x"),
        ("http://example.com/x?y=http://z/#w", "/x?y=http://z/"),
        ("http://example.com#/x", "/"),
        ("//example.com/x", "/x"),
        ("example.com/x://y", "/x://y"),
        ("/x", "/x"),
        ("", "/"),
        ("x", "/"),
    ],
)
def test_path_is_extracted_from_any_url(url: str, path: str) -> None:
    assert not parse(f"User-agent: *\nDisallow: {path}$".encode()).allows(AGENT, url)
