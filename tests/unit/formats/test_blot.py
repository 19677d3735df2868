"""Files without what is forgotten are, byte for byte, what their writers make of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.core.forgetting import row_left
from orbweaver.core.meant import Meant
from orbweaver.core.tables import PAGES, TEXTS, Column, Type, item_table
from orbweaver.formats import NAMES, writer
from orbweaver.formats.blot import blotted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orbweaver.core.tables import Table

URL = "https://example.org/people/jane?a=1"
MEANT = {
    "url": Meant(urls=frozenset({URL})),
    "host": Meant(host="example.org"),
    "mentions": Meant(urls=frozenset({URL}), mentions=True),
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
SUFFIXES = {"jsonl": ".jsonl.gz", "csv": ".csv", "parquet": ".parquet"}
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
    "nothing": (PAGES, [page(OTHER), page(f"{OTHER}b")]),
}


def file_of(name: str, table: Table, rows: Sequence[Mapping[str, Any]], folder: Path) -> bytes:
    """Write rows."""
    made = writer(name, table, folder)
    for row in rows:
        made.add(row)
    return made.close().path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", MEANT)
@pytest.mark.parametrize("rows", ROWS)
def test_the_rest_is_as_it_was_written(name: str, which: str, rows: str, tmp_path: Path) -> None:
    """What is left is what the writer makes of what is left; nothing changes for nothing."""
    table, given = ROWS[rows]
    meant = MEANT[which]
    if name == "csv":  # a list is a text of JSON there, and goes as one
        given = [{**row, "links": None} if "links" in row else row for row in given]
    left = [kept for row in given if (kept := row_left(row, meant)) is not None]
    before = file_of(name, table, given, tmp_path)
    found = blotted(f"part-00-00000{SUFFIXES[name]}", before, meant)
    assert found.rows == len(left)
    assert (found.body or before) == file_of(name, table, left, tmp_path)
    assert (found.body is None) == (left == list(given))
    assert found.gone.get("rows", 0) == len(given) - len(left)


def test_a_host_is_no_part_of_another() -> None:
    """Neither a longer name nor a longer path is meant, and a mention is found within words."""
    host, url = MEANT["host"], MEANT["url"]
    assert host.text("see https://example.org/x")
    assert not host.text("see https://example.organic/x")
    assert not host.text("see https://an.example.org/x")
    assert url.text(f"({URL})")
    assert not url.text(f"{URL}0")
    assert url.bytes(b'<a href="/people/jane?a=1">')
    assert not url.bytes(b'<a href="/other/people/jane?a=1">')
    assert not url.bytes(b'<a href="/people/jane?a=12">')
    assert not replace(url, urls=frozenset()).bytes(b"anything")
