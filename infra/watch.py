"""What one alarm is, and the one of a stack that extracts."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

NAMESPACE = "Orbweaver"
PERIOD = Duration.minutes(5)
# What a share is taken of, at least.
ITEMS_MIN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One alarm: raised while the metric is above the limit, this many periods long."""

    name: str
    metric: cloudwatch.IMetric
    above: float
    periods: int
    meaning: str


def watch_of_items(percent: int) -> Watch:
    """Describe the alarm of a stack that extracts: a template has changed, or a rule is wrong."""
    found = {
        name: cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=f"Items{name.title()}",
            dimensions_map={"service": "worker"},
            statistic="Sum",
            period=PERIOD,
        )
        for name in ("valid", "invalid")
    }
    both = "(FILL(valid, 0) + FILL(invalid, 0))"
    share = cloudwatch.MathExpression(
        # Of a handful each one would be a large share.
        expression=f"IF({both} >= {ITEMS_MIN}, 100 * FILL(invalid, 0) / {both}, 0)",
        using_metrics={**found},
        period=PERIOD,
        label="invalid items (%)",
    )
    meaning = "Items do not fit their rules: `problems` in the table invalid_items say why"
    return Watch(name="InvalidItems", metric=share, above=percent, periods=1, meaning=meaning)
