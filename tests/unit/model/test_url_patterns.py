"""Patterns: which URLs they leave out, which of them are none, and that no URL takes them long."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import problems_of as plan_problems
from orbweaver.frontier.admission import (
    admit_entry,
    admit_link,
    admit_pattern,
    admit_redirect,
    admit_seed,
)
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_codec import from_fields, to_fields
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url_patterns import (
    PATTERN_CHARS_MAX,
    PATTERNS_CHARS_MAX,
    PATTERNS_MAX,
    first_match,
    matches,
    places,
    problem_of,
    problems_of,
)
from orbweaver.parsing.sitemap import SitemapEntry

SITE = "https://example.com"
CRAWL = Crawl(
    id="c",
    name="c",
    started_at_ms=0,
    seeds=(f"{SITE}/",),
    include=("/a/", r"\.html$"),
    exclude=("/a/private", "(?i)LOGIN"),
)


@pytest.mark.parametrize(
    ("path", "link", "seed"),
    [
        ("/a/1", None, None),
        ("/x.html", None, None),
        ("/x.html?y", Refusal.INCLUDE, None),
        ("/", Refusal.INCLUDE, None),
        ("/a/private/1", Refusal.EXCLUDE, Refusal.EXCLUDE),
        ("/a/login", Refusal.EXCLUDE, Refusal.EXCLUDE),
        ("/b/login", Refusal.EXCLUDE, Refusal.EXCLUDE),
    ],
)
def test_exclude_wins_and_seeds_need_no_include(
    path: str, link: Refusal | None, seed: Refusal | None
) -> None:
    """A pattern is found anywhere; what one leaves out, no other takes in."""
    assert admit_pattern(CRAWL, SITE + path) == link
    assert admit_pattern(CRAWL, SITE + path, seed=True) == seed


def test_a_crawl_without_patterns_leaves_nothing_out() -> None:
    """No pattern of a kind is no rule; an exclude alone leaves the rest in."""
    assert admit_pattern(replace(CRAWL, include=(), exclude=()), f"{SITE}/login") is None
    assert admit_pattern(replace(CRAWL, include=()), f"{SITE}/b") is None


@pytest.mark.parametrize(
    ("path", "link", "seed"),
    [("/a/1", None, None), ("/b", "include", None), ("/a/private", "exclude", "exclude")],
)
def test_every_way_into_the_crawl_asks(path: str, link: str | None, seed: str | None) -> None:
    """Links, sitemap entries, redirects and seeds; what a seed leads to counts as the seed."""
    url, page = SITE + path, Target(url=f"{SITE}/p", depth=1)
    sitemap = Target(url=f"{SITE}/login.xml", depth=0, kind=TargetKind.SITEMAP)
    hosts = frozenset({SITE})
    results = [
        admit_link(CRAWL, url, page),
        admit_redirect(CRAWL, url, page),
        admit_entry(CRAWL, SitemapEntry(url=url), sitemap, hosts),
    ]
    assert [one if isinstance(one, Refusal) else None for one in results] == [link] * 3
    seeds = [admit_seed(CRAWL, url), admit_redirect(CRAWL, url, Target(url=f"{SITE}/", depth=0))]
    assert [one if isinstance(one, Refusal) else None for one in seeds] == [seed] * 2


def test_sitemaps_are_not_asked_about() -> None:
    """Where a sitemap leads is no page, so no pattern keeps it out."""
    sitemap = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP)
    assert isinstance(admit_redirect(CRAWL, f"{SITE}/login.xml", sitemap), Target)


def test_the_scope_is_asked_first() -> None:
    """A link of another host is counted as that, whatever the patterns say."""
    page = Target(url=f"{SITE}/", depth=0)
    assert admit_link(CRAWL, "https://other.example/login", page) is Refusal.SCOPE
    anywhere = replace(CRAWL, scope=Scope.ANY)
    assert admit_link(anywhere, "https://other.example/login", page) is Refusal.EXCLUDE


def test_patterns_survive_being_stored() -> None:
    """A stored crawl has its patterns; one of before they existed has none."""
    assert from_fields(to_fields(CRAWL)) == CRAWL
    old = {
        key: value for key, value in to_fields(CRAWL).items() if key not in ("include", "exclude")
    }
    assert (from_fields(old).include, from_fields(old).exclude) == ((), ())


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        (("(",), "'(' is not a regular expression: missing ): (: give one that RE2 takes"),
        (("a)(b",), "unexpected ): a)(b"),
        (("(?=a)",), "invalid perl operator: (?="),
        ((r"(a)\1",), r"invalid escape sequence: \1"),
        (("a{2000}",), "invalid repetition size"),
        (("",), "'' would match every URL: leave it out"),
        (("^/wide/",), "'^/wide/' matches no URL: patterns see the whole URL"),
        ((r"^example\.com/?$",), "matches no URL"),
        (("^ftp://.*",), "matches no URL"),
        (("/é",), r"'/\xe9' cannot match: URLs are ASCII"),
        (("\ud800",), r"'\ud800' cannot match"),
        (("x" * (PATTERN_CHARS_MAX + 1),), "has 1,001 characters: at most 1,000"),
        (("x",) * (PATTERNS_MAX + 1), "101 patterns are too many: at most 100"),
        (("x" * PATTERN_CHARS_MAX,) * 26, f"at most {PATTERNS_CHARS_MAX:,} characters"),
        ((r"(?:[a-z]{1,30}/){1,30}",) * 100, "do not fit together: pattern too large"),
        ((r"\Qab",), "missing )"),
    ],
)
def test_what_is_no_pattern_is_named(patterns: tuple[str, ...], said: str) -> None:
    """The text says which pattern, what the engine says of it, and what would do."""
    (problem,) = problems_of(patterns)
    assert said in str(problem)


def test_all_that_are_none_are_named() -> None:
    """One problem for each pattern; good ones among them are none."""
    assert len(problems_of(("(", "a", ")"))) == 2
    assert problems_of(("a", "^https?://[^/]+/b$")) == []
    assert problems_of(()) == []


def test_the_first_match_is_the_one_to_name() -> None:
    """Whoever asks why is told one pattern."""
    assert first_match(("x", "a", "/a"), f"{SITE}/a") == "x"
    assert first_match(("z",), f"{SITE}/a") is None


def test_no_pattern_can_hang_a_worker() -> None:
    """What takes a backtracking engine forever takes this one milliseconds."""
    url = f"{SITE}/{'a' * 2_000}!"
    start = time.perf_counter()
    assert not matches((r"/(a+)+$", r"(a|aa)+$", r"(.*a){20}b"), url)
    assert time.perf_counter() - start < 2


def test_the_places_of_what_is_found_are_told() -> None:
    """In order, each by itself, and none where none is found."""
    patterns = ("/a", "b$", "^https://example", "a.*b")
    assert places(patterns, f"{SITE}/a/b") == (0, 1, 2, 3)
    assert places(patterns[:2], f"{SITE}/b") == (1,)
    assert places(patterns[:2], f"{SITE}/c") == ()
    assert places((), f"{SITE}/c") == ()


def test_what_is_kept_apart_has_less_room() -> None:
    """A pattern that fits where all share an automaton may be too large for one of its own."""
    large = "(?:a{1,90}b){10}" * 16
    assert problem_of(large) is None
    assert "pattern too large" in str(problem_of(large, apart=True))


@pytest.mark.parametrize(
    ("include", "exclude", "cancelled"),
    [
        (("/a/",), ("/a/",), ("/a/",)),
        (("/a/b", r"/c\d"), ("/a",), ("/a/b",)),
        (("/a/7",), (r"/a/\d",), ()),
        (("/a/7",), ("/a/[0-9]",), ("/a/7",)),
        ((r"/c\d$",), (r"/c\d$",), (r"/c\d$",)),
        (("/a/",), ("/a/b",), ()),
        (("/a/",), ("^https://example.com/a/",), ()),
        (("/a/",), ("/a/$",), ()),
        ((r"/\w",), ("/a",), ()),
        ((), ("/a",), ()),
    ],
)
def test_what_is_kept_to_and_left_out_at_once_is_named(
    include: tuple[str, ...], exclude: tuple[str, ...], cancelled: tuple[str, ...]
) -> None:
    """A pattern that no link can match is a mistake; where that is not certain, nothing is said."""
    plan = CrawlSpec(seeds=("https://x/",), include=include, exclude=exclude)
    problems = plan_problems(plan)
    assert [
        (one.field, str(one).split(" matches nothing: exclude has ")[0]) for one in problems
    ] == [("include", repr(pattern)) for pattern in cancelled]
