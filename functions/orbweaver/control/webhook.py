"""Check URLs of webhooks, make and sign the requests, and post them when a crawl has ended.

A webhook is an https URL of any public host on a web port. An http URL is valid only with a literal
non-public address, on any port. Only a stack on one machine accepts such an address. The URL has no
user name and no password.

No state is stored. A repeated event is posted again with the same `id`, by which the receiver
recognises it. A temporary error is raised, so Lambda retries. A permanent error ends the event at
once, with its reason.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from orbweaver.model.address_policy import PORTS, Allowed, verdict
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.http_exchange import Failure, Headers, Request, Response
from orbweaver.model.metrics import Metric
from orbweaver.model.named_origins import HTTP_PORT, non_public_names, non_public_origin_of, port_of
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.settings import Settings
from orbweaver.model.url import canonicalize, host_of, hostname_of
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.control.crawl_spec import CrawlSpec
    from orbweaver.frontier.ports import Crawls
    from orbweaver.frontier.queues import Queue
    from orbweaver.model.ports import Clock, Fetcher, Metrics, Secrets


EVENT = "CrawlCompleted"
# Version of the body. It changes if a key is removed or gets another meaning. Version 1 had all
# counters.
VERSION = 2
# Counters in the body, in addition to outcomes and their reasons.
TOLD = ("claimed", "bytes", "items", "items_invalid", "retries")
SCHEME = "v1"
KEY_CHARS_MIN = 16
AUTHORITY = re.compile(r"\s*[a-z]+:[/\\]*([^/\\?#]*)", re.IGNORECASE)
SUCCESS, REDIRECT, REFUSED, BROKEN = 200, 300, 400, 500
AGAIN = frozenset({408, 429})
TOTAL_S = 10.0
# The response body is ignored. It is read up to this size, so that the receiver sees no error.
ANSWER_BYTES_MAX = 4_096

_log = logging.getLogger(__name__)


class WebhookError(ValueError):
    """The webhook or the signing key is invalid. The message contains the reason, but no secret."""


@value_class
class WebhookDelivered:
    """The receiver accepted the webhook."""


@value_class
class WebhookRefused:
    """The webhook was not accepted, and a further attempt would fail, too."""

    why: str


@value_class
class Undelivered:
    """The webhook was not accepted, and a further attempt might succeed."""

    why: str


Delivery: TypeAlias = WebhookDelivered | WebhookRefused | Undelivered


# --- allowed URLs -------------------------------------------------------------------------------


def webhook_of(text: str) -> str:
    """Return the canonical URL of a webhook. Raises WebhookError for an invalid URL.

    The message shows no part of the URL that can be secret.
    """
    try:
        url = canonicalize(text, tracking=frozenset())
    except ValueError as error:
        raise WebhookError(f"{error}: give an https URL") from error
    authority = AUTHORITY.match(text)
    if authority is not None and "@" in authority[1]:
        fix = "give it without user and password: the signature says who posts"
        raise WebhookError(fix)
    if url.startswith("http://") and not _inner(url):
        raise WebhookError("it is http: give an https URL")
    if not _inner(url) and non_public_origin_of(url) is None and port_of(url) not in PORTS:
        ports = ", ".join(map(str, sorted(PORTS)))
        raise WebhookError(f"no stack dials its port, {port_of(url)}: give one of {ports}")
    return url


def problems_in(plan: CrawlSpec) -> Iterator[tuple[str, str]]:
    """Yield the problems of a plan's webhook: the part of the plan, and a message.

    The message does not contain the URL, which can be secret.
    """
    if plan.webhook is not None:
        try:
            webhook_of(plan.webhook)
        except WebhookError as error:
            yield "webhook", str(error)


def refusal_of(url: str, *, signing: bool, allowed: Allowed) -> str | None:
    """Return why a stack would not post to a webhook. None: the stack would post.

    `signing` is True if the stack has a signing key.
    """
    if not signing:
        return (
            "webhooks are signed, and this stack has no key to sign with: deploy with"
            " -c webhook_secret=generate, or with the name of a secret of your own"
        )
    host = hostname_of(url).strip("[]")
    named = non_public_names([host_of(url)])
    why = verdict(host, port_of(url), allowed, named) if _is_address(host) else None
    return None if why is None else f"the webhook must not be dialled: {why}"


def shown(url: str) -> str:
    """Return the part of a webhook's URL that can be shown: the host. The path can be secret."""
    return host_of(url)


