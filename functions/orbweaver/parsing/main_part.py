"""Select the main content of a page: a tree without navigation, forms and advertising.

Elements, roles, ids and classes that are usual for navigation, forms and advertising only make an
element a candidate for removal. Then its content decides: the amount of text, of text in links, and
of controls. Each removal is counted by reason, in characters without spaces (`model/cuts.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Maximum number of characters that are measured per character of the page, so that nested
# candidates cost linear time. Beyond it, candidates are removed without being measured.
MEASURED_CHARS_MAX = 20
# A form with more text per control is content. It is kept without its controls, because some
# servers put the whole page into one form.
FORM_CHARS_MIN = 150
# A footer within the main part is kept if it has this much text. A shorter footer is a note about
# the page.
PROSE_CHARS_MIN = 200
# On a page without `main`: minimum text of a candidate without heading that follows a paragraph. If
# it has less, it is removed.
FLOWING_CHARS_MIN = 40
# A button with longer text is a title, and is kept.
BUTTON_CHARS_MAX = 30

_UNSHOWN = "script, style, noscript, template"
_CONTROLS = "input:not([type=hidden]), select, textarea, button"
_BLOCKS = "p, h1, h2, h3, h4, h5, h6, li, dd, pre, blockquote, table"
_PROSE = "p, h1, h2, h3, h4, h5, h6, dd, pre, blockquote, table"
_HEADINGS = "h1, h2, h3, h4, h5, h6, table"
_FLOW = _words("p h1 h2 h3 h4 h5 h6 pre ul ol dl table blockquote figure section details")
_ARTICLES = frozenset({"main", "article"})
_HIDING = ("hidden", "aria-hidden", "style")
# A button directly inside one of these elements is the title of the section that it opens.
_TITLED = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt", "legend", "caption"})

# Reasons of removals, which are keys of a record's `cut`.
AROUND = "omitted_around"
NAVIGATION = "omitted_navigation"
ASIDES = "omitted_asides"
FORMS = "omitted_forms"
ADVERTS = "omitted_adverts"
HIDDEN = "omitted_hidden"
CONTROLS = "omitted_controls"

# Stands for a name that contains "nav". Such a candidate is removed only if it consists mainly of
# links.
LINKS = "nav*"

# Each selector visits every element. So a selector is used only if the page may contain its name.
# For these tags, searching the name would cost more than the selector.
_ALWAYS = (
    *("nav", "aside", "footer", "dialog", "form", "[aria-hidden=true]", "[hidden]"),
    *("[style*='display:none' i]", "[style*='display: none' i]"),
)
_REASONS = {
    "nav": NAVIGATION,
    "aside": ASIDES,
    "footer": NAVIGATION,
    "dialog": HIDDEN,
    "form": FORMS,
}
_BY_VALUE = {
    b"navigation": ("[role=navigation]", "#navigation", ".navigation"),
    b"search": ("[role=search]",),
    b"banner": ("[role=banner]",),
    b"contentinfo": ("[role=contentinfo]",),
    b"complementary": ("[role=complementary]",),
    b"header": ("#header",),
    **{
        name.encode(): (f"#{name}", f".{name}")
        for name in ("masthead", "nav", "navbar", "menu", "sidebar", "footer")
    },
    **{
        name.encode(): (f".{name}",)
        for name in (
            *("search-form", "site-header", "widget-area", "toc", "site-footer", "page-footer"),
            *("ad", "ads", "share", "related"),
        )
    },
}
# Names for additions to a text (permalinks, line numbers). Only programs give these names, and no
# other element has them.
_FURNITURE = {
    **{
        name.encode(): (f".{name}",)
        for name in (
            *("headerlink", "anchor-link", "skip-link", "navheader", "navfooter", "sphinxsidebar"),
            # MediaWiki, and WordPress's form for a comment.
            *("mw-editsection", "editsection", "mw-jump-link", "printfooter", "comment-respond"),
            # Line numbers of cgit, gitweb, Pygments, Trac, and others.
            *("linenumbers", "linenr", "linenos", "linenodiv", "lineno", "line-num", "lines-num"),
            *("diff-line-num", "hljs-ln-numbers"),
        )
    },
    b"mw-navigation": ("#mw-navigation",),
    b"jump-to-nav": ("#jump-to-nav",),
    b"sitesub": ("#siteSub",),
}
_FURNITURE_NAMES = frozenset(name.decode() for name in _FURNITURE)
_SELECTORS = _BY_VALUE | _FURNITURE
_BY_BEGINNING = {
    **{
        begins.encode(): (f"[class^={begins}]",)
        for begins in (
            *("breadcrumb", "sidebar-", "footer-", "newsletter", "subscribe", "ad-", "advert"),
            *("share-", "sharing", "social", "related-", "recommend"),
        )
    },
    **{
        begins.encode(): (f"[id^={begins}]", f"[class^={begins}]")
        for begins in ("cookie", "consent")
    },
}
# Names like `topNav`, `nav-list`, `page_nav`. The element is removed if most of its text is links.
_NAMED_NAVIGATION = "[class*=nav i], [id*=nav i]"
_BEGINNINGS = tuple(_BY_BEGINNING)
_ADVERTS = (
    *("newsletter", "subscribe", "ad-", "advert", "share-", "sharing", "social", "related-"),
    *("recommend", "cookie", "consent"),
)
_ADVERT_NAMES = frozenset({"ad", "ads", "share", "related", "widget-area"})
_ASIDE_NAMES = frozenset({"sidebar", "complementary"})
_FOOTERS = frozenset({"footer", "site-footer", "page-footer", "contentinfo"})
# Names for notices. Without a heading, such an element is a notice. With a heading, it can be an
# article about notices.
_NOTICES = ("newsletter", "subscribe", "cookie", "consent")

# A value in any tag or text that may belong to `id`, `class` or `role`.
_VALUE = re.compile(
    rb"""=(?<=[dse\t\n\f\r ]=)(?=[\t\n\f\r ]*+("[^"]*+"|'[^']*+'|[^\t\n\f\r >]{0,100}+))"""
)
_PLAIN_VALUE = bytes.maketrans(b"\"'/", b"   ")


