"""What is known of a host's claims travels with the host: read from a file, and left in one.

With a delay one pack of a host is out at a time, and after a round another container goes on with
the host. What the one before it knew to be claimed need not be looked up again, link by link.

    load   beside the first request that a message's pack makes, never before it
    save   beside one of the last requests of a round, where enough is new: it costs a PUT, and a
           slot of the host is worth more than what is learned after it

Only of runs: of them a claim that stands does so to their end. Files are hints: one that is gone,
old, broken or slow costs look-ups, and nothing else. No pack waits for one, and what is under way
when an invocation ends is given up.

What may be learned. A claim that a committed pack made stands. One that was read may be of a pack
that is not committed yet, and is given back if the page limit does not admit it. While the limit is
what it is, the link is refused again, or waits in a late pack, which does not go by this. So what
is known is known under a limit, which is part of the file's name. Where a limit was shared out
anew among counters, one of them may have room where another has none: of such crawls nothing is
learned from reading. Nor is anything of claims of another run: that may give them up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from orbweaver.frontier.known_claims import (
    DIGEST_BYTES,
    FILE_BYTES_MAX,
    RECENT_BYTES,
    KnownClaims,
    decode,
    folder_of,
)
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import Permanent, PortError
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Clock, Files, Metrics
from orbweaver.model.settings import Settings
from orbweaver.model.url import host_of, url_hash
from orbweaver.worker.rounds import Round

_log = logging.getLogger(__name__)

# Of all hosts together; some 650,000 digests.
BYTES_MAX = 5 * 1024 * 1024
# An entry takes about as much by itself, however little it holds.
ENTRY_BYTES = 600
# What a file is read into, and what that is merged into, beside.
LOADING_BYTES_MAX = 2 * FILE_BYTES_MAX
# A PUT costs as much as 80 look-ups, and most links are met several times.
NEW_LEAST = 200
# The last requests of a round begin then.
LAST_MS = 3_000
# A host that was visited lately does not make room for another: what is visited in turn, and does
# not fit, would be read in vain.
IN_USE_MS = 120_000
# What is read at the same time lies in memory.
LOADS_AT_ONCE = 1

Key = tuple[str, int, str]


@dataclass(slots=True)
class _Entry:
    """A host, as one crawl knows it."""

    claims: KnownClaims = field(default_factory=KnownClaims)
    visited_ms: int = 0
    # In which round it was read last, and in which it could not be written: once is enough.
    loaded_until_ms: int = 0
    refused_until_ms: int = 0
    is_written: bool = False
    loading: asyncio.Task[None] | None = None
    saving: asyncio.Task[None] | None = None


def key_of(crawl_id: str, pages_max: int, host: str) -> str:
    """Name the file of a host."""
    return f"{folder_of(crawl_id)}{pages_max}/{url_hash(host)}"


def worth_saving(new: int, left_ms: int, *, least: int = NEW_LEAST, last_ms: int = LAST_MS) -> bool:
    """Whether a host is written down now, with so many new digests, and so little time left."""
    return new >= least and left_ms < last_ms


class HostClaims:
    """Knows which URLs of hosts are claimed; one a container, it outlives an invocation."""

    def __init__(
        self,
        *,
        files: Files,
        clock: Clock,
        settings: Settings,
        metrics: Metrics | None = None,
        new_least: int = NEW_LEAST,
        last_ms: int = LAST_MS,
    ) -> None:
        self._files = files
        self._clock = clock
        self._metrics = metrics
        self._used = settings.hands_on
        self._new_least = new_least
        self._last_ms = last_ms
        # The one that was visited longest ago is the first.
        self._entries: dict[Key, _Entry] = {}
        self._loading = asyncio.Semaphore(LOADS_AT_ONCE)

    def visit(
        self, crawl: Crawl, pack: Pack, round_: Round, until_ms: int, *, early: bool
    ) -> Callable[[], None]:
        """Begin a visit; what is returned is called whenever a request is about to be made.

        A pack that was taken on (`early`) follows one of the same host in the same round.
        """
        if not (self._used and pack.place and crawl.delay_ms) or crawl.continuous or pack.late:
            return _nothing
        key = (crawl.id, crawl.pages_max, host_of(pack.targets[0].url))
        entry = self._entries.pop(key, None)
        if entry is None:
            if not self._room(ENTRY_BYTES):
                return _nothing
            entry = _Entry()
        self._entries[key] = entry
        entry.visited_ms = self._clock.now_ms()

        def asking() -> None:
            if not early and entry.loaded_until_ms != until_ms:
                entry.loaded_until_ms = until_ms
                entry.loading = round_.beside(self._load(key, entry))
            left_ms = until_ms - self._clock.now_ms()
            due = worth_saving(
                entry.claims.new, left_ms, least=self._new_least, last_ms=self._last_ms
            )
            saving = entry.saving is not None and not entry.saving.done()
            if due and not saving and entry.refused_until_ms != until_ms:
                entry.saving = round_.beside(self._save(key, entry, until_ms))

        return asking

    def of(self, crawl: Crawl, urls: Iterable[str]) -> set[str]:
        """Those of `urls` that are known to be claimed."""
        return {
            url
            for host, some in self._known_hosts(crawl, urls).items()
            for url in some
            if self._entries[crawl.id, crawl.pages_max, host].claims.has(url)
        }

    def note_committed(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Note that URLs were claimed for the crawl by a pack that is committed."""
        for host, some in self._known_hosts(crawl, urls).items():
            # Making room may take the host itself, if it was not visited lately.
            if self._room(RECENT_BYTES * len(some)):
                entry = self._entries.get((crawl.id, crawl.pages_max, host))
                if entry is not None:
                    entry.claims.add(some)

    def note_read(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Note that URLs are claimed by other packs of the crawl, where that says enough."""
        if not crawl.quotas:
            self.note_committed(crawl, urls)

    def forget(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Forget URLs: they were given back."""
        for host, some in self._known_hosts(crawl, urls).items():
            self._entries[crawl.id, crawl.pages_max, host].claims.discard(some)

    def _known_hosts(self, crawl: Crawl, urls: Iterable[str]) -> dict[str, list[str]]:
        """Sort URLs by host; those of hosts that were not visited here are left out."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        if self._entries:
            for url in urls:
                host = host_of(url)
                if (crawl.id, crawl.pages_max, host) in self._entries:
                    found[host].append(url)
        return found

    async def _load(self, key: Key, entry: _Entry) -> None:
        """Take over what a file holds of a host."""
        async with self._loading:
            try:
                body = await self._files.get(key_of(*key), FILE_BYTES_MAX)
            except Permanent as error:
                # Without the right to list, S3 denies a read of an absent file. A file that was
                # written here is not absent.
                if entry.is_written:
                    self._refuse("claims.not_loaded", key, error)
                return
            except PortError as error:
                _log.warning("claims.not_loaded", extra={"crawl": key[0], "error": str(error)})
                return
            if body is None or self._entries.get(key) is not entry:
                return
            others = decode(body)
            del body
            if self._room(DIGEST_BYTES * max(0, len(others) - len(entry.claims))):
                entry.claims.merge(others)
            # Less of it was known than there seemed to be.
            if not self._room(0):
                self._entries.pop(key, None)

    async def _save(self, key: Key, entry: _Entry, until_ms: int) -> None:
        """Leave what is known of a host to those that go on with it."""
        body, new = entry.claims.encode(), entry.claims.new
        try:
            await self._files.put(key_of(*key), body)
        except PortError as error:
            entry.refused_until_ms = until_ms
            if isinstance(error, Permanent):
                self._refuse("claims.not_saved", key, error)
            else:
                _log.warning("claims.not_saved", extra={"crawl": key[0], "error": str(error)})
            return
        entry.is_written = True
        entry.claims.stored(new)

    def _refuse(self, event: str, key: Key, error: Permanent) -> None:
        """Report a denied file: the crawl goes on and pays for look-ups instead."""
        fix = "the role lacks s3:GetObject or s3:PutObject on claimed/: deploy again"
        _log.error(event, extra={"crawl": key[0], "error": str(error), "fix": fix})
        if self._metrics is not None:
            self._metrics.add(Metric.CLAIMS_REFUSED, 1)

    def _room(self, more_bytes: int) -> bool:
        """Whether so much more may be held, once hosts that are not in use have made room."""
        held = sum(ENTRY_BYTES + entry.claims.size_bytes for entry in self._entries.values())
        in_use_ms = self._clock.now_ms() - IN_USE_MS
        for key, entry in list(self._entries.items()):
            if held + more_bytes <= BYTES_MAX or entry.visited_ms >= in_use_ms:
                break
            held -= ENTRY_BYTES + entry.claims.size_bytes
            del self._entries[key]
        return held + more_bytes <= BYTES_MAX


def _nothing() -> None:
    """Do as the name says."""
