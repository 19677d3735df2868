"""Compression of what is stored by the KB: small, in linear time.

zlib's best level looks at up to 4,096 earlier places for each byte: 12 s for 5 MB of random `a` and
`b`, which a page can write into its links. So texts of up to `SMALL_BYTES_MAX` are written by zlib
at its usual level, larger ones by zstd, whose window holds them whole. Measured on journals of two
manuals: as many write units as by zlib's best level in 60 % of its time; 0.1 s for those 5 MB.

What is stored says by its first byte how it is written, so what earlier versions wrote is read.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

SMALL_BYTES_MAX = 32 * 1024  # zlib's window
ZLIB_LEVEL = 6
ZSTD_LEVEL = 7
_ZLIB = b"\x78"  # deflate with a window of 32 KB: RFC 1950, 2.2
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1


class CompressionError(ValueError):
    """Bytes that are not whole, or nothing that is read here."""


def known(blob: bytes) -> bool:
    """Whether bytes begin as one of the compressions that are read here."""
    return blob.startswith((_ZLIB, _ZSTD))


def compress(plain: bytes) -> bytes:
    """Compress a text; what is appended to it later is left alone by `decompress`."""
    if len(plain) <= SMALL_BYTES_MAX:
        return zlib.compress(plain, ZLIB_LEVEL)
    packed: bytes = zstd_module().compress(plain, ZSTD_LEVEL)
    return packed


def decompress(blob: bytes) -> tuple[bytes, bytes]:
    """Return a text, and the bytes that stand behind it; raises CompressionError."""
    decoder: Any = zlib.decompressobj()
    errors: tuple[type[Exception], ...] = (zlib.error,)
    if blob.startswith(_ZSTD):
        decoder, errors = zstd_module().ZstdDecompressor(), (zstd_module().ZstdError,)
    try:
        plain: bytes = decoder.decompress(blob)
    except errors as error:
        raise CompressionError(f"not compressed as it should be: {error}") from error
    if not decoder.eof:
        raise CompressionError("compressed bytes end early")
    return plain, decoder.unused_data


@cache
def zstd_module() -> Any:
    """Import zstd when it is needed first; Python has it from 3.14 on."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from backports import zstd
    return zstd
