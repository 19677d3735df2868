"""Read HTML by tokens alone, in linear time: the outline of a large page, the text of any page.

A parser builds an exact tree, but some pages make its time quadratic. Tags, quotes, comments and
raw text follow the HTML Standard's tokenizer (13.2.5). Facts that need a tree (a link in a `select`
is no link) are lost. All quantifiers are possessive, so a pattern never backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import unescape
from itertools import islice
from string import ascii_lowercase

# Only pages within these limits are parsed into a tree, which takes 65 ms at worst. lexbor takes a
# minute for 200,000 nested `div`, 30 s for a tag with 100,000 attributes, 17 s and 4.5 GB for 80 KB
# of `<p><font x=1><p><font x=2>...`. Detecting harmless large pages would cost about as much as the
# outline.
TREE_BYTES_MAX = 28_000
TREE_TAGS_MAX = 1_000
TAG_BYTES_MIN = 3
# A page with more elements without an end tag, and more formatting elements, is no small page.
UNCLOSED_MAX = 200
FORMATTING_MAX = 100
# Range in which the first `html` tag is searched.
HEAD_BYTES = 65_536
# Limits on the attributes of a tag in the outline: values, and bytes of names between values.
# lexbor compares each attribute with all others of the tag.
_VALUES_MAX = 32
_NAMES_BYTES_MAX = 256
# Maximum number of attributes of a tag in the outline. The tag's name counts as one.
_ATTRIBUTES_MAX = 128
_LONG_TAG_BYTES = 2 * _ATTRIBUTES_MAX

# Tags that `outline` keeps in addition to the first `html`.
_KEPT = "a area base frame frameset link meta template /template"
# Tags that `outline_with_rows` keeps in addition: elements that load or embed something.
_KEPT_ROWS = f"{_KEPT} img source form embed video audio object track"
# Elements whose content is not markup. The content of a title is kept.
_RAW = "script style textarea xmp iframe noembed noframes"
# Elements that do not separate words.
INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q rp rt ruby s "
    "samp small span strike strong sub sup time tt u var wbr"
)

# Patterns for the end of a tag's name, for a value after "=" (usually in double quotes), and for
# all characters up to ">".
NAME_END = r"(?=[\t\n\f\r />])"
_VALUE = r"""=(?:"[^"]*+" | [\t\n\f\r ]*+
    (?:"[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^\t\n\f\r >"'][^\t\n\f\r >]*+)?+)"""
_NAMES = rf"[\t\n\f\r ]*+[^>=]{{0,{_NAMES_BYTES_MAX}}}+"
_INSIDE = rf"[^>=]*+(?:{_VALUE} [^>=]*+)*+"
ATTRIBUTES = rf"{_INSIDE}>?+"
# Like `ATTRIBUTES`, but faster for most tags: no attribute, or the last value in double quotes.
_FEW_ATTRIBUTES = rf"""[^>=]*+(?: > | ="[^"]*+"> | (?:{_VALUE} [^>=]*+)*+ >?+ )"""
_COMMENT = r"<!-- (?:-?> | (?:[^-]++ | -(?!-!?>))*+ (?:--!?>)?+)"
_BOGUS_COMMENT = r"<(?:[!?] | /(?![a-zA-Z])) [^>]*+ >?+"


def _any_case(name: str) -> str:
    """Return a pattern for a name in any case, which is faster than IGNORECASE."""
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


def _any_name(names: str) -> str:
    return f"(?:{'|'.join(map(_any_case, names.split()))}){NAME_END}"


def _letters(*, without: str) -> str:
    return "".join(char + char.upper() for char in ascii_lowercase if char not in without)


def _other_than(names: str) -> str:
    # The first one or two letters exclude most names, which is fast.
    rests: dict[str, list[str]] = {}
    for name in names.split():
        rests.setdefault(name[0], []).append(name[1:])
    special = (
        rf"""{_any_case(letter)}(?: [{_letters(without="".join(rest[:1] for rest in ends))}]
            | (?!(?:{"|".join(map(_any_case, ends))}){NAME_END}) )"""
        for letter, ends in rests.items()
    )
    return f"(?:[{_letters(without=''.join(rests))}]|{'|'.join(special)})"


def _element(name: str) -> str:
    hidden = _ESCAPED if name == "script" else ""
    name = _any_name(name)
    return rf"<{name}{ATTRIBUTES} (?:[^<]++ | {hidden} <(?!/{name}))*+"


@cache
def compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.VERBOSE)


