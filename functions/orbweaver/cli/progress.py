"""What can be said of a crawl while it runs, and once it has ended.

A meter sees one reading after another and tells the rate of the last seconds; the time left is a
guess from what is known, since every page may lead to more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbweaver.core.crawl import State
from orbweaver.core.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.cli.stacks import Depths
    from orbweaver.control import Status
    from orbweaver.core.politeness import Host

WINDOW_MS = 10_000
# Less is no ground for a guess.
DONE_MIN = 10
# A host with a slot due sooner than this is simply being crawled.
WAITING_MS_MIN = 2_000
# SQS says that its counts are right within a minute.
STALLED_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A crawl, its queue and its seeds' hosts as read at one moment."""

    status: Status
    depths: Depths | None = None
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A reading, and what follows from it and from those before."""

    reading: Reading
    per_s: float
    left_s: float | None

    @property
    def ended(self) -> bool:
        """Whether the crawl is over."""
        return self.reading.status.crawl.state is State.FINISHED

    @property
    def total(self) -> Mapping[str, int]:
        """All counters."""
        return self.reading.status.books.total

    def of(self, outcome: str) -> int:
        """How many URLs ended so."""
        return self.total.get(outcome, 0)

    def reasons(self, group: str) -> dict[str, int]:
        """Count the reasons of an outcome (or `refused`), most frequent first."""
        prefix = f"{group}."
        found = {
            key.removeprefix(prefix): number
            for key, number in self.total.items()
            if key.startswith(prefix) and number
        }
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def waiting(self) -> dict[str, str]:
        """Say which hosts let us wait, and for how long."""
        now_ms = self.reading.status.at_ms
        found: dict[str, str] = {}
        for host in self.reading.hosts:
            blocked_s = (host.blocked_until_ms - now_ms) / 1000
            turn_s = (max(host.tat_ms, host.line_ms) - now_ms) / 1000
            if blocked_s > 0:
                found[host.name] = f"blocked for {blocked_s:,.0f} s by its own answer"
            elif turn_s * 1000 >= WAITING_MS_MIN:
                found[host.name] = f"slots are taken for {turn_s:,.0f} s"
        return found


class Meter:
    """Sees readings in the order of time."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()
        # Since when the queues are empty, and how many URLs had ended then.
        self._idle: tuple[int, int] | None = None

    def see(self, reading: Reading) -> View:
        """Take one more reading in."""
        status = reading.status
        done, at_ms = status.books.done, status.at_ms
        if not done:
            self._seen.clear()  # nobody works yet: what comes is not to be slowed by that
        self._seen.append((at_ms, done))
        while len(self._seen) > 2 and self._seen[1][0] <= at_ms - WINDOW_MS:  # noqa: PLR2004 - two make a rate
            self._seen.popleft()
        # A single reading knows only the whole time.
        first_ms, first_done = status.crawl.started_at_ms, 0
        if len(self._seen) > 1:
            first_ms, first_done = self._seen[0]
        per_s = (done - first_done) * 1000 / (at_ms - first_ms) if at_ms > first_ms else 0.0
        left_s = None
        if per_s > 0 and done >= DONE_MIN:
            left_s = (status.books.claimed - done) / per_s
        return View(reading=reading, per_s=per_s, left_s=left_s)

    def stalled(self, reading: Reading) -> bool:
        """Whether nothing has been queued for long, and nothing done, of a crawl that runs."""
        depths, at_ms = reading.depths, reading.status.at_ms
        running = reading.status.crawl.state in (State.RUNNING, State.STOPPING)
        done = reading.status.books.done
        if depths is None or not running or not depths.idle:
            self._idle = None
            return False
        if self._idle is None or self._idle[1] != done:
            self._idle = (at_ms, done)
        return at_ms - self._idle[0] >= STALLED_MS


def nothing_new(view: View) -> bool:
    """Whether a crawl ended without one URL, because all its seeds were seen before."""
    return view.ended and not view.reading.status.books.claimed and not view.reasons("refused")


def mean_per_s(view: View) -> float:
    """Pages fetched a second, over the whole run."""
    elapsed_ms = view.reading.status.elapsed_ms
    return view.of(Outcome.FETCHED) * 1000 / elapsed_ms if elapsed_ms else 0.0


def as_json(view: View) -> dict[str, Any]:
    """Spell a view out for machines."""
    status = view.reading.status
    crawl, depths = status.crawl, view.reading.depths
    body: dict[str, Any] = {
        "crawl": crawl.id,
        "name": crawl.name,
        "state": str(crawl.state),
        "stop": None if crawl.stop is None else str(crawl.stop),
        "claimed": status.books.claimed,
        "done": status.books.done,
        "outcomes": {str(outcome): view.of(outcome) for outcome in Outcome},
        "reasons": {str(outcome): view.reasons(outcome) for outcome in Outcome},
        "refused": view.reasons("refused"),
        "retries": view.of("retries"),
        "deferrals": view.of("deferrals"),
        "bytes": view.of("bytes"),
        "elapsed_s": round(status.elapsed_ms / 1000, 3),
        "pages_per_s": round(mean_per_s(view) if view.ended else view.per_s, 2),
        "left_s": None if view.left_s is None or view.ended else round(view.left_s, 1),
        "waiting": view.waiting(),
    }
    if depths is not None:
        body["queue"] = {
            "waiting": depths.waiting,
            "in_work": depths.in_work,
            "delayed": depths.delayed,
            "dead": depths.dead,
        }
    return body
