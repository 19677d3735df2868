"""Files without what is forgotten are, byte for byte, what their writers make of the rest."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting import formats
from orbweaver.exporting.formats import erased, outcomes, writer
from orbweaver.exporting.snapshot import SnapshotEntry, bundled, entry_line
from orbweaver.frontier import warc
from orbweaver.model.columns import PAGES, TEXTS, Column, Type, item_table
from tests.unit.exporting.reading import WRITERS, writing_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from orbweaver.model.columns import Table

URL = "https://example.org/people/jane?a=1"
SCOPE = {
    "url": ErasureScope(urls=frozenset({URL})),
    "host": ErasureScope(host="example.org"),
    "mentions": ErasureScope(urls=frozenset({URL}), mentions=True),
}
THINGS = item_table(
    "shop",
    "things",
    (
        Column(name="price", type=Type.DECIMAL),
        Column(name="weight", type=Type.NUMBER),
        Column(name="since", type=Type.DATE),
        Column(name="new", type=Type.BOOLEAN),
        Column(name="link"),
        Column(name="links", many=True),
    ),
)
SUFFIXES = {one.name: one.suffix for one in formats.ROWS}
OTHER = "https://other.example/a"


def page(url: str, **cells: Any) -> dict[str, Any]:
    """Make a row of pages."""
    return {"crawl": "c-1", "url": url, "outcome": "fetched", "fetched_at": 1, "depth": 0} | cells


ROWS: dict[str, tuple[Table, Sequence[Mapping[str, Any]]]] = {
    "pages": (
        PAGES,
        [
            page(URL, title="gone"),
            page(OTHER, referrer=URL, title='a "b", c\r\nd', error="\x85\u2028'=1+1"),
            page(f"{URL}0", title="", canonical=None),
            page(OTHER, canonical=URL, title=f"see {URL}!", description="=2"),
        ],
    ),
    "texts": (
        TEXTS,
        [
            {"crawl": "c-1", "url": OTHER, "fetched_at": 1, "text": f"see {URL} there"},
            {"crawl": "c-1", "url": URL, "fetched_at": 1, "text": "x"},
        ],
    ),
    "items": (
        THINGS,
        [
            {
                "crawl": "c-1",
                "url": OTHER,
                "fetched_at": 1,
                "place": 0,
                "price": "12.30",
                "weight": 0.1,
                "since": "2026-11-21",
                "new": True,
                "link": URL,
                "links": [OTHER, URL, None],
            },
            {"crawl": "c-1", "url": OTHER, "fetched_at": 1, "place": 1, "links": [OTHER]},
        ],
    ),
    "prose": (TEXTS, [{"crawl": "c-1", "url": OTHER, "fetched_at": 1, "text": f"see {URL} there"}]),
    "nothing": (PAGES, [page(OTHER), page(f"{OTHER}b")]),
}


@pytest.fixture(params=WRITERS)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Have each writer write and erase in turn; the name of its format."""
    with writing_with(request.param) as found:
        yield found


def file_of(name: str, table: Table, rows: Sequence[Mapping[str, Any]], folder: Path) -> bytes:
    """Write rows."""
    made = writer(name, table, folder)
    for row in rows:
        made.add(row)
    return made.close().path.read_bytes()


@pytest.mark.parametrize("which", SCOPE)
@pytest.mark.parametrize("rows", ROWS)
def test_the_rest_is_as_it_was_written(name: str, which: str, rows: str, tmp_path: Path) -> None:
    """What is left is what the writer makes of what is left; nothing changes for nothing."""
    table, given = ROWS[rows]
    scope = SCOPE[which]
    if name == "csv":  # a list is a text of JSON there, and goes as one
        given = [{**row, "links": None} if "links" in row else row for row in given]
    left = [kept for row in given if (kept := scope.row_left(row)) is not None]
    before = file_of(name, table, given, tmp_path)
    found = erased(f"part-00-00000{SUFFIXES[name]}", before, scope)
    assert found.rows == len(left)
    assert (found.body or before) == file_of(name, table, left, tmp_path)
    assert (found.body is None) == (left == list(given))
    assert found.gone.get("rows", 0) == len(given) - len(left)


