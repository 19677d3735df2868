"""API operations for the console: overview, check, preview of an edit, host."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.budget.estimate import PAGES_ASSUMED, Assumptions, estimate
from orbweaver.budget.prices import dollars
from orbweaver.control.definition import parse
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.crawl import State, Stop
from orbweaver.politeness.host_schedule import STRIKES_FORGIVEN_MS, Host, RobotsEntry
from tests.memory.world import ShardItem
from tests.unit.api.stage import CRAWL, NOW_MS, SITE, Stage

DAY_MS = 86_400_000
ENDED: dict[str, Any] = {"state": State.FINISHED, "stop": Stop.FINISHED}


def runs(stage: Stage, names: int, each: int) -> None:
    """Create runs of several names. The oldest run of each name is still live."""
    for name in range(names):
        for run in range(each):
            started_ms = NOW_MS - (run * names + name) * 60_000
            crawl = replace(CRAWL, id=f"n{name}-{run}", name=f"n{name}", started_at_ms=started_ms)
            if run < each - 1:
                crawl = replace(crawl, **ENDED, finished_at_ms=started_ms + 1_000)
            stage.begin(crawl)


async def test_overview_has_one_row_per_name_with_live_runs_first(stage: Stage) -> None:
    runs(stage, 3, 4)
    ended = replace(CRAWL, id="e-1", name="e", **ENDED, finished_at_ms=NOW_MS)
    stage.begin(ended, replace(ended, id="e-0", started_at_ms=NOW_MS - DAY_MS))
    body = (await stage.get("/overview")).body
    found = [(row["progress"]["crawl"]["id"], row["runs"]) for row in body["crawls"]]
    assert found == [("n0-3", 4), ("n1-3", 4), ("n2-3", 4), ("e-1", 2)]
    assert (body["total"], body["next"]) == (4, None)


async def test_overview_of_ended_retry_shows_run_before_it(stage: Stage) -> None:
    first = replace(CRAWL, id="e-1", name="e", **ENDED, finished_at_ms=NOW_MS)
    retry = replace(first, id="e-1-retry1", started_at_ms=NOW_MS + 9, retry_of="e-1")
    stage.begin(first, retry)
    body = (await stage.get("/overview")).body
    assert [row["progress"]["crawl"]["id"] for row in body["crawls"]] == ["e-1"]
    stage = Stage()
    stage.begin(first, replace(retry, state=State.RUNNING, stop=None, finished_at_ms=None))
    body = (await stage.get("/overview")).body
    assert [row["progress"]["crawl"]["id"] for row in body["crawls"]] == ["e-1-retry1"]


async def test_overview_pages_list_every_run_once(stage: Stage) -> None:
    runs(stage, 2, 7)
    seen, target = [], "/overview?name=n1&limit=3"
    cursor = ""
    while True:
        body = (await stage.get(target + cursor)).body
        assert body["total"] == 7
        seen += [row["progress"]["crawl"]["id"] for row in body["crawls"]]
        if body["next"] is None:
            break
        cursor = f"&cursor={body['next']}"
    assert seen == ["n1-6", *(f"n1-{run}" for run in range(6))]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("begins=n1", {"n1-2"}),
        ("state=running", {"n0-2", "n1-2"}),
        ("state=finished&begins=n", {"n0-0", "n1-0"}),
        ("day=2026-11-20", {"old"}),
        ("day=2026-11-20&zone=Pacific/Honolulu", {"n0-2", "n1-2"}),
        ("day=2026-11-19&zone=Pacific/Honolulu", {"old"}),
        ("name=n", set()),
    ],
)
async def test_overview_is_filtered_by_prefix_state_and_day(query: str, found: set[str]) -> None:
    stage = Stage()
    runs(stage, 2, 3)
    old = replace(CRAWL, id="old", name="old", state=State.PAUSED, started_at_ms=NOW_MS - DAY_MS)
    stage.begin(old)
    body = (await stage.get(f"/overview?{query}")).body
    assert {row["progress"]["crawl"]["id"] for row in body["crawls"]} == found


async def test_overview_of_an_unknown_zone_is_refused(begun: Stage) -> None:
    reply = await begun.get("/overview?day=2026-11-20&zone=Mars/Base")
    assert reply.status == 400
    assert reply.body["detail"] == "zone: 'Mars/Base' is no time zone: give one like Europe/Berlin"


async def test_overview_row_has_counts_and_drop_since_last_run(stage: Stage) -> None:
    ended = replace(CRAWL, **ENDED, finished_at_ms=NOW_MS, pages_before=100)
    stage.begin(ended)
    stage.world.shards[CRAWL.id, 0] = ShardItem(counts={"claimed": 30, "fetched": 25, "failed": 5})
    (row,) = (await stage.get("/overview")).body["crawls"]
    assert (row["progress"]["claimed"], row["progress"]["done"]) == (30, 30)
    assert row["less_percent"] == 75


async def test_cursor_of_other_filter_is_refused(stage: Stage) -> None:
    runs(stage, 1, 3)
    cursor = (await stage.get("/overview?name=n0&limit=1")).body["next"]
    assert (await stage.get(f"/overview?limit=1&cursor={cursor}")).status == 400


async def test_check_reports_problems_and_starts_nothing(stage: Stage) -> None:
    seeds = [SITE, "http://169.254.169.254/", "nonsense"]
    wrong = {"seeds": seeds, "limits": {"page": 5}}
    body = (await stage.post("/check", wrong)).body
    paths = [problem["path"] for problem in body["problems"]]
    assert paths == ["limits.page", "seeds[1]", "seeds[2]"]
    assert (body["name"], body["estimate"]) == (None, None)
    definition = {"seeds": [SITE], "limits": {"pages": 500}}
    right = (await stage.post("/check", definition)).body
    estimated = right.pop("estimate")
    assert right == {"problems": [], "name": "example.com", "seeds": 1, "warnings": []}
    often = (await stage.post("/check", {**definition, "schedule": {"every": "5m"}})).body
    assert 'dedup.window = "0s"' in often["warnings"][0]
    found = estimate(crawl_of(parse(definition), NOW_MS), Assumptions(pages=500))
    assert estimated == {
        "pages": 500,
        "hosts": 1,
        "usd": dollars(found.units.by_term),
        "least_s": found.least_s,
    }
    unbounded = (await stage.post("/check", {"seeds": [SITE]})).body
    assert unbounded["estimate"]["pages"] == PAGES_ASSUMED
    assert not stage.world.crawls
    assert not stage.world.sent
    for body in ([], "text", 5):
        assert (await stage.post("/check", json.dumps(body))).status == 400


async def test_preview_of_edit_lists_changes_and_makes_none(begun: Stage) -> None:
    change = {"limits": {"pages": 5}, "politeness": {"delay": "3s"}}
    reply = await begun.post(f"/crawls/{CRAWL.id}/preview", change)
    found = {one["key"]: (one["was"], one["becomes"]) for one in reply.body["changes"]}
    assert found == {"limits.pages": (1_000_000, 5), "politeness.delay": ("1000ms", "3000ms")}
    assert begun.world.crawls[CRAWL.id] == CRAWL
    refused = await begun.post(f"/crawls/{CRAWL.id}/preview", {"limits": {"pages": 0}})
    assert (refused.status, refused.paths) == (400, ["limits.pages"])
    begun.begin(replace(CRAWL, **ENDED))
    assert (await begun.post(f"/crawls/{CRAWL.id}/preview", change)).status == 409


async def test_host_has_pace_robots_txt_line_and_crawls(stage: Stage) -> None:
    stage.begin(CRAWL, replace(CRAWL, id="other", seeds=("https://other.example/",)))
    stage.world.hosts[SITE] = Host(
        name=SITE,
        tat_ms=NOW_MS + 4_000,
        blocked_until_ms=NOW_MS + 60_000,
        strikes=2,
        struck_at_ms=NOW_MS - 1_000,
        robots=RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: *\nDisallow: /cart\n"),
    )
    body = (await stage.get(f"/host?host=example.com&url={SITE}/cart")).body
    assert (body["host"], body["line"], body["allowed"]) == (SITE, 2, False)
    assert body["says"] == "line 2: Disallow: /cart"
    assert body["robots"].startswith("User-agent")
    assert (body["blocked_until_ms"], body["next_slot_ms"]) == (NOW_MS + 60_000, NOW_MS + 4_000)
    assert body["why"] == "it answered 429 or 503"
    assert (body["strikes"], body["struck_at_ms"]) == (2, NOW_MS - 1_000)
    assert [one["crawl"]["id"] for one in body["crawls"]] == [CRAWL.id]
    stage.clock.at_ms += 60_000 + STRIKES_FORGIVEN_MS
    forgiven = (await stage.get("/host?host=example.com")).body
    assert (forgiven["strikes"], forgiven["struck_at_ms"]) == (0, None)
    unknown = (await stage.get("/host?host=new.example")).body
    assert (unknown["robots"], unknown["crawls"], unknown["says"]) == (None, [], None)
    assert (await stage.get("/host?host=%20")).status == 400
