"""`orbweaver doctor`: output, report file and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localstack.doctor import examine
from localstack.doctor.ground import Check, Ground, failed, passed, skipped
from tests.unit.cli.fakes import Stage

AWS = "doctor --target aws --region eu-west-1"


class Kit:
    """A replacement of the checks: three of them, of which one fails by default."""

    def __init__(self) -> None:
        self.asked: list[Ground] = []
        self.good, self.reached = False, True

    def __call__(self, wanted: Ground, **given: Any) -> examine.Examined:
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
    made = Kit()
    monkeypatch.setattr(examine, "examine", made)
    return made


def test_failed_check_has_advice_and_exit_code_1(stage: Stage, kit: Kit) -> None:
    lines = stage.output(AWS, code=1).splitlines()
    assert lines[0].split()[:2] == ["failed", "a.bad"]
    assert lines[0].endswith("it holds  (it does not; n 4)")
    assert "0 passed, 1 failed, 1 skipped" in lines
    assert "a.bad: mend it" in lines
    (asked,) = kit.asked
    assert (asked.stack, asked.full, asked.region_from) == ("Orbweaver", False, "--region")
    assert asked.environment["AWS_REGION"] == "eu-west-1"


def test_report_is_written_to_file_and_as_json(stage: Stage, kit: Kit, tmp_path: Path) -> None:
    kit.good = True
    (told,) = stage.run_json(f"{AWS} --json --out report.json")
    assert told == json.loads((tmp_path / "report.json").read_text())
    assert told["checks"][0]["result"] == "passed"


def test_unwritable_report_file_is_named_after_checks(stage: Stage, kit: Kit) -> None:
    assert stage.run(f"{AWS} --out nowhere/report.json") == 9
    assert "report.json cannot be written" in stage.noted


def test_rejected_credentials_exit_with_3_and_advice(stage: Stage, kit: Kit) -> None:
    kit.reached = False
    assert "log in" in stage.errors(AWS, code=3)


def test_missing_region_exits_with_3_without_checks(stage: Stage, kit: Kit) -> None:
    stage.machine.profile_region = None
    assert stage.run("doctor --target aws") == 3
    assert not kit.asked


@pytest.mark.parametrize("words", ["--url https://example.org", "--full --url mailto:me"])
def test_url_option_needs_full_and_a_valid_url(stage: Stage, kit: Kit, words: str) -> None:
    assert stage.run(f"{AWS} {words}") == 2
    assert not kit.asked
