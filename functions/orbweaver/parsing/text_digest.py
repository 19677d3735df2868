"""A digest of a text that is near that of a text that is nearly the same.

A simhash of 64 bits (Charikar 2002; Manku et al. 2007, for pages): each bit is the vote of the
text's different runs of three words. Texts of which few runs differ have digests that differ in
few bits (`distance`); of texts that have nothing in common half of the bits differ, 32 +- 4.

- Words are letters in lower case. What holds a digit (numbers, dates, hashes) is none, so that a
  counter or a commit's id makes no new text. A character of a script that writes no spaces between
  words is a word.
- `echo` is what a page repeats of its own URL and title: its words count nowhere in the text.
- A run counts once, however often it comes. Order and place of paragraphs hardly matter.
- `text_runs` lists some of the runs themselves: these say how much of a text stands in others, too,
  each of which may say much more.
- The first `CHARS_MAX` characters are read. The digest is the same on every machine and release of
  Python: a word's hash is BLAKE2b's.

Runs are hashed all at once: word hashes are the lanes of one large integer, which is multiplied
and shifted. Measured: 40 to 50 microseconds of CPU a KB, 150 of a first text, whose words are new.
Of 150 pages of a manual, compared with each other, the nearest two differ in 12 bits or more.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
from hashlib import blake2b

CHARS_MAX = 65_536
# Hashes of words that are kept for the next text, at some 150 bytes each.
WORDS_KEPT = 16_384
# Of a text's runs one in so many is told, chosen by its hash.
RUNS_EACH = 4
# Thai to Burmese, Khmer, kana, Han, Yi, Han of later planes; Hangul has spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|\b[^\W\d_{_UNSPACED}]+\b")
_SPACED = "".join(
    chr(one).lower() if chr(one).isalpha() else "0" if chr(one).isdigit() else " "
    for one in range(128)
).encode() + bytes(128)
# A lane holds the sum of three products of 64 and 62 bits; its middle is well mixed.
_HASH_BYTES, _LANE_BYTES = 8, 16
_LANE_BITS, _MIDDLE_BITS = 128, 40
_FACTORS = (0x2545F4914F6CDD1D, 0x1B873593CC9E2D51, 0x369DEA0F31A53F85)
_ROOM = bytes(_LANE_BYTES - _HASH_BYTES)


def text_digest(text: str, echo: str = "") -> int:
    """Digest a text; 0 where no words are left."""
    runs = _runs(_own_words(text, echo))
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
    """List hashes of about one in `RUNS_EACH` of a text's runs, in any order.

    Which ones hangs on their hashes alone: two texts have the same ones of what both say.
    """
    runs = memoryview(_runs(_own_words(text, echo))).cast("Q")
    return tuple(run for run in runs if run % RUNS_EACH == 0)


def distance(one: int, other: int) -> int:
    """Count the bits in which two digests differ, of 64."""
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
    spaced = text.encode().translate(_SPACED)  # a third of the time
    if b"0" not in spaced:
        return spaced.split()
    return [word for word in spaced.split() if b"0" not in word]


def _runs(words: list[bytes]) -> bytes:
    """Hash each run of three words, the last ones of fewer; each hash once, in any order."""
    lanes = int.from_bytes(b"".join(map(_lane, words)), "little")
    mixed = sum(factor * (lanes >> place * _LANE_BITS) for place, factor in enumerate(_FACTORS))
    middles = (mixed >> _MIDDLE_BITS).to_bytes(len(words) * _LANE_BYTES, "little")
    return array("Q", set(memoryview(middles).cast("Q")[::2])).tobytes()


@lru_cache(maxsize=WORDS_KEPT)
def _lane(word: bytes) -> bytes:
    """Hash a word, and leave room for products."""
    return blake2b(word, digest_size=_HASH_BYTES).digest() + _ROOM
