"""Benchmark results as a table and a page."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import __main__ as command
from bench import contest, render
from bench.figures import Run

if TYPE_CHECKING:
    import pytest

PATHS = frozenset({"/", "/a"})
RUN = Run(
    site="site",
    client="floor",
    round=0,
    paths=PATHS,
    pages=2,
    crawl_s=0.01,
    cpu_s=0.004,
    cpu_overall_s=0.006,
)
SPEEDS = {"floor": 0.01, "worker": 0.0125, "stack": 0.04, "scrapy": 0.2, "crawlee": 0.1}


def results(**changed: Any) -> dict[str, Any]:
    runs = [
        replace(RUN, client=name, crawl_s=took_s, bytes=60_000, versions={name: "1.2"})
        for name, took_s in SPEEDS.items()
    ]
    runs[1] = replace(runs[1], nanodollars=4_000, units={"write": 5})
    whole = {
        "schema": 1,
        "at": "2026-11-21T20:00:00+00:00",
        "machine": {
            "cpu": "Some CPU",
            "cores": 2,
            "memory_bytes": 2**33,
            "system": "Linux 6",
            "python": "3.11.7",
            "load": 0.1,
        },
        "at_once": 64,
        "rounds": 1,
        "clients": {name: contest.ALL[name].title for name in SPEEDS},
        "sites": {
            "site": {"title": "A <site>", "server": {"requests_per_s": 9_000.0, "cpu_us": 40.0}}
        },
        "runs": [{**run.as_json(), "void": ""} for run in runs],
        "void": [],
    }
    return whole | changed


def markdown(folder: Path, *benchmarks: dict[str, Any]) -> str:
    page = folder / "page.md"
    names = ("cpu", "ratios", "benchmarks", "floor", "absolute", "units", "versions")
    page.write_text("".join(f"<!-- {name} -->\nold\n<!-- end -->\n" for name in names))
    render.write(benchmarks, page)
    assert "old" not in page.read_text()
    return page.read_text()


def test_table_has_clients_in_order_with_ratios() -> None:
    lines = render.table(results()).splitlines()
    assert lines[0] == "A <site>, 2 pages"
    assert [line.split()[0] for line in lines[1:]] == ["client", *SPEEDS]
    assert lines[3].split()[:4] == ["worker", "160.0", "0.80", "8.00"]
    assert len({len(line) for line in lines[1:]}) == 1


def test_page_has_machine_versions_and_ratios(tmp_path: Path) -> None:
    page = markdown(tmp_path, results())
    for words in (
        "2026-11-21 20:00",
        "Some CPU, 2 cores, 8 GB",
        "| Orbweaver, worker alone | 160.0 | 0.80 | 8.00 |",
        "| A <site> | Orbweaver, worker alone | 8.00 | 16 | 0.80 |",
        "| A <site> | Orbweaver, worker alone | $2.00 | 2.500 |",
        "| Scrapy | nothing | 3.00 ms (1.00 x) |",
        "gives 9,000 of these pages a second",
        "scrapy 1.2",
    ):
        assert words in page
    assert "is void" not in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert all(re.fullmatch(r"\|( [^|]+ \|)+", row) for row in rows)


def test_page_has_median_ratios_of_several_benchmarks(tmp_path: Path) -> None:
    slow, other = results(at="2026-11-22T03:00:00+00:00"), results(at="2026-11-22T09:00:00+00:00")
    slow["runs"] = [{**run, "crawl_s": 2 * run["crawl_s"]} for run in slow["runs"]]
    for run in other["runs"]:
        if run["client"] == "scrapy":
            run["crawl_s"] *= 1.5
    page = markdown(tmp_path, results(), other, slow)
    assert "| A <site> | Orbweaver, worker alone | 8.00 (8.00 to 8.00) | 16 (16 to 24) |" in page
    # Absolute figures come from the last benchmark.
    assert "Of one benchmark, 2026-11-22" in page
    assert page.count("Some CPU") == 3


def test_void_round_is_named_and_not_counted(tmp_path: Path) -> None:
    why = "lacks 1 of 2 pages: /a"
    whole = results(void=[{"site": "site", "client": "scrapy", "round": 0, "why": why}])
    for run in whole["runs"]:
        run["void"] = why if run["client"] == "scrapy" else ""
    said = "A <site>, round 1: the run of Scrapy is void, as it lacks 1 of 2 pages: /a."
    assert said in markdown(tmp_path, whole)
    assert said in render.table(whole)
    assert "\nscrapy" not in render.table(whole)


def test_missing_results_are_not_rendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert command.main(["--render", "--results", str(tmp_path / "none.json")]) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert "make bench" in capsys.readouterr().err


def test_unknown_site_is_refused_with_known_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--sites", "perl"]) == 2
    assert "there is no 'perl': python, postgresql" in capsys.readouterr().err


def test_results_survive_json() -> None:
    assert json.loads(json.dumps(results())) == results()
