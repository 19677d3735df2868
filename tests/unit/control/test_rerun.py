"""Retry runs: the URLs they request, their depth and their scope."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control import rerun
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.rerun import (
    RETRIED,
    SEEDS_BYTES_MAX,
    Failures,
    RerunError,
    RetrySelection,
    base_of,
    id_of,
    next_number,
    rerun_of,
)
from orbweaver.control.spec_checks import crawl_of
from orbweaver.frontier.admission import admit_again, hosts_for_sitemap, in_scope
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target
from orbweaver.model.user_agent import identity_of

NOW_MS = 1_795_251_600_000
SITE = "https://example.com"
PLAN = CrawlSpec(
    seeds=(f"{SITE}/docs/a", "https://other.example/b"),
    id="shop-1",
    name="shop",
    scope=Scope.PREFIX,
    depth_max=3,
    headers=(("Authorization", "secret"), ("Accept-Language", "de")),
)
CRAWL = replace(
    crawl_of(PLAN, NOW_MS),
    state=State.FINISHED,
    stop=Stop.FINISHED,
    finished_at_ms=NOW_MS + 60_000,
    announced=True,
    edits=3,
)


def record(path: str, reason: Reason = Reason.DNS, **fields: Any) -> PageRecord:
    known: dict[str, Any] = {"outcome": Outcome.FAILED, "depth": 2, "fetched_at": NOW_MS}
    url = path if "://" in path else f"{SITE}{path}"
    return PageRecord(crawl="shop-1", url=url, reason=reason, **{**known, **fields})


def seen(*records: PageRecord, crawl: Crawl = CRAWL, **selection: Any) -> Failures:
    failures = Failures(crawl=crawl, selection=RetrySelection.parse(**selection))
    for one in records:
        failures.add(one)
    return failures


def run_of(*records: PageRecord, crawl: Crawl = CRAWL) -> Crawl:
    return rerun_of(crawl, seen(*records, crawl=crawl), "shop-1-retry1", NOW_MS + 90_000)


# --- selection ----------------------------------------------------------------------------------

RECORDS = (
    record("/dns"),
    record("/timeout", Reason.TIMEOUT),
    record("https://other.example:8443/dns"),
    record("/ok", Reason.OK, outcome=Outcome.FETCHED),
    record("/robots", Reason.ROBOTS, outcome=Outcome.SKIPPED),
    record("/unreachable", Reason.ROBOTS_UNREACHABLE, outcome=Outcome.SKIPPED),
)


@pytest.mark.parametrize(
    ("reasons", "host", "paths"),
    [
        ((), None, ["/dns", "/timeout", "other"]),
        (("dns",), None, ["/dns", "other"]),
        (("dns", "timeout"), "example.com", ["/dns", "/timeout"]),
        ((), "other.example", ["other"]),
        ((), "Other.example:8443", ["other"]),
        ((), "https://other.example:8443/", ["other"]),
        ((), "https://other.example", []),
        (("robots_unreachable",), None, ["/unreachable"]),
        (("tls",), None, []),
    ],
)
def test_failures_are_selected_by_reason_and_host(
    reasons: tuple[str, ...], host: str | None, paths: list[str]
) -> None:
    found = seen(*RECORDS, reasons=reasons, host=host).depths
    wanted = [f"{SITE}{path}" for path in paths if path != "other"]
    assert [url for url in found if url.startswith(f"{SITE}/")] == wanted
    assert len(found) == len(paths)


@pytest.mark.parametrize(
    ("word", "fix"), [("dsn", "did you mean dns"), ("robots", "robots_unreachable"), ("ok", "they")]
)
def test_unknown_reason_is_refused_with_nearest(word: str, fix: str) -> None:
    with pytest.raises(RerunError, match=fix) as caught:
        RetrySelection.parse([word])
    assert all(reason in str(caught.value) for reason in RETRIED)


def test_url_succeeding_later_is_no_failure() -> None:
    """In a crawl without an end the success may come days later."""
    later = record("/dns", Reason.OK, outcome=Outcome.FETCHED)
    assert seen(record("/dns"), later).depths == {}
    assert list(seen(later, record("/dns")).depths) == [f"{SITE}/dns"]


def test_failures_beyond_limit_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun, "FAILURES_MAX", 2)
    with pytest.raises(RerunError, match="choose some by --reason or --host"):
        seen(*(record(f"/{number}") for number in range(3)))


# --- the run ------------------------------------------------------------------------------------


def test_retry_keeps_definition_and_name_of_first_run() -> None:
    run = run_of(record("/docs/x", depth=3), record("/docs/y", depth=1))
    assert run.seeds == (f"{SITE}/docs/x", f"{SITE}/docs/y")
    assert (run.seed_depths, run.seeds_planned, run.retry_of) == ((3, 1), 1, "shop-1")
    assert (run.id, run.name, run.depth_max) == ("shop-1-retry1", "shop", 3)
    assert (run.state, run.stop, run.finished_at_ms, run.announced, run.edits) == (
        State.RUNNING,
        None,
        None,
        False,
        0,
    )
    assert (run.started_at_ms, run.hosts_counted) == (NOW_MS + 90_000, (SITE,))
    assert run.work not in (None, CRAWL.work)


def test_rerun_of_paused_crawl_has_no_pause() -> None:
    paused = replace(CRAWL, paused_ms=79_000, paused_at_ms=NOW_MS, pages_before=211)
    failures = Failures(crawl=paused, selection=RetrySelection())
    failures.add(record("/docs/x", depth=3))
    run = rerun_of(paused, failures, "shop-1-retry1", NOW_MS + 90_000)
    assert run.ran_ms(run.started_at_ms + 4_000) == 4_000
    assert (run.paused_at_ms, run.pages_before) == (None, None)


def test_retry_starts_after_run_before_it() -> None:
    """Claims of the retry are newer than all claims of that run, even if the clock is behind."""
    assert rerun_of(CRAWL, seen(record("/x")), "r", NOW_MS).started_at_ms == NOW_MS + 60_001


def test_retry_seeds_keep_depth_and_ignore_old_claims() -> None:
    run = run_of(record("/docs/x", depth=3))
    again = admit_again(run, run.seeds[0], 3)
    assert again == Target(url=run.seeds[0], depth=3, modified_at_ms=run.started_at_ms)
    assert admit_again(replace(run, exclude=("/docs/",)), run.seeds[0], 3) is Refusal.EXCLUDE


def test_retry_scope_is_scope_of_first_run() -> None:
    """Folders come from the first seeds, not from failed URLs, also in later retries."""
    run = run_of(record("/docs/deep/x"))
    second = run_of(record("/docs/y"), crawl=replace(run, state=State.FINISHED))
    for one in (run, second):
        assert in_scope(one, f"{SITE}/docs/z", f"{SITE}/docs/deep/x")
        assert in_scope(one, "https://other.example/c", f"{SITE}/docs/deep/x")
        assert not in_scope(one, f"{SITE}/blog/", f"{SITE}/docs/deep/x")
    assert second.retry_of == run.id


def test_retry_scope_includes_folders_seeds_redirected_to() -> None:
    led = {"outcome": Outcome.REDIRECTED, "depth": 0, "error": "https://www.example.com/docs/a"}
    failed = record("https://www.example.com/docs/x")
    run = run_of(record("/docs/a", Reason.WIDENED, **led), failed, record("/docs/y"))
    assert run.roots == ("https://www.example.com/docs/",)
    inside, outside = (admit_again(run, url, 2) for url in run.seeds)
    assert isinstance(inside, Target)
    assert isinstance(outside, Target)
    assert (inside.root, outside.root) == ("https://www.example.com/docs/", None)
    assert run_of(failed, crawl=run).roots == run.roots
    cut = {**led, "error": "https://www.example.com/" + "d" * 276}
    assert run_of(record("/docs/a", Reason.WIDENED, **cut), failed).roots == ()


def test_retry_sends_secrets_to_first_origins_only() -> None:
    elsewhere = "https://elsewhere.example"
    run = run_of(record(f"{elsewhere}/x"), crawl=replace(CRAWL, scope=Scope.ANY))
    assert run.anchors == (f"{SITE}/", "https://other.example/")
    assert ("Authorization", "secret") in identity_of(run, SITE, "bot").headers
    assert identity_of(run, elsewhere, "bot").headers == (("Accept-Language", "de"),)


def test_retry_of_sitemap_only_crawl_sends_no_secret() -> None:
    sitemap = f"{SITE}/docs/sitemap.xml"
    crawl = replace(crawl_of(replace(PLAN, seeds=(), sitemap_urls=(sitemap,)), NOW_MS))
    run = run_of(record("/docs/x"), crawl=crawl)
    assert (run.headers, run.anchors) == ((("Accept-Language", "de"),), (f"{SITE}/docs/",))


# --- sitemaps -----------------------------------------------------------------------------------

READ = {"outcome": Outcome.FETCHED, "depth": 0, "referrer": f"{SITE}/robots.txt"}
LED = {"outcome": Outcome.REDIRECTED, "depth": 0}


@pytest.mark.parametrize(
    ("path", "records"),
    [
        ("/named.xml", [record("/named.xml", depth=0)]),
        ("/robot.xml", [record("/robot.xml", depth=0, referrer=f"{SITE}/robots.txt")]),
        ("/odd", [record("/odd", Reason.SITEMAP_INVALID, depth=0)]),
        (
            "/part.xml",
            [
                record("/index.xml", Reason.SITEMAP, **READ),
                record("/part.xml", depth=0, referrer=f"{SITE}/index.xml"),
            ],
        ),
        (
            "/moved.xml",
            [
                record("/map.xml", Reason.REDIRECT, **LED, referrer=f"{SITE}/robots.txt"),
                record("/moved.xml", depth=0, referrer=f"{SITE}/map.xml"),
            ],
        ),
    ],
)
def test_failed_sitemap_is_sitemap_in_retry(path: str, records: list[PageRecord]) -> None:
    crawl = replace(CRAWL, sitemap_urls=(f"{SITE}/named.xml",))
    run = run_of(*records, crawl=crawl)
    assert (run.sitemap_urls, run.seeds, run.seeds_planned) == ((f"{SITE}{path}",), (), 1)
    hosts = hosts_for_sitemap(run, Target(url=run.sitemap_urls[0], depth=0))
    assert hosts == {SITE, "https://other.example"}


@pytest.mark.parametrize(
    "records",
    [
        [record("/docs/a", depth=0)],
        [
            record("/docs/a", Reason.REDIRECT, **LED),
            record("/b", depth=0, referrer=f"{SITE}/docs/a"),
        ],
        [record("/x", depth=1, referrer=f"{SITE}/index.xml")],
        [record("/b", depth=0, referrer=f"{SITE}/gone")],
        [  # a redirect loop
            record("/b", depth=0, referrer=f"{SITE}/c"),
            record("/c", Reason.REDIRECT, **LED, referrer=f"{SITE}/b"),
        ],
    ],
)
def test_failed_page_is_page_in_retry(records: list[PageRecord]) -> None:
    run = run_of(*records)
    assert not run.sitemap_urls
    assert len(run.seeds) == 1


# --- limits -------------------------------------------------------------------------------------


def test_failures_beyond_one_run_are_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [record(f"/{number}/{'x' * 2_000}") for number in range(150)]
    run = run_of(*long)
    assert 120 < len(run.seeds) < 131
    assert sum(map(len, (*run.seeds, *run.anchors))) <= SEEDS_BYTES_MAX
    assert run.seeds_planned == 2
    monkeypatch.setattr(rerun, "SEEDS_MAX", 7)
    assert len(run_of(*(record(f"/{number}") for number in range(9))).seeds) == 7


def test_run_with_many_anchors_leaves_room_for_failures() -> None:
    crawl = replace(CRAWL, anchors=(f"{SITE}/{'x' * SEEDS_BYTES_MAX}/",))
    assert (
        10
        < len(run_of(*(record(f"/{n}/{'x' * 2_000}") for n in range(50)), crawl=crawl).seeds)
        < 17
    )


def test_retries_are_numbered_within_id_length() -> None:
    retry = replace(CRAWL, id="shop-1-retry4", retry_of="shop-1")
    assert base_of(CRAWL) == base_of(retry) == "shop-1"
    assert base_of(replace(CRAWL, id="my-retry4")) == "my-retry4"
    assert next_number("shop-1", ["shop-1", "shop-1-retry2", "shop-1-retry10", "x-retry99"]) == 11
    assert next_number("shop-1", []) == 1
    assert id_of("shop-1", 11) == "shop-1-retry11"
    assert len(id_of(base_of(replace(CRAWL, id="x" * 128)), 1_000)) <= 128
