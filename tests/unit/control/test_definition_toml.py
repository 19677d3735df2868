"""Definitions as TOML: what is written is read back as the same document."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.control.definition_toml import LINE_CHARS, toml_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)


@given(st.dictionaries(texts, values, max_size=6))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    """Tables, lists of tables and what is nested deeper, with any text for key and value."""
    assert tomllib.loads(toml_of(document)) == document


def test_it_is_written_as_a_person_would() -> None:
    """Values of no table first, long lists a line each, what is nested in line, no null."""
    seeds = [f"https://example.com/{number:040}" for number in range(2)]
    document = {
        "items": [{"name": "books", "fields": {"title": {"css": "h1"}, "price": ".p"}}],
        "limits": {"pages": 5, "dollars": None},
        "seeds": seeds,
        "name": None,
    }
    assert len(str(seeds)) > LINE_CHARS
    assert toml_of(document) == (
        f'seeds = [\n    "{seeds[0]}",\n    "{seeds[1]}",\n]\n'
        "\n[limits]\npages = 5\n"
        '\n[[items]]\nname = "books"\n\n[items.fields]\ntitle = { css = "h1" }\nprice = ".p"\n'
    )
