"""Indexed robots.txt rules of one agent, to find the deciding rule in a bounded number of steps.

A path that needs more than `STEPS_MAX` comparisons is forbidden (`UNDECIDED`). So an allowed page
may be skipped, but a forbidden page is never requested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

# A step skips one rule. 5,000 steps take about a millisecond. They decide an ordinary URL exactly,
# even for any number of wildcard rules that contain words of four letters.
STEPS_MAX = 5_000
# Steps to compare a rule that is not skipped: a fixed number, and a number for each of its pieces.
STEPS_OF_RULE, STEPS_OF_PIECE = 8, 3
# A step covers up to 2**8 comparisons of characters in the worst case of a text search.
PAIRS_BITS = 8
# Number of wildcard rules from which on verdicts are slow enough to be cached.
SLOW_MIN = 400
VERDICTS_MAX = 256
# Characters of a rule's key: the end of its longest text between wildcards. Most rules do not match
# because the path lacks their key.
KEY_CHARS_MAX = 16
# If at least INDEXED_MIN rules start with the same text (head), they are indexed by PART_CHARS
# characters of their keys.
INDEXED_MIN, PART_CHARS = 64, 4
_LINES_BITS = 20  # 2**20 exceeds the number of lines of the largest file

# Pattern (`*` is any sequence of characters, a final `$` the end), True if it allows, line number.
Line: TypeAlias = tuple[str, bool, int]


class RobotsRule(NamedTuple):
    """An Allow or Disallow rule.

    Of the matching rules, the one with the greatest `strength` decides.

    The longest pattern is the strongest, then Allow, then the earlier line.
    """

    strength: int
    allow: bool
    pattern: str
    number: int


class _WildcardRule(NamedTuple):
    """A rule with `*` before other characters. `chars_min` is a matching path's least length."""

    strength: int
    chars_min: int
    key: str
    pieces: tuple[str, ...]
    to_end: bool
    rule: RobotsRule


UNDECIDED = RobotsRule(
    strength=0,
    allow=False,
    pattern="it has more rules with wildcards than are compared with one URL",
    number=0,
)


