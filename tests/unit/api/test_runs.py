"""Crawls over HTTP, through the same control as the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.model.crawl import State, Stop
from orbweaver.model.outcome import Outcome, Reason
from tests.memory.world import ShardItem
from tests.unit.api.stage import CRAWL, JSON, NOW_MS, SITE, Stage

DEFINITION = {"seeds": [f"{SITE}/"], "limits": {"pages": 10}, "politeness": {"delay": "2s"}}


# --- start --------------------------------------------------------------------------------------


async def test_start_sends_seeds_and_returns_location(stage: Stage) -> None:
    reply = await stage.post("/crawls", DEFINITION)
    crawl = stage.world.crawls["example.com-20261121-090000"]
    assert (reply.status, reply.headers["Location"]) == (201, f"crawls/{crawl.id}")
    assert reply.body == {
        "id": crawl.id,
        "name": "example.com",
        "state": "running",
        "stop": None,
        "started_at": "2026-11-21T09:00:00.000Z",
        "finished_at": None,
    }
    assert (crawl.pages_max, crawl.delay_ms) == (10, 2_000)
    assert [seeds.references for seeds in stage.sent()] == [(f"{SITE}/",)]


@pytest.mark.parametrize(
    ("definition", "paths"),
    [
        ({}, ["seeds"]),
        ({"seeds": ["nonsense"]}, ["seeds"]),
        ({"seeds": [SITE], "limit": {"pages": 5}}, ["limit"]),
        ({"seeds": [SITE], "limits": {"page": 5, "depth": "x"}}, ["limits.page", "limits.depth"]),
        ({"seeds": [SITE], "limits": {"pages": 0}}, ["limits.pages"]),
        ({"seeds": [SITE], "scope": {"include": ["("]}}, ["scope.include"]),
        ({"seeds": [SITE], "seeds_file": "/etc/passwd"}, ["seeds_file"]),
        (
            {"seeds": [SITE], "network": {"ca_bundle": "/etc/x", "client_cert": "/etc/y"}},
            ["network.ca_bundle", "network.client_cert"],
        ),
        ({"seeds": [SITE], "identity": {"headers": {"Cookie": "s3cret\n"}}}, ["identity.headers"]),
    ],
)
async def test_start_of_invalid_definition_lists_problems(
    stage: Stage, definition: dict[str, Any], paths: list[str]
) -> None:
    reply = await stage.post("/crawls", definition)
    assert (reply.status, reply.paths) == (400, paths)
    assert "s3cret" not in str(reply.body)
    assert (stage.world.crawls, stage.world.sent) == ({}, [])


async def test_start_of_recurring_definition_is_refused() -> None:
    """A run started by hand would ignore the schedule."""
    reply = await Stage().post("/crawls", {**DEFINITION, "schedule": {"every": "1d"}})
    assert (reply.status, "leave it out" in reply.body["detail"]) == (400, True)


async def test_start_with_same_key_returns_same_crawl(stage: Stage) -> None:
    """This holds after an edit and after the end of the crawl (case 80)."""
    first = await stage.post("/crawls", DEFINITION, idempotency_key="k1")
    stage.clock.at_ms += 60_000
    again = await stage.post("/crawls", DEFINITION, idempotency_key="k1")
    assert (first.status, again.status) == (201, 200)
    assert (again.body, again.headers["Location"]) == (first.body, first.headers["Location"])
    await stage.ask("PATCH", f"/crawls/{first.body['id']}", {"limits": {"pages": 20}})
    assert (await stage.post("/crawls", DEFINITION, idempotency_key="k1")).status == 200
    other = await stage.post("/crawls", DEFINITION, idempotency_key="k2")
    assert other.status == 201
    assert other.body["id"] != first.body["id"]


async def test_start_with_key_of_other_definition_is_conflict(stage: Stage) -> None:
    await stage.post("/crawls", DEFINITION, idempotency_key="k1")
    for changed in ({"seeds": ["https://other.example/"]}, {**DEFINITION, "name": "other"}):
        assert (await stage.post("/crawls", changed, idempotency_key="k1")).status == 409
    assert len(stage.world.crawls) == 1


# --- read ---------------------------------------------------------------------------------------


async def test_crawls_are_listed_newest_first_in_pages(stage: Stage) -> None:
    crawls = [
        replace(CRAWL, id=f"c{number}", started_at_ms=NOW_MS + number // 2 * 1000)
        for number in range(7)
    ]
    stage.begin(*crawls, replace(CRAWL, id="over", state=State.FINISHED, stop=Stop.MAX_PAGES))
    found: list[str] = []
    target = "/crawls?state=running&limit=3"
    cursor = None
    while True:
        page = (await stage.get(target + (f"&cursor={cursor}" if cursor else ""))).body
        found += [crawl["id"] for crawl in page["crawls"]]
        cursor = page["next"]
        if cursor is None:
            break
        assert (await stage.get(f"/crawls?cursor={cursor}")).status == 400
    assert found == ["c6", "c4", "c5", "c2", "c3", "c0", "c1"]
    assert len((await stage.get("/crawls")).body["crawls"]) == 8


async def test_crawl_has_state_counts_cost_and_time(stage: Stage) -> None:
    ended = replace(
        CRAWL, state=State.FINISHED, stop=Stop.MAX_PAGES, finished_at_ms=NOW_MS + 61_500
    )
    stage.begin(ended)
    counts = {"claimed": 5, "fetched": 3, "fetched.ok": 2, "fetched.noindex": 1, "failed": 2}
    counts |= {"failed.dns": 2, "refused.scope": 7, "retries": 4, "deferrals": 1, "bytes": 900}
    counts |= {"nanodollars": 1_250_000, "units.write.claim": 400, "units.write.store": 600}
    stage.world.shards[CRAWL.id, 0] = ShardItem(counts=counts)
    body = (await stage.get("/crawls/site-1")).body
    assert body["crawl"]["stop"] == "max_pages"
    assert body["crawl"]["finished_at"] == "2026-11-21T09:01:01.500Z"
    assert body["outcomes"] == {
        "fetched": 3,
        "unchanged": 0,
        "redirected": 0,
        "skipped": 0,
        "failed": 2,
    }
    assert body["reasons"]["fetched"] == {"ok": 2, "noindex": 1}
    assert (body["reasons"]["failed"], body["refused"]) == ({"dns": 2}, {"scope": 7})
    assert (body["claimed"], body["done"], body["bytes"]) == (5, 5, 900)
    assert (body["retries"], body["deferrals"], body["elapsed_s"]) == (4, 1, 61.5)
    assert body["cost_usd"] == 0.00125
    assert (body["units"], body["units_usd"]) == ({"write": 1_000}, 0.000625)


async def test_hosts_are_seed_hosts_and_requested_ones(begun: Stage) -> None:
    body = (await begun.get("/crawls/site-1/hosts?host=other.example")).body
    assert [host["host"] for host in body["hosts"]] == [SITE, "https://other.example"]
    assert body["crawl"]["id"] == "site-1"
    assert (await begun.get("/crawls/site-1/hosts?host=%20")).status == 400


async def test_report_has_reasons_with_counts_and_examples(begun: Stage) -> None:
    begun.world.shards[CRAWL.id, 0] = ShardItem(counts={"failed.dns": 2, "refused.scope": 7})
    begun.put("/gone", outcome=Outcome.FAILED, reason=Reason.DNS)
    body = (await begun.get("/crawls/site-1/report")).body
    found = {one["reason"]: (one["kind"], one["count"], one["samples"]) for one in body["skipped"]}
    assert found["dns"] == ("failed", 2, [f"{SITE}/gone"])
    assert found["scope"][:2] == ("refused", 7)
    assert all(one["means"] for one in body["skipped"])


async def test_requests_are_counted_by_kind_with_patterns(begun: Stage) -> None:
    """Each kind (group of similar URLs) has a URL pattern, which would exclude the kind."""
    begun.world.shards[CRAWL.id, 0] = ShardItem(counts={"claimed": 20, "nanodollars": 10**9})
    for number in range(20):
        begun.put(f"/log-in?to=p{number}", reason=Reason.NOINDEX, latency_ms=5, depth=1)
    requests = (await begun.get("/crawls/site-1/report")).body["requests"]
    (kind,) = requests["kinds"]
    assert (kind["kind"], kind["requests"], kind["usd"]) == (f"{SITE}/log-in?to=p0", 20, 1.0)
    assert requests["suggested"] == [kind["exclude"]]
    assert requests["unread"] is False


# --- steer --------------------------------------------------------------------------------------


async def test_pause_resume_and_cancel_may_be_repeated(begun: Stage) -> None:
    for word, state in (("pause", "paused"), ("resume", "running"), ("cancel", "stopping")):
        for _ in range(2):
            reply = await begun.post(f"/crawls/site-1/{word}")
            assert (reply.status, reply.body["state"]) == (200, state)
    assert begun.world.crawls["site-1"].stop is Stop.CANCELLED


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (State.FINISHED, "pause"),
        (State.FINISHED, "resume"),
        (State.FINISHED, "cancel"),
        (State.STOPPING, "pause"),
        (State.STOPPING, "resume"),
    ],
)
async def test_action_in_wrong_state_is_409_and_changes_nothing(state: State, word: str) -> None:
    stage = Stage()
    stage.begin(replace(CRAWL, state=state))
    assert (await stage.post(f"/crawls/site-1/{word}")).status == 409
    assert stage.world.crawls["site-1"].state is state
    assert stage.world.sent == []


async def test_edit_changes_limits_delay_and_patterns(begun: Stage) -> None:
    changes = {"limits": {"depth": 3}, "politeness": {"delay": "5s"}, "scope": {"exclude": ["/x"]}}
    reply = await begun.ask("PATCH", "/crawls/site-1", changes)
    edited = begun.world.crawls["site-1"]
    assert (reply.status, reply.body["id"]) == (200, "site-1")
    assert (edited.depth_max, edited.delay_ms, edited.exclude) == (3, 5_000, ("/x",))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        [],
        {"seeds": ["https://other.example/"]},
        {"limits": {"pages": "many"}},
        {"limits": {"page": 5}},
        {"identity": {"headers": {"A": "b"}}},
    ],
)
async def test_empty_edit_or_edit_of_fixed_key_is_refused(begun: Stage, changes: Any) -> None:
    assert (await begun.ask("PATCH", "/crawls/site-1", changes, JSON)).status == 400
    assert begun.world.crawls["site-1"] == CRAWL


async def test_retry_starts_run_of_failures_by_reason_or_host(stage: Stage) -> None:
    stage.begin(replace(CRAWL, state=State.FINISHED, finished_at_ms=NOW_MS))
    stage.put("/ok")
    stage.put("/slow", outcome=Outcome.FAILED, reason=Reason.TIMEOUT)
    stage.put("/gone", outcome=Outcome.FAILED, reason=Reason.DNS)
    reply = await stage.post("/crawls/site-1/retry", {"reasons": ["timeout"]})
    assert reply.status == 201
    (run,) = reply.body["crawls"]
    assert run["name"] == "site"
    assert stage.world.crawls[run["id"]].seeds == (f"{SITE}/slow",)
    whole = await stage.ask("POST", "/crawls/site-1/retry", headers={})
    assert whole.status == 201
    assert {mail for run in whole.body["crawls"] for mail in [run["name"]]} == {"site"}


async def test_crawl_of_newer_version_is_409_with_fix(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    stage.world.newer[CRAWL.id] = "stored by a newer version: the crawl of version 2"
    for reply in (
        await stage.get(f"/crawls/{CRAWL.id}"),
        await stage.post(f"/crawls/{CRAWL.id}/pause"),
    ):
        assert reply.status == 409
        assert reply.body["detail"] == (
            "stored by a newer version: the crawl of version 2; deploy that version or newer"
        )
