"""Items, texts and export files over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.api import pages as handlers
from orbweaver.api.pages import ANSWER_BYTES_MAX
from orbweaver.exporting.manifest import File, Manifest, encode_manifest
from orbweaver.frontier import warc
from orbweaver.model.item import Item
from orbweaver.model.page_record import DAY_MS
from tests.unit.api.stage import CRAWL, NOW_MS, SITE, Stage

if TYPE_CHECKING:
    from tests.unit.api.stage import Reply

PAGES = 20


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.begin(CRAWL, replace(CRAWL, id="site-2"))
    stage.clock.at_ms = NOW_MS + DAY_MS
    return stage


async def walk(stage: Stage, target: str, what: str) -> list[list[Any]]:
    """Follow the cursors of a listing and return the `what` of every answer."""
    replies: list[Reply] = [await stage.get(target)]
    while (following := replies[-1].body["next"]) is not None:
        mark = "&" if "?" in target else "?"
        replies.append(await stage.get(f"{target}{mark}cursor={following}"))
    return [reply.body[what] for reply in replies]


# --- items --------------------------------------------------------------------------------------


def put_items(stage: Stage) -> None:
    for number in range(PAGES):
        book = Item(table="books", place=0, fields={"title": f"Book {number}", "price": 1.5})
        shelf = Item(table="shelves", place=0, problems=("name: missing",))
        found = (book, shelf) if number % 2 else ()
        stage.put(f"/{number}", NOW_MS + number % 4 // 2 * DAY_MS, extracted=found)
        stage.put(f"/{number}", crawl="site-2", extracted=(book,))


@pytest.mark.parametrize("limit", [1, 3, 1_000])
async def test_items_are_listed_once_in_pages(stage: Stage, limit: int) -> None:
    put_items(stage)
    pages = await walk(stage, f"/crawls/site-1/items?limit={limit}", "items")
    rows = [row for page in pages for row in page]
    assert len(rows) == PAGES
    books = [row for row in rows if row["rule"] == "books"]
    assert sorted(row["url"] for row in books) == sorted(f"{SITE}/{n}" for n in range(1, PAGES, 2))
    assert max(map(len, pages)) <= limit + 1
    assert books[0].keys() == {"url", "fetched_at", "rule", "place", "item", "problems"}
    assert books[0]["item"]["price"] == 1.5


async def test_items_are_filtered_by_rule_and_validity(stage: Stage) -> None:
    put_items(stage)
    for words, rules in (
        ("rule=books", {"books"}),
        ("valid=no", {"shelves"}),
        ("rule=books&valid=no", set()),
        ("valid=yes", {"books"}),
    ):
        (rows,) = await walk(stage, f"/crawls/site-1/items?{words}", "items")
        assert {row["rule"] for row in rows} == rules
    assert (await stage.get("/crawls/site-1/items?valid=maybe")).status == 400
    assert (await stage.get("/crawls/nothing/items")).status == 404


async def test_items_page_is_bounded_in_bytes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_items(stage)
    monkeypatch.setattr(handlers, "ANSWER_BYTES_MAX", 100)
    found = await walk(stage, "/crawls/site-1/items?limit=1000", "items")
    assert len(found) > 3
    assert sum(map(len, found)) == PAGES


# --- texts --------------------------------------------------------------------------------------


def put_text(stage: Stage, path: str, words: str, **changes: Any) -> None:
    document = {"title": path, "language": "en", "text": words, "markdown": f"# {words}"}
    member = warc.conversion(SITE + path, NOW_MS, document, stored=False)
    key = f"bodies/site-1{path}.warc.gz"
    stage.world.files[key] = b"before" + member
    place = {"body_key": key, "text_offset": 6, "text_length": len(member)}
    stage.put(path, **{**place, **changes})


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_texts_are_listed_once_in_both_formats(stage: Stage, limit: int) -> None:
    for number in range(PAGES):
        put_text(stage, f"/{number}", f"Words {number}")
        stage.put(f"/none/{number}")
    pages = await walk(stage, f"/crawls/site-1/texts?limit={limit}", "texts")
    rows = [row for page in pages for row in page]
    assert sorted(row["text"] for row in rows) == sorted(f"Words {n}" for n in range(PAGES))
    assert {row["markdown"] for row in rows} == {f"# Words {n}" for n in range(PAGES)}
    assert {(row["language"], row["left_out"]) for row in rows} == {("en", None)}
    assert max(map(len, pages)) <= limit


async def test_missing_text_has_reason(stage: Stage) -> None:
    put_text(stage, "/gone", "a")
    del stage.world.files["bodies/site-1/gone.warc.gz"]
    put_text(stage, "/nowhere", "a", body_key=None)
    put_text(stage, "/large", "a" * ANSWER_BYTES_MAX)
    put_text(stage, "/huge", "a", text_length=ANSWER_BYTES_MAX + 1)
    put_text(stage, "/forgotten", "a")
    grave = warc.tombstone(200)
    stage.world.files["bodies/site-1/forgotten.warc.gz"] = b"before" + grave
    stage.put("/forgotten", body_key="bodies/site-1/forgotten.warc.gz", text_offset=6,
              text_length=len(grave))  # fmt: skip
    (rows,) = await walk(stage, "/crawls/site-1/texts", "texts")
    said = {row["url"].removeprefix(SITE): row["left_out"] for row in rows}
    assert said == {
        "/gone": "it is past its retention",
        "/nowhere": "it is not stored",
        "/large": handlers.TOO_LARGE,
        "/huge": handlers.TOO_LARGE,
        "/forgotten": "it was forgotten",
    }
    assert {(row["text"], row["markdown"]) for row in rows} == {(None, None)}


async def test_texts_page_is_bounded_in_bytes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = "1" * 600_000
    monkeypatch.setattr(handlers, "ANSWER_BYTES_MAX", 2 * len(json.dumps([one, f"# {one}"])))
    for number in range(6):
        put_text(stage, f"/{number}", f"{number}" * len(one))
    pages = await walk(stage, "/crawls/site-1/texts", "texts")
    assert [len(page) for page in pages] == [2, 2, 2]
    assert len({row["url"] for page in pages for row in page}) == 6
    assert max(len(json.dumps(page)) for page in pages) < 2 * ANSWER_BYTES_MAX


# --- exports ------------------------------------------------------------------------------------


def put_export(
    stage: Stage, day: str, *numbers: int, crawl: str | None = None, rows: int = 1
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
    stage.world.files[f"exports/{manifest.path}"] = encode_manifest(manifest)


@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_export_files_are_listed_by_day_with_links(stage: Stage, limit: int) -> None:
    put_export(stage, "2026-11-21", 0, 1, crawl="site-1")
    put_export(stage, "2026-11-21", 0, 1, 2, rows=7)  # made later, so this one counts
    put_export(stage, "2026-11-22", 0)
    put_export(stage, "2026-11-23", 0)  # a day on which the crawl did not run
    pages = await walk(stage, f"/crawls/site-1/exports?limit={limit}", "files")
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
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "DAYS_READ_MAX", 3)
    stage.clock.at_ms = NOW_MS + 9 * DAY_MS
    put_export(stage, "2026-11-21", 0)
    put_export(stage, "2026-11-30", 0)
    stage.world.files["exports/manifests/dt=2026-11-25.json"] = b"{}"
    pages = await walk(stage, "/crawls/site-1/exports", "files")
    assert [len(page) for page in pages] == [1, 0, 0, 1]


async def test_cursor_of_other_listing_is_refused(stage: Stage) -> None:
    put_export(stage, "2026-11-21", 0, 1)
    following = (await stage.get("/crawls/site-1/exports?limit=1")).body["next"]
    for what in ("items", "texts", "pages"):
        assert (await stage.get(f"/crawls/site-1/{what}?cursor={following}")).status == 400
    assert (await stage.get(f"/crawls/site-2/exports?cursor={following}")).status == 400
