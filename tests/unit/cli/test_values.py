"""Values of options, as people type them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from orbweaver.cli import option_types
from orbweaver.cli.option_types import Threshold


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("0s", 0),
        ("250ms", 250),
        ("1.5s", 1_500),
        ("1.5", 1_500),
        ("2", 2_000),
        ("90m", 5_400_000),
        ("2H", 7_200_000),
        ("7d", 604_800_000),
        (" 1s ", 1_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    """A number with a unit is a duration, a plain one means seconds."""
    assert option_types.duration_ms(text) == ms


@pytest.mark.parametrize(("text", "s"), [("0", 0), ("1ms", 1), ("1001ms", 2), ("7d", 604_800)])
def test_windows_are_rounded_up(text: str, s: int) -> None:
    """A window that is not 0 never becomes 0."""
    assert option_types.duration_s(text) == s


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("1000", 1000), ("1_000", 1000), ("1,000", 1000)]
)
def test_counts(text: str, number: int) -> None:
    """Thousands may be set apart."""
    assert option_types.count(text) == number


@pytest.mark.parametrize(
    ("text", "threshold", "over", "under"),
    [
        ("0", Threshold(number=0), (1, 10), (0, 10)),
        ("10", Threshold(number=10), (11, 20), (10, 20)),
        ("2.5%", Threshold(number=2.5, percent=True), (26, 1_000), (25, 1_000)),
        ("0%", Threshold(number=0, percent=True), (1, 1_000), (0, 0)),
    ],
)
def test_thresholds(
    text: str, threshold: Threshold, over: tuple[int, int], under: tuple[int, int]
) -> None:
    """A number of failures or a share of all URLs: more than that is too many."""
    assert option_types.threshold(text) == threshold
    assert threshold.exceeded(*over)
    assert not threshold.exceeded(*under)


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (option_types.duration_ms, "1x", "give 0s, 250ms, 1.5s, 2h or 7d"),
        (option_types.duration_ms, "", "not a duration"),
        (option_types.duration_ms, "-1s", "'-1s' is not a duration"),
        (option_types.duration_ms, "1,5s", "not a duration"),
        (option_types.duration_ms, "nan", "not a duration"),
        (option_types.count, "1.5", "'1.5' is not a whole number"),
        (option_types.count, "-3", "not a whole number"),
        (option_types.count, "1,00", "not a whole number"),
        (option_types.count, "٣", "not a whole number"),
        (option_types.threshold, "ten", "give 0, 10 or 2.5%"),
        (option_types.threshold, "1.5", "give 0, 10 or 2.5%"),
        (option_types.day, "21.11.2026", "a day is written YYYY-MM-DD"),
        (option_types.pair, "target", "give KEY=VALUE"),
        (option_types.pair, "=x", "give KEY=VALUE"),
        (option_types.one_of(["host", "any"]), "hots", "did you mean host? It takes host or any"),
        (option_types.one_of(["host", "prefix", "any"]), "?", "give host, prefix or any"),
        (option_types.one_of(["jsonl"]), "csv", "give jsonl"),
    ],
)
def test_what_does_not_fit_says_what_would(
    read: Callable[[str], Any], text: str, said: str
) -> None:
    """Each error names the value and what would have fitted."""
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert said in str(caught.value)


def test_what_fits() -> None:
    """Days, pairs and words pass through."""
    assert option_types.day("2026-11-21") == "2026-11-21"
    assert option_types.pair("a=b=c") == ("a", "b=c")
    assert option_types.one_of(["host", "any"])("any") == "any"
