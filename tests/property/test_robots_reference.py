"""The indexed rules decide as all rules do that are compared one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.core import robots_rules
from orbweaver.core.robots_rules import UNDECIDED, AgentRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orbweaver.core.robots_rules import Line


class Reference(NamedTuple):
    """A rule as it was compared before rules were indexed."""

    pattern: str
    allow: bool
    number: int

    def matches(self, path: str) -> bool:
        """Whether a path fits: `*` is any run of characters, `$` the end."""
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
    """Return the strongest of all rules that match: the longest, Allow, the first."""
    rules = (Reference(*line) for line in lines)
    matching = [rule for rule in rules if rule.matches(path)]
    return min(
        matching, key=lambda rule: (-len(rule.pattern), not rule.allow, rule.number), default=None
    )


def check(lines: list[Line], path: str) -> None:
    """Compare the verdict of an index with that of the reference."""
    rule = AgentRules(lines).deciding(path)
    assert (rule and (rule.pattern, rule.allow, rule.number)) == expected(lines, path)


def numbered(said: Iterable[tuple[str, bool]]) -> list[Line]:
    """Number rules as a file does."""
    return [(pattern, allow, number) for number, (pattern, allow) in enumerate(said, 1)]


LINES = st.lists(st.tuples(st.text("/ab*$%", max_size=10), st.booleans()), max_size=30).map(
    numbered
)
PATHS = st.text("/ab$%", max_size=24).map("/{}".format)


@given(LINES, PATHS)
def test_an_index_decides_as_the_reference_does(lines: list[Line], path: str) -> None:
    """Whatever the patterns: the same rule of the same line decides."""
    check(lines, path)


@given(LINES, PATHS)
def test_an_index_of_many_wildcards_does_so_too(lines: list[Line], path: str) -> None:
    """Where rules are found by parts of their keys, the same rule decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_rules, "INDEXED_MIN", 1)
        patch.setattr(robots_rules, "PART_CHARS", 2)
        patch.setattr(robots_rules, "SLOW_MIN", 1)
        check(lines, path)


@given(LINES, PATHS, st.integers(0, 60))
def test_what_is_not_decided_is_forbidden(lines: list[Line], path: str, steps: int) -> None:
    """With any number of steps: the reference's rule, or none and the URL is forbidden."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_rules, "STEPS_MAX", steps)
        rule = AgentRules(lines).deciding(path)
    if rule is UNDECIDED:
        assert not rule.allow
    else:
        assert (rule and (rule.pattern, rule.allow, rule.number)) == expected(lines, path)
