"""Share known claims of a host with other containers in files, to save look-ups.

A claim makes a URL belong to a pack (message with up to 25 URLs). A container that continues a host
need not look up these links. A missing or outdated file causes more look-ups, but no errors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from orbweaver.frontier.known_claims import FILE_BYTES_MAX, decode, folder_of
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import Permanent, PortError
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Clock, Files, Metrics
from orbweaver.model.settings import Settings
from orbweaver.model.url import host_of, url_hash
from orbweaver.worker.rounds import Round
from orbweaver.worker.seen_store import HostClaims, SeenStore

_log = logging.getLogger(__name__)

# Memory for a file, and for the set that it is merged into.
LOADING_BYTES_MAX = 2 * FILE_BYTES_MAX
# Minimum number of new claims in a file. A PUT costs as much as 80 look-ups, and most links are
# found several times.
NEW_LEAST = 200
# Files are written this long before a round ends (worker/rounds.py), together with its last
# requests. Claims that become known after that are not worth a delay of the host's next slot.
LAST_MS = 3_000
# Each file is in memory while it is read.
LOADS_AT_ONCE = 1


def key_of(crawl_id: str, pages_max: int, host: str) -> str:
    return f"{folder_of(crawl_id)}{pages_max}/{url_hash(host)}"


def is_worth_saving(
    new: int, left_ms: int, *, least: int = NEW_LEAST, last_ms: int = LAST_MS
) -> bool:
    return new >= least and left_ms < last_ms


class ClaimFiles:
    """Loads and saves the claims of visited hosts. One instance per container."""

    def __init__(
        self,
        seen: SeenStore,
        *,
        files: Files,
        clock: Clock,
        settings: Settings,
        metrics: Metrics | None = None,
        new_least: int = NEW_LEAST,
        last_ms: int = LAST_MS,
    ) -> None:
        self._seen = seen
        self._files = files
        self._clock = clock
        self._metrics = metrics
        self._used = settings.function.shares_claims
        self._new_least = new_least
        self._last_ms = last_ms
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
        host = self._seen.visit_host(crawl, host_of(pack.targets[0].url))
        if host is None:
            return _nothing

        def asking() -> None:
            # An early pack follows a pack of the same host in this round, which has loaded the
            # file.
            if not early and host.loaded_until_ms != until_ms:
                host.loaded_until_ms = until_ms
                # This runs in the background, and is cancelled when the invocation ends.
                host.loading = round_.run_background(self._load(host))
            left_ms = until_ms - self._clock.now_ms()
            due = is_worth_saving(
                host.claims.new, left_ms, least=self._new_least, last_ms=self._last_ms
            )
            saving = host.saving is not None and not host.saving.done()
            if due and not saving and host.refused_until_ms != until_ms:
                host.saving = round_.run_background(self._save(host, until_ms))

        return asking

    async def _load(self, host: HostClaims) -> None:
        async with self._loading:
            try:
                body = await self._files.get(key_of(*host.key), FILE_BYTES_MAX)
            except Permanent as error:
                # Without the right to list, S3 denies reads of files that do not exist. A file that
                # was written here does exist.
                if host.is_written:
                    self._refuse("claims.not_loaded", host, error)
                return
            except PortError as error:
                _log.warning("claims.not_loaded", extra=_described(host, error))
                return
            if body is not None:
                digests = decode(body)
                del body
                self._seen.merge_file(host, digests)

    async def _save(self, host: HostClaims, until_ms: int) -> None:
        body, new = host.claims.encode(), host.claims.new
        try:
            await self._files.put(key_of(*host.key), body)
        except PortError as error:
            host.refused_until_ms = until_ms
            if isinstance(error, Permanent):
                self._refuse("claims.not_saved", host, error)
            else:
                _log.warning("claims.not_saved", extra=_described(host, error))
            return
        host.is_written = True
        host.claims.stored(new)

    def _refuse(self, event: str, host: HostClaims, error: Permanent) -> None:
        """Log that access to a file was denied. The crawl continues with more look-ups."""
        fix = "the role lacks s3:GetObject or s3:PutObject on claimed/: deploy again"
        _log.error(event, extra={**_described(host, error), "fix": fix})
        if self._metrics is not None:
            self._metrics.add(Metric.CLAIMS_REFUSED, 1)


def _described(host: HostClaims, error: PortError) -> dict[str, str]:
    return {"crawl": host.key[0], "error": str(error)}


def _nothing() -> None: ...
