"""Decode XML sitemaps piece by piece, and parse their items with expat.

There is no tree, and there are no entities or external resources. Memory and time per byte have
fixed limits. A bare `&` is a literal character, because handwritten sitemaps contain many. Any
other violation of well-formedness stops the reading.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

import webencodings

from orbweaver.parsing.charset import UTF_8, as_decoded, prescan
from orbweaver.parsing.sniffing import HTML_TYPES

# Limit of sitemaps.org for a decompressed file.
DECODED_BYTES_MAX = 50 * 1024 * 1024
PIECE_BYTES = 65_536
# A body that expands by a larger factor is a decompression bomb. Real sitemaps expand by 10 to 60.
RATIO_MAX = 200
RATIO_FREE_BYTES = 1024 * 1024
MEMBERS_MAX = 1_000
HEAD_BYTES = 1_024

_GZIP = b"\x1f\x8b"
# Charset by the first bytes (byte order mark, zeros of UTF-16), in order of priority. Without such
# bytes the XML declaration counts, otherwise the body is UTF-8. Undecodable bytes become U+FFFD.
_BEGINS = {
    codecs.BOM_UTF8: UTF_8,
    codecs.BOM_UTF16_BE: "utf-16be",
    codecs.BOM_UTF16_LE: "utf-16le",
    b"\0<": "utf-16be",
    b"<\0": "utf-16le",
}


# An `&` that begins no entity or character reference.
_BARE = re.compile(r"&(?!#[0-9]{1,9};|#x[0-9A-Fa-f]{1,8};|[A-Za-z_][\w.-]{0,60};)")
_ENTITY_CHARS_MAX = 64
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


class Spoiled(Exception):
    """The remaining part of a file is unusable. The message contains the reason."""


class Ampersands:
    """Escapes bare `&` characters outside CDATA, piece by piece."""

    def __init__(self) -> None:
        self._kept = ""
        self._cdata = False

    def feed(self, text: str) -> str:
        """Add a piece. Returns the escaped text that further pieces cannot change."""
        return self._escape_bare(self._kept + text, last=False)

    def rest(self) -> str:
        return self._escape_bare(self._kept, last=True)

    def _escape_bare(self, text: str, *, last: bool) -> str:
        self._kept = ""
        given: list[str] = []
        at = 0
        while at < len(text):
            mark = _CDATA_END if self._cdata else _CDATA
            end = text.find(mark, at)
            piece = text[at : end if end >= 0 else len(text)]
            if end < 0 and not last:
                piece = piece[: _final_length(piece, mark, entities=not self._cdata)]
                self._kept = text[at + len(piece) :]
            given.append(piece if self._cdata else _BARE.sub("&amp;", piece))
            if end < 0:
                break
            given.append(mark)
            self._cdata = not self._cdata
            at = end + len(mark)
        return "".join(given)


def _final_length(piece: str, mark: str, *, entities: bool) -> int:
    """Return the length of the beginning of `piece` that later input cannot change.

    `mark` may begin at its end, and with `entities` also a character reference.
    """
    size = len(piece)
    for chars in range(min(len(mark) - 1, size), 0, -1):
        if mark.startswith(piece[-chars:]):
            size -= chars
            break
    if entities:
        ampersand = piece.rfind("&", max(0, size - _ENTITY_CHARS_MAX), size)
        if ampersand >= 0 and ";" not in piece[ampersand:size]:
            size = ampersand
    return size


def texts(body: bytes) -> Iterator[str]:
    """Yield a body's text in pieces. If a later piece is unusable, raises Spoiled at that point."""
    pieces = _gunzipped(body) if body.startswith(_GZIP) else _sliced(body)
    decoder: codecs.IncrementalDecoder | None = None
    name = UTF_8
    left = DECODED_BYTES_MAX
    for piece in pieces:
        if decoder is None:
            decoder, name = _decoder(piece[:HEAD_BYTES])
        yield as_decoded(decoder.decode(piece[:left]).removeprefix("\ufeff"), name)
        left -= len(piece)
        if left < 0:
            raise Spoiled(f"larger than {DECODED_BYTES_MAX:,} bytes")


def _decoder(head: bytes) -> tuple[codecs.IncrementalDecoder, str]:
    name = next((name for begin, name in _BEGINS.items() if head.startswith(begin)), None)
    encoding = webencodings.lookup(name or prescan(head) or UTF_8) or webencodings.UTF8
    decoder: codecs.IncrementalDecoder = encoding.codec_info.incrementaldecoder("replace")
    return decoder, encoding.name


def _sliced(body: bytes) -> Iterable[bytes]:
    return (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))


