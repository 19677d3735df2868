"""Digest texts so that nearly equal texts have nearly equal digests, and count identical bodies.

The digest is a simhash of 64 bits (Charikar 2002; Manku et al. 2007, for pages). Each distinct
sequence of three words votes on each bit. Digests of similar texts differ in few bits. Digests of
unrelated texts differ in half of the bits, 32 +- 4. Order and position of paragraphs hardly matter.
Identical bodies under different URLs of a host are a crawler trap that URLs do not show.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from functools import lru_cache
from hashlib import blake2b

from isal.isal_zlib import crc32

CHARS_MAX = 65_536
# Maximum number of cached word hashes, about 150 bytes each.
WORDS_KEPT = 16_384
# One in this many sequences of three words is sampled. The sequence's hash decides.
RUNS_EACH = 4
# Letters of scripts without spaces between words: Thai to Burmese, Khmer, kana, Han, Yi, Han of
# later planes. Hangul has spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf"
    "\U00020000-\U0003ffff"
)
# Words are lower-case letters. Tokens with digits (numbers, dates, hashes) are ignored, so a
# changed counter or commit id does not change the digest. In scripts without spaces between words,
# each character is a word.
_WORD = re.compile(rf"[{_UNSPACED}]|\b[^\W\d_{_UNSPACED}]+\b")
_SPACED = "".join(
    chr(one).lower() if chr(one).isalpha() else "0" if chr(one).isdigit() else " "
    for one in range(128)
).encode() + bytes(128)
# Word hashes are put into one large integer, in lanes of 16 bytes. A lane has room for the sum of
# three products of 64 and 62 bits. The middle bits of a lane are well mixed.
_HASH_BYTES, _LANE_BYTES = 8, 16
_LANE_BITS, _MIDDLE_BITS = 128, 40
_FACTORS = (0x2545F4914F6CDD1D, 0x1B873593CC9E2D51, 0x369DEA0F31A53F85)
_ROOM = bytes(_LANE_BYTES - _HASH_BYTES)
# Links of this many identical pages of a host are followed. The identical empty pages of a wiki are
# fewer.
REPEATS_MAX = 50
PAGES_MAX = 50_000


def text_digest(text: str, echo: str = "") -> int:
    """Digest the first `CHARS_MAX` characters of a text. Returns 0 if it has no words.

    `echo` is the page's own URL and title, whose words are ignored. The digest is the same on all
    machines and Python versions.
    """
    runs = _hash_runs(_own_words(text, echo))
    count = len(runs) // _HASH_BYTES
    ones = int.from_bytes(b"\1" * count, "little")
    digest = 0
    for place in range(_HASH_BYTES):
        column = int.from_bytes(runs[place::_HASH_BYTES], "little")
        for bit in range(8):
            if (column >> bit & ones).bit_count() * 2 > count:
                digest |= 1 << (place * 8 + bit)
    return digest


def text_runs(text: str, echo: str = "") -> tuple[int, ...]:
    """Return hashes of about one in `RUNS_EACH` of a text's sequences of three words, in any order.

    They show how much of a text other texts contain. The hash decides whether a sequence is
    sampled, so two texts have the same samples of their common sequences.
    """
    runs = memoryview(_hash_runs(_own_words(text, echo))).cast("Q")
    return tuple(run for run in runs if run % RUNS_EACH == 0)


def distance(one: int, other: int) -> int:
    """Count the differing bits of two digests (0 to 64)."""
    return (one ^ other).bit_count()


def _own_words(text: str, echo: str) -> list[bytes]:
    words = _words(text[:CHARS_MAX])
    if not echo:
        return words
    echoed = frozenset(_words(echo[:CHARS_MAX]))
    return [word for word in words if word not in echoed]


def _words(text: str) -> list[bytes]:
    if not text.isascii():
        words = _WORD.findall(text.lower().replace("_", " "))
        return [word.encode("utf-8", "surrogatepass") for word in words]
    spaced = text.encode().translate(_SPACED)  # takes a third of the time of the other case
    if b"0" not in spaced:
        return spaced.split()
    return [word for word in spaced.split() if b"0" not in word]


def _hash_runs(words: list[bytes]) -> bytes:
    # All sequences of three words at once: word hashes are the lanes of one large integer, which is
    # multiplied and shifted. Measured: 40 to 50 microseconds of CPU per KB, 150 for a first text
    # with new words. Among 150 pages of a manual, the two most similar differ in 12 bits or more.
    lanes = int.from_bytes(b"".join(map(_hash_word, words)), "little")
    mixed = sum(factor * (lanes >> place * _LANE_BITS) for place, factor in enumerate(_FACTORS))
    middles = (mixed >> _MIDDLE_BITS).to_bytes(len(words) * _LANE_BYTES, "little")
    return array("Q", set(memoryview(middles).cast("Q")[::2])).tobytes()


@lru_cache(maxsize=WORDS_KEPT)
def _hash_word(word: bytes) -> bytes:
    return blake2b(word, digest_size=_HASH_BYTES).digest() + _ROOM


class Repeats:
    """Counts how often each body occurs in a host's pages of a crawl."""

    def __init__(self) -> None:
        self._met: OrderedDict[tuple[str, str, int, int], int] = OrderedDict()

    def beyond(self, crawl: str, host: str, body: bytes) -> bool:
        """Count a body.

        Returns True if it occurred too often for its links to be followed.
        """
        # Size and CRC-32 distinguish the pages of one host and cost far less than parsing.
        key = (crawl, host, len(body), crc32(body))
        count = self._met.pop(key, 0) + 1
        self._met[key] = count
        if len(self._met) > PAGES_MAX:
            self._met.popitem(last=False)
        return count > REPEATS_MAX
