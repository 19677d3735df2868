"""The change feed: what each kind of ending means for a page, run after run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.core.crawl import State, Stop, default_crawl
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.rules import Rule
from orbweaver.core.tables import CHANGES
from orbweaver.ports import Permanent, Transient
from tests.unit.changing import (
    BROKEN,
    FORBIDDEN,
    GONE,
    HOUR_MS,
    MOVED,
    NOON_MS,
    RETENTION_S,
    SAME,
    SITEMAP,
    Stand,
    named,
    page,
    record,
    run,
    url_of,
)

if TYPE_CHECKING:
    from orbweaver.adapters.memory import Moment
    from orbweaver.core.crawl import Crawl

FIRST, SECOND, THIRD = run(0), run(2), run(4)
SKIPPED = {"outcome": Outcome.SKIPPED}


async def begun(**more: Any) -> Stand:
    """Give a stand where a run has found three pages, one by another."""
    stand = Stand(**more)
    await stand.add(
        FIRST, page(FIRST, "home"), page(FIRST, "a", by="home"), page(FIRST, "b", by="a")
    )
    return stand


async def test_a_first_run_creates_all_its_pages() -> None:
    """There is nothing before it; the row says when, and with which body."""
    stand = await begun()
    rows = await stand.rows(FIRST)
    assert [row["change"] for row in rows] == ["created"] * 3
    assert named(rows, "a") == {
        "crawl": "site-0",
        "url": url_of("a"),
        "change": "created",
        "found_at": NOON_MS + 60_000,
        "sha256": "1",
        "previous_crawl": None,
        "previous_sha256": None,
    }
    assert [*rows[0]] == [column.name for column in CHANGES.columns]


@pytest.mark.parametrize(
    ("kind", "more", "change"),
    [
        ({"outcome": Outcome.FETCHED, "reason": Reason.OK}, {"sha256": "1"}, "unchanged"),
        ({"outcome": Outcome.FETCHED, "reason": Reason.OK}, {"sha256": "2"}, "updated"),
        ({"outcome": Outcome.FETCHED, "reason": Reason.NOINDEX}, {"sha256": "2"}, "updated"),
        ({"outcome": Outcome.FETCHED, "reason": Reason.TRUNCATED}, {"sha256": "2"}, "updated"),
        ({"outcome": Outcome.FETCHED, "reason": Reason.SOFT_404}, {"sha256": "2"}, "deleted"),
        (SAME, {}, "unchanged"),
        (GONE, {}, "deleted"),
        (GONE, {"status": 410}, "deleted"),
        (GONE, {"status": 400}, None),
        (MOVED, {}, "deleted"),
        ({"outcome": Outcome.REDIRECTED, "reason": Reason.REFRESH}, {}, "deleted"),
        (SKIPPED, {"reason": Reason.CANONICAL}, "deleted"),
        (SKIPPED, {"reason": Reason.NOINDEX}, "deleted"),
        (SKIPPED, {"reason": Reason.EMPTY}, None),
        (SKIPPED, {"reason": Reason.ROBOTS_UNREACHABLE}, None),
        (FORBIDDEN, {}, None),
        (BROKEN, {}, None),
        ({"outcome": Outcome.FAILED, "reason": Reason.TIMEOUT}, {}, None),
        ({"outcome": Outcome.FAILED, "reason": Reason.FORBIDDEN}, {"status": 403}, None),
    ],
)
async def test_what_an_ending_means_for_a_page_that_was_known(
    kind: dict[str, Any], more: dict[str, Any], change: str | None
) -> None:
    """Bodies decide between updated and unchanged; what failed is as it was, without a row."""
    stand = await begun()
    ending = record(SECOND, "a", kind, by="home", **more)
    await stand.add(
        SECOND, page(SECOND, "home", "2"), ending, *([] if change else [page(SECOND, "b")])
    )
    rows = await stand.rows(SECOND)
    found = {row["url"]: row for row in rows}
    assert found.get(url_of("a"), {}).get("change") == change
    if change is not None:
        assert found[url_of("a")]["previous_crawl"] == "site-0"
        assert found[url_of("a")]["previous_sha256"] == "1"
        gone = change == "deleted"
        assert found[url_of("a")]["sha256"] == (None if gone else more.get("sha256", "1"))


async def test_an_unchanged_page_keeps_its_body_for_the_next_comparison() -> None:
    """A 304 brings none: the run after it still knows whether the page has changed since."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", SAME, by="home"))
    await stand.add(THIRD, page(THIRD, "home"), page(THIRD, "a", "2", by="home"))
    row = named(await stand.rows(THIRD), "a")
    assert (row["change"], row["previous_crawl"], row["previous_sha256"]) == (
        "updated",
        "site-2",
        "1",
    )


