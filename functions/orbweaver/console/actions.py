"""Routes of the console that the HTTP API has not.

- Dead letters need rights that the API's function has not on AWS; a person at a shell may.
- A table as one file is longer than an answer of the API may be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from orbweaver.api.problems import Refused
from orbweaver.app.wiring import undertaker_of
from orbweaver.console.definitions import forms_of, off_loop, preview_of, trial_of
from orbweaver.console.downloads import TableFile
from orbweaver.console.letters import letters_by_cause
from orbweaver.console.stored import StoredPage, stored_page
from orbweaver.console.tickets import Tickets
from orbweaver.frontier.dead_letters import DeadLetterSelection
from orbweaver.frontier.stored_record import PagePart
from orbweaver.model.errors import PortError
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.app.ports import PortSet
    from orbweaver.console.runs import WatchedRuns, Where
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.dead_letter_admin import Undertaker

LETTERS_MAX, LETTERS_A_SECOND = 10_000, 50
QUEUED = ("waiting", "in_work", "delayed")


class Tables(Protocol):
    """Tables of exports, and SQL over them: one statement that reads, within bounds."""

    async def tables(self) -> dict[str, Any]:
        """List tables, with the queries that are saved; or say why there are none."""

    async def ask(self, sql: str) -> dict[str, Any]:
        """Return the first rows of an answer; raises Refused."""

    def csv(self, sql: str) -> AsyncIterator[bytes]:
        """Return all rows of an answer as a file, piece by piece; raises Refused."""


@dataclass(frozen=True, slots=True)
class Question:
    """SQL whose answer is wanted as a file."""

    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What the console can do beside the API; each returns a document."""

    ports: PortSet
    control: Control
    runs: WatchedRuns
    where: Where
    tables: Tables
    tickets: Tickets

    async def about(self) -> dict[str, Any]:
        """Describe the store or stack, and whether queued URLs lack workers."""
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
        """Say that no workers run; None if some do or no message is queued."""
        idle = await self.where.idle_workers()
        depths = None if idle is None else await self.where.depths()
        if depths is None:
            return idle
        return idle if any(depths[name] for name in QUEUED) else None

    # --- crawls that have not begun -------------------------------------------------------------

    async def definition(
        self, toml: str | None = None, document: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read a definition from TOML, or write one as TOML."""
        return await off_loop(forms_of, toml, document)

    async def preview(self, document: dict[str, Any]) -> dict[str, Any]:
        """Ask for the first page of a definition, and judge its links; nothing is started."""
        return await preview_of(self.ports, document)

    async def trial(self, crawl: str, toml: str, url: str | None = None) -> dict[str, Any]:
        """Try item rules on a stored page of a run; without one, on some that they are about."""
        return await trial_of(self.ports, self.control, crawl, toml, url)

    # --- dead letters ---------------------------------------------------------------------------

    async def dead_letters(self) -> dict[str, Any]:
        """Group dead letters by cause, with examples and their hosts."""
        return await letters_by_cause(self._undertaker, limit=LETTERS_MAX)

    async def redrive(self, cause: str | None = None, host: str | None = None) -> dict[str, Any]:
        """Send dead letters back to the queue: of a cause, of a host, or all of them."""
        done = await self._undertaker.redrive(
            DeadLetterSelection(cause=cause, host=host),
            limit=LETTERS_MAX,
            rate_per_s=LETTERS_A_SECOND,
        )
        return {"sent": done.sent, "skipped": dict(done.skipped), "cut": done.cut}

    async def purge(self, cause: str, until_ms: int) -> dict[str, Any]:
        """Throw the dead letters of a cause away, but for those that came after a moment."""
        selection = DeadLetterSelection(cause=cause)
        found = await self._undertaker.find(selection, limit=LETTERS_MAX)
        only = frozenset(case.letter.id for case in found.cases if case.last_seen_ms <= until_ms)
        purged, cut = await self._undertaker.purge(selection, limit=LETTERS_MAX, only=only)
        return {"purged": purged, "cut": cut}

    @property
    def _undertaker(self) -> Undertaker:
        return undertaker_of(self.ports)

    # --- what a browser fetches by itself -------------------------------------------------------

    async def frame(self, url: str, crawl: str) -> dict[str, Any]:
        """Give out a ticket for a page as it is stored; or say why there is none."""
        return await self._ticket(url, crawl, PagePart.BODY)

    async def picture(self, url: str, crawl: str) -> dict[str, Any]:
        """Give out a ticket for the picture of a page; or say why there is none."""
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
        return {"ticket": self.tickets.give(page), "why": None}

    async def table(self, crawl: str, rule: str | None = None, form: str = "csv") -> dict[str, Any]:
        """Give out a ticket for the pages of a crawl, or the items of a rule, as a file."""
        wanted = TableFile(crawl=await self.control.find(crawl), rule=rule, form=form)
        _ = wanted.table  # or Refused, before the browser leaves the page
        return {"ticket": self.tickets.give(wanted)}

    async def query_file(self, sql: str) -> dict[str, Any]:
        """Give out a ticket for all rows of an answer as a file of CSV."""
        return {"ticket": self.tickets.give(Question(sql))}
