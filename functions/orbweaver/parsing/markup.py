r"""Rewrite markup that browsers show and an HTML parser hides, in linear time.

In XHTML, `<title/>` is an element that ends there, CDATA is text, and names have prefixes (XML;
HTML Standard, 14.1). Broken XML is read up to the error. `template shadowrootmode` is part of the
page (HTML Standard, 4.12.3). Other pages are returned unchanged after a search of their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from orbweaver.parsing.html_scan import ATTRIBUTES, HIDING, NAME_END, compiled
from orbweaver.parsing.media_type import parse
from orbweaver.parsing.sniffing import XHTML

_SHADOW_HINT = b"shadowrootmode"
_SHADOW = re.compile(
    rb"""[\t\n\f\r /"']shadowrootmode\s*=\s*["']?(?:open|closed)\b""", re.IGNORECASE
)
_TEMPLATE = rf"[tT][eE][mM][pP][lL][aA][tT][eE]{NAME_END}"
# Matches all markup up to the next `template` tag, or all remaining bytes. No byte is scanned
# twice. Compiled on first use, because few pages have a shadow root.
_TEMPLATES = rf"""
    (?: [^<]*+ (?: {HIDING} | </?+(?!{_TEMPLATE})[a-zA-Z]{ATTRIBUTES} | <(?![a-zA-Z!?/]) ) )*+
        [^<]*+ (?: (</?+{_TEMPLATE}) ({ATTRIBUTES}) | [\x00-\xff]*+ \Z )"""

_VOID = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr".split()
)
_CDATA, _CDATA_END = b"<![CDATA[", b"]]>"
# Elements whose content an HTML parser does not read as markup.
_RAW = frozenset({b"script", b"style"})
_XML_TAG = re.compile(
    rb"""<(/?+)(?:([^\x00-\x20<>/="':]++):)?+([^\x00-\x20<>/="':!?][^\x00-\x20<>/="']*+)
        ((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>""",
    re.VERBOSE,
)
_XML_NAMESPACE = re.compile(
    rb"""xmlns:([^\x00-\x20<>/="':]++)\s*=\s*["']http://www\.w3\.org/1999/xhtml["']"""
)
# Range in which the prefix of the XHTML namespace is searched. It is declared near the root.
_HEAD_BYTES = 4_096


def as_html(page: bytes, content_type: str | None) -> bytes:
    if _is_xhtml(content_type):
        page = b"".join(_xhtml(page))
    return _with_shadow_roots(page) if _SHADOW_HINT in page else page


def is_rewritten(page: bytes, content_type: str | None) -> bool:
    """Return whether `as_html` rewrites this page tag by tag, which takes microseconds per tag."""
    return _SHADOW_HINT in page or _is_xhtml(content_type)


def _is_xhtml(content_type: str | None) -> bool:
    kind = parse(content_type) if content_type else None
    return kind is not None and kind.essence == XHTML


def _with_shadow_roots(page: bytes) -> bytes:
    pieces: list[bytes] = []
    opened: list[bool] = []
    at = 0
    for tag in compiled(_TEMPLATES).finditer(page):
        if tag[1] is None:
            break
        if tag[1].startswith(b"</"):
            shadow = bool(opened) and opened.pop()
        else:
            shadow = _SHADOW.search(tag[2]) is not None
            opened.append(shadow)
        if shadow:
            pieces += page[at : tag.start(1)], b"</div" if tag[1][1:2] == b"/" else b"<div"
            at = tag.end(1)
    return b"".join([*pieces, page[at:]])


def _xhtml(page: bytes) -> Iterator[bytes]:
    prefixes = {*_XML_NAMESPACE.findall(page[:_HEAD_BYTES])}
    at, raw = 0, b""
    while True:
        start = page.find(b"<", at)
        if start < 0:
            break
        yield page[at:start]
        at = start
        for opens, closes in ((_CDATA, _CDATA_END), (b"<!--", b"-->"), (b"<?", b"?>")):
            if page.startswith(opens, at):
                end = page.find(closes, at + len(opens))
                break
        else:
            piece, at, raw = _xml_tag(page, at, prefixes, raw)
            yield piece
            continue
        if end < 0:
            break
        at = end + len(closes)
        if opens == _CDATA:
            text = page[start + len(_CDATA) : end]
            if raw:
                yield text.replace(b"</", b"<\\/")  # so that it does not end the script
                continue
            yield escape(text.decode("utf-8", "replace"), quote=False).encode()
        elif opens == b"<!--":
            yield page[start:at]
    yield page[at:]


def _xml_tag(page: bytes, at: int, prefixes: set[bytes], raw: bytes) -> tuple[bytes, int, bytes]:
    """Return the tag at `at` as HTML, its end, and the raw-text element that is open after it.

    `raw` is the raw-text element that is open before it. `prefixes` belong to XHTML.
    """
    tag = _XML_TAG.match(page, at)
    if tag is None:
        return page[at : at + 1], at + 1, raw
    slash, prefix, name, rest = tag.groups()
    if prefix is not None and prefix not in prefixes:
        name = prefix + b":" + name
    if slash:
        return b"</" + name + b">", tag.end(), b"" if name == raw else raw
    if rest.endswith(b"/"):
        end = b"" if name in _VOID else b"</" + name + b">"
        return b"<" + name + rest[:-1] + b">" + end, tag.end(), raw
    return b"<" + name + rest + b">", tag.end(), name if name in _RAW else raw
