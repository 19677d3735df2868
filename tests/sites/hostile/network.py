"""Cases 32 to 37, 51 and 52: connections that break or hang, bodies without a right length."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from tests.sites.hostile.model import (
    ATTEMPTS,
    CLOSING,
    MAIN,
    Asked,
    Place,
    Row,
    answer,
    chunked,
    head,
    link,
    page,
    then,
)
from tests.sites.steps import Act

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.sites.hostile.model import Script
    from tests.sites.steps import Step

HTML = "Content-Type: text/html"
DRIP_S = 0.25
KIB64 = bytes(65_536).replace(b"\0", b"x")
# Far beyond any body limit, but finite if the reader does not stop.
ENDLESS = 2_000
EXTENSION_KIB64 = 32
SILENT = 12  # More failures than a crawl allows before it blocks a host.


def _drip(start: bytes, byte: bytes) -> Script:
    drops: tuple[Step, ...] = (byte, DRIP_S) * 200
    return (start, *drops, Act.CLOSE)


def _endless(asked: Asked) -> Iterable[Step]:
    yield head(HTML)
    yield link("/endless/seen-without-length")
    yield from repeat(KIB64, ENDLESS)
    yield Act.CLOSE


def _endless_chunks(asked: Asked) -> Iterable[Step]:
    yield chunked(link("/endless/seen-in-chunks"))
    yield from repeat(b"10000\r\n" + KIB64 + b"\r\n", ENDLESS)
    yield Act.CLOSE


def _long_extension(asked: Asked) -> Iterable[Step]:
    yield chunked() + b"5;"
    yield from repeat(KIB64, EXTENSION_KIB64)
    yield b"\r\nhello\r\n0\r\n\r\n"


LENGTHS = {
    "negative": ("Content-Length: -3",),
    "signed": ("Content-Length: +5",),
    "list": ("Content-Length: 5, 6",),
    "hexadecimal": ("Content-Length: 0x5",),
    "huge": ("Content-Length: " + "9" * 31,),
    "repeated": ("Content-Length: 5", "Content-Length: 6"),
    "with-chunked": ("Content-Length: 5", "Transfer-Encoding: chunked"),
}
# Unusual lengths with a clear end of the body. Surplus is ignored.
WHOLE = {
    "listed-twice": (head(HTML, "Content-Length: 5, 5") + b"hello",),
    "said-twice": (head(HTML, "Content-Length: 5", "Content-Length: 5") + b"hello",),
    "beside-chunks": (chunked(b"hello", lines=["Content-Length: 9"]) + b"0\r\n\r\n",),
    "too-small": (head(HTML, "Content-Length: 5") + b"hello, <a href=/lengths/ghost>",),
    "too-small-later": (
        head(HTML, "Content-Length: 5") + b"hello",
        0.02,
        b"<a href=/lengths/ghost>",
    ),
}
CHUNKS = {
    "no-number": ("protocol", 1, (b"zz\r\nhello\r\n0\r\n\r\n",)),
    "negative": ("protocol", 1, (b"-5\r\nhello\r\n0\r\n\r\n",)),
    "size-too-small": ("protocol", 1, (b"5\r\nhello, world\r\n0\r\n\r\n",)),
    "size-huge": ("protocol", 1, (b"f" * 40 + b"\r\nhello",)),
    "trailers": (
        "headers_too_large",
        1,
        (b"5\r\nhello\r\n0\r\n", *[b"A: b\r\n" * 500] * 40, b"\r\n"),
    ),
}

ROWS = (
    Row(
        case=32,
        path="http://127.0.0.1:{refusing}/",
        serves="a port where nobody listens",
        outcome="failed",
        reason="connect",
        place="edge",
    ),
    Row(
        case=32,
        path="/",
        serves="a reset in place of an answer",
        say=(Act.RESET,),
        place="resetting",
        outcome="failed",
        reason="disconnected",
        asks=ATTEMPTS,
    ),
    *(
        Row(
            case=32,
            path=f"/{number}",
            serves="nothing, until the whole host is left alone",
            say=CLOSING,
            place="silent",
            outcome="skipped",
            reason="cancelled",
            asks=None,
        )
        for number in range(SILENT)
    ),
    Row(
        case=33,
        path="http://127.0.0.1:{hole}/",
        serves="a port that swallows requests to connect",
        outcome="failed",
        reason="timeout",
        place="edge",
    ),
    Row(
        case=34,
        path="/slow/head",
        place="drip-head",
        serves="a head that drips",
        say=_drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        outcome="failed",
        reason="timeout",
        asks=ATTEMPTS,
    ),
    Row(
        case=34,
        path="/slow/body",
        place="drip-body",
        serves="a body that drips",
        say=_drip(head(HTML, "Content-Length: 1000"), b"x"),
        outcome="failed",
        reason="timeout",
        asks=ATTEMPTS,
    ),
    Row(
        case=35,
        path="/endless/chunks",
        serves="chunks without end",
        say=_endless_chunks,
        reason="truncated",
        children=("/endless/seen-in-chunks",),
    ),
    Row(
        case=35,
        path="/endless/no-length",
        serves="a body without end",
        say=_endless,
        reason="truncated",
        children=("/endless/seen-without-length",),
    ),
    *(
        Row(
            case=36,
            path=f"/lengths/{name}",
            serves=f"a body of 5 bytes with {' and '.join(lines)[:60]}",
            say=(head(HTML, *lines) + b"hello", Act.CLOSE),
            outcome="failed",
            reason="protocol",
        )
        for name, lines in LENGTHS.items()
    ),
    *(
        Row(
            case=36,
            path=f"/lengths/{name}",
            # Later surplus could follow the next request (docs/http.md), so there is none.
            place="late" if name == "too-small-later" else MAIN,
            serves=f"a body of 5 bytes whose length is odd: {name}",
            say=(*said, Act.CLOSE),
            ghosts=("/lengths/ghost",),
        )
        for name, said in WHOLE.items()
    ),
    Row(
        case=36,
        path="/lengths/too-big",
        place="short",
        serves="5 of 30 bytes",
        say=(head(HTML, "Content-Length: 30") + b"hello", Act.CLOSE),
        outcome="failed",
        reason="disconnected",
        asks=ATTEMPTS,
    ),
    *(
        Row(
            case=37,
            path=f"/chunks/{name}",
            serves=f"chunks that are wrong: {name}",
            say=(chunked(), *said, Act.CLOSE),
            outcome="failed",
            reason=reason,
            asks=asks,
        )
        for name, (reason, asks, said) in CHUNKS.items()
    ),
    Row(
        case=37,
        path="/chunks/no-end",
        serves="chunks without their end",
        say=(chunked(b"hello"), Act.CLOSE),
        place="unended",
        outcome="failed",
        reason="disconnected",
        asks=ATTEMPTS,
    ),
    Row(
        case=37,
        path="/chunks/extension",
        serves="a chunk extension of 2 MiB",
        say=_long_extension,
        outcome="failed",
        reason="protocol",
    ),
    Row(
        case=51,
        path="/broken/recovers",
        serves="a body broken off, and all of it the second time",
        say=then(
            (head(HTML, "Content-Length: 1000") + link("/broken/ghost"), Act.CLOSE),
            page("/broken/recovers", ["/broken/behind"]),
        ),
        asks=2,
        children=("/broken/behind",),
        title="/broken/recovers",
    ),
    Row(
        case=52,
        path="/strays/double",
        serves="its answer, and then one to nobody",
        # The surplus is sent at once, because later surplus could follow the next request
        # (docs/http.md).
        say=(
            answer(b"<title>/strays/double</title>", HTML)
            + answer(b"<title>to nobody</title>" + link("/strays/ghost"), HTML),
        ),
        title="/strays/double",
        ghosts=("/strays/ghost",),
    ),
    *(
        Row(
            case=52,
            path=f"/strays/after-{number}",
            serves="its own title",
            title=f"/strays/after-{number}",
        )
        for number in range(8)
    ),
)

PLACES = (
    Place(name=MAIN),
    # Separate hosts, because five unanswered requests in a row block a whole host.
    Place(name="resetting", robots=(answer(b"", "Connection: close"),), start=False),
    Place(name="drip-head"),
    Place(name="drip-body"),
    Place(name="short"),
    Place(name="unended"),
    Place(name="late"),
    Place(name="silent", crawl="patient"),
    # Start of a crawl that ignores robots.txt.
    Place(name="edge", crawl="bold"),
    Place(name="refusing", crawl="bold", kind="deaf", start=False, seed=False),
    Place(name="hole", crawl="bold", kind="hole", start=False, seed=False),
)
