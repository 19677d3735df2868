"""Queries and tables of docs/query.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbweaver.cli.query.saved import saved
from orbweaver.exporting.glue_schema import FIRST_DAY, TABLES

GUIDE = (Path(__file__).parents[3] / "docs" / "query.md").read_text()


@pytest.mark.parametrize("name", sorted(saved()))
def test_saved_query_is_in_guide_with_output(name: str) -> None:
    assert f"### {name}\n\n```sql\n{saved()[name].sql}\n```\n\n```\n" in GUIDE


def test_all_tables_are_named() -> None:
    for table in TABLES:
        assert f"| `{table.name}` |" in GUIDE
    assert "`items_books_toscrape_com_books`" in GUIDE
    assert FIRST_DAY in GUIDE
