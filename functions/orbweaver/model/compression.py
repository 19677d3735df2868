"""Compress stored data in linear time.

The first byte identifies the format, so data of earlier versions can still be read.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

# Larger data uses zstd. zlib's best level would search up to 4,096 earlier positions for each byte:
# 12 s for 5 MB of random `a` and `b`, which a page can produce in its links. Measured with zstd on
# commit logs of two manuals: as many write units as zlib's best level in 60 % of its time, and 0.1
# s for those 5 MB.
SMALL_BYTES_MAX = 32 * 1024  # zlib's window
ZLIB_LEVEL = 6
ZSTD_LEVEL = 7
_ZLIB = b"\x78"  # deflate with a window of 32 KB: RFC 1950, 2.2
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1


class CompressionError(ValueError):
    """Data is truncated, corrupt or in an unknown format."""


def known(blob: bytes) -> bool:
    return blob.startswith((_ZLIB, _ZSTD))


def compress(plain: bytes) -> bytes:
    """Compress data. Bytes appended to the result are ignored by `decompress`."""
    if len(plain) <= SMALL_BYTES_MAX:
        return zlib.compress(plain, ZLIB_LEVEL)
    packed: bytes = zstd_module().compress(plain, ZSTD_LEVEL)
    return packed


def decompress(blob: bytes) -> tuple[bytes, bytes]:
    """Return the decompressed data, and the bytes after it. Raises CompressionError."""
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
    """Import zstd on first use. Python includes it from 3.14 on."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from backports import zstd
    return zstd
