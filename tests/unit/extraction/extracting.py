"""Item rules for tests of extraction."""

from __future__ import annotations

from typing import Any

from orbweaver.control.definition import parse
from orbweaver.extraction.extract import ItemRule

URL = "https://shop.example/books/1/"


def rule(**keys: Any) -> ItemRule:
    one = {"name": "x", "match": "/books/", "fields": {"a": "h1"}, **keys}
    (found,) = parse({"seeds": [URL], "items": [one]}).items
    return found
