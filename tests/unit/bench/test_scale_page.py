"""The generated page about scale: plots, tables and AWS limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.scale.experiments import QUESTIONS
from bench.scale.plot import Axis, Line, svg
from bench.scale.quotas import TABLE_UNITS, loads
from bench.scale.render import render

DOCS = Path(__file__).parents[3] / "docs"
FIGURES = DOCS / "scale" / "figures.json"
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
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale.md").write_text((DOCS / "scale.md").read_text())
    render(figures, tmp_path)
    assert (tmp_path / "scale.md").read_text() == (DOCS / "scale.md").read_text()
    drawn = {path.name: path.read_text() for path in (tmp_path / "scale").glob("*.svg")}
    assert drawn == {path.name: path.read_text() for path in (DOCS / "scale").glob("*.svg")}
    assert all(f"scale/{name}" in (DOCS / "scale.md").read_text() for name in drawn)


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


@pytest.mark.parametrize("powers", [False, True])
def test_plot_contains_all_lines_and_is_deterministic(*, powers: bool) -> None:
    lines = [
        Line(name="one & two", hue=0, points=[(1, 1), (10, 200), (100, 3_000)]),
        Line(name="reckoned", hue=1, points=[(100, 3_000), (1_000, 0)], dashed=True),
    ]
    axis = Axis(title="x", powers=powers)
    picture = svg("Title <1>", "note", axis, axis, lines)
    assert picture == svg("Title <1>", "note", axis, axis, lines)
    root = ET.fromstring(picture)  # noqa: S314 - we have just made it
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    drawn = root.findall("{*}polyline")
    assert len(drawn) == len(lines)
    for line in drawn:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Title <1>", "one & two", "reckoned"} <= set(words)