async def test_a_page_that_comes_back_is_created_again() -> None:
    """What is deleted is not known any more."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", GONE, by="home"))
    await stand.add(THIRD, page(THIRD, "home"), page(THIRD, "a", by="home"))
    assert (await stand.changes(SECOND))["a"] == "deleted"
    row = named(await stand.rows(THIRD), "a")
    assert (row["change"], row["previous_crawl"]) == ("created", None)


async def test_what_nothing_leads_to_is_deleted() -> None:
    """And what it led to with it, in the same run, at the time of the run's end."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "2"))
    rows = await stand.rows(SECOND)
    assert {row["url"]: row["change"] for row in rows} == {
        url_of("home"): "updated",
        url_of("a"): "deleted",
        url_of("b"): "deleted",
    }
    assert named(rows, "b")["found_at"] == SECOND.finished_at_ms
    await stand.add(THIRD, page(THIRD, "home", "2"))
    assert await stand.changes(THIRD) == {"home": "unchanged"}


@pytest.mark.parametrize("kind", [BROKEN, FORBIDDEN], ids=["503", "robots"])
async def test_what_lies_below_a_page_that_cannot_be_read_is_left(kind: dict[str, Any]) -> None:
    """A site whose front page fails has not lost its pages, however deep they lie."""
    stand = await begun()
    await stand.add(SECOND, record(SECOND, "home", kind))
    await stand.add(THIRD, page(THIRD, "home"))
    assert await stand.changes(SECOND) == {}
    assert await stand.changes(THIRD) == {"home": "unchanged", "a": "deleted", "b": "deleted"}


async def test_a_seed_that_is_dropped_is_deleted() -> None:
    """Nothing had led to it but the definition."""
    stand = Stand()
    await stand.add(FIRST, page(FIRST, "home"), page(FIRST, "other"))
    await stand.add(SECOND, page(SECOND, "home"))
    assert await stand.changes(SECOND) == {"home": "unchanged", "other": "deleted"}


async def test_a_circle_that_nothing_leads_to_is_deleted() -> None:
    """Pages that only lead to each other do not keep each other."""
    stand = await begun()
    extra = replace(page(FIRST, "a", by="b"), fetched_at=FIRST.started_at_ms + 60_000)
    stand = Stand()
    await stand.add(FIRST, page(FIRST, "home"), extra, page(FIRST, "b", by="a"))
    await stand.add(SECOND, page(SECOND, "home"))
    assert await stand.changes(SECOND) == {"home": "unchanged", "a": "deleted", "b": "deleted"}


@pytest.mark.parametrize(
    "more",
    [
        {"stop": Stop.MAX_PAGES},
        {"stop": Stop.CANCELLED},
        {"stop": Stop.DURATION},
        {"retry_of": "site-0"},
        {"window_s": 7 * 86_400},
        {"rules": (Rule(match="/[ab]$", window_s=86_400),)},
        {"rules": (Rule(match="/[ab]$", record=False),)},
    ],
    ids=lambda more: next(iter(more)),
)
async def test_what_was_not_to_be_asked_for_is_left(more: dict[str, Any]) -> None:
    """Where a limit was met, in a retry, within the window, and where nothing is recorded."""
    stand = await begun()
    second = await stand.add(run(2, **more), page(run(2), "home", "2"))
    assert await stand.changes(second) == {"home": "updated"}
    await stand.add(THIRD, page(THIRD, "home", "2"))
    assert (await stand.changes(THIRD))["b"] == "deleted"


async def test_what_failed_was_asked_for_and_holds_a_claim() -> None:
    """Its window begins anew, so that the next run, which may not ask, does not delete it."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", BROKEN, by="home"))
    third = await stand.add(
        run(4, rules=(Rule(match="/a$", window_s=3 * 3_600),)), page(THIRD, "home")
    )
    assert "a" not in await stand.changes(third)


async def test_what_another_run_holds_is_left() -> None:
    """A run that was still under way may have claimed what this one did not ask for."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"))
    await stand.add(run(1, finished_at_ms=NOON_MS + 9 * HOUR_MS))
    assert await stand.changes(SECOND) == {"home": "unchanged"}


