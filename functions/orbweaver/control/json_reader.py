"""Parse values of a type from JSON or query parameters, and report all problems.

Parsing is strict: no text for a number, no unknown key, limited nesting. Duplicate keys are
refused, because RFC 8259, section 4, leaves their meaning open. Every problem names its key, the
value and the fix.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast, get_args, get_origin

from orbweaver.control.definition import DefinitionError, DefinitionProblem
from orbweaver.control.definition_values import Problems
from orbweaver.control.json_schema import (
    BOUNDS,
    Fits,
    hints_of,
    required_fields,
    split_annotation,
    without_none,
)
from orbweaver.model.url import redacted

T = TypeVar("T")
SHOWN_CHARS_MAX = 60
# Maximum depth of nested objects and arrays in a document.
DEPTH_MAX = 20
NAMES = {str: "a text", int: "a whole number", bool: "true or false", float: "a number"}


def document_of(text: str) -> object:
    """Parse JSON. Raises DefinitionError for invalid JSON, duplicate keys, or deep nesting."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            twice = next(key for key, count in times.items() if count > 1)
            raise _refusal((_plain(twice), "this key occurs twice"))
        return found

    def unknown(word: str) -> object:
        raise _refusal(("", f"{word} is no number of JSON"))

    try:
        document: object = json.loads(text, object_pairs_hook=unique, parse_constant=unknown)
    except DefinitionError:
        raise
    except (ValueError, RecursionError) as error:
        raise _refusal(("", "the body is no valid JSON")) from error
    if (misfit := _misfit(document)) is not None:
        raise _refusal(("", misfit))
    return document


def read(kind: type[T], document: object) -> T:
    """Parse a document as the dataclass `kind`. Raises DefinitionError with all problems."""
    problems: Problems = []
    value = _read(kind, document, "", problems)
    if problems:
        raise _refusal(*problems)
    return cast("T", value)


def read_texts(kind: type[T], texts: Mapping[str, Sequence[str]]) -> T:
    """Parse query parameters or headers, which are texts, as the dataclass `kind`.

    A repeated parameter is a problem. Raises DefinitionError with all problems.
    """
    problems = [
        (_plain(name), "it is given twice: give it once")
        for name, values in texts.items()
        if len(values) > 1
    ]
    hints = hints_of(cast("Any", kind))
    spelled = {
        name: _spelled(hints[name], values[0]) if name in hints else values[0]
        for name, values in texts.items()
        if values
    }
    value = _read(kind, spelled, "", problems)
    if problems:
        raise _refusal(*problems)
    return cast("T", value)


def _refusal(*problems: tuple[str, str]) -> DefinitionError:
    return DefinitionError(tuple(DefinitionProblem(path, text) for path, text in problems))


def _read(kind: Any, value: object, path: str, problems: Problems) -> Any:
    kind, fits = split_annotation(kind)
    if fits.schema is not None or (value is None and without_none(kind) is not kind):
        return value
    kind = without_none(kind)
    if is_dataclass(kind):
        return _read_fields(kind, value, path, problems)
    if get_origin(kind) is tuple:
        return _read_items(kind, fits, value, path, problems)
    if issubclass(kind, StrEnum):
        return _read_word(kind, value, path, problems)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        _bound(kind, fits, value, path, problems)
        return value
    problems.append((path, f"{_shown(value)} does not fit: give {NAMES[kind]}"))
    return None


def _read_items(kind: Any, fits: Fits, value: object, path: str, problems: Problems) -> Any:
    if not isinstance(value, list):
        problems.append((path, f"{_shown(value)} does not fit: give a list"))
        return ()
    _bound(tuple, fits, value, path, problems)
    inside = get_args(kind)[0]
    return tuple(
        _read(inside, one, f"{path}[{place}]", problems) for place, one in enumerate(value)
    )


def _read_fields(kind: Any, value: object, path: str, problems: Problems) -> Any:
    before = len(problems)
    if not isinstance(value, Mapping):
        text = "give an object" if path else "give a JSON object"
        problems.append((path, text))
        return None
    hints = hints_of(kind)
    found = {}
    for key, inner in value.items():
        inside = f"{path}.{_plain(key)}" if path else _plain(key)
        if key in hints:
            found[key] = _read(hints[key], inner, inside, problems)
        else:
            near = difflib.get_close_matches(key[:SHOWN_CHARS_MAX], hints, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(hints) or 'none'}"
            problems.append((inside, f"there is no such field: {hint}"))
    for key in sorted(required_fields(kind) - value.keys()):
        inside = f"{path}.{key}" if path else key
        problems.append((inside, "it is missing"))
    return kind(**found) if len(problems) == before else None


def _read_word(kind: type[StrEnum], value: object, path: str, problems: Problems) -> Any:
    words = [str(word) for word in kind]
    if isinstance(value, str) and value in words:
        return kind(value)
    text = f"{_shown(value)} does not fit: give {' or '.join(words)}"
    problems.append((path, text))
    return None


def _bound(kind: type, fits: Fits, value: Any, path: str, problems: Problems) -> None:
    measure = len(value) if kind in (str, tuple) else value
    if fits.low is not None and measure < fits.low:
        problems.append((path, f"give at least {fits.low:,}{BOUNDS[kind][2]}"))
    elif fits.high is not None and measure > fits.high:
        problems.append((path, f"give at most {fits.high:,}{BOUNDS[kind][2]}"))
    elif fits.pattern is not None and not re.fullmatch(fits.pattern, value, re.ASCII):
        problems.append((path, f"{_shown(value)} does not fit: {fits.says}"))


def _spelled(hint: Any, text: str) -> object:
    kind = without_none(split_annotation(hint)[0])
    if kind is int and re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if kind is bool and text in ("true", "false"):
        return text == "true"
    return text


def _misfit(document: object) -> str | None:
    """Return why a document is refused: nested too deeply, or with an invalid text, else None."""
    # No recursion, because the sender decides how deeply a document is nested.
    level: list[object] = [document]
    for _ in range(DEPTH_MAX):
        texts = [one for one in level if isinstance(one, str)]
        if any(re.search("[\ud800-\udfff]", one) for one in texts):
            return "it holds half a character (a lone surrogate)"
        below: list[object] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
        if not below:
            return None
        level = below
    return f"it is nested deeper than {DEPTH_MAX} levels"


def _plain(key: str) -> str:
    return key if re.fullmatch(r"[\w.-]{1,60}", key, re.ASCII) else ascii(key[:SHOWN_CHARS_MAX])


def _shown(value: object) -> str:
    if isinstance(value, str):
        return ascii(redacted(value, SHOWN_CHARS_MAX))
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)[:SHOWN_CHARS_MAX]
    return "an object" if isinstance(value, Mapping) else "a list"
