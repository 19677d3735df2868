"""Difference of two texts, limited in size."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.diagnostics.run_comparison import AROUND, LINE_CHARS_MAX, LINES_MAX, text_diff

texts = st.lists(st.text(st.sampled_from("ab c."), max_size=12), max_size=12).map("\n".join)


def test_changed_words_are_marked_within_lines() -> None:
    found = text_diff("The price is 5 euro.\nSold out", "The price is 7 euro.\nSold out\nNew")
    assert [(line.before, line.after) for line in found.lines] == [
        (
            (("The price is ", False), ("5", True), (" euro.", False)),
            (("The price is ", False), ("7", True), (" euro.", False)),
        ),
        ((("Sold out", False),), (("Sold out", False),)),
        (None, (("New", True),)),
    ]
    assert not found.same


@given(texts, texts)
def test_shown_pieces_are_lines_of_both_texts(before: str, after: str) -> None:
    found = text_diff(before, after)
    for side, text in (("before", before), ("after", after)):
        shown = ["".join(piece for piece, _ in getattr(line, side) or ()) for line in found.lines]
        lines = iter(line for line in text.splitlines() if line.strip())
        assert all(one in lines for one in shown if one)
    for line in found.lines:
        if not any(differs for _, differs in (*(line.before or ()), *(line.after or ()))):
            assert line.before == line.after
    assert found.same == (before == after)


def test_equal_lines_are_skipped_except_context() -> None:
    lines = [f"line {number}" for number in range(50)]
    found = text_diff("\n".join(lines), "\n".join([*lines[:-1], "the end"]))
    assert len(found.lines) == AROUND + 1
    assert found.lines[0].skipped == 50 - AROUND - 1


def test_long_texts_take_bounded_cpu() -> None:
    before = "\n".join(f"a{number}" for number in range(3 * LINES_MAX))
    after = "\n".join(f"b{number}" for number in range(3 * LINES_MAX))
    started_s = time.process_time()
    found = text_diff(before, after)
    long = text_diff("x " * 10 * LINE_CHARS_MAX, "y " * 10 * LINE_CHARS_MAX)
    assert time.process_time() - started_s < 10
    assert (found.cut_before, found.cut_after) == (2 * LINES_MAX, 2 * LINES_MAX)
    assert len(long.lines[0].before or ()) == 1
