"""Parse stored pages again, by new item rules or for their main text.

Pages are parsed as by a worker, with the same limits on CPU and memory. Records are not changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orbweaver.frontier import warc
from orbweaver.frontier.stored_content import Keeping
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.item_rules import ItemRule
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of
from orbweaver.parsing.sniffing import HTML_TYPES
from orbweaver.worker.page_reading import PageReading, ReaderBusy, ReadingJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Clock, Files
    from orbweaver.worker.page_reading import PageReader

WAIT_MS = 20_000
NO_PAGE = "it is no HTML page"


class StoredReader:
    """Parses stored pages of crawls again."""

    def __init__(self, *, files: Files, reader: PageReader, clock: Clock) -> None:
        self._files = files
        self._reader = reader
        self._clock = clock

    async def read(
        self,
        crawl: Crawl,
        record: PageRecord,
        *,
        items: tuple[ItemRule, ...] = (),
        texts: bool = False,
    ) -> PageReading | str:
        """Parse a stored page by the rules `items`, or return why it cannot be read.

        With `texts`, the main text is also extracted.
        """
        if (record.content_type or "").partition(";")[0].strip().lower() not in HTML_TYPES:
            return NO_PAGE
        stored = await read_stored(self._files, record, PagePart.BODY)
        if isinstance(stored, Missing):
            return f"its body {stored}"
        headers = {"content-type": record.content_type or ""}
        answer = Response(status=record.status or 200, headers=headers, body=stored.body())
        job = ReadingJob(
            url=record.url,
            at_ms=record.fetched_at,
            answer=answer,
            tracking=crawl.removed_parameters,
            items=items,
            keeping=Keeping(bodies=Bodies.OFF, texts=texts, redacted=crawl.redacted),
            obey_nofollow=crawl.obey_nofollow,
        )
        until_ms = self._clock.now_ms() + WAIT_MS
        read = await self._reader.read(job, host_of(record.url), until_ms)
        if isinstance(read, ReaderBusy):
            return "too many pages are being read just now: try again"
        return (
            read if isinstance(read, PageReading) else f"it takes too much to be read: {read.why}"
        )

    async def text(self, crawl: Crawl, record: PageRecord) -> Mapping[str, Any] | str:
        """Return a page's main text, stored or extracted from the body, or why there is none."""
        stored = await read_stored(self._files, record, PagePart.TEXT)
        if isinstance(stored, Missing):
            found = await self.read(crawl, record, texts=True)
            if isinstance(found, str):
                return found
            if found.kept is None or found.kept.conversion is None:
                return found.why or "it has no main text"
            stored = warc.read(found.kept.conversion)
        document: Mapping[str, Any] = json.loads(stored.payload)
        return document
