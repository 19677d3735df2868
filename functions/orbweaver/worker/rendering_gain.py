"""The gain of rendering: what scripts added to a page, and what that says of pages of its kind.

Marks nominate a page, measured gain decides, samples verify:

- A kind is a host's URLs of one shape (`model/url_kind.py`), its name left open; those of its pages
  that are nominated by marks (`parsing/client_rendering.py`) are a kind of their own.
- A page gains that goes elsewhere, or has links, items or text by its scripts that it lacks
  without them (`gain_of`).
- A kind has credit: a page without gain costs 1, one with gain brings `GAIN`. A nominated kind
  begins with `MARKED_FIRST`, another one with `FIRST`. Without credit its pages are as they are
  fetched, but one in `SAMPLE`, by a hash of the URL: if that one gains, there is credit again.

Credit is the difference of two counters that packs add to with their commit, `render.kind.up.…`
and `render.kind.down.…`: all workers share it. Those that learn at the same time may add too much,
which the next change sets right. Of a crawl there are at most `KINDS_MAX` kinds, and one more of
either sort for all others. A page without scripts gains nothing, and needs no credit to be told.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from orbweaver.model.crawl import LEARNED, Counts
from orbweaver.model.render_rules import learned_kind
from orbweaver.parsing.charset import decode
from orbweaver.parsing.html_scan import text_of

MARKED_FIRST, FIRST, GAIN, CREDIT_MAX = 5, 1, 2, 6
SAMPLE = 40
KINDS_MAX = 48
# Text that is compared, and how much more of it is a gain: as a share, and in characters.
TEXT_BYTES_MAX = 1_000_000
TEXT_SHARE, TEXT_CHARS = 1.2, 40
# Links that the crawl knows already are a gain where they are so many, and so large a part.
LINKS_MIN, LINKS_SHARE = 5, 0.2
_UP, _DOWN = (f"{LEARNED}{way}." for way in ("up", "down"))


# --- what scripts added -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """What is compared of a page, as fetched or as rendered; `items` counts those that are whole.

    `links` are those within its crawl's scope, `unknown` of them those that the crawl has not
    claimed.
    """

    text_chars: int
    links: frozenset[str]
    unknown: frozenset[str]
    items: int = 0
    leaves: bool = False


def text_chars(body: bytes, content_type: str | None) -> int:
    """Count the characters of a page that its readers see."""
    _, html = decode(body[:TEXT_BYTES_MAX], content_type)
    return len(text_of(html))


def gain_of(fetched: PageContent, rendered: PageContent) -> bool:
    """Whether scripts added to a page."""
    if rendered.leaves or rendered.items > fetched.items:
        return True
    new = rendered.links - fetched.links
    if new & rendered.unknown:
        return True
    if len(new) >= max(LINKS_MIN, LINKS_SHARE * len(fetched.links)):
        return True
    more = rendered.text_chars - fetched.text_chars
    return more >= TEXT_CHARS and rendered.text_chars >= TEXT_SHARE * fetched.text_chars


# --- what is known of kinds ---------------------------------------------------------------------


def is_sample(url: str) -> bool:
    """Whether a page is rendered though its kind gains nothing: one in `SAMPLE`."""
    return zlib.crc32(url.encode()) % SAMPLE == 0


class KindsLearned:
    """What is known of the kinds of one crawl: as it was read last, and what was added since."""

    def __init__(self) -> None:
        self._read: Counts = {}
        self._since: Counter[str] = Counter()
        # All that was added here: counters are read before packs at work have committed.
        self._own: Counter[str] = Counter()

    def take(self, learned: Counts) -> None:
        """Take in the counters of the crawl, as they are read now."""
        self._read = learned
        self._since.clear()

    def key(self, url: str, *, marked: bool) -> str:
        """Name the kind of a page, or what stands for it where there are too many."""
        last = "!" if marked else "."
        name = _digest((*learned_kind(url), last))
        known = self._known()
        return name if name in known or len(known) < KINDS_MAX else _digest((last,))

    def credit(self, kind: str, *, marked: bool) -> int:
        """Return the credit of a kind, as far as it counts."""
        return min(CREDIT_MAX, max(0, self._balance(kind, marked=marked)))

    def has_gained(self, kind: str) -> bool:
        """Whether any of its pages has."""
        return self._value(_UP + kind) > 0

    def expects(self, url: str) -> bool:
        """Whether a page that was not fetched yet will be rendered, as far as is known of it."""
        kinds = ((self.key(url, marked=marked), marked) for marked in (True, False))
        known = [(kind, marked) for kind, marked in kinds if kind in self._known()]
        return bool(known) and all(
            self.has_gained(kind) and self.credit(kind, marked=marked) for kind, marked in known
        )

    def learn(self, kind: str, *, marked: bool, gained: bool) -> Mapping[str, int]:
        """Note whether a page has gained; what is to be counted."""
        credit = self.credit(kind, marked=marked)
        due = min(CREDIT_MAX, credit + GAIN) if gained else max(0, credit - 1)
        change = due - self._balance(kind, marked=marked)
        if not change:
            return {}
        counts = {(_UP if change > 0 else _DOWN) + kind: abs(change)}
        self._since.update(counts)
        self._own.update(counts)
        return counts

    def _balance(self, kind: str, *, marked: bool) -> int:
        first = MARKED_FIRST if marked else FIRST
        return first + self._value(_UP + kind) - self._value(_DOWN + kind)

    def _value(self, key: str) -> int:
        return max(self._read.get(key, 0) + self._since[key], self._own[key])

    def _known(self) -> set[str]:
        keys: Sequence[str] = (*self._read, *self._own)
        return {key.rpartition(".")[2] for key in keys}


def _digest(parts: Sequence[str]) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=4).hexdigest()
