"""Count packs that wait for a host, and define the work of a pack at one host."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from orbweaver.budget.prices import second, wait_ms_most
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.worker.pack_context import PackContext


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """The response to a request, the time of the request, and counts for the crawl."""

    answer: Response | Failure
    at_ms: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostVisit:
    """Work of a pack at one host. `queue` has the URLs that are not requested yet."""

    host: str
    context: PackContext
    result: PackResult
    queue: deque[Target] = field(default_factory=deque)


class WaitingVisits:
    """Counts packs that wait for a host at the same time. They share the cost of the function."""

    def __init__(self, settings: Settings) -> None:
        self._visits = 0
        self._a_second = second(
            memory_mb=settings.function.memory_mb, architecture=settings.function.architecture
        )
        self._billed = settings.function.waits_billed == "yes"

    @contextmanager
    def joined(self) -> Iterator[None]:
        self._visits += 1
        try:
            yield
        finally:
            self._visits -= 1

    def wait_ms(self) -> float:
        """Return the longest wait in ms that costs less than requeueing the URLs."""
        if not self._billed:
            return math.inf
        return wait_ms_most(a_second=self._a_second, visits=max(1, self._visits))
