"""Admission of URLs and the reasons for a refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.admission import (
    REDIRECTS_MAX,
    admit_link,
    admit_redirect,
    admit_target,
    in_scope,
    leaves_scope,
    prefixes,
)
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import canonicalize, host_of

NOW_MS = 1_795_251_600_000
SITE = "https://example.com"
CRAWL = Crawl(
    id="c", name="c", started_at_ms=NOW_MS, depth_max=3, seeds=(f"{SITE}/docs/index.html?x=/y",)
)
PAGE = Target(url=f"{SITE}/docs/a", depth=2)


def test_redirected_sitemap_keeps_kind_and_leaves_host() -> None:
    source = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP, attempt=3, hops=1)
    url = "https://other.example/s.xml"
    moved = replace(source, url=url, attempt=1, hops=2, referrer=source.url)
    assert admit_redirect(CRAWL, url, source) == moved


@pytest.mark.parametrize(
    ("scope", "url", "belongs"),
    [
        (Scope.ANY, "https://other.example/", True),
        (Scope.HOST, f"{SITE}/b", True),
        (Scope.HOST, "http://example.com/b", False),
        (Scope.HOST, "https://example.com:8443/b", False),
        (Scope.HOST, "https://www.example.com/b", False),
        (Scope.HOST, "https://example.com.evil.example/", False),
        (Scope.DOMAIN, f"{SITE}/b", True),
        (Scope.DOMAIN, "http://www.example.com:8080/b", True),
        (Scope.DOMAIN, "https://example.com.evil.example/", False),
        (Scope.DOMAIN, "https://example.org/", False),
        (Scope.PREFIX, f"{SITE}/docs/", True),
        (Scope.PREFIX, f"{SITE}/docs/deep/b?c", True),
        (Scope.PREFIX, f"{SITE}/docs", False),
        (Scope.PREFIX, f"{SITE}/docsmore/", False),
        (Scope.PREFIX, "https://other.example/docs/", False),
    ],
)
def test_link_is_in_scope_of_its_page_host_or_seed_folder(
    scope: Scope, url: str, *, belongs: bool
) -> None:
    assert in_scope(replace(CRAWL, scope=scope), url, PAGE.url) is belongs


@pytest.mark.parametrize(
    ("seed", "folder"),
    [
        (f"{SITE}/", f"{SITE}/"),
        (f"{SITE}/a", f"{SITE}/"),
        (f"{SITE}/a/", f"{SITE}/a/"),
        (f"{SITE}/a/b?c=/d/", f"{SITE}/a/"),
    ],
)
def test_seed_folder_ends_at_last_slash(seed: str, folder: str) -> None:
    assert prefixes((seed,)) == (folder,)


@pytest.mark.parametrize(
    ("url", "depth", "admitted"),
    [
        (f"{SITE}/b", 2, Target(url=f"{SITE}/b", depth=3, referrer=PAGE.url)),
        (f"{SITE}/b", 3, Refusal.DEPTH),
        ("https://other.example/", 2, Refusal.SCOPE),
        ("https://other.example/", 3, Refusal.DEPTH),
        (f"{SITE}/a/a/a", 2, Refusal.REPETITION),
        (f"{SITE}{'/a/b' * 11}", 2, Refusal.PATH_DEPTH),
        (f"{SITE}/?{'a&' * 21}", 2, Refusal.QUERY),
        ("https://other.example/a/a/a", 2, Refusal.SCOPE),
    ],
)
def test_link_is_one_level_deeper_or_refused(
    url: str, depth: int, admitted: Target | Refusal
) -> None:
    assert admit_link(CRAWL, url, replace(PAGE, depth=depth)) == admitted


def test_index_order_link_is_refused_after_patterns() -> None:
    index = Target(url=f"{SITE}/pub/", depth=1)
    order = f"{SITE}/pub/?C=M;O=D"
    assert admit_link(CRAWL, order, index) is Refusal.INDEX_ORDER
    assert isinstance(admit_link(CRAWL, order, PAGE), Target)
    assert admit_link(replace(CRAWL, exclude=("C=",)), order, index) is Refusal.EXCLUDE


@pytest.mark.parametrize(
    ("scope", "depth", "hops", "url", "refusal"),
    [
        (Scope.HOST, 2, 0, f"{SITE}/b", None),
        (Scope.HOST, 2, 0, "https://www.example.com/", Refusal.SCOPE),
        (Scope.HOST, 0, 0, "https://www.example.com/", None),
        (Scope.PREFIX, 1, 0, "https://www.example.com/docs/", Refusal.SCOPE),
        (Scope.DOMAIN, 2, 0, "https://www.example.com/", None),
        (Scope.DOMAIN, 2, 0, "https://example.org/", Refusal.SCOPE),
        (Scope.DOMAIN, 0, 0, "https://example.org/", None),
        (Scope.ANY, 5, 9, "https://www.example.com/", None),
        (Scope.ANY, 5, 9, "https://www.example.com/a/a/a", Refusal.REPETITION),
        (Scope.ANY, 5, REDIRECTS_MAX, "https://www.example.com/", Refusal.REDIRECTS),
    ],
)
def test_redirect_keeps_depth_and_counts_hop(
    scope: Scope, depth: int, hops: int, url: str, refusal: Refusal | None
) -> None:
    """Only a redirect of a seed may leave the host (case 42)."""
    source = replace(PAGE, depth=depth, hops=hops)
    target = Target(url=url, depth=depth, hops=hops + 1, referrer=source.url)
    admitted = admit_redirect(replace(CRAWL, scope=scope), url, source)
    assert admitted == (target if refusal is None else refusal)


@pytest.mark.parametrize(
    ("state", "stop", "after_s", "continuous", "reason"),
    [
        (State.RUNNING, None, 0, False, None),
        (State.PAUSED, None, 0, False, None),
        (State.RUNNING, None, 7 * 86_400, False, Reason.DURATION),
        (State.RUNNING, None, 7 * 86_400, True, None),
        (State.STOPPING, Stop.CANCELLED, 0, False, Reason.CANCELLED),
        (State.STOPPING, Stop.DURATION, 0, False, Reason.DURATION),
        (State.FINISHED, Stop.FINISHED, 0, False, Reason.CANCELLED),
    ],
)
def test_url_of_ended_crawl_is_skipped_with_reason(
    state: State, stop: Stop | None, after_s: int, reason: Reason | None, *, continuous: bool
) -> None:
    crawl = replace(CRAWL, state=state, stop=stop, continuous=continuous)
    assert admit_target(crawl, NOW_MS + after_s * 1000) is reason


@pytest.mark.parametrize(
    ("seed", "url", "root", "inside", "outside"),
    [
        ("/docs/", "https://www.example.com/docs/", "https://www.example.com/docs/", "x", "../y"),
        ("/docs/", "https://example.com/en/docs/", "https://example.com/en/docs/", "x", "../y"),
        # a redirect never widens the scope beyond the folder of the seed
        ("/docs/a", "https://www.example.com/", "https://www.example.com/docs/", "docs/x", "y"),
        ("/docs/a", "https://example.com/login?next=a", "https://example.com/docs/", "docs/x", "y"),
        ("/", "http://www.example.com/home/", "http://www.example.com/", "/x", "//example.com/y"),
    ],
)
def test_redirected_seed_folder_becomes_scope_of_its_links(
    seed: str, url: str, root: str, inside: str, outside: str
) -> None:
    origin = "https://example.com"
    crawl = replace(CRAWL, scope=Scope.PREFIX, seeds=(f"{origin}/other/", f"{origin}{seed}"))
    if seed == "/":
        crawl = replace(crawl, seeds=(f"{origin}/",))
    source = Target(url=f"{origin}{seed}", depth=0)
    assert leaves_scope(crawl, url, source)
    moved = admit_redirect(crawl, url, source)
    assert moved == Target(url=url, depth=0, hops=1, referrer=source.url, root=root)
    page = admit_link(crawl, canonicalize(inside, url), moved)
    assert isinstance(page, Target)
    assert page.root == root
    assert isinstance(admit_link(crawl, canonicalize("z", root), page), Target)
    assert admit_link(crawl, canonicalize(outside, url), page) is Refusal.SCOPE
    # a second redirect keeps that scope
    again = admit_redirect(crawl, "https://third.example/", moved)
    assert isinstance(again, Target)
    assert again.root == f"https://third.example{root[len(host_of(root)) :]}"
    assert admit_redirect(crawl, "https://third.example/", page) is Refusal.SCOPE
