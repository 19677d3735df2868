"""Cache the robots.txt of hosts for all workers. The files are requested in slots, like pages.

By RFC 9309, the body of a 2xx response is parsed, and a 4xx response allows every URL. A 429
(busy), a 5xx and an unreachable host forbid every URL.
"""

from __future__ import annotations

import asyncio
import codecs
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from orbweaver.fetching.response_verdict import (
    CLIENT_ERROR_MIN,
    PARTIAL_CONTENT,
    REDIRECT_MIN,
    REDIRECTS,
    SERVER_ERROR_MIN,
    SUCCESS_MIN,
)
from orbweaver.model.backoff import TOO_MANY_REQUESTS
from orbweaver.model.crawl import Crawl
from orbweaver.model.host_access import timeout_of
from orbweaver.model.http_exchange import Request, Response, location_of, one_line
from orbweaver.model.named_origins import NO_ORIGINS
from orbweaver.model.outcome import Reason
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.settings import Settings
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import RobotsEntry
from orbweaver.politeness.pacer import HostRequests, Pacer
from orbweaver.politeness.robots_escapes import READINGS
from orbweaver.politeness.robots_txt import BODY_BYTES_MAX, Robots, parse, whole_lines

if TYPE_CHECKING:
    from orbweaver.politeness.ports import RobotsStore

FRESH_MS = 24 * 3_600_000
UNREACHABLE_FRESH_MS = 5_000
REDIRECTS_MAX = 5
# One byte more than the part that is parsed. It shows whether the last line of that part is
# complete.
BYTES_MAX = BODY_BYTES_MAX + 1
PARSED_MAX = 2_000
# Total size of the files that are kept in parsed form, which takes up to forty times as much
# memory.
PARSED_BYTES_MAX = 3 * 2**20
# Codings that are decoded (`adapters/web/decompression.py`). Bytes in other codings are not
# changed.
_CODINGS = frozenset({"gzip", "deflate", "br", "zstd"})
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Larger files are parsed in a thread. This size takes 8 ms.
INLINE_BYTES_MAX = 32 * 1024


@value_class
class Deferred:
    """There was no slot to request robots.txt. URLs must be requeued until `return_at_ms`."""

    return_at_ms: int


@value_class
class RobotsUnreachable:
    """The rules of a host are unknown, so no URL is allowed until `return_at_ms`.

    `reason` is the cause if there was no response.
    """

    return_at_ms: int
    detail: str
    reason: str | None = None


Ruling: TypeAlias = Robots | Deferred | RobotsUnreachable | None


