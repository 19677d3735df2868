"""Convert the values of a query's result to exact text and to JSON."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

NUMBERS = (int, float, Decimal)


def is_number(value: object) -> bool:
    """Return True for a number, or for None (a missing number)."""
    return value is None or (isinstance(value, NUMBERS) and not isinstance(value, bool))


def format_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | tuple() | dict():
            return json.dumps(as_json(value), ensure_ascii=False, allow_nan=False)
        case float():
            return repr(value)
        case _:
            return str(as_json(value))


def as_json(value: Any) -> Any:
    """Convert a value for JSON: decimals as strings, times in UTC to the millisecond."""
    if value is None or isinstance(value, bool | int | str):
        return value
    for kind, spell in SPELLINGS:
        if isinstance(value, kind):
            return spell(value)
    return str(value)


def _moment(value: datetime) -> str:
    unit = "microseconds" if value.microsecond % 1000 else "milliseconds"
    return value.isoformat(timespec=unit).removesuffix("+00:00") + "Z"


# The first matching type applies. datetime comes before date, because it is a subclass of date.
SPELLINGS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (float, lambda value: value if math.isfinite(value) else str(value)),
    (datetime, _moment),
    (date, date.isoformat),
    (bytes, bytes.hex),
    (dict, lambda value: {str(name): as_json(one) for name, one in value.items()}),
    (list | tuple, lambda value: [*map(as_json, value)]),
)


def distinct(names: Sequence[str]) -> Iterable[str]:
    """Make column names unique, in the same order."""
    seen: dict[str, None] = {}
    for name in names:
        tries = itertools.chain((name,), (f"{name}_{number}" for number in itertools.count(2)))
        seen[next(tried for tried in tries if tried not in seen)] = None
    return seen
