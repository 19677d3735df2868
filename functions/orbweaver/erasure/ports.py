"""Ports to all items of the tables and queues, for erasure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orbweaver.frontier.dead_letters import DeadLetter
from orbweaver.frontier.journal import Journal
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTrace:
    """A claim. `was` is the run of the earlier claim that it replaced, `key` the table's key."""

    key: Any
    name: str
    url: str
    crawl: str
    pack: str
    at_ms: int
    was: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTrace:
    """A page record with its key in the table."""

    key: Any
    record: PageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTrace:
    """A journal (redo log of a pack). `is_orphan`: another delivery's journal was stored instead.

    `journal` is None if a stray journal was not written completely.
    """

    key: Any
    pack: str
    journal: Journal | None
    is_orphan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTrace:
    """A stored message of a crawl that is or was paused."""

    crawl: str
    pack: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogTrace:
    """A pack in its host's backlog. `in_flight` means that it is in flight."""

    crawl: str
    host: str
    place: str
    body: str
    in_flight: bool


class Traces(Protocol):
    """All items of all tables. Reading costs as much as a scan."""

    def claims(self) -> AsyncIterator[ClaimTrace]: ...

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Remove claims that are unchanged since they were read."""

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Remove the earlier claims in claims that are unchanged since they were read."""

    def records(self) -> AsyncIterator[RecordTrace]: ...

    async def remove_records(self, records: Sequence[RecordTrace]) -> None: ...

    def journals(self) -> AsyncIterator[JournalTrace]:
        """Read all journals, including unused ones whose writers must have ended."""

    async def remove_journals(self, journals: Sequence[JournalTrace]) -> None:
        """Remove journals, but not ledgers (commit records)."""

    def parked(self) -> AsyncIterator[ParkedTrace]:
        """Read the stored messages of all paused crawls."""

    def backlog(self) -> AsyncIterator[BacklogTrace]: ...

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        """Write the changes from `was` to `crawl`.

        Return False if the crawl was edited meanwhile.
        """

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None: ...

    async def tombstone_crawl(self, crawl: Crawl) -> None:
        """Reduce a finished crawl to the fact that it is finished.

        This fact is kept while copies of its messages may arrive, so that they have no effect.
        """

    def hosts(self) -> AsyncIterator[str]: ...

    def cookies(self) -> AsyncIterator[tuple[str, str]]:
        """Yield crawl id and site of all stored cookies."""

    async def remove_cookies(self, crawl_id: str, site: str) -> None: ...

    async def remove_host(self, host: str, now_ms: int) -> bool:
        """Remove the data about a host.

        Returns False if slots and blocks stay, because they are in the future or in the last half
        hour. They protect the host.
        """


class Lane(Protocol):
    """A queue to search."""

    async def take(self, count_max: int, hold_s: int) -> Sequence[DeadLetter]:
        """Receive messages and hide them for `hold_s` seconds. Empty once all are taken."""

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """Make messages visible again. Messages that are no longer held are ignored."""

    async def delete(self, letters: Sequence[DeadLetter]) -> None: ...

    async def hidden(self) -> int:
        """Return the approximate number of delayed and held messages."""
