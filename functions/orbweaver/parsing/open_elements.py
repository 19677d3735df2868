"""The open elements of an HTML page: the stack, and formatting elements that are opened anew.

As by the HTML Standard (13.2.4.2, 13.2.4.3, 13.2.6.4.7), but for `html`, `head`, `body` and voids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property


def names(text: str, prefix: str = "") -> frozenset[bytes]:
    """Return the names in a text."""
    return frozenset((prefix + name).encode() for name in text.split())


# Names of elements that are not HTML begin with their namespace and a space.
MATH_TEXT = names("mi mo mn ms mtext", "math ")
HTML_POINTS = names("foreignobject desc title", "svg ") | {b"math annotation-xml html"}
POINTS = MATH_TEXT | HTML_POINTS
_FOREIGN_SPECIAL = POINTS | {b"math annotation-xml"}
WALLS = _FOREIGN_SPECIAL | names("applet caption table td th marquee object select template")
SPECIAL = _FOREIGN_SPECIAL | names(
    "address applet area article aside base basefont bgsound blockquote body br button caption"
    " center col colgroup dd details dir div dl dt embed fieldset figcaption figure footer form"
    " frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input keygen li link"
    " listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre"
    " script search section select source style summary table tbody td template textarea tfoot th"
    " thead title tr track ul wbr xmp"
)
_IMPLIED = names("dd dt li optgroup option p rb rp rt rtc")
_BUTTON_WALLS = WALLS | {b"button"}
_LIST_WALLS = WALLS | names("ol ul")
_HEADINGS = names("h1 h2 h3 h4 h5 h6")
_MARKERS = names("applet marquee object")
_CLOSE_P = names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure"
    " footer header hgroup main menu nav ol p search section summary ul pre listing plaintext"
)
_ENDS_BLOCK = (_CLOSE_P - names("p plaintext")) | names("button select")
FORMATTING = names("b big code em font i s small strike strong tt u a nobr")
_VOID = names("area br embed image img input keygen wbr")
_NOTHING = (
    names("base basefont bgsound link meta noframes script style title")
    | names("caption col colgroup tbody td tfoot th thead tr ")
    | names("html body head frame frameset param source track textarea iframe noembed")
)
_ITEM, _TERMS, _OPTIONS = names("li"), names("dd dt"), names("option optgroup")
_NO_BAR_TO_ITEMS = names("address div p")
_NAMESPACES = names("svg math")
_RUBY = names("rb rtc rp rt")
_SPECIALLY = (
    _ITEM
    | _TERMS
    | _HEADINGS
    | _OPTIONS
    | _RUBY
    | names("table form template button select hr xmp input")
)
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)
    (?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"([^"]*+)"?+ | '([^']*+)'?+
        | ([^\t\n\f\r >"'][^\t\n\f\r >]*+))?+)?+""",
    re.VERBOSE,
)
_IDENTICAL_MAX = 3
_ADOPTIONS_MAX, _ADOPTED_MAX = 8, 3


class Tag:
    """What a start tag has behind its name; an element and its copies share one."""

    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    @cached_property
    def attributes(self) -> frozenset[tuple[bytes, bytes]]:
        """Its attributes."""
        return frozenset(attributes(self.rest).items())


class Element(bytes):
    """The name of a formatting element or a form: two of a name are told apart."""

    is_open = True
    # In the list of active formatting elements.
    is_active = False
    tag = Tag(b"")


def attributes(rest: bytes) -> dict[bytes, bytes]:
    """Return the attributes of a tag, with values as they are written."""
    found: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTE.findall(rest):
        found.setdefault(name.lower(), b"".join(values))
    return found


