"""Numbers on the live screen, interpolated between two readings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from orbweaver.cli.live.screen import SPAN_MS_MAX, ViewInterpolator
from orbweaver.control.progress.status import ProgressMeter
from orbweaver.model.crawl import State
from tests.unit.cli.views import reading_of


def shown(counts: list[int], *, apart_s: float = 1.0, **changes: object) -> list[int]:
    """Read a crawl once a second. Return the number of pages shown each time."""
    meter, glide = ProgressMeter(), ViewInterpolator()
    found = []
    for second, fetched in enumerate(counts):
        total = {"claimed": 100, "fetched": fetched}
        view = meter.add(reading_of(total, after_s=10 + second * apart_s, **changes))  # type: ignore[arg-type]
        drawn = glide.show(view)
        assert drawn.count("fetched") <= fetched
        assert drawn.reading.status.counters.done == drawn.count("fetched")
        found.append(drawn.count("fetched"))
    return found


def test_five_pages_per_five_seconds_move_by_one() -> None:
    counts = [5 * (second // 5) for second in range(31)]
    moved = shown(counts)[10:]
    assert {later - one for one, later in pairwise(moved)} == {1}


def test_other_counters_do_not_stop_pages() -> None:
    """Links are claimed between two commits, so their counter changes while the pages do not."""
    meter, glide = ProgressMeter(), ViewInterpolator()
    found = []
    for second in range(31):
        counts = {"claimed": 100 + second, "fetched": 5 * (second // 5)}
        view = glide.show(meter.add(reading_of(counts, after_s=10 + second)))
        found.append(view.count("fetched"))
    assert {later - one for one, later in pairwise(found[10:])} == {1}


def test_early_commit_is_spread_over_usual_interval() -> None:
    counts = [0, 5, 5, 5, 5, 5, 10, 11, 11, 11, 11]
    moved = shown(counts)
    assert max(later - one for one, later in pairwise(moved[6:])) <= 2


def test_ended_or_paused_crawl_shows_exact_numbers() -> None:
    meter, glide = ProgressMeter(), ViewInterpolator()
    for second, fetched in ((0, 0), (5, 5), (10, 10)):
        glide.show(meter.add(reading_of({"claimed": 10, "fetched": fetched}, after_s=second)))
    for state in (State.PAUSED, State.FINISHED):
        view = meter.add(reading_of({"claimed": 10, "fetched": 10}, after_s=11, state=state))
        assert glide.show(view) is view
    apart_s = SPAN_MS_MAX / 1000 + 1
    assert shown([0, 40, 80], apart_s=apart_s) == [0, 40, 80]


def test_number_moves_with_clock_and_never_exceeds_reading() -> None:
    meter, glide = ProgressMeter(), ViewInterpolator()
    for second, fetched in ((0, 0), (4, 4), (8, 8)):
        view = meter.add(reading_of({"claimed": 10, "fetched": fetched}, after_s=second))
        assert glide.show(view).count("fetched") == (4 if fetched == 8 else 0)
    view = meter.add(reading_of({"claimed": 10, "fetched": 8}, after_s=8))
    ages = {0: 4, 1_000: 5, 3_000: 7, 4_000: 8, 60_000: 8}
    for age_ms, fetched in ages.items():
        assert glide.show(replace(view, age_ms=age_ms)).count("fetched") == fetched
