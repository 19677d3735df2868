"""Yield of a run compared with the run before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.yield_drop import drop_percent, pages_of, run_to_compare
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.url_rules import UrlRule

DAY_S = 86_400
DAY_MS = DAY_S * 1000
RUN = Crawl(
    id="shop-2", name="shop", started_at_ms=10 * DAY_MS, window_s=DAY_S, work="the same work"
)
EARLIER = replace(
    RUN,
    id="shop-1",
    started_at_ms=8 * DAY_MS,
    finished_at_ms=8 * DAY_MS + 1000,
    state=State.FINISHED,
    stop=Stop.FINISHED,
)


def test_run_before_is_newest_of_same_name() -> None:
    older = replace(EARLIER, id="shop-0", started_at_ms=1 * DAY_MS)
    later = replace(EARLIER, id="shop-3", started_at_ms=11 * DAY_MS)
    other = replace(EARLIER, id="other-1", name="other", started_at_ms=9 * DAY_MS)
    assert run_to_compare(RUN, [RUN, older, EARLIER, later, other]) == EARLIER
    assert run_to_compare(RUN, [RUN, other, later]) is None


@pytest.mark.parametrize(
    ("run", "earlier"),
    [
        pytest.param({}, {"work": "other work"}, id="other options"),
        pytest.param({"work": None}, {"work": None}, id="of an earlier version"),
        pytest.param({}, {"state": State.RUNNING, "finished_at_ms": None}, id="still running"),
        pytest.param({}, {"stop": Stop.CANCELLED}, id="cancelled"),
        pytest.param({}, {"finished_at_ms": 9 * DAY_MS}, id="its claims still hold"),
        pytest.param(
            {"rules": (UrlRule(match="/a", window_s=3 * DAY_S),)}, {}, id="some still hold"
        ),
        pytest.param({"retry_of": "shop-1"}, {}, id="what failed, again"),
        pytest.param({}, {"retry_of": "shop-0"}, id="what failed before that, again"),
    ],
)
def test_incomparable_run_is_ignored(run: dict[str, Any], earlier: dict[str, Any]) -> None:
    assert run_to_compare(replace(RUN, **run), [replace(EARLIER, **earlier)]) is None


@pytest.mark.parametrize(
    ("expected", "total", "drop"),
    [
        (100, {"fetched": 60, "unchanged": 5, "failed": 40}, 35),
        (100, {"fetched": 100}, 0),
        (100, {"fetched": 250}, 0),
        (100, {}, 100),
        (0, {"fetched": 1}, None),
        (None, {"fetched": 1}, None),
    ],
)
def test_drop_is_percentage_of_expected_pages(
    expected: int | None, total: dict[str, int], drop: int | None
) -> None:
    assert drop_percent(replace(RUN, pages_before=expected), total) == drop


def test_drop_ignores_smaller_budget_and_cancelled_run() -> None:
    run = replace(RUN, pages_before=100, pages_max=10)
    assert drop_percent(run, {"fetched": 10}) == 0
    assert drop_percent(replace(run, stop=Stop.CANCELLED), {"fetched": 1}) is None


def test_readable_pages_include_unchanged_ones() -> None:
    assert pages_of({"fetched": 3, "unchanged": 2, "redirected": 1, "failed": 9}) == 5
