"""A fetcher that records latency metrics."""

from __future__ import annotations

from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.metrics import Metric
from orbweaver.model.ports import Fetcher, Metrics


class TimedFetcher:
    """Records the latency of responses. Failures are counted elsewhere, by reason."""

    def __init__(self, fetcher: Fetcher, metrics: Metrics) -> None:
        self._fetcher = fetcher
        self._metrics = metrics

    async def fetch(self, request: Request) -> Response | Failure:
        answer = await self._fetcher.fetch(request)
        if isinstance(answer, Response):
            self._metrics.observe(Metric.FETCH_MS, answer.latency_ms)
        return answer
