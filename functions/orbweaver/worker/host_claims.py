"""Share known claims of a host with other containers in files, to save look-ups.

A claim makes a URL belong to a pack (message with up to 25 URLs). A container that continues a host
need not look up these links. A missing or outdated file causes more look-ups, but no errors.
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

# Memory for all hosts together: about 650,000 digests.
BYTES_MAX = 5 * 1024 * 1024
# Memory of an entry without its claims.
ENTRY_BYTES = 600
# Memory for a file, and for the set that it is merged into.
LOADING_BYTES_MAX = 2 * FILE_BYTES_MAX
# Minimum number of new claims in a file. A PUT costs as much as 80 look-ups, and most links are
# found several times.
NEW_LEAST = 200
# Files are written this long before a round ends (worker/rounds.py), together with its last
# requests. Claims that become known after that are not worth a delay of the host's next slot.
LAST_MS = 3_000
# A recently visited host keeps its entry. If hosts that are visited alternately evicted each other,
# all files would be read in vain.
IN_USE_MS = 120_000
# Each file is in memory while it is read.
LOADS_AT_ONCE = 1

Key = tuple[str, int, str]


@dataclass(slots=True)
class _Entry:
    claims: KnownClaims = field(default_factory=KnownClaims)
    visited_ms: int = 0
    # End of the round in which the file was last read, and of the round in which writing failed.
    # Each is tried once per round.
    loaded_until_ms: int = 0
    refused_until_ms: int = 0
    is_written: bool = False
    loading: asyncio.Task[None] | None = None
    saving: asyncio.Task[None] | None = None


def key_of(crawl_id: str, pages_max: int, host: str) -> str:
    # A claim that was only read may be released if it exceeds the page limit. While the limit does
    # not change, its link is refused again or deferred. So the limit is a part of the key.
    return f"{folder_of(crawl_id)}{pages_max}/{url_hash(host)}"


def is_worth_saving(
    new: int, left_ms: int, *, least: int = NEW_LEAST, last_ms: int = LAST_MS
) -> bool:
    return new >= least and left_ms < last_ms


class HostClaims:
    """Remembers which URLs of hosts are claimed. One instance per container.

    Claims of other runs are never included, because those runs may release them.
    """

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
        self._used = settings.shares_claims
        self._new_least = new_least
        self._last_ms = last_ms
        # Ordered by last visit, oldest first.
        self._entries: dict[Key, _Entry] = {}
        self._loading = asyncio.Semaphore(LOADS_AT_ONCE)

    def visit(
        self, crawl: Crawl, pack: Pack, round_: Round, until_ms: int, *, early: bool
    ) -> Callable[[], None]:
        """Start a visit of a pack's host, and load its file.

        The caller must call the returned function before each request.

        `early` is True if the pack was started before its message arrived. `until_ms` is the end of
        the round.
        """
        # Only finite crawls share claims: their claims are valid until they end.
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
            # An early pack follows a pack of the same host in this round, which has loaded the
            # file.
            if not early and entry.loaded_until_ms != until_ms:
                entry.loaded_until_ms = until_ms
                # This runs in the background, and is cancelled when the invocation ends.
                entry.loading = round_.run_background(self._load(key, entry))
            left_ms = until_ms - self._clock.now_ms()
            due = is_worth_saving(
                entry.claims.new, left_ms, least=self._new_least, last_ms=self._last_ms
            )
            saving = entry.saving is not None and not entry.saving.done()
            if due and not saving and entry.refused_until_ms != until_ms:
                entry.saving = round_.run_background(self._save(key, entry, until_ms))

        return asking

    def known(self, crawl: Crawl, urls: Iterable[str]) -> set[str]:
        return {
            url
            for host, some in self._known_hosts(crawl, urls).items()
            for url in some
            if self._entries[crawl.id, crawl.pages_max, host].claims.is_known(url)
        }

    def note_committed(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Add the claimed URLs of a committed pack. Such claims are final."""
        for host, some in self._known_hosts(crawl, urls).items():
            # Freeing memory may remove this host's entry, if its last visit was long ago.
            if self._room(RECENT_BYTES * len(some)):
                entry = self._entries.get((crawl.id, crawl.pages_max, host))
                if entry is not None:
                    entry.claims.add(some)

    def note_read(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Add URLs that other packs have claimed, if those claims are final."""
        # After a page limit was edited, one counter may have budget left while another has none.
        # Then claims can be released.
        if not crawl.quotas:
            self.note_committed(crawl, urls)

    def forget(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Remove URLs whose claims were released."""
        for host, some in self._known_hosts(crawl, urls).items():
            self._entries[crawl.id, crawl.pages_max, host].claims.discard(some)

    def _known_hosts(self, crawl: Crawl, urls: Iterable[str]) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        if self._entries:
            for url in urls:
                host = host_of(url)
                if (crawl.id, crawl.pages_max, host) in self._entries:
                    found[host].append(url)
        return found

    async def _load(self, key: Key, entry: _Entry) -> None:
        async with self._loading:
            try:
                body = await self._files.get(key_of(*key), FILE_BYTES_MAX)
            except Permanent as error:
                # Without the right to list, S3 denies reads of files that do not exist. A file that
                # was written here does exist.
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
            # The two sets shared fewer claims than assumed, so the entry may be too large.
            if not self._room(0):
                self._entries.pop(key, None)

    async def _save(self, key: Key, entry: _Entry, until_ms: int) -> None:
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
        """Log that access to a file was denied. The crawl continues with more look-ups."""
        fix = "the role lacks s3:GetObject or s3:PutObject on claimed/: deploy again"
        _log.error(event, extra={"crawl": key[0], "error": str(error), "fix": fix})
        if self._metrics is not None:
            self._metrics.add(Metric.CLAIMS_REFUSED, 1)

    def _room(self, more_bytes: int) -> bool:
        """Return True if more bytes fit into memory, after evicting hosts that are not in use."""
        held = sum(ENTRY_BYTES + entry.claims.size_bytes for entry in self._entries.values())
        in_use_ms = self._clock.now_ms() - IN_USE_MS
        for key, entry in list(self._entries.items()):
            if held + more_bytes <= BYTES_MAX or entry.visited_ms >= in_use_ms:
                break
            held -= ENTRY_BYTES + entry.claims.size_bytes
            del self._entries[key]
        return held + more_bytes <= BYTES_MAX


def _nothing() -> None: ...