class Asked(ErasureScope):
    """A scope that notes the URLs of the rows that it is asked of."""

    urls_asked: ClassVar[list[str]] = []

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.urls_asked.append(row["url"])
        return super().row_left(row)


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_rows_that_cannot_hold_it_are_not_taken_apart(name: str, tmp_path: Path) -> None:
    """A file of 100,000 rows is mostly others': a search of each line is enough for those."""
    rows = [page(f"{OTHER}/{number}", title='a "b",\r\nc') for number in range(50)]
    body = file_of(name, PAGES, [*rows, page(URL)], tmp_path)
    Asked.urls_asked.clear()
    found = erased(f"part{SUFFIXES[name]}", body, Asked(urls=frozenset({URL})))
    assert Asked.urls_asked == [URL]
    assert found.body == file_of(name, PAGES, rows, tmp_path)


def test_a_host_is_no_part_of_another() -> None:
    """Neither a longer name nor a longer path is meant, and a mention is found within words."""
    host, url = SCOPE["host"], SCOPE["url"]
    assert host.text("see https://example.org/x")
    assert not host.text("see https://example.organic/x")
    assert not host.text("see https://an.example.org/x")
    assert url.text(f"({URL})")
    assert not url.text(f"{URL}0")
    assert url.bytes(b'<a href="/people/jane?a=1">')
    assert not url.bytes(b'<a href="/other/people/jane?a=1">')
    assert not url.bytes(b'<a href="/people/jane?a=12">')
    assert not replace(url, urls=frozenset()).bytes(b"anything")


def test_other_files_are_left() -> None:
    """A file of another kind holds no rows, and is not opened."""
    found = erased("plan.json", URL.encode(), SCOPE["url"])
    assert (found.body, found.rows, found.gone) == (None, 0, {})
    assert outcomes("part.warc.gz", b"") is None


@pytest.mark.parametrize("body", [b"\x1f\x8b\xff broken", b"PAR1 broken", b"\xff", b"url,a\r\nx"])
def test_what_cannot_be_read_is_one_error(name: str, body: bytes) -> None:
    """A broken file is told from one without it, by an error that says so."""
    for suffix in (SUFFIXES[name], ".warc.gz"):
        with pytest.raises((warc.WarcError, ValueError, OSError)):
            erased(f"part{suffix}", body, SCOPE["url"])


def test_a_quote_that_never_ends_costs_one_look() -> None:
    """A torn CSV file is read once, not from each of its quotes on."""
    began_s = time.process_time()
    with pytest.raises(ValueError, match="no CSV from byte 5 on"):
        erased("part.csv", b"url\r\n" + b'"' * 400_001, SCOPE["url"])
    assert time.process_time() - began_s < 5


def test_outcomes_of_a_file(name: str, tmp_path: Path) -> None:
    """Each format counts the same outcomes."""
    rows = [page(URL), page(OTHER, outcome="skipped"), page(f"{OTHER}b")]
    body = file_of(name, PAGES, rows, tmp_path)
    assert outcomes(f"part{SUFFIXES[name]}", body) == {"fetched": 2, "skipped": 1}


def test_json_that_others_wrote(tmp_path: Path) -> None:
    """Cells of any kind are as they stood there, to the last digit of a number."""
    row = (
        f'{{"crawl":"c-1","url":"{OTHER}","referrer":%s,"n":1.50,"m":1e400,"big":{10**30},'
        '"deep":{"a":[1.0,{"b":null}],"c":"\\u2028x"},"all":[true,false,null,"y"]}\n'
    )
    before = gzip.compress((row % f'"{URL}"').encode())
    found = erased("part.jsonl.gz", before, SCOPE["url"])
    assert found.body is not None
    assert gzip.decompress(found.body).decode() == row % "null"
    assert (found.rows, found.gone) == (1, {"rows": 0, "cells": 1})


