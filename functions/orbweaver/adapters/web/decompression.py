"""Content codings undone piece by piece, with a bound on everything.

aiohttp can decode too, but takes a coded body that ends early for a whole one, hands nested
codings over as they are and lets a zstd frame ask for a window of 128 MiB. Rules:

- Decoding halts where a body is to get room first, and goes on from there.
- A stage never gives more than `PIECE_BYTES` at once, and the next stage takes it before another is
  made: memory does not depend on what a body would become.
- The decoded body is cut at its limit. A stage that takes in or gives out far more than that
  without the body growing is a bomb: `CodingError`.
- Codings are undone in the reverse order of their naming (RFC 9110 section 8.4), at most
  `CODINGS_MAX` of them. `deflate` is zlib's format, and raw deflate from servers that mistook it.
- A name that is no coding known here (`none`, `utf-8`, `binary`) is passed over, as browsers do:
  nearly always the bytes are not coded at all. Those of `compress` are told by their beginning.
  What cannot be undone is a `CodingError`; it is never asked for.
- gzip members and zstd frames may follow one another; any other bytes behind the end of a coded
  stream are passed over (but brotli's library refuses them). zstd windows end at 8 MiB (RFC 9659).
- A checksum that does not fit is a `CodingError`; a stream that only ends early is said to be
  incomplete, and what was decoded of it is kept.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, Protocol

PIECE_BYTES = 65_536
CODINGS_MAX = 3
MEMBERS_MAX = 1_000  # each costs a new decoder; real bodies have one, or a few
ZSTD_WINDOW_LOG_MAX = 23
GZIP_BEGINS = frozenset({0x1F})
ZSTD_BEGINS = frozenset({0x28, *range(0x50, 0x60)})  # frames, and frames to skip
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
    """A body that cannot be decoded; the text says why."""


class _Stage(Protocol):
    """One coding being undone."""

    complete: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take coded bytes in; give pieces of decoded ones."""


class _Members:
    """A stream of members that follow one another, each with a decoder of its own."""

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
            # zlib hands back the coded bytes it had no room for, zstd keeps them.
            data = getattr(decoder, "unconsumed_tail", b"")
            self.complete = decoder.eof
            if piece:
                yield piece
            if self.complete or (not data and len(piece) < PIECE_BYTES):
                return


class _Deflate:
    """One zlib stream, or one of raw deflate where the first byte cannot be zlib's."""

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
    """One brotli stream."""

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
            elif decoder.can_accept_more_data():  # said too early while there are still pieces
                return


class _Compress:
    """What is called `compress`: as it is, unless it is that."""

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
    """Name the codings of these header values in the order of their application.

    What is no coding is passed over.
    """
    listed = ",".join(filter(None, headers)).lower()
    if not listed:
        return ()
    names = (name.strip().removeprefix("x-") for name in listed.split(","))
    return tuple(name for name in names if name in _CODINGS)


class Decoding:
    """A body being decoded; `body` is what came out of it so far, never over the limit."""

    def __init__(self, codings: Iterable[str], bytes_max: int, halts_at: int | None = None) -> None:
        """Take codings in the order of their application, the limit, and where to halt once."""
        names = tuple(codings)
        if unknown := [name for name in names if name not in _STAGES]:
            raise CodingError(f"unknown coding {unknown[0][:40]!r}")
        if len(names) > CODINGS_MAX:
            raise CodingError(f"more than {CODINGS_MAX} codings")
        self._stages = [_STAGES[name]() for name in reversed(names)]
        self._bytes_max = bytes_max
        # Coding can make a body longer, by a little; twice is no longer a little.
        self._stage_bytes_max = 2 * bytes_max + PIECE_BYTES
        self._stage_bytes = [0] * (len(names) + 1)
        # One growing piece of memory: many small ones, of many bodies at once, leave a heap full
        # of holes when they are joined, and double what a worker needs.
        self._kept = bytearray()
        self._bytes = 0
        self._halts_at = bytes_max if halts_at is None else halts_at
        self._left: Iterator[bytes] = iter(())

    def feed(self, chunk: bytes) -> bool:
        """Decode a chunk of what came over the wire; False once the body is cut.

        What is left of a chunk where it halts is decoded by `go_on`, before the next is fed.
        """
        if not self._stages:
            return self._keep(chunk)
        pieces = self._counted(0, iter((chunk,) if chunk else ()))
        for place, stage in enumerate(self._stages, start=1):
            pieces = self._counted(place, self._through(stage, pieces))
        self._left = pieces
        return self._decode()

    @property
    def halted(self) -> bool:
        """Whether it has come to where it is to halt, and there may be more."""
        return self._bytes > self._halts_at and not self.cut

    def go_on(self, halts_at: int | None = None) -> bool:
        """Decode the rest, as `feed` does, up to where it halts next; None: to the end."""
        self._halts_at = self._bytes_max if halts_at is None else halts_at
        return self._decode()

    def cut_at(self, bytes_max: int) -> None:
        """Lower the limit, and drop what is beyond it."""
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
        """How many bytes were decoded, those beyond the limit too."""
        return self._bytes

    @property
    def body(self) -> bytes:
        """What was decoded, up to the limit."""
        return bytes(self._kept)

    def head(self, size: int) -> bytes:
        """Return the first so many bytes of it, or fewer."""
        return bytes(self._kept[:size])

    @property
    def cut(self) -> bool:
        """Whether there was more than the limit."""
        return self._bytes > self._bytes_max

    @property
    def complete(self) -> bool:
        """Whether every coded stream came to its own end; true where there was no byte."""
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
