"""`orbweaver doctor --full` on an emulator: all checks pass or report the emulator's difference."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstack import cdk, emulator
from localstack.doctor import examine, own
from tests.e2e.stand import PROGRAM

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

CHECKS = {check.id: check for check in examine.checks()}
# Skipped for another reason: it needs a stack with its own key.
OPTIONAL = {"key.policy"}


@pytest.fixture
def empty() -> Iterator[emulator.Emulator]:
    started = emulator.start(port=0, keep=False)
    try:
        yield started
    finally:
        started.stop()


def test_doctor_full_passes_and_leaves_nothing(empty: emulator.Emulator, tmp_path: Path) -> None:
    environment, report = empty.environment(), tmp_path / "report.json"
    done = subprocess.run(
        [PROGRAM, "doctor", "--full", "--out", str(report)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    said = f"{done.stdout}\n{done.stderr}"
    found = json.loads(report.read_text())
    results = {one["id"]: one for one in found["checks"]}
    assert [name for name, one in results.items() if one["result"] == "failed"] == [], said
    assert done.returncode == 0, said
    assert results.keys() == CHECKS.keys()
    assert (found["target"], found["full"], found["stack"]) == ("local", True, own.STACK)
    skips = {name: one["why"] for name, one in results.items() if one["result"] == "skipped"}
    assert skips.keys() == OPTIONAL | {name for name, one in CHECKS.items() if one.not_on_emulator}
    assert results["crawl.site"]["seen"]["pages"] == 5
    assert found["left"] == 0
    assert cdk.stack_outputs(own.STACK, environment) is None
    with cdk.client("sqs", environment) as sqs:
        assert not sqs.list_queues().get("QueueUrls")
