"""Admission of URLs from the seed queue and from packs."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.admission import admit_entry, admit_redirect
from orbweaver.frontier.crawl_scope import admit_claimed, admit_dropped, is_of_one_host
from orbweaver.model.crawl import Crawl, default_crawl
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.target import Target, TargetKind, from_rows, to_rows
from orbweaver.model.url import canonicalize, is_canonical
from orbweaver.parsing.sitemap import SitemapEntry

NOW_MS = 1_795_251_600_000
SITE, OTHER = "https://www.example.com", "https://other.example"
CRAWL = Crawl(id="c", name="c", started_at_ms=NOW_MS, depth_max=3, seeds=(f"{SITE}/docs/a",))


@pytest.mark.parametrize(
    ("changes", "url", "refused"),
    [
        ({}, f"{SITE}/x", None),
        ({}, f"{OTHER}/x", Refusal.SCOPE),
        ({}, "https://example.com/x", Refusal.SCOPE),
        ({"scope": Scope.DOMAIN}, "https://example.com/x", None),
        ({"scope": Scope.DOMAIN}, f"{OTHER}/x", Refusal.SCOPE),
        ({"scope": Scope.PREFIX}, f"{SITE}/docs/b", None),
        ({"scope": Scope.PREFIX}, f"{SITE}/b", Refusal.SCOPE),
        ({"scope": Scope.PREFIX, "roots": (f"{OTHER}/m/",)}, f"{OTHER}/m/b", None),
        ({"scope": Scope.ANY}, f"{OTHER}/x", None),
        ({"exclude": ("/x",)}, f"{SITE}/x", Refusal.EXCLUDE),
        ({"include": ("/docs/",)}, f"{SITE}/x", Refusal.INCLUDE),
        ({"seeds": (), "sitemap_urls": (f"{OTHER}/s.xml",)}, f"{OTHER}/x", None),
        ({"anchors": (f"{OTHER}/",)}, f"{SITE}/x", Refusal.SCOPE),
    ],
)
def test_dropped_url_of_named_crawl_must_be_in_scope(
    changes: dict[str, object], url: str, refused: Refusal | None
) -> None:
    admitted = admit_dropped(replace(CRAWL, **changes), url)  # type: ignore[arg-type]
    assert (admitted if refused else None) == refused
    if refused is None:
        assert admitted == Target(url=url, depth=0, bound=True)


@pytest.mark.parametrize(
    ("changes", "one"),
    [
        ({}, True),
        ({"scope": Scope.PREFIX}, True),
        ({"scope": Scope.DOMAIN}, False),
        ({"scope": Scope.ANY}, False),
        ({"seeds": (f"{SITE}/a", f"{SITE}/b")}, True),
        ({"seeds": (f"{SITE}/a", f"{OTHER}/")}, False),
        ({"anchors": (f"{SITE}/a", f"{OTHER}/")}, False),
        ({"seeds": ()}, False),
    ],
)
def test_crawl_is_of_one_host_by_seeds_and_scope(changes: dict[str, object], *, one: bool) -> None:
    assert is_of_one_host(replace(CRAWL, **changes)) is one  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("crawl", "url"), [(default_crawl(NOW_MS), f"{OTHER}/x"), (CRAWL, f"{SITE}/docs/a")]
)
def test_dropped_url_of_default_crawl_or_seed_is_unbound(crawl: Crawl, url: str) -> None:
    assert admit_dropped(crawl, url) == Target(url=url, depth=0)


def test_redirect_of_dropped_url_stays_in_scope() -> None:
    dropped = admit_dropped(CRAWL, f"{SITE}/go")
    assert isinstance(dropped, Target)
    inside = admit_redirect(CRAWL, f"{SITE}/go/on", dropped)
    assert isinstance(inside, Target)
    assert inside.bound
    for source in (dropped, inside):
        assert admit_redirect(CRAWL, f"{OTHER}/", source) is Refusal.SCOPE
    assert isinstance(admit_redirect(CRAWL, f"{OTHER}/", replace(dropped, bound=False)), Target)


def test_bound_flag_survives_pack_encoding() -> None:
    target = Target(url=f"{SITE}/go", depth=0, bound=True, express=True)
    assert tuple(from_rows(*to_rows([target]))) == (target,)


PAGE = Target(url=f"{SITE}/b", depth=1, referrer=f"{SITE}/a")


@pytest.mark.parametrize(
    ("crawl", "target", "reason"),
    [
        (CRAWL, PAGE, None),
        (CRAWL, replace(PAGE, depth=4), Reason.DEPTH),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b"), Reason.SCOPE),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b", referrer=f"{OTHER}/a"), None),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b", depth=0), None),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b", depth=0, bound=True), Reason.SCOPE),
        (CRAWL, replace(PAGE, depth=0, bound=True), None),
        (CRAWL, replace(PAGE, url=f"{OTHER}/s.xml", kind=TargetKind.SITEMAP), None),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b", site=OTHER), None),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b", site=SITE), Reason.SCOPE),
        (CRAWL, replace(PAGE, referrer=f"{OTHER}/s.xml"), None),
        (replace(CRAWL, scope=Scope.PREFIX), PAGE, Reason.SCOPE),
        (replace(CRAWL, scope=Scope.PREFIX), replace(PAGE, root=f"{SITE}/"), None),
        (replace(CRAWL, scope=Scope.ANY), replace(PAGE, url=f"{OTHER}/b"), None),
        (CRAWL, replace(PAGE, url=f"{SITE}/b.zip"), Reason.CONTENT_TYPE),
        (CRAWL, replace(PAGE, url=f"{OTHER}/b.zip"), Reason.SCOPE),
        (CRAWL, replace(PAGE, url=f"{SITE}/b.zip", depth=0), None),
        (CRAWL, replace(PAGE, url=f"{SITE}/s.gz", kind=TargetKind.SITEMAP), None),
        (replace(CRAWL, bodies=Bodies.ALL), replace(PAGE, url=f"{SITE}/b.zip"), None),
        (CRAWL, replace(PAGE, url=f"{SITE}/a/../b"), Reason.INVALID),
        (CRAWL, replace(PAGE, url=f"{SITE}/b#c"), Reason.INVALID),
        (CRAWL, replace(PAGE, url="javascript:1"), Reason.INVALID),
        (CRAWL, replace(PAGE, url=f"{SITE}/\ud800"), Reason.INVALID),
        (CRAWL, replace(PAGE, url=SITE + "/x" * 2_000), Reason.INVALID),
        (CRAWL, replace(PAGE, url=""), Reason.INVALID),
    ],
)
def test_pack_target_is_checked_again_with_reason(
    crawl: Crawl, target: Target, reason: Reason | None
) -> None:
    assert admit_claimed(crawl, target) == reason


def test_entry_of_sitemap_on_other_host_is_admitted() -> None:
    sitemap = Target(
        url=f"{OTHER}/s.xml", depth=0, kind=TargetKind.SITEMAP, site="https://wide.example"
    )
    hosts = frozenset({"https://wide.example"})
    entry = admit_entry(CRAWL, SitemapEntry(url="https://wide.example/p"), sitemap, hosts)
    assert isinstance(entry, Target)
    assert admit_claimed(CRAWL, entry) is None
    near_by = replace(sitemap, url="https://wide.example/s.xml")
    near = admit_entry(CRAWL, SitemapEntry(url="https://wide.example/p"), near_by, hosts)
    assert isinstance(near, Target)
    assert near.site is None


@given(
    path=st.text(max_size=40),
    host=st.sampled_from(
        ["a.example", "xn--bcher-kva.example", "[::1]:8080", "1.2.3.4", "a-b.c.d"]
    ),
    query=st.none() | st.text(max_size=20),
)
def test_only_canonicalize_results_are_canonical(path: str, host: str, query: str | None) -> None:
    text = f"https://{host}/{path}" + ("" if query is None else f"?{query}")
    try:
        url = canonicalize(text, tracking=frozenset())
    except ValueError:
        assert not is_canonical(text)
        return
    assert is_canonical(url)
    assert is_canonical(text) is (url == text)


@pytest.mark.long
def test_check_of_claimed_target_takes_under_8_us() -> None:
    """A pack of 25 URLs takes less than 0.2 ms of CPU time."""
    targets = [replace(PAGE, url=f"{SITE}/a/page-{n}.html?n={n}") for n in range(10_000)]
    started_s = time.process_time()
    assert not any(admit_claimed(CRAWL, target) for target in targets)
    assert (time.process_time() - started_s) / len(targets) < 8e-6
