"""Crawls of APIs: pages one after the other, links, counts, and repeated deliveries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.messages import encode, seeds_of
from orbweaver.model.api_source import ApiSource, Paging, PagingBy
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Response
from orbweaver.model.item_rules import Field, ItemRule, ValueSource
from tests.unit.stage import CRAWL, SITE, Answer, Stage, answer, html, kill_at, outcomes, survives

API = f"{SITE}/v1"
RULE = ItemRule(
    name="books",
    match="/v1",
    source=ValueSource.JSON,
    each="$.books[*]",
    fields=(Field(name="id", source=ValueSource.JSON, where="$.id"),),
)
CURSOR = Paging(by=PagingBy.CURSOR, path="$.next", parameter="c")


def crawl_of(paging: Paging | None = CURSOR, **changes: Any) -> Crawl:
    links = changes.pop("links", "$.books[*].url")
    api = ApiSource(url=API, links=links, paging=paging, pages_max=changes.pop("pages_max", 100))
    return replace(CRAWL, seeds=(API,), seeds_planned=1, apis=(api,), items=(RULE,), **changes)


def page(*ids: int, status: int = 200, following: object = None, **headers: str) -> Response:
    books = [{"id": one, "url": f"/books/{one}"} for one in ids]
    body = json.dumps({"books": books, "next": following}).encode()
    return answer(status, body, content_type="application/json", **headers)


async def crawled(
    crawl: Crawl, pages: Mapping[str, Answer | list[Answer]], stage: Stage | None = None
) -> Stage:
    stage = (stage or Stage()).serve(pages)
    stage.begin(crawl)
    for message in seeds_of(crawl.id, crawl.id, crawl.references, at_ms=0, planned=True):
        await stage.deliver(message)
    await stage.drain()
    return stage


def ids(stage: Stage) -> list[str]:
    records = stage.world.pages.values()
    items = (item for record in records for item in record.extracted if item.valid)
    return sorted(str(item.fields["id"]) for item in items)


THREE = {
    "/v1": page(1, 2, following="b"),
    "/v1?c=b": page(3, following="c"),
    "/v1?c=c": page(4),
    **{f"/books/{number}": html() for number in range(1, 5)},
}


async def test_pages_follow_each_other_and_links_are_pages() -> None:
    stage = await crawled(crawl_of(), THREE)
    assert ids(stage) == ["1", "2", "3", "4"]
    assert outcomes(stage.world) == {f"{SITE}{path}": "fetched.ok" for path in THREE}
    by_url = {record.url: record for record in stage.world.pages.values()}
    third, book = by_url[f"{API}?c=c"], by_url[f"{SITE}/books/1"]
    assert (third.depth, third.referrer, third.links) == (0, f"{API}?c=b", 1)
    assert (book.depth, book.referrer) == (1, API)


@pytest.mark.parametrize(
    ("pages", "counts", "ended"),
    [
        (
            {"/v1": page(1, following="b"), "/v1?c=b": page(2, following="b")},
            {"refused.api_repeated": 1},
            {"": "fetched.ok", "?c=b": "fetched.ok"},
        ),
        (
            {
                "/v1": page(1, following="b"),
                "/v1?c=b": page(2, following="c"),
                "/v1?c=c": page(3, following="b"),
            },
            {"refused.api_repeated": 1},
            {"": "fetched.ok", "?c=b": "fetched.ok", "?c=c": "fetched.ok"},
        ),
        ({"/v1": page(1, following={})}, {"failed.paging": 1, "items": 0}, {"": "failed.paging"}),
        (
            {"/v1": answer(200, b"<h1>Sorry", content_type="text/html")},
            {"failed.json_invalid": 1},
            {"": "failed.json_invalid"},
        ),
        ({"/v1": page(1, status=404)}, {}, {"": "failed.http_client_error"}),
        ({"/v1": page()}, {"items_invalid": 1}, {"": "fetched.ok"}),
        (
            {"/v1": page(1, following="b"), "/v1?c=b": page()},
            {"items": 1},
            {"": "fetched.ok", "?c=b": "fetched.ok"},
        ),
    ],
)
async def test_end_of_paging_is_counted(
    pages: dict[str, Response], counts: dict[str, int], ended: dict[str, str]
) -> None:
    crawl = crawl_of(links="")
    stage = await crawled(crawl, pages)
    assert outcomes(stage.world) == {f"{API}{path}": end for path, end in ended.items()}
    total = (await stage.crawls.counters(crawl)).total
    assert {name: total.get(name, 0) for name in counts} == counts
    assert total["claimed"] == len(ended)


async def test_limit_of_pages_ends_paging() -> None:
    crawl = crawl_of(pages_max=2, links="")
    stage = await crawled(crawl, THREE)
    assert ids(stage) == ["1", "2", "3"]
    assert (await stage.crawls.counters(crawl)).total["refused.api_pages"] == 1


@pytest.mark.parametrize(
    ("rules", "ended"),
    [
        # No rule finds elements, so only the total shows the end.
        ((), {"": "fetched.ok", "?p=2": "fetched.ok"}),
        ((replace(RULE, each="$.wrong[*]"),), {"": "failed.paging"}),
    ],
)
async def test_pages_without_elements_are_requested_up_to_total(
    rules: tuple[ItemRule, ...], ended: dict[str, str]
) -> None:
    by_total = Paging(by=PagingBy.PAGE, parameter="p", total="$.pages")
    body = answer(200, b'{"pages": 2}', content_type="application/json")
    crawl = replace(crawl_of(by_total, links=""), items=rules)
    stage = await crawled(crawl, {"/v1": body, "/v1?p=2": body})
    assert outcomes(stage.world) == {f"{API}{path}": end for path, end in ended.items()}


async def test_redirected_page_is_page_of_api() -> None:
    moved = {"/v1": answer(301, location="/v1/"), "/v1/": page(1, following="b")}
    stage = await crawled(crawl_of(links=""), {**moved, "/v1/?c=b": page(2)})
    assert ids(stage) == ["1", "2"]


async def test_nofollow_header_withdraws_links_only() -> None:
    stage = await crawled(
        crawl_of(), {**THREE, "/v1": page(1, following="b", x_robots_tag="nofollow")}
    )
    assert ids(stage) == ["1", "3", "4"]
    assert f"{SITE}/books/1" not in outcomes(stage.world)


async def test_api_is_requested_without_condition_and_as_json() -> None:
    stage = await crawled(crawl_of(), THREE)
    for request in stage.web.requests:
        is_api = request.url.startswith(API)
        assert ("application/json" in request.accept) is is_api


SEARCH = f"{API}#POST-json:{{%22q%22:%22a%22}}"


async def test_post_pages_are_requests_with_body_and_own_records() -> None:
    stage = Stage()
    api = ApiSource(url=SEARCH, paging=CURSOR)
    crawl = replace(crawl_of(), seeds=(SEARCH,), apis=(api,), obey_robots=True)
    stage.web.put(f"{SITE}/robots.txt", answer(404))
    stage.web.put(API, page(1, following="b"), page(2, following=None))
    await crawled(crawl, {}, stage)
    asked = [one for one in stage.web.requests if one.url == API]
    assert [one.body for one in asked] == [b'{"q":"a"}', b'{"q":"a","c":"b"}']
    assert [dict(one.headers)["Content-Type"] for one in asked] == ["application/json"] * 2
    assert ids(stage) == ["1", "2"]
    second = f"{API}#POST-json:{{%22q%22:%22a%22,%22c%22:%22b%22}}"
    assert outcomes(stage.world) == {SEARCH: "fetched.ok", second: "fetched.ok"}


async def test_post_seed_without_api_is_read_as_page() -> None:
    crawl = replace(CRAWL, seeds=(SEARCH,), seeds_planned=1)
    stage = await crawled(crawl, {"/v1": html("/a#POST-json:{}", "/b"), "/a": html(), "/b": html()})
    # A page's own link never becomes a POST, whatever its fragment is.
    bodies = {one.url.removeprefix(SITE): one.body for one in stage.web.requests}
    assert bodies == {"/v1": b'{"q":"a"}', "/a": None, "/b": None}


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        (303, {SEARCH: "redirected.redirect", f"{SITE}/b": "fetched.ok"}),
        (307, {SEARCH: "failed.redirect_invalid"}),
    ],
)
async def test_redirected_post_is_never_sent_elsewhere(status: int, ended: dict[str, str]) -> None:
    crawl = replace(CRAWL, seeds=(SEARCH,), seeds_planned=1)
    moved = answer(status, location="/b#POST-json:{}")
    stage = await crawled(crawl, {"/v1": moved, "/b": html()})
    assert outcomes(stage.world) == ended
    assert [one.body for one in stage.web.requests if one.url == f"{SITE}/b"] in ([], [None])


async def test_retry_of_failed_page_requests_pages_after_it() -> None:
    retry = replace(crawl_of(links=""), seeds=(f"{API}?c=b",), seed_depths=(0,), retry_of="site-0")
    stage = await crawled(retry, THREE)
    assert ids(stage) == ["3", "4"]


@pytest.mark.parametrize("number", range(1, 40, 3))
async def test_killed_worker_repeats_and_loses_no_item(number: int) -> None:
    stage, crawl = Stage(), crawl_of()
    for path, response in THREE.items():
        stage.web.put(f"{SITE}{path}", response)
    stage.begin(crawl)
    (message,) = seeds_of(crawl.id, crawl.id, crawl.references, at_ms=0, planned=True)
    waiting = [encode(message)]
    while waiting:
        # Each message is killed at a moment, and then delivered again.
        stage.restart(kill_at(number))
        if not await survives(stage.deliver(waiting[0])):
            stage.restart()
            assert await stage.deliver(waiting[0]) == []
        waiting = [*waiting[1:], *(mail.body for mail in stage.world.sent)]
        stage.world.sent.clear()
        stage.clock.at_ms += 60_000
    assert ids(stage) == ["1", "2", "3", "4"]
