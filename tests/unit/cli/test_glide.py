"""Numbers on the screen between two readings that differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from orbweaver.cli.live.glide import SPAN_MS_MAX, Glide
from orbweaver.control.progress.status import ProgressMeter
from orbweaver.model.crawl import State
from tests.unit.cli.views import reading_of


def shown(counts: list[int], *, apart_s: float = 1.0, **changes: object) -> list[int]:
    """Have a crawl read once a second, and note how many pages are shown each time."""
    meter, glide = ProgressMeter(), Glide()
    found = []
    for second, fetched in enumerate(counts):
        total = {"claimed": 100, "fetched": fetched}
        view = meter.see(reading_of(total, after_s=10 + second * apart_s, **changes))  # type: ignore[arg-type]
        drawn = glide.show(view)
        assert drawn.of("fetched") <= fetched
        assert drawn.reading.status.counters.done == drawn.of("fetched")
        found.append(drawn.of("fetched"))
    return found


def test_one_page_a_second_moves_by_one() -> None:
    """Five pages every five seconds are shown as one each second."""
    counts = [5 * (second // 5) for second in range(31)]
    moved = shown(counts)[10:]
    assert {later - one for one, later in pairwise(moved)} == {1}


def test_other_counters_do_not_hold_it_up() -> None:
    """Links that are claimed between two commits are shown, and pages move on as before."""
    meter, glide = ProgressMeter(), Glide()
    found = []
    for second in range(31):
        counts = {"claimed": 100 + second, "fetched": 5 * (second // 5)}
        view = glide.show(meter.see(reading_of(counts, after_s=10 + second)))
        found.append(view.of("fetched"))
    assert {later - one for one, later in pairwise(found[10:])} == {1}


def test_a_commit_that_comes_early_is_no_hurry() -> None:
    """After five seconds one more comes after one: it takes most of five to be shown."""
    counts = [0, 5, 5, 5, 5, 5, 10, 11, 11, 11, 11]
    moved = shown(counts)
    assert max(later - one for one, later in pairwise(moved[6:])) <= 2


def test_what_is_over_or_paused_is_shown_as_it_is() -> None:
    """The last numbers are those of the books, and so are those after a silence."""
    meter, glide = ProgressMeter(), Glide()
    for second, fetched in ((0, 0), (5, 5), (10, 10)):
        glide.show(meter.see(reading_of({"claimed": 10, "fetched": fetched}, after_s=second)))
    for state in (State.PAUSED, State.FINISHED):
        view = meter.see(reading_of({"claimed": 10, "fetched": 10}, after_s=11, state=state))
        assert glide.show(view) is view
    apart_s = SPAN_MS_MAX / 1000 + 1
    assert shown([0, 40, 80], apart_s=apart_s) == [0, 40, 80]


def test_between_readings_the_clock_moves_it() -> None:
    """A view that has become older is further on its way, and never beyond what was read."""
    meter, glide = ProgressMeter(), Glide()
    for second, fetched in ((0, 0), (4, 4), (8, 8)):
        view = meter.see(reading_of({"claimed": 10, "fetched": fetched}, after_s=second))
        assert glide.show(view).of("fetched") == (4 if fetched == 8 else 0)
    view = meter.see(reading_of({"claimed": 10, "fetched": 8}, after_s=8))
    ages = {0: 4, 1_000: 5, 3_000: 7, 4_000: 8, 60_000: 8}
    for age_ms, fetched in ages.items():
        assert glide.show(replace(view, age_ms=age_ms)).of("fetched") == fetched
