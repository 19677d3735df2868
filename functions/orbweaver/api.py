"""The HTTP API's requests, as values: a status and a JSON body, problems by RFC 9457."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbweaver.core.message import Loose, decode, seeds_of
from orbweaver.ingest import crawl_for, problem_of
from orbweaver.ports import Transient

if TYPE_CHECKING:
    from orbweaver.ports import Clock, Crawls, Queue

SEEDS_MAX = 10_000
BODY_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a request is answered with."""

    status: int
    body: dict[str, Any]


class Api:
    """Answers requests; each either takes effect whole or says why it did not."""

    def __init__(self, *, queue: Queue, crawls: Crawls, clock: Clock) -> None:
        """Take the ports."""
        self._queue = queue
        self._crawls = crawls
        self._clock = clock

    async def answer(self, event: dict[str, Any]) -> Reply:
        """Answer an API Gateway proxy event."""
        route = (event.get("httpMethod"), event.get("resource"))
        if route != ("POST", "/seeds"):
            return problem(404, "there is only POST /seeds")
        try:
            body = _text(event)
        except ValueError as error:
            return problem(400, str(error))
        if len(body) > BODY_BYTES_MAX:
            return problem(413, f"the body is over {BODY_BYTES_MAX:,} bytes: send it in parts")
        try:
            return await self._seeds(body, event["requestContext"]["requestId"])
        except Transient as error:
            return problem(503, f"try again: {error}")

    async def _seeds(self, body: str, request_id: str) -> Reply:
        message = decode(body)
        if not isinstance(message, Loose):
            reason = getattr(message, "reason", "give url or urls, and perhaps crawl")
            return problem(400, reason)
        if len(message.references) > SEEDS_MAX:
            return problem(413, f"at most {SEEDS_MAX:,} URLs a request")
        refused = [
            {"url": reference, "problem": why}
            for reference in message.references
            if (why := problem_of(reference)) is not None
        ]
        if refused:
            return problem(400, f"{len(refused)} URLs cannot be crawled", refused=refused[:100])
        crawl = await crawl_for(self._crawls, message.crawl, self._clock.now_ms())
        if crawl is None:
            return problem(404, f"there is no crawl {message.crawl[:60]!r}")
        if not crawl.live:
            return problem(409, f"crawl {crawl.id} is {crawl.state}: start another")
        seeds = seeds_of(
            request_id, crawl.id, message.references, at_ms=self._clock.now_ms(), planned=False
        )
        await self._queue.send_seeds(seeds, express=crawl.express)
        return Reply(status=202, body={"crawl": crawl.id, "accepted": len(message.references)})


def problem(status: int, detail: str, **more: Any) -> Reply:
    """Say what is wrong with a request."""
    return Reply(status=status, body={"status": status, "detail": detail, **more})


def _text(event: dict[str, Any]) -> str:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body)
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("the body is not UTF-8 text") from error
