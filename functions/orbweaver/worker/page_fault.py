"""End a page whose processing raises an unexpected exception (fault) as `failed: unreadable`.

A retry would raise the same exception, and a dead letter would hold up the crawl. The other URLs of
the pack continue. Errors of ports (tables, queues, web) are not faults: the pack is delivered
again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from orbweaver.fetching.response_verdict import End
from orbweaver.frontier.pack_result import EndedPage, PageResult
from orbweaver.model.crawl_rules import rule_for_target
from orbweaver.model.errors import is_fault, type_and_place
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.url import redacted
from orbweaver.model.value import positional_value_class
from orbweaver.worker.pack_context import page_record

if TYPE_CHECKING:
    from orbweaver.frontier.pack_result import PackResult
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.target import Target

_log = logging.getLogger(__name__)

T = TypeVar("T")


@positional_value_class
class FaultedPages:
    """Results of URLs whose processing raised a fault."""

    pages: Sequence[PageResult]


async def result_or_fault(
    work: Awaitable[T],
    crawl: Crawl,
    target: Target,
    at_ms: int,
    answer: Response | Failure | None = None,
) -> T | PageResult:
    """Return the result of `work` on a URL. If it raises a fault, return the URL's result."""
    done = await results_or_fault(work, crawl, (target,), at_ms, answer)
    return done.pages[0] if isinstance(done, FaultedPages) else done


async def results_or_fault(
    work: Awaitable[T],
    crawl: Crawl,
    targets: Sequence[Target],
    at_ms: int,
    answer: Response | Failure | None = None,
) -> T | FaultedPages:
    """Return the result of `work` that several URLs need. If it raises a fault, end all of them."""
    try:
        return await work
    except BaseException as error:
        if not is_fault(error):
            raise
        return FaultedPages([unreadable(error, crawl, one, at_ms, answer) for one in targets])


def add_or_fault(result: PackResult, page: PageResult, crawl: Crawl, target: Target) -> None:
    """Add the result of one page to `result`. If that raises, add `failed: unreadable` instead."""
    try:
        result.add(page)
    except Exception as error:  # noqa: BLE001 - a fault ends one page
        at_ms = page.end.record.fetched_at if isinstance(page.end, EndedPage) else 0
        result.add(unreadable(error, crawl, target, at_ms))


def unreadable(
    error: BaseException,
    crawl: Crawl,
    target: Target,
    at_ms: int,
    answer: Response | Failure | None = None,
) -> PageResult:
    """Log a fault with its traceback, and return the result of its URL: `failed: unreadable`."""
    said = type_and_place(error)
    fields = {"crawl": crawl.id, "url": redacted(target.url), "error": said}
    _log.error("page.unreadable", extra=fields, exc_info=error)
    end = End(outcome=Outcome.FAILED, reason=Reason.UNREADABLE, error=said)
    # The page is not used again, because that might raise the same exception.
    record = page_record(crawl.id, target, end, at_ms)
    if isinstance(answer, Response):
        record = replace(record, status=answer.status, latency_ms=answer.latency_ms)
    recorded = rule_for_target(crawl, target).record is not False
    return PageResult(end=EndedPage(record=record, recorded=recorded))
