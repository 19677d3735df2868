"""Read JSON-LD objects of a page, microdata as such objects, and follow paths to values in them.

The type of an object is the last part of its `@type`. Objects are found at any depth: in lists, in
`@graph`, in other objects. An object inside an object of the same type is not found separately.
Source: https://www.w3.org/TR/json-ld11/, https://ogp.me/,
https://html.spec.whatwg.org/multipage/microdata.html#values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any

from orbweaver.extraction.work_budget import OBJECT_UNITS, WorkBudget
from orbweaver.model.item import Scalar

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


SCRIPTS_MAX = 50
SCRIPT_CHARS_MAX = 2_000_000
SCRIPTS_CHARS_MAX = 4_000_000
DEPTH_MAX = 64
NODES_MAX = 50_000
# If a path ends at an object, the first of these keys that the object has gives the value.
VALUE_KEYS = ("@value", "name")
URL_KEYS = ("@value", "url", "contentUrl", "@id")

_OBJECTS = "in objects that lie in each other, or refer to each other"
# Wrappers that shops put around JSON to hide it from old browsers.
_BEFORE = ("//<![CDATA[", "/*<![CDATA[*/", "<![CDATA[", "<!--", "//", "\ufeff")
_BEHIND = ("//]]>", "/*]]>*/", "]]>", "//-->", "-->", ";")
# Finds commas before a closing bracket, which JSON forbids. Whole strings match as well, so that a
# comma inside a string is kept. An unterminated string reaches to the end.
_SPARE_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|,(?=\s*+[\]}])', re.DOTALL)
# Maximum number of names of one `itemprop`. Further names are ignored.
NAMES_MAX = 100
# Attribute that contains the value of a property, by element (HTML Standard).
_VALUED = {
    "meta": "content",
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
    **dict.fromkeys(("data", "meter"), "value"),
    "time": "datetime",
}


@dataclass(slots=True)
class JsonLdObjects:
    """The JSON-LD or microdata objects of a page.

    Methods raise TooMuchError when the work budget `work` is exhausted.
    """

    roots: list[Any] = field(default_factory=list)
    # Messages about unreadable parts. `cut` is the number of these parts.
    problems: list[str] = field(default_factory=list)
    cut: int = 0
    work: WorkBudget = field(default_factory=WorkBudget)
    _by_id: dict[str, Mapping[str, Any]] | None = None
    _by_type: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def with_type(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the objects of a type in page order, without duplicates."""
        known = self._by_type.get(kind)
        if known is None:
            known = self._by_type[kind] = self._objects_of_type(kind)
        return known

    def values(self, path: str, within: Any, *, url: bool = False) -> Iterator[tuple[Scalar, Any]]:
        """Yield the values at the end of a path from `within`, each with its object.

        A path is names separated by dots. All elements of a list are searched, and a number is an
        index. `url`: if the path ends at an object, take the object's URL.
        """
        here: Iterable[tuple[Any, Any]] = ((within, None),)
        for name in path.split("."):
            here = self._follow(here, name)
        keys = URL_KEYS if url else VALUE_KEYS
        for one, holder in here:
            for inner in self._flatten(one):
                value = self._scalar(inner, keys)
                if value is not None:
                    yield value, holder

    def _follow(self, here: Iterable[tuple[Any, Any]], name: str) -> Iterator[tuple[Any, Any]]:
        """Follow one name of a path: yield its value in each object, together with the object."""
        place = int(name[:9]) if name.isdecimal() else None
        for one, _ in here:
            if isinstance(one, list) and place is not None:
                if place < len(one):
                    yield one[place], None
                continue
            for inner in self._flatten(one):
                if isinstance(inner, Mapping):
                    whole = self._dereference(inner)
                    if whole.get(name) is not None:
                        yield whole[name], whole
                    elif place == 0:
                        yield whole, None

    def _scalar(self, one: Any, keys: Iterable[str]) -> Scalar:
        if isinstance(one, Mapping):
            one = self._dereference(one)
            inner = (value for key in keys for value in self._flatten(one.get(key)))
            one = next((value for value in inner if not isinstance(value, Mapping)), None)
        return one if isinstance(one, str | int | float | bool) else None

    def _flatten(self, one: Any) -> Iterator[Any]:
        """Yield the elements of nested lists. Any value that is no list yields itself."""
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

    def _visit_objects(self, descends: Callable[[Mapping[str, Any]], bool]) -> None:
        """Visit all objects once, in page order.

        `descends` gets an object, and returns whether to visit the objects in it.
        """
        seen: set[int] = set()
        todo: list[Any] = [self.roots]
        while todo:
            one = todo.pop()
            self.work.spend(OBJECT_UNITS, _OBJECTS)
            # A microdata item can be the value of several names, so visited objects are skipped.
            if not isinstance(one, Mapping | list) or id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, list):
                todo += reversed(one)
            elif descends(one):
                todo += reversed([*one.values()])

    def _objects_of_type(self, kind: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []

        def descends(one: Mapping[str, Any]) -> bool:
            if any(_last_part(name) == kind for name in self._flatten(one.get("@type"))):
                found.append(one)
                return False
            return True

        self._visit_objects(descends)
        return found

    def _dereference(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object that an `@id` reference points to, or the object itself."""
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

            self._visit_objects(descends)
            self._by_id = by_id
        return self._by_id.get(name, one)


def json_ld(scripts: Iterable[str], work: WorkBudget | None = None) -> JsonLdObjects:
    """Read the JSON-LD scripts of a page. Searches in the result spend units of `work`."""
    found = JsonLdObjects(work=work or WorkBudget())
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
        try:  # a malformed script does not affect others
            root = _parse_script(text)
            nodes += count_nodes(root, NODES_MAX - nodes, NODES_MAX)
        except RecursionError:
            found.cut += 1
            found.problems.append(f"JSON-LD script {place + 1} is nested too deeply")
        except ValueError as error:
            found.cut += 1
            found.problems.append(f"JSON-LD script {place + 1} is malformed: {error}"[:200])
        else:
            found.roots.append(root)
    return found


def _parse_script(text: str) -> Any:
    """Parse a script. If it is malformed, common errors of shops are repaired first."""
    if len(text) > SCRIPT_CHARS_MAX:
        raise ValueError(f"more than {SCRIPT_CHARS_MAX:,} characters")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        mended = _unwrap(text)
    if mended.startswith(("{&quot;", "[&quot;", "{&#34;", "[{&quot;")):
        mended = unescape(mended)
    mended = _SPARE_COMMA.sub(lambda found: found[1] or "", mended)
    try:
        return _DECODER.decode(mended)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (character {error.pos})") from error


def _unwrap(text: str) -> str:
    for _ in range(len(_BEFORE)):
        text = text.strip()
        for one in _BEFORE:
            text = text.removeprefix(one)
        for one in _BEHIND:
            text = text.removesuffix(one)
    return text


# Accepts control characters in strings. Constants that JSON does not have ("NaN") become None.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def count_nodes(root: Any, left: int, nodes_max: int) -> int:
    """Count objects and lists.

    Raises ValueError if more than `left` of `nodes_max` are found, or if they are nested too
    deeply.
    """
    todo, nodes = [(root, 1)], 0
    while todo:
        one, depth = todo.pop()
        if not isinstance(one, dict | list):
            continue
        nodes += 1
        if nodes > left:
            raise ValueError(f"more than {nodes_max:,} objects and lists")
        if depth > DEPTH_MAX:
            raise ValueError(f"nested more than {DEPTH_MAX} deep")
        todo += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]
    return nodes


def _last_part(name: object) -> str:
    """Return the part after the last `/`, `#` or `:`."""
    return name[max(map(name.rfind, "/#:")) + 1 :] if isinstance(name, str) else ""


def metas(tree: LexborHTMLParser) -> dict[str, list[str]]:
    """Return the contents of `meta` elements, by name, property or itemprop in lower case."""
    found: dict[str, list[str]] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        content = (attributes.get("content") or "").strip()
        names = {(attributes.get(key) or "").strip().lower() for key in _NAMES}
        names.update(*((attributes.get(key) or "").lower().split() for key in _NAME_LISTS))
        for name in names if content else ():
            found.setdefault(name, []).append(content)
    return found


_NAMES = ("name", "property", "itemprop", "http-equiv")
# Names separated by spaces (RDFa Core, 7.5; HTML Standard, 5.2.3).
_NAME_LISTS = ("property", "itemprop")


def property_of(name: str) -> str:
    """Return an OpenGraph name with its prefix: `og:title` for `title`."""
    return name.lower() if ":" in name else f"og:{name.lower()}"


def microdata(
    tree: LexborHTMLParser, text: Callable[[LexborNode], str], work: WorkBudget | None = None
) -> JsonLdObjects:
    """Read the microdata items of a page. `itemref` is not followed."""
    found = JsonLdObjects(work=work or WorkBudget())
    # The enclosing item of each visited node. None: the node is in no item.
    scopes: dict[int, dict[str, Any] | None] = {}
    nodes = tree.css("[itemscope], [itemprop]")
    if len(nodes) > NODES_MAX:
        found.cut += len(nodes) - NODES_MAX
        found.problems.append(
            f"more than {NODES_MAX:,} elements of microdata: the rest is not read"
        )
    seen: set[int] = set()
    overnamed = 0
    for node in nodes[:NODES_MAX]:
        found.work.spend(OBJECT_UNITS, "microdata")
        if node.mem_id in seen:  # lexbor returns an element twice if both selectors match it
            continue
        seen.add(node.mem_id)
        attributes = node.attributes
        holder = _scope_of(node, scopes)
        value: Any
        if "itemscope" in attributes:
            kinds = (attributes.get("itemtype") or "").split()
            value = {"@type": kinds} | (
                {"@id": attributes["itemid"]} if attributes.get("itemid") else {}
            )
            scopes[node.mem_id] = value
        else:
            value = _value(node, attributes, text)
        names = (attributes.get("itemprop") or "").split(maxsplit=NAMES_MAX)
        if len(names) > NAMES_MAX:
            names.pop()
            overnamed += 1
        if holder is not None and names:
            for name in names:
                holder.setdefault(name, []).append(value)
        elif "itemscope" in attributes:
            found.roots.append(value)
    if overnamed:
        found.cut += overnamed
        many = f"{overnamed:,} properties with more than {NAMES_MAX} names"
        found.problems.append(f"{many}: the rest of them is not read")
    return found


def _scope_of(node: LexborNode, scopes: dict[int, dict[str, Any] | None]) -> dict[str, Any] | None:
    passed: list[int] = []
    scope = None
    above = node.parent
    while above is not None:
        here = above.mem_id
        if here in scopes:
            scope = scopes[here]
            break
        passed.append(here)
        above = above.parent
    scopes.update(dict.fromkeys(passed, scope))  # so that no ancestor is visited twice
    return scope


def _value(
    node: LexborNode, attributes: dict[str, str | None], text: Callable[[LexborNode], str]
) -> str:
    # Shops put `content` on any element, so it has priority over the element's own attribute.
    if attributes.get("content"):
        return attributes["content"] or ""
    name = _VALUED.get(node.tag or "")
    if name is not None and attributes.get(name):
        return attributes[name] or ""
    return text(node)
