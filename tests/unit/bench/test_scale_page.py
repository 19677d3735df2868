"""The generated page about scale: tables and AWS limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.scale.__main__ import TABLE_UNITS, loads, render
from bench.scale.experiments import QUESTIONS

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
FIGURES = EVIDENCE / "scale" / "figures.json"
# Billing units per page of an example crawl.
TOOK: dict[str, Any] = {
    "writes": {"urls": 1.0, "pages": 1.05, "packs": 0.9, "hosts": 0.9, "crawls": 0.1},
    "reads": {"urls": 5.0, "pages": 0.0, "packs": 0.8, "hosts": 0.8, "crawls": 0.1},
    "units": {"s3_put": 0.01, "invocations": 0.01},
    "transactions_a_page": 0.02,
    "host_writes_most": 5,
}


def test_scale_page_is_generated_from_figures(tmp_path: Path) -> None:
    figures = json.loads(FIGURES.read_text())
    assert figures.keys() == QUESTIONS.keys()
    page = tmp_path / "scale.md"
    page.write_text((EVIDENCE / "scale.md").read_text())
    render(figures, page)
    assert page.read_text() == (EVIDENCE / "scale.md").read_text()


def test_recorded_runs_kept_delays_and_ended_urls_once() -> None:
    figures = json.loads(FIGURES.read_text())
    for runs in figures.values():
        for run in runs.values():
            assert run["too_soon"] == run["ended_twice"] == 0


@pytest.mark.parametrize(("pages_a_s", "over"), [(100, False), (50_000, True)])
def test_exceeded_limit_is_reported(pages_a_s: int, *, over: bool) -> None:
    found = list(
        loads(
            TOOK, pages_a_s=pages_a_s, workers=10, batch_size=40, shards=16, pages_shards=16
        )
    )  # fmt: skip
    (urls,) = [load for load in found if load.what == "DynamoDB `urls`: writes, a table"]
    assert urls.limit == TABLE_UNITS
    assert urls.load == pytest.approx(pages_a_s)
    assert (urls.share > 1) is over
