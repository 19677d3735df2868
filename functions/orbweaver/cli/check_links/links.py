"""Links that a check has found, the pages that contain them, and the anchors of pages.

Source: HTML Standard, 7.4.6.3 (indicated part of a document).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import unquote

from orbweaver.model.cuts import parts_of
from orbweaver.parsing.html_scan import ATTRIBUTES, HIDING, compiled
from orbweaver.parsing.link_rows import INVALID, TOO_LONG

_TAG = rf"<([a-zA-Z][^\x00-\x20/>]*+){ATTRIBUTES}"
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /"'](id|name|href)[\t\n\f\r ]*=[\t\n\f\r ]*("[^"]*"|'[^']*'|[^\t\n\f\r >]*)""",
    re.IGNORECASE,
)
_DIRECTIVE = ":~:"
# A form can do something when it is sent. An entry of a sitemap and a redirect are on no page.
UNCHECKED = frozenset({"form", "sitemap", "redirect"})
# Reasons for links that were not read: a limit of a page, and content that comes from scripts.
CUT, SCRIPTED = "links_cut", "needs_rendering"
# Reason for a start URL that is fine and has no links.
NO_PAGE = "start_url_is_no_page"
# Decisions of a crawl that leaves out a URL because of a limit.
LEFT_OUT = frozenset({"waiting", "budget", "dollars", "closed", "depth", "cut"})


class Link(NamedTuple):
    """A target URL, with the fragment behind it."""

    target: str
    fragment: str | None = None

    def __str__(self) -> str:
        return self.target if self.fragment is None else f"{self.target}#{self.fragment}"


@dataclass(slots=True)
class LinkIndex:
    """Links with the names of their pages, in order. `invalid` are references without a URL."""

    pages: int = 0
    # Numbers of links and pages that were not read, by reason.
    unread: Counter[str] = field(default_factory=Counter)
    found: defaultdict[Link, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    invalid: defaultdict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    # Targets that a limit of the crawl leaves out.
    left_out: set[str] = field(default_factory=set)
    excludes: Callable[[str], bool] = field(default=lambda _: False)
    # Returns one URL for all spellings of a target.
    one_spelling: Callable[[str], str] = field(default=str)

    def add_page(self, cut: str | None, *, scripted: bool = False) -> None:
        """Count a page. `cut` is the column of its record, `scripted`: scripts fill the page."""
        self.pages += 1
        self.unread[CUT] += dict(parts_of(cut)).get("link_rows", 0)
        self.unread[SCRIPTED] += scripted

    def add(self, page: str, row: Mapping[str, Any]) -> None:
        """Add a row of the table `links`."""
        target, kind, decision = row["target_url"], row["kind"], row["decision"]
        link = Link(target, row.get("fragment"))
        if kind in UNCHECKED or self.excludes(str(link)):
            return
        if decision == TOO_LONG:
            self.unread[CUT] += 1
            return
        if decision == INVALID:
            self.invalid[target][page] = None
            return
        if decision in LEFT_OUT:
            self.left_out.add(target)
        self.found[Link(self.one_spelling(target), link.fragment)][page] = None

    def keep(self, is_kept: Callable[[str], bool]) -> None:
        """Remove the links to other targets."""
        for link in [link for link in self.found if not is_kept(link.target)]:
            del self.found[link]

    def targets(self) -> list[str]:
        return [*dict.fromkeys(link.target for link in self.found)]


# --- anchors --------------------------------------------------------------------------------------


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
