"""Digests of the claimed URLs of one host in one run, which workers share in files.

The set may be incomplete, outdated or lost: missing URLs are looked up in the table. It must not
contain unclaimed URLs, so a URL is added only after its claim is final.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b

# Folder of the shared files. It has a folder for each run.
PREFIX = "claimed/"
# If one of n new links collides with one of m known URLs, it is never requested. The probability is
# n m / 2^64: for a host with 100,000 pages, 5 in 10^10. A site owner who searches for a collision,
# which takes 2^32 trials, only hides a URL of his own.
DIGEST_BYTES = 8
DIGESTS_MAX = 100_000
# First bytes of a file, the last of which is the version. The sorted digests follow, 8 bytes each,
# little-endian as in the memory of Lambda's processors.
MAGIC = b"obwclm\x00\x01"
FILE_BYTES_MAX = len(MAGIC) + DIGEST_BYTES * DIGESTS_MAX
# Up to RECENT_MAX new digests are in a set, which takes about RECENT_BYTES each.
RECENT_BYTES, RECENT_MAX = 100, 1_000
# Digests are merged in this number of ranges, one after the other, to save memory: Python's
# integers are large.
RANGES = 32


def folder_of(crawl_id: str) -> str:
    return f"{PREFIX}{crawl_id}/"


class KnownClaims:
    """Digests of claimed URLs. `new` is the number of digests that no file contains."""

    def __init__(self) -> None:
        self._sorted = array("Q")
        self._recent: set[int] = set()
        self.new = 0

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    @property
    def size_bytes(self) -> int:
        return DIGEST_BYTES * len(self._sorted) + RECENT_BYTES * len(self._recent)

    def is_known(self, url: str) -> bool:
        return self._has(_digest(url))

    def add(self, urls: Iterable[str]) -> None:
        """Add claimed URLs, up to `DIGESTS_MAX` digests in all."""
        for url in urls:
            digest = _digest(url)
            if len(self) < DIGESTS_MAX and not self._has(digest):
                self._recent.add(digest)
                self.new += 1
                if len(self._recent) >= RECENT_MAX:
                    self._fold()

    def discard(self, urls: Iterable[str]) -> None:
        """Remove URLs whose claims were released."""
        gone = {digest for digest in map(_digest, urls) if self._has(digest)}
        if gone:
            self._fold()
            self._sorted = array("Q", (one for one in self._sorted if one not in gone))
            self.new = max(0, self.new - len(gone))

    def merge(self, others: array[int]) -> None:
        """Add `others`, the digests of a file. Known digests that the file lacks count as new."""
        self._fold()
        known = len(self._sorted)
        merged = _merged(self._sorted, others)
        shared = known + len(others) - len(merged)
        del merged[DIGESTS_MAX:]
        self._sorted = merged
        # Nothing can be added to a full file.
        self.new = known - shared if len(others) < DIGESTS_MAX else 0

    def encode(self) -> bytes:
        """Encode the digests. They count as new until `stored` is called."""
        self._fold()
        return MAGIC + self._sorted.tobytes()

    def stored(self, new: int) -> None:
        """Record that `new` digests were written to a file."""
        self.new = max(0, self.new - new)

    def _has(self, digest: int) -> bool:
        if digest in self._recent:
            return True
        index = bisect_left(self._sorted, digest)
        return index < len(self._sorted) and self._sorted[index] == digest

    def _fold(self) -> None:
        if self._recent:
            self._sorted = _merged(self._sorted, array("Q", sorted(self._recent)))
            self._recent.clear()


def decode(body: bytes) -> array[int]:
    """Decode digests. Return an empty array if the file is invalid."""
    digests = array("Q")
    size = len(body) - len(MAGIC)
    if not body.startswith(MAGIC) or size % DIGEST_BYTES or size > DIGEST_BYTES * DIGESTS_MAX:
        return digests
    digests.frombytes(memoryview(body)[len(MAGIC) :])
    # A binary search in an unsorted file would miss digests.
    ordered = all(map(int.__lt__, digests, memoryview(digests)[1:]))
    return digests if ordered else array("Q")


def _digest(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=DIGEST_BYTES).digest(), "little")


def _merged(some: array[int], others: array[int]) -> array[int]:
    """Merge two sorted arrays without duplicates."""
    found = array("Q")
    begin = other_begin = 0
    for number in range(1, RANGES + 1):
        limit = number * 2**64 // RANGES
        end, other_end = bisect_left(some, limit), bisect_left(others, limit)
        # Sorting merges two sorted runs in linear time.
        both = sorted([*some[begin:end], *others[other_begin:other_end]])
        found.extend(dict.fromkeys(both))
        begin, other_begin = end, other_end
    return found
