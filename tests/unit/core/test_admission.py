"""Why a URL is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.core.admission import (
    REDIRECTS_MAX,
    admit_link,
    admit_redirect,
    admit_target,
    in_scope,
    prefixes,
)
from orbweaver.core.crawl import Crawl, Scope, State, Stop
from orbweaver.core.message import Target
from orbweaver.core.outcome import Reason, Refusal

NOW_MS = 1_795_251_600_000
SITE = "https://example.com"
CRAWL = Crawl(
    id="c", name="c", started_at_ms=NOW_MS, depth_max=3, seeds=(f"{SITE}/docs/index.html?x=/y",)
)
PAGE = Target(url=f"{SITE}/docs/a", depth=2)


@pytest.mark.parametrize(
    ("scope", "url", "belongs"),
    [
        (Scope.ANY, "https://other.example/", True),
        (Scope.HOST, f"{SITE}/b", True),
        (Scope.HOST, "http://example.com/b", False),
        (Scope.HOST, "https://example.com:8443/b", False),
        (Scope.HOST, "https://www.example.com/b", False),
        (Scope.HOST, "https://example.com.evil.example/", False),
        (Scope.PREFIX, f"{SITE}/docs/", True),
        (Scope.PREFIX, f"{SITE}/docs/deep/b?c", True),
        (Scope.PREFIX, f"{SITE}/docs", False),
        (Scope.PREFIX, f"{SITE}/docsmore/", False),
        (Scope.PREFIX, "https://other.example/docs/", False),
    ],
)
def test_scope_says_which_links_belong(scope: Scope, url: str, *, belongs: bool) -> None:
    """Links belong to their page's host, below a seed's folder, or anyway."""
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
def test_a_seed_lies_in_a_folder(seed: str, folder: str) -> None:
    """The folder ends at the last slash of the path."""
    assert prefixes([seed]) == (folder,)


@pytest.mark.parametrize(
    ("url", "depth", "admitted"),
    [
        (f"{SITE}/b", 2, Target(url=f"{SITE}/b", depth=3, referrer=PAGE.url)),
        (f"{SITE}/b", 3, Refusal.DEPTH),
        ("https://other.example/", 2, Refusal.SCOPE),
        ("https://other.example/", 3, Refusal.DEPTH),
    ],
)
def test_a_link_is_one_deeper_or_refused(url: str, depth: int, admitted: Target | Refusal) -> None:
    """A link becomes a target with its page as referrer, unless depth or scope forbid it."""
    assert admit_link(CRAWL, url, replace(PAGE, depth=depth)) == admitted


@pytest.mark.parametrize(
    ("scope", "depth", "hops", "url", "refusal"),
    [
        (Scope.HOST, 2, 0, f"{SITE}/b", None),
        (Scope.HOST, 2, 0, "https://www.example.com/", Refusal.SCOPE),
        (Scope.HOST, 0, 0, "https://www.example.com/", None),
        (Scope.PREFIX, 0, 0, "https://www.example.com/docs/", Refusal.SCOPE),
        (Scope.ANY, 5, 9, "https://www.example.com/", None),
        (Scope.ANY, 5, REDIRECTS_MAX, "https://www.example.com/", Refusal.REDIRECTS),
    ],
)
def test_a_redirect_leads_on_within_bounds(
    scope: Scope, depth: int, hops: int, url: str, refusal: Refusal | None
) -> None:
    """A redirect keeps its depth, counts a hop, and leaves the host only from a seed (case 42)."""
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
def test_a_crawl_that_is_over_asks_for_nothing(
    state: State, stop: Stop | None, after_s: int, reason: Reason | None, *, continuous: bool
) -> None:
    """URLs of a stopped crawl, or of one that has lasted too long, end unasked with a reason."""
    crawl = replace(CRAWL, state=state, stop=stop, continuous=continuous)
    assert admit_target(crawl, NOW_MS + after_s * 1000) is reason
