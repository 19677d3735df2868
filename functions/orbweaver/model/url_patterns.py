"""Match URL patterns: regular expressions that include or exclude links.

A pattern is searched anywhere in the canonical URL, which is ASCII. The engine is RE2
(https://github.com/google/re2/wiki/Syntax), whose time is linear, so no pattern can hang a worker.
It has no lookaround and no backreferences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

PATTERNS_MAX = 100
# Maximum number of rules of one setting, each with a pattern.
RULES_MAX = 50
PATTERN_CHARS_MAX = 1_000
# Limit for all patterns of one setting. The definition of a crawl is one item of at most 400 KB.
PATTERNS_CHARS_MAX = 25_000
# All patterns of one setting are one automaton. Patterns that exceed this limit are refused before
# the crawl starts. Measured: 24 ms for the worst case found (100 patterns, a URL of 2,000
# characters), usually 10 us.
MEMORY_BYTES = 2 * 1024 * 1024
# Limit of an automaton of one pattern: up to 50 each, for a few crawls at a time.
APART_MEMORY_BYTES = 256 * 1024


# Characters that make a pattern more than a literal text, and characters that anchor it.
_OPERATORS = re.compile(r"[\\^$.|?*+()\[\]{}]")
_ANCHORS = re.compile(r"[\\^$]")
# Literal prefix of a match, up to the first operator of a pattern without alternatives.
_BEGINS = re.compile(r"\^((?:[^\\^$.|?*+()\[\]{}]|\\[/:.-])*)([?*{]?)[^|]*")
_SCHEMES = ("http://", "https://")


class MatchingRule(Protocol):
    """A rule about URLs that match its pattern."""

    @property
    def match(self) -> str:
        pass


R = TypeVar("R", bound=MatchingRule)


class PatternError(ValueError):
    """A pattern is invalid. The message contains the pattern, the reason and the fix."""


def matches(patterns: tuple[str, ...], url: str) -> bool:
    return _compiled(patterns).search(url.encode()) is not None


def first_match(patterns: tuple[str, ...], url: str) -> str | None:
    return next((pattern for pattern in patterns if matches((pattern,), url)), None)


def matching_indexes(patterns: tuple[str, ...], url: str) -> tuple[int, ...]:
    """Return the indexes of the patterns that match a canonical URL, in order."""
    if not matches(patterns, url):
        return ()
    text = url.encode()
    return tuple(
        place for place, one in enumerate(_compile_each(patterns)) if one.search(text) is not None
    )


def problems_of(patterns: tuple[str, ...]) -> list[PatternError]:
    if len(patterns) > PATTERNS_MAX:
        return [PatternError(f"{len(patterns):,} patterns are too many: at most {PATTERNS_MAX}")]
    problems = [error for pattern in patterns if (error := problem_of(pattern)) is not None]
    return problems or problems_together(patterns)


def problems_together(patterns: tuple[str, ...]) -> list[PatternError]:
    """Return the problems of a set of individually valid patterns."""
    if not patterns:
        return []
    chars = sum(map(len, patterns))
    if chars > PATTERNS_CHARS_MAX:
        fix = f"together at most {PATTERNS_CHARS_MAX:,} characters"
        return [PatternError(f"{chars:,} characters are too many: {fix}")]
    try:
        _compiled(patterns)
    except PatternError as error:
        fix = "give fewer, or repeat less in them"
        return [PatternError(f"the patterns do not fit together: {error}: {fix}")]
    return []


def problems_between(include: tuple[str, ...], exclude: tuple[str, ...]) -> Iterator[str]:
    """Yield a message for each include that never matches because an exclude removes all its URLs.

    An include without operators is a literal text. If an exclude matches that text, it matches all
    URLs that contain it. For other includes only an identical exclude is detected.
    """
    loose = tuple(pattern for pattern in exclude if not _ANCHORS.search(pattern))
    for pattern in include:
        text = None if _OPERATORS.search(pattern) else pattern
        other = pattern if pattern in exclude else None
        if other is None and text is not None and loose:
            other = first_match(loose, text)
        if other is not None:
            yield (
                f"{pattern[:100]!r} matches nothing: exclude has {other[:100]!r}, which leaves"
                " the same URLs out: change one of them"
            )


def problem_of(pattern: str, *, apart: bool = False) -> PatternError | None:
    """Return the problem of one pattern, or None. `apart`: the pattern needs its own automaton."""
    shown = ascii(pattern[:100])
    if not pattern:
        return PatternError("'' would match every URL: leave it out")
    if len(pattern) > PATTERN_CHARS_MAX:
        many = f"{shown}… has {len(pattern):,} characters"
        return PatternError(f"{many}: at most {PATTERN_CHARS_MAX:,}")
    if not pattern.isascii():
        return PatternError(f"{shown} cannot match: URLs are ASCII, spell é as %C3%A9")
    try:
        _compile((pattern,), APART_MEMORY_BYTES if apart else MEMORY_BYTES)
    except PatternError as error:
        fix = "give one that RE2 takes (no lookaround, no references back)"
        return PatternError(f"{shown} is not a regular expression: {error}: {fix}")
    if not _can_begin(pattern):
        fix = "patterns see the whole URL: leave out ^, or begin with ^https?://[^/]+"
        return PatternError(f"{shown} matches no URL: {fix}")
    return None


def _can_begin(pattern: str) -> bool:
    """Return False if a pattern is anchored to a beginning that no URL has."""
    found = _BEGINS.fullmatch(pattern)
    if found is None:
        return True
    text = found[1].replace("\\", "")
    if found[2]:
        text = text[:-1]  # the operator repeats or omits the last character
    return any(scheme.startswith(text) or text.startswith(scheme) for scheme in _SCHEMES)


def problem_of_match(pattern: str) -> str | None:
    if not pattern:
        return "'' is found in every URL: give what some have, or \".\" for all"
    error = problem_of(pattern, apart=True)
    return None if error is None else str(error)


def problems_of_rules(
    key: str, rules: Sequence[R], of_rule: Callable[[str, R], Iterator[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    """Yield (key path, message) for each problem of rules with patterns.

    `of_rule` yields the other problems of one rule.
    """
    if len(rules) > RULES_MAX:
        yield key, f"{len(rules):,} rules are too many: at most {RULES_MAX}"
        return
    whole = True
    for place, rule in enumerate(rules):
        path = f"{key}[{place}]"
        words = problem_of_match(rule.match)
        if words is not None:
            yield f"{path}.match", words
        whole = whole and words is None
        yield from of_rule(path, rule)
    for error in problems_together(tuple([rule.match for rule in rules])) if whole else ():
        yield key, str(error)


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> Any:
    return _compile(patterns, MEMORY_BYTES)


@lru_cache(maxsize=8)
# One automaton per pattern shows which pattern matches.
def _compile_each(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_compile((pattern,), APART_MEMORY_BYTES) for pattern in patterns)


def _compile(patterns: tuple[str, ...], memory_bytes: int) -> Any:
    # Each pattern is compiled separately first, because it must not close the group around it.
    for pattern in patterns:
        automaton(pattern.encode(), memory_bytes, of_urls=True)
    whole = "|".join(f"(?:{pattern})" for pattern in patterns)
    return automaton(whole.encode(), memory_bytes, of_urls=True)


def automaton(pattern: str | bytes, memory_bytes: int, *, of_urls: bool = False) -> Any:
    """Compile a pattern for RE2, for URLs or text. Raises PatternError with RE2's message."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory_bytes
    if of_urls:
        options.never_capture = True
        # One byte is one character of a URL.
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        (said,) = error.args
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise PatternError(text) from error
