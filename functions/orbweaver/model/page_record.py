"""Define the page record: the stored result of one URL, and a row of each export."""

from __future__ import annotations

import json
import zlib
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from orbweaver.model.item import Item, from_row, to_row
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.url import url_hash
from orbweaver.model.value import value_class
from orbweaver.model.version import check, one_of

if TYPE_CHECKING:
    from orbweaver.model.target import Prior

# Records of version 1 have no field `v`. This saves space, because there are many records.
VERSION, WHAT = 1, "a page record"
# Counter of pages with this column set.
NEEDS_RENDERING = "needs_rendering"
RENDERED = "rendered"
DAY_MS = 86_400_000
HEADER_CHARS_MAX = 200
DESCRIPTION_CHARS_MAX = 500


# The fields are the public columns of exports, except `extracted`: items are rows of other tables.
@value_class
class PageRecord:
    """Result of one URL of one crawl. Times in ms since the epoch, sizes in bytes."""

    crawl: Annotated[str, "id of the run"]
    url: Annotated[
        str,
        "canonical by the WHATWG URL Standard, without fragment, user info and tracking parameters",
    ]
    outcome: Annotated[Outcome, "fetched, unchanged, redirected, skipped or failed"]
    reason: Annotated[Reason, "reason for the outcome; see operations"]
    fetched_at: Annotated[int, "time of the request; decides the record's day"]
    depth: Annotated[int, "number of links from a seed"]
    referrer: Annotated[str | None, "the page that linked to it first"] = None
    status: Annotated[int | None, "HTTP status of the response"] = None
    content_type: Annotated[str | None, "header, as sent"] = None
    charset: Annotated[str | None, "charset of the page"] = None
    bytes: Annotated[int | None, "size of the decoded body"] = None
    latency_ms: Annotated[int | None, "time until the response was read"] = None
    attempt: Annotated[int, "number of the attempt, from 1"] = 1
    title: Annotated[str | None, "of the page"] = None
    description: Annotated[str | None, "from its meta element"] = None
    language: Annotated[str | None, "from its html element"] = None
    canonical: Annotated[str | None, "from rel=canonical, as a URL"] = None
    links: Annotated[int | None, "number of distinct links"] = None
    sha256: Annotated[str | None, "of the decoded body"] = None
    etag: Annotated[str | None, "header, as sent"] = None
    last_modified: Annotated[str | None, "header, as sent"] = None
    # Each WARC record in this file is a gzip member. It has an offset and a length, or is absent.
    body_key: Annotated[str | None, "the file in the bucket with body and text, a WARC"] = None
    body_offset: Annotated[
        int | None, "offset of the body's record in body_key; empty: not stored"
    ] = None
    body_length: Annotated[int | None, "compressed size of that record in bytes"] = None
    items: Annotated[
        int | None, "number of items that the crawl's rules found, valid and invalid"
    ] = None
    error: Annotated[str | None, "a message for people, or the target of a redirect"] = None
    items_invalid: Annotated[int | None, "number of items that do not fit the rules"] = None
    text_offset: Annotated[
        int | None, "offset of the main text's record in body_key; empty: none"
    ] = None
    text_length: Annotated[int | None, "compressed size of that record in bytes"] = None
    cut: Annotated[
        str | None,
        "truncated and omitted parts with counts, text=30122 links=20; empty: none (limits)",
    ] = None
    needs_rendering: Annotated[
        bool | None,
        "true: it is empty until its scripts run; empty: unknown (rendering)",
    ] = None
    rendered: Annotated[
        bool | None,
        "true: body, text and links are from the rendered page; empty: its scripts "
        "were not run (rendering)",
    ] = None
    screenshot_offset: Annotated[
        int | None,
        "offset of the screenshot's record in body_key; empty: none (rendering)",
    ] = None
    screenshot_length: Annotated[int | None, "compressed size of that record in bytes"] = None
    render_why: Annotated[
        str | None, "why its scripts were run or not; empty: the crawl does not render (rendering)"
    ] = None
    h1: Annotated[int | None, "number of its h1 elements, at most 10"] = None
    links_offset: Annotated[
        int | None, "offset of the record of its links in body_key; empty: none (links)"
    ] = None
    links_length: Annotated[int | None, "compressed size of that record in bytes"] = None
    proxy: Annotated[
        str | None, "host and port of the proxy that was used; empty: none (proxies)"
    ] = None
    extracted: tuple[Item, ...] = field(default=(), metadata={"column": False})


COLUMNS = tuple(one.name for one in fields(PageRecord) if one.metadata.get("column", True))


def with_items(record: PageRecord, items: tuple[Item, ...] | None) -> PageRecord:
    """Return the record with extracted items. `items` is None if no rule matches the page."""
    if items is None:
        return record
    invalid = sum(not item.valid for item in items)
    return replace(record, items=len(items), items_invalid=invalid, extracted=items)


def day_of(at_ms: int) -> str:
    """Return the UTC day of a time, `YYYY-MM-DD`."""
    return _day(at_ms // DAY_MS)


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY_MS / 1000, tz=UTC).strftime("%Y-%m-%d")


def shard_of(digest: str, shards: int) -> int:
    """Map an id of any form to one of `shards` partitions."""
    return zlib.crc32(digest.encode()) % shards


def page_key(record: PageRecord, shards: int) -> tuple[str, str]:
    """Return partition and sort key of a record: `YYYY-MM-DD#shard` and `crawl#hash`."""
    digest = url_hash(record.url)
    day = day_of(record.fetched_at)
    return f"{day}#{shard_of(digest, shards)}", f"{record.crawl}#{digest}"


def prior_keys(prior: Prior, url: str, shards: int) -> tuple[tuple[str, str], ...]:
    """Return the possible keys of the record of an earlier run: on its day and on the next day."""
    digest = url_hash(url)
    shard = shard_of(digest, shards)
    return tuple(
        (f"{day_of(at_ms)}#{shard}", f"{prior.crawl}#{digest}")
        for at_ms in (prior.at_ms, prior.at_ms + DAY_MS)
    )


def to_fields(record: PageRecord, *, packed: bool = False) -> dict[str, Any]:
    """Return a record as plain fields without None.

    `packed`: compress items if that saves space.
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
    """Convert plain fields to a record. Raises NewerVersion for an unknown version or value."""
    check(raw, WHAT, VERSION)
    known = {key: value for key, value in raw.items() if key in COLUMNS}
    extracted = raw.get("extracted", "[]")
    if isinstance(extracted, bytes):
        extracted = zlib.decompress(extracted)
    known["extracted"] = tuple(from_row(row) for row in json.loads(extracted))
    known["outcome"] = one_of(Outcome, known["outcome"], WHAT, VERSION)
    known["reason"] = one_of(Reason, known["reason"], WHAT, VERSION)
    return PageRecord(**known)
