"""The `Link` header of an answer (RFC 8288): its canonical URL, and links to other pages.

A link of another context (`anchor`) says nothing of the page. Relations with other names lead to
styles, scripts or feeds. References are relative to the page's URL, and not to its `base`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CHARS_MAX = 65_536
_VALUE = re.compile(
    r"""[\s,]*+ <([^<>]*+)>
    ((?: \s*+;\s*+ [^\s=;,<>"]*+ (?: \s*+=\s*+ (?:"(?:[^"\\]|\\.)*+" | [^\s;,"]*+) )?+ )*+)""",
    re.VERBOSE,
)
_PARAMETER = re.compile(r"""([^\s=;,"]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]*+))""")
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})
_SERIES = frozenset({"next", "prev", "previous"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLink:
    """A link of the header: its reference as it is written, and its relations."""

    reference: str
    relations: frozenset[str]
    kind: str = ""

    @property
    def is_canonical(self) -> bool:
        """Whether it names the canonical URL of the page."""
        return "canonical" in self.relations

    @property
    def leads_to_page(self) -> bool:
        """Whether it leads to another page of a series, or to another form of this page."""
        alternate = "alternate" in self.relations and self.kind in _HTML
        return alternate or not _SERIES.isdisjoint(self.relations)


def links_of(value: str) -> Iterator[HeaderLink]:
    """Yield the links of a header about the page itself, in their order."""
    text, at = value[:CHARS_MAX], 0
    while (found := _VALUE.match(text, at)) is not None:
        at = found.end()
        parameters: dict[str, str] = {}
        for name, quoted, token in _PARAMETER.findall(found[2]):
            parameters.setdefault(name.lower(), quoted or token)
        if "anchor" not in parameters:
            relations = frozenset(parameters.get("rel", "").lower().split())
            kind = parameters.get("type", "").partition(";")[0].strip().lower()
            yield HeaderLink(reference=found[1].strip(), relations=relations, kind=kind)
