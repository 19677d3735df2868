"""Provide the tree and structured data of one page to rules. Each is built once, when needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from orbweaver.extraction import json_ld as structured
from orbweaver.extraction.convert import Base, UnfitValue
from orbweaver.extraction.css import Extent, found, weight_of
from orbweaver.extraction.json_ld import JsonLdObjects
from orbweaver.extraction.work_budget import (
    CALL_UNITS,
    OBJECT_UNITS,
    UNITS_MAX,
    WRITTEN_A_UNIT,
    TooMuchError,
    WorkBudget,
)
from orbweaver.model.value import positional_value_class
from orbweaver.parsing.html_scan import text_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from orbweaver.parsing.page import Page

# Elements whose content is text without markup.
_PLAIN = frozenset({"title", "script", "style", "textarea"})
_JSON_LD = "application/ld+json"
_VALUES = "values that paths find"
_NODES = "to look through, in elements that lie in each other or beside each other"


@positional_value_class
class JsonBody:
    """The decoded body of a JSON response."""

    data: Any


class Document:
    """A page with its URL, tree and structured data. A budget limits the work (`work_budget`).

    A JSON response has its data in `body`, and its page is empty.
    """

    def __init__(
        self,
        page: Page,
        url: str,
        tracking: frozenset[str],
        units_max: int = UNITS_MAX,
        body: JsonBody | None = None,
    ) -> None:
        self.page = page
        self.body = body
        self.url = url
        self.work = WorkBudget(units_max, tried=units_max < UNITS_MAX)
        # Number of items that were omitted because of their size or number.
        self.items_cut = 0
        self._tracking = tracking
        self._extent: tuple[int, Extent] | None = None

    @cached_property
    def tree(self) -> LexborHTMLParser:
        return self.page.tree

    @cached_property
    def root(self) -> LexborNode:
        root = self.tree.root
        if root is None:  # lexbor always makes a root
            raise TooMuchError("the page has no element")
        return root

    @cached_property
    def base(self) -> Base:
        """Base URL of relative references."""
        return Base(url=self.page.base or self.url, tracking=self._tracking)

    @cached_property
    def json_ld(self) -> JsonLdObjects:
        scripts = (
            node.text()
            for node in self.tree.css("script[type]")
            if (node.attributes.get("type") or "").strip().lower().startswith(_JSON_LD)
        )
        return structured.json_ld(scripts, self.work)

    @cached_property
    def microdata(self) -> JsonLdObjects:
        return structured.microdata(self.tree, self.text, self.work)

    @property
    def data_cut(self) -> int:
        """Number of JSON-LD scripts and microdata elements that were not read completely."""
        made = (self.__dict__.get(name) for name in ("json_ld", "microdata"))
        return sum(objects.cut for objects in made if objects is not None)

    @cached_property
    def metas(self) -> dict[str, list[str]]:
        return structured.metas(self.tree)

    def values_at(self, path: str, within: Any) -> list[Any]:
        """Return the values that a JSONPath finds in a part of the body. Raises UnfitValue."""
        # Only crawls with rules for JSON need this import.
        from orbweaver.extraction.json_path import JsonPathError, values_at

        self.work.spend(CALL_UNITS, _VALUES)
        try:
            found = values_at(path, within)
        except JsonPathError as error:
            raise UnfitValue(str(error)) from error
        self.work.spend(len(found) * OBJECT_UNITS, _VALUES)
        return found

    def text(self, node: LexborNode) -> str:
        """Return the visible text of a node with single spaces."""
        if node.tag in _PLAIN:
            return " ".join(self._spend(node.text()).split())
        return text_of(self._spend(node.html or "").encode("utf-8", "replace"))

    def raw(self, node: LexborNode) -> str:
        """Return the text of a node with its original white space. `br` becomes a line break."""
        if node.css_first("br") is None:
            return self._spend(node.text())
        pieces = (
            "\n" if one.tag == "br" else one.text_content or ""
            for one in node.traverse(include_text=True)
            if one.is_text_node or one.tag == "br"
        )
        return self._spend("".join(pieces))

    def html(self, node: LexborNode) -> str:
        return self._spend(node.inner_html or "").strip()

    def select(self, selector: str, within: LexborNode, *, itself: bool) -> list[LexborNode]:
        """Return the nodes within a node that match a selector.

        `itself`: the node can also match.
        """
        self.work.call()
        self.work.spend(weight_of(selector, self._extent_of(within)), _NODES)
        return found(selector, within, itself=itself, spend=self._spend_on_nodes)

    def _extent_of(self, node: LexborNode) -> Extent:
        """Measure the size of a node. Consecutive fields of an item share the measurement."""
        if node.mem_id == self.root.mem_id:
            return self._whole
        if self._extent is None or self._extent[0] != node.mem_id:
            html = node.html or ""
            self.work.spend(len(html) // WRITTEN_A_UNIT, _NODES)
            self._extent = node.mem_id, self._whole.part(html.count("<"), len(html))
        return self._extent[1]

    @cached_property
    def _whole(self) -> Extent:
        html = self.page.html
        return Extent(tags=html.count(b"<"), chars=len(html), root=self.root)

    def _spend_on_nodes(self, units: int) -> None:
        self.work.spend(units, _NODES)

    def _spend(self, text: str) -> str:
        self.work.spend(len(text), "text in elements that lie in each other")
        return text
