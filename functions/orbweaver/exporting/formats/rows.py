"""Rows of a page record: one of pages, one of each item, one of its text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orbweaver.model.columns import ORIGIN, TEXTS
from orbweaver.model.item import Item
from orbweaver.model.page_record import COLUMNS, PageRecord

DOCUMENT = tuple(column.name for column in TEXTS.columns if column not in ORIGIN)


def page_row(record: PageRecord) -> dict[str, Any]:
    """Return the row of a record in the table of pages."""
    return {name: getattr(record, name) for name in COLUMNS}


def item_rows(record: PageRecord) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the valid items of a record: the rule that found it, and its row in that's table."""
    for item in record.extracted:
        if item.valid:
            yield item.table, {**item.fields, **_origin(record, item)}


def invalid_rows(record: PageRecord) -> Iterator[dict[str, Any]]:
    """Yield a row for each item of a record that is not what its rule asks for."""
    for item in record.extracted:
        if not item.valid:
            yield {
                **_origin(record, item),
                "rule": item.table,
                "problems": list(item.problems),
                "item": json.dumps(dict(item.fields), ensure_ascii=False, separators=(",", ":")),
            }


def text_row(record: PageRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a record's text, as its `conversion` holds it."""
    row = {"crawl": record.crawl, "url": record.url, "fetched_at": record.fetched_at}
    return row | {name: document.get(name) for name in DOCUMENT}


def _origin(record: PageRecord, item: Item) -> dict[str, Any]:
    return {
        "crawl": record.crawl,
        "url": record.url,
        "fetched_at": record.fetched_at,
        "place": item.place,
    }
