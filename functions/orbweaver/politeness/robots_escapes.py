"""Percent-escapes in robots.txt: a URL is forbidden if any reading of the rules forbids it.

RFC 9309 compares paths percent-encoded (2.2.2, 2.2.3), but is ambiguous. A site might mean any of
three readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from orbweaver.politeness.robots_rules import UNDECIDED, AgentRules, Line, RobotsRule

_Translation: TypeAlias = "Callable[[str], str]"

# Number of readings. As written: escapes are upper-cased, nothing else changes. This is Google's
# matcher. Unescaped: characters that need no escape (letters, digits, `-._~`) have none, and
# characters that URLs must not contain (spaces, `"<>{}`, …) have one. Reserved characters differ
# from their escapes. Equivalent: the same, but a reserved character equals its escape. In a rule,
# `%2A` and `%24` are literal characters.
READINGS = 3
# Escapes of reserved and unreserved characters (RFC 3986, 2.2 and 2.3), and characters that must be
# escaped.
_MATTERS = re.compile(
    "%(?:2[1346-9A-F]|3[0-9ABDF]|4[0-9A-F]|5[0-9ABDF]|6[1-9A-F]|7[0-9AE])"
    '|[\\x00-\\x20"<>\\\\^`{|}\\x7f]'
)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Placeholders for literal `*` and `$` in rules with wildcards. They occur in no path.
_STAR, _DOLLAR = "\ue000", "\ue001"
_LITERAL = {"*": _STAR, "$": _DOLLAR}
_SPECIAL = re.compile(r"[*$]")


class ReadRules(AgentRules):
    """Rules of one agent, as written, and in the two other readings if these can differ."""

    def __init__(self, lines: Iterable[Line], delay_s: float | None = None) -> None:
        lines = list(lines)
        super().__init__(lines, delay_s)
        self.escaped = any(_MATTERS.search(pattern) for pattern, _, _ in lines)
        self._lines = lines if self.escaped else []
        self._others: tuple[_EscapeReading, ...] = ()

    def deciding(self, path: str) -> RobotsRule | None:
        """Return the rule that decides on a path, from the first reading that forbids it."""
        rule = super().deciding(path)
        if rule is not None and not rule.allow:
            return rule
        # Most files and URLs have no relevant escape. The other readings are indexed when a URL
        # needs them.
        if self.escaped:
            self._others = self._others or (
                _EscapeReading(self._lines, _unescaped, _unescaped),
                _EscapeReading(self._lines, _equivalent_rule, _literal),
            )
            others = (reading.deciding(path) for reading in self._others)
        elif _MATTERS.search(path):
            others = (super(ReadRules, self).deciding(read(path)) for read in _OF_PATHS)
        else:
            return rule
        return next((other for other in others if other is not None and not other.allow), rule)


class _EscapeReading:
    """Rules that have escapes, in another reading than as written."""

    def __init__(self, lines: list[Line], of_rules: _Translation, of_paths: _Translation) -> None:
        read = [(of_rules(pattern), allow, number) for pattern, allow, number in lines]
        self._rules = AgentRules(read)
        self._of_paths = of_paths
        self._written = {
            (pattern, number): line[0]
            for (pattern, _, number), line in zip(read, lines, strict=True)
        }

    def deciding(self, path: str) -> RobotsRule | None:
        """Return the rule that decides on a path, with its pattern as written in the file."""
        rule = self._rules.deciding(self._of_paths(path))
        if rule is None or rule is UNDECIDED:
            return rule
        return rule._replace(pattern=self._written[rule.pattern, rule.number])


def _unescaped(text: str) -> str:
    """Escape characters that must be escaped, and unescape all others except reserved ones."""
    return _MATTERS.sub(_minimal, text)


def _equivalent(text: str) -> str:
    """Escape characters that must be escaped, and unescape all others, reserved ones too."""
    return _MATTERS.sub(_plain, text)


def _literal(path: str) -> str:
    return _SPECIAL.sub(lambda found: _LITERAL[found[0]], _equivalent(path))


def _equivalent_rule(pattern: str) -> str:
    """Convert a rule like `_equivalent`, but keep its `*` and a final `$`."""
    text, end = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
    text = text.replace("$", _DOLLAR).replace("%2A", _STAR).replace("%24", _DOLLAR)
    return _equivalent(text) + end


def _minimal(found: re.Match[str]) -> str:
    char = _char(found[0])
    return char if char in _UNRESERVED and len(found[0]) > 1 else _escaped(found[0])


def _plain(found: re.Match[str]) -> str:
    return _char(found[0]) if len(found[0]) > 1 else _escaped(found[0])


def _char(found: str) -> str:
    return chr(int(found[1:], 16)) if len(found) > 1 else found


def _escaped(found: str) -> str:
    return found if len(found) > 1 else f"%{ord(found):02X}"


_OF_PATHS = (_unescaped, _equivalent)
