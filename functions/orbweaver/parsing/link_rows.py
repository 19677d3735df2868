"""Collect the links of a page as rows of the `links` table.

References with other schemes than http and https have no row. Equal rows are one row. The number of
rows and the length of each value are limited. Rows beyond a limit are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import compress
from types import MappingProxyType
from typing import Any, TypeAlias

from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.url import REFERENCE_CHARS_MAX, SPACES, joined_url
from orbweaver.model.value import value_class
from orbweaver.parsing.links import SERIES, HeaderLink, Links, is_foreign

# Letter of each kind in the stored form. A letter never changes its meaning.
KINDS: Mapping[str, str] = MappingProxyType(
    {"a": "a", "area": "r", "canonical": "c", "redirect": "d", "refresh": "f", "hreflang": "h"}
    | {"next": "n", "prev": "p", "amphtml": "m", "alternate": "t", "img": "i", "source": "u"}
    | {"script": "s", "stylesheet": "y", "iframe": "e", "form": "o", "media": "v", "icon": "k"}
    | {"sitemap": "x"}
)
NAMES: Mapping[str, str] = MappingProxyType({letter: kind for kind, letter in KINDS.items()})
# Decisions that are no refusals. FOLLOWED: the crawl may still refuse the link. NOT_FOLLOWED: the
# crawl does not request links of this kind.
FOLLOWED, NOT_FOLLOWED = "followed", "not_followed"
NOFOLLOW, INVALID, TOO_LONG, CUT = "nofollow", "invalid", "too_long", "cut"
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
# Letter of the kind, reference, rel, lang, text, decision.
RawRow: TypeAlias = "tuple[str, str, str | None, str | None, str | None, str]"
_Column: TypeAlias = "Sequence[Any]"
# Letter of the kind, target, text, rel, lang, fragment, spelling, decision.
_Columns: TypeAlias = "tuple[_Column, ...]"
_NONE = (None,)
# The URL Standard removes these characters.
_LINES = re.compile(r"[\t\n\r]")
# Values of a column that is mostly empty, with the numbers of their rows.
Marks: TypeAlias = "dict[str, list[int]]"


@value_class
class LinkRows:
    """Links of a page, by column. `kinds` has a letter for each row (`KINDS`).

    A row without a mark in `decisions` is followed. The target of an invalid row is its reference,
    and so is a target that is too long.
    """

    kinds: str
    targets: tuple[str, ...]
    texts: tuple[str | None, ...] = ()
    fragments: tuple[str | None, ...] = ()
    rel: Marks = field(default_factory=dict)
    lang: Marks = field(default_factory=dict)
    spellings: Marks = field(default_factory=dict)
    decisions: Marks = field(default_factory=dict)

    @property
    def unresolved(self) -> list[int]:
        """Places of the rows whose targets are references."""
        return [*self.decisions.get(INVALID, ()), *self.decisions.get(TOO_LONG, ())]

    def redacted(self, redact: Callable[[str], str]) -> LinkRows:
        """Redact the texts, and references that are no URLs."""
        targets = list(self.targets)
        for place in self.unresolved:
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
            fragments=tuple(self.fragments[place] for place in kept) if self.fragments else (),
            rel=left(self.rel),
            lang=left(self.lang),
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
        self.found.append((KINDS["refresh"], reference, None, None, None, FOLLOWED))

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
        self.found.append((KINDS[kind], reference, None, None, text, decision))

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
        self.found.append((KINDS[kind], reference, rel, lang, None, decision))

    def resolving(
        self, links: Links, followed: Collection[str], *, nofollow: bool
    ) -> Generator[None, None, tuple[LinkRows, int]]:
        """Return the rows, and the number of rows beyond the limits.

        `followed` are the links that the crawl decides on. `nofollow`: the whole page has it, and
        the crawl obeys it. Yields after each slice of references.
        """
        # Columns are converted one after the other, which takes half the time of a loop over rows.
        found: Any = zip(*dict.fromkeys(self.found[:FOUND_MAX]), strict=True)
        columns = tuple(found)
        if not columns:
            return LinkRows(kinds="", targets=()), 0
        letters, references, rels, langs, texts, decisions = columns
        words, fragments = _divided(references)
        known = _References(links)
        yield from known.adding(dict.fromkeys(words))
        if nofollow or links.cut:
            left = frozenset[str]() if nofollow else frozenset(followed)
            decisions = known.withdrawn(decisions, words, left, NOFOLLOW if nofollow else CUT)
        rows: _Columns = (
            letters,
            [*map(known.targets.__getitem__, words)],
            [" ".join(text.split())[:TEXT_CHARS_MAX] if text else text for text in texts],
            _tidied_rels(rels),
            langs,
            fragments,
            [*map(known.spellings.get, words)] if known.spellings else _NONE * len(words),
            decisions,
        )
        if known.invalid or known.foreign:
            rows = known.as_invalid(rows, words)
        rows = _distinct(rows)
        made = _as_rows(rows)
        return made, max(0, len(self.found) - FOUND_MAX) + len(rows[0]) - len(made.targets)


class _References:
    """Targets of distinct references. `foreign` references, with other schemes, have no target."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.targets: dict[str, str | None] = {} if links.urls is None else links.urls
        self.spellings: dict[str, str] = {}
        # Targets of references without a URL.
        self.invalid: dict[str, str] = {}
        self.too_long: set[str] = set()
        self.foreign: set[str] = set()

    def adding(self, references: Iterable[str]) -> Generator[None, None, None]:
        """Find the targets of references. Yields after each slice of new references."""
        targets, links = self.targets, self._links
        for number, words in enumerate([one for one in references if one not in targets]):
            if number and number % SLICE_URLS == 0:
                yield
            if links.url_of(words) is None:
                reference = words.strip(SPACES)
                if is_foreign(reference):
                    self.foreign.add(words)
                else:
                    self.invalid[words] = " ".join(reference.split())[:SPELLING_CHARS_MAX]
                    if _is_too_long(reference, links.base):
                        self.too_long.add(words)
        # If a target ends with its reference, both have the same spelling.
        other = [
            (words, target)
            for words, target in targets.items()
            if target and not target.endswith(words) and not target.endswith(words.lstrip("./"))
        ]
        for number, (words, target) in enumerate(other):
            if number and number % SLICE_URLS == 0:
                yield
            spelling = _spelling(words, links.base, target)
            if spelling:
                self.spellings[words] = spelling

    def withdrawn(
        self, decisions: _Column, references: Sequence[str], followed: frozenset[str], why: str
    ) -> _Column:
        """Return the decisions, with `why` for links that the crawl does not decide on."""
        return [
            why if decision == FOLLOWED and self.targets[words] not in followed else decision
            for decision, words in zip(decisions, references, strict=True)
        ]

    def as_invalid(self, rows: _Columns, references: Sequence[str]) -> _Columns:
        """Add targets and decisions of invalid references, and leave out rows without a target."""
        kinds, targets, *others, decisions = rows
        invalid, foreign = self.invalid, self.foreign
        targets = [
            invalid.get(words, target) for words, target in zip(references, targets, strict=True)
        ]
        decisions = [
            (TOO_LONG if words in self.too_long else INVALID) if words in invalid else decision
            for words, decision in zip(references, decisions, strict=True)
        ]
        kept = [words not in foreign for words in references]
        return tuple([*compress(column, kept)] for column in (kinds, targets, *others, decisions))


