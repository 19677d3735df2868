"""Metrics of an invocation, written to standard output in Embedded Metric Format (EMF).

CloudWatch reads them for the price of a log line. Without `billed`, the line has no `_aws`:
CloudWatch creates no metrics, and log queries still work. Source: CloudWatch user guide, "Embedded
metric format specification".
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.model.metrics import NAMESPACE, SERVICE, STACK, VALUES_MAX, Metric, Service, field_of
from orbweaver.model.outcome import Reason

UNITS = (
    ("Ms", MetricUnit.Milliseconds),
    ("Bytes", MetricUnit.Bytes),
    ("bytes", MetricUnit.Bytes),
    ("Percent", MetricUnit.Percent),
)


class EmfMetrics:
    """Metrics of an invocation, with its cost if a meter is given."""

    def __init__(
        self, *, stack: str, service: Service, meter: UsageMeter | None = None, billed: bool = True
    ) -> None:
        self._stack = stack
        self._service = service
        self._meter = meter
        self._billed = billed
        self._totals: defaultdict[Metric, float] = defaultdict(int)
        self._samples: defaultdict[Metric, _Sample] = defaultdict(_Sample)
        self._failures: Counter[Reason] = Counter()

    def add(self, metric: Metric, value: float) -> None:
        self._totals[metric] += value

    def observe(self, metric: Metric, value: float) -> None:
        self._samples[metric].add(value)

    def fail(self, reason: Reason, number: int) -> None:
        self._failures[reason] += number

    def flush(self) -> None:
        """Write the metrics as one line, and reset them."""
        if self._meter is not None and (spent := self._meter.dollars()):
            self.add(Metric.COST_DOLLARS, spent)
        if not (self._totals or self._samples):
            return
        emf = EphemeralMetrics(namespace=NAMESPACE)
        emf.add_dimension(STACK, self._stack)
        emf.add_dimension(SERVICE, self._service)
        for metric, value in sorted(self._totals.items()):
            emf.add_metric(name=metric, unit=unit_of(metric), value=value)
        for metric, sample in sorted(self._samples.items()):
            for value in sample.values:
                emf.add_metric(name=metric, unit=unit_of(metric), value=value)
        for reason, number in sorted(self._failures.items()):
            emf.add_metadata(key=field_of(reason), value=number)
        fields: dict[str, Any] = {**emf.serialize_metric_set()}
        if not self._billed:
            del fields["_aws"]
        line = json.dumps(fields, separators=(",", ":"))
        print(line, flush=True)  # noqa: T201 - standard output is where CloudWatch reads it
        if self._meter is not None:
            self._meter.logged(line)
        self._totals.clear()
        self._samples.clear()
        self._failures.clear()


class _Sample:
    """A sample of up to `VALUES_MAX` values, spread evenly over all observed values."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._step, self._seen = 1, 0

    def add(self, value: float) -> None:
        if self._seen % self._step == 0:
            if len(self.values) == VALUES_MAX:
                del self.values[1::2]
                self._step *= 2
            if self._seen % self._step == 0:
                self.values.append(value)
        self._seen += 1


def unit_of(metric: Metric) -> MetricUnit:
    """Return the unit that the end of the metric's name implies."""
    return next((unit for ending, unit in UNITS if metric.endswith(ending)), MetricUnit.Count)