# In a script, a comment that contains a script tag hides the next script end tag.
_SCRIPT = _any_name("script")
_ESCAPED = rf"""<!-- (?: -*+> | (?: [^<-]++ | -(?!->) | <{_SCRIPT} (?:[^<-]++ | -(?!->)
    | <(?!/{_SCRIPT}))*+ (?:</{_SCRIPT})?+ | <(?!/{_SCRIPT}))*+ (?:-->)?+ ) |"""


def _raw_elements(*, without: str = "") -> str:
    return "|".join(_element(name) for name in _RAW.split() if name not in without.split())


_RAW_ELEMENT = _raw_elements()
_END_TAG = f"</[{_letters(without='t')}][^>=]*+>"


def _ordinary(kept: str) -> str:
    """Return a pattern of the tags that an outline skips."""
    # `span`, `li` and `p` are frequent, so their first letters are tested first.
    names = " ".join(name for name in kept.split() if name != "/template")
    return rf"""{_END_TAG} | </{_other_than("template")}{_FEW_ATTRIBUTES}
    | <{_other_than(f"{_RAW} link plaintext title {names}")}{_FEW_ATTRIBUTES}"""


# Constructs that hide markup from the parser, and the first letters of their names.
_PLAINTEXT = rf"<{_any_name('plaintext')}[\x00-\xff]*+"
HIDING = f"{_RAW_ELEMENT} | {_PLAINTEXT} | {_COMMENT} | {_BOGUS_COMMENT}"
_HIDES = "".join(sorted({name[0] + name[0].upper() for name in f"{_RAW} plaintext".split()}))
_HTML = compiled(rf"<{_any_name('html')}{ATTRIBUTES}")


def _skipped(kept: str, hiding: str) -> str:
    """Return a pattern of text, ordinary tags, hiding constructs, and "<" that begins no tag."""
    return rf"""(?: [^<]*+ (?: {_ordinary(kept)} | (?=<[!?/{_HIDES}])(?:{hiding})
        | <(?![a-zA-Z!?/])(?:<(?=<))*+ ) )*+ [^<]*+"""


def _kept(kept: str, behind: str = ">") -> str:
    """Return a pattern of a tag to keep, or a title. `behind` matches the usual end of a tag."""
    return rf"""(<{_any_name(kept)}{_NAMES} (?:{_VALUE} {_NAMES}){{0,{_VALUES_MAX}}}+)
            (?: {behind} | (?=([\x00-\xff])) {_INSIDE} > )
        | ({_element("title")} (?:</[tT][iI][tT][lL][eE])?+) [^>]*+ >?+"""


# Compiled on first use. Compiling takes 50 ms, and small pages need no outline.
_END = r"(?:<[\x00-\xff]*+)?+ \Z"  # an unclosed tag is no tag
_OUTLINE = f"{_skipped(_KEPT, HIDING)} (?: {_kept(_KEPT)} | {_END} )"
# With rows, the skipped part is matched too, because it has the text of links. Scripts and inline
# frames hide markup, but their tags are kept.
_HIDING_ROWS = HIDING.replace(_RAW_ELEMENT, _raw_elements(without="script iframe"))
# Most links have text in one piece, perhaps with tags around it. It is matched with the link's tag.
_LINK_TEXT_BYTES_MAX = 4_000
_AROUND = _any_name("b cite code em i span strong")
_LINK_TEXT = rf"""> (?: (?:<{_AROUND}{_FEW_ATTRIBUTES})*+ ([^<]{{0,{_LINK_TEXT_BYTES_MAX}}}+)
    (?:</{_AROUND}[^>]*+>)*+ (</[aA]){NAME_END} )?+"""
_ROWS_OUTLINE = rf"""({_skipped(_KEPT_ROWS, _HIDING_ROWS)}) (?: {_kept(_KEPT_ROWS, _LINK_TEXT)}
    | (<{_any_name("script")}{_INSIDE}) > (?: [^<]++ | {_ESCAPED} <(?!/{_SCRIPT}) )*+
    | (<{_any_name("iframe")}{_INSIDE}) > (?: [^<]++ | <(?!/{_any_name("iframe")}) )*+
    | {_END} )"""
