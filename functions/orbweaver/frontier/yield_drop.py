"""A run compared with the one before it: whether a site gives less than it did.

Two runs are compared where nothing but the site can be the reason of a difference:

- both were asked for alike, and neither asks again for what failed in another one;
- the earlier one came to its end, and was not cancelled;
- all that it claimed may be asked for again, by the windows of crawl and rules. Otherwise the later
  one has less to ask for: that is no loss.

What is compared are the pages that could be read: fetched ones, and those that are still the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from orbweaver.model.crawl import Counts, Crawl, State, Stop
from orbweaver.model.outcome import Outcome


def before(crawl: Crawl, others: Iterable[Crawl]) -> Crawl | None:
    """Find the run that one is to be compared with: the newest of its name, if that may be."""
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
    """How many pages of a run could be read."""
    return total.get(Outcome.FETCHED, 0) + total.get(Outcome.UNCHANGED, 0)


def drop_percent(crawl: Crawl, total: Counts) -> int | None:
    """By how much a run that ended came short of the one before it; None where that is not known.

    A run that was given a smaller budget meanwhile can have no more than that.
    """
    if crawl.pages_before is None or crawl.stop is Stop.CANCELLED:
        return None
    expected = min(crawl.pages_before, crawl.pages_max)
    if not expected:
        return None
    return max(0, 100 - 100 * pages_of(total) // expected)


def _comparable(crawl: Crawl, other: Crawl) -> bool:
    alike = crawl.work is not None and crawl.work == other.work
    if not alike or crawl.retry_of is not None or other.state is not State.FINISHED:
        return False
    if other.stop is Stop.CANCELLED or other.finished_at_ms is None:
        return False
    windows = (rule.window_s for rule in crawl.rules if rule.window_s is not None)
    window_s = max((crawl.window_s, *windows))
    return other.finished_at_ms < crawl.stale_before_ms(crawl.started_at_ms, window_s)