def _divided(references: Sequence[str]) -> tuple[Sequence[str], _Column]:
    """Divide references into words and fragments."""
    words = list(references)
    fragments: list[str | None] = [None] * len(words)
    for place, reference in enumerate(references):
        if "#" in reference:
            path, _, rest = reference.partition("#")
            # Spaces before a fragment are part of the path.
            words[place] = reference if path[-1:] == " " else path
            if not rest.isprintable():
                rest = _LINES.sub("", rest)
            fragments[place] = rest[:FRAGMENT_CHARS_MAX] or None
    return words, fragments


def _tidied_rels(rels: _Column) -> _Column:
    if rels.count(None) == len(rels):
        return rels
    return [_rel(rel) if rel else None for rel in rels]


def _distinct(rows: _Columns) -> _Columns:
    """Leave out equal rows."""
    kinds, targets, texts, _, _, fragments, *_ = rows
    # Most pages have no equal rows, which four columns show.
    if len(set(zip(kinds, targets, texts, fragments, strict=True))) == len(kinds):
        return rows
    return tuple(zip(*dict.fromkeys(zip(*rows, strict=True)), strict=True))


def _as_rows(rows: _Columns) -> LinkRows:
    """Convert columns to rows. Rows beyond the limits are left out."""
    kinds, targets, texts, rels, langs, fragments, spellings, decisions = rows
    chars, number = sum(map(len, targets)) + sum(map(len, filter(None, texts))), len(kinds)
    if number > ROWS_MAX or (chars > ROWS_CHARS_MAX and number > 1):
        number = min(ROWS_MAX, number * 3 // 4)
        return _as_rows(tuple(column[:number] for column in rows))
    return LinkRows(
        kinds="".join(kinds),
        targets=tuple(targets),
        texts=tuple(texts),
        fragments=() if fragments.count(None) == number else tuple(fragments),
        rel=_marks(rels),
        lang=_marks(langs),
        spellings=_marks(spellings),
        decisions=_marks(decisions, FOLLOWED),
    )


def _marks(values: _Column, usual: str | None = None) -> Marks:
    marks: Marks = {}
    if values.count(usual) < len(values):
        for place, value in enumerate(values):
            if value != usual:
                marks.setdefault(value or "", []).append(place)
    return marks


@lru_cache(maxsize=256)
def _rel(text: str) -> str | None:
    return " ".join(text.lower().split())[:REL_CHARS_MAX] or None


def _is_too_long(reference: str, base: str | None) -> bool:
    """Whether a reference without a canonical URL is a URL that is too long for the crawl."""
    if len(reference) > REFERENCE_CHARS_MAX:
        return True
    url = joined_url(reference, base)
    return url is not None and url.startswith(("http://", "https://"))


def _spelling(words: str, base: str | None, target: str) -> str | None:
    """Return the URL of a reference before canonicalization, if it differs from the target."""
    spelled = joined_url(words, base)
    # A user name or password is not stored.
    if spelled is None or spelled == target or "@" in spelled.partition("?")[0]:
        return None
    return spelled[:SPELLING_CHARS_MAX]
