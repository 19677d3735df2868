"""Find the earlier runs that a run continues, and how much of its page limit they have used.

A run continues the newest finished run of its name, unless that run had other seeds or sitemaps. It
does so only if that run left out URLs that can be requested now. All these runs share one page
limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orbweaver.frontier.messages import child_id, seeds_of
from orbweaver.model.crawl import DAY_S, Counts, Crawl, State, Stop, spent
from orbweaver.model.outcome import SUCCESSES, Outcome, Reason, Refusal

_UNASKED = tuple(f"{Outcome.SKIPPED}.{reason}" for reason in Reason if reason.resumable)
_ROBOTS = f"{Outcome.SKIPPED}.{Reason.ROBOTS}"
_UNREACHABLE = f"{Outcome.SKIPPED}.{Reason.ROBOTS_UNREACHABLE}"
LIMITED = (Refusal.BUDGET, Refusal.DOLLARS)
# Name of the count of URLs of earlier runs that a run requests again.
REQUESTED_AGAIN = "requested_again"
# Limit of runs that one run continues. Each began within the dedup window.
RUNS_MAX = 20


def runs_to_continue(crawl: Crawl, others: Iterable[Crawl], journals_s: int) -> tuple[Crawl, ...]:
    """List the runs that `crawl` can continue, and their retries, newest first.

    `others` are all known runs. `journals_s` is how long journals are kept.
    """
    # Journals of a run that began longer ago than they are kept may have expired. Its URLs would
    # look as if no worker had requested them.
    since_ms = crawl.started_at_ms - (journals_s - DAY_S) * 1000
    recent = (other for other in others if other.started_at_ms >= since_ms)
    return same_crawl(crawl, recent)[:RUNS_MAX]


def same_crawl(crawl: Crawl, others: Iterable[Crawl]) -> tuple[Crawl, ...]:
    """List ended runs with the same name as `crawl` and no further seeds, newest first.

    They started within the dedup window. Their retries are included.
    """
    # These continue no run: a retry, a run of a schedule (each has the whole limit), and a run that
    # requests everything again (`--window 0s`).
    if crawl.continuous or crawl.retry_of is not None or not crawl.window_s:
        return ()
    since_ms = crawl.stale_before_ms(crawl.started_at_ms)
    ended = [
        other
        for other in others
        if other.name == crawl.name
        and other.id != crawl.id
        and since_ms <= other.started_at_ms
        and other.state is State.FINISHED
    ]
    alike = {
        other.id
        for other in ended
        if other.retry_of is None
        and other.started_at_ms <= crawl.started_at_ms
        and set(other.references) <= set(crawl.references)
    }
    found: dict[str, Crawl] = {}
    for other in sorted(ended, key=lambda other: other.started_at_ms):
        if other.id in alike or other.retry_of in found:
            found[other.id] = other
    return tuple(reversed(found.values()))


def earlier(runs: Sequence[Crawl], totals: Mapping[str, Counts]) -> tuple[Crawl, ...]:
    """Choose the runs to continue: the newest that sent requests, and the runs it continued.

    `runs` is the result of `runs_to_continue`, `totals` their counters by id. Newer runs that were
    stopped early are included, because their packs may hold claims.
    """
    heads: list[Crawl] = []
    for run in runs:
        if run.retry_of is not None:
            continue
        has_requested = requested(totals[run.id]) > 0
        if has_requested or run.stop not in (Stop.FINISHED, Stop.MAX_PAGES):
            heads.append(run)
        if has_requested:
            break
    chain = {run_id for head in heads for run_id in (head.id, *head.resumes)}
    return tuple(run for run in runs if run.id in chain and run.retry_of is None)


def resumed(crawl: Crawl, runs: Sequence[Crawl], totals: Mapping[str, Counts]) -> Crawl:
    """Return `crawl`, changed to continue earlier runs if they left out URLs that it can request.

    `runs` is the result of `runs_to_continue`, `totals` their counters by id.
    """
    chain = earlier(runs, totals)
    if not chain or not _left_out(crawl, chain, totals):
        return crawl
    # Retries of these runs are continued too, because they hold claims of failed URLs.
    ids = {run.id for run in chain}
    retries = tuple(
        run for run in runs if run.retry_of in ids and totals[run.id].get(Outcome.FAILED)
    )
    return replace(
        crawl,
        resumes=tuple(run.id for run in (*chain, *retries))[:RUNS_MAX],
        pages_carried=sum(carried(totals[run.id]) for run in chain),
        seeds_planned=crawl.seeds_planned + min(len(chain) + len(retries), RUNS_MAX),
    )


def requested(total: Counts) -> int:
    """Count the URLs that a run has claimed, except URLs that ended without a request."""
    return spent(total) - count_not_requested(total)


def carried(total: Counts) -> int:
    """Count the URLs of a run that use up the page limit of the runs that continue it."""
    # URLs that failed or were never requested do not count. Other limits apply to each run.
    ended = sum(total.get(outcome, 0) for outcome in Outcome)
    open_again = (Outcome.FAILED, _ROBOTS, _UNREACHABLE, *_UNASKED)
    return max(0, ended - sum(total.get(key, 0) for key in open_again))


def count_not_requested(total: Counts) -> int:
    return sum(total.get(key, 0) for key in _UNASKED)


def requested_again(
    crawl: Crawl, run: Crawl, outcome: Outcome, reason: Reason, *, is_seed: bool
) -> bool:
    """Return True if `crawl` must request a URL again, by its outcome and reason in `run`.

    `is_seed` means that the URL is a seed of `crawl`.
    """
    # A disallowed seed is always requested again, because without it the crawl has no pages.
    if outcome is Outcome.FAILED or reason is Reason.ROBOTS_UNREACHABLE:
        return True
    return reason is Reason.ROBOTS and (is_seed or robots_may_differ(crawl, run))


def robots_may_differ(crawl: Crawl, run: Crawl) -> bool:
    """Return True if robots.txt may now allow URLs that it disallowed in an earlier run."""
    # The copy of robots.txt is out of date (RFC 9309 2.4), or the options that matter have changed.
    if crawl.started_at_ms - run.ended_ms(run.started_at_ms) >= DAY_S * 1000:
        return True
    was = (run.obey_robots, run.user_agent, run.user_agents)
    return (crawl.obey_robots, crawl.user_agent, crawl.user_agents) != was


def _left_out(crawl: Crawl, runs: Sequence[Crawl], totals: Mapping[str, Counts]) -> bool:
    """Return True if earlier runs, the newest first, left out URLs that `crawl` can request."""
    # The newest run has continued the others. So a link that another run left out counts only if
    # the newest run would leave it out too.
    newest = runs[0]
    total = totals[newest.id]
    if (
        newest.stop is not Stop.FINISHED
        or count_not_requested(total)
        or _refused((total,), *LIMITED)
    ):
        return True
    if total.get(Outcome.FAILED) or total.get(_UNREACHABLE):
        return True
    none_answered = not any(total.get(outcome) for outcome in SUCCESSES)
    if total.get(_ROBOTS) and (none_answered or robots_may_differ(crawl, newest)):
        return True
    all_of_them = [totals[run.id] for run in runs]
    deeper = crawl.depth_max > newest.depth_max or crawl.rules != newest.rules
    patterns = (crawl.include, crawl.exclude) != (newest.include, newest.exclude)
    lifted = (
        (deeper, (Refusal.DEPTH,)),
        (crawl.scope is not newest.scope, (Refusal.SCOPE,)),
        (_has_more_api_pages(crawl, newest), (Refusal.API_PAGES,)),
        (patterns, (Refusal.INCLUDE, Refusal.EXCLUDE)),
    )
    return any(differs and _refused(all_of_them, *reasons) for differs, reasons in lifted)


def _has_more_api_pages(crawl: Crawl, newest: Crawl) -> bool:
    limits = {api.url: api.pages_max for api in newest.apis}
    return any(api.pages_max > limits.get(api.url, api.pages_max) for api in crawl.apis)


def _refused(totals: Iterable[Counts], *reasons: Refusal) -> bool:
    return any(total.get(f"refused.{reason}", 0) for total in totals for reason in reasons)


def roots_of(run: Crawl) -> tuple[str, ...]:
    """List the ids of a run's first messages: with its seeds, or an earlier run to continue."""
    seeds = seeds_of(run.id, run.id, run.references, at_ms=run.started_at_ms, planned=True)
    pasts = (child_id(run.id, f"past/{earlier_run}") for earlier_run in run.resumes)
    return (*(message.id for message in seeds), *pasts)
