"""Parse the `Link` header of a response (RFC 8288): canonical URL and links to other pages.

References are relative to the page's URL, not to its `base`.
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
    """A link of the header.

    `reference` is its unresolved URL, `kind` the media type of its target.
    """

    reference: str
    relations: frozenset[str]
    kind: str = ""

    @property
    def is_canonical(self) -> bool:
        return "canonical" in self.relations

    @property
    # All other relations lead to styles, scripts or feeds.
    def leads_to_page(self) -> bool:
        """Whether it leads to another page of a series, or to another version of the page."""
        alternate = "alternate" in self.relations and self.kind in _HTML
        return alternate or not _SERIES.isdisjoint(self.relations)


def links_of(value: str) -> Iterator[HeaderLink]:
    """Yield the links of a header in order. Links of other resources (`anchor`) are left out."""
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
