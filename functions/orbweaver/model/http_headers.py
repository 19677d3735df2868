"""Decode header values of responses."""

from __future__ import annotations

import re

from orbweaver.model.http_exchange import Response

_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


def text_of(value: bytes) -> str:
    try:
        # RFC 9110 section 5.5. All characters are kept, because an invisible one may be part of a
        # URL.
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def one_line(text: str) -> str:
    """Replace unprintable characters, including line ends and terminal controls, by spaces."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return text.strip()


def location_of(response: Response) -> str | None:
    """Return the redirect target of a response, a URL or relative reference. None: it has none."""
    raw = response.octets.get("location")
    if raw is None:
        return response.headers.get("location") or None
    # Bytes that are not UTF-8 are percent-encoded one by one, as in browsers (web-platform tests,
    # "redirect-location-escape"). In another charset they would mean another URL.
    text = raw.decode("utf-8", "surrogateescape")
    return _ESCAPED_BYTE.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", text)
