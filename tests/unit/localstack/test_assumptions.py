"""Lines of docs/aws-assumptions.md are complete and name existing files, tests and checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localstack.doctor import examine

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/aws-assumptions.md"
LINES_MIN = 40
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if re.match(r"\| A\d", line)
]


def test_lines_are_numbered_and_complete() -> None:
    assert len(ROWS) >= LINES_MIN
    assert [row[0] for row in ROWS] == [f"A{number:02}" for number in range(1, len(ROWS) + 1)]
    assert [row for row in ROWS if len(row) != 6 or not all(row)] == []


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_line_names_existing_modules_and_tests(row: list[str]) -> None:
    _, _, modules, _, _, held = row
    named = re.findall(r"`([^`]+)`", modules)
    assert named
    for module in named:
        own = module.startswith(("infra/", "localstack/"))
        assert (ROOT / ("" if own else "functions/orbweaver") / module).is_file(), module
    tests = re.findall(r"`(tests/[^`]+)::([^`]+)`", held)
    assert tests or held.startswith("none")
    for path, name in tests:
        assert re.search(rf"def {name}\(", (ROOT / path).read_text()), (path, name)


CHECKS = examine.checks()


def test_checks_have_unique_id_and_known_assumptions() -> None:
    names = [check.id for check in CHECKS]
    assert len(names) == len(set(names))
    for check in CHECKS:
        assert set(check.assumptions) <= {row[0] for row in ROWS}, check.id
        assert check.title, check.id
        assert check.do, check.id


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_line_names_its_checks(row: list[str]) -> None:
    trying = [check.id for check in CHECKS if row[0] in check.assumptions]
    assert re.findall(r"`([a-z]\w*\.\w+)`", row[4]) == trying
    assert trying or re.match(r"none: \w.{10}", row[4])
