"""Cases 32 to 37, 51 and 52: connections that break or hang, bodies without a right length."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from tests.sites.hostile.model import (
    ATTEMPTS,
    MAIN,
    Asked,
    Place,
    Row,
    Script,
    answer,
    chunked,
    head,
    link,
    page,
    then,
)
from tests.sites.steps import Act, Step

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
    "no-number": ("protocol", (b"zz\r\nhello\r\n0\r\n\r\n",)),
    "negative": ("protocol", (b"-5\r\nhello\r\n0\r\n\r\n",)),
    "size-too-small": ("protocol", (b"5\r\nhello, world\r\n0\r\n\r\n",)),
    "size-huge": ("protocol", (b"f" * 40 + b"\r\nhello",)),
    "trailers": ("headers_too_large",
                 (b"5\r\nhello\r\n0\r\n", *[b"A: b\r\n" * 500] * 40, b"\r\n")),
}  # fmt: skip

ROWS = (
    Row(32, "http://127.0.0.1:{refusing}/", "a port where nobody listens", None,
        "failed: connect", place="edge"),
    Row(32, "/", "a reset in place of an answer", (Act.RESET,), "failed: disconnected",
        place="resetting", asks=ATTEMPTS),
    *(
        Row(32, f"/{number}", "nothing, until the whole host is left alone", (Act.CLOSE,),
            "skipped: cancelled", place="silent", asks=None)
        for number in range(SILENT)
    ),
    Row(33, "http://127.0.0.1:{hole}/", "a port that swallows requests to connect", None,
        "failed: timeout", place="edge"),
    Row(34, "/slow/head", "a head that drips", _drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        "failed: timeout", place="drip-head", asks=ATTEMPTS),
    Row(34, "/slow/body", "a body that drips", _drip(head(HTML, "Content-Length: 1000"), b"x"),
        "failed: timeout", place="drip-body", asks=ATTEMPTS),
    Row(35, "/endless/chunks", "chunks without end", _endless_chunks, "fetched: truncated",
        children=("/endless/seen-in-chunks",)),
    Row(35, "/endless/no-length", "a body without end", _endless, "fetched: truncated",
        children=("/endless/seen-without-length",)),
    *(
        Row(36, f"/lengths/{name}", f"a body of 5 bytes with {' and '.join(lines)[:60]}",
            (head(HTML, *lines) + b"hello", Act.CLOSE), "failed: protocol")
        for name, lines in LENGTHS.items()
    ),
    *(
        # Later surplus could follow the next request (docs/http.md), so there is none.
        Row(36, f"/lengths/{name}", f"a body of 5 bytes whose length is odd: {name}",
            (*said, Act.CLOSE), place="late" if name == "too-small-later" else MAIN,
            ghosts=("/lengths/ghost",))
        for name, said in WHOLE.items()
    ),
    Row(36, "/lengths/too-big", "5 of 30 bytes",
        (head(HTML, "Content-Length: 30") + b"hello", Act.CLOSE), "failed: disconnected",
        place="short", asks=ATTEMPTS),
    *(
        Row(37, f"/chunks/{name}", f"chunks that are wrong: {name}",
            (chunked(), *said, Act.CLOSE), f"failed: {reason}")
        for name, (reason, said) in CHUNKS.items()
    ),
    Row(37, "/chunks/no-end", "chunks without their end", (chunked(b"hello"), Act.CLOSE),
        "failed: disconnected", place="unended", asks=ATTEMPTS),
    Row(37, "/chunks/extension", "a chunk extension of 2 MiB", _long_extension,
        "failed: protocol"),
    Row(51, "/broken/recovers", "a body broken off, and all of it the second time",
        then((head(HTML, "Content-Length: 1000") + link("/broken/ghost"), Act.CLOSE),
             page("/broken/recovers", ["/broken/behind"])),
        asks=2, children=("/broken/behind",), title="/broken/recovers"),
    # The surplus is sent at once, because later surplus could follow the next request
    # (docs/http.md).
    Row(52, "/strays/double", "its answer, and then one to nobody",
        (answer(b"<title>/strays/double</title>", HTML)
         + answer(b"<title>to nobody</title>" + link("/strays/ghost"), HTML),),
        title="/strays/double", ghosts=("/strays/ghost",)),
    *(
        Row(52, f"/strays/after-{number}", "its own title", title=f"/strays/after-{number}")
        for number in range(8)
    ),
)  # fmt: skip

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
