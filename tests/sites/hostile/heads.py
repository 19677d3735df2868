"""Cases 38 to 40: non-HTTP answers, oversized heads, invalid bytes in heads."""

from __future__ import annotations

from tests.sites.hostile.model import Row, answer, head, page
from tests.sites.steps import Act

OK = b"HTTP/1.1 200 OK\r\n"
HTML = "Content-Type: text/html"
GARBAGE = {
    "http-0.9": b"<html>no head at all</html>",
    "icy": b"ICY 200 OK\r\n\r\nhello",
    "five-digits": b"HTTP/1.1 99999 OK\r\n\r\n",
    "no-status": b"HTTP/1.1 OK\r\n\r\n",
    "tls": b"\x15\x03\x01\x00\x02\x02\x16",
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "zeros": bytes(1_000),
}
FORBIDDEN = {
    "nul": OK + b"X: a\0b\r\n\r\n",
    "cr": OK + b"X: a\rb\r\n\r\n",
    "name": OK + b"X\x01: a\r\n\r\n",
    "no-colon": OK + b"no colon\r\n\r\n",
}
HUGE = {
    "70-kb": (head(HTML, "X: " + "v" * 70_000),),
    "name-40-kb": (head(HTML, "N" * 40_000 + ": v"),),
    "200-lines": (head(HTML, *["X: v"] * 200),),
    "reason-40-kb": (head(HTML, status="200 " + "r" * 40_000),),
    "endless": (OK + b"X: ", *[b"v" * 60_000] * 100),
}

ROWS = (
    *(
        Row(38, f"/garbage/{name}", f"in place of HTTP: {name}", (said, Act.CLOSE),
            "failed: tls" if name == "tls" else "failed: protocol")
        for name, said in GARBAGE.items()
    ),
    Row(38, "/garbage/1000-hints", "1,000 early hints, then a page",
        (*[b"HTTP/1.1 103 Early Hints\r\nLink: </garbage/ghost>\r\n\r\n" * 100] * 10,
         answer(b"<title>/garbage/1000-hints</title>", HTML)),
        title="/garbage/1000-hints", ghosts=("/garbage/ghost",)),
    *(
        Row(39, f"/heads/{name}", f"a head too large: {name}", (*said, Act.CLOSE),
            "failed: headers_too_large")
        for name, said in HUGE.items()
    ),
    *(
        Row(40, f"/bytes/{name}", f"a head with what it may not have: {name}", (said, Act.CLOSE),
            "failed: protocol")
        for name, said in FORBIDDEN.items()
    ),
    Row(40, "/bytes/8-bit", "8-bit bytes in header values",
        page("/bytes/8-bit", [], "ETag: \xe9\xff\x80", "X-Note: \xc3\xa9"), title="/bytes/8-bit"),
)  # fmt: skip
