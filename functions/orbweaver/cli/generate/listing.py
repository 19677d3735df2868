"""Select the pages that a generated file lists, and count the others by reason.

The audit decides which pages are indexable (cli/audit/pages.sql). So a generated sitemap has no
faults that the audit's checks of sitemaps find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from typing import Self
from urllib.parse import urljoin

from orbweaver.cli.audit.catalog import script
from orbweaver.cli.audit.judgement import JUDGED
from orbweaver.cli.audit.selection import AuditedRuns
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.duckdb import Database
from orbweaver.model.value import value_class

# The schema of sitemaps.org permits 2,048 characters. Its text requires fewer.
URL_CHARS_MAX = 2_047
# With several seeds, the first page is the one with the shortest URL.
_FIRST = """
SELECT url, title, description FROM page WHERE readable ORDER BY depth, length(url), url LIMIT 1
"""
_LEFT_OUT = "SELECT left_out, count(*) FROM listed WHERE left_out IS NOT NULL GROUP BY 1"
_COUNT = "SELECT count(*) FROM listed WHERE left_out IS NULL"
_ENTRIES = "SELECT url, lastmod FROM listed WHERE left_out IS NULL ORDER BY id"
# A section is the first path segment below the base, if at least two pages share it.
_SECTIONS = """
WITH nearest AS (
  SELECT id, url, title, description,
         regexp_extract(substr(url, length(getvariable('base')) + 1), '^([^/?]+)/', 1) AS segment
  FROM listed
  WHERE left_out IS NULL
  ORDER BY depth, id
  LIMIT ?
)
SELECT if(count(*) OVER (PARTITION BY segment) > 1, segment, '') AS section,
       url, title, description
FROM nearest
ORDER BY section, id
"""


class Unlisted(StrEnum):
    """Reason why a file does not list a URL of the crawl."""

    means: str

    def __new__(cls, value: str, means: str) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.means = value, means
        return member

    OUTSIDE = "outside", "on another host, or outside of --base"
    UNJUDGED = "unjudged", "not requested or not judged: a limit, a rule, a block, no connection"
    REDIRECT = "redirect", "it redirects"
    FAILED = "failed", "its status is not 200"
    NOT_HTML = "not_html", "not HTML"
    SOFT_404 = "soft_404", 'it looks like a "not found" page'
    NOINDEX = "noindex", "it has noindex"
    CANONICAL = "canonical", "it names another page as canonical"
    SCRIPTS = "scripts", "its content comes from scripts: crawl again with --render"
    UNREAD = "unread", "read in part, because it was too large or too slow to read"
    LONG_URL = "long_url", f"its URL has more than {URL_CHARS_MAX:,} characters"
    OVER_LIMIT = "over_limit", "more than --limit pages, and farther from the first page"


@value_class
class FirstPage:
    """The page that represents the site."""

    url: str
    title: str | None
    description: str | None


@value_class
class ListedPage:
    """A page of llms.txt. Its section is a path segment, or empty."""

    section: str
    url: str
    title: str | None
    description: str | None


class PageListing:
    """The pages of a run below `base`, the URL of the folder that serves the generated file."""

    def __init__(self, database: Database, runs: AuditedRuns, base: str | None) -> None:
        """Raise UsageError if the run has no page with a known content."""
        self._database = database
        self._set("runs", list(runs.ids))
        self._set("judged", sorted(JUDGED))
        database.execute(script("pages"))
        found = [*database.execute(_FIRST).rows]
        if not found:
            raise UsageError(f"{runs.id} has no page to list: see `orbweaver pages {runs.id}`")
        url, title, description = found[0]
        self.first = FirstPage(url=url, title=title, description=description)
        self.base = urljoin(url, "/") if base is None else base
        self._set("base", self.base)
        self._set("url_chars_max", URL_CHARS_MAX)
        sql = files(__package__ or "").joinpath("listing.sql").read_text(encoding="utf-8")
        database.execute(sql)

    def left_out(self) -> Mapping[Unlisted, int]:
        """Count the URLs that no file lists, by reason."""
        counts = dict(self._database.execute(_LEFT_OUT).rows)
        return {reason: counts[reason] for reason in Unlisted if reason in counts}

    def count(self) -> int:
        """Count the pages that a sitemap lists."""
        return int(next(self._database.execute(_COUNT).rows)[0])

    def entries(self, *, dated: bool = True) -> Iterator[tuple[str, str | None]]:
        """Yield the URLs in alphabetical order, with their lastmod if `dated`."""
        for url, lastmod in self._database.execute(_ENTRIES).rows:
            yield url, lastmod if dated else None

    def nearest(self, pages_max: int) -> Iterator[ListedPage]:
        """Yield the pages nearest to the first page, by section. The first section is empty."""
        rows = self._database.execute(_SECTIONS, [pages_max]).rows
        for section, url, title, description in rows:
            yield ListedPage(section=section, url=url, title=title, description=description)

    def _set(self, name: str, value: object) -> None:
        self._database.execute(f"SET VARIABLE {name} = ?", [value])
