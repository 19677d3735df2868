"""URL patterns as regular expressions: what a crawl keeps to, and what it leaves out.

Rules
- A pattern is looked for anywhere in the canonical URL, which is ASCII: `^` and `$` tie it down.
- `exclude` wins. Where there is any `include`, a link must match one of them.
- A seed was asked for by name: no `include` can keep it out, and an `exclude` does. So it is with
  where a seed leads. Sitemaps are no pages: neither is asked about them, but about what they list.
- The engine is RE2, whose time grows with the length of URL and patterns alone: no pattern can
  hang a worker. It has no lookaround and no references back. All patterns of a kind are one
  automaton of bounded memory; what does not fit in it is refused before the crawl starts.
  Measured with the worst found (100 patterns, a URL of 2,000 characters): 24 ms; usual ones: 10 us.
- Where it matters which of them is found (`model/url_rules.py`), each is an automaton of its own,
  too.

Source: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

PATTERNS_MAX = 100
# Rules of a kind, each with a pattern that says which URLs it is about.
RULES_MAX = 50
PATTERN_CHARS_MAX = 1_000
# Of one kind; the definition of a crawl is one item of at most 400 KB.
PATTERNS_CHARS_MAX = 25_000
MEMORY_BYTES = 2 * 1024 * 1024
# Of each where up to 50 are kept apart, of a handful of crawls at a time.
APART_MEMORY_BYTES = 256 * 1024


# What makes a pattern more than a text, and what ties one to a place in the URL.
_OPERATORS = re.compile(r"[\\^$.|?*+()\[\]{}]")
_ANCHORS = re.compile(r"[\\^$]")
# The text that a match begins with, up to the first operator of a pattern without alternatives.
_BEGINS = re.compile(r"\^((?:[^\\^$.|?*+()\[\]{}]|\\[/:.-])*)([?*{]?)[^|]*")
_SCHEMES = ("http://", "https://")


class MatchingRule(Protocol):
    """A rule about the URLs that its pattern is found in."""

    @property
    def match(self) -> str:
        """The pattern."""


R = TypeVar("R", bound=MatchingRule)


class PatternError(ValueError):
    """A pattern does not fit; the text says which, why, and what would."""


def matches(patterns: tuple[str, ...], url: str) -> bool:
    """Whether any of some patterns is found in a canonical URL."""
    return _compiled(patterns).search(url.encode()) is not None


def first_match(patterns: tuple[str, ...], url: str) -> str | None:
    """Return the first pattern that is found in a canonical URL: the one to name."""
    return next((pattern for pattern in patterns if matches((pattern,), url)), None)


def places(patterns: tuple[str, ...], url: str) -> tuple[int, ...]:
    """Say which of some patterns are found in a canonical URL: their places, in order."""
    if not matches(patterns, url):
        return ()
    text = url.encode()
    return tuple(
        place for place, one in enumerate(_apart(patterns)) if one.search(text) is not None
    )


def problems_of(patterns: tuple[str, ...]) -> list[PatternError]:
    """Find all that does not fit in the patterns of one kind."""
    if len(patterns) > PATTERNS_MAX:
        return [PatternError(f"{len(patterns):,} patterns are too many: at most {PATTERNS_MAX}")]
    problems = [error for pattern in patterns if (error := problem_of(pattern)) is not None]
    return problems or problems_together(patterns)


def problems_together(patterns: tuple[str, ...]) -> list[PatternError]:
    """Find what does not fit in patterns that are in order one by one."""
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
    """Find what is to be kept to and is always left out, so that no link could match it.

    A pattern without any operator is found where its very text stands: what `exclude` finds in
    that text it finds in every such URL. Of other patterns only the same one is known to cancel.
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
    """Say what does not fit in one pattern; `apart`: it is to be an automaton of its own."""
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
    """Return False if a pattern is bound to a beginning that no URL has."""
    found = _BEGINS.fullmatch(pattern)
    if found is None:
        return True
    text = found[1].replace("\\", "")
    if found[2]:
        text = text[:-1]  # the operator repeats the last character, or leaves it out
    return any(scheme.startswith(text) or text.startswith(scheme) for scheme in _SCHEMES)


def problem_of_match(pattern: str) -> str | None:
    """Say what does not fit in a pattern by which a rule says what it is about."""
    if not pattern:
        return "'' is found in every URL: give what some have, or \".\" for all"
    error = problem_of(pattern, apart=True)
    return None if error is None else str(error)


def problems_of_rules(
    key: str, rules: Sequence[R], of_rule: Callable[[str, R], Iterator[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    """Find all that does not fit in rules that go by patterns: path of the key, and words.

    `of_rule` finds what else does not fit in one, by its path.
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
def _apart(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_compile((pattern,), APART_MEMORY_BYTES) for pattern in patterns)


def _compile(patterns: tuple[str, ...], memory_bytes: int) -> Any:
    """Compile patterns into one automaton; raises PatternError with the engine's words."""
    # Alone first: a pattern that closes a group it did not open must not borrow this one.
    for pattern in patterns:
        automaton(pattern.encode(), memory_bytes, of_urls=True)
    whole = "|".join(f"(?:{pattern})" for pattern in patterns)
    return automaton(whole.encode(), memory_bytes, of_urls=True)


def automaton(pattern: str | bytes, memory_bytes: int, *, of_urls: bool = False) -> Any:
    """Compile what RE2 takes, about URLs or about text; raises PatternError in its words."""
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
