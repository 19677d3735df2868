"""Values of options."""

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
def test_duration_without_unit_is_in_seconds(text: str, ms: int) -> None:
    assert option_types.duration_ms(text) == ms


@pytest.mark.parametrize(("text", "s"), [("0", 0), ("1ms", 1), ("1001ms", 2), ("7d", 604_800)])
def test_window_above_0_is_rounded_up(text: str, s: int) -> None:
    assert option_types.duration_s(text) == s


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("1000", 1000), ("1_000", 1000), ("1,000", 1000)]
)
def test_count_may_have_thousands_separators(text: str, number: int) -> None:
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
def test_threshold_is_a_count_or_a_share(
    text: str, threshold: Threshold, over: tuple[int, int], under: tuple[int, int]
) -> None:
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
        (option_types.count, "-3", "'-3' is too small: give 0 or more"),
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
def test_invalid_value_error_has_value_and_fix(
    read: Callable[[str], Any], text: str, said: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert said in str(caught.value)


def test_days_pairs_and_words_are_accepted() -> None:
    assert option_types.day("2026-11-21") == "2026-11-21"
    assert option_types.pair("a=b=c") == ("a", "b=c")
    assert option_types.one_of(["host", "any"])("any") == "any"
