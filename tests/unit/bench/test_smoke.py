"""The benchmark command on a small site."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from bench import contest, measure

ROOT = Path(__file__).parents[3]
BENCH = [sys.executable, "-m", "bench", "--quick"]


def test_own_code_is_compiled_before_benchmark() -> None:
    """Clients write no bytecode, so each process would compile its imports."""
    contest.compile_ours()
    for name in ("functions/orbweaver/worker/batch.py", "bench/clients/floor.py"):
        assert Path(cache_from_source(str(ROOT / name))).is_file()


@pytest.mark.thorough
@pytest.mark.slow
def test_quick_benchmark_of_floor_and_worker(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    options = ["--sites", "generated-30,generated-30+tls", "--pages", "60", "--results", str(kept)]
    done = subprocess.run(
        [*BENCH, *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(kept.read_text())
    assert not results["void"]
    assert [run["client"] for run in results["runs"]] == ["floor", "worker"] * 2
    for run in results["runs"]:
        assert run["pages"] == run["pages_given"] == 60
        assert run["cpu_s"] > 0
        assert run["resident_bytes_max"] > 0
    worker = results["runs"][1]
    assert worker["said"]["state"] == "finished"
    assert worker["said"]["titles"] == 60
    assert worker["nanodollars"] > 0
    assert "Made-up, 30 KB, HTTPS, 60 pages" in done.stdout


@pytest.mark.thorough
@pytest.mark.slow
def _runs(pid: int) -> bool:
    """Return True if a process is alive; a zombie is not."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"


def test_interrupted_benchmark_leaves_no_process(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    options = ["--pages", "3000", "--peers", "worker", "--results", str(kept)]
    with subprocess.Popen([*BENCH, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout is not None
        while "pages served" not in bench.stdout.readline():
            assert bench.poll() is None
        started = measure.family([bench.pid])
        bench.send_signal(signal.SIGINT)
        assert bench.wait(60) == 130
    assert len(started) > 1
    # Killed processes may take a moment to end.
    until_s = time.monotonic() + 60
    while (left := list(filter(_runs, started))) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert left == []
    assert json.loads(kept.read_text())["runs"] == []
    assert os.getpid() not in started
