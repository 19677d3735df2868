"""Robots rules of one agent, indexed: the deciding one in a bounded number of steps.

- A rule without `*` between characters is found by its head: one look-up for each length that heads
  of this agent have. Their text is part of the file, which bounds that.
- Rules with `*` are compared one by one, the strongest first, if the path begins with their head
  and none that is stronger matches. Most fail because the path is too short or does without the end
  of their longest piece (their key). Where there are many, they are found by some characters of
  that.
- What is compared is counted. A path for which `STEPS_MAX` do not suffice is forbidden
  (`UNDECIDED`): an allowed page may be left out so, a forbidden one is never asked for. An ordinary
  URL is decided exactly beside any number of wildcards with words of four letters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

# A step is a rule passed over; 5,000 are about a millisecond.
STEPS_MAX = 5_000
# What it costs to compare a rule that is not passed over: at all, and for each of its pieces.
STEPS_OF_RULE, STEPS_OF_PIECE = 8, 3
# So many pairs of characters are compared in a step, where a search is at its worst: 2**8.
PAIRS_BITS = 8
# Rules with wildcards from which on verdicts may take long enough to be worth keeping.
SLOW_MIN = 400
VERDICTS_MAX = 256  # ten packs
KEY_CHARS_MAX = 16
# So many rules with one head are indexed by so many characters of their keys.
INDEXED_MIN, PART_CHARS = 64, 4
_LINES_BITS = 20  # more lines than a file may have bytes

# Pattern, whether it allows, and the number of its line.
Line: TypeAlias = tuple[str, bool, int]


class RobotsRule(NamedTuple):
    """One Allow or Disallow; the one of the most `strength` decides.

    The longest pattern is the strongest, then Allow, then what is said first.
    """

    strength: int
    allow: bool
    pattern: str
    number: int


class _WildcardRule(NamedTuple):
    """A rule with `*` before other characters: what a path needs at least for it to match."""

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
    """All rules for one agent, of all groups that name it, and the longest delay asked of it."""

    def __init__(self, lines: Iterable[Line], delay_s: float | None = None) -> None:
        self.delay_s = delay_s
        self._plain: dict[str, RobotsRule] = {}
        self._whole: dict[str, RobotsRule] = {}
        self._wildcards: dict[str, list[_WildcardRule]] = {}
        # By head: the other rules with that head, by a part of their keys.
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
            if to_end and not rest[-1]:  # "/a*b*$": an end that may be anything is none
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
        """Return the rule that decides on a path, if any does; `UNDECIDED` if that is too much."""
        if not self.slow:
            return self._judge(path)
        if path not in self._verdicts:
            if len(self._verdicts) >= VERDICTS_MAX:
                del self._verdicts[next(iter(self._verdicts))]
            self._verdicts[path] = self._judge(path)
        return self._verdicts[path]

    def _judge(self, path: str) -> RobotsRule | None:
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
        """Compare the wildcards behind a head; what is the best then, and the steps left."""
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
    """Index rules by the beginning, middle or end of their keys, whichever fewer others have."""
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
    """Whether the rest of a path has all pieces in turn, the last one at its end if `to_end`."""
    *middle, last = pieces if to_end else (*pieces, "")
    if not path.endswith(last):
        return False
    for piece in middle:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(path) - at >= len(last)
