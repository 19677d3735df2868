"""The page record: the durable result of one URL, and a row of every export.

Its columns are public. Where body and text of a page lie is said by `body_key` (a file of WARC
records, each a gzip member) and offset and length of each in it; either may be absent.
`extracted` is no column: items are rows of tables of their own (model/columns.py).
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from orbweaver.model.item import Item, from_row, to_row
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.url import url_hash
from orbweaver.model.version import check, one_of

if TYPE_CHECKING:
    from orbweaver.model.target import Prior

# Not written: there are many, and what has none is of the first version.
VERSION, WHAT = 1, "a page record"
DAY_MS = 86_400_000
HEADER_CHARS_MAX = 200
DESCRIPTION_CHARS_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """How one URL of one crawl ended; times in ms since the epoch, sizes in bytes."""

    crawl: str
    url: str
    outcome: Outcome
    reason: Reason
    fetched_at: int
    depth: int
    referrer: str | None = None
    status: int | None = None
    content_type: str | None = None
    charset: str | None = None
    bytes: int | None = None
    latency_ms: int | None = None
    attempt: int = 1
    title: str | None = None
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    links: int | None = None
    sha256: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    body_key: str | None = None
    body_offset: int | None = None
    body_length: int | None = None
    items: int | None = None
    error: str | None = None
    items_invalid: int | None = None
    text_offset: int | None = None
    text_length: int | None = None
    # What of the page is cut or withheld (model/cuts.py).
    cut: str | None = None
    extracted: tuple[Item, ...] = field(default=(), metadata={"column": False})


COLUMNS = tuple(one.name for one in fields(PageRecord) if one.metadata.get("column", True))


def with_items(record: PageRecord, items: tuple[Item, ...] | None) -> PageRecord:
    """Note what rules found on a page; None where none is about it."""
    if items is None:
        return record
    invalid = sum(not item.valid for item in items)
    return replace(record, items=len(items), items_invalid=invalid, extracted=items)


def day_of(at_ms: int) -> str:
    """Name the UTC day of a moment, `YYYY-MM-DD`."""
    return _day(at_ms // DAY_MS)


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY_MS / 1000, tz=UTC).strftime("%Y-%m-%d")


def shard_of(digest: str, shards: int) -> int:
    """Spread ids over `shards` partitions, whoever made them up."""
    return zlib.crc32(digest.encode()) % shards


def page_key(record: PageRecord, shards: int) -> tuple[str, str]:
    """Partition and sort key of a record: `YYYY-MM-DD#shard` and `crawl#hash`."""
    digest = url_hash(record.url)
    day = day_of(record.fetched_at)
    return f"{day}#{shard_of(digest, shards)}", f"{record.crawl}#{digest}"


def prior_keys(prior: Prior, url: str, shards: int) -> tuple[tuple[str, str], ...]:
    """Keys under which the record of an earlier claim may lie: that day's, and the next day's."""
    digest = url_hash(url)
    shard = shard_of(digest, shards)
    return tuple(
        (f"{day_of(at_ms)}#{shard}", f"{prior.crawl}#{digest}")
        for at_ms in (prior.at_ms, prior.at_ms + DAY_MS)
    )


def to_fields(record: PageRecord, *, packed: bool = False) -> dict[str, Any]:
    """Render a record as plain fields, without those that are empty.

    Items are a text of JSON; `packed`: its compressed bytes, where those are fewer.
    """
    known = {name: getattr(record, name) for name in COLUMNS}
    if record.extracted:
        rows = [to_row(item) for item in record.extracted]
        text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
        plain = text.encode("utf-8", "replace")
        pressed = zlib.compress(plain) if packed else plain
        known["extracted"] = pressed if len(pressed) < len(plain) else text
    return {key: value for key, value in known.items() if value is not None}


def from_fields(raw: dict[str, Any]) -> PageRecord:
    """Read plain fields back; fields of other versions are passed over.

    Raises NewerVersion for what is newer, or has an outcome or reason that is not known here.
    """
    check(raw, WHAT, VERSION)
    known = {key: value for key, value in raw.items() if key in COLUMNS}
    extracted = raw.get("extracted", "[]")
    if isinstance(extracted, bytes):
        extracted = zlib.decompress(extracted)
    known["extracted"] = tuple(from_row(row) for row in json.loads(extracted))
    known["outcome"] = one_of(Outcome, known["outcome"], WHAT, VERSION)
    known["reason"] = one_of(Reason, known["reason"], WHAT, VERSION)
    return PageRecord(**known)
