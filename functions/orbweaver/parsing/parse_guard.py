"""Which pages may be parsed into a tree, whatever their size.

lexbor's time and memory grow with the square of what is nested, of the attributes of one tag, and
of formatting elements that are left open (`parsing/html_scan.py` has the numbers). Most large
pages are harmless, so they are not refused by size: one walk over their tags keeps the stack of
open elements about as the HTML Standard's tree construction does, and counts what the tree would
come to.

Most pages end what they begin, where they should. That is told first, in a twentieth of the time;
what is not told by it is walked over.

Measured on a busy core: a walk takes 10 us a tag; the worst page found that passes takes lexbor
0.6 s and 170 MB. The worst orderly page of 64 KB and 2,000 tags takes it 10 ms.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from orbweaver.parsing.html_scan import (
    _ATTRIBUTES,
    _BOGUS_COMMENT,
    _COMMENT,
    _RAW,
    _RAW_ELEMENT,
    TAG,
    attributes_of,
)

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
_LONG_TAG_BYTES = 512
# Of an orderly page: how deep, how many copies of formatting elements its tree may hold a tag, and
# how many attributes a tag has.
ORDERLY_DEPTH_MAX, ORDERLY_COPIES_MAX, ORDERLY_ATTRIBUTES_MAX = 64, 5, 256


class WildPageError(ValueError):
    """A page may not be parsed into a tree; the text says why."""


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_VOID = _names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track"
    " wbr html head body !doctype"
)
# Elements that end where the next of their kind begins, or with what holds them.
_IMPLIED = _names("p li dd dt option optgroup rb rp rt rtc")
_ROWS = _names("caption colgroup tbody td tfoot th thead tr")
_FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
_MERGED = _names("html body")
# Elements that end where the next of their kind begins, whatever they are in.
_ONCE = _names("a nobr button form h1 h2 h3 h4 h5 h6")
# No end tag reaches what is outside of these.
_WALLS = _names("applet caption marquee object table td template th foreignobject desc")
_FOREIGN = _names("svg math")
_POINTS = _names("foreignobject desc title annotation-xml mi mo mn ms mtext")
# HTML that ends foreign content wherever it stands in it.
_BREAKOUT = _names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_SELF_CLOSING = b"/>"
# What an orderly page is made of: elements that stay where they are written.
_LONE = _names("area base br col embed hr img input link meta param source track wbr")
_ORDINARY = _names(
    "a abbr acronym address article aside audio b bdi bdo big blockquote body button caption cite"
    " code colgroup data dd del details dfn div dl dt em fieldset figcaption figure font footer"
    " form h1 h2 h3 h4 h5 h6 head header hgroup html i ins kbd label legend li main mark meter nav"
    " noscript ol output p picture pre progress q s samp search section small span strike strong"
    " sub summary sup table tbody td tfoot th thead time title tr tt u ul var video"
)
# Those that may be left open.
_LOOSE = _names("p li dd dt body")
_RAW_NAMES = _names(_RAW)
# Drawings: nothing else stands within one, and a tag that ends itself is written plainly.
_DRAWN = _names("svg g path circle ellipse line polygon polyline rect use defs")
_ENDS_ITSELF = re.compile(rb"""(?:[\t\n\f\r ]+[a-zA-Z:-]+="[^"]*+")*+[\t\n\f\r ]*/>""")

_RAW_TAG = rf"(?P<raw>{_RAW_ELEMENT})"
_TAG = rf"<(?P<end>/?)(?P<name>[a-zA-Z][^\t\n\f\r />]*)(?P<rest>{_ATTRIBUTES})"
_PASSED = rf"{_COMMENT} | {_BOGUS_COMMENT}"
_HTML = rf"{_RAW_TAG} | {_TAG} | {_PASSED}"
# In foreign content there is no raw text.
_XML = rf"{_TAG} | {_PASSED}"


def why_wild(html: bytes) -> str | None:
    """Say why a page may not be parsed into a tree, or None."""
    if len(html) <= SMALL_BYTES_MAX and html.count(b"<") <= SMALL_TAGS_MAX:
        return None
    if len(html) > BYTES_MAX:
        return f"the page has more than {BYTES_MAX:,} bytes"
    if html.count(b"<") > TAGS_MAX * 3:
        return f"the page has more than {TAGS_MAX:,} tags"
    return None if is_orderly(html) else _Walk().over(html)