def _gunzipped(body: bytes) -> Iterator[bytes]:
    stream = _Gzip()
    for taken, coded in enumerate(_sliced(body), start=1):
        for piece in stream.feed(coded):
            yield piece
            if stream.given > max(RATIO_FREE_BYTES, RATIO_MAX * taken * PIECE_BYTES):
                raise Spoiled(f"grows by more than {RATIO_MAX} times when it is gunzipped")
        if stream.over:
            return
    if not stream.decoder.eof:
        raise Spoiled("the gzipped body ends early")


class _Gzip:
    """A stream of gzip members. `over`: the next bytes are no gzip member and are ignored."""

    def __init__(self) -> None:
        self.decoder = _member()
        self.given = 0
        self.over = False
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            if self.decoder.eof and not self._start_member(data):
                return
            try:
                piece = self.decoder.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Spoiled(f"gzip: {error}") from error
            self.given += len(piece)
            if piece:
                yield piece
            ended = self.decoder.eof
            data = self.decoder.unused_data if ended else self.decoder.unconsumed_tail
            if not data and len(piece) < PIECE_BYTES:
                return

    def _start_member(self, data: bytes) -> bool:
        self.over = bool(data) and data[0] != _GZIP[0]
        if self.over or not data:
            return False
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise Spoiled(f"more than {MEMBERS_MAX:,} gzip members")
        self.decoder = _member()
        return True


def _member() -> zlib._Decompress:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


# Limits of elements, names and tags, because expat keeps all of them in memory.
DEPTH_MAX = 50
# About 20 for each of 50,000 URLs. 50 MiB cannot contain more elements with content.
ELEMENTS_MAX = 1_000_000
NAMES_MAX = 1_000
TAG_BYTES_MAX = 256 * 1024
TEXT_CHARS_MAX = 8_192

ROOTS = frozenset({"urlset", "sitemapindex", "rss", "rdf", "feed"})
_LISTED = frozenset({"url", "sitemap"})
# Elements that are items, by the root element. `url` is no item in a feed, because an `image` of a
# feed has a `url`.
ITEMS = {
    "urlset": _LISTED,
    "sitemapindex": _LISTED,
    "rss": frozenset({"item"}),
    "rdf": frozenset({"item"}),
    "feed": frozenset({"entry"}),
}
# Elements with an item's reference. The first of these that has a text counts. For an Atom entry,
# `link` is the `href` of the first `alternate` with an HTML type, or else of the first `alternate`.
# "" is the text of the item itself.
_REFERENCES = ("loc", "link", "guid", "")
_DATES = ("lastmod", "pubdate", "updated", "published")
_FIELDS = frozenset({*_REFERENCES, *_DATES})
# Characters that XML 1.0 forbids, but that feeds contain.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(slots=True)
class XmlItem:
    """A URL of a file while the file is read: element name and texts of its fields."""

    label: str
    texts: dict[str, list[str]] = field(default_factory=dict)
    chars_left: int = TEXT_CHARS_MAX
    # Base URLs (`xml:base`) of the item's reference, from the outermost element inwards (RFC 4287,
    # 2; XML Base). `surplus` is the number of further references: an item has only one `loc`
    # (sitemaps.org).
    bases: tuple[str, ...] = ()
    surplus: int = 0
    # True if the item's reference is an alternate with an HTML type.
    has_page: bool = False

    @property
    def reference(self) -> str:
        return next(filter(None, map(self._text, _REFERENCES)), "")

    @property
    def relative(self) -> bool:
        """Whether the reference is allowed to be relative, as a feed's `link` is.

        A `guid` is not.
        """
        return self.label in ("item", "entry") and bool(self._text("link"))

    @property
    def modified(self) -> str:
        return next(filter(None, map(self._text, _DATES)), "")

    def _text(self, name: str) -> str:
        return "".join(self.texts.get(name, ())).strip()


