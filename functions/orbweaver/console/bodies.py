"""Bodies of requests: JSON objects with just the keys that are named where they are read.

A problem is one of the API's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from orbweaver.api.problems import Refused

Fits: TypeAlias = Callable[[Any], bool]


def document_of(body: bytes, names: Mapping[str, Fits]) -> dict[str, Any]:
    """Read the body of a request: an object of just these keys; raises Refused."""
    try:
        read = json.loads(body or b"{}")
    except ValueError as error:
        raise Refused(400, "the body is no JSON") from error
    if not isinstance(read, dict):
        raise Refused(400, "the body is no object")
    for name, value in read.items():
        if name not in names or not names[name](value):
            raise Refused(400, f"{name[:40]!a} does not fit here")
    return read


def is_source(value: Any) -> bool:
    """Tell a text of any length."""
    return isinstance(value, str)


def is_document(value: Any) -> bool:
    """Tell an object."""
    return isinstance(value, dict)
