"""Read and write definitions as TOML (https://toml.io/en/v1.0.0), with the lines of their keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orbweaver.control.definition import DefinitionError, DefinitionProblem
from orbweaver.control.definition_values import plain

# `tomllib` returns values without positions. The text is valid TOML, so the scan only distinguishes
# keys, brackets and ends of values.
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_BLANKS = re.compile(r"[ \t]*+")
_KEY = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"|'[^'\n]*+'|[A-Za-z0-9_-]++")
_TEXT = re.compile(
    r'"""(?:\\.|(?!""")[^\\])*+"{3,5}'
    r"|'''(?:(?!''').)*+'{3,5}"
    r"|\"(?:\\.|[^\"\\\n])*+\"|'[^'\n]*+'",
    re.DOTALL,
)
# A number, a date with a space in it, true or false.
_PLAIN = re.compile(r"[^,\]}\n#]*+")
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


def lines_of_keys(text: str) -> dict[str, int]:
    """Return the line number of each key path (`rules[1].match`). Empty if nested too deeply."""
    walk = _LineWalk(text)
    try:
        walk.document()
    except RecursionError:
        return {}
    return walk.lines


def line_of(path: str, lines: dict[str, int]) -> int | None:
    """Return the line of a key path, or else of its nearest parent. None: no line is known."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


class _LineWalk:
    """Scanner of a TOML text. `lines` has the line number of each key path found so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        # Position up to which lines are counted, and the line number at this position.
        self._counted = (0, 1)
        # Number of tables in each list of tables.
        self._tables: Counter[str] = Counter()
        self.lines: dict[str, int] = {}

    def document(self) -> None:
        table = ""
        self._skip(_BETWEEN)
        while self._at < len(self._text):
            if self._next("["):
                listed = self._next("[")
                table = self._header(listed=listed)
                self._at += 2 if listed else 1
            else:
                self._pair(table)
            self._skip(_BETWEEN)

    def _header(self, *, listed: bool) -> str:
        line, names, path = self._line(), self._names(), ""
        for place, name in enumerate(names):
            path = _joined(path, name)
            if listed and place == len(names) - 1:
                self._mark(path, line)
                self._tables[path] += 1
            if path in self._tables:
                path = f"{path}[{self._tables[path] - 1}]"
            self._mark(path, line)
        return path

    def _pair(self, table: str) -> None:
        line, path = self._line(), table
        for name in self._names():
            path = _joined(path, name)
            self._mark(path, line)
        self._skip(_BLANKS)
        self._at += 1  # the equals sign
        self._skip(_BLANKS)
        self._value(path)

    def _value(self, path: str) -> None:
        if self._next("["):
            place = 0
            self._skip(_BETWEEN)
            while not self._next("]"):
                self._mark(f"{path}[{place}]", self._line())
                self._value(f"{path}[{place}]")
                place += 1
                self._skip_comma()
        elif self._next("{"):
            self._skip(_BETWEEN)
            while not self._next("}"):
                self._pair(path)
                self._skip_comma()
        else:
            text = _TEXT.match(self._text, self._at)
            self._skip(_PLAIN if text is None else _TEXT)

    def _names(self) -> list[str]:
        names: list[str] = []
        while True:
            self._skip(_BLANKS)
            match = _KEY.match(self._text, self._at)
            if match is None:
                return names
            names.append(_name(match[0]))
            self._at = match.end()
            self._skip(_BLANKS)
            if not self._next("."):
                return names

    def _skip_comma(self) -> None:
        self._skip(_BETWEEN)
        self._next(",")
        self._skip(_BETWEEN)

    def _skip(self, what: re.Pattern[str]) -> None:
        match = what.match(self._text, self._at)
        self._at = len(self._text) if match is None else match.end()

    def _next(self, sign: str) -> bool:
        stands = self._text.startswith(sign, self._at)
        self._at += stands
        return stands

    def _line(self) -> int:
        end, line = self._counted
        self._counted = self._at, line + self._text.count("\n", end, self._at)
        return self._counted[1]

    def _mark(self, path: str, line: int) -> None:
        self.lines.setdefault(path, line)


def _joined(path: str, name: str) -> str:
    return f"{path}.{plain(name)}" if path else plain(name)


def _name(written: str) -> str:
    if written[0] not in "\"'":
        return written
    name: str = tomllib.loads(f"name = {written}")["name"]
    return name


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
