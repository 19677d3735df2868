"""Which pages may be parsed into a tree, whatever their size.

lexbor's time and memory grow with the square of what is nested, of the attributes of one tag, and
of formatting elements that are left open (`parsing/html_scan.py` has the numbers). Most large
pages are harmless, so they are not refused by size: one walk over their tags keeps the stack of
open elements as the HTML Standard's tree construction does (`parsing/tree_construction.py`), and
counts what the tree would come to.

The tree may be deeper than the stack: a `form` or an `a` can leave the stack before what is in it,
and a formatting element that is ended late is wrapped around what stands there.

Most pages end what they begin, where they should. That is told first, in a twentieth of the time;
what is not told by it is walked over.

Measured on a shared core: a walk takes 2.3 us a tag, telling an orderly page 0.6 us. The worst
pages found that pass: 10 MB of short tags full of attributes take lexbor 0.85 s and 765 MB; 10,000
options of one `select` 0.3 s. The deepest tree found is 503 deep, of 250 forms. The worst orderly
page of 64 KB and 2,000 tags takes lexbor 10 ms.
"""

from __future__ import annotations

import re
from functools import cache

from orbweaver.parsing.html_scan import (
    _BOGUS_COMMENT,
    _COMMENT,
    _RAW,
    _RAW_ELEMENT,
    TAG,
    _element,
    attributes_of,
)
from orbweaver.parsing.tree_construction import TreeConstruction

# Pages that are not looked at: the worst takes half a second and 200 MB.
SMALL_BYTES_MAX, SMALL_TAGS_MAX = 65_536, 2_000
BYTES_MAX = 10 * 1024 * 1024
TAGS_MAX = 100_000
DEPTH_MAX = 256
# Of all `html` and `body` together, which become one element.
ATTRIBUTES_MAX = 512
# Comparisons of each attribute of a tag with each.
COMPARED_MAX = 50_000_000
# Copies of formatting elements that the tree would hold.
COPIES_MAX = 150_000
# Open elements looked at, for ends that may be theirs.
STEPS_MAX = 2_000_000
# Options of a `select`, each with those before it: 10,000 options take lexbor 0.3 s.
OPTIONS_COMPARED_MAX = 50_000_000
_LONG_TAG_BYTES = 512
# Of an orderly page: how deep, how many copies of formatting elements its tree may hold a tag, and
# how many attributes a tag has.
ORDERLY_DEPTH_MAX, ORDERLY_COPIES_MAX, ORDERLY_ATTRIBUTES_MAX = 64, 5, 256


class UnsafePageError(ValueError):
    """A page may not be parsed into a tree; the text says why."""


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
_MERGED = _names("html body")
_WEIGHED = _MERGED | {b"frameset"}
# A tag costs little more than its depth: it is enough to look at all the costs now and then.
_LOOK_EVERY = 64
# What an orderly page is made of: elements that stay where they are written.
_LONE = _names("area base br col embed hr img input link meta param source track wbr")
_ORDINARY = _names(
    "a abbr acronym address article aside audio b bdi bdo big blockquote body button caption cite"
    " code colgroup data dd del details dfn div dl dt em fieldset figcaption figure font footer"
    " form h1 h2 h3 h4 h5 h6 head header hgroup html i ins kbd label legend li main mark meter nav"
    " noscript ol output p picture pre progress q s samp search section small span strike strong"
    " sub summary sup table tbody td tfoot th thead time tr tt u ul var video"
)
# Those that may be left open.
_LOOSE = _names("p li dd dt body")
_RAW_NAMES = _names(f"{_RAW} title")
# Drawings: nothing else stands within one.
_DRAWN = _names("svg g path circle ellipse line polygon polyline rect use defs")

_RAW_ELEMENTS = f"{_RAW_ELEMENT} | {_element('title')}"
_VALUE = r"""=(?:"[^"]*+" | [\t\n\f\r ]*+
    (?:"[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^\t\n\f\r >"'][^\t\n\f\r >]*+)?+)"""
