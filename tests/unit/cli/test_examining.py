"""`orbweaver doctor`: what it prints, where the report goes, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localstack.doctor import examine
from localstack.doctor.ground import Check, failed, passed, skipped
from tests.unit.cli.fakes import Stage

AWS = "doctor --target aws --region eu-west-1"


class Kit:
    """Stands for the checks: three of them, of which one fails unless told otherwise."""

    def __init__(self) -> None:
        self.asked: list[examine.Wanted] = []
        self.good, self.reached = False, True

    def __call__(self, wanted: examine.Wanted, **given: Any) -> examine.Examined:
        self.asked.append(wanted)
        bad = Check(id="a.bad", title="it holds", run=lambda _: passed(), do="mend it")
        findings = [passed(n=3) if self.good else failed("it does not", n=4), skipped("not here")]
        for finding in findings:
            given["show"](bad, finding)
        checks = [{"id": "a.bad", "result": str(one.result), "why": one.why} for one in findings]
        report = {"version": "0", "full": wanted.full, "checks": checks, "left": 0}
        advice = () if self.good else (("a.bad", "mend it"),)
        return examine.Examined(report=report, advice=advice, reached=self.reached)


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Kit:
    """Put it in the place of the checks."""
    made = Kit()
    monkeypatch.setattr(examine, "examine", made)
    return made


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Give surroundings without a stack on this machine."""
    return Stage(folder=tmp_path)


def test_failures_are_told_with_what_to_do(stage: Stage, kit: Kit) -> None:
    """A line a check, then the counts and the advice; the exit code is 1."""
    assert stage.run(AWS) == 1
    lines = stage.said.splitlines()
    assert lines[0].split()[:2] == ["failed", "a.bad"]
    assert lines[0].endswith("it holds  (it does not; n 4)")
    assert "0 passed, 1 failed, 1 skipped" in lines
    assert "a.bad: mend it" in lines
    (asked,) = kit.asked
    assert (asked.stack, asked.full, asked.region_from) == ("Orbweaver", False, "--region")
    assert asked.environment["AWS_REGION"] == "eu-west-1"


def test_the_report_is_written(stage: Stage, kit: Kit, tmp_path: Path) -> None:
    """As a file, and as one object with --json; nothing failed, so the exit code is 0."""
    kit.good = True
    assert stage.run(f"{AWS} --json --out report.json") == 0
    (told,) = stage.objects()
    assert told == json.loads((tmp_path / "report.json").read_text())
    assert told["checks"][0]["result"] == "passed"


def test_a_report_that_cannot_be_written(stage: Stage, kit: Kit) -> None:
    """The error names the file, after the checks were shown."""
    assert stage.run(f"{AWS} --out nowhere/report.json") == 1
    assert "report.json cannot be written" in stage.noted


def test_credentials_that_are_not_accepted(stage: Stage, kit: Kit) -> None:
    """AWS is not reached: exit code 3, and what to do."""
    kit.reached = False
    assert stage.run(AWS) == 3
    assert "log in" in stage.noted


def test_no_region(stage: Stage, kit: Kit) -> None:
    """Without a region nothing is asked: exit code 3."""
    stage.machine.profile_region = None
    assert stage.run("doctor --target aws") == 3
    assert not kit.asked


@pytest.mark.parametrize("words", ["--url https://example.org", "--full --url mailto:me"])
def test_a_url_that_cannot_be_crawled(stage: Stage, kit: Kit, words: str) -> None:
    """It needs --full, and must be one that a crawl takes: said before anything is deployed."""
    assert stage.run(f"{AWS} {words}") == 2
    assert not kit.asked
