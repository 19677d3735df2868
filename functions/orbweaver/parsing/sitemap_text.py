"""Decode the body of a sitemap in pieces of 64 KiB: gunzip it, convert it to text, apply limits."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator

import webencodings

from orbweaver.parsing.charset import UTF_8, as_decoded, prescan

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
