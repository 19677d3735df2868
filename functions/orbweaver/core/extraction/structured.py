"""Objects that pages state as data: JSON-LD, and the paths that lead to values in them.

- All scripts of the type are read, each by itself: one that is malformed spoils no other. What
  shops commonly get wrong is put right first: comments and CDATA around it, control characters in
  texts, commas and semicolons at the end, and the whole of it escaped.
- An object is one of a type by the last part of its `@type`, wherever it stands: in lists, in
  `@graph`, in other objects; but an object within one of the same type is a part of that one.
- A path is names with points between; a list is looked into, a number is a place in it. An object
  that has nothing but an `@id` is the one that has that `@id` as well. Where an object stands and a
  value is wanted, it is its `@value`, `name` or (for a URL) `url`, `contentUrl` or `@id`.

Source: https://www.w3.org/TR/json-ld11/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orbweaver.core.item import Scalar

SCRIPTS_MAX = 50
SCRIPT_CHARS_MAX = 2_000_000
DEPTH_MAX = 64
NODES_MAX = 50_000
FOUND_MAX = 2_000
VALUE_KEYS = ("@value", "name")
URL_KEYS = ("@value", "url", "contentUrl", "@id")

# What shops put around JSON, so that old browsers pass it over.
_BEFORE = ("//<![CDATA[", "/*<![CDATA[*/", "<![CDATA[", "<!--", "//", "\ufeff")
_BEHIND = ("//]]>", "/*]]>*/", "]]>", "//-->", "-->", ";")
# Texts are taken whole, so that a comma in one stays.
_SPARE_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[\]}])', re.DOTALL)


@dataclass(slots=True)
class Objects:
    """The objects of a page; `problems` say what could not be read."""

    roots: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _by_id: dict[str, Mapping[str, Any]] | None = None

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """List the objects of a type, in the order of the page."""
        return [*_of_type(self.roots, kind)]

    def values(self, path: str, within: Any, *, url: bool = False) -> list[tuple[Scalar, Any]]:
        """List what a path leads to, each with the object that it was found in."""
        here: list[tuple[Any, Any]] = [(within, None)]
        for name in path.split("."):
            here = [(value, holder) for one, _ in here for value, holder in self._step(one, name)][
                :FOUND_MAX
            ]
        keys = URL_KEYS if url else VALUE_KEYS
        found: list[tuple[Scalar, Any]] = [
            (value, holder)
            for one, holder in here
            for inner in _flat(one)
            if (value := self._scalar(inner, keys)) is not None
        ]
        return found[:FOUND_MAX]

    def _step(self, one: Any, name: str) -> Iterator[tuple[Any, Any]]:
        if isinstance(one, list):
            if name.isdecimal():
                if int(name[:9]) < len(one):
                    yield one[int(name[:9])], None
                return
            for inner in _flat(one):
                yield from self._step(inner, name)
        elif isinstance(one, Mapping):
            one = self._whole(one)
            if one.get(name) is not None:
                yield one[name], one
            elif name.isdecimal() and int(name[:9]) == 0:
                yield one, None

    def _scalar(self, one: Any, keys: Iterable[str]) -> Scalar:
        if isinstance(one, Mapping):
            one = self._whole(one)
            inner = (value for key in keys for value in _flat(one.get(key)))
            one = next((value for value in inner if not isinstance(value, Mapping)), None)
        return one if isinstance(one, str | int | float | bool) else None

    def _whole(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object that one refers to which has only an `@id`."""
        name = one.get("@id")
        if len(one) > 1 or not isinstance(name, str):
            return one
        if self._by_id is None:
            self._by_id = {}
            for node in _mappings(self.roots):
                known = node.get("@id")
                if isinstance(known, str) and len(node) > 1:
                    self._by_id.setdefault(known, node)
        return self._by_id.get(name, one)


def json_ld(scripts: Iterable[str]) -> Objects:
    """Read the JSON-LD scripts of a page."""
    found = Objects()
    nodes = 0
    for place, text in enumerate(scripts):
        if place >= SCRIPTS_MAX:
            found.problems.append(f"more than {SCRIPTS_MAX} JSON-LD scripts: the rest is not read")
            break
        try:
            root = _decoded(text)
            nodes += _counted(root, NODES_MAX - nodes)
        except RecursionError:
            found.problems.append(f"JSON-LD script {place + 1} is nested too deeply")
        except ValueError as error:
            found.problems.append(f"JSON-LD script {place + 1} is malformed: {error}"[:200])
        else:
            found.roots.append(root)
    return found


def _decoded(text: str) -> Any:
    """Read a script; what is wrong with it is put right only where it is wrong."""
    if len(text) > SCRIPT_CHARS_MAX:
        raise ValueError(f"more than {SCRIPT_CHARS_MAX:,} characters")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        mended = _bare(text)
    if mended.startswith(("{&quot;", "[&quot;", "{&#34;", "[{&quot;")):
        mended = unescape(mended)
    mended = _SPARE_COMMA.sub(lambda found: found[1] or "", mended)
    try:
        return _DECODER.decode(mended)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (character {error.pos})") from error


def _bare(text: str) -> str:
    """Take off what stands around JSON; a few layers of it."""
    for _ in range(len(_BEFORE)):
        text = text.strip()
        for one in _BEFORE:
            text = text.removeprefix(one)
        for one in _BEHIND:
            text = text.removesuffix(one)
    return text


# Texts may hold line breaks; what is no number of JSON ("NaN") is nothing.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def _counted(root: Any, nodes_max: int) -> int:
    """Count objects and lists; raises ValueError where there are too many, or too deep."""
    todo, nodes = [(root, 1)], 0
    while todo:
        one, depth = todo.pop()
        if not isinstance(one, dict | list):
            continue
        nodes += 1
        if nodes > nodes_max:
            raise ValueError(f"more than {NODES_MAX:,} objects and lists")
        if depth > DEPTH_MAX:
            raise ValueError(f"nested more than {DEPTH_MAX} deep")
        todo += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]
    return nodes


def _flat(one: Any) -> Iterator[Any]:
    """List what is in a list, and in lists in it; of no list itself."""
    if isinstance(one, list):
        for inner in one:
            yield from _flat(inner)
    elif one is not None:
        yield one


def _mappings(one: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(one, Mapping):
        yield one
        for inner in one.values():
            yield from _mappings(inner)
    elif isinstance(one, list):
        for inner in one:
            yield from _mappings(inner)


def _of_type(one: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(one, list):
        for inner in one:
            yield from _of_type(inner, kind)
    elif isinstance(one, Mapping):
        if kind in {_last(name) for name in _flat(one.get("@type"))}:
            yield one
            return
        for inner in one.values():
            yield from _of_type(inner, kind)


def _last(name: object) -> str:
    return re.split(r"[/#:]", name)[-1] if isinstance(name, str) else ""
