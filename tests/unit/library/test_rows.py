"""Rows of a crawl as lists, previews and data frames."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from orbweaver.library.rows import CrawlRows, Row, arrow_of, pandas_of
from orbweaver.model.columns import Column, Type

AT_MS = 1_795_251_600_000
MOMENT = datetime.fromtimestamp(AT_MS / 1000, UTC)
COLUMNS = (
    Column(name="title"),
    Column(name="price", type=Type.DECIMAL),
    Column(name="sizes", type=Type.DECIMAL, many=True),
    Column(name="stock", type=Type.INTEGER),
    Column(name="sold", type=Type.MOMENT),
)
ROWS: list[Row] = [
    {"title": "a", "price": "12.50", "sizes": ["1.5"], "stock": 3, "sold": AT_MS, "rule": "x"},
    {"title": "b", "price": None, "sizes": None, "stock": None, "sold": MOMENT, "rule": "x"},
    {"title": "c", "price": "sold out", "sizes": [], "stock": "7", "sold": None, "rule": "x"},
]


def rows_of(rows: list[Row]) -> CrawlRows:
    return CrawlRows(lambda: iter(rows), lambda: COLUMNS)


def test_arrow_of_rows_has_types_of_exports() -> None:
    found = arrow_of(ROWS, COLUMNS)
    types = {field.name: str(field.type) for field in found.schema if field.name != "sizes"}
    assert types == {
        "title": "string",
        "price": "decimal128(18, 4)",
        "stock": "int64",
        "sold": "timestamp[us, tz=UTC]",
        "rule": "string",
    }
    assert found.column("price").to_pylist() == [Decimal("12.5000"), None, None]
    assert found.column("sizes").to_pylist() == [[Decimal("1.5000")], None, []]
    assert found.column("stock").to_pylist() == [3, None, 7]
    assert found.column("sold").to_pylist() == [MOMENT, MOMENT, None]


def test_arrow_of_no_rows_has_all_columns() -> None:
    """A script can select a column even if a rule found no items."""
    assert arrow_of([], COLUMNS).schema.names == [column.name for column in COLUMNS]


def test_pandas_of_rows_has_numeric_columns() -> None:
    pytest.importorskip("pandas")
    frame = pandas_of(ROWS, COLUMNS)
    assert [str(frame[name].dtype) for name in ("price", "stock")] == ["float64", "float64"]
    assert frame["price"].mean() == 12.5
    assert str(pandas_of(ROWS[:1], COLUMNS)["stock"].dtype) == "int64"
    assert [*pandas_of([], COLUMNS).columns] == [column.name for column in COLUMNS]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "0 rows"),
        (ROWS[:1], "1 row\ntitle  price  sizes    stock  sold           rule\n"),
        ([{"crawl": "c", "url": f"/{at}"} for at in range(11)], "11 rows\nurl\n/0\n"),
        ([{"url": "x"}] * 10_001, "more than 10,000 rows\n"),
        ([{"title": "x" * 50 + "\n"}], "1 row\ntitle\n" + "x" * 39 + "…"),
    ],
)
def test_repr_of_rows_shows_count_and_first_rows(rows: list[dict[str, Any]], said: str) -> None:
    assert repr(rows_of(rows)).startswith(said)
    assert len(repr(rows_of(rows)).splitlines()) <= 12
    assert len(rows_of(rows)) == len(rows)
    assert bool(rows_of(rows)) == bool(rows)


def test_html_of_rows_escapes_cells() -> None:
    """A page's title must not run a script in a notebook."""
    found = rows_of([{"title": "<script>"}])._repr_html_()
    assert "<td>&lt;script&gt;</td>" in found
    assert "<script>" not in found
