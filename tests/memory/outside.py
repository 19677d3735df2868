"""Queue, events, files, secrets, metrics and clock in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from orbweaver.exporting.manifest import Manifest
from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Close, MessageSource, Pack, SeedsMessage, encode
from orbweaver.frontier.queues import Receipt
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import Permanent, check_cut, check_size
from orbweaver.model.metrics import Metric
from orbweaver.model.outcome import Reason
from orbweaver.model.ports import Print
from tests.memory.world import Gated, Mail

DELAY_S_MAX = 900


class MemoryQueue(Gated):
    """Sent messages; the test delivers them."""

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        for outgoing in outgoing_packs:
            mail = Mail(
                body=encode(outgoing.pack),
                delay_s=outgoing.delay_s,
                group=outgoing.pack.crawl,
                express=express or outgoing.express,
            )
            await self._do("queue.send", lambda mail=mail: self._world.sent.append(mail))  # type: ignore[misc]

    async def send_seeds(self, seeds: Sequence[SeedsMessage], *, express: bool) -> None:
        for message in seeds:
            mail = Mail(body=encode(message), group=message.crawl, express=express)
            await self._do("queue.send", lambda mail=mail: self._world.sent.append(mail))  # type: ignore[misc]

    async def send_close(self, close: Close, delay_s: int) -> None:
        mail = Mail(body=encode(close), delay_s=delay_s, group=close.crawl, express=True)
        await self._do("queue.send", lambda: self._world.sent.append(mail))

    async def hold(self, waiting: Sequence[WaitingMessage], *, express: bool) -> None:
        for one in waiting:
            mail = Mail(
                body=one.body,
                delay_s=DELAY_S_MAX,
                group=one.crawl,
                express=express,
                since_ms=one.since_ms,
            )
            await self._do("queue.hold", lambda mail=mail: self._world.sent.append(mail))  # type: ignore[misc]

    async def release(self, pack: Pack, delay_s: int = 0, *, express: bool) -> bool:
        """Return False, as SQS does."""
        del delay_s, express
        self._world.released.append(pack.id)
        return False

    async def retry_soon(self, receipts: Sequence[Receipt], delay_s: int) -> None:
        self._world.retried += [(one.handle, delay_s) for one in receipts]

    async def dead_letter(
        self, body: str, reason: str, source: MessageSource = MessageSource.PACKS
    ) -> None:
        mail = Mail(body=body, reason=reason, source=source)
        await self._do("queue.bury", lambda: self._world.buried.append(mail))


class MemoryOrders(Gated):
    """Sent orders of exporters; the test delivers them."""

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        for body, group in bodies:
            mail = Mail(body=body, group=group)
            await self._do("orders.send", lambda mail=mail: self._world.ordered.append(mail))  # type: ignore[misc]


class MemoryEvents(Gated):
    """The event bus."""

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        await self._do("events.completed", lambda: self._world.announced.append((crawl, total)))

    async def exported(self, manifest: Manifest, key: str) -> None:
        await self._do("events.exported", lambda: self._world.exported.append((manifest, key)))


class MemoryFiles(Gated):
    """A bucket."""

    async def put(self, key: str, body: bytes) -> None:
        await self._do("files.put", lambda: self._world.files.__setitem__(key, body))

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        del sha256  # Computed from the stored bytes.
        body = path.read_bytes()  # noqa: ASYNC240 - a test's own small file
        await self._do("files.put", lambda: self._world.files.__setitem__(key, body))

    async def print_of(self, key: str) -> Print | None:
        body = await self._do("files.print", lambda: self._world.files.get(key))
        return None if body is None else Print(bytes=len(body), sha256=sha256(body).hexdigest())

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        body = await self._do("files.get", lambda: self._world.files.get(key))
        check_size(key, len(body or b""), bytes_max)
        return body

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        body = await self._do("files.cut", lambda: self._world.files.get(key))
        return None if body is None else check_cut(key, body[offset : offset + length], length)

    async def link(self, key: str, seconds: int) -> str:
        return f"memory:{quote(key)}?seconds={seconds}"

    async def list(self, prefix: str) -> tuple[str, ...]:
        return await self._do(
            "files.list",
            lambda: tuple(sorted(key for key in self._world.files if key.startswith(prefix))),
        )

    async def folders(self, prefix: str) -> tuple[str, ...]:
        def look() -> tuple[str, ...]:
            below = (key[len(prefix) :] for key in self._world.files if key.startswith(prefix))
            return tuple(
                sorted({f"{prefix}{name.partition('/')[0]}/" for name in below if "/" in name})
            )

        return await self._do("files.list", look)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            await self._do("files.delete", lambda key=key: self._world.files.pop(key, None))  # type: ignore[misc]


class MemorySecrets(Gated):
    """Secrets by name."""

    async def read(self, name: str) -> str:
        def look() -> str:
            if name not in self._world.secrets:
                raise Permanent(f"there is no secret {name!r}")
            return self._world.secrets[name]

        return await self._do("secrets.read", look)


class MemoryMetrics:
    """Counters."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self.failures: Counter[str] = Counter()

    def add(self, metric: Metric, value: float) -> None:
        self.totals[metric] += int(value)

    def observe(self, metric: Metric, value: float) -> None:
        self.values[metric].append(value)

    def fail(self, reason: Reason, number: int) -> None:
        self.failures[reason] += number

    def flush(self) -> None:
        """Do nothing: the totals stay, for tests."""


class ManualClock:
    """A clock that moves only by commands and by tasks that sleep."""

    def __init__(self, now_ms: int) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None:
        self.at_ms += round(seconds * 1000)
