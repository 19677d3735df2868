"""Export files after erasure equal, byte for byte, the files that writers make of the rest."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting import formats
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.formats import erased, outcomes, writer
from orbweaver.exporting.snapshot import SnapshotEntry, bundled, entry_line
from orbweaver.frontier import warc
from orbweaver.frontier.link_table import document_of, read_links
from orbweaver.model.columns import LINKS, PAGES, TEXTS, Column, Table, Type, item_table
from orbweaver.parsing.link_rows import LinkRows

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
    return {"crawl": "c-1", "url": url, "outcome": "fetched", "fetched_at": 1, "depth": 0} | cells


def link(url: str, target: str) -> dict[str, Any]:
    return {"crawl": "c-1", "url": url, "fetched_at": 1, "target_url": target, "kind": "a"} | {
        "text": "x",
        "position": 0,
        "decision": "followed",
    }


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
    "links": (
        LINKS,
        [link(OTHER, URL), link(OTHER, f"{OTHER}b"), link(URL, OTHER), link(OTHER, f"{URL}0")],
    ),
    "nothing": (PAGES, [page(OTHER), page(f"{OTHER}b")]),
}


@pytest.fixture(params=formats.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def file_of(name: str, table: Table, rows: Sequence[Mapping[str, Any]], folder: Path) -> bytes:
    made = writer(name, table, folder)
    for cells in map(cells_of(table), rows):
        made.add(cells)
    return made.close().path.read_bytes()


@pytest.mark.parametrize("which", SCOPE)
@pytest.mark.parametrize("rows", ROWS)
def test_rest_equals_file_written_without_erased_rows(
    name: str, which: str, rows: str, tmp_path: Path
) -> None:
    table, given = ROWS[rows]
    scope = SCOPE[which]
    if name == "csv":  # CSV stores a list as JSON text, which is erased as a whole
        given = [{**row, "links": None} if "links" in row else row for row in given]
    left = [kept for row in given if (kept := scope.row_left(row)) is not None]
    before = file_of(name, table, given, tmp_path)
    found = erased(f"part-00-00000{SUFFIXES[name]}", before, scope)
    assert found.rows == len(left)
    assert (found.body or before) == file_of(name, table, left, tmp_path)
    assert (found.body is None) == (left == list(given))
    assert found.gone.get("rows", 0) == len(given) - len(left)


def test_link_to_erased_url_has_no_row() -> None:
    _, rows = ROWS["links"]
    left = [row for row in rows if SCOPE["url"].row_left(row) is not None]
    assert [row["target_url"] for row in left] == [f"{OTHER}b", f"{URL}0"]


class Asked(ErasureScope):
    """A scope that records the URLs of the rows that it checks."""

    urls_asked: ClassVar[list[str]] = []

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.urls_asked.append(row["url"])
        return super().row_left(row)


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_rows_without_match_are_not_parsed(name: str, tmp_path: Path) -> None:
    """Most rows of a large file do not match, and a text search per line is enough for them."""
    rows = [page(f"{OTHER}/{number}", title='a "b",\r\nc') for number in range(50)]
    body = file_of(name, PAGES, [*rows, page(URL)], tmp_path)
    Asked.urls_asked.clear()
    found = erased(f"part{SUFFIXES[name]}", body, Asked(urls=frozenset({URL})))
    assert Asked.urls_asked == [URL]
    assert found.body == file_of(name, PAGES, rows, tmp_path)


def test_files_of_other_kinds_are_unchanged() -> None:
    found = erased("plan.json", URL.encode(), SCOPE["url"])
    assert (found.body, found.rows, found.gone) == (None, 0, {})
    assert outcomes("part.warc.gz", b"") is None


@pytest.mark.parametrize("body", [b"\x1f\x8b\xff broken", b"PAR1 broken", b"\xff", b"url,a\r\nx"])
def test_unreadable_file_raises_error(name: str, body: bytes) -> None:
    for suffix in (SUFFIXES[name], ".warc.gz"):
        with pytest.raises((warc.WarcError, ValueError, OSError)):
            erased(f"part{suffix}", body, SCOPE["url"])


def test_unclosed_csv_quote_takes_linear_time() -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match="no CSV from byte 5 on"):
        erased("part.csv", b"url\r\n" + b'"' * 400_001, SCOPE["url"])
    assert time.process_time() - began_s < 5


def test_outcomes_are_equal_in_all_formats(name: str, tmp_path: Path) -> None:
    rows = [page(URL), page(OTHER, outcome="skipped"), page(f"{OTHER}b")]
    body = file_of(name, PAGES, rows, tmp_path)
    assert outcomes(f"part{SUFFIXES[name]}", body) == {"fetched": 2, "skipped": 1}


def test_foreign_json_keeps_other_cells_exactly(tmp_path: Path) -> None:
    row = (
        f'{{"crawl":"c-1","url":"{OTHER}","referrer":%s,"n":1.50,"m":1e400,"big":{10**30},'
        '"deep":{"a":[1.0,{"b":null}],"c":"\\u2028x"},"all":[true,false,null,"y"]}\n'
    )
    before = gzip.compress((row % f'"{URL}"').encode())
    found = erased("part.jsonl.gz", before, SCOPE["url"])
    assert found.body is not None
    assert gzip.decompress(found.body).decode() == row % "null"
    assert (found.rows, found.gone) == (1, {"rows": 0, "cells": 1})


def test_snapshot_loses_entry_and_referrer() -> None:
    entries = [
        SnapshotEntry(url=url, page=True, sha256="00", crawl="c-1", asked_ms=1, referrer=referrer)
        for url, referrer in ((URL, OTHER), (OTHER, URL), (f"{OTHER}b", OTHER))
    ]
    left = _all([entries[1]._replace(referrer=None), entries[2]])
    found = erased("pages-0000-00000.jsonl.gz", _all(entries), SCOPE["url"])
    assert found.body is not None
    assert gzip.decompress(found.body) == gzip.decompress(left)
    assert (found.rows, found.gone) == (2, {"rows": 1, "cells": 1})
    run = erased("pages-0000-00000.jsonl.gz", _all(entries), ErasureScope(runs=frozenset({"c-1"})))
    assert (run.rows, run.gone) == (0, {"rows": 3, "cells": 0})


def _all(entries: Sequence[SnapshotEntry]) -> bytes:
    return bundled(map(entry_line, entries))


@pytest.mark.parametrize("mentions", [False, True])
def test_archive_keeps_offsets_after_erasure(*, mentions: bool) -> None:
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


def test_index_loses_only_lines_of_erased_url() -> None:
    lines = [
        f'org,example)/jane 20260101 {{"url": "{URL}"}}\n',
        f'example,other)/a 20260101 {{"url": "{OTHER}", "to": "{URL}"}}\n',
    ]
    found = erased("part.cdxj", "".join(lines).encode(), SCOPE["url"])
    assert (found.body, found.rows, found.gone) == (lines[1].encode(), 1, {"rows": 1, "cells": 0})


@pytest.mark.parametrize(("name", "gone"), [("url", 0), ("mentions", 1)])
def test_screenshot_is_erased_with_its_body(name: str, gone: int) -> None:
    pages = [(URL, b"<p>it"), (OTHER, f"<p>see {URL}".encode()), (f"{OTHER}b", b"<p>none")]
    members = []
    for url, body in pages:
        members.append(warc.response(url, 0, status=200, headers={}, body=body, truncated=False))
        members.append(warc.screenshot_record(url, 0, b"RIFF" + bytes(300)))
    found = erased("one.warc.gz", b"".join(members), SCOPE[name])
    assert found.gone == {"bodies": 1 + gone, "screenshots": 1 + gone}
    assert found.body is not None
    left = [one.record for one in warc.members(found.body) if not warc.is_tombstone(one.record)]
    urls = [url for url, _ in pages[1 + gone :]]
    assert [one.url for one in left if one.type == "resource"] == urls
    assert [one.url for one in left if one.type == "response"] == urls


@pytest.mark.parametrize("which", SCOPE)
def test_stored_links_lose_erased_targets_and_keep_their_length(which: str) -> None:
    targets = (URL, f"{OTHER}b", f"{URL}0", "https://example.org/")
    rows = LinkRows(kinds="aaia", targets=targets, texts=("x", "y", None, ""))
    pages = ("https://example.org/list", OTHER, URL)
    made = [warc.links_record(url, 0, document_of(rows, url)) for url in pages]
    found = erased("one.warc.gz", b"".join(made), SCOPE[which])
    assert found.body is not None
    members = list(warc.members(found.body))
    assert [member.length for member in members] == list(map(len, made))
    left = [
        read_links(found.body[one.offset :][: one.length], pages[place])
        for place, one in enumerate(members)
    ]
    kept = {
        "url": [targets[1:], targets[1:], None],
        "mentions": [targets[1:], targets[1:], None],
        "host": [None, targets[1:2], None],
    }[which]
    assert [one and one.targets for one in left] == kept
    assert erased("one.warc.gz", found.body, SCOPE[which]).body is None
