"""Cases 48 and 49: bodies that decode to enormous size, or that cannot be decoded."""

from __future__ import annotations

import gzip
import sys
import zlib
from functools import cache
from typing import TYPE_CHECKING

import brotli

from tests.sites.hostile.model import Asked, Row, answer, link

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
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


def _bomb(coding: str, child: str) -> Script:
    def say(asked: Asked) -> Iterable[Step]:
        body = _packed(coding, _start(child))
        yield answer(body, "Content-Type: text/html", f"Content-Encoding: {coding}")

    return say


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
        Row(
            case=48,
            path=f"/bombs/{_name(coding)}",
            serves=f"64 MiB in {coding}",
            say=_bomb(coding, _child(coding)),
            reason="truncated",
            children=(_child(coding),),
        )
        for coding in BOMBS
    ),
    Row(
        case=48,
        path="/bombs/members",
        serves=f"{MEMBERS:,} empty gzip members",
        say=_coded("gzip", lambda: gzip.compress(b"") * MEMBERS),
        outcome="failed",
        reason="encoding",
    ),
    *(
        Row(
            case=49,
            path=f"/spoilt/{name}",
            serves=f"a body that cannot be decoded: {name}",
            say=_coded(coding, make),
            outcome="failed",
            reason="encoding",
        )
        for name, (coding, make) in SPOILT.items()
    ),
    Row(
        case=49,
        path="/spoilt/cut",
        serves="half of a gzip stream, as if it were all",
        say=_coded("gzip", lambda: gzip.compress(LONG)[:-40]),
        reason="truncated",
        children=("/spoilt/seen-in-part",),
    ),
    *(
        Row(
            case=49,
            path=f"/spoilt/{coding}",
            serves=f"a page whose coding is none: {coding}",
            say=_coded(coding, lambda: PAGE),
            title="A coded page",
        )
        for coding in ("none", "utf-8", "lzma")
    ),
    Row(
        case=49,
        path="/spoilt/raw-deflate",
        serves="deflate without the frame that the coding has",
        say=_coded("deflate", lambda: _raw_deflate(PAGE + link("/spoilt/seen-in-deflate"))),
        title="A coded page",
        children=("/spoilt/seen-in-deflate",),
    ),
)
