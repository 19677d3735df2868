"""Runs that ask again for what failed: which URLs, how deep, within which scope."""

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
from orbweaver.frontier.admission import admit_again, in_scope, vouched
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
    """Make the record of a URL, of one that failed if nothing else is said."""
    known: dict[str, Any] = {"outcome": Outcome.FAILED, "depth": 2, "fetched_at": NOW_MS}
    url = path if "://" in path else f"{SITE}{path}"
    return PageRecord(crawl="shop-1", url=url, reason=reason, **{**known, **fields})


def seen(*records: PageRecord, crawl: Crawl = CRAWL, **selection: Any) -> Failures:
    """Collect the failures among records."""
    failures = Failures(crawl=crawl, selection=RetrySelection.of(**selection))
    for one in records:
        failures.see(one)
    return failures


def run_of(*records: PageRecord, crawl: Crawl = CRAWL) -> Crawl:
    """Make the run that asks again for what failed among records."""
    return rerun_of(crawl, seen(*records, crawl=crawl), "shop-1-retry1", NOW_MS + 90_000)


# --- which --------------------------------------------------------------------------------------

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
def test_failures_are_chosen_by_reason_and_host(
    reasons: tuple[str, ...], host: str | None, paths: list[str]
) -> None:
    """All that failed, or what did so for these reasons, on this host; nothing that did not."""
    found = seen(*RECORDS, reasons=reasons, host=host).depths
    wanted = [f"{SITE}{path}" for path in paths if path != "other"]
    assert [url for url in found if url.startswith(f"{SITE}/")] == wanted
    assert len(found) == len(paths)


@pytest.mark.parametrize(
    ("word", "fix"), [("dsn", "did you mean dns"), ("robots", "robots_unreachable"), ("ok", "they")]
)
def test_a_reason_that_nothing_fails_for_is_refused(word: str, fix: str) -> None:
    """The nearest is named, and all of them are."""
    with pytest.raises(RerunError, match=fix) as caught:
        RetrySelection.of([word])
    assert all(reason in str(caught.value) for reason in RETRIED)


def test_what_has_succeeded_since_is_no_failure() -> None:
    """A crawl without an end may fail at a URL, and get it days later."""
    later = record("/dns", Reason.OK, outcome=Outcome.FETCHED)
    assert seen(record("/dns"), later).depths == {}
    assert list(seen(later, record("/dns")).depths) == [f"{SITE}/dns"]


def test_there_is_an_end_to_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that they are the crawl are not collected."""
    monkeypatch.setattr(rerun, "FAILURES_MAX", 2)
    with pytest.raises(RerunError, match="choose some by --reason or --host"):
        seen(*(record(f"/{number}") for number in range(3)))


# --- what it becomes ----------------------------------------------------------------------------


def test_a_retry_is_a_run_of_the_same_work() -> None:
    """Definition and name are those of the first run; what was of that run is not."""
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
    assert run.started_at_ms == NOW_MS + 90_000
    assert run.hosts_counted == (SITE,)
    assert run.work not in (None, CRAWL.work)


def test_rerun_of_paused_crawl_has_no_pause() -> None:
    """Its duration counts from its own start, and no earlier run is compared with it."""
    paused = replace(CRAWL, paused_ms=79_000, paused_at_ms=NOW_MS, pages_before=211)
    failures = Failures(crawl=paused, selection=RetrySelection())
    failures.see(record("/docs/x", depth=3))
    run = rerun_of(paused, failures, "shop-1-retry1", NOW_MS + 90_000)
    assert run.ran_ms(run.started_at_ms + 4_000) == 4_000
    assert (run.paused_at_ms, run.pages_before) == (None, None)


def test_a_retry_begins_behind_the_run_before_it() -> None:
    """Its claims are newer than all of that run's, even by a clock that is slow."""
    run = rerun_of(CRAWL, seen(record("/x")), "r", NOW_MS)
    assert run.started_at_ms == NOW_MS + 60_001


def test_seeds_of_a_retry_are_as_deep_as_they_lay() -> None:
    """The depth is kept, and claims of earlier runs do not hold; patterns and rules do."""
    run = run_of(record("/docs/x", depth=3))
    again = admit_again(run, run.seeds[0], 3)
    assert again == Target(url=run.seeds[0], depth=3, modified_at_ms=run.started_at_ms)
    excluded = replace(run, exclude=("/docs/",))
    assert admit_again(excluded, run.seeds[0], 3) is Refusal.EXCLUDE


