"""What the pages of a crawl have shown by now, remembered by digests; others are told what is new.

    seen    addresses, titles and texts of pages, and pages that were found to be fruitful
    first   of each path, and of each value of a parameter, the first URL with it that is asked for
    texts   how often each run of words was met, about

What is told is a hint. Where it is lost, a page that another container has met is new here as well.
It is a version, three numbers, and so many digests of what was seen, pairs of digests of a part and
of the first URL with it, and slots of runs of words.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from orbweaver.parsing.text_digest import RUNS_EACH

DIGEST_BYTES = 5
# What is remembered of each sort, at most: then it begins anew.
MET_MAX = 50_000
# Of what others are not told yet; they never are of what is beyond it.
NEWS_MAX = 8_000
RUNS_NEWS_MAX = 30_000
# A text is new if that share of its runs of words was not met before, and so many; runs that that
# many texts have do not count. Measured: docs/yield.md.
NEW_SHARE, NEW_MIN, COMMON = 0.2, 2, 20
# Of what was met under another address by its path: the same with something beside each line.
NEW_SHARE_AGAIN = 0.4
# One byte each, for a quarter as many runs; then it begins anew.
RUN_SLOTS, SLOTS_FILLED = 1 << 21, 4
_VERSION = 1
_HEAD = struct.Struct(">BIII")
_SLOT_BYTES = 3
NEWS_BYTES_MAX = _HEAD.size + 3 * NEWS_MAX * DIGEST_BYTES + RUNS_NEWS_MAX * _SLOT_BYTES


@lru_cache(maxsize=4_096)
def text_hash(text: str) -> int:
    """Hash a text to a digest; of most that is met, it is asked for a few times in a row."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
    return int.from_bytes(digest)


# What is seen of a URL: its digest, XORed with one of these.
PAGE, FRUIT = map(text_hash, ("page", "fruit"))


class Met:
    """What is known to have been met in a crawl."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._first: dict[int, int] = {}
        # Whether two URLs may share a part: else each is its own one.
        self.shared = False
        self._runs = bytearray()
        self._runs_filled = 0
        self._news_seen = array("Q")
        self._news_first = array("Q")
        self._news_runs = array("I")

    def see(self, what: str) -> bool:
        """Note something; whether it was not seen before."""
        return self.see_key(text_hash(what))

    def see_key(self, key: int) -> bool:
        """Note something by its digest; whether it was not seen before."""
        seen, news = self._seen, self._news_seen
        if key in seen:
            return False
        if len(seen) >= MET_MAX:
            seen.clear()
        seen.add(key)
        if len(news) < NEWS_MAX:
            news.append(key)
        return True

    def first(self, part: int, url: int) -> int:
        """Say which URL was asked for first that has a part, as far as is known; else this one."""
        return self._first.get(part, url)

    def note_first(self, part: int, url: int) -> None:
        """Note that a URL with this part is asked for; the first one stays."""
        if part in self._first:
            return
        self._keep_first(part, url)
        if len(self._news_first) < 2 * NEWS_MAX:
            self._news_first.extend((part, url))

    def take_text(self, runs: Sequence[int], host: str, *, again: bool = False) -> bool:
        """Note the runs of a text; whether enough of them were not met before on its host.

        `again`: by its path, it is about something that a text was met of.
        What nearly all pages have, like a menu, makes a text neither new nor old.
        """
        salt = text_hash(host)
        slots = [(run ^ salt) // RUNS_EACH % RUN_SLOTS for run in runs]
        new, own = self._keep_runs(slots)
        if len(self._news_runs) + len(slots) <= RUNS_NEWS_MAX:
            self._news_runs.extend(slots)
        return new >= NEW_MIN and new >= (NEW_SHARE_AGAIN if again else NEW_SHARE) * own

    @property
    def has_news(self) -> bool:
        """Whether there is something that others were not told."""
        return bool(self._news_seen or self._news_first or self._news_runs)

    def told(self) -> bytes:
        """Write down what others were not told, which they then are: up to `NEWS_BYTES_MAX`."""
        seen, first, runs = self._news_seen, self._news_first, self._news_runs
        self._news_seen, self._news_first, self._news_runs = array("Q"), array("Q"), array("I")
        digests = (key.to_bytes(DIGEST_BYTES) for key in (*seen, *first))
        slots = (at.to_bytes(_SLOT_BYTES) for at in runs)
        head = _HEAD.pack(_VERSION, len(seen), len(first) // 2, len(runs))
        return b"".join((head, *digests, *slots))

    def take(self, told: bytes) -> None:
        """Take in what another container has told; what cannot be read says nothing."""
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
        """Count runs; how many were not met before, and how many are not on nearly all pages."""
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
