"""A small chaos run; `make chaos` is the large one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos import verdict
from tests.chaos.run import run
from tests.chaos.scale import SMALL

# A stack of its own: its workers are throttled, lied to and killed.
pytestmark = [pytest.mark.e2e, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]

SEED = 1


def test_a_small_crawl_survives_faults_and_a_kill(capsys: pytest.CaptureFixture[str]) -> None:
    """Throttled, answered late or not at all, and killed: each page has its record, once."""
    evidence = run(SEED, replace(SMALL, total_s_max=200.0), print)

    lines = verdict.judge(evidence)
    told = capsys.readouterr().out
    assert all(line.holds for line in lines), f"{told}\n{verdict.text(evidence, lines)}"