async def test_what_another_run_asked_for_later_is_not_taken_back() -> None:
    """Of two runs at once the one that ends last may have the older answer of a URL."""
    slow = run(1, finished_at_ms=NOON_MS + 9 * HOUR_MS)
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "3"), page(SECOND, "a"), page(SECOND, "b"))
    await stand.add(slow, page(slow, "home", "2"))
    assert await stand.changes(SECOND) == {"home": "updated", "a": "unchanged", "b": "unchanged"}
    assert await stand.changes(slow) == {}


async def test_sitemaps_are_no_pages_but_lead_to_some() -> None:
    """One that cannot be read keeps its pages; one that is read does not."""
    stand = Stand()
    await stand.add(
        FIRST, record(FIRST, "sitemap.xml", SITEMAP), page(FIRST, "a", by="sitemap.xml")
    )
    await stand.add(SECOND, record(SECOND, "sitemap.xml", BROKEN))
    await stand.add(THIRD, record(THIRD, "sitemap.xml", SITEMAP))
    assert await stand.changes(FIRST) == {"a": "created"}
    assert await stand.changes(SECOND) == {}
    assert await stand.changes(THIRD) == {"a": "deleted"}


async def test_a_sitemap_that_robots_named_is_gone_once_its_site_is_read() -> None:
    """A robots.txt is never recorded: where pages were read, it was read before them."""
    stand = Stand()
    await stand.add(
        FIRST,
        page(FIRST, "home"),
        record(FIRST, "sitemap.xml", SITEMAP, by="robots.txt"),
        page(FIRST, "a", by="sitemap.xml"),
    )
    await stand.add(SECOND, record(SECOND, "home", FORBIDDEN))
    await stand.add(THIRD, page(THIRD, "home"))
    assert await stand.changes(SECOND) == {}
    assert await stand.changes(THIRD) == {"home": "unchanged", "a": "deleted"}


async def test_a_redirect_that_fails_keeps_where_it_led() -> None:
    """It is no page, and known all the same."""
    stand = Stand()
    await stand.add(FIRST, record(FIRST, "old", MOVED), page(FIRST, "new", by="old"))
    await stand.add(SECOND, record(SECOND, "old", BROKEN))
    assert await stand.changes(FIRST) == {"new": "created"}
    assert await stand.changes(SECOND) == {}


async def test_more_referrers_than_fit_delete_nothing() -> None:
    """What cannot be decided on is left as it is."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"))
    assert await stand.changes(SECOND, referrers_max=1) == {"home": "unchanged"}


# --- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "crawl",
    [
        replace(default_crawl(NOON_MS), state=State.FINISHED, finished_at_ms=NOON_MS + 1),
        run(0, state=State.RUNNING, stop=None, finished_at_ms=None),
    ],
    ids=lambda crawl: str(crawl.id),
)
async def test_a_crawl_that_is_no_run_that_ended_has_no_feed(crawl: Crawl) -> None:
    """The one without end has nothing to be compared with; of the rest there is nothing yet."""
    stand = Stand()
    await stand.add(crawl, page(crawl, "a"))
    assert await stand.rows(crawl) == []
    assert stand.world.files == {}


async def test_a_run_that_was_never_exported_is_caught_up_with() -> None:
    """Its feed is made on the way, and is the same when it is asked for later."""
    stand, other = await begun(), await begun()
    for one in (stand, other):
        await one.add(SECOND, page(SECOND, "home", "2"))
    late = [await stand.changes(crawl) for crawl in (SECOND, FIRST)]
    early = [await other.changes(crawl) for crawl in (FIRST, SECOND)]
    assert late == early[::-1]
    assert stand.world.files == other.world.files


async def test_runs_of_other_names_have_snapshots_of_their_own() -> None:
    """A name is what a feed is about."""
    stand = await begun()
    other = await stand.add(run(2, id="other-1", name="other"), page(run(2, id="other-1"), "a"))
    assert await stand.changes(other) == {"a": "created"}


async def test_the_runs_of_a_day_are_those_that_ended_on_it() -> None:
    """Sorted by their ids; one that is under way belongs to no day yet."""
    stand = Stand()
    tomorrow = run(1, finished_at_ms=NOON_MS + 12 * HOUR_MS)
    for crawl in (SECOND, FIRST, tomorrow, run(3, state=State.RUNNING, finished_at_ms=None)):
        await stand.add(crawl)
    feed = stand.feed()
    assert await feed.ended_on("2026-11-21") == (FIRST, SECOND)
    assert await feed.ended_on("2026-11-22") == (tomorrow,)


async def test_no_feed_is_made_of_records_that_may_be_gone() -> None:
    """It would say of every page that is gone from the table that it is gone from the site."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "2"))
    stand.clock = type(stand.clock)(FIRST.started_at_ms + RETENTION_S * 1000)
    assert await stand.rows(FIRST) == []
    rows = await stand.rows(SECOND)
    assert [row["change"] for row in rows] == ["created"]


