"""Measure the content that scripts add to a page (gain), and decide for similar pages.

A kind is a group of URLs of a host with one shape (`model/url_kind.py`), whatever their file names.
Pages of it that look empty without scripts (`parsing/client_rendering.py`) are a separate kind.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from orbweaver.model.crawl import LEARNED, Counts
from orbweaver.model.render_rules import learned_kind
from orbweaver.model.value import value_class
from orbweaver.parsing.charset import decode
from orbweaver.parsing.html_scan import text_of

# Pages of a kind are rendered while it has credit. A page without gain costs 1 credit, and a page
# with gain adds GAIN. Pages that look empty start with MARKED_FIRST, others with FIRST.
MARKED_FIRST, FIRST, GAIN, CREDIT_MAX = 5, 1, 2, 6
# One page in SAMPLE, chosen by a hash of the URL, is rendered although its kind has no credit. If
# the page gains content, the kind has credit again.
SAMPLE = 40
# Maximum number of kinds. All further kinds count as one kind, except that their pages that look
# empty are another kind.
KINDS_MAX = 48
# Length of text that is compared, and the minimum growth that counts as gain: as a ratio, and in
# characters.
TEXT_BYTES_MAX = 1_000_000
TEXT_SHARE, TEXT_CHARS = 1.2, 40
# New links that are claimed already count as a gain only if they are many: at least this number,
# and this share of the page's links.
LINKS_MIN, LINKS_SHARE = 5, 0.2
_UP, _DOWN = (f"{LEARNED}{way}." for way in ("up", "down"))


# --- what scripts added -------------------------------------------------------------------------


@value_class
class PageContent:
    """Content of a page, to compare two versions. `unknown` are links without a known claim."""

    text_chars: int
    links: frozenset[str]
    unknown: frozenset[str]
    items: int = 0
    leaves: bool = False


def text_chars(body: bytes, content_type: str | None) -> int:
    _, html = decode(body[:TEXT_BYTES_MAX], content_type)
    return len(text_of(html))


def gain_of(fetched: PageContent, rendered: PageContent) -> bool:
    """Return True if scripts added links, items or text, or redirected to another URL."""
    if rendered.leaves or rendered.items > fetched.items:
        return True
    new = rendered.links - fetched.links
    if new & rendered.unknown:
        return True
    if len(new) >= max(LINKS_MIN, LINKS_SHARE * len(fetched.links)):
        return True
    more = rendered.text_chars - fetched.text_chars
    return more >= TEXT_CHARS and rendered.text_chars >= TEXT_SHARE * fetched.text_chars


# --- results by kind ----------------------------------------------------------------------------


def is_sample(url: str) -> bool:
    """Return True for one URL in `SAMPLE`, chosen by its hash. Such pages are always rendered."""
    return zlib.crc32(url.encode()) % SAMPLE == 0


class LearnedKinds:
    """Rendering results of a crawl by kind: the shared counters, and this container's additions."""

    def __init__(self) -> None:
        self._read: Counts = {}
        self._since: Counter[str] = Counter()
        # All additions of this container, because packs may not have committed them yet when the
        # shared counters are read.
        self._own: Counter[str] = Counter()

    def replace_counters(self, learned: Counts) -> None:
        self._read = learned
        self._since.clear()

    def key(self, url: str, *, marked: bool) -> str:
        """Return the key of a URL's group (kind), or of the common group if there are too many."""
        last = "!" if marked else "."
        name = _digest((*learned_kind(url), last))
        known = self._known()
        return name if name in known or len(known) < KINDS_MAX else _digest((last,))

    def credit(self, kind: str, *, marked: bool) -> int:
        """Return how many more pages of a kind are rendered if their content does not grow."""
        return min(CREDIT_MAX, max(0, self._balance(kind, marked=marked)))

    def has_gained(self, kind: str) -> bool:
        return self._value(_UP + kind) > 0

    def expects(self, url: str) -> bool:
        """Return True if the page of a URL that is not fetched yet will probably be rendered."""
        kinds = ((self.key(url, marked=marked), marked) for marked in (True, False))
        known = [(kind, marked) for kind, marked in kinds if kind in self._known()]
        return bool(known) and all(
            self.has_gained(kind) and self.credit(kind, marked=marked) for kind, marked in known
        )

    def learn(self, kind: str, *, marked: bool, gained: bool) -> Mapping[str, int]:
        """Record whether a page of a kind gained content. Return the counts to commit."""
        # Workers that learn at the same time can add too much. The next change corrects that.
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
