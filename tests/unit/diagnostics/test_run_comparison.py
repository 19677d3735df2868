"""Comparison of two runs by page and by text, and sections of a site."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.diagnostics.run_comparison import (
    AROUND,
    LEVELS_MAX,
    LINE_CHARS_MAX,
    LINES_MAX,
    SECTIONS_MAX,
    SHOWN_MAX,
    PageDifference,
    SiteSections,
    compared,
    counts_of,
    state_of,
    text_diff,
)
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

URL = "https://example.com/"
PAGE = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "sha256": "a", "title": "One"}
OTHER = {**PAGE, "sha256": "b", "title": "Two"}
STILL = {"outcome": Outcome.UNCHANGED, "reason": Reason.NOT_MODIFIED, "sha256": None}
MOVED = {"outcome": Outcome.REDIRECTED, "reason": Reason.REDIRECT, "error": f"{URL}new"}
GONE = {"outcome": Outcome.FAILED, "reason": Reason.HTTP_CLIENT_ERROR, "status": 404}
SOFT = {**PAGE, "reason": Reason.SOFT_404}
DOWN = {"outcome": Outcome.FAILED, "reason": Reason.TIMEOUT}


def states(fields: dict[str, Any] | None) -> dict[str, Any]:
    """Return the states of a run with one record, or with no record."""
    if fields is None:
        return {}
    return {URL: state_of(PageRecord(crawl="c", url=URL, fetched_at=0, depth=0, **fields))}


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        (None, PAGE, "new"),
        (GONE, PAGE, "new"),
        (MOVED, PAGE, "new"),
        (PAGE, PAGE, "unchanged"),
        (PAGE, STILL, "unchanged"),
        (PAGE, OTHER, "changed"),
        (PAGE, MOVED, "moved"),
        (PAGE, GONE, "gone"),
        (PAGE, SOFT, "gone"),
        (PAGE, DOWN, "failed"),
        (PAGE, None, "not_seen"),
        (DOWN, None, None),
        (None, DOWN, None),
        (None, GONE, None),
        (GONE, GONE, None),
    ],
)
def test_difference_follows_states_of_both_runs(
    before: dict[str, Any] | None, after: dict[str, Any] | None, difference: str | None
) -> None:
    found = list(compared(states(before), states(after)))
    assert [page.difference for page in found] == ([] if difference is None else [difference])
    counts = counts_of(found)
    assert set(counts) == set(PageDifference)
    assert sum(counts.values()) == len(found)


def test_titles_and_redirect_target_are_compared() -> None:
    (changed,) = compared(states(PAGE), states(OTHER))
    assert (changed.title_before, changed.title, changed.said) == ("One", "Two", None)
    (moved,) = compared(states(PAGE), states(MOVED))
    assert (moved.title_before, moved.said) == ("One", f"{URL}new")


# --- texts ----------------------------------------------------------------------------------------

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


# --- sections -------------------------------------------------------------------------------------

SITE = "https://example.com"


def record(url: str, **fields: Any) -> PageRecord:
    known: dict[str, Any] = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 1}
    return PageRecord(crawl="c", url=url, fetched_at=0, **{**known, **fields})


def summed(*records: PageRecord) -> SiteSections:
    found = SiteSections()
    for one in records:
        found.add(one)
    return found


def test_urls_are_summed_by_folder() -> None:
    found = summed(
        record(f"{SITE}/", depth=0, latency_ms=100, bytes=10),
        record(f"{SITE}/books/1?page=2", latency_ms=300, bytes=5),
        record(f"{SITE}/books/2", depth=3, outcome=Outcome.FAILED, reason=Reason.TIMEOUT),
        record("https://other.example/x"),
    )
    whole = found.shown("")
    assert whole is not None
    assert [row["at"] for row in whole["inner"]] == [SITE, "https://other.example"]
    host = found.shown(SITE)
    assert host is not None
    assert {key: host[key] for key in ("urls", "failed", "latency_ms", "bytes", "depth")} == {
        "urls": 3,
        "failed": 1,
        "latency_ms": 200,
        "bytes": 15,
        "depth": 0,
    }
    assert (host["own"], [row["at"] for row in host["inner"]]) == (1, [f"{SITE}/books"])
    books = found.shown(f"{SITE}/books")
    assert books is not None
    assert [(row["at"], row["sections"]) for row in books["inner"]] == [
        (f"{SITE}/books/1", 0),
        (f"{SITE}/books/2", 0),
    ]
    assert found.shown(f"{SITE}/nothing") is None


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=LEVELS_MAX + 3), max_size=30))
def test_urls_of_section_are_own_plus_inner(paths: list[list[str]]) -> None:
    found = summed(*(record(f"{SITE}/{'/'.join(path)}") for path in paths))
    prefixes = [""]
    while prefixes:
        shown = found.shown(prefixes.pop())
        assert shown is not None
        assert shown["urls"] == shown["own"] + sum(row["urls"] for row in shown["inner"])
        prefixes += [row["at"] for row in shown["inner"]]


def test_number_of_sections_is_bounded() -> None:
    found = SiteSections()
    tracemalloc.start()
    for number in range(2 * SECTIONS_MAX):
        found.add(record(f"{SITE}/{number}/{'x/' * 20}"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 40_000_000
    host = found.shown(SITE)
    assert host is not None
    assert host["urls"] == 2 * SECTIONS_MAX
    assert len(host["inner"]) == SHOWN_MAX
    assert host["inner_more"] > 0