# In most tags each "=" stands right behind a name: they are told apart quickly.
_PLAIN = rf"""[^>=]*+(?:(?<![\t\n\f\r /"']){_VALUE}[^>=]*+)*+"""
_PRECISE = rf"""(?:[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+(?:[\t\n\f\r ]*+{_VALUE})?+)*+"""
_START = r"<(?P<end>/?+)(?P<name>[a-zA-Z][^\t\n\f\r />]*+)"
_TAG = rf"{_START}(?P<rest>{_PLAIN}(?=>) | {_PRECISE}[\t\n\f\r /]*+)>?+"
_PASSED = rf"{_COMMENT} | {_BOGUS_COMMENT}"
_HTML = rf"(?P<raw>{_RAW_ELEMENTS}) | {_TAG} | {_PASSED}"
_XML = rf"{_TAG} | {_PASSED}"
_SECTION = r"<!\[CDATA\[(?P<cdata>(?:[^\]]++ | \](?!\]>))*+)(?:\]\]>)?+"
_POINT = rf"{_SECTION} | {_HTML}"
_CDATA = rf"{_SECTION} | {_XML}"
# A tag with odd attributes has no group `rest`, and it matches up to the end of the page. The
# verdict is final then, and a search for its end from each following tag would be quadratic.
_ORDERLY = rf"(?P<raw>{_RAW_ELEMENTS}) | {_START}(?:({_PLAIN}>)|[\x00-\xff]*+) | {_PASSED}"
_ENDS_ITSELF = re.compile(rb"""(?:[\t\n\f\r ]+[a-zA-Z:-]+="[^"]*+")*+[\t\n\f\r ]*/>""")
_CLOSES_ITSELF = re.compile(rf"{_PRECISE}[\t\n\f\r /]*/".encode(), re.VERBOSE)
_FRAMESET = re.compile(rb"(?i)<frameset")
# By whether a CDATA section may follow, and whether some elements have no markup.
_PATTERNS = {
    (False, True): _HTML,
    (False, False): _XML,
    (True, True): _POINT,
    (True, False): _CDATA,
}


def why_unsafe(html: bytes) -> str | None:
    """Say why a page may not be parsed into a tree, or None."""
    if len(html) <= SMALL_BYTES_MAX and html.count(b"<") <= SMALL_TAGS_MAX:
        return None
    if len(html) > BYTES_MAX:
        return f"the page has more than {BYTES_MAX:,} bytes"
    # In comments and scripts there may be as many again.
    if html.count(b"<") - html.count(b"<!") > TAGS_MAX * 2:
        return f"the page has more than {TAGS_MAX:,} tags"
    if is_orderly(html):
        return None
    walk = _Walk()
    why = walk.over(html)
    return _Walk(quirks=True).over(html) if why is None and walk.elements.quirks_matter else why


def is_orderly(html: bytes) -> bool:  # noqa: C901, PLR0911, PLR0912 - calls would double its time
    """Whether a page ends what it begins, so that its tree is made in linear time; in doubt not.

    A page that is orderly is not unsafe.
    """
    tags = html.count(b"<")
    if tags > TAGS_MAX:
        return False
    copies_max = min(COPIES_MAX, ORDERLY_COPIES_MAX * tags)
    outer: list[bytes] = []
    formatting = copies = merged = drawn = 0
    is_drawn = False
    for raw, end, name, rest in _compiled(_ORDERLY).findall(html):
        if name and not rest:
            return False
        if name in _DRAWN:
            is_drawn = True
            if end:
                if not drawn or outer.pop() != name:
                    return False
                drawn -= 1
            elif not drawn and name != b"svg":
                return False
            elif _ENDS_ITSELF.fullmatch(rest) is None:
                outer.append(name)
                drawn += 1
        elif (drawn and (name or raw)) or (name and rest[-1:] != b">"):
            return False
        elif name in _ORDINARY:
            if end:
                while outer and outer[-1] != name and outer[-1] in _LOOSE:
                    outer.pop()
                if not outer or outer.pop() != name:
                    return False
                formatting -= name in _FORMATTING
                continue
            if name in _LOOSE and outer and outer[-1] == name:
                outer.pop()
            outer.append(name)
            formatting += name in _FORMATTING
            merged += name in _MERGED
        elif name and not (name in _RAW_NAMES if end else name in _LONE):
            return False
        copies += formatting
        tag = _tag_of(raw) if raw else rest
        if len(outer) > ORDERLY_DEPTH_MAX or _attributes_of(tag) > ORDERLY_ATTRIBUTES_MAX:
            return False
    if is_drawn and b"<![CDATA[" in html:
        return False
    return copies <= copies_max and merged <= len(_MERGED)


