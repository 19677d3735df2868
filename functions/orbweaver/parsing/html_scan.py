r"""HTML read by its tokens alone, in linear time: a large page's outline, any page's text.

A tree is the truth about a page, but a page can make its building quadratic: lexbor takes a minute
for 200,000 nested `div`, 30 s for a tag with 100,000 attributes, 17 s and 4.5 GB for 80 KB of
`<p><font x=1><p><font x=2>...`. So only a page of at most `TREE_BYTES_MAX` and `TREE_TAGS_MAX` (at
worst 65 ms) is parsed whole. Of another, `outline` keeps just the tags that links, wishes and
titles are made of, in about the time that telling harmless pages from others would take. Tags,
quotes, comments and raw text are told apart as by the HTML Standard's tokenizer (13.2.5). What only
a tree knows (a link in a `select` is none) is lost.

Each pattern takes what it has looked at and never looks back (possessive quantifiers).
"""

from __future__ import annotations

import re
from html import unescape
from itertools import islice
from string import ascii_lowercase

TREE_BYTES_MAX = 28_000
TREE_TAGS_MAX = 1_000
TAG_BYTES_MIN = 3
# Where the first `html` is looked for.
HEAD_BYTES = 65_536
# The attributes of a tag that `outline` keeps: lexbor compares each with each.
_VALUES_MAX = 32
_NAMES_BYTES_MAX = 256
# The first so many of a tag; its name counts.
_ATTRIBUTES_MAX = 128
_LONG_TAG_BYTES = 2 * _ATTRIBUTES_MAX

# What `outline` keeps, besides the first `html`.
_KEPT = "a area base link meta template /template"
# Elements whose content is no markup; a title's is kept.
_RAW = "script style textarea xmp iframe noembed noframes"
# Elements that part no words.
INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q rp rt ruby s "
    "samp small span strike strong sub sup time tt u var wbr"
)

# What ends a tag's name; a value after "=", most often in double quotes; and all up to ">".
NAME_END = r"(?=[\t\n\f\r />])"
_VALUE = r"""=(?:"[^"]*+" | [\t\n\f\r ]*+
    (?:"[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^\t\n\f\r >"'][^\t\n\f\r >]*+)?+)"""
_NAMES = rf"[\t\n\f\r ]*+[^>=]{{0,{_NAMES_BYTES_MAX}}}+"
_INSIDE = rf"[^>=]*+(?:{_VALUE} [^>=]*+)*+"
ATTRIBUTES = rf"{_INSIDE}>?+"
# The same, sooner for what most tags are: none, or a last one in double quotes.
_FEW_ATTRIBUTES = rf"""[^>=]*+(?: > | ="[^"]*+"> | (?:{_VALUE} [^>=]*+)*+ >?+ )"""
_COMMENT = r"<!-- (?:-?> | (?:[^-]++ | -(?!-!?>))*+ (?:--!?>)?+)"
_BOGUS_COMMENT = r"<(?:[!?] | /(?![a-zA-Z])) [^>]*+ >?+"


def _any_case(name: str) -> str:
    """Match a name in any case; faster than ignoring it."""
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


def _one_of(names: str) -> str:
    return f"(?:{'|'.join(map(_any_case, names.split()))}){NAME_END}"


def _letters(*, without: str) -> str:
    """Write letters in both cases, for a class of characters."""
    return "".join(char + char.upper() for char in ascii_lowercase if char not in without)


def _other_than(names: str) -> str:
    """Match the beginning of any other name; most are told by a letter or two, which is fast."""
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
    """Match an element whose content is no markup, up to its end tag."""
    hidden = _ESCAPED if name == "script" else ""
    name = _one_of(name)
    return rf"<{name}{ATTRIBUTES} (?:[^<]++ | {hidden} <(?!/{name}))*+"


def compiled(pattern: str) -> re.Pattern[bytes]:
    """Compile a verbose pattern for the bytes of a page."""
    return re.compile(pattern.encode(), re.VERBOSE)


# In a comment of a script, the end tag of a script that begins there ends that one alone.
_SCRIPT = _one_of("script")
_ESCAPED = rf"""<!-- (?: -*+> | (?: [^<-]++ | -(?!->) | <{_SCRIPT} (?:[^<-]++ | -(?!->)
    | <(?!/{_SCRIPT}))*+ (?:</{_SCRIPT})?+ | <(?!/{_SCRIPT}))*+ (?:-->)?+ ) |"""
_RAW_ELEMENT = "|".join(map(_element, _RAW.split()))
_END_TAG = f"</[{_letters(without='t')}][^>=]*+>"
# `span`, `li` and `p` are many: what begins with their letters is told first.
_ORDINARY = rf"""{_END_TAG} | </{_other_than("template")}{_FEW_ATTRIBUTES}
    | <{_other_than(f"{_RAW} link plaintext title {_KEPT.removesuffix(' /template')}")}
    {_FEW_ATTRIBUTES}"""
