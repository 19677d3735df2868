"""A crawl in words: the same in a line, in a list and on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from orbweaver.budget import prices
from orbweaver.cli import text
from orbweaver.control.progress import spending, status
from orbweaver.control.progress.queued import SILENT_MS_MIN
from orbweaver.control.progress.status import View
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.outcome import ANSWERED, Outcome, Reason, Refusal, short_of

REASONS_SHOWN = 4
# Why a crawl ended; a reason without words speaks for itself.
STOPS: Mapping[str, str] = {
    Stop.FINISHED: "",
    Stop.MAX_PAGES: "it reached --max-pages",
    Stop.DURATION: "it ran as long as it may",
    Stop.BYTES: "its bytes are used up",
    Stop.DOLLARS: "its dollars are spent",
    Stop.CANCELLED: "it was cancelled",
    Stop.NOTHING_NEW: "what is left brings next to nothing new",
}
# Queues are counted about right, so a moment of silence means nothing.
IDLE_MS_MIN = 10_000
# A retry or a host's rest takes about so long; more is worth a word.
QUIET_MS_MIN = 45_000
# A limit that is used up so far can hold requests back, after so long without an outcome.
HOLDING_SHARE, HOLDING_MS_MIN = 0.5, 5_000
HOLDING_BUDGETS = ("bytes", "dollars")


def heading(view: View) -> str:
    """Say which crawl it is and how it stands."""
    return f"{view.crawl.id} · {state(view)}"


def state(view: View) -> str:
    """Say how a crawl stands, and why it ends or ended."""
    crawl = view.crawl
    why = "" if crawl.stop is None else STOPS.get(crawl.stop, f"{crawl.stop} is used up")
    return f"{crawl.state}: {why}" if why else str(crawl.state)


def rows(view: View) -> list[tuple[str, str]]:
    """Say everything that is worth knowing of a view: label and words."""
    elapsed = text.clock(view.elapsed_s)
    found = [
        ("pages", pages(view)),
        ("time", f"{elapsed} {'from start to end' if view.ended else 'so far'}"),
        ("left", "" if view.ended else left(view)),
        ("ended", ended(view)),
        *((label, reasons(view, label)) for label in ("failed", "skipped")),
        ("left out", left_out(view)),
        ("items", items(view)),
        ("again", again(view)),
        ("cost", cost(view)),
        ("units", "" if status.early(view) else spending.per_million(view.total)),
        ("limits", limits(view)),
        ("goes on", sequel(view)),
        *(("waiting", f"{row.site}: {row.words}") for row in view.hosts if row.waits),
        ("queue", queue(view)),
        ("dead", dead(view)),
        *notices(view),
    ]
    return [(label, words) for label, words in found if words]


def line(view: View) -> str:
    """Say the same in one line, as far as it matters every few seconds."""
    parts = [text.clock(view.elapsed_s), pages(view)]
    if failed := view.reasons(Outcome.FAILED):
        parts.append(f"failed {view.of(Outcome.FAILED):,} ({counted(failed)})")
    if any(view.reasons(Reason.ROBOTS_UNREACHABLE)):
        parts.append(f"skipped {view.of(Outcome.SKIPPED):,} ({reasons(view, Outcome.SKIPPED)})")
    parts += [f"{row.site}: {row.words}" for row in view.hosts if row.waits]
    depths = view.reading.depths
    if depths is not None and depths.dead:
        parts.append(text.plural(depths.dead, "dead letter"))
    if not view.ended:
        parts.append(left(view))
    parts += [words for _, words in notices(view)]
    return text.clean("  ".join(part for part in parts if part))


def pages(view: View) -> str:
    """Say how many pages there are, of how many known URLs, and how fast they come."""
    counters = view.reading.status.counters
    per_s = status.pages_per_s(view)
    return (
        f"{view.of(Outcome.FETCHED):,} fetched, {counters.done:,} of {counters.claimed:,}"
        f" known URLs  {text.rate(per_s)} a second"
    )


def left(view: View) -> str:
    """Say how long it still takes, and why one thinks so; nothing from old numbers."""
    return "" if view.stale or _only_waits(view) else view.forecast.words


def _only_waits(view: View) -> bool:
    """Whether all URLs left wait for a retry or an answer: the pace cannot predict their end."""
    counters = view.reading.status.counters
    waits = counters.done + counters.retrying >= counters.claimed or view.quiet_ms >= SILENT_MS_MIN
    return bool(view.reading.waiting) and waits


def rates(view: View) -> str:
    """Say how fast URLs come to an outcome."""
    speeds = view.rates
    if view.ended:
        return f"{text.rate(speeds.mean)} URLs a second from start to end"
    return (
        f"{text.rate(speeds.now)} URLs a second now · {text.rate(speeds.mean)} mean"
        f" · {text.rate(speeds.peak)} peak"
    )


def read(view: View) -> str:
    """Say how much was read."""
    size, fetched = view.of("bytes"), view.of(Outcome.FETCHED)
    if not size:
        return ""
    return text.size(size) + (f" · {text.size(size // fetched)} a page" if fetched else "")


def ended(view: View) -> str:
    """Count outcomes, where there is more than one."""
    found = [f"{outcome} {view.of(outcome):,}" for outcome in Outcome if view.of(outcome)]
    return " · ".join(found) if len(found) > 1 else ""


def counted(reasons: Mapping[str, int]) -> str:
    """Write reasons with their numbers, most frequent first."""
    shown = [f"{reason} {number:,}" for reason, number in list(reasons.items())[:REASONS_SHOWN]]
    more = len(reasons) - REASONS_SHOWN
    return " · ".join(shown) + (f" · {more} more" if more > 0 else "")


def reasons(view: View, outcome: str) -> str:
    """Count the reasons of an outcome; of a robots.txt that could not be had, why."""
    named: dict[str, int] = {}
    for reason, number in view.reasons(outcome).items():
        causes = view.reasons(reason) if reason == Reason.ROBOTS_UNREACHABLE else {}
        why = ", ".join(map(_cause, causes))
        named[f"{reason} ({why})" if why else reason] = number
    return counted(named)


def items(view: View) -> str:
    """Say how many items there are, and which share of them is invalid."""
    number, invalid = view.of("items"), view.of("items_invalid")
    share = f" ({100 * invalid / number:.1f} %)" if number and invalid else ""
    return f"{text.plural(number, 'item')}, {invalid:,} invalid{share}" if number else ""


def left_out(view: View) -> str:
    """Count the links that were left out, by why; `orbweaver report` says it at length."""
    refused = view.reasons("refused").items()
    return counted({short_of(Refusal, why): number for why, number in refused})


def _cause(why: str) -> str:
    """Say what keeps a robots.txt from being had."""
    return "answered with an error" if why == ANSWERED else short_of(Reason, why)


def again(view: View) -> str:
    """Say how often URLs were tried again, and how often they had to wait for their host."""
    said = (("tried again", "retries"), ("waited for their turn", "deferrals"))
    return " · ".join(f"{word} {view.of(key):,}" for word, key in said if view.of(key))


def cost(view: View) -> str:
    """Say what was spent, and what a thousand pages come to."""
    spent, pages = prices.spent(view.total), view.of(Outcome.FETCHED)
    if spent is None:
        return ""
    if not view.reading.billed:
        return f"nothing; {spending.price(spent)} on AWS (estimate)"
    said = f"{spending.price(spent)} {'in all' if view.ended else 'so far'} (estimate)"
    if not pages or status.early(view):
        return said
    return f"{said} · {spending.price(spent * 1000 / pages)} per 1,000 pages"


def limits(view: View) -> str:
    """Say how much of each limit is used, and how many links wait to be asked for late."""
    said = " · ".join(budget.said for budget in view.budgets)
    number, exact = status.late_links(view)
    if number:
        links = text.plural(number, "late link")
        most = "" if exact else "at most "
        said += f" · {most}{links} {'spared' if view.ended else 'waiting'}"
    return said


def queue(view: View) -> str:
    """Say what is on the queues; of a crawl that has ended nothing is, but for others' messages."""
    depths = view.reading.depths
    if depths is None or view.ended:
        return ""
    numbers = (depths.waiting, depths.in_work, depths.delayed)
    pairs = zip(numbers, ("waiting", "in work", "delayed"), strict=True)
    words = " · ".join(f"{number:,} {word}" for number, word in pairs)
    if depths.in_work and not depths.waiting and depths.hidden_s:
        # What a queue does not tell: which message, and since when.
        words += f" (back within {text.roughly(depths.hidden_s)} where the worker died)"
    return words