_A_END = re.compile(rb"</[aA](?=[\t\n\f\r />])")
_TAG = re.compile(rb"<[^>]*>?")
_LINK_BEGINS = frozenset(
    name + end for name in (b"a", b"A") for end in (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b"")
)
_FORM = re.compile(rb"<form(?=[\t\n\f\r />]|\Z)", re.IGNORECASE)
_MEDIA = re.compile(rb"<(?:video|audio|object)(?=[\t\n\f\r />]|\Z)", re.IGNORECASE)
_NO_TEXT = rf"""(</?+{_any_name(INLINE)}{ATTRIBUTES} | {_COMMENT})
        | {_RAW_ELEMENT} | {_element("title")} | </?+[a-zA-Z]{ATTRIBUTES} | {_BOGUS_COMMENT}"""
# Elements that a tree repeats in each block until they end, except `a`, which ends at the next `a`.
_FORMATTING = f"<{_any_name('b big code em font i nobr s small strike strong tt u')}"
# A frameset page, and the tags of its frames.
_FRAMESET = re.compile(rb"<frameset[\t\n\f\r />]", re.IGNORECASE)
_FRAME_TAG = re.compile(rb"<frame(set)?+(?=[\t\n\f\r />]|\Z)", re.IGNORECASE)
_SOURCE = re.compile(rb"[\t\n\f\r /]src[\t\n\f\r ]*+=", re.IGNORECASE)
# Links in SVG. A `title` within a drawing is not the page's title. Only for the first titles is the
# position compared with drawings.
_XLINK = b"xlink:href"
_HREF = re.compile(rb"[\t\n\f\r /\"']href[\t\n\f\r ]*+=", re.IGNORECASE)
_TITLES_LOOKED_AT = 50
_ATTRIBUTE = re.compile(
    rb"""[^\t\n\f\r />=]+(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"[^"]*"|'[^']*'|[^\t\n\f\r >]*))?"""
)
# Python's unescape fails on numbers of thousands of digits. A character's number has at most seven
# digits.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


def is_small(html: bytes) -> bool:
    """Whether a page is small enough to be parsed into a tree."""
    if len(html) <= TREE_TAGS_MAX * TAG_BYTES_MIN:
        return True
    tags = html.count(b"<")
    return len(html) <= TREE_BYTES_MAX and tags <= TREE_TAGS_MAX and not _multiplies(html, tags)


def _multiplies(html: bytes, tags: int) -> bool:
    """Whether the tree of a page with this number of tags may have more than 90,000 elements."""
    # Each block repeats all open formatting elements (HTML Standard, 13.2.4.3). If most elements
    # are closed, at most 300 blocks repeat 300 of them. Few pages need the search.
    is_open = tags - 2 * html.count(b"</") > UNCLOSED_MAX
    return is_open and len(compiled(_FORMATTING).findall(html)) > FORMATTING_MAX


def outline(html: bytes) -> bytes:
    """Return the tags of links, robots directives and frames of a page, and its titles."""
    return outline_of(html)[0]


def outline_of(html: bytes) -> tuple[bytes, int]:
    """Return the outline of a page, and the number of tags whose attributes were truncated."""
    cut, drawings = 0, _TITLES_LOOKED_AT
    renames = _XLINK in html
    at = 0
    # At the end of the page, `tag` and `title` are empty.
    pieces: list[bytes] = []
    for tag, more, title in compiled(_OUTLINE).findall(html):
        if tag:
            # Calling the function for each tag would take a fifth of the total time.
            short = tag if len(tag) <= _LONG_TAG_BYTES else _truncated_tag(tag)
            cut += bool(more) or len(short) < len(tag)
            pieces.append(_as_html_link(short) if renames else short)
        elif title:
            if drawings:
                at = html.find(title, at)
                drawings -= 1
                if _is_in_svg(html, at):
                    continue
                drawings = 0  # this is the page's own title
            pieces.append(title)
    return _finished(html, pieces, cut)


def _finished(html: bytes, pieces: list[bytes], cut: int) -> tuple[bytes, int]:
    """Add the frames and the first `html` tag of a page to the pieces of its outline."""
    kept = b">".join([*pieces, b""])
    if _FRAMESET.search(kept):
        kept = b">".join([*_frames_as_links(pieces), b""])
    head = _HTML.search(html, 0, HEAD_BYTES)
    if head and head[0].endswith(b">"):
        tag = head[0][:-1]
        short = _truncated_tag(tag)
        return short + b">" + kept, cut + (len(short) < len(tag))
    return kept, cut