def test_the_scope_of_a_retry_is_that_of_the_first_run() -> None:
    """Folders are those of the first seeds, and not of what failed; again and again."""
    run = run_of(record("/docs/deep/x"))
    second = run_of(record("/docs/y"), crawl=replace(run, state=State.FINISHED))
    for one in (run, second):
        assert in_scope(one, f"{SITE}/docs/z", f"{SITE}/docs/deep/x")
        assert in_scope(one, "https://other.example/c", f"{SITE}/docs/deep/x")
        assert not in_scope(one, f"{SITE}/blog/", f"{SITE}/docs/deep/x")
    assert second.retry_of == run.id


def test_folders_that_seeds_led_to_stay_part_of_it() -> None:
    """Below the folder to which a redirect widened the scope, a failure's links belong."""
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


def test_secrets_go_to_the_first_run_s_own_origins_only() -> None:
    """A host at which a link failed does not become one that may see them."""
    elsewhere = "https://elsewhere.example"
    run = run_of(record(f"{elsewhere}/x"), crawl=replace(CRAWL, scope=Scope.ANY))
    assert run.anchors == (f"{SITE}/", "https://other.example/")
    assert ("Authorization", "secret") in identity_of(run, SITE, "bot").headers
    assert identity_of(run, elsewhere, "bot").headers == (("Accept-Language", "de"),)


def test_a_crawl_of_sitemaps_alone_showed_nobody_a_secret() -> None:
    """So its retries do not either, and their scope is measured by the sitemaps."""
    sitemap = f"{SITE}/docs/sitemap.xml"
    crawl = replace(crawl_of(replace(PLAN, seeds=(), sitemap_urls=(sitemap,)), NOW_MS))
    run = run_of(record("/docs/x"), crawl=crawl)
    assert run.headers == (("Accept-Language", "de"),)
    assert run.anchors == (f"{SITE}/docs/",)


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
def test_what_was_to_be_a_sitemap_is_one_again(path: str, records: list[PageRecord]) -> None:
    """Named by a person or a robots.txt, listed by an index, or where one of those led."""
    crawl = replace(CRAWL, sitemap_urls=(f"{SITE}/named.xml",))
    run = run_of(*records, crawl=crawl)
    assert run.sitemap_urls == (f"{SITE}{path}",)
    assert (run.seeds, run.seeds_planned) == ((), 1)
    hosts = vouched(run, Target(url=run.sitemap_urls[0], depth=0))
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
        [  # a circle
            record("/b", depth=0, referrer=f"{SITE}/c"),
            record("/c", Reason.REDIRECT, **LED, referrer=f"{SITE}/b"),
        ],
    ],
)
def test_what_was_a_page_is_one_again(records: list[PageRecord]) -> None:
    """A seed, where a seed led, and what a sitemap listed."""
    run = run_of(*records)
    assert not run.sitemap_urls
    assert len(run.seeds) == 1


# --- how many -----------------------------------------------------------------------------------


def test_more_failures_than_one_item_holds_are_left_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run takes as many as a crawl may have seeds, and as many bytes."""
    long = [record(f"/{number}/{'x' * 2_000}") for number in range(150)]
    run = run_of(*long)
    assert 120 < len(run.seeds) < 131
    assert sum(map(len, (*run.seeds, *run.anchors))) <= SEEDS_BYTES_MAX
    assert run.seeds_planned == 2
    monkeypatch.setattr(rerun, "SEEDS_MAX", 7)
    assert len(run_of(*(record(f"/{number}") for number in range(9))).seeds) == 7


def test_a_run_that_begins_at_many_places_leaves_some_room() -> None:
    """However much its anchors take, some failures fit beside them."""
    crawl = replace(CRAWL, anchors=(f"{SITE}/{'x' * SEEDS_BYTES_MAX}/",))
    assert (
        10
        < len(run_of(*(record(f"/{n}/{'x' * 2_000}") for n in range(50)), crawl=crawl).seeds)
        < 17
    )


def test_retries_are_numbered() -> None:
    """Those of a retry go on with the numbers of its first run; long ids stay within bounds."""
    retry = replace(CRAWL, id="shop-1-retry4", retry_of="shop-1")
    assert base_of(CRAWL) == base_of(retry) == "shop-1"
    assert base_of(replace(CRAWL, id="my-retry4")) == "my-retry4"
    assert next_number("shop-1", ["shop-1", "shop-1-retry2", "shop-1-retry10", "x-retry99"]) == 11
    assert next_number("shop-1", []) == 1
    assert id_of("shop-1", 11) == "shop-1-retry11"
    assert len(id_of(base_of(replace(CRAWL, id="x" * 128)), 1_000)) <= 128
