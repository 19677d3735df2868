"""Handlers of page records and of explanations of URLs.

Records are sorted by day, shard and key, and a cursor is a position in this order. A request reads
a limited number of records and shards. A page of results can therefore be short or empty although
more pages follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.requests import Asking, OfCrawl, Records
from orbweaver.api.responses import Explained, Rows, row_of
from orbweaver.control import cursor
from orbweaver.frontier.retrying import closing
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord

T = TypeVar("T")
# Position of a record: day, shard and key.
Place: TypeAlias = tuple[str, int, str]

ROWS_READ_MAX = 5_000
SHARDS_READ_MAX = 64
ANSWER_BYTES_MAX = 3_000_000


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
    day, shard, after = cursor.decode(listing, query.cursor, first)
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
                    return found, cursor.encode(listing, (day, shard, key))
        after = ""
    left = next(places, None)
    return found, None if left is None else cursor.encode(listing, (*left, ""))


async def explain(means: HandlerContext, *, query: Asking) -> Reply:
    """Explain the outcome of a URL."""
    crawl = None if query.crawl is None else await means.crawl(query.crawl)
    found = await means.explainer.explain(query.url, None if crawl is None else crawl.id)
    return Reply(status=200, body=Explained.build(*found))
