"""Parse definitions as TOML (https://toml.io/en/v1.0.0), and write the same documents."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from orbweaver.control.definition import DefinitionError, DefinitionProblem

_BARE = re.compile(r"[A-Za-z0-9_-]+")
LINE_CHARS = 100
# A key with more parts is refused, because `tomllib` needs quadratic time for them.
KEY_PARTS_MAX = 10
_PART = r"(?:\"(?:\\.|[^\"\\\n])*+\"|'[^'\n]*+'|[A-Za-z0-9_-]++)"
_NEXT = rf"(?:[ \t]*+\.[ \t]*+{_PART})"
# Comments, texts and keys. A text without closing quotes matches to its end, so that each character
# is read once.
TOKENS = re.compile(
    r'"""(?:\\.|(?!""")[^\\])*+(?:"{3,5})?+'
    r"|'''(?:(?!''').)*+(?:'{3,5})?+"
    r"|\#[^\n]*+"
    rf"|{_PART}(?:{_NEXT}{{{KEY_PARTS_MAX}}}(?P<long>))?+{_NEXT}*+"
    r"|\"(?:\\.|[^\"\\\n])*+|'[^'\n]*+",
    re.DOTALL,
)


def document_in(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError with the position, or RecursionError for deep nesting.

    A key with too many parts raises DefinitionError, which is a ValueError.
    """
    for token in TOKENS.finditer(text):
        if token["long"] is not None:
            line = text.count("\n", 0, token.start()) + 1
            column = token.start() - text.rfind("\n", 0, token.start())
            long = f"a key has more than {KEY_PARTS_MAX} parts (at line {line}, column {column})"
            raise DefinitionError((DefinitionProblem("", long),))
    return tomllib.loads(text)


def toml_of(document: Mapping[str, Any]) -> str:
    """Return a JSON document as TOML, without nulls."""
    return "\n".join(_lines(document)).strip("\n") + "\n"


# Plain values come first, then tables, then lists of tables. More deeply nested values are inline.
def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    tables, lists = {}, {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            tables[name] = value
        elif _is_of_tables(value):
            lists[name] = value
        elif value is not None:
            yield _pair(name, value)
    for name, table in tables.items():
        yield from ("", f"[{_key(name)}]", *_pairs(table))
    for name, several in lists.items():
        for table in several:
            plain = {one: value for one, value in table.items() if not isinstance(value, Mapping)}
            yield from ("", f"[[{_key(name)}]]", *_pairs(plain))
            for one in (one for one in table if one not in plain):
                yield from ("", f"[{_key(name)}.{_key(one)}]", *_pairs(table[one]))


def _is_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    return (_pair(name, value) for name, value in table.items() if value is not None)


def _pair(name: str, value: Any) -> str:
    line = f"{_key(name)} = {_value(value)}"
    if isinstance(value, list) and len(line) > LINE_CHARS:
        inner = "".join(f"    {_value(one)},\n" for one in value if one is not None)
        return f"{_key(name)} = [\n{inner}]"
    return line


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(_pairs(value))
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value if one is not None)}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """Return a literal string if it has backslashes, else a basic string with JSON's escapes."""
    if "\\" in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
