"""End URLs without a request: robots.txt forbids them or cannot be read, or their host is down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbweaver.fetching.response_verdict import End
from orbweaver.frontier.journal import NOTHING
from orbweaver.frontier.pack_result import PageResult, Returning
from orbweaver.model.backoff import attempts_of, backoff_s
from orbweaver.model.host_access import retries_of
from orbweaver.model.outcome import ANSWERED, Outcome, Reason, robots_attempts_max
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Clock
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, next_attempt
from orbweaver.politeness.robots_cache import RobotsUnreachable
from orbweaver.politeness.robots_rules import UNDECIDED, RobotsRule
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.pack_context import PackContext, page_record

if TYPE_CHECKING:
    from random import Random


# Maximum length of the reason in a retry's message.
FAILED_CHARS_MAX = 60
# Failures of robots.txt that every URL of its host has. They are the status of the URL.
_OF_HOST = (Reason.DNS_UNKNOWN, Reason.TLS)


class Unvisited:
    """Ends URLs without a request, or requeues them for another attempt."""

    def __init__(
        self, *, kinds: KindLearning, clock: Clock, random: Random, settings: Settings
    ) -> None:
        self._kinds = kinds
        self._clock = clock
        self._random = random
        self._settings = settings

    def end_disallowed(self, context: PackContext, target: Target, rule: RobotsRule) -> PageResult:
        error, counts = None, {}
        if rule is UNDECIDED:
            error = f"robots.txt: {UNDECIDED.pattern}"
            counts = {"robots.undecided": 1}
        end = End(outcome=Outcome.SKIPPED, reason=Reason.ROBOTS, error=error)
        return context.forbidden(target, self._recorded(context, target, end), counts)

    def retry_robots(
        self, context: PackContext, target: Target, unreachable: RobotsUnreachable
    ) -> PageResult:
        retries, reason = retries_of(context.crawl, target.url), None
        attempts = attempts_of(robots_attempts_max(unreachable.reason), retries)
        if context.crawl.status_only:
            reason = next((one for one in _OF_HOST if one == unreachable.reason), None)
        if target.attempt >= attempts and reason is not None:
            end = End(outcome=Outcome.FAILED, reason=reason, error=unreachable.detail)
            return self._ended(context, target, end)
        if target.attempt >= attempts:
            end = End(
                outcome=Outcome.SKIPPED,
                reason=Reason.ROBOTS_UNREACHABLE,
                error=f"robots.txt could not be had: {unreachable.detail}",
            )
            key = f"{Reason.ROBOTS_UNREACHABLE}.{unreachable.reason or ANSWERED}"
            return self._ended(context, target, end, {key: 1})
        wait_s = (unreachable.return_at_ms - self._clock.now_ms()) / 1000
        pause_s = backoff_s(target.attempt, self._random, self._settings.fetching.retry_base_s)
        delay_s = max(wait_s, 0) + pause_s
        again = next_attempt(target, f"robots.txt: {unreachable.detail}"[:FAILED_CHARS_MAX])
        return PageResult(end=Returning(target=again, delay_s=delay_s, why="retries"))

    def end_host_down(self, context: PackContext, target: Target, failures: int) -> PageResult:
        error = f"the host did not answer {failures} times in a row"
        end = End(outcome=Outcome.FAILED, reason=Reason.HOST_DOWN, error=error)
        return self._ended(context, target, end)

    def end_login(self, context: PackContext, target: Target, error: str) -> PageResult:
        end = End(outcome=Outcome.FAILED, reason=Reason.LOGIN, error=error)
        return self._ended(context, target, end)

    def _ended(
        self, context: PackContext, target: Target, end: End, counts: Mapping[str, int] = NOTHING
    ) -> PageResult:
        return context.ended(target, self._recorded(context, target, end), counts=counts)

    def _recorded(self, context: PackContext, target: Target, end: End) -> PageRecord:
        record = page_record(context.crawl.id, target, end, self._clock.now_ms())
        self._kinds.learn(context.crawl, record)
        return record
