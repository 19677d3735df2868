"""Forecasts of a crawl: duration and its reason, hosts, budgets and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.cli import crawl_summary
from orbweaver.cli.live import lines
from orbweaver.control.progress import spending, status
from orbweaver.control.progress.hosts import HostAvailability
from orbweaver.control.progress.status import ProgressMeter, as_json, is_stalled
from orbweaver.control.spec_checks import PAGES_MAX_DEFAULT
from orbweaver.diagnostics.refusal_report import Spared
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import State, Stop
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.url_rules import UrlRule
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from tests.unit.cli.views import NOW_MS, reading_of, view_of

SHOP, DOCS, OLD = "https://shop.example", "https://docs.example", "http://old.example:8080"
ALONE: Mapping[str, Any] = {"seeds": (f"{SHOP}/",), "hosts_counted": ()}
ENDED: Mapping[str, Any] = {"state": State.FINISHED, "finished_at_ms": NOW_MS + 60_000}
KNOWN = {"claimed": 1_500, "fetched": 300}
PACED = {"claimed": 1_000, "fetched": 100, "host.0.claimed": 900, "host.0.done": 60}


@pytest.mark.parametrize(
    ("counts", "changes", "left_s", "basis", "said"),
    [
        ({}, {}, None, "none", "starting…"),
        (
            *({"claimed": 9, "fetched": 9}, {"depths": Depths()}, None, "none"),
            "all known URLs are done; the run ends unless it finds new links",
        ),
        (
            *({"claimed": 9, "fetched": 9}, {"depths": Depths(in_work=1)}, None, "none"),
            "0 known URLs left; new links make it longer",
        ),
        ({"claimed": 99, "fetched": 9}, {}, None, "none", "too early to tell; 90 known URLs left"),
        (
            *(KNOWN, {}, 240, "rate"),
            "about 4 min: 1,200 known URLs left at 5.0 a second; new links make it longer",
        ),
        (
            *(KNOWN, {"pages_max": 1_500}, 240, "rate"),
            "about 4 min: 1,200 known URLs left at 5.0 a second; the page limit is reached",
        ),
        ({"claimed": 301, "fetched": 300}, {}, 0.2, "rate", "about 1 s: 1 known URL left at"),
        (
            *(PACED, {}, 882, "host"),  # 840 requests, each 5 % longer than the delay
            "at least 15 min: 840 URLs left on shop.example, one every 1 s; new links make it",
        ),
        ({"claimed": 3, "host.0.claimed": 2}, {}, 2.1, "host", "at least 2 s: 2 URLs left on shop"),
        ({**PACED, "fetched": 50}, {}, 950 / 50 * 60, "rate", "about 19 min: 950 known URLs"),
        (PACED, {"delay_ms": 0}, 540, "rate", "about 9 min"),
        (PACED, {"state": State.STOPPING}, None, "none", "stopping: 900 known URLs left"),
        (PACED, {"idle": True}, None, "none", "no worker runs: 900 known URLs left"),
        (PACED, {"idle": True, "state": State.PAUSED}, None, "none", "paused: 900 known URLs"),
        ({}, {"idle": True}, None, "none", "no worker runs: 3 seeds queued"),
        ({"seeds": 1}, {"idle": True}, None, "none", "no worker runs: 0 known URLs left"),
        (
            *({"claimed": 99, "fetched": 40}, {"retry_of": "docs", "pages_max": 99}, 88.5, "rate"),
            "about 88 s: 59 known URLs left at 0.7 a second",
        ),
        (PACED, {"state": State.PAUSED}, None, "none", "paused: 900 known URLs"),
        (PACED, {"state": State.FINISHED}, None, "none", ""),
        (
            *(PACED, {"duration_max_s": 100}, 40, "duration"),
            "at most 40 s: its time limit ends then, and 900 known URLs would take 15 min",
        ),
        (PACED, {"duration_max_s": 942}, 882, "host", "at least 15 min"),
        (PACED, {"duration_max_s": 10}, 0, "duration", "at most 1 s"),
        (PACED, {"duration_max_s": 10, "continuous": True}, 882, "host", "at least 15 min"),
    ],
)
def test_remaining_time_has_basis_or_reason_for_absence(
    counts: dict[str, int], changes: dict[str, Any], left_s: float | None, basis: str, said: str
) -> None:
    view = view_of(counts, **changes)
    assert view.forecast.left_s == (None if left_s is None else pytest.approx(left_s))
    assert view.forecast.basis == basis
    assert view.forecast.words.startswith(said) or said in view.forecast.words
    assert bool(view.forecast.words) == bool(said)


def test_remaining_time_is_unknown_while_no_url_ends() -> None:
    meter = ProgressMeter()
    all_counts = {
        after_s: {"claimed": 90, "fetched": min(40, after_s)} for after_s in range(0, 200, 10)
    }
    *_, view = [meter.add(reading_of(counts, after_s=at_s)) for at_s, counts in all_counts.items()]
    assert view.forecast.words == "not known: no URL has ended lately; 50 known URLs left"
    assert ("quiet", "no URL has ended for 2 min") in lines.notices(view)


@pytest.mark.parametrize(("pids", "where"), [((), ""), ((7, 8), " in process 7, 8")])
def test_joined_run_names_its_processes(pids: tuple[int, ...], where: str) -> None:
    run = view_of({}).crawl
    assert lines.joined(run, pids) == f"{run.id} is running{where}: this command joins it"


OPEN, BLOCKED, DOWN = HostAvailability.OPEN, HostAvailability.BLOCKED, HostAvailability.DOWN
SLOW = RobotsEntry(fetched_at_ms=0, body=b"User-agent: *\nCrawl-delay: 4")


@pytest.mark.parametrize(
    ("host", "standing", "bound_s", "said"),
    [
        ({}, OPEN, 10.5, "now"),
        ({"tat_ms": NOW_MS + 61_999}, OPEN, 10.5, "now"),
        ({"line_ms": NOW_MS + 62_000}, OPEN, 10.5, "busy: next 2 s already scheduled"),
        (
            *({"blocked_until_ms": NOW_MS + 160_000, "strikes": 2}, BLOCKED, 110.5),
            "blocked 2 min: 429 or 503 x2",
        ),
        (
            *({"blocked_until_ms": NOW_MS + 100_000, "failures": 5}, BLOCKED, 50.5),
            "blocked 40 s: no answer x5",
        ),
        # URLs of a host that is down end without a request.
        (
            *({"blocked_until_ms": NOW_MS + 3_660_000, "failures": 9}, DOWN, 0),
            "down 60 min: no answer x9",
        ),
        ({"robots": SLOW}, OPEN, 41, "now"),
    ],
)
def test_host_has_next_request_reason_and_queue_time(
    host: dict[str, Any], standing: HostAvailability, bound_s: float, said: str
) -> None:
    counts = {"claimed": 40, "host.0.claimed": 30, "host.0.done": 20, "host.0.failed": 3}
    row, other, _ = view_of(counts, hosts=(Host(name=SHOP, **host),)).hosts
    assert (row.claimed, row.done, row.failed, row.queued) == (30, 20, 3, 10)
    assert (row.standing, row.words, row.bound_ms) == (standing, said, bound_s * 1000)
    assert (other.claimed, other.failed, other.queued) == (0, 0, 0)


def test_queue_time_uses_shortest_delay_of_rules() -> None:
    """A rule may allow a shorter delay for some URLs, so the bound uses it."""
    rules = (
        UrlRule(match="/a", delay_ms=200),
        UrlRule(match="/b", delay_ms=9_000),
        UrlRule(match="/c"),
    )
    row = view_of({"host.0.claimed": 10, "claimed": 10}, rules=rules).hosts[0]
    assert (row.delay_ms, row.bound_ms) == (200, 2_100)


def test_uncounted_hosts_are_unknown() -> None:
    counts = {"claimed": 40, "fetched": 20, "failed": 1}
    assert [row.queued for row in view_of(counts).hosts] == [None] * 3
    (row,) = view_of(counts, **ALONE).hosts
    assert (row.claimed, row.done, row.failed, row.queued) == (40, 21, 1, 19)
    (row,) = view_of(counts, **ALONE, scope=Scope.ANY).hosts
    assert (row.done, row.bound_ms) == (None, 0)
    (row,) = view_of({}, **ALONE, scope=Scope.ANY).hosts
    assert row.done == 0
    ended = view_of(
        counts, state=State.FINISHED, hosts=(Host(name=SHOP, blocked_until_ms=NOW_MS + 99_000),)
    )
    assert as_json(ended)["waiting"] == {}


@pytest.mark.parametrize(
    ("spared", "changes", "said", "number", "exact"),
    [
        (None, {}, "at most 7 late links waiting", 7, False),
        (Spared(links=5, read=5), {}, "5 late links waiting", 5, True),
        (Spared(links=1, read=1), ENDED, "1 late link not requested", 1, True),
        (
            Spared(links=6, read=4, exact=False),
            ENDED,
            "at most 6 late links not requested",
            6,
            False,
        ),
        (Spared(), ENDED, None, 0, True),
    ],
)
def test_late_links_are_exact_if_read_else_upper_bound(
    spared: Spared | None, changes: Mapping[str, Any], said: str | None, number: int, exact: bool
) -> None:
    reading = reading_of({"late_links": 9, "late_links_taken": 2}, pages_max=100, **changes)
    view = ProgressMeter().add(replace(reading, spared=spared))
    assert lines.limits(view).partition(" · ")[2] == (said or "")
    body = as_json(view)
    assert (body["late_links"], body["late_links_exact"]) == (number, exact)


def test_crawl_without_waiting_links_needs_no_reading() -> None:
    body = as_json(view_of({"late_links": 2, "late_links_taken": 2}))
    assert (body["late_links"], body["late_links_exact"]) == (0, True)


def test_budgets_are_listed_if_set_or_half_used() -> None:
    counts = {"claimed": 300, "host.0.claimed": 200, "bytes": 5, "nanodollars": 12_300_000}
    assert view_of(counts).budgets == ()
    view = view_of(
        counts,
        pages_max=400,
        host_pages_max=200,
        bytes_max=10_000_000,
        nanodollars_max=50_000_000,
        duration_max_s=3_600,
    )
    assert lines.limits(view) == (
        "pages 300 of 400 URLs to request, 0 done · pages of a host 200 of 200 (100 %)"
        " · bytes 5 B of 10.0 MB (0 %) · dollars $0.012 of $0.050 (24 %)"
        " · duration 1:00 of 1:00:00 (1 %)"
    )
    assert [budget.name for budget in view_of({"claimed": 700_000}).budgets] == ["pages"]
    assert view_of({"claimed": 700_000}, continuous=True).budgets == ()
    assert spending.Budget(name="none", used=0, limit=0, words="").share == 1


def test_bytes_of_budget_are_bytes_received() -> None:
    (budget,) = view_of({"bytes": 5, "received_bytes": 8}, bytes_max=10).budgets
    assert (budget.used, budget.limit, budget.share) == (8, 10, 0.8)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "$0"),
        (1e-9, "$0.000000001"),
        (0.0012, "$0.0012"),
        (0.0999, "$0.100"),
        (0.14, "$0.14"),
        (1234.5, "$1,234.50"),
    ],
)
def test_dollars_have_two_significant_digits(amount: float, said: str) -> None:
    assert spending.price(amount) == said


def test_cost_text_has_total_and_price_per_1000_pages() -> None:
    assert lines.cost(view_of({})) == ""
    counts = {"nanodollars": 1_200_000}
    assert lines.cost(view_of(counts)) == "$0.0012 so far (estimate)"
    said = lines.cost(view_of({**counts, "fetched": 10}, state=State.FINISHED))
    assert said == "$0.0012 in all (estimate) · $0.12 per 1,000 pages"


def test_empty_queues_are_reported_then_given_up() -> None:
    meter, empty = ProgressMeter(), Depths(dead=1)
    counts = {"claimed": 12, "fetched": 11}
    assert not is_stalled(meter.add(reading_of(counts, after_s=1, depths=empty)))
    view = meter.add(reading_of(counts, after_s=40, depths=empty))
    assert lines.notices(view) == [
        ("idle", "nothing has been queued for 39 s: 1 URL without an outcome")
    ]
    assert is_stalled(meter.add(reading_of(counts, after_s=61, depths=empty)))
    assert not is_stalled(meter.add(reading_of(counts, after_s=62)))
    assert not is_stalled(meter.add(reading_of(counts, after_s=63, depths=empty)))
    paused = meter.add(reading_of(counts, after_s=300, depths=empty, state=State.PAUSED))
    assert not is_stalled(paused)
    goes_on = "continue with `orbweaver resume shop-20261121-090000`"
    assert lines.notices(paused) == [("paused", goes_on)]
    stored = replace(paused, reading=replace(paused.reading, billed=False))
    assert lines.notices(stored) == [
        ("paused", f"{goes_on}, or run the same `orbweaver crawl` again")
    ]


def test_json_has_stable_names_and_null_for_unknown() -> None:
    body = as_json(view_of({**PACED, "nanodollars": 1_500_000}, pages_max=2_000))
    assert body["rate"] == {"now": 1.67, "mean": 1.67, "peak": 1.67}
    assert (body["left_s"], body["left_basis"], body["cost_dollars"]) == (882.0, "host", 0.0015)
    assert body["budgets"] == [{"name": "pages", "used": 1_000, "limit": 2_000}]
    assert body["hosts"][0] == {
        "host": SHOP,
        "claimed": 900,
        "done": 60,
        "queued": 840,
        "failed": 0,
        "delay_ms": 1_000,
        "standing": "open",
        "wait_ms": 0,
        "why": None,
        "no_robots": None,
    }
    assert body["age_s"] == 0
    assert as_json(view_of({}))["cost_dollars"] is None


@pytest.mark.parametrize(
    ("state", "stop", "said"),
    [
        (State.RUNNING, None, "running"),
        (State.STOPPING, Stop.CANCELLED, "stopping: it was cancelled"),
        (State.FINISHED, Stop.FINISHED, "finished"),
        (State.FINISHED, Stop.MAX_PAGES, "finished: it reached --max-pages"),
        (State.FINISHED, Stop.DOLLARS, "finished: it reached its limit of dollars"),
    ],
)
def test_every_state_and_stop_reason_has_text(state: State, stop: Stop | None, said: str) -> None:
    assert lines.state(view_of({}, state=state, stop=stop)) == said
    assert set(lines.STOPS) == set(Stop)


def test_crawl_without_new_links_has_seen_all_before() -> None:
    assert status.found_nothing_new(view_of({}, state=State.FINISHED))
    assert not status.found_nothing_new(view_of({"refused.scope": 1}, state=State.FINISHED))


def test_summary_of_cancelled_crawl_counts_unrequested_urls() -> None:
    total = {
        "claimed": 62,
        "fetched": 9,
        "skipped": 53,
        "skipped.cancelled": 52,
        "skipped.robots": 1,
    }
    first, *others = crawl_summary.lines(view_of(total, stop=Stop.CANCELLED, **ENDED))
    assert " was cancelled after " in first
    assert "not requested  52 URLs: the same command requests them" in others


def test_summary_of_rejected_proxy_password_names_fix() -> None:
    total = {"failed.proxy_rejected": 2, "robots_unreachable.proxy_rejected": 1}
    said = "proxies  3 URLs: no proxy accepts its user and password; with others"
    shown = crawl_summary.lines(view_of({"claimed": 3, "failed": 2, **total}, **ENDED))
    assert any(line.startswith(said) for line in shown)


def test_pages_of_unread_run_counts_its_seeds() -> None:
    assert lines.pages(view_of({}, idle=True)) == "0 fetched, 3 seeds queued"
    assert lines.pages(view_of({"claimed": 3}, idle=True)) == "0 fetched, 0 of 3 known URLs"


# --- continued runs -----------------------------------------------------------------------------

SEQUEL = {"resumes": ("shop-1", "shop-0"), "pages_carried": 60, "pages_max": 200}


def test_continued_run_names_earlier_runs_and_rest_of_limit() -> None:
    said = lines.sequel(view_of({"past_lost": 2}, **SEQUEL))
    assert said == (
        "shop-1 and 1 before it: 60 URLs are not requested again,"
        " 140 of the limit of 200 are left; 2 parts of earlier runs can no longer be looked through"
    )
    assert lines.sequel(view_of({})) == ""
    unlimited = lines.sequel(view_of({}, **(SEQUEL | {"pages_max": PAGES_MAX_DEFAULT})))
    assert unlimited.endswith("URLs are not requested again")
    single = lines.sequel(view_of({}, **(SEQUEL | {"pages_carried": 1, "pages_max": 2})))
    assert single.endswith("1 URL is not requested again, 1 of the limit of 2 is left")


def test_limit_of_continued_run_counts_all_runs() -> None:
    """Earlier runs used 60 of 200 URLs, so this run reaches the limit at 140 claims."""
    (budget,) = view_of({"claimed": 40, "fetched": 40}, **SEQUEL).budgets
    assert (budget.used, budget.limit) == (100, 200)


@pytest.mark.parametrize(
    ("carried", "refused", "used_by", "expected"),
    [
        (
            200,
            9,
            (),
            "is used up by shop-1, within the window of 7 days; a higher --max-pages crawls",
        ),
        (200, 0, ("shop-0",), "is used up by shop-0, within the window of 7 days; --window 0s"),
        (200, 0, ("shop-1", "shop-0"), "is used up by shop-1 and 1 before it, within the window"),
        (60, 9, (), "what shop-1 left out; see `orbweaver report`; --window 0s crawls everything"),
    ],
)
def test_run_unable_to_continue_gives_reason(
    carried: int, refused: int, used_by: tuple[str, ...], expected: str
) -> None:
    options = {**SEQUEL, "pages_carried": carried, "state": State.FINISHED}
    view = view_of({"refused.budget": refused}, **options)
    assert status.found_nothing_new(view)
    assert expected in crawl_summary.lines(view, used_by=used_by)[0]


LIMITED: Mapping[str, Any] = {**ENDED, "pages_max": 200, "stop": Stop.MAX_PAGES}
CANCELLED: Mapping[str, Any] = {**LIMITED, "stop": Stop.CANCELLED}
USELESS: Mapping[str, Any] = {**LIMITED, "stop": Stop.NOTHING_NEW}
# The page limit of a run for missing content is the number of its pages.
RETRY: Mapping[str, Any] = {**LIMITED, "pages_max": 3, "retry_of": "shop-1"}
LATE, BEYOND = {"late_links": 9}, {"late_links": 9, "refused.budget": 4}
LEFT = (
    "7 links that bring next to nothing new: the same command without"
    " --stop-when-nothing-new requests them"
)


@pytest.mark.parametrize(
    ("counts", "links", "changes", "said"),
    [
        ({}, None, LIMITED, ""),
        (LATE, 7, CANCELLED, ""),
        (LATE, 1, LIMITED, "1 link beyond the limit of 200 pages"),
        (LATE, None, LIMITED, "at most 9 links beyond the limit of 200 pages"),
        (BEYOND, 7, LIMITED, "at most 11 links beyond the limit of 200 pages"),
        (LATE, 7, USELESS, LEFT),
        (LATE, 7, RETRY, ""),
    ],
)
def test_run_with_links_left_counts_them_and_names_command(
    counts: Mapping[str, int], links: int | None, changes: Mapping[str, Any], said: str
) -> None:
    reading = reading_of({"claimed": 200, "fetched": 200, **counts}, **changes)
    spared = None if links is None else Spared(links=links, read=links)
    view = ProgressMeter().add(replace(reading, spared=spared))
    left = crawl_summary.left_over(view)
    assert left.startswith(said)
    assert bool(left) is bool(said)
    shown = "\n".join(crawl_summary.lines(view))
    is_limited = view.crawl.stop is Stop.MAX_PAGES and view.crawl.retry_of is None
    assert ("it reached --max-pages" in shown, "\nlimit  " in shown) == (is_limited, is_limited)
    assert (f"\nleft over  {left}\n" in f"{shown}\n") is bool(said)


@pytest.mark.parametrize(
    ("received", "after_s", "held"),
    [(950_000, 70, True), (950_000, 62, False), (90_000, 70, False)],
)
def test_notice_names_limit_delaying_requests(received: int, after_s: int, held: bool) -> None:
    meter = ProgressMeter()
    counts = {"claimed": 9, "fetched": 3, "received_bytes": received}
    meter.add(reading_of(counts, after_s=60, bytes_max=1_000_000))
    view = meter.add(reading_of(counts, after_s=after_s, bytes_max=1_000_000))
    said = dict(lines.notices(view)).get("limit", "")
    assert said.startswith("the limit of bytes holds requests back: 950") is held


def test_ended_crawl_has_no_queue_notices() -> None:
    assert lines.queue(view_of({})) == "180 waiting · 20 in flight · 7 delayed"
    assert "queue" not in dict(lines.rows(view_of({}, **ENDED)))


def test_message_of_dead_worker_is_reported() -> None:
    held = Depths(in_work=1, hidden_s=360)
    meter = ProgressMeter()
    counts = {"claimed": 9, "fetched": 3}
    meter.add(reading_of(counts, after_s=60, depths=held))
    view = meter.add(reading_of(counts, after_s=240, depths=held))
    assert dict(lines.notices(view))["quiet"] == (
        "no URL has ended for 3 min; 1 message in flight: if a worker died, redelivery is at about"
        " 09:07:00 UTC"
    )
    assert lines.queue(view).endswith(
        "1 in flight · 0 delayed (redelivered within 6 min if the worker died)"
    )


def test_unknown_visibility_timeout_is_not_mentioned() -> None:
    meter, held = ProgressMeter(), Depths(in_work=1)
    meter.add(reading_of({"claimed": 9}, after_s=60, depths=held))
    view = meter.add(reading_of({"claimed": 9}, after_s=240, depths=held))
    assert dict(lines.notices(view))["quiet"] == "no URL has ended for 3 min"
    assert lines.queue(view).endswith("1 in flight · 0 delayed")


def test_elapsed_time_runs_on_between_readings_until_end() -> None:
    assert replace(view_of({}, after_s=60), age_ms=12_000).elapsed_s == 72
    ended = view_of({}, after_s=90, state=State.FINISHED, finished_at_ms=NOW_MS + 60_000)
    assert replace(ended, age_ms=12_000).elapsed_s == 60
