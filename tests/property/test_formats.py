"""Export formats: any rows read back with their types, and same rows give same bytes."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orbweaver.exporting import formats
from orbweaver.exporting.cells import MOMENT_MAX, MOMENT_MIN
from orbweaver.exporting.chunk import invalid_row, item_row, page_row, text_row
from orbweaver.model.columns import (
    INVALID_ITEMS,
    ORIGIN,
    PAGES,
    TEXTS,
    Column,
    Table,
    Type,
    item_table,
)
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from tests.contract import samples
from tests.unit.exporting.reading import for_csv, lines_of, read_back, values, written

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)
# Characters that break readers, mostly at the start of a value.
HOSTILE = st.sampled_from(
    [
        *("=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''-2"),
        *("\x00", "a\x00b", "\ud800", "a\udfffb", "\u2028", "\u2029", "\x85", "\x1b[31mred\x1b[0m"),
        *("\r\n", 'a "quoted", b', "\ufeff", "\uff1dHYPERLINK()", "sep=;", "\x7f", "'"),
        *('{"level":"ERROR"}', "NULL", "null", "NaN", "true", "1e5", "0012", "\\N", "\\u0000"),
        *("</script>", "\\"),
    ]
)
TEXT = ANY_TEXT | HOSTILE | st.builds("".join, st.lists(HOSTILE, max_size=3))
DECIMALS = st.decimals(
    min_value=Decimal("-99999999999999.9999"),
    max_value=Decimal("99999999999999.9999"),
    allow_nan=False,
    places=4,
).map(lambda number: format(number, "f")) | st.sampled_from(["0", "-0", "12.3", "12.30", "-0.0001"])
OF_TYPE: dict[Type, st.SearchStrategy[Any]] = {
    Type.STRING: TEXT,
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
    Type.DECIMAL: DECIMALS,
    Type.BOOLEAN: st.booleans(),
    Type.DATE: st.dates().map(lambda day: day.isoformat()),
    Type.MOMENT: st.integers(MOMENT_MIN, MOMENT_MAX),
}
# SQL words, and names of other columns.
NAMES = st.sampled_from(
    ["a", "b1", "price", "price_currency", "order", "select", "crawl_", "value"]
)
COLUMNS = st.lists(
    st.builds(Column, name=NAMES, type=st.sampled_from(Type), many=st.booleans()),
    max_size=6,
    unique_by=lambda column: column.name,
).map(tuple)
# Values of a rule before its change, and values that this code never writes.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.sampled_from(Type),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def fields_of(columns: tuple[Column, ...]) -> st.SearchStrategy[dict[str, Any]]:
    each = {}
    for column in columns:
        one = st.none() | OF_TYPE[column.type]
        each[column.name] = st.none() | st.lists(one, max_size=3) if column.many else one
    return st.fixed_dictionaries(each)


FOUND = COLUMNS.flatmap(
    lambda columns: st.tuples(st.just(columns), st.lists(fields_of(columns), max_size=5))
)
RECORDS = st.builds(
    PageRecord,
    crawl=TEXT,
    url=TEXT,
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(Reason),
    fetched_at=st.integers(MOMENT_MIN, MOMENT_MAX),
    depth=st.integers(0, 100),
    status=st.none() | OF_TYPE[Type.INTEGER],
    bytes=st.none() | OF_TYPE[Type.INTEGER],
    title=st.none() | TEXT,
    description=st.none() | TEXT,
    etag=st.none() | TEXT,
    error=st.none() | TEXT,
)
unhurried = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(table: Table, rows: list[dict[str, Any]]) -> None:
    """Write rows in all formats, and read the same values back."""
    expected = values(table, rows)
    for reader, found in read_back(table, rows).items():
        left = for_csv(table, expected) if reader == "Python's csv of csv" else expected
        assert found == left, reader


@pytest.mark.thorough
@unhurried
@given(st.lists(RECORDS, max_size=5))
def test_pages_read_back_from_every_format(records: list[PageRecord]) -> None:
    rows = [page_row(record) for record in records]
    check(PAGES, rows)
    names = [column.name for column in PAGES.columns]
    for record, found in zip(records, values(PAGES, rows), strict=True):
        cells = dict(zip(names, found, strict=True))
        assert cells["outcome"] == record.outcome.value
        assert cells["fetched_at"] == record.fetched_at
        assert cells["title"] == _scalar(Column(name="title"), record.title)


@pytest.mark.thorough
@unhurried
@given(FOUND)
def test_items_read_back_with_types(found: tuple[tuple[Column, ...], list[dict[str, Any]]]) -> None:
    columns, fields = found
    table = item_table("shop", "book", columns)
    items = tuple(Item(table="book", place=n, fields=each) for n, each in enumerate(fields))
    record = record_of(items)
    rows = [item_row(record, item) for item in items if item.valid]
    check(table, rows)
    for read, each in zip(values(table, rows), fields, strict=True):
        for column, value in zip(columns, read[len(ORIGIN) :], strict=True):
            assert value == _scalar(column, each[column.name])


@pytest.mark.thorough
@unhurried
@given(COLUMNS, st.lists(st.dictionaries(NAMES, ANYTHING, max_size=6), max_size=4))
def test_values_of_other_types_are_equal_in_all_formats(
    columns: tuple[Column, ...], fields: list[dict[str, Any]]
) -> None:
    named = [
        {column.name: value for column, value in zip(columns, each.values(), strict=False)} | each
        for each in fields
    ]
    check(Table(name="t", columns=(*ORIGIN[:2], *columns)), named)


@pytest.mark.thorough
@unhurried
@given(st.lists(st.tuples(TEXT, st.integers(0), st.lists(TEXT, max_size=3), fields_of(()))))
def test_invalid_items_and_texts_read_back(
    found: list[tuple[str, int, list[str], dict[str, Any]]],
) -> None:
    items = tuple(
        Item(table=name, place=place % 2**63, fields={"a": name}, problems=(*problems, "missing"))
        for name, place, problems, _ in found
    )
    record = record_of(items)
    check(INVALID_ITEMS, [invalid_row(record, item) for item in items if not item.valid])
    documents = [{"title": name, "text": "".join(problems)} for name, _, problems, _ in found]
    check(TEXTS, [text_row(record_of(()), document) for document in documents])


@pytest.mark.thorough
@unhurried
@given(st.lists(RECORDS, max_size=5), st.sampled_from(formats.NAMES))
def test_same_rows_give_same_bytes(records: list[PageRecord], name: str) -> None:
    rows = [page_row(record) for record in records]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        one = written(name, PAGES, rows, Path(first))
        other = written(name, PAGES, iter(rows), Path(second))
        assert one.path.read_bytes() == other.path.read_bytes()
        assert one.sha256 == other.sha256


@given(RECORDS)
def test_jsonl_row_is_one_line_without_controls(record: PageRecord) -> None:
    """No reader splits it, and terminals execute nothing."""
    with TemporaryDirectory() as folder:
        made = written("jsonl", PAGES, [page_row(record)], Path(folder))
        (line,) = lines_of(made)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", line)


@given(TEXT, TEXT)
def test_csv_cell_is_no_formula_and_has_no_controls(first: str, second: str) -> None:
    with TemporaryDirectory() as folder:
        row = {"crawl": first, "url": second}
        made = written("csv", Table(name="t", columns=ORIGIN[:2]), [row], Path(folder))
        text = made.path.read_bytes().decode("utf-8-sig").split("\r\n", 1)[1]
    for cell in re.findall(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)', text, re.DOTALL)[:2]:
        assert not re.match('"?[-=+@\t\r\n\uff1d\uff0b\uff0d\uff20]', cell) or cell in {"", "\r\n"}
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)


def record_of(items: tuple[Item, ...]) -> PageRecord:
    return samples.record(0, extracted=items)


def _scalar(column: Column, value: Any) -> Any:
    if isinstance(value, list):
        return [_scalar(column, part) for part in value]
    if column.type is Type.DECIMAL and value is not None:
        return Decimal(value)
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value