def main_part(
    tree: LexborHTMLParser, low: bytes, *, choosing: bool = True
) -> tuple[LexborNode | None, Counter[str]]:
    """Reduce a tree to the main part, and count the removed characters by reason.

    `low` is the page in lower case. If `choosing` is False, all visible content is kept. Returns
    None if the page has no body.
    """
    body = tree.body
    if body is None:
        return None, Counter()
    for node in reversed(body.css(_UNSHOWN)):
        node.decompose()
    if not choosing:
        return body, Counter()
    root = _root(body) if b"main" in low else body
    for name in _HIDING:
        if name in root.attributes:
            del root.attrs[name]
    part = _Part(root, is_main=root.mem_id != body.mem_id)
    omitted = part.omitted
    if part.is_main:
        omitted[AROUND] = size_of(body) - part.size
    if part.size:
        part.remove(selectors(low))
    return root, +omitted


def size_of(node: LexborNode) -> int:
    return _chars(node.text())


def _chars(text: str) -> int:
    """Count characters except spaces and line breaks. This is faster than splitting the text."""
    return len(text) - text.count(" ") - text.count("\n")


def selectors(low: bytes) -> tuple[str, ...]:
    """Return the selectors for ids, classes and roles that may occur in the page."""
    said = b" ".join(set(_VALUE.findall(low))).translate(_PLAIN_VALUE)
    if b"&" in said:
        said += b" " + unescape(said.decode("utf-8", "replace")).lower().encode()
    values = set(said.split())
    beginnings = [value for value in values if value.startswith(_BEGINNINGS)]
    chosen = [*_ALWAYS]
    for value in sorted(values & _SELECTORS.keys()):
        chosen += _SELECTORS[value]
    if b"nav" in said:
        chosen.append(_NAMED_NAVIGATION)
    if beginnings:
        for begins, found in _BY_BEGINNING.items():
            if any(value.startswith(begins) for value in beginnings):
                chosen += found
    return tuple(chosen)


def _root(body: LexborNode) -> LexborNode:
    mains: list[LexborNode] = []
    for node in body.css("main, [role=main]"):
        if not (mains and _is_within(node, mains[-1])):
            mains.append(node)
    return mains[0] if len(mains) == 1 and mains[0].text().strip() else body


