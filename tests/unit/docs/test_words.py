"""The glossary: terms are sorted, explained, linked and used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs/glossary.md"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/evidence").glob("*.md")),
)


def rows_of(page: str) -> list[tuple[str, ...]]:
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert cells[0] == ("term", "meaning")
    return cells[2:]


ROWS = rows_of(GLOSSARY.read_text())
TERMS = [term for terms, _ in ROWS for term in terms.split(", ")]


def test_glossary_is_sorted_and_complete() -> None:
    first = [terms.casefold() for terms, _ in ROWS]
    assert first == sorted(set(first))
    assert len(TERMS) == len(set(TERMS))
    assert all(meaning for _, meaning in ROWS)


def test_glossary_is_linked_from_index() -> None:
    assert "(glossary.md)" in (ROOT / "docs/README.md").read_text()


@pytest.fixture(scope="module")
def texts() -> str:
    paths = [*PAGES, *(ROOT / "functions").rglob("*.py")]
    words = " ".join(path.read_text() for path in paths if path != GLOSSARY).casefold()
    return " ".join(words.replace("_", " ").split())


@pytest.mark.parametrize("term", TERMS)
def test_term_is_used(texts: str, term: str) -> None:
    assert re.search(rf"\b{re.escape(term)}", texts), term
