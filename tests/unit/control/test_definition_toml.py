"""Definitions as TOML: a written document reads back unchanged."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.control.definition import DefinitionError
from orbweaver.control.definition_lines import (
    KEY_PARTS_MAX,
    LINE_CHARS,
    TOKENS,
    document_in,
    toml_of,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)


@given(st.dictionaries(texts, values, max_size=6))
def test_toml_of_document_reads_back_unchanged(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml_of(document)) == document


@given(st.dictionaries(texts, values, max_size=6))
def test_document_in_written_toml_has_no_key_too_long(document: dict[str, Any]) -> None:
    assert document_in(toml_of(document)) == document


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (r"/p/\d+$", r"'/p/\d+$'"),
        (r"it's \d", '"it\'s \\\\d"'),
        ("a\\\nb", r'"a\\\nb"'),
        ("plain", '"plain"'),
    ],
)
def test_toml_of_a_pattern_writes_a_literal_string(value: str, written: str) -> None:
    assert toml_of({"a": value}) == f"a = {written}\n"


DOTTED = ".".join(["a"] * KEY_PARTS_MAX)


@pytest.mark.parametrize(
    "text",
    [
        f"{DOTTED} = 1",
        f"[{DOTTED}]",
        f"a = '{DOTTED}.a'",
        f'a = """\n{DOTTED}.a \\""" {DOTTED}.a"""',
        f"a = '''\n{DOTTED}.a'''",
        f"# {DOTTED}.a",
        'a = "# \\" \' # " # c',
    ],
)
def test_document_in_with_dots_outside_keys_reads(text: str) -> None:
    assert document_in(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{DOTTED}.a = 1", "line 1, column 1"),
        (f"\n [{DOTTED}.a]", "line 2, column 3"),
        (f"[[{DOTTED}.a]]", "line 1, column 3"),
        (f"a = {{ {DOTTED}.a = 1 }}", "line 1, column 7"),
        (" . ".join(['"a.\\"b"', "'c'"] * KEY_PARTS_MAX) + " = 1", "line 1, column 1"),
        (".".join("a" * 500_000) + " = 1", "line 1, column 1"),
    ],
    ids=["pair", "table", "list", "inline", "quoted", "half a million"],
)
def test_document_in_with_long_key_is_refused_before_parsing(
    text: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tomllib` needs time at least quadratic in the number of key parts."""
    monkeypatch.setattr(tomllib, "loads", None)
    with pytest.raises(DefinitionError, match=f"more than {KEY_PARTS_MAX} parts .at {place}"):
        document_in(text)


def test_document_in_with_unclosed_texts_takes_linear_time() -> None:
    text = '"""' + '\\""" ' * 100_000
    assert sum(token.end() - token.start() for token in TOKENS.finditer(text)) <= len(text)
    with pytest.raises(ValueError, match="Expected"):
        document_in(text)


def test_toml_of_document_is_readable() -> None:
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
