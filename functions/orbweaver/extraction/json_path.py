"""Evaluate JSONPath (RFC 9535) on decoded JSON.

The library is imported on use, because most crawls read no JSON. Regular expressions of filters run
by RE2, because Python's would take exponential time on some texts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from orbweaver.extraction.regex import found_in
from orbweaver.model.url_patterns import PatternError

if TYPE_CHECKING:
    from jsonpath import JSONPath, JSONPathEnvironment

PATH_CHARS_MAX = 200
# Names and indexes only, so that a path finds at most one value and visits nothing else.
_SINGULAR = re.compile(r"\$(?:\.\w+|\[(?:-?\d+|'[^'\\]*'|\"[^\"\\]*\")\])*")


class JsonPathError(ValueError):
    """A path cannot be evaluated on a document."""


def problem_of(path: str) -> str | None:
    """Return the reason why a path is invalid, or None."""
    shown = ascii(path[:100])
    if not 1 <= len(path) <= PATH_CHARS_MAX or not path.isprintable():
        return f"{shown} does not fit: give 1 to {PATH_CHARS_MAX} printable characters"
    if not path.startswith("$"):
        return f"{shown} is not a JSONPath: give one from $, like {'$.' + path[:60]!a}"
    try:
        _compiled(path)
    except JsonPathError as error:
        return f"{shown} is not a JSONPath: {error}: give one like '$.results[*]'"
    return None


def values_at(path: str, data: Any) -> list[Any]:
    """Return the values that a path finds, in order. Raises JsonPathError."""
    from jsonpath.exceptions import JSONPathError

    if isinstance(data, str):  # the library would decode it
        return [] if _compiled(path).segments else [data]
    try:
        return [node.obj for node in _compiled(path).finditer(data)]
    except (JSONPathError, RecursionError) as error:
        raise JsonPathError(f"{path[:100]!a}: {_said(error)}") from error


def is_singular(path: str) -> bool:
    """Return True if a path finds at most one value, by names and indexes only."""
    return _SINGULAR.fullmatch(path) is not None


def is_linear(path: str) -> bool:
    """Return True if a path visits each value of a document at most once."""
    return ".." not in path and "?" not in path and "," not in path


@lru_cache(maxsize=512)
def _compiled(path: str) -> JSONPath:
    from jsonpath import JSONPath
    from jsonpath.exceptions import JSONPathError

    try:
        compiled = _environment().compile(path)
    except (JSONPathError, RecursionError) as error:
        raise JsonPathError(_said(error)) from error
    if not isinstance(compiled, JSONPath):
        raise JsonPathError("it joins several paths")
    return compiled


@lru_cache(maxsize=1)
def _environment() -> JSONPathEnvironment:
    from jsonpath import JSONPathEnvironment
    from jsonpath.function_extensions import ExpressionType, FilterFunction

    class Matches(FilterFunction):
        """`match` and `search` of RFC 9535 by RE2. `whole`: the whole text must match."""

        arg_types: ClassVar = [ExpressionType.VALUE, ExpressionType.VALUE]
        return_type = ExpressionType.LOGICAL

        def __init__(self, *, whole: bool) -> None:
            self._whole = whole

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            try:
                return (
                    found_in(f"^(?:{pattern})$" if self._whole else f"(?:{pattern})", value)
                    is not None
                )
            except PatternError:
                return False  # as RFC 9535 requires

    environment = JSONPathEnvironment(strict=True)
    environment.function_extensions |= {
        "match": Matches(whole=True),
        "search": Matches(whole=False),
    }
    return environment


def _said(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(", line ")[0][:200]
