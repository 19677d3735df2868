"""A small chaos run; `make chaos` is the large one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos import verdict
from tests.chaos.run import run
from tests.chaos.scale import SMALL

# A separate stack: its workers are throttled, get wrong answers and are killed.
pytestmark = [pytest.mark.e2e, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]

SEED = 1


def test_small_crawl_survives_faults_and_kill(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = run(SEED, replace(SMALL, total_s_max=200.0), print)

    lines = verdict.judge(evidence)
    told = capsys.readouterr().out
    assert all(line.holds for line in lines), f"{told}\n{verdict.text(evidence, lines)}"
