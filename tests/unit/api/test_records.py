"""Page records and explanations over HTTP."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.api import pages, requests
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import DAY_MS
from tests.unit.api.stage import CRAWL, NOW_MS, SITE, Stage

if TYPE_CHECKING:
    from tests.unit.api.stage import Reply

PAGES = 50


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.begin(CRAWL, replace(CRAWL, id="site-2"))
    stage.clock.at_ms = NOW_MS + DAY_MS
    for number in range(PAGES):
        failed = {"outcome": Outcome.FAILED, "reason": Reason.DNS} if number % 5 == 0 else {}
        stage.put(f"/{number}", NOW_MS + number % 2 * DAY_MS, **failed)
        stage.put(f"/{number}", NOW_MS, crawl="site-2")
    return stage


async def walk(stage: Stage, target: str) -> list[Reply]:
    """Follow the cursors of a listing and return all answers."""
    replies = [await stage.get(target)]
    while (following := replies[-1].body["next"]) is not None:
        replies.append(await stage.get(f"{target}&cursor={following}"))
    return replies


@pytest.mark.parametrize("limit", [1, 7, 50, 1_000])
async def test_records_are_listed_once_in_pages(stage: Stage, limit: int) -> None:
    replies = await walk(stage, f"/crawls/site-1/pages?limit={limit}")
    rows = [row for reply in replies for row in reply.body["pages"]]
    assert sorted(row["url"] for row in rows) == sorted(f"{SITE}/{n}" for n in range(PAGES))
    assert {row["crawl"] for row in rows} == {"site-1"}
    assert max(len(reply.body["pages"]) for reply in replies) <= limit
    assert rows[0]["fetched_at"].startswith("2026-11-21T09:00:00")


async def test_records_are_filtered_by_outcome(stage: Stage) -> None:
    replies = await walk(stage, "/crawls/site-1/pages?outcome=failed&limit=3")
    rows = [row for reply in replies for row in reply.body["pages"]]
    assert len(rows) == PAGES / 5
    assert {row["reason"] for row in rows} == {"dns"}


async def test_records_page_may_be_short_with_next_cursor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROWS_READ_MAX", 4)
    monkeypatch.setattr(pages, "SHARDS_READ_MAX", 3)
    replies = await walk(stage, "/crawls/site-1/pages?outcome=failed&limit=100")
    assert sum(len(reply.body["pages"]) for reply in replies) == PAGES / 5
    assert len(replies) > PAGES / 4


async def test_records_request_reads_exactly_bounded_rows(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROWS_READ_MAX", 4)
    assert len((await stage.get("/crawls/site-1/pages?limit=100")).body["pages"]) == 4


async def test_cursor_changed_or_of_other_listing_is_refused(stage: Stage) -> None:
    requests = (await stage.get("/crawls/site-1/pages?limit=5")).body["next"]
    bad = [
        f"/crawls/site-2/pages?cursor={requests}",
        f"/crawls/site-1/pages?outcome=failed&cursor={requests}",
        f"/crawls?cursor={requests}",
    ]
    for place in (0, 5, 20, len(requests) - 1):
        other = "A" if requests[place] != "A" else "B"
        changed = requests[:place] + other + requests[place + 1 :]
        bad.append(f"/crawls/site-1/pages?cursor={changed}")
    bad += [
        f"/crawls/site-1/pages?cursor={text}" for text in (requests[:-1], requests + "A", "", "é")
    ]
    for target in bad:
        assert (await stage.get(target)).status == 400, target
    assert (await stage.get(f"/crawls/site-1/pages?limit=9&cursor={requests}")).status == 200


FORGED: tuple[object, ...] = (
    [],
    5,
    {},
    None,
    [1],
    [None, None],
    ["a", "b"],
    [1, 2, 3, 4],
    ["2026-11-21", "x", ""],
    ["2026-11-21", 3.5, ""],
    ["2026-11-21", True, ""],
    [["2026-11-21"], 3, ""],
    ["2026-11-21", 3, "\ud800"],
    [True, "site-1"],
)


@pytest.mark.parametrize("place", FORGED)
async def test_forged_cursor_is_answered_400(stage: Stage, place: Any) -> None:
    listings = {"/crawls": ("crawls", ""), "/crawls/site-1/pages": ("pages", "site-1", "")}
    for path, listing in listings.items():
        body = json.dumps(place, separators=(",", ":")).encode()
        text = base64.urlsafe_b64encode(requests._sum(listing, body) + body).decode().rstrip("=")
        reply = await stage.get(f"{path}?cursor={text}")
        assert (reply.status, reply.headers["Content-Type"]) == (400, "application/problem+json")
        assert reply.body["detail"].startswith("cursor: it belongs to another listing")


async def test_explanation_has_statements_and_record(stage: Stage) -> None:
    reply = await stage.get(f"/explain?url={SITE}/0&crawl=site-1")
    assert (reply.body["fate"], reply.body["crawl"]) == ("ended", "site-1")
    assert reply.body["record"]["reason"] == "dns"
    assert [one["about"] for one in reply.body["statements"][:2]] == ["url", "crawl"]


@pytest.mark.parametrize(
    ("query", "status", "fate"),
    [
        (f"url={SITE}/nowhere", 200, "unseen"),
        ("url=nonsense", 200, "malformed"),
        (f"url={SITE}/0&crawl=nobody", 404, None),
        (f"url={SITE}/0&crawl=site", 404, None),
    ],
)
async def test_explanation_of_unseen_url_exists_only_in_a_crawl(
    stage: Stage, query: str, status: int, fate: str | None
) -> None:
    reply = await stage.get(f"/explain?{query}")
    assert reply.status == status
    assert reply.body.get("fate") == fate


async def test_explanation_without_any_crawl_is_404() -> None:
    assert (await Stage().get(f"/explain?url={SITE}")).status == 404
