"""Convert values to cells of an exported table, the same for all formats.

If an earlier version of a rule extracted an item, its values can have other types than the column.
A value with the same meaning in the column's type is converted (5 to "5", "12.3" to a number).
Otherwise the cell is empty. No value makes an export fail.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from orbweaver.model.columns import Column, Table, Type

Fit: TypeAlias = "Callable[[Any], Any]"

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
# A JSON number: no sign except minus, no leading zeros.
DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
STEP = Decimal("0.0001")
# Lone surrogates, which no encoding can represent, become U+FFFD.
SURROGATE = re.compile("[\ud800-\udfff]")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
# In ISO 8601 a year has four digits.
MOMENT_MIN = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MILLISECOND
MOMENT_MAX = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - EPOCH) // MILLISECOND


def cells_of(table: Table) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Return a function that converts a row of the table to cells, in the order of its columns."""
    columns = tuple(
        (column.name, column.type is Type.STRING and not column.many, fit_of(column))
        for column in table.columns
    )

    def of_row(row: Mapping[str, Any]) -> list[Any]:
        found = row.get
        return [
            value
            # Most values are ASCII texts, which need no conversion.
            if (value := found(name)) is None
            or (text and value.__class__ is str and value.isascii())
            else fit(value)
            for name, text, fit in columns
        ]

    return of_row


def iso(at_ms: int) -> str:
    """Format a time as ISO 8601 in UTC with milliseconds."""
    moment = EPOCH + timedelta(milliseconds=at_ms)
    # isoformat pads years below 1000 to four digits, too.
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"


def fit_of(column: Column) -> Fit:
    """Return the function that converts a value of the column to a cell. It never gets None."""
    fit = _FITS[column.type]
    if not column.many:
        return fit

    def many(value: Any) -> list[Any]:
        parts = value if isinstance(value, list | tuple) else (value,)
        return [None if part is None else fit(part) for part in parts]

    return many


def _string(value: Any) -> str | None:
    if value.__class__ is not str:
        if isinstance(value, str):
            value = str.__str__(value)  # of an enumeration's member
        elif isinstance(value, int | float):
            return json.dumps(value)
        else:
            return None
    return value if value.isascii() else SURROGATE.sub("\ufffd", value)


def _integer(value: Any) -> int | None:
    if value.__class__ is not int:
        digits = _decimal(value)
        number = None if digits is None else Decimal(digits)
        if number is None or number != number.to_integral_value():
            return None
        value = int(number)
    return value if INTEGER_MIN <= value <= INTEGER_MAX else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _decimal(value: Any) -> str | None:
    if value.__class__ is str and DIGITS.fullmatch(value):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # str gives the fewest digits that identify the float.
        number = Decimal(str(value))
        exact = number.quantize(STEP)
    except (InvalidOperation, ValueError):  # not a number, or far too large
        return None
    digits = format(exact, "f").rstrip("0").rstrip(".")
    return digits if exact == number and DIGITS.fullmatch(digits) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> str | None:
    try:
        # Python also reads 20261121 and 2026-W47-6. Only the form that it writes is accepted.
        if isinstance(value, str) and date.fromisoformat(value).isoformat() == value:
            return value
    except ValueError:
        pass
    return None


def _moment(value: Any) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool)
    return value if known and MOMENT_MIN <= value <= MOMENT_MAX else None


_FITS: dict[Type, Fit] = {
    Type.STRING: _string,
    Type.INTEGER: _integer,
    Type.NUMBER: _number,
    Type.DECIMAL: _decimal,
    Type.BOOLEAN: _boolean,
    Type.DATE: _date,
    Type.MOMENT: _moment,
}