def _inner(url: str) -> bool:
    host = hostname_of(url).strip("[]")
    return _is_address(host) and verdict(host, HTTP_PORT) is not None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# --- request ------------------------------------------------------------------------------------


def body_of(crawl: Crawl, total: Counts) -> bytes:
    """Return the request body for an ended crawl. It is the same for every attempt."""
    said = {
        "event": EVENT,
        "version": VERSION,
        "id": crawl.id,
        "crawl": crawl.id,
        "name": crawl.name,
        "state": crawl.state,
        "stop": crawl.stop,
        "totals": public(total),
        "started_at_ms": crawl.started_at_ms,
        "finished_at_ms": crawl.finished_at_ms,
    }
    return json.dumps(said, separators=(",", ":")).encode()


def public(total: Counts) -> dict[str, int]:
    """Return the counters that the documentation describes and that are not zero."""
    told = {*TOLD, *Outcome, *(f"{outcome}.{reason}" for outcome in Outcome for reason in Reason)}
    told |= {f"refused.{refusal}" for refusal in Refusal}
    return {key: number for key, number in sorted(total.items()) if key in told and number}


def headers_of(key: str, at_s: int, body: bytes) -> Headers:
    return (
        ("Content-Type", "application/json"),
        ("X-Orbweaver-Event", EVENT),
        ("X-Orbweaver-Timestamp", str(at_s)),
        ("X-Orbweaver-Signature", signature_of(key, at_s, body)),
    )


def signature_of(key: str, at_s: int, body: bytes) -> str:
    """Sign a time and a body with HMAC-SHA256. Raises WebhookError if the key is too short."""
    if len(key) < KEY_CHARS_MIN:
        raise WebhookError(f"the secret has {len(key)} characters: {KEY_CHARS_MIN} are the least")
    # The receiver has the same key, so the signature authenticates the sender. An old time, or a
    # repeated `id`, reveals a replay.
    signed = hmac.new(key.encode(), f"{at_s}.".encode() + body, hashlib.sha256)
    return f"{SCHEME}={signed.hexdigest()}"


# --- results -------------------------------------------------------------------------------------


def delivery_of(answer: Response | Failure) -> Delivery:
    """Return whether a response, or a failed request, means that the webhook was delivered.

    Only 2xx is a success. A redirect, a 4xx other than 408 and 429, and a forbidden address are
    permanent errors.
    """
    if isinstance(answer, Failure):
        why = f"{answer.reason}: {answer.detail}"
        return WebhookRefused(why=why) if answer.reason is Reason.ADDRESS else Undelivered(why=why)
    status = answer.status
    if SUCCESS <= status < REDIRECT:
        return WebhookDelivered()
    if REDIRECT <= status < BROKEN and status not in AGAIN:
        what = "a redirect, which is not followed" if status < REFUSED else "a refusal"
        return WebhookRefused(why=f"the receiver answered {status}: {what}")
    return Undelivered(why=f"the receiver answered {status}")


class NotDelivered(Exception):
    """The webhook was not delivered, but a retry might succeed. The message contains the error."""


@value_class
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
        key = await self.secrets.read(self.settings.names.webhook_secret)
        request = Request(
            url=url,
            user_agent=self.settings.fetching.user_agent,
            accept=frozenset(),
            body_bytes_max=ANSWER_BYTES_MAX,
            total_s=TOTAL_S,
            headers=headers_of(key, self.clock.now_ms() // 1000, body),
            body=body,
            named=frozenset({host_of(url)}),
        )
        return delivery_of(await self.fetcher.fetch(request))
