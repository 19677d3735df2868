r"""HTML read by its tokens alone, in linear time: the outline of a large page, the text of any.

A tree is the truth about a page, but a page can make its building quadratic: lexbor takes a minute
for 200,000 nested `div`, 30 s for a tag with 100,000 attributes, 17 s and 4.5 GB for 80 KB of
`<p><font x=1><p><font x=2>...`. So only a page of at most `TREE_BYTES_MAX` and `TREE_TAGS_MAX` (at
worst half a second and 200 MB) is parsed whole; of another, `outline` keeps just the tags that
links, wishes and titles are made of. Tags, quotes, comments and raw text are told apart as by the
HTML Standard's tokenizer (13.2.5). What only a tree knows (a link in a `select` is none) is lost.

Each pattern takes what it has looked at and never looks back (possessive quantifiers).
"""

from __future__ import annotations

import re
from html import unescape
from string import ascii_lowercase

TREE_BYTES_MAX = 65_536
TREE_TAGS_MAX = 2_000
# Room for the longest URL, yet few enough attributes that comparing each with each is no burden.
TAG_BYTES_MAX = 4_096

# What `outline` keeps, and elements whose content is no markup.
_KEPT_NAMES = "a area base link meta html template title"
_RAW_NAMES = "script style textarea xmp iframe noembed noframes"


def _other_than(names: str) -> bytes:
    """Match the beginning of any other name; told by the first letter, which is fast."""
    rests: dict[str, list[str]] = {letter: [] for letter in ascii_lowercase}
    for name in names.split():
        rests[name[0]].append(name[1:])
    plain = "".join(letter for letter, rest in rests.items() if not rest)
    special = (f"{letter}(?!(?:{'|'.join(rest)}){_W})" for letter, rest in rests.items() if rest)
    return f"(?:[{plain}]|{'|'.join(special)})".encode()


# The patterns read lower case. W is what ends a tag's name; of values, most are in double quotes.
_W = r"(?=[\t\n\f\r />])"
_END = _W.encode()
_ATTRIBUTES = rb"""[^>=]*+(?:=(?:"[^"]*+" | [\t\n\f\r ]*+
    (?:"[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^\t\n\f\r >"'][^\t\n\f\r >]*+)?+) [^>=]*+)*+>?+"""
_COMMENT = rb"<!-- (?:-?> | (?:[^-]++ | -(?!-!?>))*+ (?:--!?>)?+)"
_BOGUS_COMMENT = rb"<(?:[!?] | /(?![a-z])) [^>]*+ >?+"
_RAW = (
    rb"<(?P<raw>" + _RAW_NAMES.replace(" ", "|").encode() + rb")" + _END + _ATTRIBUTES
    + rb"(?:[^<]++ | <(?!/(?P=raw)" + _END + rb"))*+"
)  # fmt: skip
_TITLE = (
    rb"<title" + _END + _ATTRIBUTES
    + rb"(?:[^<]++ | <(?!/title" + _END + rb"))*+ (?:</title[^>]*+>?+)?+"
)  # fmt: skip
_ORDINARY = (
    rb"<(?:" + _other_than(f"plaintext {_KEPT_NAMES} {_RAW_NAMES}")
    + rb"|/" + _other_than("template") + rb")" + _ATTRIBUTES
)  # fmt: skip
_KEPT = rb"<(?:" + _KEPT_NAMES.replace(" ", "|").encode() + rb"|/template)" + _END
_OUTLINE = re.compile(
    # What is passed over: text, tags, and at last a "<" that begins nothing ...
    rb"(?: [^<]++ |" + _ORDINARY + rb"|" + _RAW + rb"| <plaintext" + _END + rb"[\x00-\xff]*+ |"
    + _COMMENT + rb"|" + _BOGUS_COMMENT + rb"| (?!" + _KEPT + rb") < )*+"
    # ... up to what is kept, or the end of the page.
    + rb"(?:(?P<kept>" + _TITLE + rb"| <(?P<name>/?[a-z]+)" + _ATTRIBUTES + rb") | \Z)",
    re.VERBOSE,
)  # fmt: skip

_INLINE_NAMES = (
    rb"(?:a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|q|rp|rt|ruby|s"
    rb"|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr)"
)
_NO_TEXT = re.compile(
    rb"(?P<inline></?+" + _INLINE_NAMES + _END + _ATTRIBUTES + rb"|" + _COMMENT + rb")|" + _RAW
    + rb"|" + _TITLE + rb"| </?+[a-z]" + _ATTRIBUTES + rb"|" + _BOGUS_COMMENT,
    re.VERBOSE,
)  # fmt: skip
# Python's unescape fails on numbers of thousands of digits; no character has more than seven.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


def is_small(html: bytes) -> bool:
    """Whether a page may be parsed into a tree."""
    return len(html) <= TREE_BYTES_MAX and html.count(b"<") <= TREE_TAGS_MAX


def outline(html: bytes) -> bytes:
    """Return the tags of a page that matter, and its titles, without the content of templates."""
    kept: list[bytes] = []
    templates = 0
    for found in _OUTLINE.finditer(html.lower()):
        start, end = found.span("kept")
        match found["name"]:
            case b"template":
                templates += 1
            case b"/template":
                templates = max(0, templates - 1)
            case b"html" if kept:
                pass  # the attributes of a second one would be compared with those of the first
            case None if not templates:
                kept.append(html[start:end])
            case _ if not templates and end - start <= TAG_BYTES_MAX:
                kept.append(html[start:end])
    return b"".join(kept)


def text_of(html: bytes) -> str:
    """Return the text of a page as its readers see it, with single spaces."""
    pieces: list[bytes] = []
    at = 0
    for found in _NO_TEXT.finditer(html.lower()):
        pieces.append(html[at : found.start()])
        if not found["inline"]:
            pieces.append(b" ")
        at = found.end()
    pieces.append(html[at:])
    text = b"".join(pieces).decode("utf-8", "replace").replace("\0", "")
    return " ".join(unescape(_LONG_NUMBER.sub("\ufffd", text)).split())
