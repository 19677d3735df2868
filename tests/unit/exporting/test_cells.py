"""Cells of an exported table."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import pytest

from orbweaver.exporting.cells import MOMENT_MAX, MOMENT_MIN, cells_of, iso
from orbweaver.model.columns import ORIGIN, PAGES, Column, Table, Type, item_table

S, I, N, D, B, DAY, M = Type  # noqa: E741 - the types in order


class Word(StrEnum):
    """An enumeration, as in records."""

    ONE = "one"


# Type, found value, expected cell.
VALUES: list[tuple[Type, Any, Any]] = [
    (S, "text", "text"),
    (S, "", ""),
    (S, Word.ONE, "one"),
    (S, "half \ud83d of a pair", "half \ufffd of a pair"),
    (S, "whole \U0001f600", "whole \U0001f600"),
    (S, 5, "5"),
    (S, 1.5, "1.5"),
    (S, True, "true"),
    (S, ["a"], None),
    (S, {"a": 1}, None),
    (I, 5, 5),
    (I, 2**63 - 1, 2**63 - 1),
    (I, 2**63, None),
    (I, -(2**63), -(2**63)),
    (I, -(2**63) - 1, None),
    (I, "12", 12),
    (I, 5.0, 5),
    (I, 5.5, None),
    (I, "many", None),
    (I, True, None),
    (I, [1], None),
    (N, 1.5, 1.5),
    (N, 2, 2.0),
    (N, "2.5", 2.5),
    (N, math.inf, None),
    (N, math.nan, None),
    (N, "inf", None),
    (N, 10**400, None),
    (N, "x", None),
    (N, False, None),
    (D, "12.30", "12.30"),
    (D, "0", "0"),
    (D, "-0.5", "-0.5"),
    (D, "99999999999999.9999", "99999999999999.9999"),
    (D, "100000000000000", None),
    (D, "1.00001", None),
    (D, "1.00000", "1"),
    (D, "012.5", "12.5"),
    (D, "+.5", "0.5"),
    (D, "1e3", "1000"),
    (D, "1e999999999", None),
    (D, "1e-999999999", None),
    (D, 12, "12"),
    (D, 12.3, "12.3"),
    (D, math.nan, None),
    (D, "12,30", None),
    (D, True, None),
    (D, ["1"], None),
    (B, True, True),
    (B, False, False),
    (B, 1, None),
    (B, "true", None),
    (DAY, "2028-02-29", "2028-02-29"),
    (DAY, "2027-02-29", None),
    (DAY, "20270228", None),
    (DAY, "2027-W08-6", None),
    (DAY, 20270228, None),
    (M, 0, 0),
    (M, MOMENT_MAX, MOMENT_MAX),
    (M, MOMENT_MAX + 1, None),
    (M, MOMENT_MIN - 1, None),
    (M, "2027-02-28", None),
    (M, True, None),
]


@pytest.mark.parametrize(("kind", "found", "stands"), VALUES)
def test_value_is_converted_to_type_of_column(kind: Type, found: Any, stands: Any) -> None:
    (value,) = cells_of(Table(name="t", columns=(Column(name="a", type=kind),)))({"a": found})
    assert (value, type(value)) == (stands, type(stands))
    many = cells_of(Table(name="t", columns=(Column(name="a", type=kind, many=True),)))
    if not isinstance(found, list):
        assert many({"a": found}) == [[stands]]
        assert many({"a": [found, None, found]}) == [[stands, None, stands]]


def test_cells_are_matched_to_columns_by_name() -> None:
    table = Table(name="t", columns=(Column(name="a"), Column(name="b", type=I), Column(name="c")))
    assert cells_of(table)({"c": "x", "d": 1, "b": 2}) == [None, 2, "x"]


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_795_219_200_007, "2026-11-21T00:00:00.007Z"),
        (MOMENT_MIN, "0001-01-01T00:00:00.000Z"),
        (MOMENT_MAX, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_iso_is_utc_with_milliseconds(at_ms: int, text: str) -> None:
    assert iso(at_ms) == text


@pytest.mark.parametrize("name", ["url", "Place", "b"])
def test_duplicate_column_name_is_rejected_in_any_case(name: str) -> None:
    with pytest.raises(ValueError, match="share a name"):
        item_table("shop", "book", (Column(name="B"), Column(name=name)))
    assert item_table("shop", "book", (Column(name="B"),)).columns[:4] == ORIGIN
    assert len(PAGES.columns) > 20
