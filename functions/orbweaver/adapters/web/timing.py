"""A fetcher that records latency metrics and lists requests without an answer."""

from __future__ import annotations

from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Clock, Fetcher, Metrics


class TimedFetcher:
    """Records the latency of responses. Failures are counted elsewhere, by reason.

    `unanswered` maps the URLs of requests without a response to their start times, in ms.
    """

    def __init__(self, fetcher: Fetcher, metrics: Metrics, clock: Clock | None = None) -> None:
        self._fetcher = fetcher
        self._metrics = metrics
        self._clock = clock
        self.unanswered: dict[str, int] = {}

    async def fetch(self, request: Request) -> Response | Failure:
        if self._clock is not None:
            self.unanswered[request.url] = self._clock.now_ms()
        try:
            answer = await self._fetcher.fetch(request)
        finally:
            self.unanswered.pop(request.url, None)
        if isinstance(answer, Response):
            self._metrics.observe(Metric.FETCH_MS, answer.latency_ms)
        return answer
