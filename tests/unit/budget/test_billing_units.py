"""AWS billing units: sizes, units, and names of counters."""

from __future__ import annotations

import pytest

from orbweaver.budget.billing_units import (
    CODES,
    Stage,
    Term,
    Units,
    chunks,
    read_halves,
    text_bytes,
    units_of,
    write_units,
)

KB = 1024


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
