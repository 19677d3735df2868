"""Cases 48 and 49: bodies that decode to enormous size, or that cannot be decoded."""

from __future__ import annotations

import gzip
import sys
import zlib
from functools import cache

import brotli

from tests.sites.hostile.model import Asked, Row, answer, link

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from collections.abc import Callable, Iterable

from tests.sites.hostile.model import Script
from tests.sites.steps import Step

MIB = 1024 * 1024
BOMB_MIB = 64
BOMBS = ("gzip", "deflate", "br", "zstd", "gzip, gzip, gzip")
MEMBERS = 50_000


@cache
def _packed(coding: str, start: bytes) -> bytes:
    """Compress a page of 64 MiB that starts with this text and continues with spaces."""
    spaces = b" " * MIB
    if ", " in coding:
        inner, _, outer = coding.rpartition(", ")
        return _single(outer, [_packed(inner, start)])
    return _single(coding, [start, *[spaces] * BOMB_MIB])


def _single(coding: str, parts: Iterable[bytes]) -> bytes:
    if coding == "br":
        packer = brotli.Compressor(quality=5)
        return b"".join(packer.process(part) for part in parts) + bytes(packer.finish())
    if coding == "zstd":
        frame = zstd.ZstdCompressor()
        return b"".join(frame.compress(part) for part in parts) + frame.flush()
    stream = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    return b"".join(stream.compress(part) for part in parts) + stream.flush()


def warm() -> None:
    """Compress all bombs in advance, because it blocks answers for a second."""
    for coding in BOMBS:
        _packed(coding, _start(_child(coding)))


def _child(coding: str) -> str:
    return f"/bombs/seen-in-{_name(coding)}"


def _start(child: str) -> bytes:
    return b"<!doctype html>" + link(child)


def _bomb(coding: str) -> Script:
    return _coded(coding, lambda: _packed(coding, _start(_child(coding))))


def _coded(coding: str, make: Callable[[], bytes]) -> Script:
    def say(asked: Asked) -> Iterable[Step]:
        yield answer(make(), "Content-Type: text/html", f"Content-Encoding: {coding}")

    return say


def _raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(body) + stream.flush()


def _name(coding: str) -> str:
    return coding.replace(", ", "-")


PAGE = b"<!doctype html><title>A coded page</title>"
# Long and without repeats, so that half of it is still long.
LONG = PAGE + link("/spoilt/seen-in-part") + bytes(range(32, 60)) + b"<p>%d" * 3_000
SPOILT: dict[str, tuple[str, Callable[[], bytes]]] = {
    "plain-as-gzip": ("gzip", lambda: PAGE),
    "plain-as-br": ("br", lambda: PAGE),
    "bad-checksum": ("gzip", lambda: gzip.compress(PAGE)[:-8] + bytes(8)),
    "four-deep": ("gzip, gzip, gzip, gzip", lambda: PAGE),
}

ROWS = (
    *(
        Row(48, f"/bombs/{_name(coding)}", f"64 MiB in {coding}", _bomb(coding),
            "fetched: truncated", children=(_child(coding),))
        for coding in BOMBS
    ),
    Row(48, "/bombs/members", f"{MEMBERS:,} empty gzip members",
        _coded("gzip", lambda: gzip.compress(b"") * MEMBERS), "failed: encoding"),
    *(
        Row(49, f"/spoilt/{name}", f"a body that cannot be decoded: {name}", _coded(coding, make),
            "failed: encoding")
        for name, (coding, make) in SPOILT.items()
    ),
    Row(49, "/spoilt/cut", "half of a gzip stream, as if it were all",
        _coded("gzip", lambda: gzip.compress(LONG)[:-40]), "fetched: truncated",
        children=("/spoilt/seen-in-part",)),
    *(
        Row(49, f"/spoilt/{coding}", f"a page whose coding is none: {coding}",
            _coded(coding, lambda: PAGE), title="A coded page")
        for coding in ("none", "utf-8", "lzma")
    ),
    Row(49, "/spoilt/raw-deflate", "deflate without the frame that the coding has",
        _coded("deflate", lambda: _raw_deflate(PAGE + link("/spoilt/seen-in-deflate"))),
        title="A coded page", children=("/spoilt/seen-in-deflate",)),
)  # fmt: skip
