"""Find the anchors of a page, and links to anchors that it does not have.

Source: HTML Standard, 7.4.6.3 (indicated part of a document).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from urllib.parse import unquote

from orbweaver.parsing.html_scan import ATTRIBUTES, HIDING, compiled

_TAG = rf"<([a-zA-Z][^\x00-\x20/>]*+){ATTRIBUTES}"
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /"'](id|name|href)[\t\n\f\r ]*=[\t\n\f\r ]*("[^"]*"|'[^']*'|[^\t\n\f\r >]*)""",
    re.IGNORECASE,
)
_DIRECTIVE = ":~:"


def _first_tag(hiding: re.Match[bytes]) -> bytes:
    """Return the start tag of a script or the like without its content, or b"" for a comment."""
    hidden = hiding[0]
    return hidden.partition(b">")[0] + b">" if hidden[1:2].isalpha() else b""


class Anchors:
    """Anchors of a page (`id`, and `name` of `a`), and its links to its own anchors."""

    def __init__(self, html: bytes) -> None:
        self.ids: set[str] = set()
        self.references: dict[str, None] = {}
        for found in compiled(_TAG).finditer(compiled(HIDING).sub(_first_tag, html)):
            is_link = found[1].lower() in (b"a", b"area")
            for name, value in _ATTRIBUTE.findall(found[0]):
                text = unescape(value.strip(b"\"'").decode("utf-8", "replace"))
                match name.lower():
                    case b"id":
                        self.ids.add(text)
                    case b"name" if is_link:
                        self.ids.add(text)
                    case b"href" if is_link and text[:1] == "#":
                        self.references[text[1:]] = None

    def missing(self, fragments: Iterable[str]) -> list[str]:
        """Return the fragments that lead to no part of the page."""
        return [one for one in fragments if not self._leads(one)]

    def _leads(self, fragment: str) -> bool:
        name = fragment.partition(_DIRECTIVE)[0]
        # A script interprets routes like `#/users` and `#!users`.
        if not name or name.lower() == "top" or name[0] in "/!":
            return True
        return name in self.ids or unquote(name) in self.ids
