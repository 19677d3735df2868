"""Routes of the console that the HTTP API lacks.

On AWS, dead letters need permissions that a user's shell has, but not the API's function. A table
as one file (all pages, or the valid items of a rule) exceeds the maximum size of an API response.
The file is complete before its first byte is sent, so a browser never saves a partial file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.api.problems import Refused
from orbweaver.app.wiring import undertaker_of
from orbweaver.console.dead_letters import letters_by_cause
from orbweaver.console.definitions import forms_of, off_loop, preview_of, trial_of
from orbweaver.console.stored import StoredPage, Tickets, stored_page
from orbweaver.exporting import formats
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.chunk import ChunkTables, item_row, page_row
from orbweaver.frontier.dead_letters import DeadLetterSelection
from orbweaver.frontier.retrying import closing
from orbweaver.frontier.stored_record import PagePart
from orbweaver.model.columns import PAGES
from orbweaver.model.errors import PortError
from orbweaver.model.url import redacted
from orbweaver.model.value import positional_value_class, value_class

if TYPE_CHECKING:
    from orbweaver.app.ports import PortSet
    from orbweaver.console.runs import ConsolePlace, WatchedRuns
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.dead_letter_admin import DeadLetterAdmin
    from orbweaver.model.columns import Table
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord


LETTERS_MAX, LETTERS_A_SECOND = 10_000, 50
NO_LINKS = "a crawl with `--links` (`records.links`) also shows which pages link here"
QUEUED = ("waiting", "in_work", "delayed")
PIECE_BYTES = 256 * 1024
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/gzip",
    "parquet": "application/vnd.apache.parquet",
}
SUFFIXES = {one.name: one.suffix for one in formats.ROWS}


class Tables(Protocol):
    """Tables of exports, and read-only SQL queries over them with limits."""

    async def tables(self) -> dict[str, Any]:
        """List tables and saved queries, or return the reason why no table exists."""

    async def ask(self, sql: str) -> dict[str, Any]:
        """Return the first rows of a query. Raises Refused."""

    def csv(self, sql: str) -> AsyncIterator[bytes]:
        """Yield all rows of a query as CSV. Raises Refused."""


class Sites(Protocol):
    """Exported runs: audits, and pages that link to a URL."""

    async def audit(self, crawl: str, since: str | None = None) -> dict[str, Any]:
        """Return the state of a run's audit, and start it if there is none."""

    async def backlinks(self, crawl: str, url: str) -> dict[str, Any]:
        """Return the pages that link to a URL, or why they are not known. Raises Refused."""


@positional_value_class
class Question:
    """A SQL query whose result becomes a file."""

    sql: str