class OpenElements:
    """The stack of open elements, and the list of active formatting elements."""

    def __init__(self, *, quirks: bool = False) -> None:
        self.stack: list[bytes] = []
        # None is a marker: no element beyond it is opened anew.
        self.active: list[Element | None] = []
        # How many of them are not HTML.
        self.foreign = 0
        # Opened a second time, by no tag of their own.
        self.copies = 0
        # Looked at, for ends that may be theirs.
        self.steps = 0
        # Options of a `select`, each with those before it.
        self.options_compared = 0
        self._options = 0
        # What cannot be told here was met.
        self.in_doubt = False
        # Whether a `table` ends a `p` depends on the doctype: it would have made a difference.
        self.quirks_matter = False
        self._quirks = quirks
        # The insertion mode has the name of the element that it is about.
        self.mode = b"head"
        self.templates: list[bytes] = []
        self.form: Element | None = None
        # How often each name is open, so that most questions need no look at the stack.
        self.count: defaultdict[bytes, int] = defaultdict(int)

    def find(self, name: bytes, walls: frozenset[bytes]) -> int | None:
        """Return where the last element of a name is, if it is in scope."""
        if not self.count[name]:
            return None
        stack = self.stack
        place = len(stack)
        while place:
            place -= 1
            self.steps += 1
            here = stack[place]
            if here == name:
                return place
            if here in walls:
                return None
        return None

    def close(self, name: bytes, walls: frozenset[bytes]) -> bool:
        """End the last element of a name, and all in it, if it is in scope; whether it was."""
        if (place := self.find(name, walls)) is None:
            return False
        self.cut(place)
        return True

    def push(self, name: bytes) -> None:
        """Open an element."""
        self.stack.append(name)
        self.count[name] += 1
        self.foreign += b" " in name

    def cut(self, place: int) -> None:
        """End all from a place on."""
        stack = self.stack
        while len(stack) > place:
            self._forget(stack.pop())

    def cut_back(self, walls: frozenset[bytes]) -> None:
        """End all up to one of some names."""
        while self.stack and self.stack[-1] not in walls:
            self._forget(self.stack.pop())

    def end_implied(self, but: bytes = b"") -> None:
        """End what needs no end tag."""
        while self.stack and self.stack[-1] in _IMPLIED and self.stack[-1] != but:
            self._forget(self.stack.pop())

    def remove(self, element: Element) -> None:
        """Take one element off the stack, and nothing in it."""
        place = len(self.stack) - 1
        while self.stack[place] is not element:
            place -= 1
        self._forget(self.stack.pop(place))

    def _forget(self, name: bytes) -> None:
        self.count[name] -= 1
        self.foreign -= b" " in name
        if isinstance(name, Element):
            name.is_open = False

    def end_other(self, name: bytes) -> None:
        """Take an end tag that has no rule of its own."""
        if not self.count[name]:
            return
        for place in range(len(self.stack) - 1, -1, -1):
            here = self.stack[place]
            self.steps += 1
            if here == name:
                self.cut(place)
                return
            if here in SPECIAL:
                return

    # The body

    def begin_in_body(  # noqa: C901 - one case after another
        self, name: bytes, rest: bytes, *, closes_itself: bool
    ) -> None:
        """Take a start tag in the insertion mode "in body"."""
        if name in _CLOSE_P:
            if self.count[b"p"]:
                self.close(b"p", _BUTTON_WALLS)
            self.push(name)
        elif name in FORMATTING:
            self.begin_formatting(name, rest)
        elif name in _SPECIALLY:
            self._begin_specially(name)
        elif name not in _NOTHING:
            active = self.active
            if active and (last := active[-1]) is not None and not last.is_open:
                self.reopen()
            if name in _NAMESPACES:
                if not closes_itself:
                    self.push(name + b" " + name)
            elif name not in _VOID:
                if name in _MARKERS:
                    active.append(None)
                self.push(name)

    def _begin_specially(self, name: bytes) -> None:  # noqa: C901, PLR0912 - one case after another
        top = self.stack[-1] if self.stack else b""
        if name in _TERMS:
            self._begin_item(_TERMS)
        elif name == b"li":
            self._begin_item(_ITEM)
        elif name in _HEADINGS:
            self.close(b"p", _BUTTON_WALLS)
            if self.stack and self.stack[-1] in _HEADINGS:
                self.cut(len(self.stack) - 1)
        elif name == b"table":
            if self.find(b"p", _BUTTON_WALLS) is not None:
                self.quirks_matter = True
                if not self._quirks:
                    self.close(b"p", _BUTTON_WALLS)
            self.mode = b"table"
        elif name in _OPTIONS:
            if self.find(b"select", WALLS) is not None:
                self._options += 1
                self.options_compared += self._options
                self.end_implied(b"optgroup" if name == b"option" else b"")
            elif top == b"option":
                self.cut(len(self.stack) - 1)
            self.reopen()
        elif name in _RUBY:
            if self.find(b"ruby", WALLS) is not None:
                self.end_implied(b"rtc" if name in (b"rp", b"rt") else b"")
        elif name == b"form":
            self._begin_form()
            return
        elif name == b"template":
            self.begin_template()
            return
        elif name == b"button":
            self.close(name, WALLS)
            self.reopen()
        else:
            is_ended = self._begin_unkept(name)
            if name != b"select" or is_ended:
                return
            self._options = 0
        self.push(name)

    def _begin_unkept(self, name: bytes) -> bool:
        """Take what ends other elements; whether it ended a `select`."""
        is_ended = False
        if name in (b"hr", b"xmp"):
            self.close(b"p", _BUTTON_WALLS)
        else:
            is_ended = self.close(b"select", WALLS)
        if name == b"hr":
            if self.find(b"select", WALLS) is not None:
                self.end_implied()
        elif not (is_ended and name == b"select"):
            self.reopen()
        return is_ended

    def _begin_form(self) -> None:
        is_in_template = self.count[b"template"]
        if self.form is not None and not is_in_template:
            return
        self.close(b"p", _BUTTON_WALLS)
        form = Element(b"form")
        if not is_in_template:
            self.form = form
        self.push(form)

    def _begin_item(self, names: frozenset[bytes]) -> None:
        for place in range(len(self.stack) - 1, -1, -1):
            here = self.stack[place]
            self.steps += 1
            if here in names:
                self.cut(place)
                break
            if here in SPECIAL and here not in _NO_BAR_TO_ITEMS:
                break
        self.close(b"p", _BUTTON_WALLS)

    def begin_template(self) -> None:
        """Begin a template."""
        self.push(b"template")
        self.active.append(None)
        self.templates.append(b"template")
        self.mode = b"template"

    def end_in_body(self, name: bytes) -> None:  # noqa: C901 - one case after another
        """Take an end tag in the insertion mode "in body"."""
        if name in _ENDS_BLOCK:
            self.close(name, WALLS)
        elif name in FORMATTING:
            self.adopt(name)
        elif name == b"p":
            self.close(name, _BUTTON_WALLS)
        elif name == b"li":
            self.close(name, _LIST_WALLS)
        elif name in _TERMS:
            self.close(name, WALLS)
        elif name in _HEADINGS:
            self._close_heading()
        elif name in _MARKERS:
            if self.close(name, WALLS):
                self.clear_active()
        elif name == b"form":
            self._end_form()
        elif name == b"br":
            self.reopen()
        else:
            self.end_other(name)

    def _close_heading(self) -> None:
        for place in range(len(self.stack) - 1, -1, -1):
            here = self.stack[place]
            self.steps += 1
            if here in _HEADINGS:
                self.cut(place)
                return
            if here in WALLS:
                return

    def _end_form(self) -> None:
        if self.count[b"template"]:
            self.close(b"form", WALLS)
            return
        form, self.form = self.form, None
        if form is None or not form.is_open:
            return
        place = self.find(form, WALLS)
        if place is None or self.stack[place] is not form:
            return
        self.end_implied()
        self.remove(form)

    # Formatting elements

    def begin_formatting(self, name: bytes, rest: bytes) -> None:
        """Take the start tag of a formatting element."""
        if name == b"a":
            if (before := self._active_one(name)) is not None:
                self.adopt(name)
                if before.is_active:
                    self._deactivate(before)
                if before.is_open:
                    self.remove(before)
            self.reopen()
        else:
            self.reopen()
            if name == b"nobr" and self.find(name, WALLS) is not None:
                self.adopt(name)
                self.reopen()
        element = Element(name)
        element.tag = Tag(rest)
        element.is_active = True
        self._forget_fourth(element)
        self.active.append(element)
        self.push(element)

    def _forget_fourth(self, element: Element) -> None:
        """Of four alike, the first is not opened anew."""
        alike: list[Element] = []
        for one in reversed(self.active):
            if one is None:
                break
            self.steps += 1
            if one == element:
                alike.append(one)
        if len(alike) < _IDENTICAL_MAX:
            return
        if any(one.tag.rest != element.tag.rest for one in alike):
            self.in_doubt |= any(b"&" in one.tag.rest for one in (element, *alike))
            wanted = element.tag.attributes
            alike = [one for one in alike if one.tag.attributes == wanted]
        if len(alike) >= _IDENTICAL_MAX:
            self._deactivate(alike[_IDENTICAL_MAX - 1])

    def _active_one(self, name: bytes) -> Element | None:
        for one in reversed(self.active):
            self.steps += 1
            if one is None or one == name:
                return one
        return None

    def _active_place(self, element: Element) -> int:
        place = len(self.active) - 1
        while self.active[place] is not element:
            self.steps += 1
            place -= 1
        return place

    def _deactivate(self, element: Element) -> None:
        del self.active[self._active_place(element)]
        element.is_active = False

    def clear_active(self) -> None:
        """Forget the formatting elements up to the last marker."""
        while self.active and (last := self.active.pop()) is not None:
            last.is_active = False

    def _copy(self, element: Element) -> Element:
        copy = Element(element)
        copy.tag = element.tag
        copy.is_active = True
        element.is_active = False
        self.copies += 1
        return copy

    def reopen(self) -> None:
        """Open the formatting elements anew that were ended by others."""
        active = self.active
        place = len(active)
        while place and (one := active[place - 1]) is not None and not one.is_open:
            place -= 1
        for at in range(place, len(active)):
            if (one := active[at]) is not None:
                active[at] = copy = self._copy(one)
                self.push(copy)

    def adopt(self, name: bytes) -> None:
        """Run the adoption agency algorithm."""
        stack = self.stack
        if stack and stack[-1] == name:
            top = stack[-1]
            if not (isinstance(top, Element) and top.is_active):
                self.cut(len(stack) - 1)
                return
        for _ in range(_ADOPTIONS_MAX):
            element = self._active_one(name)
            if element is None:
                self.end_other(name)
                return
            if not element.is_open:
                self._deactivate(element)
                return
            place = furthest = len(stack) - 1
            is_barred = False
            while stack[place] is not element:
                self.steps += 1
                here = stack[place]
                is_barred |= here in WALLS
                if here in SPECIAL:
                    furthest = place
                place -= 1
            if is_barred:
                return
            if furthest == len(stack) - 1 and stack[furthest] not in SPECIAL:
                self.cut(place)
                self._deactivate(element)
                return
            self._adopt_by(element, place, furthest)

    def _adopt_by(self, element: Element, place: int, furthest: int) -> None:
        stack, active = self.stack, self.active
        bookmark: Element | None = None
        for counter, at in enumerate(range(furthest - 1, place, -1), 1):
            node = stack[at]
            if isinstance(node, Element) and node.is_active and counter > _ADOPTED_MAX:
                self._deactivate(node)
            if not isinstance(node, Element) or not node.is_active:
                self._forget(node)
                del stack[at]
                furthest -= 1
                continue
            copy = self._copy(node)
            active[self._active_place(node)] = copy
            node.is_open = False
            stack[at] = copy
            bookmark = bookmark or copy
        copy = self._copy(element)
        at = self._active_place(element)
        if bookmark is None:
            active[at] = copy
        else:
            del active[at]
            active.insert(self._active_place(bookmark) + 1, copy)
        element.is_open = False
        stack.insert(furthest + 1, copy)
        del stack[place]
