"""Objects that pages state as data: JSON-LD, and the paths that lead to values in them.

- All scripts of the type are read, each by itself: one that is malformed spoils no other. What
  shops commonly get wrong is put right first: comments and CDATA around it, control characters in
  texts, commas and semicolons at the end, and the whole of it escaped.
- An object is one of a type by the last part of its `@type`, wherever it stands: in lists, in
  `@graph`, in other objects; but an object within one of the same type is a part of that one.
- Whatever is looked at is paid for out of the page's budget of work (`work`), while it is looked
  at: objects may refer to each other, and microdata may be a property by many names.
- A path is names with points between; a list is looked into, a number is a place in it. An object
  that has nothing but an `@id` is the one that has that `@id` as well. Where an object stands and a
  value is wanted, it is its `@value`, `name` or (for a URL) `url`, `contentUrl` or `@id`.

Source: https://www.w3.org/TR/json-ld11/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from orbweaver.extraction.work import OBJECT_UNITS, Work
from orbweaver.model.item import Scalar

SCRIPTS_MAX = 50
SCRIPT_CHARS_MAX = 2_000_000
SCRIPTS_CHARS_MAX = 4_000_000
DEPTH_MAX = 64
NODES_MAX = 50_000
VALUE_KEYS = ("@value", "name")
URL_KEYS = ("@value", "url", "contentUrl", "@id")

_OBJECTS = "in objects that lie in each other, or refer to each other"
# What shops put around JSON, so that old browsers pass it over.
_BEFORE = ("//<![CDATA[", "/*<![CDATA[*/", "<![CDATA[", "<!--", "//", "\ufeff")
_BEHIND = ("//]]>", "/*]]>*/", "]]>", "//-->", "-->", ";")
# Texts are taken whole, so that a comma in one stays; one that does not end, up to the end of all.
_SPARE_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|,(?=\s*+[\]}])', re.DOTALL)


@dataclass(slots=True)
class JsonLdObjects:
    """The objects of a page; `problems` say what could not be read, `cut` of how much."""

    roots: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cut: int = 0
    work: Work = field(default_factory=Work)
    _by_id: dict[str, Mapping[str, Any]] | None = None
    _by_type: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """List the objects of a type, in the order of the page, each once.

        Raises TooMuchError, as all below does.
        """
        known = self._by_type.get(kind)
        if known is None:
            known = self._by_type[kind] = self._of_type(kind)
        return known

    def values(self, path: str, within: Any, *, url: bool = False) -> Iterator[tuple[Scalar, Any]]:
        """List what a path leads to, each with the object that it was found in."""
        here: Iterable[tuple[Any, Any]] = ((within, None),)
        for name in path.split("."):
            here = self._steps(here, name)
        keys = URL_KEYS if url else VALUE_KEYS
        for one, holder in here:
            for inner in self._flat(one):
                value = self._scalar(inner, keys)
                if value is not None:
                    yield value, holder

    def _steps(self, here: Iterable[tuple[Any, Any]], name: str) -> Iterator[tuple[Any, Any]]:
        """Go on by one name, from each of what was found, as far as it is asked for."""
        place = int(name[:9]) if name.isdecimal() else None
        for one, _ in here:
            if isinstance(one, list) and place is not None:
                if place < len(one):
                    yield one[place], None
                continue
            for inner in self._flat(one):
                if isinstance(inner, Mapping):
                    whole = self._whole(inner)
                    if whole.get(name) is not None:
                        yield whole[name], whole
                    elif place == 0:
                        yield whole, None

    def _scalar(self, one: Any, keys: Iterable[str]) -> Scalar:
        if isinstance(one, Mapping):
            one = self._whole(one)
            inner = (value for key in keys for value in self._flat(one.get(key)))
            one = next((value for value in inner if not isinstance(value, Mapping)), None)
        return one if isinstance(one, str | int | float | bool) else None

    def _flat(self, one: Any) -> Iterator[Any]:
        """List what is in a list, and in lists in it; of no list itself."""
        if not isinstance(one, list):
            self.work.spend(OBJECT_UNITS, _OBJECTS)
            if one is not None:
                yield one
            return
        within = [iter(one)]
        while within:
            for inner in within[-1]:
                self.work.spend(OBJECT_UNITS, _OBJECTS)
                if isinstance(inner, list):
                    within.append(iter(inner))
                    break
                if inner is not None:
                    yield inner
            else:
                within.pop()

    def _mappings(self, descends: Callable[[Mapping[str, Any]], bool]) -> None:
        """Look at all objects in the order of the page, each once; within those that say so."""
        seen: set[int] = set()
        todo: list[Any] = [self.roots]
        while todo:
            one = todo.pop()
            self.work.spend(OBJECT_UNITS, _OBJECTS)
            # Microdata may be the value of many names, so each is looked at once.
            if not isinstance(one, Mapping | list) or id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, list):
                todo += reversed(one)
            elif descends(one):
                todo += reversed([*one.values()])

    def _of_type(self, kind: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []

        def descends(one: Mapping[str, Any]) -> bool:
            if any(_last(name) == kind for name in self._flat(one.get("@type"))):
                found.append(one)
                return False
            return True

        self._mappings(descends)
        return found

    def _whole(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object that one refers to which has only an `@id`."""
        name = one.get("@id")
        if len(one) > 1 or not isinstance(name, str):
            return one
        if self._by_id is None:
            by_id: dict[str, Mapping[str, Any]] = {}

            def descends(node: Mapping[str, Any]) -> bool:
                known = node.get("@id")
                if isinstance(known, str) and len(node) > 1:
                    by_id.setdefault(known, node)
                return True

            self._mappings(descends)
            self._by_id = by_id
        return self._by_id.get(name, one)


def json_ld(scripts: Iterable[str], work: Work | None = None) -> JsonLdObjects:
    """Read the JSON-LD scripts of a page; what is found in them is paid for by `work`."""
    found = JsonLdObjects(work=work or Work())
    nodes = chars = 0
    scripts = [*scripts]
    for place, text in enumerate(scripts):
        if place >= SCRIPTS_MAX:
            found.cut += len(scripts) - place
            found.problems.append(f"more than {SCRIPTS_MAX} JSON-LD scripts: the rest is not read")
            break
        chars += len(text)
        if chars > SCRIPTS_CHARS_MAX:
            found.cut += len(scripts) - place
            many = f"more than {SCRIPTS_CHARS_MAX:,} characters of JSON-LD"
            found.problems.append(f"{many}: script {place + 1} and the rest are not read")
            break
        try:
            root = _decoded(text)
            nodes += _counted(root, NODES_MAX - nodes)
        except RecursionError:
            found.cut += 1
            found.problems.append(f"JSON-LD script {place + 1} is nested too deeply")
        except ValueError as error:
            found.cut += 1
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


def _last(name: object) -> str:
    """Return what stands behind the last of `/`, `#` and `:`."""
    return name[max(map(name.rfind, "/#:")) + 1 :] if isinstance(name, str) else ""