def is_orderly(html: bytes) -> bool:  # noqa: C901, PLR0911, PLR0912 - calls would double its time
    """Whether a page ends what it begins, so that its tree is made in linear time; in doubt not.

    A page that is orderly is not wild.
    """
    tags = html.count(b"<")
    if tags > TAGS_MAX:
        return False
    copies_max = min(COPIES_MAX, ORDERLY_COPIES_MAX * tags)
    outer: list[bytes] = []
    formatting = copies = merged = drawn = 0
    for raw, end, name, rest in _compiled(_HTML).findall(html):
        if name in _DRAWN:
            if end:
                if not drawn or outer.pop() != name:
                    return False
                drawn -= 1
            elif not drawn and name != b"svg":
                return False
            elif _ENDS_ITSELF.fullmatch(rest) is None:
                outer.append(name)
                drawn += 1
        elif drawn and (name or raw):
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

    def __init__(self) -> None:
        self._open: list[bytes] = []
        # How often each name is open, so that most questions need no look at all of them.
        self._names: Counter[bytes] = Counter()
        self._formatting = 0
        self._copies = 0
        self._compared = 0
        self._steps = 0
        self._merged = 0

    def over(self, html: bytes) -> str | None:
        """Say what is too much, or None."""
        at, tags = 0, 0
        next_html, next_xml = _compiled(_HTML).search, _compiled(_XML).search
        while (tag := (next_xml if self._is_foreign() else next_html)(html, at)) is not None:
            at = max(tag.end(), at + 1)
            name = tag["name"]
            if name is None:
                if tag.lastgroup == "raw":
                    self._compare(_tag_of(tag[0]))
                continue
            tags += 1
            name = name.lower()
            if tag["end"]:
                self._close(name)
            else:
                self._weigh(name, tag["rest"])
                self._begin(name, tag["rest"])
            if tags > TAGS_MAX:
                return f"the page has more than {TAGS_MAX:,} tags"
            if (why := self._too_much()) is not None:
                return why
        return None

    def _too_much(self) -> str | None:
        if len(self._open) > DEPTH_MAX:
            return f"elements are nested more than {DEPTH_MAX} deep"
        if self._copies > COPIES_MAX:
            return "too many formatting elements are left open"
        if self._compared > COMPARED_MAX or self._merged > ATTRIBUTES_MAX:
            return "tags have too many attributes"
        if self._steps > STEPS_MAX:
            return "too many end tags have no beginning"
        return None

    def _is_foreign(self) -> bool:
        if not (self._names.get(b"svg") or self._names.get(b"math")):
            return False
        for name in reversed(self._open):
            self._steps += 1
            if name in _FOREIGN:
                return True
            if name in _POINTS or name in _WALLS:
                return False
        return False

    def _weigh(self, name: bytes, rest: bytes) -> None:
        # Every tag may have what formats it opened anew.
        self._copies += self._formatting
        self._compare(rest)
        if rest and name in _MERGED:
            self._merged += attributes_of(rest)

    def _compare(self, tag: bytes) -> None:
        self._compared += _attributes_of(tag) ** 2

    def _begin(self, name: bytes, rest: bytes) -> None:
        if self._is_foreign():
            if name in _BREAKOUT or (name == b"font" and rest.strip(b" />")):
                while self._open and self._is_foreign():
                    self._pop()
            else:
                if not rest.endswith(_SELF_CLOSING):
                    self._push(name)
                return
        if name in _ONCE and self._names.get(name):
            self._close(name)
        if name in _ROWS:
            self._leave_cell()
            if name in _WALLS and self._names.get(b"table"):
                self._push(name)
        elif name not in _VOID and name not in _IMPLIED:
            self._push(name)

    def _leave_cell(self) -> None:
        """End what stands in the cell that a new row or cell ends."""
        if not (self._names.get(b"table") or self._names.get(b"template")):
            return
        while self._open[-1] not in (b"table", b"template"):
            self._pop()

    def _close(self, name: bytes) -> None:
        if name in _ROWS:
            if name in _WALLS or name == b"tr":
                self._leave_cell()
            return
        if not self._names.get(name):
            return
        for place in range(len(self._open) - 1, -1, -1):
            here = self._open[place]
            self._steps += 1
            if here == name:
                if name in _FORMATTING:
                    del self._open[place]
                    self._names[name] -= 1
                    self._formatting -= 1
                else:
                    while len(self._open) > place:
                        self._pop()
                return
            if here in _WALLS and name != b"table":
                return

    def _push(self, name: bytes) -> None:
        self._open.append(name)
        self._names[name] += 1
        self._formatting += name in _FORMATTING

    def _pop(self) -> None:
        name = self._open.pop()
        self._names[name] -= 1
        self._formatting -= name in _FORMATTING
