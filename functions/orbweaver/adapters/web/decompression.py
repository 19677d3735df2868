"""Decode content codings (gzip, deflate, br, zstd) piece by piece, with all sizes limited.

aiohttp's decoder accepts truncated bodies as complete, does not decode nested codings, and lets
zstd use windows of 128 MiB. Source: RFC 9110 section 8.4.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, Protocol

PIECE_BYTES = 65_536  # output of a decoder at a time, so that memory stays bounded
CODINGS_MAX = 3
MEMBERS_MAX = 1_000  # each costs a new decoder; real bodies have one or a few
ZSTD_WINDOW_LOG_MAX = 23  # 8 MiB (RFC 9659)
GZIP_BEGINS = frozenset({0x1F})
ZSTD_BEGINS = frozenset({0x28, *range(0x50, 0x60)})  # frames, and skippable frames
COMPRESS_BEGINS = b"\x1f\x9d"
ZLIB_METHOD = 8  # the low half of a zlib stream's first byte


def _optional(*names: str) -> ModuleType | None:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


_brotli = _optional("brotli")
_zstd = _optional("compression.zstd", "backports.zstd")  # the first from Python 3.14 on

_ERRORS: tuple[type[Exception], ...] = (
    zlib.error,
    *((_brotli.error,) if _brotli else ()),
    *((_zstd.ZstdError,) if _zstd else ()),
)


class CodingError(Exception):
    """The body cannot be decoded. The text is the reason."""


class _Stage(Protocol):
    """Decoder of one coding."""

    complete: bool

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class _Members:
    """Decodes gzip members or zstd frames that follow one another.

    Ignores other bytes after them.
    """

    def __init__(self, make: Callable[[], Any], begins: frozenset[int]) -> None:
        self._make = make
        self._begins = begins
        self._decoder: Any = None
        self._members = 0
        self._over = False
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._over:
            if self._decoder is None:
                if self._members and data[0] not in self._begins:
                    self._over = True
                    return
                self._start()
            yield from self._member(data)
            if not self.complete:
                return
            data, self._decoder = self._decoder.unused_data, None

    def _start(self) -> None:
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise CodingError(f"more than {MEMBERS_MAX} members")
        self._decoder = self._make()
        self.complete = False

    def _member(self, data: bytes) -> Iterator[bytes]:
        decoder = self._decoder
        while True:
            piece = decoder.decompress(data, PIECE_BYTES)
            # zlib returns the encoded bytes it had no room for, zstd keeps them.
            data = getattr(decoder, "unconsumed_tail", b"")
            self.complete = decoder.eof
            if piece:
                yield piece
            if self.complete or (not data and len(piece) < PIECE_BYTES):
                return


class _Deflate:
    """Decodes a zlib stream, or raw deflate, which some servers send by mistake."""

    def __init__(self) -> None:
        self._decoder: Any = None
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            wrapped = data[0] & 0x0F == ZLIB_METHOD
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        decoder = self._decoder
        while not decoder.eof:
            piece = decoder.decompress(data, PIECE_BYTES)
            data = decoder.unconsumed_tail
            self.complete = decoder.eof
            if piece:
                yield piece
            if not data and len(piece) < PIECE_BYTES:
                return


class _Brotli:
    def __init__(self, brotli: ModuleType) -> None:
        self._decoder = brotli.Decompressor()
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        decoder = self._decoder
        while not decoder.is_finished():
            piece = decoder.process(data, output_buffer_limit=PIECE_BYTES)
            data = b""
            self.complete = decoder.is_finished()
            if piece:
                yield piece
            elif decoder.can_accept_more_data():  # true too early while pieces are left
                return


class _Compress:
    """Passes a body labelled `compress` through. Raises CodingError if it really is compressed."""

    def __init__(self) -> None:
        self._begun = False
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._begun and COMPRESS_BEGINS.startswith(data[:2]):
            raise CodingError("'compress' cannot be undone")
        self._begun = True
        yield data


def _gzip() -> _Stage:
    return _Members(partial(zlib.decompressobj, 16 + zlib.MAX_WBITS), GZIP_BEGINS)


def _zstandard(zstd: ModuleType) -> _Stage:
    options = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
    return _Members(partial(zstd.ZstdDecompressor, options=options), ZSTD_BEGINS)


_STAGES: dict[str, Callable[[], _Stage]] = {
    "gzip": _gzip,
    "deflate": _Deflate,
    **({"br": partial(_Brotli, _brotli)} if _brotli else {}),
    **({"zstd": partial(_zstandard, _zstd)} if _zstd else {}),
}
ACCEPT_ENCODING = ", ".join(_STAGES)
_STAGES["compress"] = _Compress
_CODINGS = frozenset({*_STAGES, "br", "zstd"})


def codings_of(*headers: str | None) -> tuple[str, ...]:
    """Return the known codings in these headers, in the order in which they were applied."""
    listed = ",".join(filter(None, headers)).lower()
    if not listed:
        return ()
    # Ignore unknown names (`none`, `utf-8`), as browsers do: such bodies are rarely encoded.
    names = (name.strip().removeprefix("x-") for name in listed.split(","))
    return tuple(name for name in names if name in _CODINGS)


class Decoding:
    """A body being decoded. The output is truncated at `bytes_max`."""

    def __init__(self, codings: Iterable[str], bytes_max: int, halts_at: int | None = None) -> None:
        """`codings` are in the order in which they were applied.

        Decoding halts after `halts_at` bytes.
        """
        names = tuple(codings)
        if unknown := [name for name in names if name not in _STAGES]:
            raise CodingError(f"unknown coding {unknown[0][:40]!r}")
        if len(names) > CODINGS_MAX:
            raise CodingError(f"more than {CODINGS_MAX} codings")
        self._stages = [_STAGES[name]() for name in reversed(names)]
        self._bytes_max = bytes_max
        # Encoding can lengthen a body slightly. Twice the size is a decompression bomb.
        self._stage_bytes_max = 2 * bytes_max + PIECE_BYTES
        self._stage_bytes = [0] * (len(names) + 1)
        # One growing buffer. Many small ones would fragment the heap and double a worker's memory.
        self._kept = bytearray()
        self._bytes = 0
        self._halts_at = bytes_max if halts_at is None else halts_at
        self._left: Iterator[bytes] = iter(())

    def feed(self, chunk: bytes) -> bool:
        """Decode a chunk. Return False if the body is truncated. If `halted`, call `go_on` next."""
        if not self._stages:
            return self._keep(chunk)
        pieces = self._counted(0, iter((chunk,) if chunk else ()))
        for place, stage in enumerate(self._stages, start=1):
            pieces = self._counted(place, self._through(stage, pieces))
        self._left = pieces
        return self._decode()

    @property
    def halted(self) -> bool:
        """Whether decoding paused and more output may follow."""
        return self._bytes > self._halts_at and not self.cut

    def go_on(self, halts_at: int | None = None) -> bool:
        """Continue after a halt, up to `halts_at` bytes or to the end.

        Return the same as `feed`.
        """
        self._halts_at = self._bytes_max if halts_at is None else halts_at
        return self._decode()

    def cut_at(self, bytes_max: int) -> None:
        """Lower the limit to `bytes_max`, and drop the decoded bytes beyond it."""
        self._bytes_max = bytes_max
        del self._kept[bytes_max:]

    def _decode(self) -> bool:
        try:
            for piece in self._left:
                if not self._keep(piece):
                    return False
                if self.halted:
                    break
        except _ERRORS as error:
            raise CodingError(str(error)) from error
        return True

    @property
    def size(self) -> int:
        """Number of decoded bytes, including those beyond the limit."""
        return self._bytes

    @property
    def body(self) -> bytes:
        return bytes(self._kept)

    def head(self, size: int) -> bytes:
        return bytes(self._kept[:size])

    @property
    def cut(self) -> bool:
        """Whether the body exceeded the limit."""
        return self._bytes > self._bytes_max

    @property
    def complete(self) -> bool:
        """Whether every encoded stream reached its end. True for an empty body."""
        return all(stage.complete for stage in self._stages)

    def _keep(self, piece: bytes) -> bool:
        self._kept += piece[: self._bytes_max - self._bytes]
        self._bytes += len(piece)
        return not self.cut

    def _counted(self, place: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._stage_bytes[place] += len(piece)
            if self._stage_bytes[place] > self._stage_bytes_max:
                raise CodingError("far more coded than decoded bytes")
            yield piece

    @staticmethod
    def _through(stage: _Stage, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield from stage.feed(piece)