class RobotsKeeper:
    """Provides the robots.txt of hosts, with one request per host at a time in this container."""

    def __init__(
        self, *, fetcher: Fetcher, hosts: RobotsStore, clock: Clock, settings: Settings
    ) -> None:
        self._fetcher = fetcher
        self._hosts = hosts
        self._clock = clock
        self._settings = settings
        # A lock exists only while a task waits for a host.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._parsed: dict[tuple[str, int], tuple[Robots, int]] = {}
        self._parsed_bytes = 0

    async def rules_for(
        self, host: str, crawl: Crawl, until_ms: int, *, named: frozenset[str] = NO_ORIGINS
    ) -> Ruling:
        """Return the rules of a host, or None if everything is allowed.

        A request of robots.txt must be sent by `until_ms`. `named` are the non-public origins that
        may be requested, because a user named them.
        """
        async with self._locks.setdefault(host, asyncio.Lock()):
            state = await self._hosts.read_host(host)
            now_ms = self._clock.now_ms()
            if state.blocked_until_ms > now_ms:
                return Deferred(return_at_ms=state.blocked_until_ms)
            entry = state.robots
            if entry is None or not _fresh(entry, now_ms):
                got = await self._ask(host, crawl, until_ms, named)
                if isinstance(got, Deferred | RobotsUnreachable):
                    return got
                await self._hosts.keep_robots(host, got)
                entry = got
            return await self._rules(host, entry, crawl)

    async def _rules(
        self, host: str, entry: RobotsEntry, crawl: Crawl
    ) -> Robots | RobotsUnreachable | None:
        match entry.verdict:
            case "allow":
                return None
            case "unreachable":
                return RobotsUnreachable(
                    return_at_ms=entry.fetched_at_ms + UNREACHABLE_FRESH_MS,
                    detail=entry.detail or "unreachable",
                    reason=entry.reason,
                )
        key, body = (host, entry.fetched_at_ms), entry.body or b""
        if key not in self._parsed:
            token = identity_of(crawl, host, self._settings.fetching.user_agent).token
            if len(body) <= INLINE_BYTES_MAX:
                robots = _parsed(body, token)
            else:  # up to 250 ms, during which other tasks run
                robots = await asyncio.to_thread(_parsed, body, token)
            rules = robots.rules_of(token)
            self._keep(key, robots, len(body) * (READINGS if rules.escaped else 1))
        return self._parsed[key][0]

    def _keep(self, key: tuple[str, int], robots: Robots, size_bytes: int) -> None:
        """Keep a parsed file in memory, and drop the oldest files if memory is short."""
        self._parsed[key] = (robots, size_bytes)
        self._parsed_bytes += size_bytes
        while len(self._parsed) > PARSED_MAX or self._parsed_bytes > PARSED_BYTES_MAX:
            _, left_bytes = self._parsed.pop(next(iter(self._parsed)))
            self._parsed_bytes -= left_bytes

    async def _ask(
        self, host: str, crawl: Crawl, until_ms: int, named: frozenset[str]
    ) -> RobotsEntry | Deferred | RobotsUnreachable:
        url = f"{host}/robots.txt"
        for _ in range(REDIRECTS_MAX + 1):
            requests = HostRequests(host_of(url), self._hosts, self._clock)
            pacer = Pacer(requests, delay_ms=crawl.delay_ms, until_ms=until_ms)
            return_at_ms = await pacer.wait_for_slot(1)
            if return_at_ms is not None:
                return Deferred(return_at_ms=return_at_ms)
            request = self._request(crawl, url, named)
            answer = await self._fetcher.fetch(replace(request, sent=pacer.note_sent))
            await pacer.release(if_late=True)
            now_ms = self._clock.now_ms()
            if not isinstance(answer, Response) and answer.later_s is not None:
                return Deferred(return_at_ms=now_ms + round(answer.later_s * 1000))
            # A forbidden address is not cached, because it concerns this crawl only.
            if not isinstance(answer, Response) and answer.reason is Reason.ADDRESS:
                return RobotsUnreachable(
                    return_at_ms=now_ms + UNREACHABLE_FRESH_MS,
                    detail=answer.detail,
                    reason=answer.reason,
                )
            if not isinstance(answer, Response):
                return RobotsEntry(
                    fetched_at_ms=now_ms,
                    verdict="unreachable",
                    detail=answer.detail,
                    reason=answer.reason,
                )
            location = location_of(answer)
            if answer.status not in REDIRECTS or not location:
                return _entry(answer, now_ms)
            try:
                url = canonicalize(location, url)
            except ValueError:
                break
        # More than five redirects, or an invalid one: RFC 9309 2.3.1.2 permits treating it as
        # absent.
        return RobotsEntry(fetched_at_ms=self._clock.now_ms(), verdict="allow")

    def _request(self, crawl: Crawl, url: str, named: frozenset[str]) -> Request:
        identity = identity_of(crawl, host_of(url), self._settings.fetching.user_agent)
        total_s, idle_s = timeout_of(crawl, host_of(url), self._settings.fetching.fetch_total_s)
        return Request(
            url=url,
            user_agent=identity.agent,
            headers=identity.headers,
            direct=not crawl.proxied,
            trust=identity.trust,
            accept=frozenset({"*/*"}),
            body_bytes_max=BYTES_MAX,
            total_s=total_s,
            idle_s=idle_s,
            named=named,
        )


def _parsed(body: bytes, token: str) -> Robots:
    robots = parse(body)
    robots.rules_of(token)
    return robots


def _fresh(entry: RobotsEntry, now_ms: int) -> bool:
    """Return True if a stored robots.txt is recent, and not from the future (clock change)."""
    limit_ms = UNREACHABLE_FRESH_MS if entry.verdict == "unreachable" else FRESH_MS
    return -UNREACHABLE_FRESH_MS <= now_ms - entry.fetched_at_ms < limit_ms


def _as_far_as_known(body: bytes) -> bytes:
    """Remove the last line of an incomplete body if it is an Allow that may be cut off."""
    # If the body is not too long, its last line may be complete, so a Disallow is kept.
    whole = whole_lines(body)
    too_long = len(body) > BODY_BYTES_MAX
    allows = body[len(whole) :].strip().lower().startswith(b"allow")
    return whole if too_long or allows else body


def _unread(answer: Response, body: bytes) -> str | None:
    """Return the content coding if it is unknown and the body is no text, else None."""
    named = answer.headers.get("content-encoding", "").lower()
    names = {name.strip().removeprefix("x-") for name in named.split(",")}
    if not named or names & _CODINGS:
        return None
    try:
        body.decode("utf-16" if body.startswith(_UTF16_MARKS) else "utf-8")
    except UnicodeDecodeError:
        return one_line(named)[:40]
    return None


def _entry(answer: Response, now_ms: int) -> RobotsEntry:
    if SUCCESS_MIN <= answer.status < REDIRECT_MIN:
        body = answer.body or b""
        if (coding := _unread(answer, body)) is not None:
            detail = f"its content coding is not known: {coding}"
            return RobotsEntry(fetched_at_ms=now_ms, verdict="unreachable", detail=detail)
        if answer.truncated or answer.status == PARTIAL_CONTENT:
            body = _as_far_as_known(body)
        return RobotsEntry(fetched_at_ms=now_ms, body=body)
    if CLIENT_ERROR_MIN <= answer.status < SERVER_ERROR_MIN and answer.status != TOO_MANY_REQUESTS:
        return RobotsEntry(fetched_at_ms=now_ms, verdict="allow")
    return RobotsEntry(fetched_at_ms=now_ms, verdict="unreachable", detail=f"HTTP {answer.status}")
