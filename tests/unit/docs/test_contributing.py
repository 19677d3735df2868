"""Files and names in CONTRIBUTING.md exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orbweaver import __version__

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "functions/orbweaver"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
QUESTION = re.compile(
    r"^\| (?P<question>[^|]*\?) \| `(?P<file>[^`]*)` \| `(?P<name>[^`]*)` \|$", re.MULTILINE
)
# Code that the ten recipes add.
RECIPES = (
    *("A reason", "A format", "A seed source", "A setting", "A politeness rule"),
    *("A field of the page record", "A command", "An alarm"),
    *("Another store behind `Pages`", "Another fetcher behind `Fetcher`"),
)


def section(name: str) -> str:
    return GUIDE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def questions() -> list[tuple[str, str, str]]:
    """Return the rows of the table: question, file, name."""
    return [(row["question"], row["file"], row["name"]) for row in QUESTION.finditer(GUIDE)]


@pytest.mark.parametrize(("question", "file", "name"), questions())
def test_question_names_existing_file_and_name(question: str, file: str, name: str) -> None:
    path = PACKAGE / file
    assert path.is_file(), question
    assert len(Path(file).parts) > 1, "it lies in a room"
    assert re.search(rf"\b{re.escape(name)}\b", path.read_text()), (
        f"{question} {file} has no {name}"
    )


def test_there_are_twenty_questions() -> None:
    asked = [question for question, _, _ in questions()]
    assert len(asked) == len(set(asked)) >= 20
    rows = [line for line in section("Where is decided …?").splitlines() if line.startswith("| ")]
    assert len(rows) == len(asked) + 2


def test_recipes_are_in_promised_order() -> None:
    found = re.findall(r"^\*\*(.+?)\*\*", section("Recipes"), re.MULTILINE)
    assert tuple(found) == RECIPES


def test_named_files_exist() -> None:
    named = {
        path.rstrip("/")
        for path in re.findall(r"`([\w./-]+/[\w./-]*)`", GUIDE)
        if not path.startswith(("src/", "tests/wpt", "data-url/"))
    }
    named -= set(re.findall(r"`([\w./-]+)`", section("Test vectors of other projects")))
    assert len(named) > 50
    missing = [path for path in named if not ((ROOT / path).exists() or (PACKAGE / path).exists())]
    assert not missing


def test_version_is_the_same_in_both_files() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r'^version = "(.*)"$', text, re.MULTILINE) == [__version__]