def _is_within(node: LexborNode, other: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id == other.mem_id:
            return True
        parent = parent.parent
    return False


class _Part:
    """The main part of one page, from which candidates are removed."""

    def __init__(self, root: LexborNode, *, is_main: bool) -> None:
        self.root = root
        self.is_main = is_main
        self.omitted: Counter[str] = Counter()
        text = root.text()
        self.size = _chars(text)
        self._measurable = MEASURED_CHARS_MAX * len(text)
        self._controls: Counter[int] = Counter()

    def remove(self, chosen: tuple[str, ...]) -> None:
        found = {node.mem_id: node for node in self.root.css(", ".join(chosen))}
        found.pop(self.root.mem_id, None)
        buttons = self._count_controls(found)
        # Remove inner elements first, because removing an outer one frees the memory of the inner
        # ones.
        for node in reversed(found.values()):
            reason, name = _reason(node)
            size = self._measure(node)
            if size is None:
                self._drop(node, reason, 0)
            elif name in _FURNITURE_NAMES and size * 2 <= self.size:
                self._drop(node, CONTROLS, size)
            elif not size or not self._is_content(node, reason, name, size):
                self._drop(node, reason, size)
            else:
                self._keep(node, reason)
        if buttons:
            for button in reversed(self.root.css("button")):
                if not _is_title(button):
                    self._drop(button, FORMS, size_of(button))

    def _count_controls(self, candidates: dict[int, LexborNode]) -> bool:
        buttons = False
        for control in self.root.css(_CONTROLS):
            buttons = buttons or control.tag == "button"
            outer = control.parent if candidates else None
            while outer is not None and outer.mem_id != self.root.mem_id:
                if outer.mem_id in candidates:
                    self._controls[outer.mem_id] += 1
                outer = outer.parent
        return buttons

    def _drop(self, node: LexborNode, reason: str, size: int) -> None:
        self.omitted[reason] += size
        node.decompose()

    def _keep(self, node: LexborNode, reason: str) -> None:
        """Keep a candidate, but remove its hiding attributes or its controls."""
        if reason == HIDDEN:
            for name in _HIDING:
                if name in node.attributes:
                    del node.attrs[name]
        elif reason == FORMS and node.tag == "form":
            for control in reversed(node.css(_CONTROLS)):
                if control.tag != "button" or not _is_title(control):
                    self._drop(control, FORMS, size_of(control))

    def _measure(self, node: LexborNode) -> int | None:
        """Count the characters of an element.

        Returns None if too much has been measured already.
        """
        if self._measurable < 0:
            return None
        text = node.text()
        self._measurable -= len(text)
        return _chars(text)

    def _is_content(self, node: LexborNode, reason: str, name: str, size: int) -> bool:
        # An element is kept if it has most of the page's text outside of links. A table of contents
        # is kept if it has most of the page's text.
        linked = sum(map(size_of, _outermost_links(node)))
        if (size - linked) * 2 > self.size or (name == "toc" and size * 2 > self.size):
            return True
        if reason == HIDDEN or node.tag == "nav" or name == "navigation":
            return False
        if reason == FORMS:
            return self._is_form_content(node, size)
        if linked * 2 > size or (self._controls[node.mem_id] and name != LINKS):
            return False
        return self._is_prose(node, name, size)

    def _is_prose(self, node: LexborNode, name: str, size: int) -> bool:
        """Whether a candidate that does not consist of links or controls is part of the text."""
        if name == LINKS:
            return node.css_first(_PROSE) is not None
        if node.tag == "footer" and node.parent is not None and node.parent.tag == "blockquote":
            return True
        # In the main part and in articles, prose is kept regardless of its class: notes, related
        # work, a cookie policy.
        if self.is_main or _is_in_article(node, self.root):
            return _is_inner_prose(node, name, size)
        # A header is kept if it has the only title of the page.
        if name == "header" and node.css_first("h1") is not None:
            return len(self.root.css("h1")) == 1
        return _is_outer_prose(node, name, size)

    def _is_form_content(self, form: LexborNode, size: int) -> bool:
        shown = size - sum(map(size_of, form.css(_CONTROLS)))
        controls = max(1, self._controls[form.mem_id])
        return shown * 2 > self.size or shown >= FORM_CHARS_MIN * controls


def _reason(node: LexborNode) -> tuple[str, str]:
    """Return the reason for which a candidate can be removed, and the name that matched."""
    attributes = node.attributes
    words = f"{attributes.get('role') or ''} {attributes.get('id') or ''}".lower().split()
    words += (attributes.get("class") or "").lower().split()
    name = next((word for word in words if word in _FURNITURE_NAMES), "")
    if name:
        return CONTROLS, name
    if node.tag in _REASONS:
        return _REASONS[node.tag], node.tag
    name = next((word for word in words if word.encode() in _BY_VALUE), "") or next(
        (word for word in words if word.encode().startswith(_BEGINNINGS)), ""
    )
    if not name and any("nav" in word for word in words):
        return NAVIGATION, LINKS
    if not name:
        return HIDDEN, ""
    if name in _ADVERT_NAMES or name.startswith(_ADVERTS):
        return ADVERTS, name
    return ASIDES if name in _ASIDE_NAMES else NAVIGATION, name


def _is_inner_prose(node: LexborNode, name: str, size: int) -> bool:
    """Whether a candidate in the main part or in an article is part of the text."""
    if node.tag == "aside" or name in _ASIDE_NAMES:
        return True
    if node.css_first(_BLOCKS) is None:
        return False
    return name not in _FOOTERS or size >= PROSE_CHARS_MIN


def _is_outer_prose(node: LexborNode, name: str, size: int) -> bool:
    """Whether a candidate on a page without main part is part of the text.

    It must follow a paragraph or a similar element.
    """
    if node.tag == "footer" or not _follows_flow_element(node):
        return False
    if node.tag == "aside" or name in _ASIDE_NAMES:
        return True
    has_heading = node.css_first(_HEADINGS) is not None
    if name.startswith(_NOTICES) and not has_heading:
        return False
    return has_heading or (size >= FLOWING_CHARS_MIN and node.css_first(_BLOCKS) is not None)


def _outermost_links(node: LexborNode) -> list[LexborNode]:
    # `node.css` finds no nested links, because HTML forbids a link within a link.
    return [node] if node.tag == "a" else node.css("a")


def _is_title(button: LexborNode) -> bool:
    parent = button.parent
    return (parent is not None and parent.tag in _TITLED) or size_of(button) > BUTTON_CHARS_MAX


def _is_in_article(node: LexborNode, root: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.mem_id != root.mem_id:
        if parent.tag in _ARTICLES:
            return True
        parent = parent.parent
    return False


def _follows_flow_element(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    return before is not None and before.tag in _FLOW
