"""Read the links of a page: its elements, and the `Link` and `Refresh` headers.

Number and total length of links are limited. References of the `Link` header (RFC 8288) are
relative to the page's URL, not to its `base`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.url import REFERENCE_CHARS_MAX, SPACES, canonicalize, resolver
from orbweaver.model.value import value_class
from orbweaver.parsing import charset as charsets

# Limit for all links of a page together. A short reference with a long base is a long URL, and each
# link is stored and sent several times. Links beyond the limit are counted.
LINKS_CHARS_MAX = 1_000_000
CHARS_MAX = 65_536
_VALUE = re.compile(
    r"""[\s,]*+ <([^<>]*+)>
    ((?: \s*+;\s*+ [^\s=;,<>"]*+ (?: \s*+=\s*+ (?:"(?:[^"\\]|\\.)*+" | [^\s;,"]*+) )?+ )*+)""",
    re.VERBOSE,
)
_PARAMETER = re.compile(r"""([^\s=;,"]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]*+))""")
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})
# Relations for the pages of a series (HTML Standard, 4.6.7.17), with an old synonym that is still
# in use.
SERIES = frozenset({"next", "prev", "previous"})
# A refresh within this time is a redirect: people cannot read the page in this time, and sites that
# cannot set a status redirect in this way. A refresh after a longer time ("this page has moved") is
# a link.
REFRESH_S_MAX = 10
_CHARS_MAX = 10_000
_SECONDS_CHARS_MAX = 9

# HTML Standard, "shared declarative refresh steps": a number of seconds, then an optional URL with
# optional `url=` and quotes.
_REFRESH = re.compile(
    r"""[\t\n\f\r ]*+ (?:([0-9]++)|(?=\.)) [0-9.]*+
    (?: \Z | (?=[;,\t\n\f\r ]) [\t\n\f\r ]*+ [;,]?+ [\t\n\f\r ]*+ (.*) \Z )""",
    re.VERBOSE | re.DOTALL,
)
_URL = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Links:
    """Collects the canonical links of a page, and counts references that give no link.

    `cut` counts references over a limit, `foreign` references with another scheme than http and
    https.
    """

    base: str | None
    charset: str
    links_max: int
    tracking: frozenset[str]
    found: dict[str, None] = field(default_factory=dict)
    cut: int = 0
    foreign: int = 0
    invalid: int = 0
    # URL of each reference without its fragment, None if it has none. Filled only if it is a dict.
    urls: dict[str, str | None] | None = None

    def adding(self, references: Iterable[str]) -> Generator[None, None, None]:
        """Add the references of a page.

        Yields after each slice of them, so that other work can run.
        """
        resolve = resolver(self.base, tracking=self.tracking)
        # Equal references give equal links, so each is processed once.
        for number, words in enumerate(_without_fragments(references)):
            if number and number % SLICE_URLS == 0:
                yield
            if ":" in words and is_foreign(words.strip(SPACES)):
                self.foreign += 1
            elif len(self.found) + self.invalid >= self.links_max:
                self.cut += 1
            else:
                try:
                    reference = words if words.isascii() else self._encoded(words)
                    url = resolve(reference)
                    self.found[url] = None
                    if self.urls is not None:
                        self.urls[words] = url
                except ValueError:
                    self.invalid += 1

    def url_of(self, words: str) -> str | None:
        """Return the URL of a reference without fragment, which need not be a crawled link."""
        urls = self.urls if self.urls is not None else {}
        if words not in urls:
            try:
                reference = words if words.isascii() else self._encoded(words)
                urls[words] = canonicalize(reference, self.base, tracking=self.tracking)
            except ValueError:
                urls[words] = None
        return urls[words]

    def _encoded(self, words: str) -> str:
        """Percent-encode a reference's query. Raises ValueError if the reference is too long."""
        if len(words) > REFERENCE_CHARS_MAX and len(words.strip(SPACES)) > REFERENCE_CHARS_MAX:
            raise ValueError("the reference is too long")
        return charsets.encode_query(words, self.charset)

    def kept(self) -> tuple[str, ...]:
        """Return the links within `LINKS_CHARS_MAX`, and count the remaining links as cut."""
        links = tuple(self.found)
        if sum(map(len, links)) > LINKS_CHARS_MAX:
            sums = accumulate(map(len, links))
            links = tuple(
                link for link, chars in zip(links, sums, strict=True) if chars <= LINKS_CHARS_MAX
            )
            self.cut += len(self.found) - len(links)
        return links


def _without_fragments(references: Iterable[str]) -> dict[str, None]:
    """Remove fragments and duplicates. A page can have thousands of links to its own parts."""
    return {
        # Spaces before a fragment are part of the path, so a reference with such spaces is not
        # changed.
        (reference if path[-1:] == " " else path): None
        for reference in references
        for path in (reference.partition("#")[0],)
    }


def is_foreign(reference: str) -> bool:
    scheme = reference.partition(":")[0].lower()
    return (
        scheme.isascii()
        and scheme.isalnum()
        and scheme[0].isalpha()
        and scheme not in {"http", "https"}
    )


@value_class
class HeaderLink:
    """A link of the header.

    `reference` is its unresolved URL, `kind` the media type and `lang` the language of its target.
    """

    reference: str
    relations: frozenset[str]
    kind: str = ""
    lang: str | None = None

    @property
    def is_canonical(self) -> bool:
        return "canonical" in self.relations

    @property
    # All other relations lead to styles, scripts or feeds.
    def leads_to_page(self) -> bool:
        """Whether it leads to another page of a series, or to another version of the page."""
        alternate = "alternate" in self.relations and self.kind in _HTML
        return alternate or not SERIES.isdisjoint(self.relations)


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
            yield HeaderLink(
                reference=found[1].strip(),
                relations=relations,
                kind=kind,
                lang=parameters.get("hreflang"),
            )


@value_class
class Refresh:
    """A refresh after `delay_s` seconds. Without `reference`, the page reloads itself."""

    delay_s: int
    reference: str | None = None

    @property
    def redirects(self) -> bool:
        """Whether the refresh is a redirect. Otherwise it is a link."""
        return self.delay_s <= REFRESH_S_MAX


def refresh_of(value: str) -> Refresh | None:
    """Parse a Refresh header or element. Returns None if browsers would ignore it."""
    found = _REFRESH.match(value[:_CHARS_MAX])
    if found is None:
        return None
    delay_s = int((found[1] or "0")[:_SECONDS_CHARS_MAX])
    reference: str = found[2] or ""
    named = _URL.match(reference)
    if named is not None:
        reference = reference[named.end() :]
    if reference[:1] in {"'", '"'}:
        reference = reference[1:].partition(reference[0])[0]
    return Refresh(delay_s=delay_s, reference=reference or None)
