"""Detect the charset of a page and convert its text to UTF-8.

The order of evidence follows the HTML Standard (13.2.3): byte order mark, `Content-Type`, then
`meta` or an XML declaration near the beginning. Labels follow the Encoding Standard (webencodings).
Broken bytes become U+FFFD. No function raises on bad input.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

import webencodings

# Range in which a declaration is searched. Browsers scan 1,024 bytes, and start again if a `meta`
# after them declares another charset. This limit covers both.
PRESCAN_BYTES = 16_384

UTF_8 = "utf-8"
WINDOWS_1252 = "windows-1252"
# Charsets whose queries are encoded as UTF-8 (Encoding Standard, "get an output encoding").
# `x-user-defined` has no codec.
_UTF_8_OUT = {UTF_8, "utf-16be", "utf-16le", "replacement", "x-user-defined"}
_MARKS = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF16_BE: "utf-16be", codecs.BOM_UTF16_LE: "utf-16le"}
# Differences between Python's codecs and the Encoding Standard, by charset: (Python's text, the
# standard's text). 0xA3A0 is an ideographic space. Shift out and shift in are errors, though Python
# ignores them.
_DECODED = {
    "gb18030": (("\ue5e5", "\u3000"),),
    "gbk": (("\ue5e5", "\u3000"),),
    "iso-2022-jp": (("\x0e", "\ufffd"), ("\x0f", "\ufffd")),
}
# Characters that Python encodes, although they are errors in the standard. Like all such characters
# they become `&#…;`.
_NOT_ENCODED = {"gb18030": "\ue5e5", "gbk": "\ue5e5", "iso-2022-jp": "\x0e\x0f\x1b"}
# Charsets for which Python's codec has fewer characters than the standard's decoder, with the
# codec to use.
_CODECS = {"gbk": "gb18030"}

_HEADER = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_CONTENT = re.compile(
    rb"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;]+)|["'])""",
    re.IGNORECASE,
)
_XML = re.compile(rb"""<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(["'])([^"'>]+)\1""")
_META = re.compile(rb"<meta[\t\n\f\r /]", re.IGNORECASE)
_TAG = re.compile(rb"</?[a-z][^\t\n\f\r >]*", re.IGNORECASE)
# An attribute: a name and an optional value. A match without a name is the end of the tag.
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*+
    (?: >
    | ([^\t\n\f\r />][^\t\n\f\r />=]*+) [\t\n\f\r ]*+
      (?: = [\t\n\f\r ]*+
          (?: "([^"]*)" | '([^']*)'
          | ([^"'\t\n\f\r >][^\t\n\f\r >]*+) (?=[\t\n\f\r >])
          | (?=>) )
      | (?=[^=]) ) )""",
    re.VERBOSE,
)
_START_BYTES_MAX = 1_024
# A page without a declared charset is UTF-8 if it has at least this number of valid characters
# beyond ASCII per broken one. Otherwise it is windows-1252.
_VALID_PER_BROKEN = 2
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ESCAPED = {*range(0x21), *b"\"#&';<>", *range(0x7F, 0x100)}
# The text that represents each byte in a query.
_IN_QUERY = tuple(f"%{byte:02X}" if byte in _ESCAPED else chr(byte) for byte in range(0x100))


def decode(body: bytes, content_type: str | None) -> tuple[str, bytes]:
    """Return the standard name of a page's charset, and the page as UTF-8 without BOM."""
    for mark, name in _MARKS.items():
        if body.startswith(mark):
            return name, _to_utf8(body[len(mark) :], name)
    declared = from_header(content_type or "") or prescan(body[:PRESCAN_BYTES])
    if declared is None:
        declared = UTF_8 if _is_utf8(body) or _is_mostly_utf8(body) else WINDOWS_1252
    return declared, _to_utf8(body, declared)


def from_header(content_type: str) -> str | None:
    found = _HEADER.search(content_type)
    return _standard_name(found[found.lastindex or 0]) if found else None


def prescan(head: bytes) -> str | None:
    """Return the charset that the beginning of a page declares, or None."""
    name = None
    # The scan takes a millisecond, and most pages without a declaration do not contain "charset".
    at = head.find(b"charset")
    if at < 0:
        at = head.lower().find(b"charset")
    if at >= 0:
        # Cached, because most pages of a site have the same bytes up to this tag. The declaration
        # ends with the tag.
        end = head.find(b">", at) + 1
        name = (_known_start(head[:end]) if end <= _START_BYTES_MAX else None) or _charset_of_start(
            head
        )
    if name is not None:
        return WINDOWS_1252 if name == "x-user-defined" else name
    found = _XML.match(head)
    return _self_named(found[2]) if found else None


