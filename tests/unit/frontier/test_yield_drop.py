"""How a run does beside the one before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.yield_drop import before, drop_percent, pages_of
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


def test_the_newest_run_of_the_name_is_the_one_before() -> None:
    """Runs of other names, later ones and itself are not."""
    older = replace(EARLIER, id="shop-0", started_at_ms=1 * DAY_MS)
    later = replace(EARLIER, id="shop-3", started_at_ms=11 * DAY_MS)
    other = replace(EARLIER, id="other-1", name="other", started_at_ms=9 * DAY_MS)
    assert before(RUN, [RUN, older, EARLIER, later, other]) == EARLIER
    assert before(RUN, [RUN, other, later]) is None


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
def test_runs_that_cannot_be_compared(run: dict[str, Any], earlier: dict[str, Any]) -> None:
    """Where something else than the site may make a difference nothing is compared."""
    assert before(replace(RUN, **run), [replace(EARLIER, **earlier)]) is None


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
def test_the_drop(expected: int | None, total: dict[str, int], drop: int | None) -> None:
    """Pages that are missing, in percent of what was expected; more is no drop."""
    assert drop_percent(replace(RUN, pages_before=expected), total) == drop


def test_what_may_not_be_had_is_not_expected() -> None:
    """A run with less of a budget, or that somebody cancelled, has lost nothing."""
    run = replace(RUN, pages_before=100, pages_max=10)
    assert drop_percent(run, {"fetched": 10}) == 0
    assert drop_percent(replace(run, stop=Stop.CANCELLED), {"fetched": 1}) is None


def test_pages_that_can_be_read() -> None:
    """Those that are still the same count as well; redirects and failures do not."""
    assert pages_of({"fetched": 3, "unchanged": 2, "redirected": 1, "failed": 9}) == 5
