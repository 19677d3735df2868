"""Add the links of a page or sitemap to its stored content, each with the crawl's decision.

The decision is that at the time of the response. Later refusals, for example by robots.txt or the
page limit, are outcomes of the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orbweaver.frontier.body_file import Kept, with_links
from orbweaver.frontier.erase_rule import erase_rule
from orbweaver.frontier.link_table import decision_of, document_of
from orbweaver.model.outcome import Refusal
from orbweaver.parsing.link_rows import KINDS, LinkRows

if TYPE_CHECKING:
    from orbweaver.frontier.pack_result import FoundLinks
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord
    from orbweaver.model.target import Target
    from orbweaver.parsing.page import Page

# Refusals that the parser has decided for each row.
_OF_PARSER = frozenset({Refusal.INVALID, Refusal.NOFOLLOW, Refusal.SEED_NOFOLLOW, Refusal.CUT})


def with_page_links(
    crawl: Crawl,
    kept: Kept | None,
    record: PageRecord,
    page: Page | None,
    found: Iterable[FoundLinks],
) -> Kept | None:
    if page is None or page.rows is None:
        return kept
    refusals = {
        url: decision_of(why)
        for part in found
        for why, _, urls in part.refused
        if why not in _OF_PARSER
        for url in urls
    }
    return _with_rows(crawl, kept, record, page.rows.refused(refusals))


def with_sitemap_links(
    crawl: Crawl, record: PageRecord, judged: Iterable[tuple[str, Target | Refusal]]
) -> Kept | None:
    """Return the stored content of a sitemap with these entries, or None if there are none."""
    entries = dict(judged)
    decisions: defaultdict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(entries.values()):
        if isinstance(one, Refusal):
            decisions[decision_of(one)].append(index)
    kinds = KINDS["sitemap"] * len(entries)
    rows = LinkRows(kinds=kinds, targets=tuple(entries), decisions=dict(decisions))
    return _with_rows(crawl, None, record, rows)


def _with_rows(crawl: Crawl, kept: Kept | None, record: PageRecord, rows: LinkRows) -> Kept | None:
    if crawl.erased:
        rows = rows.without(erase_rule(crawl).url)
    if not rows.targets:
        return kept
    return with_links(kept, record.url, record.fetched_at, document_of(rows, record.url))
