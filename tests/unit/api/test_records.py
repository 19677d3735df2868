"""Page records, explanations, items, texts and export files over HTTP."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.api import pages as handlers
from orbweaver.api import requests
from orbweaver.api.pages import ANSWER_BYTES_MAX
from orbweaver.exporting.manifest import File, Manifest, encode_manifest
from orbweaver.frontier import warc
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import DAY_MS
from tests.unit.api.stage import CRAWL, NOW_MS, SITE, Stage

PAGES = 50


@pytest.fixture
def bare() -> Stage:
    """Return a stage with two crawls without records."""
    stage = Stage()
    stage.begin(CRAWL, replace(CRAWL, id="site-2"))
    stage.clock.at_ms = NOW_MS + DAY_MS
    return stage


@pytest.fixture
def stage(bare: Stage) -> Stage:
    for number in range(PAGES):
        failed = {"outcome": Outcome.FAILED, "reason": Reason.DNS} if number % 5 == 0 else {}
        bare.put(f"/{number}", NOW_MS + number % 2 * DAY_MS, **failed)
        bare.put(f"/{number}", NOW_MS, crawl="site-2")
    return bare


async def walk(stage: Stage, target: str, what: str) -> list[list[Any]]:
    """Follow the cursors of a listing and return the `what` of every answer."""
    replies = [await stage.get(target)]
    while (following := replies[-1].body["next"]) is not None:
        mark = "&" if "?" in target else "?"
        replies.append(await stage.get(f"{target}{mark}cursor={following}"))
    return [reply.body[what] for reply in replies]


@pytest.mark.parametrize("limit", [1, 7, 50, 1_000])
async def test_records_are_listed_once_in_pages(stage: Stage, limit: int) -> None:
    pages = await walk(stage, f"/crawls/site-1/pages?limit={limit}", "pages")
    rows = [row for page in pages for row in page]
    assert sorted(row["url"] for row in rows) == sorted(f"{SITE}/{n}" for n in range(PAGES))
    assert {row["crawl"] for row in rows} == {"site-1"}
    assert max(map(len, pages)) <= limit
    assert rows[0]["fetched_at"].startswith("2026-11-21T09:00:00")


async def test_records_are_filtered_by_outcome(stage: Stage) -> None:
    pages = await walk(stage, "/crawls/site-1/pages?outcome=failed&limit=3", "pages")
    reasons = [row["reason"] for page in pages for row in page]
    assert reasons == ["dns"] * (PAGES // 5)


async def test_records_page_may_be_short_with_next_cursor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "ROWS_READ_MAX", 4)
    assert len((await stage.get("/crawls/site-1/pages?limit=100")).body["pages"]) == 4
    monkeypatch.setattr(handlers, "SHARDS_READ_MAX", 3)
    pages = await walk(stage, "/crawls/site-1/pages?outcome=failed&limit=100", "pages")
    assert sum(map(len, pages)) == PAGES / 5
    assert len(pages) > PAGES / 4


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


ITEMS = 20


# --- items --------------------------------------------------------------------------------------


def put_items(bare: Stage) -> None:
    for number in range(ITEMS):
        book = Item(table="books", place=0, fields={"title": f"Book {number}", "price": 1.5})
        shelf = Item(table="shelves", place=0, problems=("name: missing",))
        found = (book, shelf) if number % 2 else ()
        bare.put(f"/{number}", NOW_MS + number % 4 // 2 * DAY_MS, extracted=found)
        bare.put(f"/{number}", crawl="site-2", extracted=(book,))


@pytest.mark.parametrize("limit", [1, 3, 1_000])
async def test_items_are_listed_once_in_pages(bare: Stage, limit: int) -> None:
    put_items(bare)
    pages = await walk(bare, f"/crawls/site-1/items?limit={limit}", "items")
    rows = [row for page in pages for row in page]
    assert len(rows) == ITEMS
    books = [row for row in rows if row["rule"] == "books"]
    assert sorted(row["url"] for row in books) == sorted(f"{SITE}/{n}" for n in range(1, ITEMS, 2))
    assert max(map(len, pages)) <= limit + 1
    assert books[0].keys() == {"url", "fetched_at", "rule", "place", "item", "problems"}
    assert books[0]["item"]["price"] == 1.5


async def test_items_are_filtered_by_rule_and_validity(bare: Stage) -> None:
    put_items(bare)
    for words, rules in (
        ("rule=books", {"books"}),
        ("valid=no", {"shelves"}),
        ("rule=books&valid=no", set()),
        ("valid=yes", {"books"}),
    ):
        (rows,) = await walk(bare, f"/crawls/site-1/items?{words}", "items")
        assert {row["rule"] for row in rows} == rules
    assert (await bare.get("/crawls/site-1/items?valid=maybe")).status == 400
    assert (await bare.get("/crawls/nothing/items")).status == 404


async def test_items_page_is_bounded_in_bytes(bare: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    put_items(bare)
    monkeypatch.setattr(handlers, "ANSWER_BYTES_MAX", 100)
    found = await walk(bare, "/crawls/site-1/items?limit=1000", "items")
    assert len(found) > 3
    assert sum(map(len, found)) == ITEMS


# --- texts --------------------------------------------------------------------------------------


def put_text(bare: Stage, path: str, words: str, **changes: Any) -> None:
    document = {"title": path, "language": "en", "text": words, "markdown": f"# {words}"}
    member = warc.conversion(SITE + path, NOW_MS, document, stored=False)
    key = f"bodies/site-1{path}.warc.gz"
    bare.world.files[key] = b"before" + member
    place = {"body_key": key, "text_offset": 6, "text_length": len(member)}
    bare.put(path, **{**place, **changes})


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_texts_are_listed_once_in_both_formats(bare: Stage, limit: int) -> None:
    for number in range(ITEMS):
        put_text(bare, f"/{number}", f"Words {number}")
        bare.put(f"/none/{number}")
    pages = await walk(bare, f"/crawls/site-1/texts?limit={limit}", "texts")
    rows = [row for page in pages for row in page]
    assert sorted(row["text"] for row in rows) == sorted(f"Words {n}" for n in range(ITEMS))
    assert {row["markdown"] for row in rows} == {f"# Words {n}" for n in range(ITEMS)}
    assert {(row["language"], row["left_out"]) for row in rows} == {("en", None)}
    assert max(map(len, pages)) <= limit


async def test_missing_text_has_reason(bare: Stage) -> None:
    put_text(bare, "/gone", "a")
    del bare.world.files["bodies/site-1/gone.warc.gz"]
    put_text(bare, "/nowhere", "a", body_key=None)
    put_text(bare, "/large", "a" * ANSWER_BYTES_MAX)
    put_text(bare, "/huge", "a", text_length=ANSWER_BYTES_MAX + 1)
    put_text(bare, "/forgotten", "a")
    grave = warc.tombstone(200)
    bare.world.files["bodies/site-1/forgotten.warc.gz"] = b"before" + grave
    bare.put("/forgotten", body_key="bodies/site-1/forgotten.warc.gz", text_offset=6,
              text_length=len(grave))  # fmt: skip
    (rows,) = await walk(bare, "/crawls/site-1/texts", "texts")
    said = {row["url"].removeprefix(SITE): row["left_out"] for row in rows}
    assert said == {
        "/gone": "it is past its retention, or its file was deleted",
        "/nowhere": "it is not stored",
        "/large": handlers.TOO_LARGE,
        "/huge": handlers.TOO_LARGE,
        "/forgotten": "it was forgotten",
    }
    assert {(row["text"], row["markdown"]) for row in rows} == {(None, None)}


async def test_texts_page_is_bounded_in_bytes(bare: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "1" * 600_000
    monkeypatch.setattr(handlers, "ANSWER_BYTES_MAX", 2 * len(json.dumps([one, f"# {one}"])))
    for number in range(6):
        put_text(bare, f"/{number}", f"{number}" * len(one))
    pages = await walk(bare, "/crawls/site-1/texts", "texts")
    assert [len(page) for page in pages] == [2, 2, 2]
    assert len({row["url"] for page in pages for row in page}) == 6
    assert max(len(json.dumps(page)) for page in pages) < 2 * ANSWER_BYTES_MAX


# --- exports ------------------------------------------------------------------------------------


def put_export(
    bare: Stage, day: str, *numbers: int, crawl: str | None = None, rows: int = 1
) -> None:
    files = tuple(
        File(
            path=f"pages/jsonl/dt={day}/{whose}/part-00-{number:05}.jsonl.gz",
            table="pages",
            format="jsonl",
            crawl=whose,
            rows=rows,
            bytes=10,
            sha256="0" * 64,
        )
        for whose in ((crawl,) if crawl else ("site-1", "site-2"))
        for number in numbers
    )
    manifest = Manifest(day=day, crawl=crawl, files=files)
    bare.world.files[f"exports/{manifest.path}"] = encode_manifest(manifest)


@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_export_files_are_listed_by_day_with_links(bare: Stage, limit: int) -> None:
    put_export(bare, "2026-11-21", 0, 1, crawl="site-1")
    put_export(bare, "2026-11-21", 0, 1, 2, rows=7)  # made later, so this one counts
    put_export(bare, "2026-11-22", 0)
    put_export(bare, "2026-11-23", 0)  # a day on which the crawl did not run
    pages = await walk(bare, f"/crawls/site-1/exports?limit={limit}", "files")
    rows = [row for page in pages for row in page]
    assert [(row["day"], row["path"][-14:-9], row["rows"]) for row in rows] == [
        ("2026-11-21", "00000", 7),
        ("2026-11-21", "00001", 7),
        ("2026-11-21", "00002", 7),
        ("2026-11-22", "00000", 1),
    ]
    assert rows[0]["link"].startswith("memory:exports/pages/jsonl/dt%3D2026-11-21/")
    assert rows[0]["link"].endswith("seconds=900")
    assert max(map(len, pages)) <= limit


async def test_exports_request_reads_bounded_days(
    bare: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "DAYS_READ_MAX", 3)
    bare.clock.at_ms = NOW_MS + 9 * DAY_MS
    put_export(bare, "2026-11-21", 0)
    put_export(bare, "2026-11-30", 0)
    bare.world.files["exports/manifests/dt=2026-11-25.json"] = b"{}"
    pages = await walk(bare, "/crawls/site-1/exports", "files")
    assert [len(page) for page in pages] == [1, 0, 0, 1]


async def test_cursor_of_other_listing_is_refused(bare: Stage) -> None:
    put_export(bare, "2026-11-21", 0, 1)
    following = (await bare.get("/crawls/site-1/exports?limit=1")).body["next"]
    for what in ("items", "texts", "pages"):
        assert (await bare.get(f"/crawls/site-1/{what}?cursor={following}")).status == 400
    assert (await bare.get(f"/crawls/site-2/exports?cursor={following}")).status == 400
