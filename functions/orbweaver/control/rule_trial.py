"""Parse stored pages again, by new item rules or for their main text.

A trial shows the items of one page, and the coverage of each field. Pages are parsed as by a
worker, with the same limits on CPU and memory. Records are not changed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orbweaver.extraction.extract import rules_for
from orbweaver.frontier import warc
from orbweaver.frontier.retrying import closing
from orbweaver.frontier.stored_content import Keeping
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.item import Item
from orbweaver.model.item_rules import ItemRule, ValueSource, columns_of
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class
from orbweaver.parsing.sniffing import HTML_TYPES, declared_in, is_json
from orbweaver.worker.page_reading import PageReading, ReaderBusy, ReadingJob

if TYPE_CHECKING:
    from orbweaver.control.crawl_queries import CrawlQueries
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Clock, Files
    from orbweaver.worker.page_reading import PageReader


# Maximum numbers of pages to read, and of records to search for matching pages.
PAGES_MAX, RECORDS_MAX = 50, 5_000
PROBLEMS_SHOWN = 5
WAIT_MS = 20_000
NO_PAGE = "it is no HTML page"


@value_class
class TriedPage:
    """Result of item rules on a page. `rules` are the names of the rules that match its URL.

    `why` is the reason if the page could not be tried.
    """

    rules: tuple[str, ...]
    items: tuple[Item, ...] = ()
    why: str | None = None


@value_class
class RuleCoverage:
    """Result of an item rule on several pages.

    `fields` has the number of items with a value for each field, `pages_found` the number of pages
    with an item.
    """

    rule: str
    pages: int
    pages_found: int
    items: int
    invalid: int
    fields: Mapping[str, int]
    problems: Mapping[str, int]


@value_class
class Coverage:
    """Result of item rules on several pages. `unread` counts reasons why pages were not tried."""

    pages: int
    unread: Mapping[str, int]
    rules: tuple[RuleCoverage, ...]


class RuleTrial:
    """Tries item rules on a run's stored pages. It sends no request and changes no record."""

    def __init__(self, *, lookout: CrawlQueries, reader: StoredReader) -> None:
        self._lookout = lookout
        self._reader = reader

    async def page(self, crawl: Crawl, url: str, rules: tuple[ItemRule, ...]) -> TriedPage:
        """Try item rules on the stored page of a URL. Raises ValueError for an invalid URL."""
        records = await self._lookout.page(url, crawl)
        if not records:
            return TriedPage(rules=(), why=f"{crawl.id} has no record of this page")
        return await self._tried(crawl, records[0], rules)

    async def _tried(
        self, crawl: Crawl, record: PageRecord, rules: tuple[ItemRule, ...]
    ) -> TriedPage:
        about = rules_for(rules, record.url)
        names = tuple(rule.name for rule in about)
        if not about:
            return TriedPage(rules=names, why="no rule matches this URL")
        read = await self._reader.read(crawl, record, items=about)
        if isinstance(read, str):
            return TriedPage(rules=names, why=read)
        if read.items is None:
            return TriedPage(
                rules=names, why=read.unfit or read.why or "the page redirects elsewhere"
            )
        return TriedPage(rules=names, items=read.items)

    async def coverage(self, crawl: Crawl, rules: tuple[ItemRule, ...]) -> Coverage:
        unread: Counter[str] = Counter()
        tried: list[TriedPage] = []
        records = self._lookout.pages(crawl, outcome=Outcome.FETCHED, limit=RECORDS_MAX)
        async with closing(records) as stored:
            async for record in stored:
                if record.body_key is None or not rules_for(rules, record.url):
                    continue
                page = await self._tried(crawl, record, rules)
                if page.why is not None:
                    unread[page.why] += 1
                else:
                    tried.append(page)
                if len(tried) + unread.total() >= PAGES_MAX:
                    break
        covered = tuple(_covered(rule, tried) for rule in rules)
        return Coverage(pages=len(tried), unread=dict(unread), rules=covered)


def _covered(rule: ItemRule, pages: list[TriedPage]) -> RuleCoverage:
    about = [page for page in pages if rule.name in page.rules]
    found = [[item for item in page.items if item.table == rule.name] for page in about]
    filled: defaultdict[str, int] = defaultdict(int)
    problems: Counter[str] = Counter()
    items = [item for several in found for item in several]
    for item in items:
        problems.update(item.problems)
        for name, value in item.fields.items():
            filled[name] += value is not None and value not in ("", [], ())
    return RuleCoverage(
        rule=rule.name,
        pages=len(about),
        pages_found=sum(map(bool, found)),
        items=len(items),
        invalid=sum(not item.valid for item in items),
        fields={column.name: filled[column.name] for column in columns_of(rule)},
        problems=dict(problems.most_common(PROBLEMS_SHOWN)),
    )


def _declared(record: PageRecord) -> str:
    return declared_in({"content-type": record.content_type or ""})


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
        of_json = any(rule.source is ValueSource.JSON for rule in items)
        if not of_json and _declared(record) not in HTML_TYPES:
            return NO_PAGE
        stored = await read_stored(self._files, record, PagePart.BODY)
        if isinstance(stored, Missing):
            return f"its body {stored}"
        headers = {"content-type": record.content_type or ""}
        answer = Response(status=record.status or 200, headers=headers, body=stored.body())
        json_body = of_json and is_json(headers, answer.body or b"")
        if not json_body and _declared(record) not in HTML_TYPES:
            return NO_PAGE
        job = ReadingJob(
            url=record.url,
            at_ms=record.fetched_at,
            answer=answer,
            html=not json_body,
            json=json_body,
            tracking=crawl.removed_parameters,
            items=tuple(one for one in items if (one.source is ValueSource.JSON) is json_body),
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
