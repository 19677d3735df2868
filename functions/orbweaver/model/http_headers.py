"""Decode header values of responses: as received, as one printable line, and as a redirect target.

Rules
- A value is decoded as UTF-8, otherwise as ISO 8859-1 (RFC 9110 section 5.5), with all characters,
  because an invisible one may be part of a URL.
- Shown or recorded values are one printable line.
- Bytes of a `Location` that are not UTF-8 are percent-encoded individually, as in browsers (the
  web-platform tests' "redirect-location-escape"). In another charset they would mean another URL.
"""

from __future__ import annotations

import re

from orbweaver.model.http_exchange import Response

_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


def text_of(value: bytes) -> str:
    """Decode a value without losing bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def one_line(text: str) -> str:
    """Replace unprintable characters, including line ends and terminal controls, by spaces."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


def location_of(response: Response) -> str | None:
    """Return the redirect target of a response as a reference, or None."""
    raw = response.octets.get("location")
    if raw is None:
        return response.headers.get("location") or None
    text = raw.decode("utf-8", "surrogateescape")
    return _ESCAPED_BYTE.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", text)
