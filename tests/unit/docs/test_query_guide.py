"""docs/query.md says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.cli.arguments import parse
from orbweaver.cli.query.saved import saved
from orbweaver.exporting.glue_schema import FIRST_DAY, TABLES

GUIDE = (Path(__file__).parents[3] / "docs" / "query.md").read_text()


@pytest.mark.parametrize("name", sorted(saved()))
def test_saved_queries_stand_there_as_they_are(name: str) -> None:
    """Under a heading of their own, with what came of them."""
    assert f"### {name}\n\n```sql\n{saved()[name].sql}\n```\n\n```\n" in GUIDE


def test_all_tables_are_named() -> None:
    """Those of every deployment, and how those of items are called."""
    for table in TABLES:
        assert f"| `{table.name}` |" in GUIDE
    assert "`items_books_toscrape_com_books`" in GUIDE
    assert FIRST_DAY in GUIDE


def test_the_commands_are_ones() -> None:
    """Each of them is read without a complaint."""
    import shlex

    lines = [line for line in GUIDE.splitlines() if line.startswith("orbweaver query")]
    assert len(lines) > 4
    for line in lines:
        words = shlex.split(line.partition(" > ")[0].partition(" < ")[0], comments=True)
        assert parse(words[1:]).command == "query"
