"""Definitions as TOML: lines of keys, and documents that read back unchanged."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.cli.crawl_template import STARTER
from orbweaver.control.definition import DefinitionError
from orbweaver.control.definition_lines import (
    KEY_PARTS_MAX,
    LINE_CHARS,
    TOKENS,
    document_in,
    line_of,
    lines_of_keys,
    toml_of,
)
from orbweaver.control.definition_values import plain

DEFINITION = """\
# a = 1
name = "x"   # b = 2
seeds = [
  "https://a/#", 'https://b/]',  # c = [
  \"\"\"https://c/
d = 1\"\"\",
]
limits.pages = 3
limits . "depth" = 4

[identity]
headers = { "Accept-Language" = "de", 'X "Y"' = '''}
e = 1''' }
since = 1979-05-27 07:32:00
[[rules]]
match = '/a/\\' # ]
[[rules]]
match = "\\"/b/" # }
depth = 1
[[items]]
name = "books"
[items.fields]
title = "h1"
  [items.fields.price]
  css = "b"
[[items]]
fields = { a = { css = "x" }, b = [{ css = "y" },
  { css = "z" }] }
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 2),
        ("seeds", 3),
        ("seeds[1]", 4),
        ("seeds[2]", 5),
        ("limits.pages", 8),
        ("limits.depth", 9),
        ("identity", 11),
        ("identity.headers", 12),
        ("identity.headers.Accept-Language", 12),
        ("identity.since", 14),
        ("rules[0]", 15),
        ("rules[0].match", 16),
        ("rules[1]", 17),
        ("rules[1].match", 18),
        ("rules[1].depth", 19),
        ("items[0].fields", 22),
        ("items[0].fields.title", 23),
        ("items[0].fields.price.css", 25),
        ("items[1].fields.a.css", 27),
        ("items[1].fields.b[1].css", 28),
    ],
)
def test_key_is_found_on_its_line(path: str, line: int) -> None:
    assert tomllib.loads(DEFINITION)
    assert lines_of_keys(DEFINITION)[path] == line


@pytest.mark.parametrize(
    ("path", "line"),
    [("rules[1].delay", 17), ("items[1].match", 26), ("items[9].name", 20), ("scope.links", None)],
)
def test_missing_key_has_line_of_its_table(path: str, line: int | None) -> None:
    assert line_of(path, lines_of_keys(DEFINITION)) == line


@pytest.mark.parametrize("text", [DEFINITION, STARTER, "", "a.b.c = 1\r\n[a.d]\r\n"])
def test_lines_has_every_key_tomllib_reads(text: str) -> None:
    assert set(_paths(tomllib.loads(text))) == set(lines_of_keys(text))


names = st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
values = st.recursive(
    texts | st.integers(-99, 99) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.thorough
@given(st.dictionaries(names, values, max_size=5), st.sampled_from(["\n", "\n\n# [x] = {\n"]))
def test_values_with_brackets_and_quotes_add_no_keys(document: dict[str, Any], end: str) -> None:
    text = "".join(f"{name} = {_written(value)}{end}" for name, value in document.items())
    assert tomllib.loads(text) == document
    lines = lines_of_keys(text)
    assert set(_paths(document)) == set(lines)
    for place, name in enumerate(document):
        assert lines[name] == 1 + place * end.count("\n")


def _written(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{name} = {_written(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_written, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def test_lines_of_deep_or_long_text_takes_linear_time() -> None:
    assert lines_of_keys("a = " + "[" * 100_000 + "]" * 100_000) == {}
    begun = time.process_time()
    lines = lines_of_keys("seeds = [\n" + '"https://example.com/",\n' * 100_000 + "]\nname = 1\n")
    assert lines["name"] == 100_003
    assert time.process_time() - begun < 5


def _paths(value: Any, path: str = "") -> Iterator[str]:
    if path:
        yield path
    match value:
        case dict():
            for name, one in value.items():
                yield from _paths(one, f"{path}.{plain(name)}" if path else plain(name))
        case list():
            for place, one in enumerate(value):
                yield from _paths(one, f"{path}[{place}]")


# --- writing and reading TOML ---------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
)


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_toml_of_document_reads_back_unchanged(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml_of(document)) == document


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
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
