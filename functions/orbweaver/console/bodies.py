"""Parse the query parameters and bodies of requests. Errors have the format of the API's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from orbweaver.api.problems import Refused
from orbweaver.control import json_reader

Fits: TypeAlias = Callable[[Any], bool]
TEXT_CHARS_MAX = 10_000
# Allowed query parameters, and whether each is required. Here: none.
NO_NAMES: Mapping[str, bool] = {}
SECTION = {"crawl": True, "at": False}
PAIR = {"before": True, "after": True, "kind": False, "text": False}
AUDIT = {"crawl": True, "since": False}
PAGE = {"crawl": True, "url": True}
ZONE = {"zone": False}
TEXTS = {"before": True, "after": True, "url": True}


def query_of(given: Mapping[str, str], names: Mapping[str, bool]) -> dict[str, str]:
    """Check query parameters against allowed `names` (True: required). Raises Refused."""
    for name, value in given.items():
        if name not in names or len(value) > TEXT_CHARS_MAX:
            raise Refused(400, f"{name[:40]!a} does not fit here")
    for name, needed in names.items():
        if needed and name not in given:
            raise Refused(400, f"{name} is missing")
    return dict(given)


def document_of(body: bytes, names: Mapping[str, Fits]) -> dict[str, Any]:
    """Parse a body as a JSON object with keys in `names`. Raises Refused or DefinitionError."""
    try:
        read = json_reader.document_of((body or b"{}").decode())
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is no UTF-8 text") from error
    if not isinstance(read, dict):
        raise Refused(400, "the body is no object")
    for name, value in read.items():
        if name not in names or not names[name](value):
            raise Refused(400, f"{name[:40]!a} does not fit here")
    return read


def is_source(value: Any) -> bool:
    return isinstance(value, str)


def is_document(value: Any) -> bool:
    return isinstance(value, dict)
