"""Receivers of exports, and the delivery queue, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from orbweaver.delivery.plan import FileRemoval
from orbweaver.exporting.manifest import PREFIX, File
from orbweaver.model.errors import Transient, check_size
from orbweaver.model.ports import Clock
from tests.memory.world import Gate, Gated, Mail, World, open_gate


class MemoryCourier(Gated):
    """A receiver's folder; `shelf` has its files, which other couriers share."""

    def __init__(
        self, world: World, shelf: dict[str, bytes], *, clock: Clock, gate: Gate = open_gate
    ) -> None:
        super().__init__(world, gate)
        self._shelf = shelf
        self._clock = clock

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        body = await self._do("courier.read", lambda: self._shelf.get(path))
        check_size(path, len(body or b""), bytes_max)
        return body

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        there = {path: len(self._shelf[path]) for path in paths if path in self._shelf}
        return await self._do("courier.sizes", lambda: there)

    async def write(self, path: str, body: bytes) -> None:
        await self._do("courier.write", lambda: self._shelf.__setitem__(path, body))

    async def transfer(self, file: File, deadline_ms: int) -> bool:
        if self._clock.now_ms() >= deadline_ms:
            return False
        body = self._world.files.get(PREFIX + file.path)
        if body is None or sha256(body).hexdigest() != file.sha256:
            raise Transient(f"{file.path} is not what its manifest says")
        await self._do("courier.bring", lambda: self._shelf.__setitem__(file.path, body))
        return True

    async def remove(self, remains: Sequence[FileRemoval]) -> None:
        for one in remains:
            await self._do("courier.remove", lambda one=one: self._shelf.pop(one.path, None))  # type: ignore[misc]


class MemoryDeliveries(Gated):
    """Sent, postponed and dead-lettered orders; the test delivers them."""

    async def send(self, body: str) -> None:
        mail = Mail(body=body)
        await self._do("deliveries.send", lambda: self._world.sent.append(mail))

    async def postpone(self, handle: str, seconds: int) -> None:
        mail = Mail(body=handle, delay_s=seconds)
        await self._do("deliveries.postpone", lambda: self._world.sent.append(mail))

    async def dead_letter(self, body: str, reason: str) -> None:
        mail = Mail(body=body, reason=reason)
        await self._do("deliveries.bury", lambda: self._world.buried.append(mail))
