"""URL patterns: which URLs they exclude, which patterns are invalid, and matching time."""

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
    matching_indexes,
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
    assert admit_pattern(CRAWL, SITE + path) == link
    assert admit_pattern(CRAWL, SITE + path, seed=True) == seed


def test_crawl_without_patterns_admits_every_url() -> None:
    assert admit_pattern(replace(CRAWL, include=(), exclude=()), f"{SITE}/login") is None
    assert admit_pattern(replace(CRAWL, include=()), f"{SITE}/b") is None


@pytest.mark.parametrize(
    ("path", "link", "seed"),
    [("/a/1", None, None), ("/b", "include", None), ("/a/private", "exclude", "exclude")],
)
def test_patterns_apply_to_links_sitemap_entries_redirects_and_seeds(
    path: str, link: str | None, seed: str | None
) -> None:
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


def test_patterns_do_not_apply_to_sitemaps() -> None:
    sitemap = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP)
    assert isinstance(admit_redirect(CRAWL, f"{SITE}/login.xml", sitemap), Target)


def test_scope_is_checked_before_patterns() -> None:
    page = Target(url=f"{SITE}/", depth=0)
    assert admit_link(CRAWL, "https://other.example/login", page) is Refusal.SCOPE
    anywhere = replace(CRAWL, scope=Scope.ANY)
    assert admit_link(anywhere, "https://other.example/login", page) is Refusal.EXCLUDE


def test_patterns_round_trip_through_stored_form() -> None:
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
def test_invalid_pattern_is_named_with_reason(patterns: tuple[str, ...], said: str) -> None:
    (problem,) = problems_of(patterns)
    assert said in str(problem)


def test_problems_of_lists_every_invalid_pattern() -> None:
    assert len(problems_of(("(", "a", ")"))) == 2
    assert problems_of(("a", "^https?://[^/]+/b$")) == []
    assert problems_of(()) == []


def test_first_match_returns_first_matching_pattern() -> None:
    assert first_match(("x", "a", "/a"), f"{SITE}/a") == "x"
    assert first_match(("z",), f"{SITE}/a") is None


def test_pattern_matching_has_no_catastrophic_backtracking() -> None:
    url = f"{SITE}/{'a' * 2_000}!"
    start = time.process_time()
    assert not matches((r"/(a+)+$", r"(a|aa)+$", r"(.*a){20}b"), url)
    assert time.process_time() - start < 2


def test_places_returns_positions_of_matching_patterns() -> None:
    patterns = ("/a", "b$", "^https://example", "a.*b")
    assert matching_indexes(patterns, f"{SITE}/a/b") == (0, 1, 2, 3)
    assert matching_indexes(patterns[:2], f"{SITE}/b") == (1,)
    assert matching_indexes(patterns[:2], f"{SITE}/c") == ()
    assert matching_indexes((), f"{SITE}/c") == ()


def test_pattern_matched_apart_has_lower_size_limit() -> None:
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
def test_include_pattern_cancelled_by_exclude_is_reported(
    include: tuple[str, ...], exclude: tuple[str, ...], cancelled: tuple[str, ...]
) -> None:
    plan = CrawlSpec(seeds=("https://x/",), include=include, exclude=exclude)
    problems = plan_problems(plan)
    assert [
        (one.field, str(one).split(" matches nothing: exclude has ")[0]) for one in problems
    ] == [("include", repr(pattern)) for pattern in cancelled]
