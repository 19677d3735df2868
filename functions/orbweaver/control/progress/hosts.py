"""Describe each host of a crawl in a row: queued URLs, delay, time of the next request.

For a store, this module also describes URLs that delay a crawl. In a stack, only workers can read
the messages in SQS.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from orbweaver.control.crawl_control import Status
from orbweaver.diagnostics.host_status import counts_of, hosts_of
from orbweaver.model import amounts
from orbweaver.model.backoff import ATTEMPTS_MAX, attempts_of
from orbweaver.model.crawl import HOSTS_COUNTED_MAX, Crawl, State
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.host_access import retries_of, timeout_of
from orbweaver.model.http_exchange import IDLE_S
from orbweaver.model.outcome import Outcome
from orbweaver.model.settings import USER_AGENT
from orbweaver.model.url import host_of
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import FAILURES_MAX, Host, delay_of, is_down, spacing_ms
from orbweaver.politeness.robots_txt import parse

if TYPE_CHECKING:
    from orbweaver.model.target import Target


# A host counts as waiting if its next slot (time of a request) is at least this far away.
WAITING_MS_MIN = 2_000
# A request without a response is shown from this age on.
SILENT_MS_MIN = 5_000
URL_CHARS_MAX = 80


class HostAvailability(StrEnum):
    """Whether a host can be requested, is blocked for a while, or does not answer any more."""

    OPEN = "open"
    BLOCKED = "blocked"
    DOWN = "down"


@value_class
class HostRow:
    """One host of a crawl. Counts are None if the host has no counters.

    `wait_ms` is the time until the next slot or the end of a block, and `why` the reason for the
    block.
    """

    name: str
    claimed: int | None = None
    done: int | None = None
    failed: int | None = None
    delay_ms: int = 0
    standing: HostAvailability = HostAvailability.OPEN
    wait_ms: int = 0
    why: str = ""
    # Why the host's robots.txt could not be fetched, or "".
    no_robots: str = ""

    @property
    def site(self) -> str:
        return self.name.removeprefix("https://")

    @property
    def is_blocked(self) -> bool:
        return self.standing is not HostAvailability.OPEN

    @property
    def waits(self) -> bool:
        return self.is_blocked or self.wait_ms >= WAITING_MS_MIN

    @property
    def queued(self) -> int | None:
        if self.claimed is None or self.done is None:
            return None
        return max(0, self.claimed - self.done)

    @property
    def bound_ms(self) -> int:
        """Minimum time for the host's queued URLs, because of its delay and a block."""
        if self.standing is HostAvailability.DOWN or not self.queued:
            return 0
        blocked_ms = self.wait_ms if self.standing is HostAvailability.BLOCKED else 0
        return blocked_ms + self.queued * spacing_ms(self.delay_ms)

    @property
    def words(self) -> str:
        """When the host gets its next request, and why not now, as text."""
        wait = amounts.roughly(self.wait_ms / 1000)
        if self.is_blocked:
            return f"{self.standing} {wait}: {self.why}"
        if self.no_robots:
            return f"no robots.txt: {self.no_robots}"
        if self.waits:
            return f"busy: next {wait} already scheduled"
        return "now"


def rows_of(status: Status, hosts: tuple[Host, ...]) -> tuple[HostRow, ...]:
    seen = {host.name: host for host in hosts}
    return tuple(_row(status, seen.get(name, Host(name=name))) for name in hosts_of(status.crawl))


def _row(status: Status, host: Host) -> HostRow:
    crawl, now_ms = status.crawl, status.at_ms
    claimed, done, failed = _counts(status, host.name)
    standing, until_ms, why = HostAvailability.OPEN, max(host.tat_ms, host.line_ms), ""
    if host.blocked_until_ms > now_ms:
        standing = HostAvailability.DOWN if is_down(host, now_ms) else HostAvailability.BLOCKED
        until_ms, why = host.blocked_until_ms, _why(host)
    over = crawl.state is State.FINISHED
    return HostRow(
        name=host.name,
        claimed=claimed,
        done=done,
        failed=failed,
        delay_ms=_delay_ms(crawl, host),
        standing=HostAvailability.OPEN if over else standing,
        wait_ms=0 if over else max(0, until_ms - now_ms),
        why=why,
        no_robots=_no_robots(crawl, host),
    )