def sequel(view: View) -> str:
    """Say which runs a run goes on from, and what these leave of its limit."""
    crawl = view.crawl
    if not crawl.resumes:
        return ""
    said = gone_on(crawl)
    if lost := view.of("past_lost"):
        said += f"; {text.plural(lost, 'part')} of earlier runs can no longer be looked through"
    return said


def gone_on(crawl: Crawl) -> str:
    """Say the same of a crawl that was just started."""
    runs = crawl.resumes[0]
    if len(crawl.resumes) > 1:
        runs += f" and {len(crawl.resumes) - 1} before it"
    asked = text.plural(crawl.pages_carried, "URL")
    room = f"{crawl.pages_own:,} of the limit of {crawl.pages_max:,} are left"
    return f"{runs}: {asked} of it are not requested again, {room}"


def dead(view: View) -> str:
    """Say what lies on the dead-letter queue, and what shows it."""
    depths = view.reading.depths
    if depths is None or not depths.dead:
        return ""
    return f"{text.plural(depths.dead, 'message')} that could not be done: `orbweaver dlq list`"


def notices(view: View) -> list[tuple[str, str]]:
    """Say what is out of the ordinary, and what helps: label and words."""
    found = []
    if view.stale and not view.ended:
        ago = text.roughly(view.age_ms / 1000)
        found.append(("stale", f"no answer from the stack; last seen {ago} ago"))
    found += [
        ("robots", f"{row.site}/robots.txt could not be had: {row.no_robots}; it is asked again")
        for row in view.hosts
        if row.no_robots and row.queued != 0 and not view.ended
    ]
    if view.crawl.state is State.RUNNING:
        found += [("waiting", words) for words in view.reading.waiting]
    if view.crawl.state is State.PAUSED:
        same = "" if view.reading.billed else "; so does the same `orbweaver crawl` again"
        found.append(("paused", f"`orbweaver resume {view.crawl.id}` goes on{same}"))
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


def _held(view: View) -> str:
    """Say until when a message is held back whose worker died, where nothing else moves."""
    depths = view.reading.depths
    if depths is None or depths.waiting or not (depths.in_work and depths.hidden_s):
        return ""
    back_ms = view.reading.status.at_ms - view.quiet_ms + depths.hidden_s * 1000
    at = datetime.fromtimestamp(back_ms / 1000, tz=UTC)
    held = text.plural(depths.in_work, "message")
    return f"; {held} in work: one whose worker died comes back at {at:%H:%M:%S} UTC, or so"
