"""A crawl's progress as texts, for a line, a list and the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from orbweaver.budget import prices
from orbweaver.cli import text
from orbweaver.control.progress import spending, status
from orbweaver.control.progress.forecast import count_unread_seeds
from orbweaver.control.progress.hosts import SILENT_MS_MIN, HostRow
from orbweaver.control.progress.status import View
from orbweaver.control.spec_checks import PAGES_MAX_DEFAULT
from orbweaver.frontier.refetch import has_only_seeds
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import ANSWERED, Outcome, Reason, Refusal, short_of

REASONS_SHOWN = 4
# Text for each reason why a crawl ended.
STOPS: Mapping[str, str] = {
    Stop.FINISHED: "",
    Stop.MAX_PAGES: "it reached --max-pages",
    Stop.DURATION: "it reached its duration limit",
    Stop.BYTES: "it reached its limit of bytes",
    Stop.DOLLARS: "it reached its limit of dollars",
    Stop.CANCELLED: "it was cancelled",
    Stop.NOTHING_NEW: "the links left bring next to nothing new",
}
# Empty queues are reported after this time, because counts of messages are approximate.
IDLE_MS_MIN = 10_000
# A crawl that completes no URL for this time is reported. A retry or a block of a host takes about
# as long.
QUIET_MS_MIN = 45_000
# A limit used up to this share can delay requests. That is reported if no URL is completed for this
# time.
HOLDING_SHARE, HOLDING_MS_MIN = 0.5, 5_000
HOLDING_BUDGETS = ("bytes", "dollars")


def heading(view: View) -> str:
    return f"{view.crawl.id} · {state(view)}"


def state(view: View) -> str:
    """Return a crawl's state, and the reason if it is stopping or has ended."""
    why = stop_reason(view.crawl)
    return f"{view.crawl.state}: {why}" if why else str(view.crawl.state)


def stop_reason(crawl: Crawl) -> str:
    """Return why a crawl ended, or "" if it requested all its URLs."""
    # The page limit of a run for missing content is the number of its pages.
    if crawl.stop is None or is_complete_refetch(crawl):
        return ""
    return STOPS.get(crawl.stop, f"{crawl.stop} is used up")


def is_complete_refetch(crawl: Crawl) -> bool:
    return crawl.stop is Stop.MAX_PAGES and has_only_seeds(crawl)


def rows(view: View) -> list[tuple[str, str]]:
    """Return all facts of a view as pairs of a label and a text."""
    elapsed = text.clock(view.elapsed_s)
    found = [
        ("pages", pages(view)),
        ("time", f"{elapsed} {'from start to end' if view.ended else 'since the start'}"),
        ("left", "" if view.ended else left(view)),
        ("ended", ended(view)),
        *((label, reasons(view, label)) for label in ("failed", "skipped")),
        ("left out", left_out(view)),
        ("items", items(view)),
        ("again", again(view)),
        ("cost", cost(view)),
        ("units", "" if status.is_too_early(view) else spending.per_million(view.total)),
        ("limits", limits(view)),
        ("continues", sequel(view)),
        *(("waiting", f"{row.site}: {row.words}") for row in view.hosts if row.waits),
        ("queue", queue(view)),
        ("dead", dead(view)),
        *notices(view),
    ]
    return [(label, words) for label, words in found if words]


def line(view: View) -> str:
    """Return the most important facts in one line."""
    parts = [text.clock(view.elapsed_s), pages(view)]
    if failed := view.reasons(Outcome.FAILED):
        parts.append(f"failed {view.count(Outcome.FAILED):,} ({counted(failed)})")
    if any(view.reasons(Reason.ROBOTS_UNREACHABLE)):
        parts.append(f"skipped {view.count(Outcome.SKIPPED):,} ({reasons(view, Outcome.SKIPPED)})")
    parts += [f"{row.site}: {row.words}" for row in view.hosts if row.waits]
    depths = view.reading.depths
    if depths is not None and depths.dead:
        parts.append(text.plural(depths.dead, "dead letter"))
    if not view.ended:
        parts.append(left(view))
    parts += [words for _, words in notices(view)]
    return text.clean("  ".join(part for part in parts if part))


def pages(view: View) -> str:
    """Describe the numbers of fetched pages, of done and known URLs, and of pages per second."""
    counters = view.reading.status.counters
    seeds = count_unread_seeds(view.reading.status) if view.reading.idle else 0
    if seeds and not view.ended:
        return f"0 fetched, {text.plural(seeds, 'seed')} queued"
    said = f"{view.count(Outcome.FETCHED):,} fetched, {counters.done:,} of {counters.claimed:,}"
    said += " known URLs"
    if view.reading.idle and view.crawl.state in status.WORKING:
        return said
    return f"{said}  {text.rate(status.pages_per_s(view))} a second"


