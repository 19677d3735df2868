"""Compression of stored data: round trips, size, and speed on hostile text."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable

import pytest

from orbweaver.frontier import journal_codec
from orbweaver.frontier.journal import Journal
from orbweaver.model.compression import SMALL_BYTES_MAX, CompressionError, compress, decompress
from orbweaver.model.target import Target
from tests.costs import LINEAR, slope, within

SIZES = (0, 1, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, 500_000)


def of_letters(letters: str, size: int) -> bytes:
    table = bytes(ord(letters[byte % len(letters)]) for byte in range(256))
    return random.Random(size).randbytes(size).translate(table)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rest", [b"", b"behind", b"\x28\xb5\x2f\xfd", b"\x78\x9c"])
def test_compressed_text_round_trips_with_trailing_bytes(size: int, rest: bytes) -> None:
    plain = of_letters("ab", size)
    assert decompress(compress(plain) + rest) == (plain, rest)


@pytest.mark.parametrize("level", [1, 6, 9])
def test_decompress_reads_zlib_of_earlier_versions(level: int) -> None:
    plain = of_letters("abcdef", 200_000)
    assert decompress(zlib.compress(plain, level) + b"digests") == (plain, b"digests")


@pytest.mark.parametrize("size", SIZES)
def test_decompress_rejects_incomplete_or_foreign_bytes(size: int) -> None:
    blob = compress(of_letters("ab", size))
    for broken in (
        b"",
        blob[:3],
        blob[: len(blob) // 2],
        blob[:-1],
        b"other",
        b"\x28\xb5\x2f\xfdx",
    ):
        with pytest.raises(CompressionError):
            decompress(broken)


@pytest.mark.thorough
@pytest.mark.parametrize("letters", ["a", "ab", "aaaaaaaaab", "abcdefgh", "0123456789abcdef"])
def test_no_text_is_slow_to_compress(letters: str) -> None:
    def made(size: int) -> Callable[[], bytes]:
        text = of_letters(letters, size)
        return lambda: compress(text)

    assert within(0.5, made(5_000_000))
    assert slope(made, [1_250_000, 2_500_000, 5_000_000]) < LINEAR


@pytest.mark.thorough
def test_journal_of_hostile_links_is_encoded_quickly() -> None:
    found = random.Random(1)
    targets = tuple(
        Target(url=f"https://example.com/{''.join(found.choices('ab', k=1_990))}", depth=1)
        for _ in range(2_436)
    )
    journal = Journal(at_ms=1, candidates=targets)
    assert within(0.6, lambda: journal_codec.encode(journal))
    assert journal_codec.decode(journal_codec.encode(journal)) == journal


def test_journal_of_ordinary_links_is_within_3_percent_of_best_level() -> None:
    found = random.Random(2)
    words = [
        "".join(found.choices("abcdefghilmnoprstuwy", k=found.randint(2, 9))) for _ in range(80)
    ]
    for count in (20, 200, 2_000):
        rows = [
            [f"https://example.com/docs/{'-'.join(found.choices(words, k=4))}.html", 2, 0, 0, None]
            for _ in range(count)
        ]
        text = json.dumps(rows, separators=(",", ":")).encode()
        assert len(compress(text)) <= len(zlib.compress(text, 9)) * 1.03 + 16
