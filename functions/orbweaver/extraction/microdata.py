"""Read data in attributes: `meta`, OpenGraph, and microdata as objects like JSON-LD.

Source: https://html.spec.whatwg.org/multipage/microdata.html#values, https://ogp.me/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orbweaver.extraction.json_ld import NODES_MAX, JsonLdObjects
from orbweaver.extraction.work_budget import OBJECT_UNITS, WorkBudget

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

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
