"""Header values of answers: as they came, as one line to show, and as a reference to follow.

Rules
- A value is the text that its bytes are in UTF-8, or else in ISO 8859-1 (RFC 9110 section 5.5),
  with every character that the server sent: an invisible one may be part of a URL.
- What is shown or recorded is one printable line.
- Bytes of a `Location` that are no UTF-8 are percent-encoded one by one, as browsers do (the
  web-platform tests' "redirect-location-escape"): in another charset they name another URL.
"""

from __future__ import annotations

import re

from orbweaver.model.http_exchange import Response

_STRAY = re.compile("[\udc80-\udcff]")


def text_of(value: bytes) -> str:
    """Decode a value; every byte counts."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def one_line(text: str) -> str:
    """Replace what is not printable, line ends and terminal controls among it, by spaces."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


def location_of(response: Response) -> str | None:
    """Return where an answer leads, as a reference; None if it names nothing."""
    raw = response.octets.get("location")
    if raw is None:
        return response.headers.get("location") or None
    text = raw.decode("utf-8", "surrogateescape")
    return _STRAY.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", text)
