"""Post to the webhook of a crawl when the crawl has ended.

No state is stored. A repeated event is posted again with the same `id`, by which the receiver
recognises it. A temporary error is raised, so Lambda retries. A permanent error ends the event at
once, with its reason.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from orbweaver.control.webhook import (
    Delivery,
    Undelivered,
    WebhookDelivered,
    WebhookRefused,
    body_of,
    delivery_of,
    headers_of,
    shown,
)
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Request
from orbweaver.model.metrics import Metric
from orbweaver.model.settings import Settings
from orbweaver.model.url import host_of

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.frontier.queues import Queue
    from orbweaver.model.ports import Clock, Fetcher, Metrics, Secrets

TOTAL_S = 10.0
# The response body is ignored. It is read up to this size, so that the receiver sees no error.
ANSWER_BYTES_MAX = 4_096

_log = logging.getLogger(__name__)


class NotDelivered(Exception):
    """The webhook was not delivered, but a retry might succeed. The message contains the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifier:
    """Posts the results of ended crawls to the webhooks in their definitions."""

    crawls: Crawls
    secrets: Secrets
    fetcher: Fetcher
    queue: Queue
    clock: Clock
    metrics: Metrics
    settings: Settings

    async def notify(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Post the result of the crawl that an event names. Raises NotDelivered for a retry."""
        crawl = await self.crawls.get(event["detail"]["crawl"])
        if crawl is None or crawl.webhook is None:
            return {"webhook": "none"}
        delivery = await self._post(crawl, crawl.webhook)
        told = {"crawl": crawl.id, "receiver": shown(crawl.webhook)}
        match delivery:
            case WebhookDelivered():
                _log.info("webhook.delivered", extra=told)
                self.metrics.add(Metric.WEBHOOKS_DELIVERED, 1)
                return {"webhook": "delivered"}
            case WebhookRefused():
                _log.error("webhook.refused", extra={**told, "error": delivery.why})
                self.metrics.add(Metric.WEBHOOKS_REFUSED, 1)
                await self.queue.dead_letter(json.dumps(event), delivery.why)
                return {"webhook": "refused"}
            case Undelivered():
                _log.warning("webhook.failed", extra={**told, "error": delivery.why})
                self.metrics.add(Metric.WEBHOOKS_FAILED, 1)
                raise NotDelivered(f"{crawl.id}: {delivery.why}")
            case _:
                assert_never(delivery)

    async def _post(self, crawl: Crawl, url: str) -> Delivery:
        counters = await self.crawls.counters(crawl)
        body = body_of(crawl, counters.total)
        # The key is read for every request, so that a new key is used at once.
        key = await self.secrets.read(self.settings.webhook_secret)
        request = Request(
            url=url,
            user_agent=self.settings.user_agent,
            accept=frozenset(),
            body_bytes_max=ANSWER_BYTES_MAX,
            total_s=TOTAL_S,
            headers=headers_of(key, self.clock.now_ms() // 1000, body),
            body=body,
            named=frozenset({host_of(url)}),
        )
        return delivery_of(await self.fetcher.fetch(request))
