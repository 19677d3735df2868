"""Handlers of page records, explanations, items, main texts and exported files.

Records are sorted by day, shard and key, and a cursor is a position in this order. Items and texts
use the same order and cursors. A request reads a limited number of records and shards. A page of
results can therefore be short or empty although more pages follow.

A response has a maximum size because Lambda returns at most 6 MB. A larger text is listed without
its content. Exported files are not sent through the function: each has a temporary link.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

from orbweaver.api import requests
from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.requests import Asking, Exported, Items, OfCrawl, Records, Texts, YesNo
from orbweaver.api.responses import (
    Explained,
    ExportedFile,
    ExportedFiles,
    FoundItem,
    FoundItems,
    FoundText,
    FoundTexts,
    Rows,
    row_of,
)
from orbweaver.exporting.manifest import PREFIX, File, days_between, decode_manifest, manifest_path
from orbweaver.frontier.retrying import all_of, closing
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord

T = TypeVar("T")
# Position of a record: day, shard and key.
Place: TypeAlias = tuple[str, int, str]

ROWS_READ_MAX = 5_000
SHARDS_READ_MAX = 64
ANSWER_BYTES_MAX = 3_000_000
TOO_LARGE = "larger than a response may be: read it from the exports"
READ_AT_ONCE = 8
DAYS_READ_MAX = 16
MANIFEST_BYTES_MAX = 16 * 1024 * 1024
LINK_S = 900


# --- items --------------------------------------------------------------------------------------


class Paged(Protocol):
    """Parameters of a request for one page of results."""

    @property
    def limit(self) -> int: ...

    @property
    def cursor(self) -> str | None: ...


async def pages(means: HandlerContext, *, path: OfCrawl, query: Records) -> Reply:
    """List the page records of a crawl."""
    crawl = await means.crawl(path.id)
    listing = ("pages", crawl.id, query.outcome or "")

    def pick(_place: Place, record: PageRecord) -> Iterator[Mapping[str, Any]]:
        if query.outcome in (None, record.outcome):
            yield row_of(record)

    rows, following = await walk(means, crawl, listing, query, pick)
    return Reply(status=200, body=Rows(pages=tuple(rows), next=following))


async def walk(
    means: HandlerContext,
    crawl: Crawl,
    listing: tuple[str, ...],
    query: Paged,
    pick: Callable[[Place, PageRecord], Iterable[T]],
    size_of: Callable[[T], int] = lambda _: 0,
) -> tuple[list[T], str | None]:
    """Return what `pick` selects from the records after the cursor, and the next cursor or None.

    `size_of` returns the bytes that a selected value adds to the response.
    """
    first: Place = ("", 0, "")
    day, shard, after = requests.decode_cursor(listing, query.cursor, first)
    places = (
        (one, number)
        for one in means.control.days(crawl)
        for number in range(means.pages.shards)
        if (one, number) >= (day, shard)
    )
    found: list[T] = []
    read = size = 0
    for day, shard in islice(places, SHARDS_READ_MAX):
        rows = means.pages.read_shard(day, shard, after=after or None, crawl=crawl.id)
        async with closing(rows):
            async for key, record in rows:
                read += 1
                picked = list(pick((day, shard, key), record))
                found += picked
                size += sum(map(size_of, picked))
                enough = len(found) >= query.limit or read >= ROWS_READ_MAX
                if enough or size >= ANSWER_BYTES_MAX:
                    return found, requests.encode_cursor(listing, (day, shard, key))
        after = ""
    left = next(places, None)
    return found, None if left is None else requests.encode_cursor(listing, (*left, ""))


async def explain(means: HandlerContext, *, query: Asking) -> Reply:
    """Explain the outcome of a URL."""
    crawl = None if query.crawl is None else await means.crawl(query.crawl)
    found = await means.explainer.explain(query.url, None if crawl is None else crawl.id)
    return Reply(status=200, body=Explained.build(*found))


async def items(means: HandlerContext, *, path: OfCrawl, query: Items) -> Reply:
    """List the items of a crawl."""
    crawl = await means.crawl(path.id)
    listing = ("items", crawl.id, query.rule or "", query.valid or "")

    def pick(_place: Place, record: PageRecord) -> Iterator[FoundItem]:
        """Yield all items of a record together, so no page of results splits them."""
        for item in record.extracted:
            valid = YesNo.YES if item.valid else YesNo.NO
            if query.rule in (None, item.table) and query.valid in (None, valid):
                yield FoundItem.build(record, item)

    found, following = await walk(means, crawl, listing, query, pick, _size_of)
    return Reply(status=200, body=FoundItems(items=tuple(found), next=following))


def _size_of(found: FoundItem) -> int:
    return len(json.dumps([found.item, found.problems]))


# --- texts --------------------------------------------------------------------------------------


async def texts(means: HandlerContext, *, path: OfCrawl, query: Texts) -> Reply:
    """List the main texts of a crawl."""
    crawl = await means.crawl(path.id)
    listing = ("texts", crawl.id)

    def pick(place: Place, record: PageRecord) -> Iterator[tuple[Place, PageRecord]]:
        if record.text_length is not None:
            yield place, record

    records, following = await walk(means, crawl, listing, query, pick)
    found: list[FoundText] = []
    size = 0
    before: str | None = None
    for start in range(0, len(records), READ_AT_ONCE):
        some = records[start : start + READ_AT_ONCE]
        read = await all_of((_text(means, record) for _, record in some), READ_AT_ONCE)
        for (place, _), one in zip(some, read, strict=True):
            size += len(json.dumps([one.text, one.markdown]))
            if before is not None and size > ANSWER_BYTES_MAX:
                return Reply(status=200, body=FoundTexts(texts=tuple(found), next=before))
            found.append(one)
            before = requests.encode_cursor(listing, place)
    return Reply(status=200, body=FoundTexts(texts=tuple(found), next=following))


async def _text(means: HandlerContext, record: PageRecord) -> FoundText:
    if (record.text_length or 0) > ANSWER_BYTES_MAX:  # compressed size
        return FoundText.build(record, {}, TOO_LARGE)
    stored = await read_stored(means.files, record, PagePart.TEXT)
    if isinstance(stored, Missing):
        return FoundText.build(record, {}, f"it {stored}")
    document = json.loads(stored.payload)
    if len(json.dumps([document.get("text"), document.get("markdown")])) > ANSWER_BYTES_MAX:
        told = {key: document.get(key) for key in ("title", "language")}
        return FoundText.build(record, told, TOO_LARGE)
    return FoundText.build(record, document, None)


# --- exports ------------------------------------------------------------------------------------


async def exports(means: HandlerContext, *, path: OfCrawl, query: Exported) -> Reply:
    """List the exported files of a crawl, each with a link that is valid for 15 minutes."""
    crawl = await means.crawl(path.id)
    listing = ("exports", crawl.id)
    first, after = requests.decode_cursor(listing, query.cursor, ("", ""))
    last_ms = crawl.ended_ms(means.clock.now_ms())
    days = [day for day in days_between(crawl.started_at_ms, last_ms) if day >= first]
    found: list[ExportedFile] = []
    for day in days[:DAYS_READ_MAX]:
        for file in await _files(means, day, crawl):
            if day == first and file.path <= after:
                continue
            if len(found) == query.limit:
                here = requests.encode_cursor(listing, (found[-1].day, found[-1].path))
                return Reply(status=200, body=ExportedFiles(files=tuple(found), next=here))
            found.append(await _exported(means, day, file))
    left = days[DAYS_READ_MAX:]
    following = requests.encode_cursor(listing, (left[0], "")) if left else None
    return Reply(status=200, body=ExportedFiles(files=tuple(found), next=following))


async def _files(means: HandlerContext, day: str, crawl: Crawl) -> list[File]:
    """List a crawl's files of a day, by its own manifest and by the day's regular manifest."""
    found: dict[str, File] = {}
    for path in (manifest_path(day, crawl.id), manifest_path(day)):
        body = await means.files.get(f"{PREFIX}{path}", MANIFEST_BYTES_MAX)
        manifest = None if body is None else decode_manifest(body)
        if manifest is not None:
            found |= {file.path: file for file in manifest.files if file.crawl == crawl.id}
    return [found[path] for path in sorted(found)]


async def _exported(means: HandlerContext, day: str, file: File) -> ExportedFile:
    return ExportedFile(
        day=day,
        path=file.path,
        table=file.table,
        format=file.format,
        rows=file.rows,
        bytes=file.bytes,
        sha256=file.sha256,
        link=await means.files.link(f"{PREFIX}{file.path}", LINK_S),
    )
