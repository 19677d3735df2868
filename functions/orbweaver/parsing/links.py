"""Canonicalize the links of a page, with limits on their number and total length."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.url import REFERENCE_CHARS_MAX, SPACES, canonicalize
from orbweaver.parsing import charset as charsets

# Limit for all links of a page together. A short reference with a long base is a long URL, and each
# link is stored and sent several times. Links beyond the limit are counted.
LINKS_CHARS_MAX = 1_000_000


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

    def adding(self, references: Iterable[str]) -> Generator[None, None, None]:
        """Add the references of a page.

        Yields after each slice of them, so that other work can run.
        """
        # Equal references give equal links, so each is processed once.
        for number, words in enumerate(_without_fragments(references)):
            if number and number % SLICE_URLS == 0:
                yield
            if ":" in words and _is_foreign(words.strip(SPACES)):
                self.foreign += 1
            elif len(self.found) + self.invalid >= self.links_max:
                self.cut += 1
            else:
                try:
                    reference = words if words.isascii() else self._encoded(words)
                    self.found[canonicalize(reference, self.base, tracking=self.tracking)] = None
                except ValueError:
                    self.invalid += 1

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


def _is_foreign(reference: str) -> bool:
    scheme = reference.partition(":")[0].lower()
    return (
        scheme.isascii()
        and scheme.isalnum()
        and scheme[0].isalpha()
        and scheme not in {"http", "https"}
    )
