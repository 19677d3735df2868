"""Send messages to queues: packs (batches of URLs), seeds, export orders, deliveries, events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.sqlite.messages import Outgoing, QueueName, SqliteMessages
from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.frontier.messages import Close, MessageSource, Pack, SeedsMessage, encode
from orbweaver.frontier.queues import Receipt
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.events import COMPLETED, EXPORTED, SOURCE, completed_detail

if TYPE_CHECKING:
    from orbweaver.exporting.manifest import Manifest
    from orbweaver.frontier.journal import OutgoingPack

DELAY_S_MAX = 900
REASON_CHARS_MAX = 256
# Replaced in a reason as on SQS: characters outside XML 1.0, and lone surrogates.
_CONTROLS = {code: "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}
_UNSOUND = {**_CONTROLS, 0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}


class SqliteQueue:
    """The crawl queue, its express queue and its dead-letter queue."""

    def __init__(self, messages: SqliteMessages) -> None:
        self._messages = messages

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        for lane in (True, False):
            some = [
                Outgoing(
                    body=encode(outgoing.pack),
                    group=outgoing.pack.crawl,
                    delay_s=outgoing.delay_s,
                    in_flight=outgoing.taken,
                )
                for outgoing in outgoing_packs
                if (express or outgoing.express) is lane
            ]
            self._messages.send(_lane(express=lane), some)

    async def send_seeds(self, seeds: Sequence[SeedsMessage], *, express: bool) -> None:
        some = [Outgoing(body=encode(message), group=message.crawl) for message in seeds]
        self._messages.send(_lane(express=express), some)

    async def send_close(self, close: Close, delay_s: int) -> None:
        one = Outgoing(body=encode(close), group=close.crawl, delay_s=delay_s)
        self._messages.send(QueueName.EXPRESS, [one])

    async def hold(self, waiting: Sequence[WaitingMessage], *, express: bool) -> None:
        some = [
            Outgoing(body=one.body, group=one.crawl, delay_s=DELAY_S_MAX, since_ms=one.since_ms)
            for one in waiting
        ]
        self._messages.send(_lane(express=express), some)

    async def release(self, pack: Pack, delay_s: int = 0, *, express: bool) -> bool:
        lane = _lane(express=express or any(target.express for target in pack.targets))
        return self._messages.release(lane, pack.crawl, f'"pack":"{pack.id}"', delay_s)

    async def retry_soon(self, receipts: Sequence[Receipt], delay_s: int) -> None:
        """Do nothing, because a store makes failed messages visible within seconds anyway."""

    async def dead_letter(
        self, body: str, reason: str, source: MessageSource = MessageSource.PACKS
    ) -> None:
        _dead_letter(self._messages, QueueName.DEAD_LETTERS, body, reason, source)


class SqliteOrders:
    """The queue of export orders."""

    def __init__(self, messages: SqliteMessages) -> None:
        self._messages = messages

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        some = [Outgoing(body=body, group=group) for body, group in bodies]
        self._messages.send(QueueName.EXPORTS, some)


class SqliteDeliveries:
    """The delivery queue and its dead letters."""

    def __init__(self, messages: SqliteMessages) -> None:
        self._messages = messages

    async def send(self, body: str) -> None:
        self._messages.send(QueueName.DELIVERIES, [Outgoing(body=body)])

    async def postpone(self, handle: str, seconds: int) -> None:
        self._messages.show([handle], seconds)

    async def dead_letter(self, body: str, reason: str) -> None:
        _dead_letter(self._messages, QueueName.FAILED_DELIVERIES, body, reason)


class SqliteEvents:
    """Implements `Events` with messages in the format of EventBridge."""

    def __init__(self, messages: SqliteMessages, *, stack: str) -> None:
        self._messages = messages
        self._stack = stack

    async def completed(self, crawl: Crawl, total: Counts) -> None:
        self._put(COMPLETED, completed_detail(crawl, total))

    async def exported(self, manifest: Manifest, key: str) -> None:
        from orbweaver.exporting.manifest import exported_detail  # not needed by workers

        self._put(EXPORTED, exported_detail(manifest, key, ""))

    def _put(self, kind: str, detail: dict[str, Any]) -> None:
        event = {
            "source": SOURCE,
            "detail-type": kind,
            "detail": {"stack": self._stack, **detail},
        }
        self._messages.send(QueueName.EVENTS, [Outgoing(body=json.dumps(event))])


def _lane(*, express: bool) -> QueueName:
    return QueueName.EXPRESS if express else QueueName.CRAWL


def _dead_letter(
    messages: SqliteMessages,
    queue: QueueName,
    body: str,
    reason: str,
    source: MessageSource | None = None,
) -> None:
    told = reason.encode(errors="surrogatepass").decode(errors="replace").translate(_UNSOUND)
    # SQS replaces a lone surrogate by one such character, not by three.
    told = told.replace("\ufffd\ufffd\ufffd", "\ufffd")[:REASON_CHARS_MAX] or "unknown"
    messages.send(queue, [Outgoing(body=body, reason=told, source=source)])
