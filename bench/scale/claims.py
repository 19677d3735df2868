"""Models the cached claims of queued URLs in containers: `worker.host_claims`.

Only numbers of URLs are modelled, and each URL is equally likely. Times of reads and writes, the
size of a container's memory, and evictions follow the worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.budget.billing_units import Stage, Term
from orbweaver.frontier.known_claims import DIGEST_BYTES, DIGESTS_MAX
from orbweaver.worker.host_claims import BYTES_MAX, ENTRY_BYTES, IN_USE_MS, is_worth_saving

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale.model import Model
    from bench.scale.visiting import Container
    from bench.scale.web import Host
    from orbweaver.frontier.messages import Pack

# Assumed: duration of a GET and a PUT of S3.
GET_MS, PUT_MS = 30, 60
# Measured on a whole CPU: reading and merging a digest, hashing and looking up a link.
MERGED_CPU_MS, SOUGHT_CPU_MS = 0.00015, 0.004


@dataclass(slots=True)
class _Entry:
    known: float = 0.0
    new: float = 0.0
    visited_ms: int = 0
    loaded_until_ms: int = 0
    saving: bool = False

    @property
    def size_bytes(self) -> float:
        return ENTRY_BYTES + DIGEST_BYTES * self.known


class HostClaims:
    """Numbers of cached claims of queued URLs in a container, per host."""

    def __init__(self, model: Model, container: Container) -> None:
        self._model = model
        self._container = container
        self._used = model.settings.shares_claims
        self._entries: dict[str, _Entry] = {}
        self._held = 0.0

    def visit(self, host: Host, pack: Pack, until_ms: int, *, early: bool) -> Callable[[], None]:
        """Begin a visit, and return a function to call before each request."""
        kernel = self._model.kernel
        if not (self._used and pack.place and self._model.scenario.delay_ms):
            return _nothing
        entry = self._entries.pop(host.name, None)
        if entry is None:
            if not self._room(ENTRY_BYTES):
                return _nothing
            entry = _Entry()
            self._held += entry.size_bytes
        self._entries[host.name] = entry
        entry.visited_ms = kernel.time_ms

        def asking() -> None:
            if not early and entry.loaded_until_ms != until_ms:
                entry.loaded_until_ms = until_ms
                kernel.ready(self._load(host, entry))
            left_ms = until_ms - kernel.time_ms
            if is_worth_saving(int(entry.new), left_ms) and not entry.saving:
                entry.saving = True
                kernel.ready(self._save(host, entry))

        return asking

    def known(self, host: Host) -> float:
        """Return the number of a host's URLs that are known to be claimed."""
        entry = self._entries.get(host.name)
        return 0.0 if entry is None else min(host.found, entry.known)

    def learn(self, host: Host, urls: float) -> None:
        entry = self._entries.get(host.name)
        if entry is not None and self._room(DIGEST_BYTES * urls):
            entry.new += self._grow(entry, min(host.found, entry.known + urls))

    async def _load(self, host: Host, entry: _Entry) -> None:
        books, kernel = self._model.books, self._model.kernel
        books.use(Term.S3_GET, Stage.BODIES, 1)
        books.count("claims read")
        await kernel.until(kernel.time_ms + GET_MS)
        stored = self._model.claim_files.get(host.name, 0.0)
        if not stored or self._entries.get(host.name) is not entry:
            return
        await self._container.think(MERGED_CPU_MS * (stored + entry.known))
        if self._room(DIGEST_BYTES * max(0.0, stored - entry.known)):
            # Other containers may have found the new URLs since.
            new = entry.new * (1 - stored / host.found)
            self._grow(entry, min(host.found, stored + new))
            entry.new = new

    async def _save(self, host: Host, entry: _Entry) -> None:
        books, kernel = self._model.books, self._model.kernel
        known, new = entry.known, entry.new
        books.use(Term.S3_PUT, Stage.BODIES, 1)
        books.count("claims written")
        await kernel.until(kernel.time_ms + PUT_MS)
        self._model.claim_files[host.name] = known
        entry.new = max(0.0, entry.new - new)
        entry.saving = False

    def _grow(self, entry: _Entry, known: float) -> float:
        known = min(DIGESTS_MAX, max(known, entry.known))
        more = known - entry.known
        entry.known = known
        self._held += DIGEST_BYTES * more
        return more

    def _room(self, more_bytes: float) -> bool:
        in_use_ms = self._model.kernel.time_ms - IN_USE_MS
        while self._held + more_bytes > BYTES_MAX:
            name, entry = next(iter(self._entries.items()), ("", None))
            if entry is None or entry.visited_ms >= in_use_ms:
                return False
            self._held -= entry.size_bytes
            del self._entries[name]
        return True


def _nothing() -> None: ...
