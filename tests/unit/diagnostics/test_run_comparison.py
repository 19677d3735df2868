"""Comparison of two runs by page."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.diagnostics.run_comparison import PageDifference, compared, counts_of, state_of
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
