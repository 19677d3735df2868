"""Send packs (messages with up to 25 URLs) and other messages to SQS queues.

Sources: Amazon SQS API reference, SendMessageBatch. Developer guide, "Amazon SQS fair queues".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.frontier.envelope import SINCE, WaitingMessage
from orbweaver.frontier.messages import Close, MessageSource, Pack, SeedsMessage, encode
from orbweaver.model.errors import Permanent, PortError, Transient
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from random import Random

    from orbweaver.adapters.aws.clients import Aws
    from orbweaver.frontier.journal import OutgoingPack
    from orbweaver.frontier.queues import Receipt
    from orbweaver.model.ports import Clock

BATCH_ENTRIES_MAX = 10
# SQS allows 1 MiB per batch, which includes more than the bodies.
BATCH_BYTES_MAX = 900 * 1024
MESSAGE_BYTES_MAX = 1024 * 1024
BATCHES_AT_ONCE = 8
DELAY_S_MAX = 900
# Upper bound of the bytes that the attribute `since_ms` adds.
SINCE_BYTES = 64
REASON_CHARS_MAX = 256
# Errors for a message that was deleted or became visible again.
NOT_IN_FLIGHT = frozenset(
    {
        "AWS.SimpleQueueService.MessageNotInflight",
        "MessageNotInflight",
        "InvalidParameterValue",
        "ReceiptHandleIsInvalid",
    }
)

# Valid MessageGroupId: letters, digits and punctuation of ASCII.
GROUP_ID = re.compile(r"[!-~]{1,128}")
# SQS rejects characters that XML 1.0 forbids. A pattern of the allowed characters would take ten
# times as long to compile.
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@value_class
class Mail:
    """A message to send. `group` makes the queue fair, so that one crawl does not delay others."""

    body: str
    group: str
    delay_s: int = 0
    since_ms: int | None = (
        None  # when the message began to wait for a newer version of the software
    )

    @property
    def bytes(self) -> int:
        return len(self.body) if self.body.isascii() else len(self.body.encode())


class SqsQueue:
    """The crawl queue, the express and render queues, and the dead-letter queue."""

    def __init__(
        self,
        client: Any,
        *,
        clock: Clock,
        random: Random,
        crawl_url: str,
        express_url: str,
        dead_letter_url: str,
        render_url: str = "",
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._crawl_url = crawl_url
        self._express_url = express_url
        self._dead_letter_url = dead_letter_url
        self._render_url = render_url

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        lanes: dict[str, list[Mail]] = {}
        for outgoing in outgoing_packs:
            url = self._express_url if express or outgoing.express else self._crawl_url
            if outgoing.pack.render and self._render_url:
                url = self._render_url
            mail = Mail(
                body=encode(outgoing.pack),
                group=group_of(outgoing.pack.crawl),
                delay_s=outgoing.delay_s,
            )
            lanes.setdefault(url, []).append(mail)
        for url, mails in lanes.items():
            await self._send_to(url, mails)

    async def send_seeds(self, seeds: Sequence[SeedsMessage], *, express: bool) -> None:
        mails = (Mail(body=encode(item), group=group_of(item.crawl)) for item in seeds)
        await self._send(mails, express=express)

    async def send_close(self, close: Close, delay_s: int) -> None:
        mail = Mail(body=encode(close), group=group_of(close.crawl), delay_s=delay_s)
        await self._send([mail], express=True)

    async def hold(self, waiting: Sequence[WaitingMessage], *, express: bool) -> None:
        mails = (
            Mail(
                body=one.body,
                group=group_of(one.crawl),
                delay_s=DELAY_S_MAX,
                since_ms=one.since_ms,
            )
            for one in waiting
        )
        await self._send(mails, express=express)

    async def release(self, pack: Pack, delay_s: int = 0, *, express: bool) -> bool:
        """Return False, because SQS cannot change the delay of a sent message."""
        del pack, delay_s, express
        return False

    async def retry_soon(self, receipts: Sequence[Receipt], delay_s: int) -> None:
        # All queues of a stack are in one account and region.
        place = self._crawl_url.rpartition("/")[0]
        calls = (
            self._set_visibility(f"{place}/{one.queue}", one.handle, delay_s) for one in receipts
        )
        await clients.all_of(calls, BATCHES_AT_ONCE)

    async def _set_visibility(self, url: str, handle: str, delay_s: int) -> None:
        try:
            await clients.call(
                self._client,
                "change_message_visibility",
                QueueUrl=url,
                ReceiptHandle=handle,
                VisibilityTimeout=delay_s,
            )
        except Permanent as error:
            cause = error.__cause__
            if not isinstance(cause, ClientError) or clients.code_of(cause) not in NOT_IN_FLIGHT:
                raise

    async def dead_letter(
        self, body: str, reason: str, source: MessageSource = MessageSource.PACKS
    ) -> None:
        await dead_letter(self._client, self._dead_letter_url, body, reason, source)

    async def _send(self, mails: Iterable[Mail], *, express: bool) -> None:
        await self._send_to(self._express_url if express else self._crawl_url, mails)

    async def _send_to(self, url: str, mails: Iterable[Mail]) -> None:
        await send_all(self._client, url, mails, clock=self._clock, random=self._random)


async def send_all(
    client: Any, url: str, mails: Iterable[Mail], *, clock: Clock, random: Random
) -> None:
    """Send messages in batches, several at once. Return when SQS has accepted all."""
    batches = (_send_batch(client, url, batch, clock, random) for batch in _batches(mails))
    await clients.all_of(batches, BATCHES_AT_ONCE)


async def dead_letter(
    client: Any, url: str, body: str, reason: str, source: MessageSource | None = None
) -> None:
    """Send a message unchanged to the dead-letter queue, with reason and source as attributes."""
    told = {"reason": NOT_XML.sub("\ufffd", reason)[:REASON_CHARS_MAX] or "unknown"}
    if source is not None:
        told["source"] = source.value
    # Attributes count towards the size limit. A body that leaves too little room is sent without.
    spare_bytes = MESSAGE_BYTES_MAX - len(body.encode())
    if spare_bytes < sum(len(f"{name}String{text}".encode()) for name, text in told.items()):
        told = {}
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in told.items()}
    await clients.call(
        client, "send_message", QueueUrl=url, MessageBody=body, MessageAttributes=attributes
    )


def group_of(crawl: str) -> str:
    if GROUP_ID.fullmatch(crawl):
        return crawl
    return blake2b(crawl.encode(errors="surrogatepass"), digest_size=16).hexdigest()


async def _send_batch(
    client: Any, url: str, batch: Sequence[Mail], clock: Clock, random: Random
) -> None:
    entries = {str(place): _entry(str(place), mail) for place, mail in enumerate(batch)}
    fault: PortError | None = None
    for attempt in range(1, clients.BATCH_TRIES + 1):
        answer = await clients.call(
            client, "send_message_batch", QueueUrl=url, Entries=list(entries.values())
        )
        # SendMessageBatch answers 200 even if it accepted only some messages.
        failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
        entries = {key: entry for key, entry in entries.items() if key in failed}
        for key, entry in failed.items():
            error = clients.error_of(entry["Code"], 0, f"send_message_batch: {entry['Code']}")
            if entry.get("SenderFault") and not isinstance(error, Transient):
                fault = error  # raised after all other messages are sent
                del entries[key]
        if not entries:
            break
        await clients.pause(clock, random, attempt)
    if entries:
        raise Transient(f"send_message_batch: {len(entries)} messages were not taken")
    if fault is not None:
        raise fault


def _entry(key: str, mail: Mail) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": key,
        "MessageBody": mail.body,
        "DelaySeconds": mail.delay_s,
        "MessageGroupId": mail.group,
    }
    # If there is no room for the attribute, the message waits without a time limit.
    if mail.since_ms is not None and mail.bytes <= MESSAGE_BYTES_MAX - SINCE_BYTES:
        since = {"DataType": "Number", "StringValue": str(mail.since_ms)}
        entry["MessageAttributes"] = {SINCE: since}
    return entry


def _batches(mails: Iterable[Mail]) -> Iterator[list[Mail]]:
    batch: list[Mail] = []
    batch_bytes = 0
    for mail in mails:
        full = len(batch) == BATCH_ENTRIES_MAX or batch_bytes + mail.bytes > BATCH_BYTES_MAX
        if batch and full:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(mail)
        batch_bytes += mail.bytes
    if batch:
        yield batch


# --- export queue ---------------------------------------------------------------------------------


class SqsOrders:
    """Sends messages to the export queue."""

    def __init__(self, client: Any, *, clock: Clock, random: Random, queue_url: str) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._queue_url = queue_url

    async def send(self, bodies: Sequence[tuple[str, str]]) -> None:
        # Groups make the queue fair, so that a large crawl does not delay others.
        mails = (Mail(body=body, group=group_of(group)) for body, group in bodies)
        await send_all(self._client, self._queue_url, mails, clock=self._clock, random=self._random)


# --- delivery queue -------------------------------------------------------------------------------


class SqsDeliveries:
    """Sends messages to the delivery queue and to its dead-letter queue."""

    def __init__(self, aws: Aws, *, queue_url: str, dead_letter_url: str) -> None:
        self._clients = aws
        self._queue_url = queue_url
        self._dead_letter_url = dead_letter_url

    async def send(self, body: str) -> None:
        client = await self._clients.client("sqs")
        await clients.call(client, "send_message", QueueUrl=self._queue_url, MessageBody=body)

    async def postpone(self, handle: str, seconds: int) -> None:
        # The message stays the same, so SQS counts its receives. The limit is 12 hours.
        await clients.call(
            await self._clients.client("sqs"),
            "change_message_visibility",
            QueueUrl=self._queue_url,
            ReceiptHandle=handle,
            VisibilityTimeout=seconds,
        )

    async def dead_letter(self, body: str, reason: str) -> None:
        await dead_letter(await self._clients.client("sqs"), self._dead_letter_url, body, reason)