def _tag_of(raw: bytes) -> bytes:
    """Return the tag that an element without markup begins with."""
    tag = TAG.match(raw)
    return raw if tag is None else tag[0]


def _attributes_of(tag: bytes) -> int:
    """Count the attributes of a tag; a short one has few."""
    return attributes_of(tag) if len(tag) > _LONG_TAG_BYTES else 0


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    """Compile for the first large page: most containers see none, and it takes 7 ms."""
    return re.compile(pattern.encode(), re.VERBOSE)


class _Walk:
    """One walk over the tags of a page, with the elements that are open."""

    def __init__(self, *, quirks: bool = False) -> None:
        self.elements = TreeConstruction(quirks=quirks)
        self._compared = 0
        self._merged = 0
        self._framesets = 0

    def over(  # noqa: C901, PLR0912 - calls would double its time
        self, html: bytes
    ) -> str | None:
        """Say what is too much, or None."""
        elements = self.elements
        stack = elements.stack
        at = tags = 0
        next_html = _compiled(_HTML).search
        match = _compiled(_TAG).match
        while True:
            search = next_html
            if elements.foreign or elements.mode == b"colgroup":
                search = _compiled(_PATTERNS[elements.is_foreign, elements.is_raw_read]).search
            if (tag := search(html, at)) is None:
                return self._why(tags) if self._is_too_much(tags) else None
            start, end = tag.span()
            if start > at and elements.minds_text:
                elements.read_text(html[at:start])
            at = end
            if (kind := tag.lastgroup) != "rest":
                if kind == "cdata":
                    elements.read_text(tag["cdata"])
                if kind != "raw":
                    continue
                # Its end tag ends nothing else.
                if (end_tag := match(html, at)) is not None:
                    at = end_tag.end()
                if (tag := match(tag["raw"])) is None:
                    continue
            closing, name, rest = tag.group("end", "name", "rest")
            name = name.lower()
            tags += 1
            if closing:
                elements.end(name)
            else:
                if len(rest) > _LONG_TAG_BYTES or name in _WEIGHED:
                    self._weigh(name, rest, html)
                elements.begin(name, rest, closes_itself=rest[-1:] == b"/" and _is_closed(rest))
            if len(stack) > DEPTH_MAX or (not tags % _LOOK_EVERY and self._is_too_much(tags)):
                return self._why(tags)

    def _is_too_much(self, tags: int) -> bool:
        return any(cost > most for cost, most, _ in self._costs(tags))

    def _why(self, tags: int) -> str:
        return next(why for cost, most, why in self._costs(tags) if cost > most)

    def _costs(self, tags: int) -> tuple[tuple[int, int, str], ...]:
        elements = self.elements
        deep = f"elements are nested more than {DEPTH_MAX} deep"
        attributes = "tags have too many attributes"
        return (
            (tags, TAGS_MAX, f"the page has more than {TAGS_MAX:,} tags"),
            (len(elements.stack), DEPTH_MAX, deep),
            (self._framesets, DEPTH_MAX, deep),
            (elements.copies, COPIES_MAX, "too many formatting elements are left open"),
            (self._compared, COMPARED_MAX, attributes),
            (self._merged, ATTRIBUTES_MAX, attributes),
            (elements.steps, STEPS_MAX, "too many end tags have no beginning"),
            (elements.options_compared, OPTIONS_COMPARED_MAX, "a select has too many options"),
            (elements.in_doubt, 0, "attributes that decide what is nested hold references"),
        )

    def _weigh(self, name: bytes, rest: bytes, html: bytes) -> None:
        self._compared += _attributes_of(rest) ** 2
        if rest and name in _MERGED:
            self._merged += attributes_of(rest)
        if name == b"frameset" and not self._framesets:
            # Where they count, nothing else does, and no other element has no markup.
            self._framesets = len(_FRAMESET.findall(html))


def _is_closed(rest: bytes) -> bool:
    """Whether a start tag ends its element: a slash may be of a value."""
    return _CLOSES_ITSELF.fullmatch(rest) is not None
