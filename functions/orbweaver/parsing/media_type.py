"""Parse Content-Type headers (WHATWG MIME Sniffing Standard, section 4.4).

The standard accepts more than RFC 9110, because many servers are careless. In some important points
it is stricter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from orbweaver.model.value import value_class

CHARS_MAX = 10_000
_SPACES = "\n\r\t "
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~A-Za-z0-9]+")
_QUOTABLE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# A quoted value: its content (a backslash may precede any character), and an optional closing
# quote.
_QUOTED = re.compile(r'"((?:[^"\\]++|\\.)*+\\?+)"?+', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@value_class
class MediaType:
    """A media type, such as `text/html`, and its parameters. All names are in lower case."""

    essence: str
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        return self.essence + "".join(
            f";{name}={_quoted_if_needed(value)}" for name, value in self.parameters.items()
        )


def parse(header: str) -> MediaType | None:
    """Parse a Content-Type header. Returns None if it contains no type."""
    return _parse(header[:CHARS_MAX].strip(_SPACES))


@lru_cache(maxsize=256)
def _parse(text: str) -> MediaType | None:
    essence, _, _ = text.partition(";")
    essence = essence.rstrip(_SPACES)
    kind, slash, subtype = essence.partition("/")
    if not slash or not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        return None
    return MediaType(
        essence=essence.lower(), parameters=_parameters(text[len(text.partition(";")[0]) :])
    )


def _parameters(text: str) -> dict[str, str]:
    """Parse `;name=value;…`. The first of equal names counts. Invalid parameters are skipped."""
    found: dict[str, str] = {}
    at, end = 0, len(text)
    while at < end:
        at += 1  # the semicolon
        while at < end and text[at] in _SPACES:
            at += 1
        start = at
        while at < end and text[at] not in ";=":
            at += 1
        name = text[start:at].lower()
        if at >= end or text[at] == ";":
            continue
        at += 1  # the equals sign
        quoted = _QUOTED.match(text, at)
        if quoted is not None:
            value = _ESCAPED.sub(r"\1", quoted[1])
            at = text.find(";", quoted.end())
            at = end if at < 0 else at
        else:
            start, at = at, text.find(";", at)
            at = end if at < 0 else at
            value = text[start:at].rstrip(_SPACES)
            if not value:
                continue
        if _TOKEN.fullmatch(name) and _QUOTABLE.fullmatch(value):
            found.setdefault(name, value)
    return found


def _quoted_if_needed(value: str) -> str:
    if _TOKEN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
