"""The commands `hosts` and `report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.cli.commands.hosts_report import KINDS_LEGEND
from orbweaver.model.crawl import Stop
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.politeness.host_schedule import Host
from tests.memory.world import ShardItem
from tests.unit.cli.fakes import NOW_MS, SITE, Machine, Row, Stage

ID = "shop-20261121-090000"
OTHER = "https://other.example"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.run(f"start {SITE} {OTHER}/a --name shop --delay 250ms")
    return stage


# --- hosts --------------------------------------------------------------------------------------


def test_hosts_shows_counts_pace_and_next_request_of_each(stage: Stage) -> None:
    counts = {"host.0.claimed": 1_200, "host.0.done": 200, "host.0.failed": 3, "host.1.claimed": 1}
    stage._counts(stage.world.crawls[ID]).update(counts)
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 95_000, failures=2)
    stage.world.hosts[OTHER] = Host(name=OTHER, blocked_until_ms=NOW_MS + 60_000, strikes=1)
    assert stage.output("hosts shop --host third.example") == (
        "host                   claimed  ended  failed  queued   delay  robots.txt       next"
        " request\n"
        "https://example.com      1,200    200       3   1,000  250 ms  not fetched yet  in 1:35;"
        " 2 requests without a response\n"
        "https://other.example        1      0       0       1  250 ms  not fetched yet  not"
        " before 2026-11-21 09:01:00 UTC: it answered 429 or 503\n"
        "https://third.example        -      -       -       -  250 ms  not fetched yet  now\n"
    )
    assert stage.noted == f"-: not counted; {ID} counts only its first hosts\n"


def test_hosts_as_json_has_timestamps_and_no_texts(stage: Stage) -> None:
    first, second = stage.run_json("hosts --json")
    assert (first["type"], first["crawl"], first["host"]) == ("host", ID, SITE)
    assert (first["delay_ms"], first["claimed"], first["next_slot_ms"]) == (250, 0, None)
    assert second["host"] == OTHER


def test_hosts_with_invalid_host_is_refused_with_example(stage: Stage) -> None:
    assert "is no host: give one like example.com" in stage.errors("hosts shop --host https://")
    assert stage.run("hosts nobody") == 2


# --- report -------------------------------------------------------------------------------------


@pytest.fixture
def ended(stage: Stage) -> Stage:
    stage.site += [Row("/x", Outcome.FAILED, Reason.DNS), Row("/y", Outcome.SKIPPED, Reason.ROBOTS)]
    stage.run("status shop --watch")
    stage.world.samples[ID] = {"scope": ("https://third.example/\x1b[31m?…",)}
    return stage


def test_report_shows_counts_meaning_and_examples_by_reason(ended: Stage) -> None:
    assert ended.output("report shop").splitlines() == [
        ID,
        "",
        "links that were not followed: 4",
        "  4  scope  it does not belong to the crawl",
        "      https://third.example/?…",
        "",
        "URLs that were skipped: 1",
        "  1  robots  robots.txt forbids it",
        f"      {SITE}/y",
        "",
        "URLs that failed: 1",
        "  1  dns  its host name could not be resolved, after four attempts",
        f"      {SITE}/x",
    ]


def test_report_adds_advice_where_meaning_has_none(stage: Stage) -> None:
    stage.site += [
        Row("/x", Outcome.FAILED, Reason.HTTP_CLIENT_ERROR),
        Row("/y", Outcome.SKIPPED, Reason.CONTENT_TYPE),
    ]
    stage.run("status shop --watch")
    assert stage.run("report shop") == 0
    assert "remedy: --exclude avoids the requests, --bodies all stores such files" in stage.said
    assert f"`orbweaver explain URL` names the page with the link; `orbweaver retry {ID}`" in (
        stage.said
    )


def test_report_counts_pages_in_need_of_scripts(ended: Stage) -> None:
    counts = ended.world.shards[ID, 0].counts
    ended.world.shards[ID, 0] = ShardItem(counts={**counts, "needs_rendering": 1})
    assert ended.run("report shop") == 0
    pages = counts["fetched"]
    assert f"pages that need scripts: 1 of {pages} ({100 / pages:.1f} %)" in ended.said
    assert "remedy: look for a sitemap of the site" in ended.said
    assert ended.run_json("report shop --json")[-1]["pages"] == pages


def test_report_omits_refused_links_crawled_later(ended: Stage) -> None:
    ended.world.samples[ID] = {"scope": (f"{SITE}/a", f"{SITE}/deep", f"{SITE}/b", "no url")}
    assert ended.output("report shop").splitlines()[2:6] == [
        "links that were not followed: 4",
        (
            "  4  scope  it does not belong to the crawl;"
            " 2 of 4 examples were crawled through another link"
        ),
        f"      {SITE}/deep",
        "      no url",
    ]


def test_report_of_run_without_new_pages_gives_advice(stage: Stage) -> None:
    stage._end(stage.world.crawls[ID], Stop.FINISHED)
    assert stage.run("report shop") == 0
    assert stage.said.startswith(f"{ID}: nothing new: every seed was crawled within the window of")
    assert stage.run_json("report shop --json")[0]["nothing_new"] is True


def test_report_as_json_is_one_object_with_all_reasons(ended: Stage) -> None:
    (told,) = ended.run_json("report --json")
    assert (told["type"], told["crawl"]) == ("report", ID)
    assert [(line["kind"], line["reason"], line["count"]) for line in told["skipped"]] == [
        ("refused", "scope", 4),
        ("skipped", "robots", 1),
        ("failed", "dns", 1),
    ]


def test_report_shows_requests_by_kind_and_exclusions(stage: Stage) -> None:
    log_in = Row("/", Outcome.FETCHED, Reason.NOINDEX, title="Log in", latency_ms=5, depth=1)
    stage.site += [replace(log_in, path=f"/log-in?to=it's-{at}") for at in range(30)]
    stage.site += [Row("/x/1", Outcome.FAILED, Reason.DNS, latency_ms=5)]
    stage.run("status shop --watch")
    told = stage.output("report shop").splitlines()
    assert told[told.index(f"      {SITE}/x/1") + 1 :] == [
        "",
        "where the requests went: 31 requests, $0 on AWS (estimate)",
        "  requests  noindex  failed  titles  bodies  texts  led to   $  kind",
        f"        30    100 %               1      30                 $0  {SITE}/log-in?to=*",
        f"      {SITE}/log-in?to=…",
        f"         1                1                                 $0  {SITE}/x/0",
        f"      {SITE}/x/1",
        *KINDS_LEGEND,
        "",
        "patterns for kinds without items, links or unique texts: saves 30 requests, $0",
        "  --exclude '^https://example\\.com/log-in\\?to=[^&;]*$'   30 requests, $0",
    ]
    requests = stage.run_json("report shop --json --records 11")[-1]["requests"]
    assert (requests["records"], requests["unread"]) == (11, True)
    assert requests["kinds"][0]["exclude"] == r"^https://example\.com/log-in\?to=[^&;]*$"
    assert "(estimate); of the first 10 records" in stage.output("report shop --records 10")


def test_report_lists_small_kinds_in_json_only(stage: Stage) -> None:
    often = Row("/", title="T", latency_ms=5)
    stage.site += [replace(often, path=f"/often/{at}") for at in range(500)]
    stage.site += [replace(often, path=f"/{word}/1") for word in ("seldom", "hardly")]
    stage.run("status shop --watch")
    assert "  2 more, of 1 kind (--json)" in stage.output("report shop").splitlines()


def test_report_without_omitted_links_states_it(stage: Stage) -> None:
    assert stage.output("report shop") == f"{ID} left nothing out\n"
