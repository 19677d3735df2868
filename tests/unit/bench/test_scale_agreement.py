"""The scale model agrees with the real worker on small crawls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bench.scale.actual import counts_of
from bench.scale.model import Model
from bench.scale.scenario import Fleet, Scenario, Web

# Only hosts and slots take time, and there is no randomness.
CERTAIN = Web(
    hosts=20, pages=500, zipf=0.8, latency_spread=0.0, latency_ms=300, slow_share=0.0,
    dead_share=0.0, strict_share=0.0, error_share=0.0, missing_share=0.0, links=0,
)  # fmt: skip
TIMELESS = Fleet(
    workers_max=4, workers_first=4, page_cpu_ms=0, pack_cpu_ms=0, cold_start_ms=0, recall_ms=0,
    settle_ms=0, transaction_ms=0,
)  # fmt: skip
PLAN = Scenario(web=CERTAIN, fleet=TIMELESS, known=1.0, minutes=600)
PLANS = {
    "hosts of all sizes": PLAN,
    "one host has half": replace(PLAN, web=replace(CERTAIN, giant=0.5, pages=300)),
    "more hosts than places": replace(PLAN, web=replace(CERTAIN, hosts=300, pages=1_500)),
    "a delay of seconds": replace(PLAN, web=replace(CERTAIN, hosts=1, pages=60), delay_ms=4_000),
    "slower than their delay": replace(PLAN, web=replace(CERTAIN, latency_ms=1_700, pages=200)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANS)
def test_model_agrees_with_worker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS[name]
    result = Model(plan).run()
    assert result.finished_ms is not None
    modelled = {**result.books.counts, "end_ms": result.finished_ms}
    real: Mapping[str, int] = counts_of(plan, monkeypatch)
    assert modelled["ended"] == real["ended"]
    assert modelled["requests"] == pytest.approx(real["requests"], rel=0.05)
    # The order of two packs of a host is random, which matters with few packs.
    for what in ("deliveries", "commits"):
        assert modelled[what] == pytest.approx(real[what], rel=0.2), what
    # A pack that got no slot early is sent again, once.
    assert modelled.get("put off", 0) == real["put off"]
    assert modelled["taken on"] == pytest.approx(real["taken on"], rel=0.3, abs=2)
    assert modelled["end_ms"] == pytest.approx(real["end_ms"], rel=0.2)