class AgentRules:
    """All rules for one agent, from all groups that name it, and its longest crawl delay."""

    def __init__(self, lines: Iterable[Line], delay_s: float | None = None) -> None:
        self.delay_s = delay_s
        self._plain: dict[str, RobotsRule] = {}
        self._whole: dict[str, RobotsRule] = {}
        self._wildcards: dict[str, list[_WildcardRule]] = {}
        # Other wildcard rules by head (text before the first `*`), then by a part of their keys.
        self._parts: dict[str, dict[str, list[_WildcardRule]]] = {}
        self._verdicts: dict[str, RobotsRule | None] = {}
        wildcards: dict[str, RobotsRule] = {}
        for pattern, allow, number in lines:
            strength = ((len(pattern) * 2 + allow) << _LINES_BITS) - number
            rule = RobotsRule(strength, allow, pattern, number)
            if "*" in pattern.rstrip("*"):
                _strongest(wildcards, pattern, rule)
            elif pattern.endswith("$"):
                _strongest(self._whole, pattern[:-1], rule)
            else:
                _strongest(self._plain, pattern.rstrip("*"), rule)
        self._index(wildcards)
        self.slow = len(wildcards) >= SLOW_MIN
        self._sizes = sorted({len(head) for head in (*self._plain, *self._wildcards)})

    def _index(self, wildcards: dict[str, RobotsRule]) -> None:
        heads: defaultdict[str, list[_WildcardRule]] = defaultdict(list)
        for rule in sorted(wildcards.values(), reverse=True):
            to_end = rule.pattern.endswith("$")
            head, *rest = rule.pattern.removesuffix("$").split("*")
            pieces = tuple(filter(None, rest))
            if to_end and not rest[-1]:  # "/a*b*$": an end that may be anything needs no check
                to_end = False
            key = max(pieces, key=len, default="")[-KEY_CHARS_MAX:]
            chars_min = len(head) + sum(map(len, pieces))
            heads[head].append(_WildcardRule(rule.strength, chars_min, key, pieces, to_end, rule))
        for head, rules in heads.items():
            if len(rules) >= INDEXED_MIN:
                self._parts[head] = _by_part(rules)
                self._wildcards[head] = [rule for rule in rules if len(rule.key) < PART_CHARS]
            else:
                self._wildcards[head] = rules

    def deciding(self, path: str) -> RobotsRule | None:
        """Return the rule that decides on a path, if any, or `UNDECIDED` after too many steps."""
        if not self.slow:
            return self._judge(path)
        if path not in self._verdicts:
            if len(self._verdicts) >= VERDICTS_MAX:
                del self._verdicts[next(iter(self._verdicts))]
            self._verdicts[path] = self._judge(path)
        return self._verdicts[path]

    def _judge(self, path: str) -> RobotsRule | None:
        # A rule without `*` between characters is found by its head (its prefix): one look-up for
        # each length of heads.
        best = self._whole.get(path)
        heads: list[str] = []
        for size in self._sizes:
            if size > len(path):
                break
            head = path[:size]
            rule = self._plain.get(head)
            if rule is not None and (best is None or rule.strength > best.strength):
                best = rule
            if head in self._wildcards:
                heads.append(head)
        steps = STEPS_MAX
        for head in reversed(heads):
            best, steps = self._compare(path, head, best, steps)
            if steps < 0:
                return UNDECIDED
        return best

    def _compare(
        self, path: str, head: str, best: RobotsRule | None, steps: int
    ) -> tuple[RobotsRule | None, int]:
        """Compare a path with the wildcard rules of a head (text before the first `*`).

        Returns the strongest matching rule so far, and the number of steps left.
        """
        found = [self._wildcards[head]]
        by_part = self._parts.get(head)
        if by_part:
            last = len(path) - PART_CHARS + 1
            parts = dict.fromkeys(path[at : at + PART_CHARS] for at in range(len(head), last))
            found += [by_part[part] for part in parts if part in by_part]
            steps -= len(parts)
        for rules in found:
            best, steps = _compare(path, len(head), rules, best, steps)
            if steps < 0:
                break
        return best, steps


def _compare(
    path: str, at: int, rules: list[_WildcardRule], best: RobotsRule | None, steps: int
) -> tuple[RobotsRule | None, int]:
    least = best.strength if best is not None else 0
    chars = len(path)
    for strength, chars_min, key, pieces, to_end, rule in rules:
        if strength < least:
            break
        steps -= 1
        if chars_min <= chars:
            steps -= len(key) * chars >> PAIRS_BITS
            if key in path:
                steps -= STEPS_OF_RULE + STEPS_OF_PIECE * len(pieces)
                steps -= chars_min * chars >> PAIRS_BITS
                if steps >= 0 and _matches(path, at, pieces, to_end):
                    return rule, steps
        if steps < 0:
            break
    return best, steps


def _by_part(rules: Iterable[_WildcardRule]) -> dict[str, list[_WildcardRule]]:
    """Index each rule by the start, middle or end of its key, whichever is rarest."""
    by_part: defaultdict[str, list[_WildcardRule]] = defaultdict(list)
    for rule in rules:
        last = len(rule.key) - PART_CHARS
        if last >= 0:
            parts = (rule.key[at : at + PART_CHARS] for at in (0, last // 2, last))
            min((by_part[part] for part in parts), key=len).append(rule)
    return {part: found for part, found in by_part.items() if found}


def _strongest(rules: dict[str, RobotsRule], key: str, rule: RobotsRule) -> None:
    standing = rules.get(key)
    if standing is None or rule.strength > standing.strength:
        rules[key] = rule


def _matches(path: str, at: int, pieces: tuple[str, ...], to_end: bool) -> bool:
    """Return True if a path has all pieces in order from index `at` on.

    If `to_end`, the last piece must be at the end of the path.
    """
    *middle, last = pieces if to_end else (*pieces, "")
    if not path.endswith(last):
        return False
    for piece in middle:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(path) - at >= len(last)