def encode_query(reference: str, charset: str) -> str:
    """Percent-encode the query of a link in the page's charset.

    Only characters beyond ASCII are encoded (URL Standard, "percent-encode after encoding").
    """
    path, mark, query = reference.partition("?")
    if charset in _UTF_8_OUT:
        return reference
    odd = _NOT_ENCODED.get(charset, "")
    if query.isascii() and not any(char in query for char in odd):
        return reference
    codec = _codec(charset)

    def escape(run: re.Match[str]) -> str:
        raw, _ = codec.encode(run[0], "xmlcharrefreplace")
        return "".join(map(_IN_QUERY.__getitem__, raw))

    def refused(found: re.Match[str]) -> str:
        # For a control character, the standard encodes U+FFFD instead (Encoding Standard, 10.2.2
        # and 12.2.2).
        number = ord(found[0]) if found[0] >= " " else 0xFFFD
        return f"%26%23{number}%3B"

    if odd:
        query = re.sub(f"[{odd}]", refused, query)
    return path + mark + _NOT_ASCII.sub(escape, query)


def as_decoded(text: str, charset: str) -> str:
    """Correct characters that Python decodes differently from the Encoding Standard."""
    for ours, theirs in _DECODED.get(charset, ()):
        text = text.replace(ours, theirs)
    return text


def _charset_of_start(head: bytes) -> str | None:
    return next(filter(None, map(_of_meta, _metas(head))), None)


_known_start = lru_cache(maxsize=64)(_charset_of_start)


def _metas(head: bytes) -> Iterator[dict[bytes, bytes]]:
    """Yield the attributes of each complete `meta` tag (HTML Standard, "prescan a byte stream")."""
    at = head.find(b"<")
    while at >= 0:
        if head.startswith(b"<!--", at):
            end = head.find(b"-->", at + 2)
        elif (tag := _META.match(head, at) or _TAG.match(head, at)) is not None:
            attributes, end = _attributes(head, tag.end())
            if end >= 0 and tag.re is _META:
                yield attributes
        elif head[at + 1 : at + 2] in {b"!", b"/", b"?"}:
            end = head.find(b">", at)
        else:
            end = at + 1
        at = head.find(b"<", end) if end >= 0 else -1


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of the tag whose attributes begin at `at`, and the tag's end.

    The end is -1 for an incomplete tag. The first of equal names counts.
    """
    attributes: dict[bytes, bytes] = {}
    while (found := _ATTRIBUTE.match(head, at)) is not None:
        name, *values = found.groups()
        at = found.end()
        if name is None:
            return attributes, at
        attributes.setdefault(name.lower(), next(filter(None, values), b""))
    return attributes, -1


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    label = attributes.get(b"charset")
    if label is not None:
        return _self_named(label)
    found = _CONTENT.search(attributes.get(b"content", b""))
    if found is None or attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    return _self_named(found[found.lastindex]) if found.lastindex else None


def _self_named(label: bytes) -> str | None:
    """Return the standard name of a declared charset.

    UTF-16 becomes UTF-8, because the declaration itself could not be read in UTF-16.
    """
    name = _standard_name(label.decode("latin-1"))
    return UTF_8 if name in {"utf-16be", "utf-16le"} else name


def _standard_name(label: str) -> str | None:
    encoding = webencodings.lookup(label)
    return encoding.name if encoding else None


def _codec(name: str) -> codecs.CodecInfo:
    encoding = None if name in _CODECS else webencodings.lookup(name)
    return encoding.codec_info if encoding else codecs.lookup(_CODECS[name])


def _is_utf8(body: bytes) -> bool:
    if body.isascii():  # needs no copy of the body
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_mostly_utf8(body: bytes) -> bool:
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return beyond_ascii - broken >= _VALID_PER_BROKEN * broken


def _to_utf8(body: bytes, name: str) -> bytes:
    if name == UTF_8 and _is_utf8(body):
        return body
    text, _ = _codec(name).decode(body, "replace")
    text = as_decoded(text, name)
    return text.encode("utf-8", "replace")
