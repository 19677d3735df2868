"""CPU and memory of commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench import measure
from bench.measure import Ran, Usage

ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}
MEGABYTE = 1_000_000


def run(code: str, folder: Path, limit_s: float = 30.0) -> Ran:
    words = [sys.executable, "-c", code]
    return measure.run(words, environment=ENVIRONMENT, folder=folder, limit_s=limit_s)


def test_cpu_and_memory_include_ended_children(tmp_path: Path) -> None:
    child = "x = bytearray(80_000_000); sum(range(4_000_000))"
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{}}')"
    )
    ran = run(code, tmp_path)
    assert (ran.code, ran.out) == (0, "{}\n")
    assert ran.cpu_s > 0.03
    assert ran.resident_bytes_max < 10_000 * MEGABYTE
    assert ran.ended_s > ran.started_s


def test_memory_is_the_maximum(tmp_path: Path) -> None:
    ran = run("import time; x = bytearray(90_000_000); del x; time.sleep(0.3)", tmp_path)
    assert ran.resident_bytes_max > 90 * MEGABYTE


@pytest.mark.thorough
def test_timed_out_command_is_killed_with_children(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    code = (
        "import subprocess, sys;"
        f" p = subprocess.Popen([sys.executable, '-c', {child!r}]);"
        " print(p.pid, flush=True); p.wait()"
    )
    ran = run(code, tmp_path, limit_s=1.5)
    assert ran.code is None
    assert measure.usage([int(ran.out)]).resident_bytes == 0


def test_said_is_last_line_with_json_result(tmp_path: Path) -> None:
    assert run("print('hello'); print('{\"pages\": 3}')", tmp_path).said == {"pages": 3}
    assert run("print('hello')", tmp_path).said == {}
    steps = 'print(\'{"type": "result", "n": 1}\'); print(\'{"type": "step"}\')'
    assert run(steps, tmp_path).said == {"type": "result", "n": 1}
    assert run("", tmp_path).said == {}


@pytest.mark.parametrize(("moment_s", "cpu_s"), [(9.0, 0.0), (11.0, 0.5), (12.5, 1.5), (99.0, 2.0)])
def test_cpu_before_moment_is_interpolated(moment_s: float, cpu_s: float) -> None:
    samples = tuple(Usage(at_s=at, cpu_s=cpu, resident_bytes=0) for at, cpu in [(12, 1), (13, 2)])
    ran = Ran(
        code=0,
        out="",
        err="",
        started_s=10.0,
        ended_s=14.0,
        cpu_s=2.0,
        resident_bytes_max=0,
        samples=samples,
    )
    assert ran.cpu_before_s(moment_s) == cpu_s
