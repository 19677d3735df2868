"""Match regular expressions by RE2, in time linear in the text.

Patterns may contain any alphabet and groups. Source: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from orbweaver.model.url_patterns import PatternError, automaton

CHARS_MAX = 500
MEMORY_BYTES = 256 * 1024


def problem_of(pattern: str) -> str | None:
    """Return the reason why a pattern is invalid, or None."""
    shown = ascii(pattern[:100])
    if not 1 <= len(pattern) <= CHARS_MAX:
        return f"{shown} has {len(pattern):,} characters: give 1 to {CHARS_MAX}"
    said = _engine_error(pattern)
    if said is not None:
        fix = "give one that RE2 takes (no lookaround, no references back)"
        return f"{shown} is not a regular expression: {said}: {fix}"
    if _compiled(pattern).groups > 1:
        return f"{shown} has several groups: give one, around what is wanted; (?:…) is none"
    return None


def found_in(pattern: str, text: str) -> str | None:
    """Return the match of the pattern's group, or the whole match if the pattern has no group.

    Returns None without a match.
    """
    compiled = _compiled(pattern)
    # RE2 reads UTF-8, which cannot encode lone surrogates.
    sound = text.encode("utf-8", "replace").decode()
    found = compiled.search(sound)
    if found is None:
        return None
    part: str | None = found.group(compiled.groups)
    return part


def _engine_error(pattern: str) -> str | None:
    try:
        _compiled(pattern)
    except PatternError as error:
        return str(error)
    except UnicodeError:
        return "it holds half a character"
    return None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    return automaton(pattern, MEMORY_BYTES)
