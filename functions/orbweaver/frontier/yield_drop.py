"""Detect a site that returns fewer readable pages than in the previous run."""

from __future__ import annotations

from collections.abc import Iterable

from orbweaver.model.crawl import Counts, Crawl, State, Stop
from orbweaver.model.outcome import Outcome


def run_to_compare(crawl: Crawl, others: Iterable[Crawl]) -> Crawl | None:
    """Return the newest earlier run of the same name, or None if it is not comparable."""
    earlier = (
        other
        for other in others
        if other.name == crawl.name
        and other.id != crawl.id
        and other.retry_of is None
        and other.started_at_ms <= crawl.started_at_ms
    )
    newest = max(earlier, key=lambda other: other.started_at_ms, default=None)
    return newest if newest is not None and _comparable(crawl, newest) else None


def pages_of(total: Counts) -> int:
    return total.get(Outcome.FETCHED, 0) + total.get(Outcome.UNCHANGED, 0)


def drop_percent(crawl: Crawl, total: Counts) -> int | None:
    """Return by how many percent the readable pages dropped since the previous run.

    Returns None if this is unknown.
    """
    if crawl.pages_before is None or crawl.stop is Stop.CANCELLED:
        return None
    # If the run's budget was lowered, the lower budget is the expected number.
    expected = min(crawl.pages_before, crawl.pages_max)
    if not expected:
        return None
    return max(0, 100 - 100 * pages_of(total) // expected)


def _comparable(crawl: Crawl, other: Crawl) -> bool:
    # Runs are compared if only the site can cause a difference: same settings, no retry, and the
    # earlier run ended by itself.
    alike = crawl.work is not None and crawl.work == other.work
    if not alike or crawl.retry_of is not None or other.state is not State.FINISHED:
        return False
    if other.stop is Stop.CANCELLED or other.finished_at_ms is None:
        return False
    # All dedup windows must have passed since the earlier run, so that all its URLs are requested
    # again. Otherwise the later run has fewer URLs to request, which is no loss.
    windows = (rule.window_s for rule in crawl.rules if rule.window_s is not None)
    window_s = max((crawl.window_s, *windows))
    return other.finished_at_ms < crawl.stale_before_ms(crawl.started_at_ms, window_s)
