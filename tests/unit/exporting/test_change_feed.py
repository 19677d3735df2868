"""The change feed: how each outcome changes a page from run to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.model.columns import CHANGES
from orbweaver.model.crawl import Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.url_rules import UrlRule
from tests.unit.changing import (
    BROKEN,
    FIRST,
    FORBIDDEN,
    GONE,
    HOUR_MS,
    MOVED,
    NOON_MS,
    SAME,
    SECOND,
    SITEMAP,
    SKIPPED,
    THIRD,
    Stand,
    begun,
    named,
    page,
    record,
    run,
    url_of,
)


async def test_first_run_creates_all_pages() -> None:
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
async def test_outcome_of_known_page_sets_change(
    kind: dict[str, Any], more: dict[str, Any], change: str | None
) -> None:
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


async def test_unchanged_page_keeps_hash_for_next_comparison() -> None:
    """An answer 304 has no body, so the stored hash is kept."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", SAME, by="home"))
    await stand.add(THIRD, page(THIRD, "home"), page(THIRD, "a", "2", by="home"))
    row = named(await stand.rows(THIRD), "a")
    assert (row["change"], row["previous_crawl"], row["previous_sha256"]) == (
        "updated",
        "site-2",
        "1",
    )


async def test_page_returning_after_deletion_is_created_again() -> None:
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", GONE, by="home"))
    await stand.add(THIRD, page(THIRD, "home"), page(THIRD, "a", by="home"))
    assert (await stand.changes(SECOND))["a"] == "deleted"
    row = named(await stand.rows(THIRD), "a")
    assert (row["change"], row["previous_crawl"]) == ("created", None)


async def test_page_without_referrer_is_deleted_with_its_targets() -> None:
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
async def test_pages_below_failed_page_are_kept(kind: dict[str, Any]) -> None:
    stand = await begun()
    await stand.add(SECOND, record(SECOND, "home", kind))
    await stand.add(THIRD, page(THIRD, "home"))
    assert await stand.changes(SECOND) == {}
    assert await stand.changes(THIRD) == {"home": "unchanged", "a": "deleted", "b": "deleted"}


async def test_removed_seed_is_deleted() -> None:
    stand = Stand()
    await stand.add(FIRST, page(FIRST, "home"), page(FIRST, "other"))
    await stand.add(SECOND, page(SECOND, "home"))
    assert await stand.changes(SECOND) == {"home": "unchanged", "other": "deleted"}


async def test_circle_of_pages_without_referrer_is_deleted() -> None:
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
        {"rules": (UrlRule(match="/[ab]$", window_s=86_400),)},
        {"rules": (UrlRule(match="/[ab]$", record=False),)},
    ],
    ids=lambda more: next(iter(more)),
)
async def test_page_not_due_for_request_is_kept(more: dict[str, Any]) -> None:
    stand = await begun()
    second = await stand.add(run(2, **more), page(run(2), "home", "2"))
    assert await stand.changes(second) == {"home": "updated"}
    await stand.add(THIRD, page(THIRD, "home", "2"))
    assert (await stand.changes(THIRD))["b"] == "deleted"


async def test_failed_page_keeps_its_claim_for_window() -> None:
    """The window restarts, so a run within the window does not delete the page."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"), record(SECOND, "a", BROKEN, by="home"))
    third = await stand.add(
        run(4, rules=(UrlRule(match="/a$", window_s=3 * 3_600),)), page(THIRD, "home")
    )
    assert "a" not in await stand.changes(third)


async def test_page_claimed_by_overlapping_run_is_kept() -> None:
    """The other run may hold the claim of a URL that this run did not request."""
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"))
    await stand.add(run(1, finished_at_ms=NOON_MS + 9 * HOUR_MS))
    assert await stand.changes(SECOND) == {"home": "unchanged"}


async def test_newer_answer_of_overlapping_run_is_kept() -> None:
    """Of two overlapping runs, the later to end can have the older answer of a URL."""
    slow = run(1, finished_at_ms=NOON_MS + 9 * HOUR_MS)
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home", "3"), page(SECOND, "a"), page(SECOND, "b"))
    await stand.add(slow, page(slow, "home", "2"))
    assert await stand.changes(SECOND) == {"home": "updated", "a": "unchanged", "b": "unchanged"}
    assert await stand.changes(slow) == {}


async def test_sitemap_is_referrer_but_no_page() -> None:
    stand = Stand()
    await stand.add(
        FIRST, record(FIRST, "sitemap.xml", SITEMAP), page(FIRST, "a", by="sitemap.xml")
    )
    await stand.add(SECOND, record(SECOND, "sitemap.xml", BROKEN))
    await stand.add(THIRD, record(THIRD, "sitemap.xml", SITEMAP))
    assert await stand.changes(FIRST) == {"a": "created"}
    assert await stand.changes(SECOND) == {}
    assert await stand.changes(THIRD) == {"a": "deleted"}


async def test_unlisted_robots_sitemap_is_gone_once_site_is_read() -> None:
    """A robots.txt is never recorded, but it is read before any page of its site."""
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


async def test_failed_redirect_keeps_its_target() -> None:
    stand = Stand()
    await stand.add(FIRST, record(FIRST, "old", MOVED), page(FIRST, "new", by="old"))
    await stand.add(SECOND, record(SECOND, "old", BROKEN))
    assert await stand.changes(FIRST) == {"new": "created"}
    assert await stand.changes(SECOND) == {}


async def test_too_many_referrers_delete_nothing() -> None:
    stand = await begun()
    await stand.add(SECOND, page(SECOND, "home"))
    assert await stand.changes(SECOND, referrers_max=1) == {"home": "unchanged"}
