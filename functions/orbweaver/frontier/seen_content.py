"""Remember the content that a crawl's pages have shown, as digests, to recognise new content.

Containers share their additions as files (worker/kind_learning.py). A file may be lost. Then a page
that another container has read counts as new here too.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from orbweaver.parsing.text_digest import RUNS_EACH

DIGEST_BYTES = 5
# Limit of each memory. A full memory is cleared.
MET_MAX = 50_000
# Limits of additions that are not in a file yet. Additions beyond them are never shared.
NEWS_MAX = 8_000
RUNS_NEWS_MAX = 30_000
# A text is new if at least NEW_MIN of its runs of words, and the share NEW_SHARE of them, are new.
# Runs that COMMON texts have, such as menus, are ignored. Measured: docs/evidence/yield.md.
# Twice the share must be new in a text whose path was read before below other folders. It can be
# the same text with an author added to each line.
NEW_SHARE, NEW_MIN, COMMON = 0.2, 2, 20
# Slots of one byte each that count runs. They are cleared when a quarter of them is used.
RUN_SLOTS, SLOTS_FILLED = 1 << 21, 4
_VERSION = 1
# File format, big-endian: the version, three counts, then the entries: 5-byte digests of seen
# content, pairs of 5-byte digests (a part and the first URL with it), and 3-byte slot numbers of
# runs.
_HEAD = struct.Struct(">BIII")
_SLOT_BYTES = 3
NEWS_BYTES_MAX = _HEAD.size + 3 * NEWS_MAX * DIGEST_BYTES + RUNS_NEWS_MAX * _SLOT_BYTES


# Most texts are digested several times in a row.
@lru_cache(maxsize=4_096)
def text_hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
    return int.from_bytes(digest)


# Facts about a URL are stored as its digest XORed with one of these.
PAGE, FRUIT = map(text_hash, ("page", "fruit"))


class SeenContent:
    """Digests of content that this container or other containers have read."""

    def __init__(self) -> None:
        # Digests of addresses, titles and texts of pages, and of fruitful pages.
        self._seen: set[int] = set()
        # The first URL that was requested with each path, part behind an id and parameter value.
        self._first: dict[int, int] = {}
        # True once two URLs share a part. Until then, each URL is the first with its parts.
        self.shared = False
        # How often each run of three words was read (parsing/text_digest.py), approximately.
        self._runs = bytearray()
        self._runs_filled = 0
        self._news_seen = array("Q")
        self._news_first = array("Q")
        self._news_runs = array("I")

    def add(self, what: str) -> bool:
        """Add the digest of a text. Return True if it was unknown."""
        return self.add_key(text_hash(what))

    def add_key(self, key: int) -> bool:
        """Add a digest. Return True if it was unknown."""
        seen, news = self._seen, self._news_seen
        if key in seen:
            return False
        if len(seen) >= MET_MAX:
            seen.clear()
        seen.add(key)
        if len(news) < NEWS_MAX:
            news.append(key)
        return True

    def first_url(self, part: int, url: int) -> int:
        """Return the digest of the first requested URL with this part, or `url` if unknown."""
        return self._first.get(part, url)

    def note_first(self, part: int, url: int) -> None:
        """Record that a URL with this part is requested, unless an earlier URL has it."""
        if part in self._first:
            return
        self._keep_first(part, url)
        if len(self._news_first) < 2 * NEWS_MAX:
            self._news_first.extend((part, url))

    def add_runs(self, runs: Sequence[int], host: str, *, again: bool = False) -> bool:
        """Add a text's runs of three words. Return True if enough of them are new on its host.

        `again` means that a text with the same path was read. Then twice the share must be new.
        """
        salt = text_hash(host)
        slots = [(run ^ salt) // RUNS_EACH % RUN_SLOTS for run in runs]
        new, own = self._keep_runs(slots)
        if len(self._news_runs) + len(slots) <= RUNS_NEWS_MAX:
            self._news_runs.extend(slots)
        return new >= NEW_MIN and new >= (2 if again else 1) * NEW_SHARE * own

    @property
    def has_news(self) -> bool:
        return bool(self._news_seen or self._news_first or self._news_runs)

    def encode_news(self) -> bytes:
        """Encode the additions since the last call, at most `NEWS_BYTES_MAX` bytes."""
        seen, first, runs = self._news_seen, self._news_first, self._news_runs
        self._news_seen, self._news_first, self._news_runs = array("Q"), array("Q"), array("I")
        digests = (key.to_bytes(DIGEST_BYTES) for key in (*seen, *first))
        slots = (at.to_bytes(_SLOT_BYTES) for at in runs)
        head = _HEAD.pack(_VERSION, len(seen), len(first) // 2, len(runs))
        return b"".join((head, *digests, *slots))

    def add_news(self, told: bytes) -> None:
        """Add the digests of another container's file. An invalid file is ignored."""
        if len(told) < _HEAD.size:
            return
        version, seen, first, runs = _HEAD.unpack_from(told)
        slots_at = _HEAD.size + (seen + 2 * first) * DIGEST_BYTES
        if version != _VERSION or len(told) != slots_at + runs * _SLOT_BYTES:
            return
        digests = _read(told[_HEAD.size : slots_at], DIGEST_BYTES)
        if len(self._seen) + seen > MET_MAX:
            self._seen.clear()
        self._seen.update(digests[:seen])
        for part, url in zip(digests[seen::2], digests[seen + 1 :: 2], strict=True):
            if part not in self._first:
                self._keep_first(part, url)
        self._keep_runs([at % RUN_SLOTS for at in _read(told[slots_at:], _SLOT_BYTES)])

    def _keep_runs(self, slots: Sequence[int]) -> tuple[int, int]:
        """Count runs of words by slot. Return how many are new, and how many are not common."""
        if not self._runs or self._runs_filled * SLOTS_FILLED > RUN_SLOTS:
            self._runs, self._runs_filled = bytearray(RUN_SLOTS), 0
        met = self._runs
        new = own = 0
        for at in slots:
            times = met[at]
            new += not times
            if times < COMMON:
                own += 1
                met[at] = times + 1
        self._runs_filled += new
        return new, own

    def _keep_first(self, part: int, url: int) -> None:
        if len(self._first) >= MET_MAX:
            self._first.clear()
        self._first[part] = url
        self.shared = self.shared or part != url


def _read(told: bytes, size: int) -> list[int]:
    return [int.from_bytes(told[at : at + size]) for at in range(0, len(told), size)]
