"""Sizes and dollar amounts as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.model.amounts import AmountError, dollars_text, nanodollars, size_bytes, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000", 1_000),
        ("7B", 7),
        ("1KB", 1_000),
        (" 500 mb ", 500_000_000),
        ("1.5GB", 1_500_000_000),
        ("2TB", 2 * 10**12),
        ("1KiB", 1_024),
        ("1.5 MiB", 1_572_864),
        ("0.1KB", 100),
    ],
)
def test_size_bytes_parses_units(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "10G", "MB", "-1", "1e9", "1,000", "1 000", "1" * 19])
def test_size_bytes_rejects_other_text_with_example(text: str) -> None:
    with pytest.raises(AmountError, match="is not a size: give 500MB, 10GB or a number of bytes"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("5", 5 * 10**9), ("0.25", 250_000_000), ("$1.5", 1_500_000_000), ("0.000000001", 1)],
)
def test_nanodollars_are_exact(text: str, amount: int) -> None:
    assert nanodollars(text) == amount


@pytest.mark.parametrize("text", ["", "$", "5 dollars", "-1", "1e3", "5€", "1,5", "inf"])
def test_nanodollars_rejects_other_text_with_example(text: str) -> None:
    with pytest.raises(AmountError, match=r"is not an amount of dollars: give one like 5 or 0\.25"):
        nanodollars(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_amounts_round_trip_through_text(amount: int) -> None:
    assert size_bytes(size_text(amount)) == amount
    assert nanodollars(dollars_text(amount)) == amount


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999B"), (10**10, "10GB"), (1_500_000, "1500KB"), (1_024, "1024B")]
)
def test_size_text_uses_largest_exact_unit(size: int, text: str) -> None:
    assert size_text(size) == text
