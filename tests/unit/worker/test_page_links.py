"""Links of pages and sitemaps that a worker stores, and the rows that an export makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.exporting.chunk import link_block, redirect_rows
from orbweaver.frontier.erase_rule import with_erased
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from tests.unit.mapped import MAP, NAMED, crawl, urlset
from tests.unit.stage import CRAWL, SITE, Stage, answer

LINKS = replace(CRAWL, links=True)
BODY = (
    b"<a href=/b>b</a><a href=/no rel=nofollow>n</a><a href=https://other.example/>o</a>"
    b"<a href=/old>old</a><a href=/private/x>p</a><img src=/i.png alt=''>"
)


async def crawled(crawl: Crawl) -> Stage:
    stage = Stage()
    page = Response(status=200, headers={"content-type": "text/html"}, body=BODY)
    stage.web.put(f"{SITE}/a", page)
    stage.web.put(f"{SITE}/b", answer(200, b"<p>no links"))
    stage.web.put(f"{SITE}/old", answer(301, location="/b"))
    await stage.crawl(crawl, f"{SITE}/a")
    return stage


def record_of(stage: Stage, url: str) -> PageRecord:
    return next(one for one in stage.world.pages.values() if one.url == url)


def rows_of(stage: Stage, url: str, crawl: Crawl = LINKS) -> list[dict[str, Any]]:
    record = record_of(stage, url)
    member = None
    if record.body_key is not None and record.links_offset is not None:
        begin, length = record.links_offset, record.links_length or 0
        member = stage.world.files[record.body_key][begin : begin + length]
    block = link_block(record, member)
    rows = redirect_rows(record, crawl) if block is None else block.each()
    return [dict(row) for row in rows]


def decisions(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["target_url"].removeprefix(SITE): row["decision"] for row in rows}


async def test_links_have_decisions_of_crawl() -> None:
    stage = await crawled(replace(LINKS, exclude=("/private/",)))
    rows = rows_of(stage, f"{SITE}/a")
    assert decisions(rows) == {
        "/b": "followed",
        "/no": "nofollow",
        "https://other.example/": "out_of_scope",
        "/old": "followed",
        "/private/x": "exclude",
        "/i.png": "not_followed",
    }
    first = {"crawl": CRAWL.id, "url": f"{SITE}/a", "kind": "a", "text": "b", "position": 0}
    assert first.items() <= rows[0].items()
    assert rows_of(stage, f"{SITE}/b") == []


async def test_redirect_has_row_without_stored_links() -> None:
    stage = await crawled(LINKS)
    assert record_of(stage, f"{SITE}/old").body_key is None
    (row,) = rows_of(stage, f"{SITE}/old")
    wanted = {"target_url": f"{SITE}/b", "kind": "redirect", "decision": "followed"}
    assert wanted.items() <= row.items()
    (row,) = rows_of(stage, f"{SITE}/old", replace(LINKS, exclude=("/b",)))
    assert row["decision"] == "exclude"
    assert rows_of(stage, f"{SITE}/old", CRAWL) == []


async def test_links_are_stored_without_bodies() -> None:
    stage = await crawled(replace(LINKS, bodies=Bodies.OFF))
    assert record_of(stage, f"{SITE}/a").body_offset is None
    assert len(rows_of(stage, f"{SITE}/a")) == 6


async def test_crawl_without_links_stores_none() -> None:
    stage = await crawled(CRAWL)
    assert record_of(stage, f"{SITE}/a").links_length is None


async def test_erased_target_is_not_stored() -> None:
    stage = await crawled(with_erased(LINKS, [f"{SITE}/private/x"], 0))
    assert "/private/x" not in decisions(rows_of(stage, f"{SITE}/a"))


async def test_texts_of_links_are_redacted() -> None:
    stage = Stage()
    html = b"<a href=/b>jo@example.com</a><a href='http://[jo@example.com'>x</a>"
    stage.web.put(f"{SITE}/a", answer(200, html))
    assert await stage.deliver(stage.begin(replace(LINKS, redacted=("email",)), f"{SITE}/a")) == []
    rows = rows_of(stage, f"{SITE}/a")
    assert len(rows) == 2
    assert not any("jo@" in f"{row['text']}{row['target_url']}" for row in rows)


async def test_sitemap_read_in_parts_has_all_rows() -> None:
    pages = [f"{SITE}/{number}" for number in range(12)]
    plan = replace(NAMED, links=True)
    parts = Settings.of(links_per_page_max=5)
    far = "https://other.example/"
    stage = await crawl({"/sitemap.xml": urlset(*pages, far)}, plan, settings=parts)
    rows = rows_of(stage, MAP, plan)
    assert [row["target_url"] for row in rows] == [*pages, far]
    assert {row["kind"] for row in rows} == {"sitemap"}
    assert [row["decision"] for row in rows] == ["followed"] * 12 + ["out_of_scope"]
