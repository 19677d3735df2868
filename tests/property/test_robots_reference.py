"""Indexed robots rules against a linear reference."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.politeness import robots_rules
from orbweaver.politeness.robots_escapes import ReadRules
from orbweaver.politeness.robots_rules import UNDECIDED, AgentRules, Line


class Reference(NamedTuple):
    """A rule with the matching of the reference."""

    pattern: str
    allow: bool
    number: int

    def matches(self, path: str) -> bool:
        """True if a path matches: `*` is any run of characters, `$` the end."""
        to_end = self.pattern.endswith("$") and not self.pattern.endswith("*$")
        head, *rest = self.pattern.removesuffix("$").split("*")
        pieces = tuple(filter(None, rest))
        if not path.startswith(head):
            return False
        at = len(head)
        if not pieces:
            return not to_end or len(path) == at
        *middle, last = pieces if to_end else (*pieces, "")
        for piece in middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return len(path) - at >= len(last) and path.endswith(last)


def expected(lines: Iterable[Line], path: str) -> Reference | None:
    """Return the strongest matching rule: the longest, then Allow, then the first."""
    rules = (Reference(*line) for line in lines)
    matching = [rule for rule in rules if rule.matches(path)]
    return min(
        matching, key=lambda rule: (-len(rule.pattern), not rule.allow, rule.number), default=None
    )


def check(lines: list[Line], path: str) -> None:
    rule = AgentRules(lines).deciding(path)
    assert (rule and (rule.pattern, rule.allow, rule.number)) == expected(lines, path)


def numbered(said: Iterable[tuple[str, bool]]) -> list[Line]:
    return [(pattern, allow, number) for number, (pattern, allow) in enumerate(said, 1)]


LINES = st.lists(st.tuples(st.text("/ab*$%", max_size=10), st.booleans()), max_size=30).map(
    numbered
)
PATHS = st.text("/ab$%", max_size=24).map("/{}".format)


@given(LINES, PATHS)
def test_index_decides_like_reference(lines: list[Line], path: str) -> None:
    check(lines, path)


@pytest.mark.thorough
@given(LINES, PATHS)
def test_index_of_many_wildcards_decides_like_reference(lines: list[Line], path: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_rules, "INDEXED_MIN", 1)
        patch.setattr(robots_rules, "PART_CHARS", 2)
        patch.setattr(robots_rules, "SLOW_MIN", 1)
        check(lines, path)


@given(LINES, PATHS, st.integers(0, 60))
def test_undecided_path_is_forbidden(lines: list[Line], path: str, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_rules, "STEPS_MAX", steps)
        rule = AgentRules(lines).deciding(path)
    if rule is UNDECIDED:
        assert not rule.allow
    else:
        assert (rule and (rule.pattern, rule.allow, rule.number)) == expected(lines, path)


UNRESERVED = string.ascii_letters + string.digits + "-._~"
RESERVED = ":/?#[]@!$&'()*+,;="
WILD, END = "any", "end"


def tokens(text: str, free: str, *, rule: bool) -> list[str]:
    """Return the characters of a path; an escape of a `free` character becomes that character.

    Other escapes are three characters.
    """
    found: list[str] = []
    for one in re.findall("%[0-9A-F]{2}|.", text, re.DOTALL):
        char = chr(int(one[1:], 16)) if len(one) > 1 else one
        if rule and one == "*":
            found.append(WILD)
        elif len(one) > 1:
            found += [char] if char in free else one
        elif not free or char in UNRESERVED + RESERVED + "%":
            found.append(char)
        else:
            found += f"%{ord(char):02X}"
    if rule and text.endswith("$"):
        found[-1] = END
    return found


def fits(rule: list[str], path: list[str]) -> bool:
    places = {0}
    for one in rule:
        if one == WILD:
            places = set(range(min(places), len(path) + 1)) if places else set()
        elif one == END:
            places &= {len(path)}
        else:
            places = {at + 1 for at in places if at < len(path) and path[at] == one}
    return bool(places)


def forbidden(lines: Iterable[Line], path: str, free: str) -> bool:
    """True if the longest matching rule of one reading forbids; Allow wins a tie."""
    best = (-1, True)
    for pattern, allow, _ in lines:
        rule = tokens(pattern, free, rule=True)
        if fits(rule, tokens(path, free, rule=False)):
            best = max(best, (len(rule), allow))
    return not best[1]


ESCAPES = st.sampled_from(["%61", "%7E", "%3A", "%2A", "%24", "%2F", "%20", "%25", "%41"])
PIECES = st.one_of(ESCAPES, st.sampled_from(["a", "~", ":", "$", "/", "A", " ", "b"]))
RULES = st.lists(
    st.tuples(
        st.lists(PIECES | st.just("*"), max_size=5).map(lambda parts: "/" + "".join(parts)),
        st.booleans(),
    ),
    max_size=5,
).map(numbered)


@given(RULES, st.lists(PIECES | st.just("*"), max_size=6).map(lambda parts: "/" + "".join(parts)))
def test_path_forbidden_in_any_reading_is_forbidden(lines: list[Line], path: str) -> None:
    path = path.replace(" ", "%20")
    rule = ReadRules(lines).deciding(path)
    readings = ("", UNRESERVED, UNRESERVED + RESERVED)
    wanted = any(forbidden(lines, path, free) for free in readings)
    assert (rule is not None and not rule.allow) is wanted
    if rule is not None:
        assert (rule.pattern, rule.allow, rule.number) in lines
