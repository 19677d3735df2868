"""HTML tree construction without a tree: insertion modes, and foreign content.

What each tag and text does to the open elements is told as by the HTML Standard (13.2.6), with the
namespace of each. Whether the next tag is read as HTML depends on them: a difference would hide all
that follows. A `select` has no mode of its own
(Standard of 2025), as in lexbor.

Whether a `table` ends a `p` depends on the doctype of a page (quirks mode): `quirks_matter` tells
that it would have made a difference.
"""

from __future__ import annotations

from orbweaver.parsing.open_elements import (
    FORMATTING,
    HTML_POINTS,
    MATH_TEXT,
    POINTS,
    Element,
    OpenElements,
    attributes,
    names,
)

_TABLE_WALLS = names("table template")
_SECTION_WALLS = names("tbody tfoot thead template")
_ROW_WALLS = names("tr template")
# HTML that ends foreign content.
_BREAKOUT = names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_HEAD_VOID = names("base basefont bgsound link meta")
_HEAD_RAW = names("noframes script style title")
_HEAD = _HEAD_VOID | _HEAD_RAW
_IN_NOSCRIPT = _HEAD_VOID | names("noframes style")
_SECTIONS = names("tbody tfoot thead")
_CELLS = names("td th")
_PARTS = names("caption col colgroup tbody td tfoot th thead tr")
_AROUND_ROWS = names("caption col colgroup tbody tfoot thead")
_SPACE = b"\t\n\f\r "
_BODY, _HEAD_MODE, _AFTER_HEAD, _NOSCRIPT = b"", b"head", b"after", b"noscript"
_TABLE_MODES = names("table tbody tr")
_CELL_MODES = names("td caption")
# The modes that hold in what a tag of a table begins there, and what it begins besides.
_MODE_IN_TEMPLATE = {b"col": b"colgroup", b"tr": b"tbody", b"td": b"tr", b"th": b"tr"}
_MODE_IN_TABLE = {b"col": b"colgroup"} | dict.fromkeys(_SECTIONS | _CELLS | {b"tr"}, b"tbody")
_IMPLIED_IN_TABLE = {b"col": b"colgroup"} | dict.fromkeys(_CELLS | {b"tr"}, b"tbody")
_MODE_WITHIN = {
    **dict.fromkeys(_CELLS, b"td"),
    **dict.fromkeys(_SECTIONS, b"tbody"),
    **{name: name for name in names("tr caption colgroup table")},
}
_ENDS_CELL = _SECTIONS | names("table tr")
_IN_TABLES_ONLY = _PARTS | names("table body html")
_BODY_MODES = frozenset([_BODY, b"td", b"caption"])
_ENDS_MORE = _PARTS | names("applet marquee object table template form")
_FONT = names("color face size")