def left(view: View) -> str:
    """Return the forecast, or "" if the view is stale."""
    return "" if view.is_stale or _only_waits(view) else view.forecast.words


def _only_waits(view: View) -> bool:
    """Return True if all open URLs wait for a retry or a response. Then a forecast is useless."""
    counters = view.reading.status.counters
    waits = counters.done + counters.retrying >= counters.claimed or view.quiet_ms >= SILENT_MS_MIN
    return bool(view.reading.waiting) and waits


def rates(view: View) -> str:
    speeds = view.rates
    if view.ended:
        return f"{text.rate(speeds.mean)} URLs a second from start to end"
    return (
        f"{text.rate(speeds.now)} URLs a second now · {text.rate(speeds.mean)} mean"
        f" · {text.rate(speeds.peak)} peak"
    )


def read(view: View) -> str:
    size, fetched = view.count("bytes"), view.count(Outcome.FETCHED)
    if not size:
        return ""
    return text.size(size) + (f" · {text.size(size // fetched)} a page" if fetched else "")


def ended(view: View) -> str:
    found = [f"{outcome} {view.count(outcome):,}" for outcome in Outcome if view.count(outcome)]
    return " · ".join(found) if len(found) > 1 else ""


def counted(reasons: Mapping[str, int]) -> str:
    """Format reasons with their numbers, most frequent first."""
    shown = [f"{reason} {number:,}" for reason, number in list(reasons.items())[:REASONS_SHOWN]]
    more = len(reasons) - REASONS_SHOWN
    return " · ".join(shown) + (f" · {more} more" if more > 0 else "")


def reasons(view: View, outcome: str) -> str:
    """Format the reasons of an outcome with their numbers.

    An unreachable robots.txt is shown with its causes.
    """
    named: dict[str, int] = {}
    for reason, number in view.reasons(outcome).items():
        causes = view.reasons(reason) if reason == Reason.ROBOTS_UNREACHABLE else {}
        why = ", ".join(map(_cause, causes))
        named[f"{reason} ({why})" if why else reason] = number
    return counted(named)


def items(view: View) -> str:
    number, invalid = view.count("items"), view.count("items_invalid")
    share = f" ({100 * invalid / number:.1f} %)" if number and invalid else ""
    return f"{text.plural(number, 'item')}, {invalid:,} invalid{share}" if number else ""


def left_out(view: View) -> str:
    """Format the numbers of links that were left out, by reason."""
    refused = view.reasons("refused").items()
    return counted({short_of(Refusal, why): number for why, number in refused})


def _cause(why: str) -> str:
    return "answered with an error" if why == ANSWERED else short_of(Reason, why)


def again(view: View) -> str:
    said = (
        *(("retried", "retries"), ("deferred", "deferrals"), ("logged in", "logins")),
        *(("failed logins", "logins_failed"), ("lost sessions", "session_lost")),
    )
    return " · ".join(f"{word} {view.count(key):,}" for word, key in said if view.count(key))


def cost(view: View) -> str:
    spent, pages = prices.spent(view.total), view.count(Outcome.FETCHED)
    if spent is None:
        return ""
    if not view.reading.billed:
        return f"nothing; {spending.price(spent)} on AWS (estimate)"
    said = f"{spending.price(spent)} {'in all' if view.ended else 'so far'} (estimate)"
    if not pages or status.is_too_early(view):
        return said
    return f"{said} · {spending.price(spent * 1000 / pages)} per 1,000 pages"


def limits(view: View) -> str:
    """Describe how much of each limit is used, and how many late links (requested last) exist."""
    said = " · ".join(budget.said for budget in view.budgets)
    number, exact = status.count_late_links(view)
    if number:
        links = text.plural(number, "late link")
        most = "" if exact else "at most "
        said += f" · {most}{links} {'not requested' if view.ended else 'waiting'}"
    return said


def queue(view: View) -> str:
    """Describe the queued messages. "" for an ended crawl: messages belong to other crawls."""
    depths = view.reading.depths
    if depths is None or view.ended:
        return ""
    numbers = (depths.waiting, depths.in_work, depths.delayed)
    pairs = zip(numbers, ("waiting", "in flight", "delayed"), strict=True)
    words = " · ".join(f"{number:,} {word}" for number, word in pairs)
    if depths.in_work and not depths.waiting and depths.hidden_s:
        # SQS does not report which messages are hidden, or for how long.
        words += f" (redelivered within {text.roughly(depths.hidden_s)} if the worker died)"
    return words


