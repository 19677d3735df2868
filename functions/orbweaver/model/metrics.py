"""Define the metrics of an invocation. Code, alarms and dashboards use this list.

Only listed metrics can be counted, because each costs $0.30 a month, prorated by the hours in which
it is sent (aws.amazon.com/cloudwatch/pricing, November 2026). No metric contains the name of a
host, a crawl or a URL, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from orbweaver.model.crawl import Counts
from orbweaver.model.outcome import FAILURES, Outcome, Reason
from orbweaver.model.page_record import NEEDS_RENDERING

NAMESPACE = "Orbweaver"
# One set of dimensions: stacks of one region stay separate, and no metric is billed twice.
DIMENSIONS = STACK, SERVICE = "stack", "service"
# Maximum number of values of an observed metric. A line of Embedded Metric Format takes 100, and
# Powertools begins another line there. Percentiles over several invocations need no more.
VALUES_MAX = 64


class Service(StrEnum):
    """Functions that send metrics."""

    WORKER = "worker"
    EXPORTER = "exporter"
    STARTER = "starter"
    NOTIFIER = "notifier"
    DELIVERY = "delivery"


class Metric(StrEnum):
    """Metrics, by their CloudWatch names. The last word of a name is its unit."""

    # ended URLs by outcome
    URLS_ENDED = "UrlsEnded"
    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    REDIRECTED = "redirected"
    SKIPPED = "skipped"
    FAILED = "failed"
    ROBOTS_REFUSED = "RobotsRefused"
    PAGES_UNREADABLE = "PagesUnreadable"
    BYTES = "bytes"
    RETRIES = "retries"
    LOGINS = "Logins"
    LOGINS_FAILED = "LoginsFailed"
    SESSIONS_LOST = "SessionsLost"
    DEFERRALS = "deferrals"
    SEEDS = "seeds"
    NEEDS_RENDERING = "NeedsRendering"
    RENDER_STARTS_FAILED = "RenderStartsFailed"
    ITEMS_VALID = "ItemsValid"
    ITEMS_INVALID = "ItemsInvalid"
    # per response
    FETCH_MS = "FetchMs"
    # messages
    MESSAGES_FAILED = "MessagesFailed"
    MESSAGES_BURIED = "MessagesBuried"
    MESSAGES_NEWER = "MessagesNewer"
    PACKS_PUT_OFF = "PacksPutOff"
    # files of claimed URLs that an IAM role may not read or write
    CLAIMS_REFUSED = "ClaimsRefused"
    # ended runs, compared with the runs before them
    YIELD_DROP_PERCENT = "YieldDropPercent"
    # cost of an invocation
    COST_DOLLARS = "CostDollars"
    EXPORTS_SEALED = "ExportsSealed"
    SCHEDULES_STARTED = "SchedulesStarted"
    SCHEDULES_SKIPPED = "SchedulesSkipped"
    WEBHOOKS_DELIVERED = "WebhooksDelivered"
    WEBHOOKS_FAILED = "WebhooksFailed"
    WEBHOOKS_REFUSED = "WebhooksRefused"
    DELIVERIES = "Deliveries"
    DELIVERED_FILES = "DeliveredFiles"
    DELIVERED_BYTES = "DeliveredBytes"
    DELIVERIES_FAILED = "DeliveriesFailed"
    DELIVERIES_REFUSED = "DeliveriesRefused"


# Counts that are metrics with the same name.
_COUNTED = tuple(Metric(key) for key in (*Outcome, "bytes", "retries", "deferrals", "seeds"))
_ROBOTS = tuple(
    f"{Outcome.SKIPPED}.{reason}" for reason in (Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE)
)
# Counter of pages that were not rendered because no browser started.
_STARTS = "render.failed.start"
_UNREADABLE = f"{Outcome.FAILED}.{Reason.UNREADABLE}"
# Failure reasons are too many to pay for each as a metric. They are fields in the log line of the
# metrics (`field_of`), which log queries read at no price. Another version may have stored other
# reasons.
_FAILURES = {f"{Outcome.FAILED}.{reason}": reason for reason in FAILURES}


def counted(counts: Counts) -> Iterator[tuple[Metric, int]]:
    """Yield the metrics with a non-zero number."""
    for metric in _COUNTED:
        if number := counts.get(metric, 0):
            yield metric, number
    found, invalid = counts.get("items", 0), counts.get("items_invalid", 0)
    sums = {
        Metric.URLS_ENDED: sum(counts.get(outcome, 0) for outcome in Outcome),
        Metric.ROBOTS_REFUSED: sum(counts.get(key, 0) for key in _ROBOTS),
        Metric.PAGES_UNREADABLE: counts.get(_UNREADABLE, 0),
        Metric.NEEDS_RENDERING: counts.get(NEEDS_RENDERING, 0),
        Metric.RENDER_STARTS_FAILED: counts.get(_STARTS, 0),
        Metric.LOGINS: counts.get("logins", 0),
        Metric.LOGINS_FAILED: counts.get("logins_failed", 0),
        Metric.SESSIONS_LOST: counts.get("session_lost", 0),
        Metric.ITEMS_VALID: found - invalid,
        Metric.ITEMS_INVALID: invalid,
    }
    yield from ((metric, number) for metric, number in sums.items() if number)


def failures(counts: Counts) -> Iterator[tuple[Reason, int]]:
    for key, number in counts.items():
        if (reason := _FAILURES.get(key)) is not None:
            yield reason, number


def field_of(reason: Reason) -> str:
    return f"{Outcome.FAILED}_{reason}"
