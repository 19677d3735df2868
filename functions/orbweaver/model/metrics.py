"""Metrics of an invocation: the one list of them, for code, alarms and dashboards.

Rules
- A metric that is not listed here cannot be counted: every one costs $0.30 a month, for the hours
  in which it is sent. There is one set of dimensions, the stack and the service, so that stacks of
  one region stay apart and none is billed twice. So their number has a bound, whatever is crawled:
  no metric bears the name of a host, a crawl or a URL.
- Why URLs failed has too many answers to pay for each. They stand beside the metrics of the same
  log line as fields, where queries of the log find them at no price (`field_of`).
- The unit of a metric is the last word of its name.

Source: aws.amazon.com/cloudwatch/pricing, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from orbweaver.model.crawl import Counts
from orbweaver.model.outcome import FAILURES, Outcome, Reason
from orbweaver.model.page_record import NEEDS_RENDERING

NAMESPACE = "Orbweaver"
DIMENSIONS = STACK, SERVICE = "stack", "service"
# Of a metric of which each value counts. A line of Embedded Metric Format takes 100; Powertools
# begins another line there, and percentiles of several invocations need no more.
VALUES_MAX = 64


class Service(StrEnum):
    """The functions that count."""

    WORKER = "worker"
    EXPORTER = "exporter"
    STARTER = "starter"
    NOTIFIER = "notifier"
    DELIVERY = "delivery"


class Metric(StrEnum):
    """What is counted."""

    # what packs came to: URLs that ended, and how
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
    DEFERRALS = "deferrals"
    SEEDS = "seeds"
    NEEDS_RENDERING = "NeedsRendering"
    RENDER_STARTS_FAILED = "RenderStartsFailed"
    ITEMS_VALID = "ItemsValid"
    ITEMS_INVALID = "ItemsInvalid"
    # each answer of the web
    FETCH_MS = "FetchMs"
    # messages
    MESSAGES_FAILED = "MessagesFailed"
    MESSAGES_BURIED = "MessagesBuried"
    MESSAGES_NEWER = "MessagesNewer"
    PACKS_PUT_OFF = "PacksPutOff"
    # files of claims that a role may not read or write
    CLAIMS_REFUSED = "ClaimsRefused"
    # runs that ended, beside the runs before them
    YIELD_DROP_PERCENT = "YieldDropPercent"
    # what an invocation cost
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


# Which of a pack's counts are metrics under their own names.
_COUNTED = tuple(Metric(key) for key in (*Outcome, "bytes", "retries", "deferrals", "seeds"))
_ROBOTS = tuple(
    f"{Outcome.SKIPPED}.{reason}" for reason in (Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE)
)
# Pages that stayed as they were fetched, as no browser started.
_STARTS = "render.failed.start"
_UNREADABLE = f"{Outcome.FAILED}.{Reason.UNREADABLE}"
# Why URLs fail, by the counts of it; a journal of another version may know other reasons.
_FAILURES = {f"{Outcome.FAILED}.{reason}": reason for reason in FAILURES}


def counted(counts: Counts) -> Iterator[tuple[Metric, int]]:
    """List the metrics of what a pack came to, those that are not zero."""
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
        Metric.ITEMS_VALID: found - invalid,
        Metric.ITEMS_INVALID: invalid,
    }
    yield from ((metric, number) for metric, number in sums.items() if number)


def failures(counts: Counts) -> Iterator[tuple[Reason, int]]:
    """List why URLs of a pack failed, and how many."""
    for key, number in counts.items():
        if (reason := _FAILURES.get(key)) is not None:
            yield reason, number


def field_of(reason: Reason) -> str:
    """Name the field of a log line that counts URLs which failed for a reason."""
    return f"{Outcome.FAILED}_{reason}"
