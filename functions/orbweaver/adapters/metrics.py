"""Counters of an invocation as one line of Embedded Metric Format on standard output.

CloudWatch makes metrics of such a line, at the price of the log line: PutMetricData would cost a
call. The service is the only dimension; one per host would cost $0.30 a month for every host.
The unit of a metric is the last word of its name.

Source: CloudWatch user guide, "Embedded metric format specification".
"""

from __future__ import annotations

from collections import defaultdict

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

NAMESPACE = "Orbweaver"
UNITS = (
    ("Ms", MetricUnit.Milliseconds),
    ("_ms", MetricUnit.Milliseconds),
    ("Bytes", MetricUnit.Bytes),
    ("bytes", MetricUnit.Bytes),
)


class EmfMetrics:
    """Counters of an invocation."""

    def __init__(self, *, service: str) -> None:
        self._service = service
        self._totals: defaultdict[str, float] = defaultdict(float)

    def add(self, name: str, value: float) -> None:
        """See the port."""
        self._totals[name] += value

    def flush(self) -> None:
        """Write the counters out and start anew; called once at the end of an invocation."""
        if not self._totals:
            return
        emf = EphemeralMetrics(namespace=NAMESPACE, service=self._service)
        for name, value in sorted(self._totals.items()):
            emf.add_metric(name=name, unit=unit_of(name), value=value)
        emf.flush_metrics()
        self._totals.clear()


def unit_of(name: str) -> MetricUnit:
    """Tell a metric's unit by how its name ends."""
    return next((unit for ending, unit in UNITS if name.endswith(ending)), MetricUnit.Count)
