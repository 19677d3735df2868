"""Find the line numbers of a definition's keys in its TOML text (https://toml.io/en/v1.0.0)."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

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
