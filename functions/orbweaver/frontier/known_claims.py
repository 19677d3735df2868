"""Claimed URLs of one host of one run, as digests: what workers hand on to each other of it.

It may forget, and be lost, old or written over at any time: what it lacks is looked up. It may not
invent, so a URL goes in once its claim is known to stand.

A digest has 64 bits. That one of n links that are new has the digest of one of m that are known,
and so is never asked for, has a chance of n m / 2^64: of a host with 100,000 pages 5 in 10^10. Who
makes two of his own URLs have one digest, which takes him 2^32 trials, hides one from us.

As stored: MAGIC, with its version, then the digests in order, 8 bytes each, the lowest byte first,
as they lie in the memory of what functions run on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b

# Below it lies what workers hand on to each other, by run.
PREFIX = "claimed/"
DIGEST_BYTES = 8
DIGESTS_MAX = 100_000
# The last byte is the version.
MAGIC = b"obwclm\x00\x01"
FILE_BYTES_MAX = len(MAGIC) + DIGEST_BYTES * DIGESTS_MAX
# A digest that came lately lies in a set, which takes so many bytes for it; few of them do.
RECENT_BYTES, RECENT_MAX = 100, 1_000
# Digests are merged by so many ranges, one after the other: as Python's numbers they are large.
RANGES = 32


def folder_of(crawl_id: str) -> str:
    """Name the folder of what is handed on of a run."""
    return f"{PREFIX}{crawl_id}/"


class KnownClaims:
    """Digests of claimed URLs; `new` is how many of them are in no file that is known of."""

    def __init__(self) -> None:
        self._sorted = array("Q")
        self._recent: set[int] = set()
        self.new = 0

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        return DIGEST_BYTES * len(self._sorted) + RECENT_BYTES * len(self._recent)

    def has(self, url: str) -> bool:
        """Whether a URL is known to be claimed."""
        return self._has(_digest(url))

    def add(self, urls: Iterable[str]) -> None:
        """Note that URLs are claimed; as many as there is room for."""
        for url in urls:
            digest = _digest(url)
            if len(self) < DIGESTS_MAX and not self._has(digest):
                self._recent.add(digest)
                self.new += 1
                if len(self._recent) >= RECENT_MAX:
                    self._fold()

    def discard(self, urls: Iterable[str]) -> None:
        """Forget URLs: their claims were given back."""
        gone = {digest for digest in map(_digest, urls) if self._has(digest)}
        if gone:
            self._fold()
            self._sorted = array("Q", (one for one in self._sorted if one not in gone))
            self.new = max(0, self.new - len(gone))

    def merge(self, others: array[int]) -> None:
        """Take over what a file holds; what was known and is not in there is new."""
        self._fold()
        known = len(self._sorted)
        merged = _merged(self._sorted, others)
        shared = known + len(others) - len(merged)
        del merged[DIGESTS_MAX:]
        self._sorted = merged
        # A file that is full gets no better.
        self.new = known - shared if len(others) < DIGESTS_MAX else 0

    def encode(self) -> bytes:
        """Write them down; what is in there is new until `stored` says that it is stored."""
        self._fold()
        return MAGIC + self._sorted.tobytes()

    def stored(self, new: int) -> None:
        """Note that so many that were new are in a file."""
        self.new = max(0, self.new - new)

    def _has(self, digest: int) -> bool:
        if digest in self._recent:
            return True
        place = bisect_left(self._sorted, digest)
        return place < len(self._sorted) and self._sorted[place] == digest

    def _fold(self) -> None:
        if self._recent:
            self._sorted = _merged(self._sorted, array("Q", sorted(self._recent)))
            self._recent.clear()


def decode(body: bytes) -> array[int]:
    """Read digests; none from what is not wholly as it should be, whatever that is."""
    digests = array("Q")
    size = len(body) - len(MAGIC)
    if not body.startswith(MAGIC) or size % DIGEST_BYTES or size > DIGEST_BYTES * DIGESTS_MAX:
        return digests
    digests.frombytes(memoryview(body)[len(MAGIC) :])
    # Half of a file that is out of order would be found.
    ordered = all(map(int.__lt__, digests, memoryview(digests)[1:]))
    return digests if ordered else array("Q")


def _digest(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=DIGEST_BYTES).digest(), "little")


def _merged(some: array[int], others: array[int]) -> array[int]:
    """Join two sorted arrays, each number once."""
    found = array("Q")
    begin = other_begin = 0
    for number in range(1, RANGES + 1):
        limit = number * 2**64 // RANGES
        end, other_end = bisect_left(some, limit), bisect_left(others, limit)
        # Sorting joins two runs in as many steps as they are long.
        both = sorted([*some[begin:end], *others[other_begin:other_end]])
        found.extend(dict.fromkeys(both))
        begin, other_begin = end, other_end
    return found
