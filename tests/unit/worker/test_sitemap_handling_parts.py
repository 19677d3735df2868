"""Long sitemaps that are read in parts, and recrawls by modification date."""

from __future__ import annotations

import gzip
import threading
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.model.settings import Settings
from orbweaver.parsing.sitemap import read
from orbweaver.worker import sitemap_handling
from orbweaver.worker.sitemap_handling import INLINE_BYTES_MAX, KEPT_MS
from tests.unit.mapped import DAY_MS, MAP, NAMED, crawl, index, messages, put, run, urlset
from tests.unit.stage import NOW_MS, SITE, Stage, kill_at, outcomes, survives

PAGES = tuple(f"{SITE}/{number}" for number in range(12))
PARTS = Settings.of(links_per_page_max=5)


async def test_long_sitemap_is_read_in_parts() -> None:
    """The sitemap is fetched once and counts as one URL."""
    stage = await crawl({"/sitemap.xml": urlset(*PAGES)}, NAMED, settings=PARTS)
    assert set(outcomes(stage.world)) == {MAP, *PAGES}
    assert stage.web.urls.count(MAP) == 1
    assert max(len(journal.candidates) for journal in stage.world.journals.values()) == 5
    counts = stage.counts(NAMED)
    assert (counts["claimed"], counts["fetched.sitemap"], counts["deferrals"]) == (13, 1, 2)
    record = next(record for record in stage.world.pages.values() if record.url == MAP)
    assert record.links == 12


@pytest.mark.parametrize("forgets", ["restart", "time"])
async def test_other_container_fetches_sitemap_again(forgets: str) -> None:
    stage = Stage(settings=PARTS)
    put(stage, {"/sitemap.xml": urlset(*PAGES)})
    stage.begin(NAMED)
    (message,) = messages(NAMED)
    await stage.deliver(message)
    await stage.deliver(*stage.sent())
    if forgets == "restart":
        stage.restart()
    else:
        stage.clock.at_ms += KEPT_MS
    put(stage, {"/sitemap.xml": urlset(f"{SITE}/new", *PAGES)})
    await stage.drain()
    assert set(outcomes(stage.world)) == {MAP, *PAGES}
    assert stage.web.urls.count(MAP) == 2
    assert sorted(stage.web.urls) == sorted([MAP, MAP, *PAGES])


async def test_memory_of_sitemap_answers_is_bounded() -> None:
    stage = Stage(settings=PARTS)
    padding = b"<!--" + b"x" * 200_000 + b"-->"
    padded = urlset(*PAGES).replace(b"</urlset>", padding * 45 + b"</urlset>")
    put(stage, {"/1.xml": padded, "/2.xml": padded})
    plan = replace(NAMED, sitemap_urls=(f"{SITE}/1.xml", f"{SITE}/2.xml"))
    await run(stage, plan)
    assert set(outcomes(stage.world)) == {*plan.sitemap_urls, *PAGES}
    assert stage.web.urls.count(f"{SITE}/1.xml") + stage.web.urls.count(f"{SITE}/2.xml") > 2


async def test_killed_worker_completes_long_sitemap() -> None:
    for moment in range(1, 200, 7):
        stage = Stage(settings=PARTS)
        put(stage, {"/sitemap.xml": urlset(*PAGES)})
        stage.begin(NAMED)
        (message,) = messages(NAMED)
        stage.restart(kill_at(moment))
        if not await survives(stage.deliver(message)):
            stage.restart()
            assert await stage.deliver(message, receives=2) == []
        else:
            while stage.world.sent:
                mail = stage.world.sent[0]
                if not await survives(stage.deliver(mail.body)):
                    stage.restart()
                    await stage.deliver(mail.body, receives=2)
                stage.world.sent.remove(mail)
        await stage.drain()
        assert set(outcomes(stage.world)) == {MAP, *PAGES}, moment
        assert stage.counts(NAMED)["claimed"] == 13, moment
        assert stage.world.crawls[NAMED.id].finished_at_ms is not None, moment


async def test_page_budget_limits_sitemap_entries() -> None:
    stage = await crawl(
        {"/sitemap.xml": urlset(*PAGES)}, replace(NAMED, pages_max=7), settings=PARTS
    )
    counts = stage.counts(NAMED)
    assert (counts["claimed"], counts["late_links"] - counts["late_links_taken"]) == (7, 6)
    assert stage.world.crawls[NAMED.id].stop == "max_pages"


async def test_large_sitemaps_are_read_in_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def noted(*given: Any, **more: Any) -> Any:
        threads.append(threading.get_ident())
        return read(*given, **more)

    monkeypatch.setattr(sitemap_handling, "read", noted)
    padding = b" " * INLINE_BYTES_MAX
    for body in (urlset(*PAGES) + padding, gzip.compress(urlset(*PAGES))):
        stage = await crawl({"/sitemap.xml": body}, NAMED)
        assert set(outcomes(stage.world)) == {MAP, *PAGES}
    assert threading.get_ident() not in threads


# --- recrawl of modified pages ------------------------------------------------------------------

AGAIN_MS = NOW_MS + 2 * DAY_MS  # 2026-11-23 09:00:00 UTC, inside the window of a week


async def test_modified_entries_are_requested_within_window() -> None:
    site: dict[str, bytes | str] = {
        "/sitemap.xml": index(
            f"{SITE}/1.xml", f"{SITE}/2.xml 2026-11-20", f"{SITE}/3.xml 2026-11-22"
        ),
        "/1.xml": urlset(
            f"{SITE}/old 2026-11-20",
            f"{SITE}/none",
            f"{SITE}/bad soon",
            f"{SITE}/day 2026-11-21",
            f"{SITE}/new 2026-11-22T00:00:00Z",
            f"{SITE}/future 2099-01-01",
        ),
        "/2.xml": urlset(),
        "/3.xml": urlset(f"{SITE}/future 2099-01-01", f"{SITE}/new 2026-11-23"),
    }
    stage = await crawl(site, NAMED)
    assert len(stage.web.urls) == len(set(stage.web.urls)) == 10
    stage.web.asked.clear()
    stage.clock.at_ms = AGAIN_MS
    await run(stage, replace(NAMED, id="site-2", started_at_ms=AGAIN_MS))
    asked = sorted(url.removeprefix(SITE) for url in stage.web.urls)
    assert asked == ["/1.xml", "/3.xml", "/day", "/future", "/new", "/sitemap.xml"]


async def test_zero_window_ignores_modification_dates() -> None:
    stage = Stage()
    listed = urlset(f"{SITE}/a 2099-01-01", f"{SITE}/b")
    put(stage, {"/sitemap.xml": listed, "/a": "/b", "/b": "/a"})
    for number in range(2):
        stage.clock.at_ms += 1
        start_ms = stage.clock.now_ms()
        plan = replace(NAMED, id=f"site-{number}", window_s=0, started_at_ms=start_ms)
        stage.web.asked.clear()
        await run(stage, plan)
        assert sorted(stage.web.urls) == sorted([MAP, f"{SITE}/a", f"{SITE}/b"])
