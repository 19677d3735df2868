"""AWS billing units: sizes, units, and names of counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.budget.billing_units import (
    CODES,
    Stage,
    Term,
    Units,
    chunks,
    item_bytes,
    number_bytes,
    read_halves,
    text_bytes,
    units_of,
    write_units,
)

KB = 1024


@pytest.mark.parametrize(
    ("item", "size_bytes"),
    [
        ({}, 0),
        ({"k": {"S": ""}}, 1),
        ({"k": {"S": "abc"}}, 4),
        ({"größe": {"S": "ß"}}, 7 + 2),
        ({"k": {"B": b"\x00" * 10}}, 11),
        ({"k": {"BOOL": True}}, 2),
        ({"k": {"NULL": True}}, 2),
        ({"k": {"N": "1"}}, 1 + 2),
        ({"k": {"L": []}}, 1 + 3),
        ({"k": {"L": [{"S": "ab"}, {"BOOL": False}]}}, 1 + 3 + (1 + 2) + (1 + 1)),
        ({"k": {"M": {}}}, 1 + 3),
        ({"k": {"M": {"ab": {"S": "c"}}}}, 1 + 3 + (1 + 2 + 1)),
        ({"k": {"SS": ["ab", "c"]}}, 1 + 3),
        ({"k": {"NS": ["10", "125"]}}, 1 + 2 + 3),
        ({"k": {"BS": [b"ab", b"c"]}}, 1 + 3),
        ({"a": {"S": "b"}, "c": {"S": "d"}}, 4),
    ],
)
def test_item_bytes_counts_names_values_and_containers(
    item: dict[str, dict[str, object]], size_bytes: int
) -> None:
    assert item_bytes(item) == size_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 1),
        ("-0", 1),
        ("0.000", 1),
        ("1", 2),
        ("10", 2),
        ("99", 2),
        ("100", 2),
        ("101", 3),
        ("1000", 2),
        ("1763766076123", 8),
        ("1763766076000", 7),
        ("-5", 3),
        ("0.5", 2),
        ("12.5", 3),
        ("123.456", 5),
        ("1e3", 2),
        ("1.5E-7", 2),
        ("1.5E-6", 3),
        ("-123456789012345678901234567890.12345678", 21),
    ],
)
def test_number_bytes_counts_pairs_of_digits(text: str, size_bytes: int) -> None:
    """One byte per pair of digits around the decimal point, plus one; a minus adds one."""
    assert number_bytes(text) == size_bytes


@given(st.integers(-(10**37), 10**37))
def test_number_bytes_is_within_limits_for_any_number(number: int) -> None:
    digits = len(str(abs(number)).rstrip("0"))
    assert 0 <= number_bytes(str(number)) - 1 - (digits + 1) // 2 <= 1 + (number < 0)


def test_text_bytes_counts_lone_surrogate() -> None:
    assert text_bytes("a\ud800") == 4


@pytest.mark.parametrize(
    ("size_bytes", "units"), [(0, 1), (1, 1), (KB, 1), (KB + 1, 2), (400 * KB, 400)]
)
def test_write_units_round_up_to_kilobytes(size_bytes: int, units: int) -> None:
    assert write_units(size_bytes) == units
    assert write_units(size_bytes, transacted=True) == 2 * units


@pytest.mark.parametrize(("size_bytes", "units"), [(0, 1), (4 * KB, 1), (4 * KB + 1, 2)])
def test_read_halves_round_up_to_4_kilobytes(size_bytes: int, units: int) -> None:
    assert read_halves(size_bytes, consistent=False) == units
    assert read_halves(size_bytes, consistent=True) == 2 * units


@pytest.mark.parametrize(
    ("size_bytes", "number"), [(0, 1), (64 * KB, 1), (64 * KB + 1, 2), (KB * KB, 16)]
)
def test_chunks_round_up_to_64_kilobytes(size_bytes: int, number: int) -> None:
    assert chunks(size_bytes) == number


def test_every_counter_has_distinct_code() -> None:
    assert len(CODES) == len(Term) * len(Stage) == len(set(CODES.values()))
    assert CODES["units.write.claim"] == "wk"
    assert {len(code) for code in CODES.values()} == {2}


def test_counters_round_trip_through_names() -> None:
    units = Units()
    units.use(Term.WRITE, Stage.CLAIM, 3)
    units.use(Term.WRITE, Stage.COMMIT, 4)
    units.use(Term.SQS, Stage.SEND, 1)
    units.use(Term.S3_PUT, Stage.BODIES, 0)
    counts = units.counts
    assert counts == {"units.write.claim": 3, "units.write.commit": 4, "units.sqs.send": 1}
    others = {"fetched": 9, "units.gold.claim": 1, "units.write.dig": 1, "units.write": 1}
    read = units_of({**counts, **others})
    assert read.by_term == {Term.WRITE: 7, Term.SQS: 1}
    assert {stage: part.by_term for stage, part in read.by_stage.items()} == {
        Stage.CLAIM: {Term.WRITE: 3},
        Stage.COMMIT: {Term.WRITE: 4},
        Stage.SEND: {Term.SQS: 1},
    }