class TreeConstruction(OpenElements):
    """What each tag and text does to the open elements."""

    def __init__(self, *, quirks: bool = False) -> None:
        super().__init__(quirks=quirks)
        # Where a template outside of all else ends.
        self._outermost = self.mode

    @property
    def is_foreign(self) -> bool:
        """Whether a CDATA section may follow."""
        return bool(self.stack) and b" " in self.stack[-1]

    @property
    def is_raw_read(self) -> bool:
        """Whether elements such as `style` have no markup if they begin here."""
        top = self.stack[-1] if self.stack else b""
        if b" " in top:
            return top in POINTS
        return self.mode != b"colgroup" or top == b"colgroup"

    @property
    def minds_text(self) -> bool:
        """Whether text makes a difference here."""
        mode, active = self.mode, self.active
        if active and (last := active[-1]) is not None and not last.is_open:
            return True
        return mode in (_HEAD_MODE, _AFTER_HEAD, _NOSCRIPT, b"colgroup")

    def read_text(self, text: bytes) -> None:
        """Take what stands between two tags."""
        top = self.stack[-1] if self.stack else b""
        if b" " in top and top not in POINTS:
            return
        mode = self.mode
        is_space = not text.strip(_SPACE)
        if mode in (_HEAD_MODE, _AFTER_HEAD, _NOSCRIPT):
            if is_space:
                return
            self._enter_body()
        elif mode == b"colgroup":
            if is_space or top != b"colgroup":
                return
            self.cut(len(self.stack) - 1)
            self.mode = b"table"
            top = self.stack[-1]
        if (
            self.mode in _TABLE_MODES
            and (top in _TABLE_MODES or top in _SECTION_WALLS)
            and is_space
        ):
            return
        if text.strip(b"\0"):
            self.reopen()

    def begin(self, name: bytes, rest: bytes, *, closes_itself: bool) -> None:
        """Take a start tag."""
        if not self.foreign and (self.mode in _BODY_MODES and name not in _PARTS):
            self.begin_in_body(name, rest, closes_itself=closes_itself)
            return
        top = self.stack[-1] if self.stack else b""
        if b" " in top and not self._is_html_at(top, name):
            if name not in _BREAKOUT and not (
                name == b"font" and not attributes(rest).keys().isdisjoint(_FONT)
            ):
                if not closes_itself:
                    self._push_foreign(top[: top.index(b" ")], name, rest)
                return
            self._leave_foreign()
        self._begin_html(name, rest, closes_itself=closes_itself)

    def end(self, name: bytes) -> None:
        """Take an end tag."""
        stack = self.stack
        if stack and stack[-1] == name and name not in _ENDS_MORE:
            # As most do.
            if name in FORMATTING:
                if self.active and (last := self.active[-1]) is not None and last is stack[-1]:
                    self.active.pop()
                    last.is_active = False
                    self.cut(len(stack) - 1)
                    return
            else:
                self.count[stack.pop()] -= 1
                return
        if stack and b" " in stack[-1]:
            if name in (b"p", b"br"):
                self._leave_foreign()
            else:
                for place in range(len(stack) - 1, -1, -1):
                    here = stack[place]
                    self.steps += 1
                    if b" " not in here:
                        break
                    if here.split(b" ")[1] == name:
                        self.cut(place)
                        return
        self._end_html(name)

    # Foreign content

    @staticmethod
    def _is_html_at(top: bytes, name: bytes) -> bool:
        if top in HTML_POINTS:
            return True
        if top in MATH_TEXT:
            return name not in (b"mglyph", b"malignmark")
        return name == b"svg" and top == b"math annotation-xml"

    def _push_foreign(self, namespace: bytes, name: bytes, rest: bytes) -> None:
        full = namespace + b" " + name
        if full == b"math annotation-xml":
            encoding = attributes(rest).get(b"encoding", b"")
            self.in_doubt |= b"&" in encoding
            if encoding.lower() in (b"text/html", b"application/xhtml+xml"):
                full += b" html"
        self.push(full)

    def _leave_foreign(self) -> None:
        while self.stack and b" " in self.stack[-1] and self.stack[-1] not in POINTS:
            self.cut(len(self.stack) - 1)

    # Start tags, by insertion mode

    def _begin_html(self, name: bytes, rest: bytes, *, closes_itself: bool) -> None:
        while (mode := self.mode) != _BODY:
            if mode in _CELL_MODES:
                if name not in _PARTS:
                    break
                done = not self._end_cell(mode)
            elif mode in _TABLE_MODES:
                if self._is_body_in_table(name, rest):
                    break
                done = self._begin_in_table(mode, name)
            elif mode == b"colgroup":
                done = self._begin_in_colgroup(name)
            elif mode == b"template":
                done = self._begin_in_template(name)
            else:
                done = self._begin_in_head(mode, name)
            if done:
                return
        self.begin_in_body(name, rest, closes_itself=closes_itself)

    def _begin_in_head(self, mode: bytes, name: bytes) -> bool:
        if mode == _NOSCRIPT:
            if name not in _IN_NOSCRIPT and name not in (b"head", b"html", b"noscript"):
                self.mode = _HEAD_MODE
                return False
        elif name == b"template":
            self.begin_template()
        elif name == b"noscript" and mode == _HEAD_MODE:
            self.mode = _NOSCRIPT
        elif name not in _HEAD and name not in (b"head", b"html"):
            self._enter_body()
            return False
        return True

    def _enter_body(self) -> None:
        self.mode = self._outermost = _BODY

    def _begin_in_template(self, name: bytes) -> bool:
        if name in _HEAD:
            return True
        if name == b"template":
            self.begin_template()
            return True
        mode = _BODY
        if name in _PARTS:
            mode = _MODE_IN_TEMPLATE.get(name, b"table")
        self.mode = self.templates[-1] = mode
        return False

    def _begin_in_colgroup(self, name: bytes) -> bool:
        if name == b"template":
            self.begin_template()
        elif name not in (b"col", b"html") and self.stack[-1] == b"colgroup":
            self.cut(len(self.stack) - 1)
            self.mode = b"table"
            return False
        return True

    def _is_body_in_table(self, name: bytes, rest: bytes) -> bool:
        """Whether a tag in a table is one of the body: its element is put before the table."""
        if name in _PARTS or name in (b"table", b"style", b"script", b"template", b"form"):
            return False
        if name == b"input":
            kind = attributes(rest).get(b"type", b"")
            self.in_doubt |= b"&" in kind
            return kind.lower() != b"hidden"
        return True

    def _begin_in_table(self, mode: bytes, name: bytes) -> bool:
        if mode == b"tbody" and name in _PARTS:
            return self._begin_in_section(name)
        if mode == b"tr" and name in _PARTS:
            return self._begin_in_row(name)
        if name == b"table":
            return not self._end_table()
        if name == b"template":
            self.begin_template()
        elif name == b"form":
            if self.form is None and not self.count[b"template"]:
                self.form = Element(name)
                self.form.is_open = False
        elif name in _PARTS:
            self.cut_back(_TABLE_WALLS)
            mode = _MODE_IN_TABLE.get(name, name)
            implied = _IMPLIED_IN_TABLE.get(name)
            self.push(implied or name)
            self.mode = mode
            if name == b"caption":
                self.active.append(None)
            return implied is None or name == b"col"
        return True

    def _begin_in_section(self, name: bytes) -> bool:
        if name in _AROUND_ROWS:
            return not self._end_section()
        self.cut_back(_SECTION_WALLS)
        self.push(b"tr")
        self.mode = b"tr"
        return name == b"tr"

    def _begin_in_row(self, name: bytes) -> bool:
        if name not in _CELLS:
            return not self._end_row()
        self.cut_back(_ROW_WALLS)
        self.push(name)
        self.mode = b"td"
        self.active.append(None)
        return True

    # End tags, by insertion mode

    def _end_html(self, name: bytes) -> None:  # noqa: C901 - one mode after another
        if name == b"template":
            self._end_template()
            return
        while (mode := self.mode) != _BODY:
            if mode in _CELL_MODES:
                if name not in _IN_TABLES_ONLY:
                    break
                done = self._end_in_cell(mode, name)
            elif mode in _TABLE_MODES:
                if name not in _IN_TABLES_ONLY:
                    break
                done = self._end_in_table(mode, name)
            elif mode == b"colgroup":
                done = name == b"col" or self.stack[-1] != mode
                if not done:
                    self.cut(len(self.stack) - 1)
                    self.mode = b"table"
                    done = name == mode
            elif mode == b"template":
                done = True
            else:
                done = self._end_in_head(mode, name)
            if done:
                return
        self.end_in_body(name)

    def _end_in_head(self, mode: bytes, name: bytes) -> bool:
        if mode == _NOSCRIPT:
            if name in (b"noscript", b"br"):
                self.mode = _HEAD_MODE
            return name != b"br"
        if name in (b"body", b"html", b"br"):
            self._enter_body()
            return False
        if name == b"head":
            self.mode = self._outermost = _AFTER_HEAD
        return True

    def _end_in_cell(self, mode: bytes, name: bytes) -> bool:
        if mode == b"caption":
            return name not in (b"caption", b"table") or not self._end_cell(mode) or name == mode
        if name in _CELLS:
            if self.close(name, _TABLE_WALLS):
                self.clear_active()
                self.mode = b"tr"
            return True
        if name in _ENDS_CELL and self.find(name, _TABLE_WALLS) is not None:
            return not self._end_cell(mode)
        return True

    def _end_cell(self, mode: bytes) -> bool:
        """End the cell or caption that is open."""
        names = [mode] if mode == b"caption" else _CELLS
        places = [self.find(name, _TABLE_WALLS) for name in names]
        place = max((place for place in places if place is not None), default=None)
        if place is None:
            return False
        self.cut(place)
        self.clear_active()
        self.mode = b"table" if mode == b"caption" else b"tr"
        return True

    def _end_in_table(self, mode: bytes, name: bytes) -> bool:
        if mode == b"tr":
            if name == b"tr":
                self._end_row()
            elif name == b"table" or (
                name in _SECTIONS and self.find(name, _TABLE_WALLS) is not None
            ):
                return not self._end_row()
        elif mode == b"tbody":
            if name in _SECTIONS:
                if self.find(name, _TABLE_WALLS) is not None:
                    self._end_section()
            elif name == b"table":
                return not self._end_section()
        elif name == b"table":
            self._end_table()
        return True

    def _end_row(self) -> bool:
        if self.find(b"tr", _TABLE_WALLS) is None:
            return False
        self.cut_back(_ROW_WALLS)
        self.cut(len(self.stack) - 1)
        self.mode = b"tbody"
        return True

    def _end_section(self) -> bool:
        if all(self.find(name, _TABLE_WALLS) is None for name in _SECTIONS):
            return False
        self.cut_back(_SECTION_WALLS)
        self.cut(len(self.stack) - 1)
        self.mode = b"table"
        return True

    def _end_table(self) -> bool:
        if not self.close(b"table", _TABLE_WALLS):
            return False
        self._reset_mode()
        return True

    def _end_template(self) -> None:
        if not self.count[b"template"]:
            return
        place = len(self.stack) - 1
        while self.stack[place] != b"template":
            place -= 1
        self.cut(place)
        self.clear_active()
        self.templates.pop()
        self._reset_mode()

    def _reset_mode(self) -> None:
        for here in reversed(self.stack):
            self.steps += 1
            if here in _MODE_WITHIN:
                self.mode = _MODE_WITHIN[here]
                return
            if here == b"template":
                self.mode = self.templates[-1]
                return
        self.mode = self._outermost
