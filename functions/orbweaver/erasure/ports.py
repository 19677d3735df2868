"""All items of the tables and the queues, for erasure."""

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
    """A claim: `was` is the run whose lapsed claim it keeps; `key` is the table's own."""

    key: Any
    name: str
    url: str
    crawl: str
    pack: str
    at_ms: int
    was: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTrace:
    """A page record, and under which key of the table it lies."""

    key: Any
    record: PageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTrace:
    """A journal; `stray` says that it is one that no pack goes by (another delivery's stands).

    None of a stray one that was never written to its end.
    """

    key: Any
    pack: str
    journal: Journal | None
    stray: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTrace:
    """A message of a crawl that is or was paused."""

    crawl: str
    pack: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogTrace:
    """A pack in the backlog of its host; `out` says that it was taken from there."""

    crawl: str
    host: str
    place: str
    body: str
    out: bool


class Traces(Protocol):
    """Every item of every table, whatever its key; reading them costs what a scan costs."""

    def claims(self) -> AsyncIterator[ClaimTrace]:
        """Read all claims."""

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Remove claims that still are as they were read."""

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        """Have claims that still are as they were read keep none that had lapsed."""

    def records(self) -> AsyncIterator[RecordTrace]:
        """Read all page records."""

    async def remove_records(self, records: Sequence[RecordTrace]) -> None:
        """Remove page records."""

    def journals(self) -> AsyncIterator[JournalTrace]:
        """Read all journals, strays as well once no worker can be writing them any more."""

    async def remove_journals(self, journals: Sequence[JournalTrace]) -> None:
        """Remove journals; ledgers stay."""

    def parked(self) -> AsyncIterator[ParkedTrace]:
        """Read the messages that are set aside, of all crawls."""

    def backlog(self) -> AsyncIterator[BacklogTrace]:
        """Read the packs that stand in backlogs, of all crawls and hosts."""

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        """Write in what a crawl differs from what it was; False if it was edited since."""

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None:
        """Write the examples of what a crawl refused anew."""

    async def bury_crawl(self, crawl: Crawl) -> None:
        """Leave of a finished crawl that it is finished: no counts, no definition, no name.

        That is left as long as copies of its messages may turn up, which then change nothing.
        """

    def hosts(self) -> AsyncIterator[str]:
        """Name all hosts."""

    def cookies(self) -> AsyncIterator[tuple[str, str]]:
        """Name the crawls and sites of which there are cookies."""

    async def remove_cookies(self, crawl_id: str, site: str) -> None:
        """Remove the cookies of a site in a crawl."""

    async def remove_host(self, host: str, now_ms: int) -> bool:
        """Remove what is known of a host.

        False if its slots and blocks stay, since they lie ahead or are of the last half hour.
        """


class Lane(Protocol):
    """A queue to look through."""

    async def take(self, count_max: int, hold_s: int) -> Sequence[DeadLetter]:
        """Take some messages, hidden from other readers for so long. None once all are taken."""

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """Show messages to all readers again; what is not held any more is passed over."""

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        """Remove messages that were taken."""

    async def hidden(self) -> int:
        """Count, about, what cannot be taken now: held back, or in work."""
