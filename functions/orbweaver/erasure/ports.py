"""Ports to all stored data, for erasure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from orbweaver.exporting.run_state import Catalogue, ExportEvents
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.frontier.queues import DeadLetters, Queue
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Clock, Files
from orbweaver.model.value import value_class


@value_class
class ClaimTrace:
    """A stored claim. `was` is the run whose earlier claim it replaced, or empty.

    `key` identifies the claim in its table.
    """

    key: Any
    name: str
    url: str
    crawl: str
    pack: str
    at_ms: int
    was: str = ""


@value_class
class RecordTrace:
    """A page record with its key in the table."""

    key: Any
    record: PageRecord


class Traces(Protocol):
    """All items of all tables. Reading costs as much as a scan."""

    def claims(self) -> AsyncIterator[ClaimTrace]: ...

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Remove claims, except claims that were changed since they were read."""

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Remove `was` from claims, except claims that were changed since they were read."""

    def records(self) -> AsyncIterator[RecordTrace]: ...

    async def remove_records(self, records: Sequence[RecordTrace]) -> None: ...

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        """Store the differences between `was` and `crawl`, whatever the state of the crawl.

        Return False if someone else edited the crawl meanwhile.
        """

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None: ...

    async def tombstone_crawl(self, crawl: Crawl) -> None:
        """Reduce the item of a finished crawl to the fact that the crawl is finished.

        The item is kept while copies of its messages can arrive, so that they have no effect.
        """

    def hosts(self) -> AsyncIterator[str]: ...

    def cookies(self) -> AsyncIterator[tuple[str, str]]:
        """Yield crawl id and site of all stored cookies."""

    async def remove_cookies(self, crawl_id: str, site: str) -> None: ...

    async def remove_host(self, host: str, now_ms: int) -> bool:
        """Remove the data about a host.

        Returns False if the host's slots and blocks are in the future or in the last half hour.
        They are kept then, because they protect the host from too many requests.
        """


@value_class
class Stores:
    """Interfaces to all stored data, and the clock."""

    traces: Traces
    dead_letters: DeadLetters
    queue: Queue
    crawls: Crawls
    pages: Pages
    files: Files
    events: ExportEvents
    clock: Clock
    # The catalogue of item tables, or None without one.
    catalogue: Catalogue | None = None
