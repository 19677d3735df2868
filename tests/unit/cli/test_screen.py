"""The live screen: exact pictures, properties of all pictures, rates and numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text

from orbweaver.cli.live import lines as words
from orbweaver.cli.live import screen
from orbweaver.cli.live.screen import SPAN_MS_MAX, Block, ViewInterpolator, draw, fit, sparkline
from orbweaver.control.progress.forecast import BARS_MAX, GAP_MS, RateHistory, Rates
from orbweaver.control.progress.status import ProgressMeter, View, as_json
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import State, Stop
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.outcome import Outcome, Refusal
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from tests.unit.cli.views import CRAWL, NOW_MS, example, reading_of, view_of

FOOTER = "Ctrl-C stops watching; the crawl continues"
BUDGETS: dict[str, Any] = {"pages_max": 5_000, "nanodollars_max": 50_000_000}
GUIDE = Path(__file__).parents[3] / "docs/operations.md"

SMALL = """\
shop-20261121-090000                                              running · 4:00
━━━━━━━━━━━━━━━━━━━━━━━─────────────────────────  745 of 1,532 known URLs · 48 %
pages     725 fetched · 5 redirected · 6 skipped · 9 failed
left      at least 10 min: 590 URLs left on shop.example, one every 1 s; new li…
rate      2.3 URLs a second now · 3.1 mean · 4.9 peak  ······█▅▅▄▄▄▄▇████▇▄▄▄▄▅▅
cost      $0.012 so far (estimate) · $0.017 per 1,000 pages
host          done  queued  failed  paced at  next request
shop.example   610     590       2       1 s  now
and 2 more hosts
failed    http_client_error 7 · connect 2
"""
NEW = """\
shop-20261121-090000                                              running · 1:00
shop.example and 2 more · scope host · depth 20 · 1 s apart
───────────────────────────────────────────────────────  0 of 0 known URLs · 0 %

pages     0 fetched
left      starting…
rate      0.0 URLs a second now · 0.0 mean · 0.0 peak

host                     done  queued  failed  paced at  next request
shop.example                0       0       0       1 s  -
docs.example                0       0       0       1 s  -
http://old.example:8080     0       0       0       1 s  -

