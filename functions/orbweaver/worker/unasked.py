"""URLs that are not asked for: robots.txt forbids them or cannot be read, or their host is down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.fetching.response_verdict import End
from orbweaver.model.backoff import backoff_s, robots_attempts_max
from orbweaver.model.outcome import ANSWERED, Outcome, Reason
from orbweaver.model.target import next_attempt
from orbweaver.politeness.robots_rules import UNDECIDED
from orbweaver.worker.recording import page_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from orbweaver.model.ports import Clock
    from orbweaver.model.settings import Settings
    from orbweaver.model.target import Target
    from orbweaver.politeness.robots_cache import Unreachable
    from orbweaver.politeness.robots_txt import Robots
    from orbweaver.worker.pack_context import Visit


class Unasked:
    """Ends URLs without a request, or lets them return for another attempt."""

    def __init__(self, *, clock: Clock, random: Random, settings: Settings) -> None:
        """Take the clock, and how long retries wait."""
        self._clock = clock
        self._random = random
        self._settings = settings

    def allowed(self, visit: Visit, target: Target, robots: Robots | None, token: str) -> bool:
        """Whether robots.txt lets a URL be asked for; it ends here if not."""
        rule = robots.rule_for(token, target.url) if robots is not None else None
        if rule is None or rule.allow:
            return True
        error = None
        if rule is UNDECIDED:
            error = f"robots.txt: {UNDECIDED.pattern}"
            visit.draft.count("robots.undecided")
        self._end(visit, target, End(outcome=Outcome.SKIPPED, reason=Reason.ROBOTS, error=error))
        return False

    def retry(self, visit: Visit, target: Target, unreachable: Unreachable) -> None:
        """Let a URL return whose robots.txt could not be read; the last attempt ends it."""
        if target.attempt >= robots_attempts_max(unreachable.reason):
            end = End(
                outcome=Outcome.SKIPPED,
                reason=Reason.ROBOTS_UNREACHABLE,
                error=f"robots.txt could not be had: {unreachable.detail}",
            )
            visit.draft.count(f"{Reason.ROBOTS_UNREACHABLE}.{unreachable.reason or ANSWERED}")
            self._end(visit, target, end)
            return
        wait_s = (unreachable.return_at_ms - self._clock.now_ms()) / 1000
        pause_s = backoff_s(target.attempt, self._random, self._settings.retry_base_s)
        delay_s = max(wait_s, 0) + pause_s
        visit.draft.again(next_attempt(target), delay_s, why="retries")

    def give_up(self, visit: Visit, targets: Sequence[Target], failures: int) -> None:
        """End the URLs of a host that is down."""
        end = End(
            outcome=Outcome.FAILED,
            reason=Reason.HOST_DOWN,
            error=f"the host did not answer {failures} times in a row",
        )
        for target in targets:
            self._end(visit, target, end)

    def _end(self, visit: Visit, target: Target, end: End) -> None:
        visit.end(target, page_record(visit.crawl.id, target, end, self._clock.now_ms()))
