"""What the actors need of the world, in the crawl's words.

Every port has a memory adapter and a real one; one contract suite runs on both. A port raises
`Transient` when the same call may succeed later and `Permanent` when it will not; nothing above
an adapter sees a technology's own exception. An operation that raises may or may not have taken
effect: every effect is idempotent.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from orbweaver.core.crawl import Books, Crawl, State, Tally
    from orbweaver.core.dead_letters import DeadLetter
    from orbweaver.core.exchange import Failure as Failure
    from orbweaver.core.exchange import Request as Request
    from orbweaver.core.exchange import Response as Response
    from orbweaver.core.journal import Journal, Ledger, Letter
    from orbweaver.core.message import Prior, Seeds, Target
    from orbweaver.core.politeness import Host, RobotsEntry, Slots
    from orbweaver.core.record import PageRecord
    from orbweaver.core.standing import Claimer, CommitResult, Known, Recalled, Standing


class PortError(Exception):
    """A port could not do what was asked."""


class Transient(PortError):
    """It may work later: throttled, timed out, conflicting."""


class Permanent(PortError):
    """It will not work: denied, missing, invalid."""


# --- queue ------------------------------------------------------------------------------------


class Queue(Protocol):
    """The crawl queue, its express lane and its dead-letter queue."""

    async def send(self, letters: Sequence[Letter], *, express: bool) -> None:
        """Send packs; returns once every one of them is accepted."""

    async def send_seeds(self, seeds: Sequence[Seeds], *, express: bool) -> None:
        """Send seeds; returns once every one of them is accepted."""

    async def bury(self, body: str, reason: str) -> None:
        """Put a message that can never succeed on the dead-letter queue, with its reason."""


class DeadLetters(Protocol):
    """The dead-letter queue, for whoever looks after it."""

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        """Take some letters; nobody else sees them for so long. None once there are no more.

        The same one may come twice.
        """

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        """Let everybody see letters again; what is not held any more is passed over."""

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        """Remove letters that were taken."""

    async def resend(self, bodies: Sequence[str]) -> None:
        """Send bodies to the crawl queue as they are."""


# --- ledger -----------------------------------------------------------------------------------


class Packs(Protocol):
    """Journals, ledgers, and the counters they are committed with."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        """Read what earlier deliveries of these packs left, in one batched read."""

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        """Write a journal if absent; the one that stands is returned."""

    async def commit(self, crawl: Crawl, ledger: Ledger, tally: Tally) -> CommitResult:
        """Put the ledger if absent and add the counts to a shard, in one transaction.

        The shard of a pack follows from its id. Refused whole when the ledger exists, when the
        shard is closed, or when `tally["claimed"]` would take the shard over its quota
        (`Crawl.shard_quota`).
        """

    async def strike(self, pack_id: str) -> int:
        """Note that a suspect is about to be processed; how often that was noted by now."""

    async def absolve(self, pack_id: str, strikes: int) -> None:
        """Leave a suspect with this many strikes: it was processed, and nobody died of it."""

    async def sent(self, pack_id: str) -> None:
        """Note that a committed pack's outbox is on the queue and its surplus given back."""

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        """Set a paused crawl's pack aside; False if the crawl is not paused any more."""

    async def parked(self, crawl: str) -> Mapping[str, str]:
        """List parked packs of a crawl: id to body."""

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        """Forget parked packs, once they are back on the queue."""


class Crawls(Protocol):
    """Definitions, states and books of crawls."""

    async def create(self, crawl: Crawl) -> bool:
        """Write a new crawl; False if its id is taken."""

    async def get(self, crawl_id: str) -> Crawl | None:
        """Read a crawl, strongly consistent."""

    async def list(self) -> tuple[Crawl, ...]:
        """Read all crawls, newest first."""

    async def books(self, crawl: Crawl) -> Books:
        """Read all counter shards of a crawl, each of them strongly consistent."""

    async def seal(self, crawl: Crawl, books: Books, finished: Crawl) -> bool:
        """Finish a crawl if its books still are as read: close every shard, in one transaction."""

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        """Write a crawl's state and stop reason if its state is one of `allowed`."""

    async def announced(self, crawl_id: str) -> None:
        """Note that the completion event of a crawl was sent."""


class Events(Protocol):
    """The event bus."""

    async def completed(self, crawl: Crawl, total: Tally) -> None:
        """Announce that a crawl is finished; the event's id is the crawl's."""


# --- frontier ---------------------------------------------------------------------------------


UNMODIFIED: Mapping[str, int] = MappingProxyType({})


class Frontier(Protocol):
    """Claims: which URLs belong to which pack for the dedup window."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = UNMODIFIED
    ) -> Known:
        """Say which of these URLs are claimed, or were once; a cheap, possibly stale read.

        `modified` says of some when they were changed: older claims of them do not hold.
        """

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """Claim URLs; those that now belong to this pack.

        Won when the claim is absent, expired, stale, older than the target's `modified_at_ms`, or
        already this pack's.
        """

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """Give back those of these claims that are this pack's."""

    async def standing(self, name: str, url: str) -> Standing | None:
        """Read the last claim of a URL under a crawl's name, strongly consistent.

        One that has expired is read as long as nothing has deleted it.
        """


# --- hosts ------------------------------------------------------------------------------------


class Hosts(Protocol):
    """Politeness units: slots, blocks, robots."""

    async def look(self, host: str) -> Host:
        """Read a host, possibly a few seconds stale."""

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        """Reserve up to `wanted` slots that start by `until_ms`, atomically over all workers.

        A blocked host gives none. `return_at_ms` says when those without a slot may come back.
        """

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        """Leave a host alone, for all crawls; never shortens a block."""

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        """Count a request without an answer, atomically (`after_failure`); the host after it."""

    async def recover(self, host: str) -> None:
        """Forget the failures of a host that answered; a block stands."""

    async def probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        """Take the one turn to try a host that is in doubt; nobody else gets it before `until`."""

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        """Keep what was fetched as a host's robots.txt."""


# --- pages ------------------------------------------------------------------------------------


class Pages(Protocol):
    """Page records."""

    async def store(self, records: Sequence[PageRecord]) -> None:
        """Write records under keys that follow from them; writing again changes nothing."""

    def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read one shard of a day in key order, a page at a time: (sort key, record).

        `after` continues behind a sort key, `crawl` narrows to one crawl's records.
        """

    @property
    def shards(self) -> int:
        """How many shards a day has."""


class History(Protocol):
    """Page records of earlier runs."""

    async def before(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        """Find the records of earlier claims, by URL; possibly stale, and some may be gone.

        A record lies in the day of its claim or in the day after.
        """


class Files(Protocol):
    """Where exports are written: a bucket, or a folder."""

    async def put(self, key: str, body: bytes) -> None:
        """Write a file whole; readers see all of it or nothing."""

    async def get(self, key: str) -> bytes | None:
        """Read a file, None if there is none."""

    async def list(self, prefix: str) -> tuple[str, ...]:
        """Names of the files below a prefix, sorted."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove files; those that are absent are passed over."""


# --- web --------------------------------------------------------------------------------------


class Fetcher(Protocol):
    """The web. Never raises for what a server, a network or a page does."""

    async def fetch(self, request: Request) -> Response | Failure:
        """Ask once; redirects are not followed."""


# --- the rest ---------------------------------------------------------------------------------


class Clock(Protocol):
    """Time: wall-clock ms for everything that is compared or stored."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Metrics(Protocol):
    """Counters of an invocation."""

    def add(self, name: str, value: float) -> None:
        """Add to a counter."""

    def flush(self) -> None:
        """Write the counters out; called once at the end of an invocation."""