def test_entries_of_a_snapshot() -> None:
    """Its own entry goes, an entry that names it as the referrer is cut, others stay."""
    entries = [
        SnapshotEntry(url=url, page=True, sha256="00", crawl="c-1", asked_ms=1, referrer=referrer)
        for url, referrer in ((URL, OTHER), (OTHER, URL), (f"{OTHER}b", OTHER))
    ]
    left = _all([replace(entries[1], referrer=None), entries[2]])
    found = erased("pages-0000-00000.jsonl.gz", _all(entries), SCOPE["url"])
    assert found.body is not None
    assert gzip.decompress(found.body) == gzip.decompress(left)
    assert (found.rows, found.gone) == (2, {"rows": 1, "cells": 1})
    run = erased("pages-0000-00000.jsonl.gz", _all(entries), ErasureScope(runs=frozenset({"c-1"})))
    assert (run.rows, run.gone) == (0, {"rows": 3, "cells": 0})


def _all(entries: Sequence[SnapshotEntry]) -> bytes:
    return bundled(map(entry_line, entries))


@pytest.mark.parametrize("mentions", [False, True])
def test_an_archive_keeps_its_places(*, mentions: bool) -> None:
    """A tombstone is as long as what it covers; a request goes with its response, uncounted."""
    records = [
        warc.response(
            url, 1, status=200, headers={}, body=body, truncated=False, asked=(("Host", "h"),)
        )
        for url, body in ((URL, b"x"), (OTHER, URL.encode()), (f"{OTHER}b", b"y"))
    ]
    texts = [
        warc.conversion(url, 1, {"title": None, "text": text, "markdown": text}, stored=True)
        for url, text in ((URL, "x"), (OTHER, URL))
    ]
    body = b"".join((*records, *texts))
    scope = replace(SCOPE["url"], mentions=mentions)
    found = erased("part.warc.gz", body, scope)
    assert found.body is not None
    assert len(found.body) == len(body)
    assert found.gone == ({"bodies": 2, "texts": 2} if mentions else {"bodies": 1, "texts": 1})
    assert (found.rows, found.mentions) == ((1, 0) if mentions else (2, 2))
    left = [member.record for member in warc.members(found.body)]
    kept = {record.url for record in left if not warc.is_tombstone(record)}
    assert kept == {f"{OTHER}b"} | (set() if mentions else {OTHER})
    again = erased("part.warc.gz", found.body, scope)
    assert (again.body, again.rows, again.gone) == (None, found.rows, {})


def test_an_index_loses_its_lines() -> None:
    """Lines of other URLs stay as they are, though they name it."""
    lines = [
        f'org,example)/jane 20260101 {{"url": "{URL}"}}\n',
        f'example,other)/a 20260101 {{"url": "{OTHER}", "to": "{URL}"}}\n',
    ]
    found = erased("part.cdxj", "".join(lines).encode(), SCOPE["url"])
    assert (found.body, found.rows, found.gone) == (lines[1].encode(), 1, {"rows": 1, "cells": 0})


@pytest.mark.parametrize(("name", "gone"), [("url", 0), ("mentions", 1)])
def test_a_picture_goes_with_its_body(name: str, gone: int) -> None:
    """With that of the URL, and with one that goes for what it mentions; others stay."""
    pages = [(URL, b"<p>it"), (OTHER, f"<p>see {URL}".encode()), (f"{OTHER}b", b"<p>none")]
    members = []
    for url, body in pages:
        members.append(warc.response(url, 0, status=200, headers={}, body=body, truncated=False))
        members.append(warc.picture(url, 0, b"RIFF" + bytes(300)))
    found = erased("one.warc.gz", b"".join(members), SCOPE[name])
    assert found.gone == {"bodies": 1 + gone, "screenshots": 1 + gone}
    assert found.body is not None
    left = [one.record for one in warc.members(found.body) if not warc.is_tombstone(one.record)]
    urls = [url for url, _ in pages[1 + gone :]]
    assert [one.url for one in left if one.type == "resource"] == urls
    assert [one.url for one in left if one.type == "response"] == urls