class XmlReader:
    """Parses a file and passes each completed item to the callback `take`.

    `root` is the name of the root element.
    """

    def __init__(self, take: Callable[[XmlItem], None]) -> None:
        self.root = ""
        self._take = take
        self._prefix = ""
        self._stack: list[str] = []
        self._labels: dict[str, str] = {}
        self._attributes: set[str] = set()
        self._elements = 0
        self._item: XmlItem | None = None
        self._item_depth = 0
        self._into: list[str] | None = None
        self._items: frozenset[str] = frozenset()
        self._bases: list[tuple[int, str]] = []  # each with the depth of its element
        self._ampersands = Ampersands()
        self._fed = 0
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.UseForeignDTD(True)  # Unknown entities are omitted instead of being errors.
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        self._parser = parser

    def feed(self, text: str) -> None:
        self._feed(self._ampersands.feed(_ILLEGAL.sub("", text)))

    def _feed(self, text: str) -> None:
        piece = text.encode("utf-8", "replace")
        self._fed += len(piece)
        self._parse(piece, last=False)
        # Unprocessed input is an incomplete tag or comment, which expat keeps in memory.
        if self._fed - self._parser.CurrentByteIndex > TAG_BYTES_MAX:
            raise Spoiled(f"a tag of more than {TAG_BYTES_MAX:,} bytes")

    def close(self) -> None:
        self._feed(self._ampersands.rest())
        self._parse(b"", last=True)

    def _parse(self, piece: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise Spoiled(f"not well-formed: {error}") from error

    def _doctype(self, _name: str, _system: object, _public: object, internal: int) -> None:
        if internal:
            # An internal DTD subset can define entities and default attributes, so it stops the
            # reading. An external DTD is never loaded. So no entity expands and no server is
            # contacted (XXE, billion laughs).
            raise Spoiled("it has a document type of its own")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        stack = self._stack
        label = self._labels.get(name)
        if label is None:
            label = self._label(name)
        self._elements += 1
        stack.append(label)
        if self._elements > ELEMENTS_MAX or len(stack) > DEPTH_MAX:
            raise Spoiled(f"more than {ELEMENTS_MAX:,} elements, or {DEPTH_MAX} in one another")
        if attributes and not self._attributes.issuperset(attributes):
            self._attributes.update(attributes)
            self._check_names()
        if attributes and len(base := attributes.get("xml:base", "")) in range(1, TEXT_CHARS_MAX):
            self._bases.append((len(stack), base))
        if self._item is None:
            if label in self._items:
                self._item = XmlItem(label)
                self._item_depth = len(stack)
                self._into = self._item.texts.setdefault("", [])
                self._parser.CharacterDataHandler = self._characters
        elif label in _FIELDS and len(stack) == self._item_depth + 1:
            self._begin_field(self._item, label, attributes)
        else:
            self._into = None

    def _label(self, name: str) -> str:
        prefix, _, local = name.rpartition(":")
        label = local.lower()
        if not self._labels:
            if label not in ROOTS:
                raise Spoiled(f"its root element is {label[:40]!r}")
            self.root = label
            self._items = ITEMS[label]
            self._prefix = prefix
        # Names without a prefix or with the root's prefix count. So a wrong or missing namespace
        # does not matter. All other names are extensions (`image:loc`, `xhtml:link`) and get the
        # label " ", which matches nothing.
        self._labels[name] = label if prefix in ("", self._prefix) else " "
        self._check_names()
        return self._labels[name]

    def _check_names(self) -> None:
        if len(self._labels) + len(self._attributes) > NAMES_MAX:
            raise Spoiled(f"more than {NAMES_MAX:,} different names")

    def _begin_field(self, item: XmlItem, label: str, attributes: dict[str, str]) -> None:
        bases = tuple(base for _, base in self._bases)
        if item.label == "entry" and label == "link":
            self._into = None
            _take_alternate(item, attributes, bases)
            return
        if label in item.texts:
            self._into = None  # only the first value counts
            item.surplus += label == "loc"
            return
        if label in _REFERENCES:
            item.bases = bases
        self._into = item.texts[label] = []

    def _end(self, _name: str) -> None:
        stack = self._stack
        depth = len(stack)
        stack.pop()
        if self._bases and self._bases[-1][0] == depth:
            self._bases.pop()
        item = self._item
        if item is None:
            return
        if depth == self._item_depth:
            self._item = self._into = None
            self._parser.CharacterDataHandler = None
            if item.reference:
                self._take(item)
        elif depth == self._item_depth + 1:
            self._into = item.texts[""]

    def _characters(self, text: str) -> None:
        item = self._item
        if item is not None and self._into is not None and item.chars_left > 0:
            self._into.append(text[: item.chars_left])
            item.chars_left -= len(text)


def _take_alternate(item: XmlItem, attributes: dict[str, str], bases: tuple[str, ...]) -> None:
    """Add a link of an entry. The first HTML alternate counts, otherwise the first alternate."""
    if attributes.get("rel", "alternate").strip().lower() != "alternate":
        return
    kind = attributes.get("type", "").partition(";")[0].strip().lower()
    is_page = kind in HTML_TYPES
    if "link" not in item.texts or (is_page and not item.has_page):
        item.texts["link"] = [attributes.get("href", "")[:TEXT_CHARS_MAX]]
        item.bases, item.has_page = bases, is_page