@value_class
class Actions:
    """Operations that the console has in addition to the API. Each returns a JSON object."""

    ports: PortSet
    control: Control
    runs: WatchedRuns
    where: ConsolePlace
    tables: Tables
    sites: Sites
    tickets: Tickets

    async def about(self) -> dict[str, Any]:
        import orbweaver

        try:
            idle = await self._idle()
        except PortError:
            idle = None
        return {
            "where": self.where.title,
            "billed": self.where.billed,
            "version": orbweaver.__version__,
            "idle": idle,
        }

    async def _idle(self) -> str | None:
        """Return a warning if messages are queued and no worker runs, else None."""
        idle = await self.where.idle_workers()
        depths = None if idle is None else await self.where.depths()
        if depths is None:
            return idle
        return idle if any(getattr(depths, name) for name in QUEUED) else None

    # --- definitions of new crawls --------------------------------------------------------------

    async def definition(
        self, toml: str | None = None, document: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Parse a definition from TOML, or format a definition as TOML."""
        return await off_loop(forms_of, toml, document)

    async def preview(self, document: dict[str, Any]) -> dict[str, Any]:
        """Fetch the page of a definition's first seed and check the links. No crawl starts."""
        return await preview_of(self.ports, document)

    async def trial(self, crawl: str, toml: str, url: str | None = None) -> dict[str, Any]:
        """Try the item rules in `toml` on a run's stored page. None: on several pages."""
        return await trial_of(self.ports, self.control, crawl, toml, url)

    # --- exported runs --------------------------------------------------------------------------

    async def audit(self, crawl: str, since: str | None = None) -> dict[str, Any]:
        owner = await self.control.find(crawl)
        return {"crawl": owner.id, "name": owner.name, **await self.sites.audit(owner.id, since)}

    async def backlinks(self, crawl: str, url: str) -> dict[str, Any]:
        owner = await self.control.find(crawl)
        if not owner.links:
            return {"backlinks": None, "why": NO_LINKS}
        return await self.sites.backlinks(owner.id, url)

    # --- dead letters ---------------------------------------------------------------------------

    async def dead_letters(self) -> dict[str, Any]:
        return await letters_by_cause(self._undertaker, limit=LETTERS_MAX)

    async def redrive(self, cause: str | None = None, host: str | None = None) -> dict[str, Any]:
        """Return dead letters to the queue: all, or the letters of a cause or a host."""
        done = await self._undertaker.redrive(
            DeadLetterSelection(cause=cause, host=host),
            limit=LETTERS_MAX,
            rate_per_s=LETTERS_A_SECOND,
        )
        return {"sent": done.sent, "skipped": dict(done.skipped), "cut": done.cut}

    async def purge(self, cause: str, until_ms: int) -> dict[str, Any]:
        """Delete a cause's dead letters, except letters that were seen again after `until_ms`."""
        selection = DeadLetterSelection(cause=cause)
        found = await self._undertaker.find(selection, limit=LETTERS_MAX)
        only = frozenset(case.letter.id for case in found.cases if case.last_seen_ms <= until_ms)
        purged, cut = await self._undertaker.purge(selection, limit=LETTERS_MAX, only=only)
        return {"purged": purged, "cut": cut}

    @property
    def _undertaker(self) -> DeadLetterAdmin:
        return undertaker_of(self.ports)

    # --- tickets for downloads and frames -------------------------------------------------------

    async def frame(self, url: str, crawl: str) -> dict[str, Any]:
        """Create a ticket (a one-time address) for a stored page, or return why there is none."""
        return await self._ticket(url, crawl, PagePart.BODY)

    async def picture(self, url: str, crawl: str) -> dict[str, Any]:
        """Create a ticket for a page's screenshot, or return why there is none."""
        return await self._ticket(url, crawl, PagePart.SCREENSHOT)

    async def _ticket(self, url: str, crawl: str, part: PagePart) -> dict[str, Any]:
        owner = await self.control.find(crawl)
        try:
            records = await self.control.page(url, owner)
        except ValueError as error:
            raise Refused(400, f"{redacted(url)!a} is no URL: {error}") from error
        if not records:
            return {"ticket": None, "why": f"{owner.id} has no record of this page"}
        page = await stored_page(self.ports.files, records[0], part)
        if not isinstance(page, StoredPage):
            return {"ticket": None, "why": page}
        return {"ticket": self.tickets.create(page), "why": None}

    async def table(self, crawl: str, rule: str | None = None, form: str = "csv") -> dict[str, Any]:
        """Create a ticket for a file (format `form`) with a crawl's pages or a rule's items."""
        wanted = TableFile(crawl=await self.control.find(crawl), rule=rule, form=form)
        _ = wanted.table  # raises Refused before the browser leaves the page
        return {"ticket": self.tickets.create(wanted)}

    async def query_file(self, sql: str) -> dict[str, Any]:
        """Create a ticket for a CSV file with all rows of a query."""
        return {"ticket": self.tickets.create(Question(sql))}


@value_class
class TableFile:
    """A table to download: a rule's items, or all pages. `form` is the format, a key of `TYPES`."""

    crawl: Crawl
    rule: str | None
    form: str

    @property
    def name(self) -> str:
        return f"{self.crawl.id}-{self.rule or PAGES.name}{SUFFIXES[self.form]}"

    @property
    def table(self) -> Table:
        """The table with its columns. Raises Refused if the run has no such rule."""
        if self.rule is None:
            return PAGES
        found = ChunkTables(self.crawl.id, self.crawl).items(self.rule)
        if found is None:
            raise Refused(400, f"{self.crawl.id} has no item rule {self.rule[:60]!a}")
        return found

    def rows(self, record: PageRecord) -> list[Mapping[str, Any]]:
        if self.rule is None:
            return [page_row(record)]
        return [
            item_row(record, item)
            for item in record.extracted
            if item.valid and item.table == self.rule
        ]


async def pieces_of(control: Control, wanted: TableFile) -> AsyncIterator[bytes]:
    """Write the file to a temporary folder and yield its content."""
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        writer = formats.writer(wanted.form, wanted.table, Path(folder))
        cells = cells_of(wanted.table)
        async with closing(control.pages(wanted.crawl)) as records:
            async for record in records:
                for row in wanted.rows(record):
                    writer.add(cells(row))
        made = await asyncio.to_thread(writer.close)
        with made.path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
