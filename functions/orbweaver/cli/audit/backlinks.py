"""Find the pages that link to a URL, in the exported links of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orbweaver.cli.audit.exported import BOUNDS
from orbweaver.cli.audit.selection import exported_runs, of_same_name
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query import tables
from orbweaver.cli.query.duckdb import database
from orbweaver.cli.query.tables import Export
from orbweaver.model.value import value_class

SHOWN = 10
# The first link of each page. A scan of 10,000,000 links takes 0.2 to 1.1 s and 170 MB (2 cores,
# load 10), so there is no index. `count(*) FILTER (…) OVER ()` takes a minute for 200,000 pages.
_LINKS = """
WITH found AS MATERIALIZED (
  SELECT url, fetched_at, kind, text
  FROM links
  WHERE target_url = ? AND url <> target_url AND crawl IN (SELECT unnest(?))
  QUALIFY row_number() OVER (PARTITION BY url ORDER BY fetched_at, position) = 1
)
SELECT url, kind, text, sums.*
FROM found, (SELECT count_if(kind <> 'sitemap'), count_if(kind = 'sitemap') FROM found) AS sums
ORDER BY fetched_at, url
LIMIT ?
"""


@value_class
class Backlink:
    """A page or sitemap that links to a URL, with the kind and text of its first link."""

    url: str
    kind: str
    text: str | None


@value_class
class Backlinks:
    """The numbers of pages and sitemaps that link to a URL, and the first in order of crawl."""

    pages: int
    sitemaps: int
    first: tuple[Backlink, ...]


def backlinks_of(url: str, crawl: str, exports: Sequence[Export], folder: Path) -> Backlinks | None:
    """Return the links to a URL in a run and the earlier runs that it continues.

    None: the exports contain no links of the run. `folder` is for data that does not fit into
    memory.
    """
    taken = of_same_name(exports, crawl)
    sheets = tables.sheets_of(taken)
    if not sheets["links"].rows:
        return None
    with database({name: sheets[name] for name in ("pages", "links")}, folder, BOUNDS) as opened:
        try:
            ids = exported_runs(opened, taken).find(crawl).ids
        except UsageError:  # the run has no pages
            return None
        rows = list(opened.execute(_LINKS, [url, list(ids), SHOWN]).rows)
    pages, sitemaps = rows[0][3:] if rows else (0, 0)
    first = tuple(Backlink(url=page, kind=kind, text=text) for page, kind, text, *_ in rows)
    return Backlinks(pages=pages, sitemaps=sitemaps, first=first)
