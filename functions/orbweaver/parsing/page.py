"""Extract the content of a page: links, robots directives, title and other metadata."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from orbweaver.model.cuts import Cuts, chars_beyond, counted
from orbweaver.model.slices import unpaused
from orbweaver.model.url import TRACKING_PARAMETERS, is_base, resolved
from orbweaver.model.value import value_class
from orbweaver.parsing import charset as charsets
from orbweaver.parsing.client_rendering import needs_rendering
from orbweaver.parsing.headings import count_h1
from orbweaver.parsing.html_scan import is_small, outline_of, outline_with_rows, text_of
from orbweaver.parsing.link_rows import FOLLOWED, KINDS, NOFOLLOW, SELECTOR, LinkCollector, LinkRows
from orbweaver.parsing.links import SERIES, Links, Refresh, links_of, refresh_of
from orbweaver.parsing.markup import as_html
from orbweaver.parsing.robots_tag import EVERYBODY, PRODUCT, SEPARATORS, wishes_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

LINKS_MAX = 5_000
TEXT_CHARS_MAX = 500
# Maximum number of links that are kept as examples of links withdrawn by `nofollow`.
WITHDRAWN_SHOWN = 5
LANGUAGE_CHARS_MAX = 35  # minimum size of a buffer for a language tag, as RFC 5646 recommends

# One query visits the tree once. A query that names the elements with `href` would take twice the
# time, because each node is tested against each selector.
_QUERY = "[href], meta[content], title"
_FRAMES_QUERY = f"{_QUERY}, frame[src]"
_ROWS_QUERY = f"{_QUERY}, {SELECTOR}"
_LINKING = frozenset({"a", "area"})
_XLINK = "xlink:href"
# Maximum number of ancestors of a title that are searched for an `svg` element.
_TITLE_PARENTS = 64
NOFOLLOW_WISHES = {"nofollow", "none"}
NOINDEX_WISHES = {"noindex", "none"}

_Attributes: TypeAlias = dict[str, str | None]


@value_class
class Page:
    """A parsed page. `links_*` count references that did not become links, by reason.

    Links are targets of `a` and `area`, and of `link` to the next or previous page of a series.
    They are canonical, in document order, without duplicates. References are relative to the first
    `base` with `href`, if that is http or https (HTML Standard, 4.2.3). Unless the crawl ignores
    nofollow, links with it are left out, and all links of a page or X-Robots-Tag header with it.
    """

    title: str | None
    description: str | None
    language: str | None
    canonical: str | None
    # Number of `h1` elements (parsing/headings.py).
    h1: int | None = None
    charset: str
    nofollow: bool
    noindex: bool
    links: tuple[str, ...]
    links_cut: int
    links_nofollow: int
    links_foreign: int
    links_invalid: int
    # Target of a redirect by meta refresh or Refresh header (parsing/links.py).
    refresh: str | None = None
    # Examples of links withdrawn by `nofollow`.
    withdrawn: tuple[str, ...] = ()
    # Base URL of its references, if it is http or https.
    base: str | None = None
    # True if the page is empty until its scripts run (parsing/client_rendering.py).
    needs_rendering: bool = False
    # Numbers of truncated or omitted content, except the links that `links_*` count.
    cut: Cuts = ()
    # All links with their elements, if the crawl stores them.
    rows: LinkRows | None = None
    # The page in UTF-8. Empty if a separate process parsed the page (worker/page_reading.py).
    html: bytes = field(repr=False, compare=False)
    whole: LexborHTMLParser | None = field(default=None, repr=False, compare=False)

    @property
    def tree(self) -> LexborHTMLParser:
        """The whole tree. Some pages make its time and memory quadratic (parsing/html_scan.py)."""
        return _tree(self.html) if self.whole is None else self.whole

    @property
    def text(self) -> str:
        return text_of(self.html)


@value_class
class Prepared:
    """A page in UTF-8, and its outline if it is too large for a tree."""

    charset: str
    html: bytes
    outline: bytes | None
    # Number of tags whose attributes were truncated in the outline.
    tags_cut: int = 0


@dataclass(slots=True)
class _TreeValues:
    """Raw values from the tree. `addressees` are the names of agents whose robots directives count.

    `obeys`: whether nofollow is obeyed.
    """

    addressees: frozenset[str]
    obeys: bool
    language: str = ""
    title: str | None = None
    base: str | None = None
    description: str | None = None
    canonical: str | None = None
    refresh: Refresh | None = None
    wishes: set[str] = field(default_factory=set)
    references: list[str] = field(default_factory=list)
    # References of links with nofollow, if nofollow is obeyed.
    withdrawn: list[str] = field(default_factory=list)
    rows: LinkCollector | None = None

    @property
    def links(self) -> int:
        return len(self.references) + len(self.withdrawn)


def without_content() -> Page:
    return Page(
        title=None,
        description=None,
        language=None,
        canonical=None,
        charset=charsets.UTF_8,
        nofollow=False,
        noindex=False,
        links=(),
        links_cut=0,
        links_nofollow=0,
        links_foreign=0,
        links_invalid=0,
        cut=counted({"unread": 1}),
        html=b"",
    )


def as_utf8(body: bytes, content_type: str | None) -> tuple[str, bytes]:
    """Return the charset of a page, and the page as HTML in UTF-8."""
    charset, html = charsets.decode(body, content_type)
    return charset, as_html(html, content_type)


def prepare(body: bytes, content_type: str | None, *, rows: bool = False) -> Prepared:
    """Prepare a page for parsing. `rows`: its outline has all elements with links."""
    charset, html = as_utf8(body, content_type)
    if is_small(html):
        return Prepared(charset=charset, html=html, outline=None)
    kept, tags_cut = outline_with_rows(html) if rows else outline_of(html)
    return Prepared(charset=charset, html=html, outline=kept, tags_cut=tags_cut)


def parsing(  # noqa: PLR0913 - facts of the response and settings of the crawl
    body: bytes,
    url: str,
    content_type: str | None,
    *,
    robots_tag: str | None = None,
    refresh: str | None = None,
    link: str | None = None,
    links_per_page_max: int = LINKS_MAX,
    tracking: frozenset[str] = TRACKING_PARAMETERS,
    agent: str = PRODUCT,
    obey_nofollow: bool = True,
    rows: bool = False,
    prepared: Prepared | None = None,
) -> Generator[None, None, Page]:
    """Parse a page fetched from `url`. Yields after each slice of its links.

    `robots_tag`, `refresh`, `link`: headers. `tracking`: parameters to remove. `rows`: as in Page.
    """
    ready = prepare(body, content_type, rows=rows) if prepared is None else prepared
    addressees = frozenset({EVERYBODY, PRODUCT, agent.partition("/")[0].strip().lower()})
    whole = _tree(ready.html) if ready.outline is None else None
    collector = LinkCollector(obeys=obey_nofollow) if rows else None
    found = _TreeValues(addressees=addressees, obeys=obey_nofollow, rows=collector)
    _collect(found, whole or _tree(ready.outline or b""), link or "", url)
    wishes = found.wishes | wishes_of(robots_tag or "", addressees)
    here = url if is_base(url) else None
    base = here if found.base is None else resolved(found.base, here, tracking=frozenset()) or here
    onward = (refresh_of(refresh) if refresh else None) or found.refresh
    leads = _redirect_target(onward, here, base, tracking) if onward else None
    _collect_refresh(found, onward)
    links = Links(base=base, charset=ready.charset, links_max=links_per_page_max, tracking=tracking)
    nofollow = not NOFOLLOW_WISHES.isdisjoint(wishes)
    kept, link_rows, rows_cut = yield from _resolving(found, links, nofollow=nofollow)
    title, description = _single_line(found.title), _single_line(found.description)
    canonical, no_canonical = _canonical(found.canonical, base, tracking)
    return Page(
        title=title[:TEXT_CHARS_MAX].strip() or None,
        description=description[:TEXT_CHARS_MAX].strip() or None,
        language=found.language[:LANGUAGE_CHARS_MAX] or None,
        canonical=canonical,
        h1=count_h1(ready.html),
        charset=ready.charset,
        nofollow=nofollow,
        noindex=not NOINDEX_WISHES.isdisjoint(wishes),
        links=kept,
        links_cut=links.cut,
        links_nofollow=len(found.withdrawn),
        links_foreign=links.foreign,
        links_invalid=links.invalid,
        refresh=leads,
        withdrawn=_examples(found.withdrawn, base, tracking) if found.withdrawn else (),
        base=base,
        needs_rendering=leads is None and needs_rendering(ready.html, found.links),
        cut=counted({"links": links.cut, "link_rows": rows_cut, "tags": ready.tags_cut})
        + _value_cuts(found, title, description, no_canonical),
        rows=link_rows,
        html=ready.html,
        whole=whole,
    )


parse = unpaused(parsing)


def _resolving(
    found: _TreeValues, links: Links, *, nofollow: bool
) -> Generator[None, None, tuple[tuple[str, ...], LinkRows | None, int]]:
    """Return the links that the crawl decides on, all links as rows, and the rows beyond limits."""
    nofollow = nofollow and found.obeys
    if nofollow:
        found.withdrawn, found.references = found.references + found.withdrawn, []
    if found.rows is None:
        yield from links.adding(found.references)
        return links.kept(), None, 0
    links.urls = {}
    yield from links.adding(found.references)
    kept = links.kept()  # also counts links.cut
    rows = yield from found.rows.resolving(links, kept, nofollow=nofollow)
    return kept, *rows


def _tree(html: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS)


def _collect(found: _TreeValues, tree: LexborHTMLParser, header: str, url: str) -> None:
    _look(tree, found)
    _collect_header_links(found, header, url)


def _look(tree: LexborHTMLParser, found: _TreeValues) -> None:
    root, obeys = tree.root, found.obeys
    rows = None if found.rows is None else found.rows.found
    found.language = ((root.attributes.get("lang") if root else None) or "").strip()
    references = found.references
    # Frames would add half of the query's time, so only framesets are queried for them.
    query = _FRAMES_QUERY if _has_frameset(root) else _QUERY
    for node in tree.css(query if rows is None else _ROWS_QUERY):
        tag, attributes = node.tag, node.attributes
        if tag not in _LINKING:
            _collect_other(found, node, tag, attributes)
            continue
        # Old SVG uses `xlink:href` instead of `href` (SVG 2, 16.2).
        reference = attributes.get("href" if "href" in attributes else _XLINK) or ""
        nofollow = "rel" in attributes and obeys and "nofollow" in _words(attributes["rel"])
        (found.withdrawn if nofollow else references).append(reference)
        if rows is not None and reference[:1] != "#":  # links within the page have no row
            text = node.text_lexbor() if tag == "a" else attributes.get("alt")
            decision = NOFOLLOW if nofollow else FOLLOWED
            rows.append((KINDS[tag], reference, attributes.get("rel"), None, text, decision))


def _has_frameset(root: LexborNode | None) -> bool:
    """Whether a page has a frameset instead of a body. Both are children of the root."""
    child = None if root is None else root.child
    while child is not None and child.tag != "frameset":
        child = child.next
    return child is not None


def _collect_other(
    found: _TreeValues, node: LexborNode, tag: str | None, attributes: _Attributes
) -> None:
    match tag:
        case "title":
            if not found.title and not _is_in_svg(node):
                found.title = node.text()
        case "base" if "href" in attributes:
            found.base = (attributes["href"] or "") if found.base is None else found.base
        case "link" if "href" in attributes:
            relations = _words(attributes.get("rel"))
            _collect_link(found, relations, attributes["href"])
            if found.rows is not None:
                found.rows.add_link(attributes, relations)
        # The query also finds `meta` with `href` and without `content`
        case "meta" if "content" in attributes:
            _collect_meta(found, attributes)
        case "frame" if "src" in attributes:
            found.references.append(attributes["src"] or "")
            if found.rows is not None:
                found.rows.add_element(tag, attributes)
        case _ if found.rows is not None:
            found.rows.add_element(tag, attributes)


def _collect_header_links(found: _TreeValues, header: str, url: str) -> None:
    for one in links_of(header):
        reference = resolved(one.reference, url, tracking=frozenset())
        if one.is_canonical:
            found.canonical = found.canonical or reference
        if one.leads_to_page and reference is not None:
            withdrawn = found.obeys and "nofollow" in one.relations
            (found.withdrawn if withdrawn else found.references).append(reference)
        if found.rows is not None and reference is not None:
            found.rows.add_header_link(one, reference)


def _collect_refresh(found: _TreeValues, refresh: Refresh | None) -> None:
    """Add the target of a refresh that is a link, because it is no redirect."""
    if refresh and refresh.reference and not refresh.redirects:
        found.references.append(refresh.reference)
        if found.rows is not None:
            found.rows.add_refresh(refresh.reference)


def _is_in_svg(node: LexborNode) -> bool:
    """Whether a title belongs to a drawing (SVG). Only the nearest ancestors are checked."""
    parent = node.parent
    for _ in range(_TITLE_PARENTS):
        if parent is None or parent.tag == "svg":
            break
        parent = parent.parent
    return parent is not None and parent.tag == "svg"


def _collect_link(found: _TreeValues, relations: set[str], reference: str | None) -> None:
    if "canonical" in relations:
        found.canonical = found.canonical or reference
    if not SERIES.isdisjoint(relations):
        withdrawn = found.obeys and "nofollow" in relations
        (found.withdrawn if withdrawn else found.references).append(reference or "")


def _collect_meta(found: _TreeValues, attributes: _Attributes) -> None:
    if (attributes.get("http-equiv") or "").lower() == "refresh":
        found.refresh = found.refresh or refresh_of(attributes["content"] or "")
    name = (attributes.get("name") or "").strip().lower()
    if "name" in attributes and name in found.addressees:
        found.wishes |= _words(SEPARATORS.sub(" ", attributes["content"] or ""))
    elif name == "description":
        found.description = found.description or attributes["content"]


def _examples(references: list[str], base: str | None, tracking: frozenset[str]) -> tuple[str, ...]:
    """Return the URLs of the first references as examples.

    References that are no web URLs are skipped.
    """
    looked_at = references[: 2 * WITHDRAWN_SHOWN]
    urls = (resolved(one, base, tracking=tracking) for one in looked_at)
    return tuple(dict.fromkeys(url for url in urls if url is not None))[:WITHDRAWN_SHOWN]


def _redirect_target(
    refresh: Refresh, here: str | None, base: str | None, tracking: frozenset[str]
) -> str | None:
    if not refresh.redirects or refresh.reference is None:
        return None
    url = resolved(refresh.reference, base, tracking=tracking)
    return url if here is None or url != resolved(here, tracking=frozenset()) else None


def _canonical(
    reference: str | None, base: str | None, tracking: frozenset[str]
) -> tuple[str | None, int]:
    """Return the canonical URL of a page, and the number of invalid ones, 0 or 1."""
    url = resolved(reference, base, tracking=tracking) if reference else None
    return url, int(bool(reference) and url is None)


def _words(text: str | None) -> set[str]:
    return set(text.lower().split()) if text else set()


def _value_cuts(found: _TreeValues, title: str, description: str, no_canonical: int) -> Cuts:
    return counted(
        {
            "canonical": no_canonical,
            "title": chars_beyond(title, TEXT_CHARS_MAX),
            "description": chars_beyond(description, TEXT_CHARS_MAX),
            "language": chars_beyond(found.language, LANGUAGE_CHARS_MAX),
        }
    )


def _single_line(text: str | None) -> str:
    return " ".join((text or "").split())
