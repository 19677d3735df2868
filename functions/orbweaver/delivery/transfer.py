"""Send one export to one receiver.

Order: remove outdated manifests, remove outdated files, write the ledger (the list of delivered
files), send the files, write the manifest. delivery/plan.py gives the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orbweaver.delivery.plan import (
    FileRemoval,
    Steps,
    decode_ledger,
    encode_ledger,
    ledger_path,
    steps_of,
)
from orbweaver.exporting.manifest import File, Manifest, encode_manifest
from orbweaver.model.errors import Transient
from orbweaver.model.ports import Clock, Files

if TYPE_CHECKING:
    from orbweaver.delivery.ports import Courier

# Maximum size of a manifest or a ledger, which is enough for 100,000 files.
STANDING_BYTES_MAX = 64 * 1024 * 1024
# Number of files that are sent in parallel: enough to hide the server's latency, and few enough to
# keep memory small.
AT_ONCE = 4
LOOK_MS = 5_000  # between two checks whether the export was rewritten during its delivery

# STOOD: the receiver already had the export.
DONE, STOOD, UNFINISHED = "delivered", "stood", "unfinished"
GONE = "gone"  # the export was withdrawn or rewritten, and has a newer order


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Result of an order. `files` and `bytes` were sent in this attempt."""

    how: str
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferSource:
    """The export to send: path and content of its manifest, as read at the start."""

    files: Files
    key: str
    body: bytes

    async def is_unchanged(self) -> bool:
        """Whether the stored manifest is the same as at the start."""
        return await self.files.get(self.key) == self.body


class _Changed(Exception):
    """The export was rewritten during its delivery."""


class Shipment:
    """Sends one export to one receiver."""

    def __init__(
        self,
        *,
        courier: Courier,
        manifest: Manifest,
        formats: tuple[str, ...],
        source: TransferSource,
        clock: Clock,
        deadline_ms: int,
    ) -> None:
        self._courier = courier
        self._manifest = manifest
        self._formats = formats
        self._source = source
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._looked_ms = clock.now_ms()
        self._brought = Delivered(how=DONE)

    async def deliver(self, *, again: bool) -> Delivered:
        said = encode_manifest(self._manifest)
        standing = await self._courier.read(self._manifest.path, STANDING_BYTES_MAX)
        if standing == said and not again:
            return Delivered(how=STOOD)
        steps = steps_of(self._manifest, await self._ledger(), self._formats)
        if not steps.is_empty:
            await self._remove_outdated(steps)
        sizes = await self._courier.sizes([file.path for file in self._manifest.files])
        missing = [file for file in self._manifest.files if sizes.get(file.path) != file.bytes]
        try:
            if not await self._transfer_all(missing):
                return replace(self._brought, how=UNFINISHED)
            await self._look()
        except _Changed:
            return replace(self._brought, how=GONE)
        await self._courier.write(self._manifest.path, said)
        await self._confirm_ledger(steps)
        return self._brought

    async def _remove_outdated(self, steps: Steps) -> None:
        await self._courier.remove([FileRemoval(path=path) for path in steps.manifests])
        await self._courier.remove(steps.remains)
        await self._write_ledger(steps.ledger)

    async def _transfer_all(self, missing: list[File]) -> bool:
        """Send files, `AT_ONCE` at a time. Return False if time ran out."""
        rest = iter(missing)
        results = await asyncio.gather(
            *(self._transfer_some(rest) for _ in range(AT_ONCE)), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return all(results)

    async def _transfer_some(self, rest: Iterator[File]) -> bool:
        for file in rest:
            if self._clock.now_ms() - self._looked_ms >= LOOK_MS:
                await self._look()
            if not await self._courier.transfer(file, self._deadline_ms):
                return False
            done = self._brought
            self._brought = replace(done, files=done.files + 1, bytes=done.bytes + file.bytes)
            if self._clock.now_ms() >= self._deadline_ms:
                return next(rest, None) is None
        return True

    async def _look(self) -> None:
        """Raise `_Changed` if the export was rewritten. The new version has its own order."""
        self._looked_ms = self._clock.now_ms()
        if not await self._source.is_unchanged():
            raise _Changed

    async def _confirm_ledger(self, steps: Steps) -> None:
        """Add this export's files to the ledger if another order has overwritten it.

        If the ledger has another version of a file, this removes the manifest and raises Transient.
        """
        ledger = await self._ledger()
        ours = {file.path: file.sha256 for file in self._manifest.files}
        if any(ledger.get(path, sha256) != sha256 for path, sha256 in ours.items()):
            # It is unknown which version of the file the receiver has.
            await self._courier.remove([FileRemoval(path=self._manifest.path)])
            raise Transient("another version of the export was delivered meanwhile")
        if ledger.keys() >= ours.keys():
            return
        await self._write_ledger({**steps.ledger, **ledger})

    async def _ledger(self) -> Mapping[str, str]:
        day = self._manifest.day
        return decode_ledger(day, await self._courier.read(ledger_path(day), STANDING_BYTES_MAX))

    async def _write_ledger(self, ledger: Mapping[str, str]) -> None:
        day = self._manifest.day
        await self._courier.write(ledger_path(day), encode_ledger(day, ledger))