def outline_with_rows(html: bytes) -> tuple[bytes, int]:
    """Return an outline that also has the texts of links, and elements that load something.

    The second value is the number of tags whose attributes were truncated.
    """
    cut, titles = 0, list[bytes]()
    renames = _XLINK in html
    pieces: list[bytes] = []
    in_link = False
    for found in compiled(_ROWS_OUTLINE).findall(html):
        skipped, tag, words, end, more, title, script, iframe = found
        if in_link:
            text, in_link = _link_text(skipped)
            pieces.append(text)
        if tag:
            short = tag
            if more or len(tag) > _LONG_TAG_BYTES:
                short = _truncated_tag(tag)
                cut += bool(more) or len(short) < len(tag)
            if short[1:3] in _LINK_BEGINS:
                in_link = b'"#' not in short  # links within the page have no row
                pieces.append(_as_html_link(short) if renames else short)
            else:
                pieces += _as_empty(short)
            if end and in_link:
                pieces.append(words + end)
                in_link = False
        elif script or iframe:
            pieces += (_truncated_tag(script or iframe), b"</script" if script else b"</iframe")
        elif title:
            titles.append(title)
    pieces += _own_title(html, titles)
    return _finished(html, pieces, cut)


def _own_title(html: bytes, titles: list[bytes]) -> list[bytes]:
    """Return the first title that does not belong to a drawing."""
    at = 0
    for title in titles[:_TITLES_LOOKED_AT]:
        at = html.find(title, at)
        if not _is_in_svg(html, at):
            return [title]
    return titles[_TITLES_LOOKED_AT:][:1]


def _link_text(skipped: bytes) -> tuple[bytes, bool]:
    """Return the text of a link in the outline, and whether the link goes on behind it."""
    found = _A_END.search(skipped)
    end = found.start() if found else -1
    text = skipped if end < 0 else skipped[:end]
    if len(text) > _LINK_TEXT_BYTES_MAX:
        text = text[:_LINK_TEXT_BYTES_MAX]
    if b"<" in text:
        text = _TAG.sub(b"", text)
    # A `wbr` has no content. It replaces the end tag before a tag that the link contains.
    return (text + b"<wbr", True) if end < 0 else (text + b"</a", False)


def _as_empty(tag: bytes) -> tuple[bytes, ...]:
    """Return a tag as an element without content. Otherwise it would contain the next elements."""
    if _FORM.match(tag):
        return tag, b"</form"
    return (_MEDIA.sub(b"<embed", tag, count=1),)


def _as_html_link(tag: bytes) -> bytes:
    """Return an SVG link as an HTML link. `href` has priority over `xlink:href`."""
    other = tag[1:2] not in b"aA" or _HREF.search(tag)
    return tag if other else tag.replace(_XLINK, b"href", 1)


def _is_in_svg(html: bytes, at: int) -> bool:
    return html.rfind(b"<svg", 0, at) > html.rfind(b"</svg", 0, at)


def _frames_as_links(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of an outline. Frames become links to their pages.

    In an outline, a parser would not find frames.
    """
    for piece in pieces:
        tag = _FRAME_TAG.match(piece)
        if tag is None:
            yield piece
        elif tag[1] is None and _SOURCE.search(piece):
            yield b"<a" + _SOURCE.sub(b" href=", piece[tag.end() :], count=1)


def attributes_of(tag: bytes) -> int:
    return sum(1 for _ in _ATTRIBUTE.finditer(tag))


def _truncated_tag(tag: bytes) -> bytes:
    if len(tag) <= _LONG_TAG_BYTES:
        return tag
    last = next(islice(_ATTRIBUTE.finditer(tag), _ATTRIBUTES_MAX, None), None)
    return tag if last is None else tag[: last.start()]


def text_of(html: bytes) -> str:
    """Return the visible text of a page with single spaces."""
    text = compiled(_NO_TEXT).sub(lambda found: b"" if found[1] else b" ", html)
    line = text.decode("utf-8", "replace").replace("\0", "")
    return " ".join(unescape(_LONG_NUMBER.sub("\ufffd", line)).split())
