"""Crawls with item rules, run by workers over the memory adapters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local import custom_extractors
from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.extraction.extract import Field, ItemRule, ValueKind, ValueSource
from orbweaver.frontier.messages import seeds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord
from tests.unit.stage import CRAWL, SITE, Stage, answer

if TYPE_CHECKING:
    import pytest

HOME = f"{SITE}/"
PRICE = Field(name="price", where=".price", type=ValueKind.PRICE, required=True)
BOOKS = ItemRule(name="books", match="/books/", fields=(Field(name="title", where="h1"), PRICE))
PAGES = {
    HOME: '<a href="/books/1">a</a><a href="/books/2">b</a><a href="/books/3">c</a>',
    f"{SITE}/books/1": "<h1>One</h1><b class=price>£1.50</b>",
    f"{SITE}/books/2": "<h1>Two</h1><b class=price>call us</b>",
    f"{SITE}/books/3": "",
}


async def crawled(stage: Stage, crawl: Crawl) -> dict[str, PageRecord]:
    for url, html in PAGES.items():
        stage.web.put(
            url, answer(200, html.encode(), content_type="text/html") if html else answer(404)
        )
    stage.begin(crawl)
    for message in seeds_of(
        crawl.id, crawl.id, crawl.references, at_ms=crawl.started_at_ms, planned=True
    ):
        assert await stage.deliver(message) == []
    await stage.drain()
    return {record.url.removeprefix(SITE): record for record in stage.world.pages.values()}


def with_items(*rules: ItemRule) -> Crawl:
    return replace(CRAWL, seeds=(HOME,), seeds_planned=1, items=rules)


async def test_items_are_recorded_and_counted() -> None:
    stage = Stage()
    crawl = with_items(BOOKS)
    records = await crawled(stage, crawl)
    found = {path: (one.items, one.items_invalid) for path, one in records.items()}
    assert found == {
        "/": (None, None),
        "/books/1": (1, 0),
        "/books/2": (1, 1),
        "/books/3": (None, None),
    }
    (item,) = records["/books/1"].extracted
    assert item.fields == {"title": "One", "price": "1.50", "price_currency": "GBP"}
    (item,) = records["/books/2"].extracted
    assert item.problems == ("price: not a price: 'call us' (no digit in it)",)
    assert records["/books/3"].outcome is Outcome.FAILED
    books = await stage.crawls.counters(crawl)
    assert (books.total["items"], books.total["items_invalid"]) == (2, 1)
    assert (stage.metrics.totals["ItemsValid"], stage.metrics.totals["ItemsInvalid"]) == (1, 1)
    assert not {"items", "items_invalid"} & stage.metrics.totals.keys()


async def test_import_error_of_extractor_gives_invalid_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("import nothing_like_it\n")
    (tmp_path / "own_module.py").write_text(
        "from json import loads\ndef books(page, url):\n    return {'title': page.title}\n"
        "def _hidden(page, url): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    rule = ItemRule(
        name="x",
        match="/",
        source=ValueSource.CUSTOM,
        extractor="books",
        fields=(Field(name="title", source=ValueSource.CUSTOM, where="title"),),
    )
    stage = Stage(reader=InPlaceReader(custom_extractors.deployed("broken_module")))
    records = await crawled(stage, with_items(rule))
    said = (
        "extractor books: ExtractorError: the module cannot be imported: ModuleNotFoundError:"
        " No module named 'nothing_like_it'"
    )
    assert [item.problems for item in records["/books/1"].extracted] == [(said,)]
    assert [*custom_extractors.deployed("own_module")] == ["books"]
    assert custom_extractors.deployed("") == {}


def test_deployed_extractors_of_missing_module_are_empty_mapping() -> None:
    broken: Any = custom_extractors.deployed("there_is_no_such_module")
    assert (len(broken), [*broken], "books" in broken) == (0, [], True)


async def test_json_responses_give_items_and_reasons() -> None:
    rules = (
        ItemRule(
            name="books",
            match="/books/",
            source=ValueSource.JSON,
            each="$.books[*]",
            fields=(Field(name="title", source=ValueSource.JSON, where="$.title"),),
        ),
        ItemRule(name="pages", match="/books/", fields=(Field(name="title", where="h1"),)),
    )
    kind = "application/json"
    stage = Stage()
    answers = {
        "/books/1": answer(200, b'{"books": [{"title": "One"}, {"title": 2}]}', content_type=kind),
        "/books/2": answer(200, b'{"books": [', content_type=kind),
        "/books/3": answer(200, b"<h1>Three</h1><a href=/d>", content_type="text/html"),
        "/d": answer(200, b"{}", content_type=kind),
    }
    for path, response in answers.items():
        stage.web.put(f"{SITE}{path}", response)
    crawl = replace(CRAWL, items=rules)
    urls = [f"{SITE}{path}" for path in answers if path != "/d"]
    assert await stage.deliver(stage.begin(crawl, *urls)) == []
    await stage.drain()
    found = {
        record.url.removeprefix(SITE): (
            f"{record.outcome}.{record.reason}",
            [(item.table, item.fields["title"]) for item in record.extracted],
        )
        for record in stage.world.pages.values()
    }
    assert found == {
        "/books/1": ("fetched.ok", [("books", "One"), ("books", "2")]),
        "/books/2": ("failed.json_invalid", []),
        "/books/3": ("fetched.ok", [("pages", "Three")]),
        "/d": ("skipped.content_type", []),
    }