async def test_snapshots_that_nobody_can_ask_for_are_removed() -> None:
    """The newest two stay, however old they are, and those whose records are there."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "2"))
    assert await stand.changes(SECOND)
    stand.clock = type(stand.clock)(SECOND.started_at_ms + RETENTION_S * 1000)
    far = run(24 * 30 + 3)
    await stand.add(far, page(far, "home", "3"))
    assert (await stand.changes(far))["home"] == "updated"
    assert {key.split("/")[3] for key in stand.world.files} == {"site-2", far.id}


# --- shards, time, faults -----------------------------------------------------------------------


async def test_another_number_of_shards_changes_nothing() -> None:
    """A snapshot that was cut otherwise is read all the same."""
    stand = await begun(shards=2)
    assert await stand.changes(FIRST)
    stand.shards = 5
    await stand.add(SECOND, page(SECOND, "home"), page(SECOND, "a", "2", by="home"))
    assert await stand.changes(SECOND) == {"home": "unchanged", "a": "updated", "b": "deleted"}


async def test_rows_are_read_by_shard() -> None:
    """Together they are all of them, in the same order."""
    stand = await begun()
    feed = stand.feed()
    assert await feed.make(FIRST)
    whole = [row async for row in feed.rows(FIRST)]
    parts = [row async for row in feed.rows(FIRST, 0)]
    parts += [row async for row in feed.rows(FIRST, 1)]
    parts += [row async for row in feed.rows(FIRST, 2)]
    assert parts == whole


async def test_a_url_that_was_asked_for_on_two_days_counts_once() -> None:
    """The later record is the one that stands."""
    long = run(0, finished_at_ms=NOON_MS + 20 * HOUR_MS)
    stand = Stand()
    later = page(long, "a", "2", fetched_at=NOON_MS + 13 * HOUR_MS)
    await stand.add(long, page(long, "a"), later, page(long, "b"))
    rows = await stand.rows(long)
    assert [row["sha256"] for row in rows] == ["2", "1"]


async def test_with_little_time_the_rest_is_left_for_another_call() -> None:
    """Each does at least a shard; what is through is not read again."""
    stand = await begun()
    reads: list[str] = []

    async def count(effect: str, moment: Moment) -> None:
        reads.append(f"{effect} {moment}")

    calls = 1
    while not await stand.feed(count).make(FIRST, deadline_ms=stand.clock.now_ms()):
        calls += 1
    assert calls == stand.shards
    once = sum("pages.read" in read for read in reads)
    other = await begun()
    reads.clear()
    assert await other.feed(count).make(FIRST)
    assert once == sum("pages.read" in read for read in reads)
    assert stand.world.files == other.world.files


async def test_transient_faults_are_waited_out() -> None:
    """Of reads and writes; a fault that stays comes through."""
    stand = await begun()
    calls = 0

    async def flaky(effect: str, moment: Moment) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise Transient(f"{effect} {moment}")

    assert await stand.feed(flaky).make(FIRST)
    assert len(await stand.changes(FIRST)) == 3

    async def down(effect: str, _moment: Moment) -> None:
        if effect == "pages.read":
            raise Transient(effect)

    with pytest.raises(Transient):
        await (await begun()).feed(down).make(FIRST)


async def test_a_bundle_that_is_not_there_is_an_error() -> None:
    """Half a snapshot would say that the other half is created."""
    stand = await begun()
    assert await stand.changes(FIRST)
    key = next(key for key in stand.world.files if "/rows-" in key)
    del stand.world.files[key]
    with pytest.raises(Permanent, match="not there"):
        await stand.changes(FIRST)
    stand.world.files[key] = b"nonsense"
    with pytest.raises(ValueError, match="cannot be unpacked"):
        await stand.changes(FIRST)


@pytest.mark.parametrize(
    "body", [b"{}", b"nonsense", b'{"v":99}', b'{"v":1}', b"[]", b'{"v":1,"x":1}']
)
async def test_what_is_no_head_is_made_anew(body: bytes) -> None:
    """So is one of another version; a shard's file likewise."""
    stand, other = await begun(), await begun()
    assert await stand.changes(FIRST) == await other.changes(FIRST)
    for key in list(stand.world.files):
        if key.endswith(("head.json", "shard-0001.json")):
            stand.world.files[key] = body
    assert await stand.changes(FIRST) == await other.changes(FIRST)
    assert stand.world.files == other.world.files