def sequel(view: View) -> str:
    """Describe the runs that a run continues, and how much is left of its page limit."""
    crawl = view.crawl
    if not crawl.resumes:
        return ""
    said = gone_on(crawl)
    if lost := view.count("past_lost"):
        said += f"; {text.plural(lost, 'part')} of earlier runs can no longer be looked through"
    return said


def gone_on(crawl: Crawl) -> str:
    """Describe the runs that a new run continues, and how much is left of its page limit."""
    runs = crawl.resumes[0]
    if len(crawl.resumes) > 1:
        runs += f" and {len(crawl.resumes) - 1} before it"
    asked = text.plural(crawl.pages_carried, "URL")
    said = f"{runs}: {asked} {_are(crawl.pages_carried)} not requested again"
    if crawl.pages_max == PAGES_MAX_DEFAULT:
        return said
    own = crawl.pages_own
    return f"{said}, {own:,} of the limit of {crawl.pages_max:,} {_are(own)} left"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def joined(run: Crawl, pids: Sequence[int]) -> str:
    """Describe a running crawl that a command joins. `pids` are its processes, if known."""
    where = f" in process {', '.join(map(str, pids))}" if pids else ""
    return f"{run.id} is running{where}: this command joins it"


def dead(view: View) -> str:
    depths = view.reading.depths
    if depths is None or not depths.dead:
        return ""
    return (
        f"{text.plural(depths.dead, 'message')} that could not be processed: `orbweaver dlq list`"
    )


def notices(view: View) -> list[tuple[str, str]]:
    """Return warnings with their fixes, as pairs of a label and a text."""
    found = []
    if view.is_stale and not view.ended:
        ago = text.roughly(view.age_ms / 1000)
        found.append(("stale", f"no answer from the stack; last seen {ago} ago"))
    found += [
        ("robots", f"{row.site}/robots.txt could not be fetched: {row.no_robots}; it is retried")
        for row in view.hosts
        if row.no_robots and row.queued != 0 and not view.ended
    ]
    if view.crawl.state is State.RUNNING:
        found += [("waiting", words) for words in view.reading.waiting]
    if view.crawl.state is State.PAUSED:
        is_crawl = not view.reading.billed and view.crawl.retry_of is None
        same = ", or run the same `orbweaver crawl` again" if is_crawl else ""
        found.append(("paused", f"continue with `orbweaver resume {view.crawl.id}`{same}"))
    if view.quiet_ms >= HOLDING_MS_MIN:
        found += [
            ("limit", f"the limit of {budget.name} holds requests back: {budget.words} used")
            for budget in view.budgets
            if budget.name in HOLDING_BUDGETS and budget.share >= HOLDING_SHARE
        ]
    if view.quiet_ms >= QUIET_MS_MIN and view.idle_ms < IDLE_MS_MIN:
        since = text.roughly(view.quiet_ms / 1000)
        found.append(("quiet", f"no URL has ended for {since}{_held(view)}"))
    if view.idle_ms >= IDLE_MS_MIN:
        counters = view.reading.status.counters
        missing = text.plural(max(0, counters.claimed - counters.done), "URL")
        since = text.roughly(view.idle_ms / 1000)
        found.append(("idle", f"nothing has been queued for {since}: {missing} without an outcome"))
    return found


def blocked(row: HostRow, view: View) -> str:
    """Describe until when a host gets no request, and why."""
    until = datetime.fromtimestamp((view.reading.status.at_ms + row.wait_ms) / 1000, tz=UTC)
    return text.clean(f"{row.site} gets no request until {until:%H:%M:%S} UTC: {row.why}")


def _held(view: View) -> str:
    """Describe when messages of a dead worker are redelivered. "" if more messages are queued."""
    depths = view.reading.depths
    if depths is None or depths.waiting or not (depths.in_work and depths.hidden_s):
        return ""
    back_ms = view.reading.status.at_ms - view.quiet_ms + depths.hidden_s * 1000
    at = datetime.fromtimestamp(back_ms / 1000, tz=UTC)
    held = text.plural(depths.in_work, "message")
    return f"; {held} in flight: if a worker died, redelivery is at about {at:%H:%M:%S} UTC"