def _no_robots(crawl: Crawl, host: Host) -> str:
    entry = host.robots
    if not crawl.obey_robots or entry is None or entry.verdict != "unreachable":
        return ""
    return (entry.detail or "no answer") if entry.fetched_at_ms >= crawl.started_at_ms else ""


# Counters exist for the first hosts of a crawl's seeds (`host.<i>.claimed`, `.done`, `.failed`).
# For a crawl of a single host, the crawl's counters are the host's.
def _counts(status: Status, host: str) -> tuple[int | None, int | None, int | None]:
    total, crawl = status.counters.total, status.crawl
    if any(key.startswith("host.") for key in total):
        return counts_of(crawl, total, host)
    alone = len(hosts_of(crawl)) == 1 and crawl.scope in (Scope.HOST, Scope.PREFIX)
    if alone:
        return status.counters.claimed, status.counters.done, total.get(Outcome.FAILED, 0)
    return (None, None, None) if status.counters.claimed else (0, 0, 0)


def _delay_ms(crawl: Crawl, host: Host) -> int:
    """Return the minimum delay between requests. Workers can wait longer for slow hosts."""
    # Rules can set other delays for some URLs. Only the shortest delay gives a lower bound.
    own_ms = (rule.delay_ms for rule in crawl.rules if rule.delay_ms is not None)
    asked_s = None
    if crawl.obey_robots and host.robots is not None and host.robots.body:
        token = identity_of(crawl, host.name, USER_AGENT).token
        asked_s = _asked_s(host.robots.body, token)
    return delay_of(min((crawl.delay_ms, *own_ms)), asked_s)


# Cached, because the same robots.txt is parsed every second.
@lru_cache(maxsize=4 * HOSTS_COUNTED_MAX)
def _asked_s(robots: bytes, token: str) -> float | None:
    return parse(robots).crawl_delay(token)


def _why(host: Host) -> str:
    if host.failures >= FAILURES_MAX:
        return f"no answer x{host.failures}"
    return f"429 or 503 x{max(1, host.strikes)}"


@value_class
class QueuedUrl:
    """A URL without an outcome.

    `at_ms` is the time when it is due or, if `in_work`, when its request started.
    """

    target: Target
    at_ms: int
    in_work: bool = False


def words_of(queued: Sequence[QueuedUrl], now_ms: int, crawl: Crawl, request_s: float) -> list[str]:
    """Describe the next retry, and the longest request without a response.

    `request_s` is the default time limit of a request in seconds.
    """
    said = []
    retries = sorted(
        (one for one in queued if one.target.attempt > 1 and not one.in_work),
        key=lambda one: one.at_ms,
    )
    if retries:
        said.append(_retry(retries[0], now_ms) + _more(len(retries) - 1))
    silent = [one for one in queued if one.in_work and now_ms - one.at_ms >= SILENT_MS_MIN]
    if silent:
        first = min(silent, key=lambda one: one.at_ms)
        said.append(_silent(first, now_ms, crawl, request_s) + _more(len(silent) - 1))
    return said


def _retry(one: QueuedUrl, now_ms: int) -> str:
    why = f" ({one.target.failed})" if one.target.failed else ""
    left_s = (one.at_ms - now_ms) / 1000
    when = f"in {amounts.roughly(left_s)}" if left_s > 0 else "now"
    return f"waiting to retry {_short(one.target.url)}{why}, attempt {one.target.attempt} {when}"


def _silent(one: QueuedUrl, now_ms: int, crawl: Crawl, request_s: float) -> str:
    request_s, idle_s = timeout_of(crawl, host_of(one.target.url), request_s)
    waited_s = (now_ms - one.at_ms) / 1000
    said = f"no answer from {_short(one.target.url)} for {amounts.roughly(waited_s)}"
    if waited_s >= request_s:
        return said
    said += f"; given up after {idle_s or IDLE_S:g} s without data or {request_s:g} s in total"
    most = attempts_of(ATTEMPTS_MAX, retries_of(crawl, one.target.url))
    return said if one.target.attempt >= most else f"{said}, then retried"


def _more(number: int) -> str:
    return f"; {number:,} more" if number else ""


def _short(url: str) -> str:
    return url if len(url) <= URL_CHARS_MAX else f"{url[: URL_CHARS_MAX - 1]}…"
