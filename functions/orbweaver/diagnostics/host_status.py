"""Status of a crawl at one host: counts, pace, and why the host is not requested now.

Only the first hosts among a crawl's seeds have counters (`Crawl.hosts_counted`, keys
`host.<place>.claimed|done|failed`). The delay is the longer of the crawl's delay and the delay in
the host's robots.txt. A worker can wait longer between requests to a slow host. Only that worker
knows this longer delay.
"""

from __future__ import annotations

from orbweaver.model.crawl import Counts, Crawl, first_hosts
from orbweaver.model.url import canonicalize, host_of, redacted
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import FAILURES_MAX, Host, delay_of, is_down
from orbweaver.politeness.robots_txt import parse


@value_class
class HostTimes:
    """When a host can be requested next, and until when and why it is blocked.

    Times are in ms. `next_slot_ms` None: now. `blocked_until_ms` None: the host is not blocked.
    """

    next_slot_ms: int | None
    blocked_until_ms: int | None
    why: str | None


def times_of(host: Host, now_ms: int) -> HostTimes:
    """Return when a host can be requested. The times are the same for all crawls."""
    next_ms = max(host.tat_ms, host.line_ms)
    blocked = host.blocked_until_ms > now_ms
    return HostTimes(
        next_slot_ms=next_ms if next_ms > now_ms else None,
        blocked_until_ms=host.blocked_until_ms if blocked else None,
        why=why_blocked(host, now_ms) if blocked else None,
    )


@value_class
class HostView:
    """One host of a crawl. Times are in ms. Counts are None if the host is not counted.

    `next_slot_ms` is the time of the next request, None for now. `blocked_until_ms` is the end of a
    block and `why` its reason. `failures` counts consecutive requests without an answer.
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
    """Describe a host of a crawl. `agent` is the user agent if the crawl does not name one."""
    claimed, done, failed = counts_of(crawl, total, host.name)
    queued = None
    if claimed is not None and done is not None:
        # A crawl that has ended requests no further URLs.
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
    """Return the hosts of a crawl that have counters, in the order of the counters."""
    # An erased host leaves an empty entry.
    return tuple(filter(None, crawl.hosts_counted)) or first_hosts(crawl.references)


def counts_of(crawl: Crawl, total: Counts, host: str) -> tuple[int | None, int | None, int | None]:
    """Return a host's numbers of claimed, done and failed URLs. None: the host has no counters."""
    if host not in crawl.hosts_counted:
        return None, None, None
    place = crawl.hosts_counted.index(host)
    claimed, done, failed = (
        total.get(f"host.{place}.{key}", 0) for key in ("claimed", "done", "failed")
    )
    return claimed, done, failed


def why_blocked(host: Host, now_ms: int) -> str:
    if is_down(host, now_ms):
        return f"it did not answer {host.failures} times in a row: its URLs end unasked"
    if host.failures >= FAILURES_MAX:
        return f"it did not answer {host.failures} times in a row"
    return "it answered 429 or 503"


def _robots(crawl: Crawl, host: Host, agent: str) -> tuple[str, float | None]:
    """Describe a host's robots.txt, and return its crawl delay in seconds."""
    entry = host.robots
    if not crawl.obey_robots:
        return "ignored", None
    if entry is None:
        return "not fetched yet", None
    if entry.verdict == "allow":
        return "none", None
    if entry.verdict == "unreachable":
        return f"unreachable: {entry.detail or 'no answer'}", None
    asked_s = parse(entry.body or b"").crawl_delay(identity_of(crawl, host.name, agent).token)
    return "found" if asked_s is None else f"found, Crawl-delay {asked_s:g} s", asked_s


def named(host: str) -> str:
    """Return the host of a typed host name or URL. Raises ValueError if the text has no host."""
    try:
        return host_of(canonicalize(host if "://" in host else f"https://{host}/"))
    except ValueError as error:
        text = f"{redacted(host)!r} is no host: give one like example.com or http://127.0.0.1:8000"
        raise ValueError(text) from error
