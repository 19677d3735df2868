"""Deliver a finished export to its receivers (SFTP servers or S3 buckets).

A message on the delivery queue is an order: one export, for one receiver or for all. Order of
steps: remove outdated manifests, remove outdated files, write the ledger (the list of delivered
files), send the files, write the manifest. delivery/plan.py gives the reasons.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from orbweaver.delivery.plan import (
    TRIES_MAX,
    DeliveryOrder,
    FileRemoval,
    OrderError,
    Steps,
    decode_ledger,
    encode_ledger,
    ledger_path,
    order_of,
    retry_s,
    shipped,
    spelled,
    steps_of,
)
from orbweaver.exporting.manifest import PREFIX, File, Manifest, decode_manifest, encode_manifest
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Clock, Files, Metrics
from orbweaver.model.value import value_class


class Courier(Protocol):
    """A connection to a receiver. Paths are relative to its folder or bucket."""

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        """Read a small file, or return None if it is missing. Raises TooLarge above `bytes_max`."""

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the lengths in bytes of the files that exist."""

    async def write(self, path: str, body: bytes) -> None:
        """Write a small file. Readers see the whole new file, the old one, or none."""

    async def transfer(self, file: File, deadline_ms: int) -> bool:
        """Send a file, or continue a partial upload of it. Return False if time ran out.

        As with `write`, readers see the whole new file, the old one, or none.
        """

    async def remove(self, remains: Sequence[FileRemoval]) -> None:
        """Remove files and their partial uploads. Missing files are ignored."""


class Deliveries(Protocol):
    """The queue of delivery orders."""

    async def send(self, body: str) -> None: ...

    async def postpone(self, handle: str, seconds: int) -> None:
        """Hide a received message for `seconds`, before it is received again."""

    async def dead_letter(self, body: str, reason: str) -> None:
        """Send a message that can never succeed to the dead-letter queue."""


# Milliseconds kept free at the end of an invocation, to finish the current write and to requeue the
# order.
RESERVE_MS = 60_000

_log = logging.getLogger(__name__)
# Maximum size of a manifest or a ledger, which is enough for 100,000 files.
STANDING_BYTES_MAX = 64 * 1024 * 1024
# Number of files that are sent in parallel: enough to hide the server's latency, and few enough to
# keep memory small.
AT_ONCE = 4
LOOK_MS = 5_000  # between two checks whether the export was rewritten during its delivery

# STOOD: the receiver already had the export.
DONE, STOOD, UNFINISHED = "delivered", "stood", "unfinished"
GONE = "gone"  # the export was withdrawn or rewritten, and has a newer order


@value_class
class Receiver:
    """A destination of exports, which accepts some formats. `courier` opens a connection to it."""

    formats: tuple[str, ...]
    courier: Callable[[], AbstractAsyncContextManager[Courier]]


@value_class
class ReceivedOrder:
    """A message taken from the delivery queue. `handle` is only valid for this receive."""

    id: str
    body: str
    handle: str
    receives: int


@value_class
class Deliverer:
    """Carries out the orders of the delivery queue: each delivers one export."""

    files: Files
    receivers: Mapping[str, Receiver]
    queue: Deliveries
    clock: Clock
    metrics: Metrics

    async def run(self, taken: ReceivedOrder, deadline_ms: int) -> tuple[str, ...]:
        """Carry out the order in a message.

        Return the message's id if the queue must deliver it again.
        """
        try:
            order = order_of(taken.body)
        except OrderError as error:
            return await self._dead_letter(taken, str(error))
        names = [*self.receivers] if order.to is None else [order.to]
        if not set(names) <= self.receivers.keys():
            return await self._dead_letter(taken, f"this stack delivers nothing to {order.to!r}")
        # One order per receiver, so that a failing receiver does not delay the others.
        if len(names) > 1:
            for name in names:
                await self.queue.send(spelled(replace(order, to=name)))
            return ()
        for name in names:
            return await self._carry_out(taken, order, name, deadline_ms)
        return ()

    async def _carry_out(
        self, taken: ReceivedOrder, order: DeliveryOrder, name: str, deadline_ms: int
    ) -> tuple[str, ...]:
        told = {"receiver": name, "manifest": order.path, "receives": taken.receives}
        try:
            delivered = await self._deliver(order, self.receivers[name], deadline_ms)
        # For example an unknown host key or a refused user key.
        except Permanent as error:
            _log.error("delivery.refused", extra={**told, "error": str(error)})
            return await self._dead_letter(taken, str(error))
        except Transient as error:
            _log.warning("delivery.failed", extra={**told, "error": str(error)})
            self.metrics.add(Metric.DELIVERIES_FAILED, 1)
            if taken.receives >= TRIES_MAX:
                return await self._dead_letter(taken, str(error))
            await self.queue.postpone(taken.handle, retry_s(taken.receives))
            return (taken.id,)
        ended = {"how": delivered.how, "files": delivered.files, "bytes": delivered.bytes}
        _log.info("delivery.ended", extra={**told, **ended})
        self.metrics.add(Metric.DELIVERED_FILES, delivered.files)
        self.metrics.add(Metric.DELIVERED_BYTES, delivered.bytes)
        # The receiver keeps the files that it has, so the next attempt sends only the remaining
        # files.
        if delivered.how == UNFINISHED:
            await self.queue.send(taken.body)
        else:
            self.metrics.add(Metric.DELIVERIES, 1)
        return ()

    async def _dead_letter(self, taken: ReceivedOrder, reason: str) -> tuple[str, ...]:
        self.metrics.add(Metric.DELIVERIES_REFUSED, 1)
        await self.queue.dead_letter(taken.body, reason)
        return ()

    async def _deliver(
        self, order: DeliveryOrder, receiver: Receiver, deadline_ms: int
    ) -> Delivered:
        body = await self.files.get(PREFIX + order.path)
        if body is None:
            return Delivered(how=GONE)
        whole = decode_manifest(body)
        if whole is None:
            raise Permanent(f"{order.path} is not a manifest of this version")
        try:
            manifest = shipped(whole, receiver.formats)
        except ValueError as error:
            raise Permanent(f"{order.path}: {error}") from error
        async with receiver.courier() as courier:
            shipment = Shipment(
                courier=courier,
                manifest=manifest,
                formats=receiver.formats,
                source=TransferSource(files=self.files, key=PREFIX + order.path, body=body),
                clock=self.clock,
                deadline_ms=deadline_ms - RESERVE_MS,
            )
            return await shipment.deliver(again=order.again)


@value_class
class Delivered:
    """Result of an order. `files` and `bytes` were sent in this attempt."""

    how: str
    files: int = 0
    bytes: int = 0


@value_class
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
