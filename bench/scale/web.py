"""Models the web: hosts of all sizes, their responses, latencies and early requests."""

from __future__ import annotations

from math import exp
from random import Random
from typing import TYPE_CHECKING

from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.scale.scenario import Web as Plan

SLOW_FACTOR = 20
STRICT_SHARE = 0.02
BYTES_A_MS = 2_000
TIMEOUTS_SHARE = 0.1  # as a share of the responses with status 500
REFUSED_SHARE = 0.5  # share of dead hosts that refuse connections; the others never respond
NO_HEADERS: dict[str, str] = {}
OK, MISSING, BUSY, BROKEN = 200, 404, 429, 500


class Host:
    """A host: its pages, numbers of found and finished ones, and the time of its last request."""

    __slots__ = (
        "asked_at_ms", "asks", "base_ms", "dead_from_ms", "ended", "found", "name", "pages",
        "refuses", "strict", "too_soon",
    )  # fmt: skip

    def __init__(self, name: str, pages: int, base_ms: float) -> None:
        self.name = name
        self.pages = pages
        self.base_ms = base_ms
        self.found = 1
        self.ended = bytearray(pages)
        self.dead_from_ms: int | None = None
        self.refuses = False
        self.strict = False
        self.asked_at_ms = -(10**9)
        self.asks = 0
        self.too_soon = 0


class Web:
    """All hosts."""

    def __init__(self, plan: Plan, seed: int, minutes: float) -> None:
        self.plan = plan
        self.random = Random(f"{seed}/web")
        self.hosts: dict[str, Host] = {}
        sizes = list(_sizes(plan))
        self.random.shuffle(sizes)
        for place, pages in enumerate(sizes):
            host = self._host(f"http://h{place}", pages, minutes)
            self.hosts[host.name] = host

    def _host(self, name: str, pages: int, minutes: float) -> Host:
        random, plan = self.random, self.plan
        base_ms = plan.latency_ms * exp(random.gauss(0, plan.latency_spread))
        host = Host(name, pages, base_ms)
        chance = random.random()
        if chance < plan.slow_share:
            host.base_ms *= SLOW_FACTOR
        elif chance < plan.slow_share + plan.dead_share:
            alive_ms = round(random.random() * minutes * 60_000)
            host.dead_from_ms = 0 if random.random() < 0.5 else alive_ms
            host.refuses = random.random() < REFUSED_SHARE
        host.strict = random.random() < plan.strict_share
        return host

    def ask(
        self, host: Host, now_ms: int, delay_ms: int, total_ms: int
    ) -> tuple[Response | Failure, int]:
        """Request a host. Return its response and its duration."""
        if now_ms - host.asked_at_ms < delay_ms:
            host.too_soon += 1
        host.asked_at_ms = now_ms
        host.asks += 1
        if host.dead_from_ms is not None and now_ms >= host.dead_from_ms:
            return self._silence(host, total_ms)
        plan, random = self.plan, self.random
        took_ms = host.base_ms * exp(random.gauss(0, plan.latency_spread / 2))
        status = self._status(host)
        if status != OK:
            return _answer(status, took_ms)
        size = round(plan.body_bytes * exp(random.gauss(0, 1)))
        late = random.random() < plan.error_share * TIMEOUTS_SHARE
        if late or took_ms + size / BYTES_A_MS > total_ms:
            return Failure(reason=Reason.TIMEOUT, detail="", latency_ms=total_ms), total_ms
        answer = Response(
            status=OK, headers=NO_HEADERS, body=None, latency_ms=round(took_ms), received=size
        )
        return answer, round(took_ms + size / BYTES_A_MS)

    def _status(self, host: Host) -> int:
        plan, random = self.plan, self.random
        if host.strict and random.random() < STRICT_SHARE:
            return BUSY
        chance = random.random()
        if chance < plan.error_share:
            return BROKEN
        # The first page always exists, because a host without it would have no pages.
        if chance < plan.error_share + plan.missing_share and host.found > 1:
            return MISSING
        return OK

    def _silence(self, host: Host, total_ms: int) -> tuple[Failure, int]:
        if host.refuses:
            return Failure(reason=Reason.CONNECT, detail="refused", latency_ms=2), 2
        return Failure(reason=Reason.TIMEOUT, detail="", latency_ms=total_ms), total_ms

    def links_from(self, host: Host) -> range:
        """Return the numbers of new pages that a page links to."""
        left = host.pages - host.found
        if not left:
            return range(0)
        expected = self.plan.links * left / host.pages
        count = min(left, int(expected + self.random.random()))
        host.found += count
        return range(host.found - count, host.found)


def _answer(status: int, took_ms: float) -> tuple[Response, int]:
    took = round(took_ms)
    return Response(status=status, headers=NO_HEADERS, body=b"", latency_ms=took), took


def _sizes(plan: Plan) -> Iterator[int]:
    """Yield the number of pages of each host, at least one."""
    rest = plan.pages * (1 - plan.giant)
    hosts = plan.hosts - (plan.giant > 0)
    if plan.giant:
        yield round(plan.pages * plan.giant)
    weights = [(place + 1) ** -plan.zipf for place in range(hosts)]
    total = sum(weights)
    for weight in weights:
        yield max(1, round(rest * weight / total))
