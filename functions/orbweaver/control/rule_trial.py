"""Try item rules on stored pages: items of one page, and the coverage of each field."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.extraction.extract import rules_for
from orbweaver.frontier.retrying import closing
from orbweaver.model.item import Item
from orbweaver.model.item_rules import ItemRule, columns_of
from orbweaver.model.outcome import Outcome

if TYPE_CHECKING:
    from orbweaver.control.crawl_queries import CrawlQueries
    from orbweaver.control.stored_reading import StoredReader
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

# Maximum numbers of pages to read, and of records to search for matching pages.
PAGES_MAX, RECORDS_MAX = 50, 5_000
PROBLEMS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPage:
    """Result of item rules on a page. `rules` are the names of the rules that match its URL.

    `why` is the reason if the page could not be tried.
    """

    rules: tuple[str, ...]
    items: tuple[Item, ...] = ()
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
            return TriedPage(rules=names, why=read.why or "the page redirects elsewhere")
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
