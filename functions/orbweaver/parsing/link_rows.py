"""Collect the links of a page as rows of the `links` table.

References with other schemes than http and https have no row. Equal rows are one row. The number of
rows and the length of each value are limited. Rows beyond a limit are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.url import SPACES, joined_url
from orbweaver.parsing.links import SERIES, HeaderLink, Links, is_foreign

# Letter of each kind in the stored form. A letter never changes its meaning.
KINDS: Mapping[str, str] = MappingProxyType(
    {"a": "a", "area": "r", "canonical": "c", "redirect": "d", "refresh": "f", "hreflang": "h"}
    | {"next": "n", "prev": "p", "amphtml": "m", "alternate": "t", "img": "i", "source": "u"}
    | {"script": "s", "stylesheet": "y", "iframe": "e", "form": "o", "media": "v", "icon": "k"}
    | {"sitemap": "x"}
)
# Decisions that are no refusals. FOLLOWED: the crawl may still refuse the link. NOT_FOLLOWED: the
# crawl does not request links of this kind.
FOLLOWED, NOT_FOLLOWED = "followed", "not_followed"
NOFOLLOW, INVALID, CUT = "nofollow", "invalid", "cut"
ROWS_MAX = 5_000
# References of a page from which rows are made.
FOUND_MAX = 20_000
# All texts and URLs of a page together.
ROWS_CHARS_MAX = 1_000_000
TEXT_CHARS_MAX, REL_CHARS_MAX, LANG_CHARS_MAX = 200, 100, 35
SPELLING_CHARS_MAX, FRAGMENT_CHARS_MAX = 2_048, 500
# Elements with links, in addition to those with `href`.
SELECTOR = "[src], form[action], object[data], embed[data], source[srcset]"
# The first relation in this order decides the kind.
_RELATIONS = MappingProxyType(
    {"canonical": "canonical", "stylesheet": "stylesheet", "next": "next", "prev": "prev"}
    | {"previous": "prev", "amphtml": "amphtml", "icon": "icon", "apple-touch-icon": "icon"}
    | {"mask-icon": "icon", "alternate": "alternate"}
)
_ELEMENTS = MappingProxyType(
    {"img": "img", "source": "source", "script": "script", "iframe": "iframe", "frame": "iframe"}
    | {"form": "form", "video": "media", "audio": "media", "embed": "media", "object": "media"}
    | {"track": "media"}
)

# An `object` in an outline is an `embed`.
_OTHER_ATTRIBUTE = MappingProxyType(
    {"form": "action", "object": "data", "embed": "data", "source": "srcset"}
)

_Attributes: TypeAlias = "Mapping[str, str | None]"
# Kind, reference, rel, lang, text, decision.
RawRow: TypeAlias = "tuple[str, str, str | None, str | None, str | None, str]"
# Kind, target, text, rel, lang, fragment, spelling, decision.
_Row: TypeAlias = "tuple[str | None, ...]"
# Values of a column that is mostly empty, with the numbers of their rows.
Marks: TypeAlias = "dict[str, list[int]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRows:
    """Links of a page, by column. `kinds` has a letter for each row (`KINDS`).

    A row without a mark in `decisions` is followed. The target of an invalid row is its reference.
    """

    kinds: str
    targets: tuple[str, ...]
    texts: tuple[str | None, ...] = ()
    rel: Marks = field(default_factory=dict)
    lang: Marks = field(default_factory=dict)
    fragments: Marks = field(default_factory=dict)
    spellings: Marks = field(default_factory=dict)
    decisions: Marks = field(default_factory=dict)

    def redacted(self, redact: Callable[[str], str]) -> LinkRows:
        """Redact the texts, and references that are no URLs."""
        invalid = self.decisions.get(INVALID, ())
        targets = list(self.targets)
        for place in invalid:
            targets[place] = redact(targets[place])
        texts = tuple(text and redact(text) for text in self.texts)
        return replace(self, targets=tuple(targets), texts=texts)

    def refused(self, refusals: Mapping[str, str]) -> LinkRows:
        """Return the rows with the reasons for which the crawl refuses followed targets."""
        if not refusals:
            return self
        hit = [place for place, target in enumerate(self.targets) if target in refusals]
        decided = {place for places in self.decisions.values() for place in places}
        decisions = {why: [*places] for why, places in self.decisions.items()}
        for place in hit:
            if place not in decided:
                decisions.setdefault(refusals[self.targets[place]], []).append(place)
        return replace(self, decisions=decisions)

    def without(self, is_erased: Callable[[str], bool]) -> LinkRows:
        """Return the rows whose targets are not erased. The same object if none is erased."""
        kept = [place for place, target in enumerate(self.targets) if not is_erased(target)]
        if len(kept) == len(self.targets):
            return self
        new = {old: place for place, old in enumerate(kept)}

        def left(marks: Marks) -> Marks:
            found = {
                value: [new[at] for at in places if at in new] for value, places in marks.items()
            }
            return {value: places for value, places in found.items() if places}

        return LinkRows(
            kinds="".join(self.kinds[place] for place in kept),
            targets=tuple(self.targets[place] for place in kept),
            texts=tuple(self.texts[place] for place in kept) if self.texts else (),
            rel=left(self.rel),
            lang=left(self.lang),
            fragments=left(self.fragments),
            spellings=left(self.spellings),
            decisions=left(self.decisions),
        )


class LinkCollector:
    """Collects references of a page in document order. `obeys`: whether nofollow is obeyed."""

    def __init__(self, *, obeys: bool) -> None:
        self._obeys = obeys
        self.found: list[RawRow] = []

    def add_link(self, attributes: _Attributes, relations: Collection[str]) -> None:
        """Add a `link` element."""
        crawled = not SERIES.isdisjoint(relations)
        lang = attributes.get("hreflang")
        rel = attributes.get("rel")
        self._add_related(attributes.get("href") or "", relations, rel, lang, crawled=crawled)

    def add_header_link(self, link: HeaderLink, url: str) -> None:
        rel = " ".join(sorted(link.relations))
        self._add_related(url, link.relations, rel, link.lang, crawled=link.leads_to_page)

    def add_refresh(self, reference: str) -> None:
        self.found.append(("refresh", reference, None, None, None, FOLLOWED))

    def add_element(self, tag: str | None, attributes: _Attributes) -> None:
        """Add an element that embeds or loads its target, or nothing for other elements."""
        kind = _ELEMENTS.get(tag or "")
        if kind is None:
            return
        reference = attributes.get("src")
        if reference is None:
            other = _OTHER_ATTRIBUTE.get(tag or "")
            reference = attributes.get(other) if other else None
            if reference is not None and other == "srcset":
                # All sizes are the same image, so the first one is enough.
                reference = reference.strip(SPACES + ",").partition(" ")[0].rstrip(",")
        if not reference or reference[:5].lower() == "data:":
            return
        has_text = kind == "img" and "alt" in attributes
        text = attributes["alt"] or "" if has_text else None
        decision = FOLLOWED if tag == "frame" else NOT_FOLLOWED
        self.found.append((kind, reference, None, None, text, decision))

    def _add_related(
        self,
        reference: str,
        relations: Collection[str],
        rel: str | None,
        lang: str | None,
        *,
        crawled: bool,
    ) -> None:
        kind = next((kind for name, kind in _RELATIONS.items() if name in relations), None)
        if kind is None:
            return
        if kind == "alternate" and lang:
            kind, lang = "hreflang", lang.strip()[:LANG_CHARS_MAX] or None
        else:
            lang = None
        decision = FOLLOWED if crawled else NOT_FOLLOWED
        if crawled and self._obeys and NOFOLLOW in relations:
            decision = NOFOLLOW
        self.found.append((kind, reference, rel, lang, None, decision))

    def resolving(
        self, links: Links, followed: Collection[str], *, nofollow: bool
    ) -> Generator[None, None, tuple[LinkRows, int]]:
        """Return the rows, and the number of rows beyond the limits.

        `followed` are the links that the crawl decides on. `nofollow`: the whole page has it, and
        the crawl obeys it. Yields after each slice of references.
        """
        found = self.found[:FOUND_MAX]
        if not found:
            return LinkRows(kinds="", targets=()), 0
        # Columns are converted one after the other, which takes half the time of a loop over rows.
        columns: Any = zip(*found, strict=True)
        kinds, references, rels, langs, texts, decisions = columns
        parts = [reference.partition("#") for reference in references]
        # Spaces before a fragment are part of the path.
        words = [path if path[-1:] != " " else path + sign + rest for path, sign, rest in parts]
        known = _References(links, frozenset(followed), nofollow=nofollow)
        for start in range(0, len(words), SLICE_URLS):
            if start:
                yield
            known.add(words[start : start + SLICE_URLS])
        rows = dict.fromkeys(
            zip(
                kinds,
                map(known.targets.get, words),
                [" ".join(text.split())[:TEXT_CHARS_MAX] if text else text for text in texts],
                [_rel(rel) if rel else None for rel in rels],
                langs,
                [rest[:FRAGMENT_CHARS_MAX] or None for _, _, rest in parts],
                map(known.spellings.get, words),
                known.decided(decisions, words),
                strict=True,
            )
        )
        kept = [row for row in rows if row[1] is not None]
        made = _as_columns(kept)
        return made, len(self.found) - len(found) + len(kept) - len(made.targets)


class _References:
    """Targets of distinct references. References with other schemes have no target."""

    def __init__(self, links: Links, followed: frozenset[str], *, nofollow: bool) -> None:
        self._links = links
        self._followed = followed
        self._nofollow = nofollow
        self.targets: dict[str, str | None] = {}
        self.spellings: dict[str, str] = {}
        self._invalid: set[str] = set()
        # Decisions on references that would otherwise be followed.
        self._refused: dict[str, str] = {}

    def add(self, references: Iterable[str]) -> None:
        urls, followed = self._links.urls or {}, self._followed
        for words in references:
            if words in self.targets:
                continue
            target = urls[words] if words in urls else self._links.url_of(words)
            if target is None:
                reference = words.strip(SPACES)
                if not is_foreign(reference):
                    target = " ".join(reference.split())[:SPELLING_CHARS_MAX]
                    self._invalid.add(words)
            else:
                if not target.endswith(words) and not target.endswith(words.lstrip("./")):
                    spelling = _spelling(words, self._links.base, target)
                    if spelling:
                        self.spellings[words] = spelling
                if self._nofollow or target not in followed:
                    self._refused[words] = NOFOLLOW if self._nofollow else CUT
            self.targets[words] = target

    def decided(self, decisions: Sequence[str], references: Sequence[str]) -> Sequence[str]:
        """Return the decision on each reference, from the decision on its element."""
        if not self._refused and not self._invalid:
            return decisions
        return [
            INVALID
            if words in self._invalid
            else self._refused.get(words, decision)
            if decision == FOLLOWED
            else decision
            for decision, words in zip(decisions, references, strict=True)
        ]


def _as_columns(rows: list[_Row]) -> LinkRows:
    """Convert rows to columns. Rows beyond the limits are left out."""
    columns: Any = zip(*rows, strict=True) if rows else [()] * 8
    kinds, targets, texts, rels, langs, fragments, spellings, decisions = columns
    chars = sum(map(len, targets)) + sum(map(len, filter(None, texts)))
    if len(rows) > ROWS_MAX or (chars > ROWS_CHARS_MAX and len(rows) > 1):
        return _as_columns(rows[: min(ROWS_MAX, len(rows) * 3 // 4)])
    return LinkRows(
        kinds="".join(map(KINDS.__getitem__, kinds)),
        targets=targets,
        texts=texts,
        rel=_marks(rels),
        lang=_marks(langs),
        fragments=_marks(fragments),
        spellings=_marks(spellings),
        decisions=_marks(decisions, FOLLOWED),
    )


def _marks(values: Sequence[str | None], usual: str | None = None) -> Marks:
    marks: Marks = {}
    if values.count(usual) < len(values):
        for place, value in enumerate(values):
            if value != usual:
                marks.setdefault(value or "", []).append(place)
    return marks


@lru_cache(maxsize=256)
def _rel(text: str) -> str | None:
    return " ".join(text.lower().split())[:REL_CHARS_MAX] or None


def _spelling(words: str, base: str | None, target: str) -> str | None:
    """Return the URL of a reference before canonicalization, if it differs from the target."""
    spelled = joined_url(words, base)
    # A user name or password is not stored.
    if spelled is None or spelled == target or "@" in spelled.partition("?")[0]:
        return None
    return spelled[:SPELLING_CHARS_MAX]
