"""The status of a crawl at one host: counts, pace, and why no worker asks there now.

- Counters exist for the first hosts of a crawl's references (`Crawl.hosts_counted`, keys
  `host.<place>.claimed|done|failed`); others are not counted.
- The delay is the longest that the crawl and the host's robots.txt ask for. A worker may go slower
  for a host that is slow; that is known to it alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbweaver.model.crawl import Counts, Crawl, first_hosts
from orbweaver.model.url import canonicalize, host_of, redacted
from orbweaver.model.user_agent import identity_of
from orbweaver.politeness.host_schedule import FAILURES_MAX, Host, delay_of, is_down
from orbweaver.politeness.robots_txt import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """When a host may be asked next, None for now; until when and why it is left alone, if it is.

    Moments in ms.
    """

    next_slot_ms: int | None
    blocked_until_ms: int | None
    why: str | None


def times_of(host: Host, now_ms: int) -> HostTimes:
    """Say when a host may be asked, for all crawls alike."""
    next_ms = max(host.tat_ms, host.line_ms)
    blocked = host.blocked_until_ms > now_ms
    return HostTimes(
        next_slot_ms=next_ms if next_ms > now_ms else None,
        blocked_until_ms=host.blocked_until_ms if blocked else None,
        why=why_blocked(host, now_ms) if blocked else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One host of a crawl; counts are None where the books have none, moments in ms.

    `next_slot_ms` is when it may be asked next, None for now; `blocked_until_ms` until when it is
    left alone, and `why` it is; `failures` counts requests in a row without an answer.
    """

    host: str
    claimed: int | None = None
    done: int | None = None
    failed: int | None = None
    queued: int | None = None
    delay_ms: int = 0
    next_slot_ms: int | None = None
    blocked_until_ms: int | None = None
    why: str | None = None
    down: bool = False
    failures: int = 0
    robots: str = ""


def host_view(crawl: Crawl, total: Counts, host: Host, now_ms: int, agent: str) -> HostView:
    """Put together what is known of a host; `agent` asks where the crawl names none."""
    claimed, done, failed = counts_of(crawl, total, host.name)
    queued = None
    if claimed is not None and done is not None:
        # What is left of a crawl that has ended is not asked for any more.
        queued = 0 if crawl.finished_at_ms is not None else max(0, claimed - done)
    times = times_of(host, now_ms)
    robots, asked_s = _robots(crawl, host, agent)
    return HostView(
        host=host.name,
        claimed=claimed,
        done=done,
        failed=failed,
        queued=queued,
        delay_ms=delay_of(crawl.delay_ms, asked_s),
        next_slot_ms=times.next_slot_ms,
        blocked_until_ms=times.blocked_until_ms,
        why=times.why,
        down=is_down(host, now_ms),
        failures=host.failures,
        robots=robots,
    )


def hosts_of(crawl: Crawl) -> tuple[str, ...]:
    """Name the hosts that are counted, in the order of their numbers."""
    # Of one that was forgotten there is only the place.
    return tuple(filter(None, crawl.hosts_counted)) or first_hosts(crawl.references)


def counts_of(crawl: Crawl, total: Counts, host: str) -> tuple[int | None, int | None, int | None]:
    """Read what a crawl's counters hold of a host: claimed, done, failed; None where nothing is."""
    if host not in crawl.hosts_counted:
        return None, None, None
    place = crawl.hosts_counted.index(host)
    claimed, done, failed = (
        total.get(f"host.{place}.{key}", 0) for key in ("claimed", "done", "failed")
    )
    return claimed, done, failed


def why_blocked(host: Host, now_ms: int) -> str:
    """Say why a host is left alone for now."""
    if is_down(host, now_ms):
        return f"it did not answer {host.failures} times in a row: its URLs end unasked"
    if host.failures >= FAILURES_MAX:
        return f"it did not answer {host.failures} times in a row"
    return "it asked for it (429 or 503)"


def _robots(crawl: Crawl, host: Host, agent: str) -> tuple[str, float | None]:
    """Say what is known of a host's robots.txt, and which delay it asks for."""
    entry = host.robots
    if not crawl.obey_robots:
        return "ignored", None
    if entry is None:
        return "not asked for yet", None
    if entry.verdict == "allow":
        return "none", None
    if entry.verdict == "unreachable":
        return f"could not be had: {entry.detail or 'no answer'}", None
    asked_s = parse(entry.body or b"").crawl_delay(identity_of(crawl, host.name, agent).token)
    return "rules" if asked_s is None else f"rules, Crawl-delay {asked_s:g}", asked_s


def named(host: str) -> str:
    """Return the host that a person means by a name or a URL; ValueError if there is none."""
    try:
        return host_of(canonicalize(host if "://" in host else f"https://{host}/"))
    except ValueError as error:
        text = f"{redacted(host)!r} is no host: give one like example.com or http://127.0.0.1:8000"
        raise ValueError(text) from error