# What hides markup, and the letters that its names begin with.
_PLAINTEXT = rf"<{_one_of('plaintext')}[\x00-\xff]*+"
HIDING = f"{_RAW_ELEMENT} | {_PLAINTEXT} | {_COMMENT} | {_BOGUS_COMMENT}"
_HIDES = "".join(sorted({name[0] + name[0].upper() for name in f"{_RAW} plaintext".split()}))
_HTML = compiled(rf"<{_one_of('html')}{ATTRIBUTES}")
_OUTLINE = compiled(
    # What is passed over: text, tags, what hides markup, and a "<" that begins nothing ...
    rf"""(?: [^<]*+ (?: {_ORDINARY} | (?=<[!?/{_HIDES}])(?:{HIDING})
        | <(?![a-zA-Z!?/])(?:<(?=<))*+ ) )*+ [^<]*+"""
    # ... up to what is kept, or the end of the page.
    rf"""(?: (<{_one_of(_KEPT)}{_NAMES} (?:{_VALUE} {_NAMES}){{0,{_VALUES_MAX}}}+)
            (?: > | (?=([\x00-\xff])) {_INSIDE} > )
        | ({_element("title")} (?:</[tT][iI][tT][lL][eE])?+) [^>]*+ >?+
        | (?:<[\x00-\xff]*+)?+ \Z )"""  # a tag that does not end is none
)
_NO_TEXT = compiled(
    rf"""(</?+{_one_of(INLINE)}{ATTRIBUTES} | {_COMMENT})
        | {_RAW_ELEMENT} | {_element("title")} | </?+[a-zA-Z]{ATTRIBUTES} | {_BOGUS_COMMENT}"""
)
TAG = compiled(rf"<[a-zA-Z]{ATTRIBUTES}")
# A page that consists of other pages, and one of these.
_FRAMESET = re.compile(rb"<frameset[\t\n\f\r />]", re.IGNORECASE)
_FRAME = re.compile(rb"<frame(?=[\t\n\f\r />])([^<>]{0,2000}+)", re.IGNORECASE)
_SOURCE = re.compile(rb"[\t\n\f\r /]src[\t\n\f\r ]*+=", re.IGNORECASE)
# The links of drawings. Only the first titles are compared with the places of drawings.
_XLINK = b"xlink:href"
_HREF = re.compile(rb"[\t\n\f\r /\"']href[\t\n\f\r ]*+=", re.IGNORECASE)
_TITLES_LOOKED_AT = 50
_ATTRIBUTE = re.compile(
    rb"""[^\t\n\f\r />=]+(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"[^"]*"|'[^']*'|[^\t\n\f\r >]*))?"""
)
# Python's unescape fails on numbers of thousands of digits; no character has more than seven.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


def is_small(html: bytes) -> bool:
    """Whether a page may be parsed into a tree, by its size."""
    if len(html) <= TREE_TAGS_MAX * TAG_BYTES_MIN:
        return True
    return len(html) <= TREE_BYTES_MAX and html.count(b"<") <= TREE_TAGS_MAX


def outline(html: bytes) -> bytes:
    """Return the tags of a page that matter, and its titles; each closed by a ">"."""
    return outline_of(html)[0]


def outline_of(html: bytes) -> tuple[bytes, int]:
    """Return the outline of a page, and of how many tags it has only the first attributes."""
    cut, drawings = 0, _TITLES_LOOKED_AT
    renames = _XLINK in html
    at = 0
    head = _HTML.search(html, 0, HEAD_BYTES)
    # The end of the page matches, too, with neither.
    pieces: list[bytes] = []
    for tag, more, title in _OUTLINE.findall(html):
        if tag:
            # A call for each tag would take a fifth of all this.
            short = tag if len(tag) <= _LONG_TAG_BYTES else _bounded(tag)
            cut += bool(more) or len(short) < len(tag)
            pieces.append(_linking(short) if renames else short)
        elif title:
            if drawings:
                at = html.find(title, at)
                drawings -= 1
                if _is_in_svg(html, at):
                    continue
                drawings = 0  # the page has its title
            pieces.append(title)
    if _FRAMESET.search(html):
        pieces += [_frame_as_link(one) for one in _FRAME.findall(html) if _SOURCE.search(one)]
    kept = b">".join([*pieces, b""])
    if head and head[0].endswith(b">"):
        tag = head[0][:-1]
        short = _bounded(tag)
        return short + b">" + kept, cut + (len(short) < len(tag))
    return kept, cut


def _linking(tag: bytes) -> bytes:
    """Return a link of a drawing as one of HTML; `href` comes before `xlink:href`."""
    other = tag[1:2] not in b"aA" or _HREF.search(tag)
    return tag if other else tag.replace(_XLINK, b"href", 1)


def _is_in_svg(html: bytes, at: int) -> bool:
    """Return whether a drawing begins before a place and does not end there."""
    return html.rfind(b"<svg", 0, at) > html.rfind(b"</svg", 0, at)


def _frame_as_link(frame: bytes) -> bytes:
    """Return a frame as a link to its page: in an outline no parser takes it for a frame."""
    return b"<a" + _SOURCE.sub(b" href=", frame, count=1)


def attributes_of(tag: bytes) -> int:
    """Count the attributes of a tag, and its name as one more."""
    return sum(1 for _ in _ATTRIBUTE.finditer(tag))


def _bounded(tag: bytes) -> bytes:
    """Return a tag with its first attributes; only a long one can have more."""
    if len(tag) <= _LONG_TAG_BYTES:
        return tag
    last = next(islice(_ATTRIBUTE.finditer(tag), _ATTRIBUTES_MAX, None), None)
    return tag if last is None else tag[: last.start()]


def text_of(html: bytes) -> str:
    """Return the text of a page as its readers see it, with single spaces."""
    text = _NO_TEXT.sub(lambda found: b"" if found[1] else b" ", html)
    line = text.decode("utf-8", "replace").replace("\0", "")
    return " ".join(unescape(_LONG_NUMBER.sub("\ufffd", line)).split())