Ctrl-C stops watching; the crawl continues
"""
PAUSED = """\
shop-20261121-090000                                               paused · 4:00
━━━━━━━━━━━━━━━━━━━━━━━─────────────────────────  745 of 1,532 known URLs · 48 %
pages     725 fetched · 5 redirected · 6 skipped · 9 failed
stale     no answer from the stack; last seen 12 s ago
paused    continue with `orbweaver resume shop-20261121-090000`
dead      3 messages that could not be processed: `orbweaver dlq list`
rate      2.3 URLs a second now · 3.1 mean · 4.9 peak  ······█▅▅▄▄▄▄▇████▇▄▄▄▄▅▅
"""


def picture(view: View, columns: int, lines: int | None, footer: str = "") -> str:
    return "".join(f"{line.plain.rstrip()}\n" for line in draw(view, columns, lines, footer))


# --- exact pictures -----------------------------------------------------------------------------


def test_guide_shows_screen_of_80_by_24() -> None:
    drawn = picture(example(**BUDGETS), 80, 24, FOOTER)
    assert len(drawn.splitlines()) <= 24
    assert f"```text\n{drawn}```" in GUIDE.read_text()


def test_guide_lists_fields_of_json() -> None:
    listed = GUIDE.read_text().partition("crawl, name, state, stop ")[2].partition("```")[0]
    body = as_json(example(**BUDGETS))
    names = {*body, *body["hosts"][0], *body["budgets"][0], *body["queue"], *body["rate"]}
    assert names <= set(re.findall(r"\w+", f"crawl, name, state, stop {listed}"))


def test_small_terminal_keeps_important_lines() -> None:
    assert picture(example(**BUDGETS), 80, 10, FOOTER) == SMALL
    larger = picture(example(**BUDGETS), 80, 20, FOOTER)
    assert FOOTER in larger
    assert "scope host" not in larger


def test_new_crawl_shows_unknown_values() -> None:
    assert picture(view_of({}, depths=None), 80, 24, FOOTER) == NEW


def test_unreachable_stack_shows_age_of_numbers_first() -> None:
    view = replace(example(state=State.PAUSED, depths=Depths(dead=3)), age_ms=12_000)
    assert picture(view, 80, 7, FOOTER) == PAUSED
    assert picture(view, 80, 2, FOOTER).splitlines() == PAUSED.splitlines()[:2]


def test_wide_terminal_shows_high_bars_and_whole_names() -> None:
    drawn = picture(example(**BUDGETS), 300, 60, FOOTER)
    assert "http://old.example:8080    12" in drawn
    assert "one every 1 s; new links make it longer\n" in drawn
    assert max(map(len, drawn.splitlines())) == screen.COLUMNS_MAX
    assert len([line for line in drawn.splitlines() if "█" in line]) == 3


def test_ended_crawl_shows_times_and_no_forecast() -> None:
    ended = {"state": State.FINISHED, "stop": Stop.CANCELLED, "finished_at_ms": NOW_MS + 240_000}
    drawn = picture(example(**ended), 80, None)
    assert "finished: it was cancelled · 4:00\n" in drawn
    assert "rate      3.1 URLs a second from start to end\n" in drawn
    assert "cost      $0.012 in all (estimate)" in drawn
    assert "left  " not in drawn
    assert "blocked" not in drawn
    assert "  now\n" not in drawn


def test_screen_without_colours_has_same_information() -> None:
    (bar,) = (line for line in draw(example(), 80, None) if "━" in line.plain)
    assert {span.style for span in bar.spans} >= {"green", "dim"}
    assert bar.plain.count("━") / bar.plain.count("─") == pytest.approx(745 / 787, abs=0.1)


def test_words_wrap_where_they_no_longer_fit() -> None:
    said = "aaaa; bbbb; c; dddd; eeee"
    assert screen._wrap(said, 11) == ["aaaa; bbbb;", "c; dddd;", "eeee"]
    assert screen._wrap(said, 10) == ["aaaa;", "bbbb; c;", "dddd; eeee"]


def test_bar_has_ten_cells_at_least() -> None:
    bar = screen._bar(view_of({"claimed": 10, "fetched": 5}), 12).plain
    assert bar.startswith("━" * 5 + "─" * 5 + "  5 of 10")


def test_hidden_blocks_return_where_they_fit() -> None:
    def block(*sizes: tuple[int, int]) -> Block:
        return Block(sizes=tuple((rank, (Text(str(rank)),) * count) for rank, count in sizes))

    blocks = [block((1, 2)), block((9, 1)), block((5, 4), (3, 3)), block()]
    assert [line.plain for line in fit(blocks, None)] == ["1"] * 2 + ["9"] + ["5"] * 4
    assert [line.plain for line in fit(blocks, 6)] == ["1"] * 2 + ["5"] * 4
    assert [line.plain for line in fit(blocks, 5)] == ["1"] * 2 + ["3"] * 3
    assert [line.plain for line in fit(blocks, 4)] == ["1"] * 2 + ["9"]
    assert fit(blocks, 0) == []


def test_unreachable_robots_txt_is_shown_at_first_attempt() -> None:
    entry = RobotsEntry(
        fetched_at_ms=NOW_MS + 1, verdict="unreachable", detail="connection refused"
    )
    hosts = (Host(name="https://shop.example", robots=entry),)
    given: dict[str, Any] = {"seeds": ("https://shop.example/",), "hosts": hosts}
    view = view_of({"claimed": 1, "retries": 1}, hosts_counted=("https://shop.example",), **given)
    said = "shop.example/robots.txt could not be fetched: connection refused; it is retried"
    assert f"robots    {said}\n" in picture(view, 120, None)
    assert "no robots.txt: connection refused" in picture(view, 120, None)
    assert words.line(view).endswith(said)
    counts = {"claimed": 1, "skipped": 1, "skipped.robots_unreachable": 1}
    over = view_of({**counts, "robots_unreachable.connect": 1}, state=State.FINISHED, **given)
    assert "skipped   robots_unreachable (no connection) 1\n" in picture(over, 120, None)
    assert "could not be had" not in picture(over, 120, None)


def test_every_refusal_reason_has_text() -> None:
    assert all(refusal.short for refusal in Refusal)


# --- all pictures -------------------------------------------------------------------------------

COUNTS = st.integers(0, 10**12)
REASONS = st.sampled_from(["failed.dns", "skipped.robots", "refused.scope", "failed.\x1b[2J"])
OTHERS = st.sampled_from(
    ["claimed", "seeds", "bytes", "retries", "deferrals", "nanodollars", "received_bytes"]
    + [f"host.{place}.{what}" for place in range(3) for what in ("claimed", "done", "failed")]
)
COUNTS_OF_HOSTS = st.dictionaries(st.sampled_from(Outcome) | REASONS | OTHERS, COUNTS, max_size=20)
MOMENTS = st.integers(NOW_MS - 10**6, NOW_MS + 10**9)
HOSTS = st.builds(
    Host,
    name=st.sampled_from(CRAWL.hosts_counted),
    tat_ms=MOMENTS,
    line_ms=MOMENTS,
    blocked_until_ms=MOMENTS,
    strikes=st.integers(0, 10**6),
    failures=st.integers(0, 20),
)
CHANGES = st.fixed_dictionaries(
    {
        "state": st.sampled_from(State),
        "stop": st.none() | st.sampled_from(Stop),
        "scope": st.sampled_from(Scope),
        "delay_ms": st.integers(0, 86_400_000),
        "pages_max": st.integers(1, 10**8),
        "duration_max_s": st.integers(60, 604_800),
        "continuous": st.booleans(),
        "bytes_max": st.none() | st.integers(1, 10**15),
        "nanodollars_max": st.none() | st.integers(1, 10**15),
        "host_pages_max": st.none() | st.integers(1, 10**6),
        "hosts_counted": st.sampled_from([(), CRAWL.hosts_counted]),
        "after_s": st.floats(-100, 10**6),
        "depths": st.none() | st.builds(Depths, waiting=COUNTS, delayed=COUNTS, dead=COUNTS),
        "hosts": st.lists(HOSTS, max_size=3).map(tuple),
    }
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(
    readings=st.lists(st.tuples(COUNTS_OF_HOSTS, CHANGES), min_size=1, max_size=4),
    columns=st.integers(0, 220),
    lines=st.integers(0, 60),
    age_ms=st.integers(0, 10**7),
    footer=st.sampled_from(["", FOOTER]),
)
def test_every_screen_fits_for_any_readings(
    readings: list[tuple[dict[str, int], dict[str, Any]]],
    columns: int,
    lines: int,
    age_ms: int,
    footer: str,
) -> None:
    meter = ProgressMeter()
    views = [meter.add(reading_of(counts, **changes)) for counts, changes in readings]
    view = replace(views[-1], age_ms=age_ms)
    drawn = draw(view, columns, lines, footer)
    assert len(drawn) <= lines
    assert all(line.cell_len <= max(1, columns) for line in drawn)
    said = [line.plain for line in drawn] + [words.line(view)]
    assert all(text.isprintable() for text in said)
    assert view.forecast.left_s is None or view.forecast.left_s >= 0
    rates = view.rates
    assert 0 <= rates.now <= rates.peak
    assert 0 <= rates.mean <= rates.peak
    assert all(bar is None or 0 <= bar <= rates.peak + 1e-6 for bar in rates.bars)
    assert all(0 <= budget.share <= 1 for budget in view.budgets)
    assert all(row.bound_ms >= 0 and row.wait_ms >= 0 for row in view.hosts)
    body = as_json(view)
    assert body["left_s"] is None or body["left_s"] >= 0


# --- numbers between two readings -----------------------------------------------------------------


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
    assert {later - one for one, later in pairwise(shown(counts)[10:])} == {1}


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
    assert max(later - one for one, later in pairwise(shown(counts)[6:])) <= 2


def test_ended_or_paused_crawl_shows_exact_numbers() -> None:
    meter, glide = ProgressMeter(), ViewInterpolator()
    for second, fetched in ((0, 0), (5, 5), (10, 10)):
        glide.show(meter.add(reading_of({"claimed": 10, "fetched": fetched}, after_s=second)))
    for state in (State.PAUSED, State.FINISHED):
        view = meter.add(reading_of({"claimed": 10, "fetched": 10}, after_s=11, state=state))
        assert glide.show(view) is view
    assert shown([0, 40, 80], apart_s=SPAN_MS_MAX / 1000 + 1) == [0, 40, 80]


def test_number_moves_with_clock_and_never_exceeds_reading() -> None:
    meter, glide = ProgressMeter(), ViewInterpolator()
    for second, fetched in ((0, 0), (4, 4), (8, 8)):
        view = meter.add(reading_of({"claimed": 10, "fetched": fetched}, after_s=second))
        assert glide.show(view).count("fetched") == (4 if fetched == 8 else 0)
    view = meter.add(reading_of({"claimed": 10, "fetched": 8}, after_s=8))
    ages = {0: 4, 1_000: 5, 3_000: 7, 4_000: 8, 60_000: 8}
    for age_ms, fetched in ages.items():
        assert glide.show(replace(view, age_ms=age_ms)).count("fetched") == fetched


# --- rates and their bars -------------------------------------------------------------------------

START_MS = 1_795_251_600_000


def seen(*readings: tuple[float, int]) -> Rates:
    history, rates = RateHistory(), Rates(now=0, mean=0, peak=0)
    for after_s, done in readings:
        after_ms = round(after_s * 1000)
        rates = history.add(START_MS + after_ms, done, started_at_ms=START_MS, elapsed_ms=after_ms)
    return rates


@pytest.mark.parametrize(
    ("readings", "now", "mean", "peak"),
    [
        ([(0, 0)], 0, 0, 0),
        ([(10, 50)], 5, 5, 5),  # a single reading covers the whole run
        ([(30, 0), (40, 50)], 5, 1.25, 5),  # no process worked before
        ([(s, 2 * s) for s in range(31)], 2, 2, 2),
        ([*((s, 10 * s) for s in range(21)), (60, 200), (70, 200)], 0, 200 / 70, 10),
        ([(10, 50), (5, 60)], 12, 12, 12),  # the clock was set back
        ([(10, 50), (11, 40)], 0, 40 / 11, 5),  # counts never fall
    ],
)
def test_rates_have_now_mean_and_peak(
    readings: list[tuple[float, int]], now: float, mean: float, peak: float
) -> None:
    rates = seen(*readings)
    assert (rates.now, rates.mean, rates.peak) == pytest.approx((now, mean, peak))


def test_bars_follow_clock_and_leave_gaps() -> None:
    rates = seen((0, 0), (2, 4), (7, 14), (11, 22), (60, 500), (66, 500), (70, 504))
    assert rates.bars[0] == pytest.approx(2)
    assert rates.bars[1:-1] == (None,) * 11
    assert rates.bars[-1] == pytest.approx(0.8)


@pytest.mark.parametrize(("gap_ms", "bars"), [(GAP_MS, (2, 2, 2)), (GAP_MS + 1, (2, None, None))])
def test_readings_closer_than_a_gap_have_bars(gap_ms: int, bars: tuple[float | None, ...]) -> None:
    rates = seen((0, 0), (5, 10), (10, 20), (10 + gap_ms / 1000, 20 + 2 * gap_ms // 1000))
    assert rates.bars == pytest.approx(bars)


def test_bars_are_bounded_after_long_pause() -> None:
    rates = seen((0, 0), (5, 1), (10, 2), (10_000_000, 3), (10_000_005, 4), (10_000_010, 5))
    assert len(rates.bars) == BARS_MAX
    assert rates.bars[-1] == pytest.approx(0.2)
    assert set(rates.bars[:-1]) == {None}


@pytest.mark.parametrize(
    ("numbers", "columns", "lines", "drawn"),
    [
        ([], 8, 1, [""]),
        ([0, 0], 8, 1, ["▁▁"]),
        ([0, 1, 4, 8], 8, 1, ["▁▃▅█"]),
        ([1, None, 8], 8, 1, ["▃·█"]),
        ([1, None, 8], 2, 1, ["·█"]),
        ([0, 0.001, 8], 8, 2, ["  █", "▁▂█"]),
        ([8, None, 4], 8, 3, ["█  ", "█ ▅", "█·█"]),
        ([1, 2], 0, 1, [""]),
        ([1, 2], -3, 0, []),
    ],
)
def test_sparkline_shows_zero_as_lowest_bar_and_unknown_as_dot(
    numbers: list[float | None], columns: int, lines: int, drawn: list[str]
) -> None:
    assert sparkline(numbers, columns, lines) == drawn
