"""Deliver a finished export to its receivers (SFTP servers or S3 buckets).

A message on the delivery queue is an order: one export, for one receiver or for all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orbweaver.delivery.plan import (
    TRIES_MAX,
    DeliveryOrder,
    OrderError,
    order_of,
    retry_s,
    shipped,
    spelled,
)
from orbweaver.delivery.transfer import GONE, UNFINISHED, Delivered, Shipment, TransferSource
from orbweaver.exporting.manifest import PREFIX, decode_manifest
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Clock, Files, Metrics

if TYPE_CHECKING:
    from orbweaver.delivery.ports import Courier, Deliveries

# Milliseconds kept free at the end of an invocation, to finish the current write and to requeue the
# order.
RESERVE_MS = 60_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A destination of exports, which accepts some formats. `courier` opens a connection to it."""

    formats: tuple[str, ...]
    courier: Callable[[], AbstractAsyncContextManager[Courier]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOrder:
    """A message taken from the delivery queue. `handle` is only valid for this receive."""

    id: str
    body: str
    handle: str
    receives: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
