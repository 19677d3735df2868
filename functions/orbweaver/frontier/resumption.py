"""Earlier runs that a run goes on from, and how much of its page limit they have used.

- A run goes on from the newest run of its name with the same seeds and sitemaps that has finished
  and began within the window: its claims hold, so its seeds would not be asked for. And from all
  that this one went on from, as far as they are within the window, too.
- It is worth it where one of them left something out that may be asked for now. The cause is one of
  its limits, its cancellation, or a depth, scope or pattern that is another one now.
- Its limit of pages holds for all of them together: of 200 pages, 60 of which an earlier run has
  asked for, 140 are left. What ended unasked is not counted. Other limits are each run's own.
- A run that asks for everything again (`--window 0s`) goes on from none, and neither does a retry,
  nor a run that a schedule starts: each of its runs has the limit for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orbweaver.frontier.messages import child_id, seeds_of
from orbweaver.model.crawl import DAY_S, Counts, Crawl, State, Stop, spent
from orbweaver.model.outcome import Outcome, Reason, Refusal

_UNASKED = tuple(f"{Outcome.SKIPPED}.{reason}" for reason in Reason if reason.resumable)
LIMITED = (Refusal.BUDGET, Refusal.DOLLARS)
# Runs that one goes on from: each began within the window.
RUNS_MAX = 20


def earlier(crawl: Crawl, others: Iterable[Crawl], journals_s: int) -> tuple[Crawl, ...]:
    """List the runs that a run may go on from, newest first.

    Journals are kept for `journals_s`. Of a run that began before that some are gone. Their URLs
    would be taken for ones that no worker asked for.
    """
    if crawl.continuous or crawl.retry_of is not None or not crawl.window_s:
        return ()
    since_ms = crawl.stale_before_ms(crawl.started_at_ms)
    since_ms = max(since_ms, crawl.started_at_ms - (journals_s - DAY_S) * 1000)
    within = {
        other.id: other
        for other in others
        if other.name == crawl.name
        and other.id != crawl.id
        and since_ms <= other.started_at_ms <= crawl.started_at_ms
        and other.state is State.FINISHED
        and other.retry_of is None
        and set(other.references) == set(crawl.references)
    }
    newest = max(within.values(), key=lambda other: other.started_at_ms, default=None)
    if newest is None:
        return ()
    ids = (newest.id, *newest.resumes)
    return tuple(within[run] for run in ids if run in within)[:RUNS_MAX]


def resumed(crawl: Crawl, runs: Iterable[Crawl], totals: Mapping[str, Counts]) -> Crawl:
    """Have a run go on from earlier ones; as it is where these left nothing out for it."""
    runs = tuple(runs)
    if not runs or not _left_out(crawl, runs, totals):
        return crawl
    return replace(
        crawl,
        resumes=tuple(run.id for run in runs),
        pages_carried=sum(asked_for(totals[run.id]) for run in runs),
        seeds_planned=crawl.seeds_planned + len(runs),
    )


def asked_for(total: Counts) -> int:
    """Count the URLs that a run has claimed, without those that ended unasked."""
    return spent(total) - unasked(total)


def unasked(total: Counts) -> int:
    """Count the URLs that a run has claimed and not asked for."""
    return sum(total.get(key, 0) for key in _UNASKED)


def _left_out(crawl: Crawl, runs: Sequence[Crawl], totals: Mapping[str, Counts]) -> bool:
    """Whether earlier runs, the newest first, left something out that this one may ask for.

    The newest went on from the others, so what these left out counts where it would do so again.
    """
    newest = runs[0]
    total = totals[newest.id]
    if newest.stop is not Stop.FINISHED or unasked(total) or _refused((total,), *LIMITED):
        return True
    all_of_them = [totals[run.id] for run in runs]
    deeper = crawl.depth_max > newest.depth_max or crawl.rules != newest.rules
    if deeper and _refused(all_of_them, Refusal.DEPTH):
        return True
    if crawl.scope is not newest.scope and _refused(all_of_them, Refusal.SCOPE):
        return True
    patterns = (crawl.include, crawl.exclude) != (newest.include, newest.exclude)
    return patterns and _refused(all_of_them, Refusal.INCLUDE, Refusal.EXCLUDE)


def _refused(totals: Iterable[Counts], *reasons: Refusal) -> bool:
    return any(total.get(f"refused.{reason}", 0) for total in totals for reason in reasons)


def roots_of(run: Crawl) -> tuple[str, ...]:
    """Name what a run began with: its messages of seeds, and those by which it went on itself."""
    seeds = seeds_of(run.id, run.id, run.references, at_ms=run.started_at_ms, planned=True)
    pasts = (child_id(run.id, f"past/{earlier_run}") for earlier_run in run.resumes)
    return (*(message.id for message in seeds), *pasts)
