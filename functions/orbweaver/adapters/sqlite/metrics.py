"""Metrics of a service, summed in the store over all its processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.model.metrics import Metric, Service, field_of

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.store import SqliteStore
    from orbweaver.model.outcome import Reason


@dataclass(slots=True)
class MetricSum:
    """The number of a metric's values, and their sum."""

    number: int = 0
    total: float = 0


class SqliteMetrics:
    """Implements `Metrics` for one service."""

    def __init__(self, store: SqliteStore, service: Service) -> None:
        self._store = store
        self._service = service
        self._sums: defaultdict[str, MetricSum] = defaultdict(MetricSum)

    def add(self, metric: Metric, value: float) -> None:
        self._add(metric, value)

    def observe(self, metric: Metric, value: float) -> None:
        self._add(metric, value)

    def fail(self, reason: Reason, number: int) -> None:
        self._add(field_of(reason), number)

    def flush(self) -> None:
        if not self._sums:
            return
        rows = [
            (self._service.value, str(metric), one.number, one.total)
            for metric, one in self._sums.items()
        ]
        with self._store.writing() as db:
            db.executemany(
                "INSERT INTO metrics VALUES (?, ?, ?, ?) ON CONFLICT (service, metric) DO UPDATE"
                " SET number = number + excluded.number, total = total + excluded.total",
                rows,
            )
        self._sums.clear()

    def _add(self, metric: str, value: float) -> None:
        one = self._sums[metric]
        one.number += 1
        one.total += value


def read_metrics(store: SqliteStore) -> Mapping[tuple[str, str], MetricSum]:
    rows = store.rows("SELECT service, metric, number, total FROM metrics")
    return {(service, metric): MetricSum(number, total) for service, metric, number, total in rows}
