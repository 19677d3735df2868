"""Answers of the console: live crawls, dead letters, tables and stored pages."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import threading
import tomllib
from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from yarl import URL

from orbweaver.app.store_runner import LANES
from orbweaver.cli.session import store_session
from orbweaver.console.run_comparer import KEPT_MS
from orbweaver.console.runs import (
    LATEST_MAX,
    LIST_MS,
    PAST_MAX,
    SAMPLES_MAX,
    CrawlRead,
    CrawlWatcher,
    MeteredReadings,
    past_of,
    settings_of,
)
from orbweaver.console.stored import NO_TEXT, NOT_KEPT, shown_as
from orbweaver.control.rule_trial import PAGES_MAX
from orbweaver.extraction.extract import Field, ItemRule
from orbweaver.frontier import warc
from orbweaver.model.crawl import State, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.item import Item
from orbweaver.model.page_record import day_of
from tests.unit.console.stage import BEARER, POLL_MS, RUN, opened, record
from tests.unit.stage import NOW_MS, SITE

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.model.crawl import Crawl
    from tests.unit.console.stage import Stage

PULSE = f"/console/crawls/{RUN.id}"


# --- live crawls --------------------------------------------------------------------------------


async def test_crawl_has_numbers_of_status_command(stage: Stage) -> None:
    await stage.begin("/", "/a")
    shown = (await stage.get(PULSE))["shown"]
    assert shown == (await MeteredReadings(store_session(stage.ports).read).read(RUN.id)).shown
    live = await stage.get(f"/console/live?id={RUN.id}")
    assert live == {"billed": False, "crawls": {RUN.id: shown}}


async def test_tabs_share_one_reading_until_a_change(stage: Stage) -> None:
    await stage.begin()
    for _ in range(5):
        await stage.get(PULSE)
    assert len(stage.readings) == 1
    stage.clock.at_ms += POLL_MS
    await stage.get(PULSE)
    assert len(stage.readings) == 2
    await stage.post(f"/api/crawls/{RUN.id}/pause")
    assert (await stage.get(PULSE))["shown"]["state"] == "paused"
    reply = await stage.ask("PATCH", f"/api/crawls/{RUN.id}", json={"limits": {"pages": 7}})
    assert reply.status == 200
    assert (await stage.get(PULSE))["settings"]["limits.pages"] == 7


async def test_two_polls_within_a_second_read_crawl_once(stage: Stage) -> None:
    await stage.begin()
    read: list[str] = []
    known = stage.ports.crawls.get

    async def count(crawl_id: str) -> Crawl | None:
        read.append(crawl_id)
        return await known(crawl_id)

    stage.ports.crawls.get = count  # type: ignore[method-assign]
    for _ in range(2):
        await stage.get(PULSE)
    assert read == [RUN.id]


async def test_openapi_document_has_token_and_no_aws_signature(stage: Stage) -> None:
    described = await stage.get("/api/openapi.json")
    assert described["security"] == [{"bearer": []}]
    assert "not signed" in described["info"]["description"]


def lists_counted(stage: Stage) -> list[None]:
    listed: list[None] = []
    known = stage.ports.crawls.list

    async def count() -> Any:
        listed.append(None)
        return await known()

    stage.ports.crawls.list = count  # type: ignore[method-assign]
    return listed


async def test_list_of_runs_is_read_once_a_minute(stage: Stage) -> None:
    await stage.begin()
    await stage.ports.crawls.create(replace(RUN, id="site-retry", retry_of=RUN.id))
    listed = lists_counted(stage)
    for _ in range(20):
        stage.clock.at_ms += POLL_MS
        assert (await stage.get(PULSE))["runs"] == [RUN.id]
    assert len(listed) == 1
    stage.clock.at_ms += LIST_MS
    await stage.get(PULSE)
    assert len(listed) == 2


async def test_history_before_first_look_comes_from_records(stage: Stage) -> None:
    await stage.begin()
    times = [NOW_MS - 50_000, NOW_MS - 20_000]
    await stage.ports.pages.store(
        [record(f"/{at_ms}", fetched_at=at_ms) for at_ms in reversed(times)]
    )
    pulse = await stage.get(PULSE)
    assert pulse["past"] == [[times[0], 1], [times[1], 2]]
    assert pulse["started_ms"] == RUN.started_at_ms


def test_history_of_many_records_is_thinned_and_keeps_end() -> None:
    found = past_of([*range(1_000, 0, -1), 5_000], 2_000)
    assert len(found) <= PAST_MAX + 1
    assert found == sorted(found)
    assert found[-1] == (1_000, 1_000)
    assert past_of([], 5) == []


async def test_history_of_many_samples_keeps_first_and_last() -> None:
    at_ms = 0

    async def look(_crawl: str) -> CrawlRead:
        counts = {"fetched": at_ms, "unchanged": 0, "failed": 0}
        known = {"at_ms": at_ms, "claimed": at_ms, "done": at_ms, "state": "running"}
        return CrawlRead(crawl=RUN, shown={**known, "outcomes": counts})

    watching = CrawlWatcher(look, lambda: at_ms, 1)
    for _ in range(10 * SAMPLES_MAX):
        at_ms += 1_000
        await watching.read("a")
    watched = await watching.read("a")
    samples = watched.samples
    assert SAMPLES_MAX // 4 <= len(samples) <= SAMPLES_MAX
    assert samples[0][0] == 1_000
    assert at_ms - samples[-1][0] <= 2 * watched.step_ms
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(samples)]
    assert max(gaps) <= 4 * min(gaps)


async def test_header_values_are_hidden(tmp_path: Path) -> None:
    crawl = replace(RUN, headers=(("Cookie", "s3cret"),))
    assert "s3cret" not in str(settings_of(crawl))
    async with opened(tmp_path) as stage:
        await stage.ports.crawls.create(crawl)
        assert "s3cret" not in str(await stage.get(PULSE))


async def test_unreachable_store_is_503_until_it_returns(stage: Stage) -> None:
    await stage.begin()
    look = stage.actions.runs.watching._look

    async def lost(_crawl: str) -> CrawlRead:
        raise Transient("the token has expired")

    stage.actions.runs.watching._look = lost
    reply = await stage.ask("GET", PULSE)
    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    assert "the token has expired" in (await reply.json())["detail"]
    stage.actions.runs.watching._look = look
    assert (await stage.get(PULSE))["shown"]["crawl"] == RUN.id


async def test_invalid_body_or_unknown_crawl_is_refused(stage: Stage) -> None:
    await stage.begin()
    for path, body, status in (
        ("/console/frame", {}, 400),
        ("/console/frame", {"url": SITE, "crawl": 5}, 400),
        ("/console/frame", {"url": "nonsense", "crawl": RUN.id}, 400),
        ("/console/table", {"crawl": RUN.id, "more": 1}, 400),
        ("/console/table", {"crawl": "nothing-like-it"}, 404),
        ("/console/dead-letters/purge", {}, 400),
        ("/console/dead-letters/purge", {"cause": "x", "until_ms": True}, 400),
        ("/console/dead-letters/redrive", [], 400),
    ):
        assert ((await stage.ask("POST", path, json=body)).status, path) == (status, path)
    assert (await stage.ask("GET", "/console/live")).status == 400
    assert (await stage.ask("GET", "/console/crawls/nothing")).status == 404
    assert (await stage.ask("POST", "/console/table", data=b"\xff{")).status == 400


# --- definitions --------------------------------------------------------------------------------


async def test_definition_converts_between_toml_and_document(stage: Stage) -> None:
    toml = f'seeds = ["{SITE}"] # mine\n[limits]\npages = 5\n'
    read = await stage.post("/console/definition", {"toml": toml})
    document = {"seeds": [SITE], "limits": {"pages": 5}}
    assert read["document"] == document
    assert (read["toml"], read["lines"]["limits.pages"], read["broken"]) == (toml, 3, None)
    written = await stage.post("/console/definition", {"document": document})
    assert written["toml"] == f'seeds = ["{SITE}"]\n\n[limits]\npages = 5\n'
    assert written["document"] == document


@pytest.mark.parametrize(
    ("toml", "line", "why"),
    [
        ("seeds = [\n\n=", 3, "Invalid value"),
        ("a = 1\na = 2\n", 2, "Cannot overwrite"),
        ("a = " + "[" * 5_000, None, "nested too deeply"),
    ],
)
async def test_invalid_toml_reports_line(
    stage: Stage, toml: str, line: int | None, why: str
) -> None:
    """An unfinished line is the usual case while a user types."""
    broken = (await stage.post("/console/definition", {"toml": toml}))["broken"]
    assert broken["line"] == line
    assert why in broken["text"]


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"toml": ".".join("a" * 50_000) + " = 1"}),
        json.dumps({"toml": "#" * 1_000_001}),
        '{"document": ' + '{"a":' * 300_000 + "1" + "}" * 300_001,
        '{"document": ' + "[" * 300_000 + "]" * 300_000 + "}",
        '{"document": {"a": 1, "a": 2}}',
    ],
    ids=["long key", "long text", "deep tables", "deep lists", "a key twice"],
)
async def test_definition_costing_too_much_is_refused(stage: Stage, body: str) -> None:
    for path in ("/console/definition", "/console/preview", "/console/schedules"):
        assert (await stage.ask("POST", path, data=io.BytesIO(body.encode()))).status == 400
    trial = body.replace('"document"', '"crawl"')
    reply = await stage.ask("POST", "/console/trial", data=io.BytesIO(trial.encode()))
    assert reply.status == 400


async def test_definition_is_read_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large text takes seconds, and other browsers must not wait."""
    readers: set[str] = set()
    read = tomllib.loads

    def noted(text: str) -> dict[str, Any]:
        readers.add(threading.current_thread().name)
        return read(text)

    monkeypatch.setattr(tomllib, "loads", noted)
    async with opened(tmp_path) as stage:
        await stage.post("/console/definition", {"toml": "name = 'x'\n"})
        await stage.ask("POST", "/console/trial", json={"crawl": "x", "toml": "a = 1"})
    assert readers == {"definition_0"}


async def test_date_in_definition_is_a_problem(stage: Stage) -> None:
    """JSON has no dates."""
    read = await stage.post("/console/definition", {"toml": "name = 2026-01-02\n"})
    assert read["document"] == {"name": "2026-01-02"}


async def test_preview_of_invalid_or_inner_address_is_refused(stage: Stage) -> None:
    reply = await stage.ask("POST", "/console/preview", json={"document": {"seeds": []}})
    assert (reply.status, "seeds" in await reply.text()) == (400, True)
    definition = {"seeds": ["http://10.0.0.1/"], "politeness": {"robots": False}}
    assert "10.0.0.1" in (await stage.post("/console/preview", {"document": definition}))["why"]
    assert (await stage.get("/api/crawls"))["crawls"] == []


# --- whole runs ---------------------------------------------------------------------------------


async def test_map_of_site_reads_records_once(stage: Stage) -> None:
    await stage.begin("/", "/a/1", "/a/2")
    whole = await stage.get(f"/console/sections?crawl={RUN.id}")
    assert (whole["at"], whole["hosts"]) == (SITE, 1)
    assert [(row["at"], row["urls"]) for row in whole["inner"]] == [(f"{SITE}/a", 2)]
    await stage.ports.pages.store([record("/a/3")])
    inner = await stage.get(f"/console/sections?crawl={RUN.id}&at={SITE}/a")
    assert (inner["urls"], inner["cut"], inner["crawl"]) == (2, False, RUN.id)
    stage.clock.at_ms += KEPT_MS
    assert (await stage.get(f"/console/sections?crawl={RUN.id}&at={SITE}/a"))["urls"] == 3
    other = replace(record("/"), url="https://b.example/")
    await stage.ports.pages.store([other])
    stage.clock.at_ms += KEPT_MS
    whole = await stage.get(f"/console/sections?crawl={RUN.id}")
    assert (whole["at"], whole["hosts"], len(whole["inner"])) == ("", 2, 2)
    for query, status in (
        ("", 400),
        (f"?crawl={RUN.id}&at=nothing", 404),
        (f"?crawl={RUN.id}&more=1", 400),
        ("?crawl=nothing-like-it", 404),
    ):
        assert (await stage.ask("GET", f"/console/sections{query}")).status == status, query


EARLIER = replace(RUN, id="site-0", started_at_ms=RUN.started_at_ms - 60_000)


async def kept_page(stage: Stage, run: Crawl, path: str, body: bytes, **fields: Any) -> None:
    url, key = SITE + path, f"bodies/{run.id}{path}.warc.gz"
    member = warc.response(url, NOW_MS, status=200, headers={}, body=body, truncated=False)
    await stage.ports.files.put(key, member)
    place = {"body_key": key, "body_offset": 0, "body_length": len(member)}
    known = {"crawl": run.id, "sha256": hashlib.sha256(body).hexdigest(), **place}
    await stage.ports.pages.store([record(path, **{**known, **fields})])


async def test_comparison_of_runs_has_counts_pages_and_text_diff(stage: Stage) -> None:
    for run in (EARLIER, RUN):
        await stage.ports.crawls.create(run)
    text = b"<title>A</title><article><p>The price is %d euro.</p></article>"
    await kept_page(stage, EARLIER, "/a", text % 5)
    await kept_page(stage, RUN, "/a", text % 7)
    await kept_page(stage, RUN, "/new", b"<p>new", body_key=None)
    pair = f"before={EARLIER.id}&after={RUN.id}"
    shown = await stage.get(f"/console/changes?{pair}")
    assert {kind: count for kind, count in shown["counts"].items() if count} == {
        "changed": 1,
        "new": 1,
    }
    assert [page["url"] for page in shown["pages"]] == [f"{SITE}/a", f"{SITE}/new"]
    for query in ("kind=new", "text=NEW"):
        only = await stage.get(f"/console/changes?{pair}&{query}")
        assert [page["url"] for page in only["pages"]] == [f"{SITE}/new"]
    told = await stage.get(f"/console/text-changes?{pair}&url={SITE}/a")
    (line,) = told["diff"]["lines"]
    assert [piece for piece, differs in line["before"] if differs] == ["5"]
    assert [piece for piece, differs in line["after"] if differs] == ["7"]
    for url, why in ((f"{SITE}/new", "no record"), (f"{SITE}/none", "no record")):
        assert why in (await stage.get(f"/console/text-changes?{pair}&url={url}"))["why"]
    same = f"before={RUN.id}&after={RUN.id}"
    told = await stage.get(f"/console/text-changes?{same}&url={SITE}/new")
    assert told["why"] == f"{RUN.id}: its body is not stored"
    for query in (f"{pair}&kind=odd", f"before={RUN.id}", f"{pair}&kind="):
        assert (await stage.ask("GET", f"/console/changes?{query}")).status == 400
    assert (await stage.ask("GET", f"/console/text-changes?{pair}&url=nonsense")).status == 400


# --- rules --------------------------------------------------------------------------------------

RULES = """
[[items]]
name = "books"
match = "/books/"
[items.fields]
title = { css = "h1", required = true }
price = { css = ".price", type = "price" }
"""


async def test_rules_on_stored_page_show_values_and_problems(stage: Stage) -> None:
    await stage.ports.crawls.create(RUN)
    await kept_page(stage, RUN, "/books/1", b"<h1>One</h1><p class=price>5.50 EUR</p>")
    await kept_page(stage, RUN, "/books/2", b"<p class=price>cheap</p>")
    await kept_page(stage, RUN, "/other", b"<h1>Other</h1>")

    async def tried(path: str) -> Any:
        body = {"crawl": RUN.id, "toml": RULES, "url": SITE + path}
        return (await stage.post("/console/trial", body))["page"]

    (item,) = (await tried("/books/1"))["items"]
    assert (item["fields"]["title"], str(item["fields"]["price"])) == ("One", "5.50")
    (item,) = (await tried("/books/2"))["items"]
    assert any("title" in problem for problem in item["problems"])
    assert "no rule matches" in (await tried("/other"))["why"]
    assert "no record" in (await tried("/none"))["why"]
    body = {"crawl": RUN.id, "toml": RULES, "url": "nonsense"}
    assert (await stage.ask("POST", "/console/trial", json=body)).status == 400
    found = (await stage.post("/console/trial", {"crawl": RUN.id, "toml": RULES}))["coverage"]
    (rule,) = found["rules"]
    assert (found["pages"], rule["items"], rule["invalid"]) == (2, 2, 1)
    assert rule["fields"]["title"] == 1
    assert found["unread"] == {}


async def test_coverage_of_rules_samples_at_most_fifty_pages(stage: Stage) -> None:
    await stage.ports.crawls.create(RUN)
    for number in range(PAGES_MAX + 5):
        await kept_page(stage, RUN, f"/books/{number}", b"<h1>One</h1>")
    await kept_page(stage, RUN, "/books/pdf", b"%PDF", content_type="application/pdf")
    await stage.ports.pages.store([record("/books/bare")])
    found = (await stage.post("/console/trial", {"crawl": RUN.id, "toml": RULES}))["coverage"]
    assert found["pages"] + sum(found["unread"].values()) == PAGES_MAX


@pytest.mark.parametrize(
    ("toml", "path", "line"),
    [
        ("[[items]]\nname = =\n", "", 2),
        (RULES.replace("h1", "h1["), "items[0].fields.title.css", 6),
        (RULES.replace('css = "h1"', 'cs = "h1"'), "items[0].fields.title.cs", 6),
        ('[[items]]\nname = "a"\nmatch = "/"\nextractor = "f"\n', "items[0].extractor", 4),
    ],
)
async def test_invalid_rules_report_key_and_line(
    stage: Stage, toml: str, path: str, line: int
) -> None:
    await stage.begin("/")
    body = {"crawl": RUN.id, "toml": toml, "url": f"{SITE}/"}
    told = await stage.post("/console/trial", body)
    assert told["page"] is None
    assert (path, line) in [(one["path"], one["line"]) for one in told["problems"]]


# --- the store ----------------------------------------------------------------------------------


async def test_stack_shows_queues_and_dollars_per_day(stage: Stage) -> None:
    await stage.begin()
    await stage.ports.queue.dead_letter(f'{{"url": "{SITE}/"}}', "odd")
    listed = lists_counted(stage)
    first, shown = [await stage.get("/console/stack") for _ in range(2)]
    assert first == shown
    assert (shown["queues"]["dead"], shown["queues"]["waiting"]) == (1, 0)
    assert shown["spending"] == {
        "days": [{"day": day_of(RUN.started_at_ms), "runs": 1, "pages": 0, "usd": 0.0}],
        "runs_more": 0,
    }
    assert len(listed) == 1, "a whole table is read once a minute"


async def test_stack_days_follow_requested_time_zone(stage: Stage) -> None:
    await stage.begin()
    for zone, day in (("UTC", "2026-11-21"), ("Pacific/Honolulu", "2026-11-20")):
        shown = await stage.get(f"/console/stack?zone={zone}")
        assert [one["day"] for one in shown["spending"]["days"]] == [day]
    assert (await stage.ask("GET", "/console/stack?zone=Mars")).status == 400


async def test_about_without_workers_is_idle_while_messages_are_queued(stage: Stage) -> None:
    assert (await stage.get("/console/about"))["idle"] is None
    await stage.ask("POST", "/api/crawls", json={"seeds": [f"{SITE}/"]})
    assert "No workers running" in (await stage.get("/console/about"))["idle"]


async def test_store_has_no_worker_switch(stage: Stage) -> None:
    assert (await stage.get("/console/stack"))["workers"] is None
    reply = await stage.ask("POST", "/console/stack/workers", json={"on": False})
    assert reply.status == 400
    assert "a store has no workers to switch" in (await reply.json())["detail"]


async def test_schedules_are_put_listed_and_removed(stage: Stage) -> None:
    """The list has no definitions, because they may hold secrets."""
    document = {"seeds": [f"{SITE}/"], "name": "nightly", "schedule": {"every": "6h"}}
    headers = {"identity": {"headers": {"Cookie": "s3cret"}}}
    put = await stage.post("/console/schedules", {"document": document | headers})
    shown = await stage.get("/console/schedules")
    assert shown == {"schedules": [{**put, "last": None}]}
    assert (put["name"], len(put["next_ms"])) == ("nightly", 3)
    assert "s3cret" not in str(shown)
    for wrong in ({"seeds": [f"{SITE}/"]}, {"seeds": [], "schedule": {"every": "6h"}}):
        reply = await stage.ask("POST", "/console/schedules", json={"document": wrong})
        assert reply.status == 400
    for paused in (True, False):
        body = {"name": "nightly", "paused": paused}
        assert (await stage.post("/console/schedules/pause", body))["paused"] is paused
        [listed] = (await stage.get("/console/schedules"))["schedules"]
        assert bool(listed["next_ms"]) is not paused
    assert await stage.post("/console/schedules/remove", {"name": "nightly"}) == {
        "removed": "nightly"
    }
    assert await stage.get("/console/schedules") == {"schedules": []}
    reply = await stage.ask("POST", "/console/schedules/remove", json={"name": "nightly"})
    assert reply.status == 400


# --- dead letters -------------------------------------------------------------------------------


async def dead_letter(stage: Stage, *reasons: str) -> None:
    """Add a dead letter for each reason."""
    for number, reason in enumerate(reasons):
        await stage.ports.queue.dead_letter(f'{{"url": "{SITE}/{number}"}}', reason)


async def test_dead_letters_are_grouped_redriven_and_purged(stage: Stage) -> None:
    await dead_letter(stage, "failed 5 times", "failed 5 times", "odd", "oddly")
    found = await stage.get("/console/dead-letters")
    assert {group["cause"]: group["count"] for group in found["groups"]} == {
        "failed too often": 2,
        "odd": 1,
        "oddly": 1,
    }
    assert found["groups"][0]["hosts"] == [[SITE, 2]]
    stage.clock.at_ms += 1_000
    await dead_letter(stage, "odd")
    body = {"cause": "odd", "until_ms": found["looked_ms"]}
    assert (await stage.post("/console/dead-letters/purge", body))["purged"] == 1
    sent = await stage.post("/console/dead-letters/redrive", {"cause": "failed too often"})
    assert sent == {"sent": 2, "skipped": {}, "cut": False}
    assert sum(stage.ports.inbox(lane).depth().waiting for lane in LANES) == 2
    left = await stage.get("/console/dead-letters")
    assert {group["cause"]: group["count"] for group in left["groups"]} == {"odd": 1, "oddly": 1}


# --- tables and pages ---------------------------------------------------------------------------


async def test_table_of_pages_downloads_as_csv_of_export(stage: Stage) -> None:
    await stage.begin("/", "/a", title="=HYPERLINK(1)")
    ticket = (await stage.post("/console/table", {"crawl": RUN.id}))["ticket"]
    reply = await stage.ask("GET", f"/download/{ticket}", {})
    assert f'filename="{RUN.id}-pages.csv"' in reply.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO((await reply.read()).decode("utf-8-sig"))))
    assert {row["url"] for row in rows} == {f"{SITE}/", f"{SITE}/a"}
    assert {row["title"] for row in rows} == {"'=HYPERLINK(1)"}


RULE = ItemRule(name="shouts", match="/", fields=(Field(name="title", where="h1"),))
ROW = {"url": f"{SITE}/a", "title": "A"}


@pytest.mark.parametrize(
    ("form", "name", "read"),
    [
        ("csv", "csv", lambda body: list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"))))),
        (
            "jsonl",
            "jsonl.gz",
            lambda body: [json.loads(line) for line in gzip.decompress(body).splitlines()],
        ),
        (
            "parquet",
            "parquet",
            lambda body: pyarrow.parquet.read_table(io.BytesIO(body)).to_pylist(),
        ),
    ],
)
async def test_table_of_items_downloads_in_each_format(
    stage: Stage, form: str, name: str, read: Any
) -> None:
    await stage.ports.crawls.create(replace(RUN, items=(RULE,)))
    found = [
        Item(table="shouts", place=0, fields={"title": "A"}),
        Item(table="shouts", place=1, fields={"title": "B"}, problems=("title: odd",)),
        Item(table="others", place=0, fields={"title": "C"}),
    ]
    await stage.ports.pages.store([record("/a", extracted=tuple(found)), record("/b")])
    wanted = {"crawl": RUN.id, "rule": "shouts", "form": form}
    ticket = (await stage.post("/console/table", wanted))["ticket"]
    reply = await stage.ask("GET", f"/download/{ticket}", {})
    assert reply.status == 200, await reply.text()
    assert f'filename="{RUN.id}-shouts.{name}"' in reply.headers["Content-Disposition"]
    (row,) = read(await reply.read())
    assert {key: row[key] for key in ROW} == ROW
    for wrong in ({"rule": "nothing"}, {"form": "warc"}, {"form": 5}):
        assert (await stage.ask("POST", "/console/table", json={**wanted, **wrong})).status == 400


async def test_pulse_of_run_lists_latest_urls(stage: Stage) -> None:
    await stage.begin(*(f"/{place}" for place in range(LATEST_MAX + 3)))
    await stage.ports.pages.store([replace(record("/other"), crawl=f"{RUN.id}-b")])
    latest = (await stage.get(PULSE))["latest"]
    assert len(latest) == LATEST_MAX
    assert [latest[0]["url"], latest[-1]["url"]] == [f"{SITE}/{LATEST_MAX + 2}", f"{SITE}/3"]


async def test_schedule_shows_state_and_pages_of_newest_run(stage: Stage) -> None:
    await stage.begin()
    document = {"seeds": [f"{SITE}/"], "name": RUN.name, "schedule": {"every": "6h"}}
    await stage.post("/console/schedules", {"document": document})
    (shown,) = (await stage.get("/console/schedules"))["schedules"]
    assert shown["last"] == {
        "id": RUN.id,
        "state": "running",
        "started_ms": RUN.started_at_ms,
        "pages": 0,
    }


async def kept(stage: Stage, body: bytes, tombstone: bytes = b"", **fields: Any) -> Any:
    """Store a page with its body. Return the answer to a request for its frame."""
    member = warc.response(f"{SITE}/", NOW_MS, status=200, headers={}, body=body, truncated=False)
    member = tombstone or member
    await stage.ports.files.put("bodies/one.warc.gz", member)
    place = {"body_key": "bodies/one.warc.gz", "body_offset": 0, "body_length": len(member)}
    await stage.begin("/", **{**place, **fields})
    return await stage.post("/console/frame", {"url": f"{SITE}/", "crawl": RUN.id})


async def shown(stage: Stage, ticket: str) -> Any:
    """Request a page by its ticket on the console's second port."""
    return await stage.client.get(URL(f"http://127.0.0.1:{stage.stored_port}/{ticket}"))


async def test_stored_page_is_served_once_in_a_sandbox(tmp_path: Path) -> None:
    body = b"<script>steal()</script><p onclick=x()>caf\xe9"
    async with opened(tmp_path) as stage:
        told = await kept(stage, body, charset="windows-1252")
        reply = await shown(stage, told["ticket"])
        assert (reply.status, await reply.read()) == (200, body)
        assert reply.headers["Content-Type"] == "text/html; charset=windows-1252"
        policy = reply.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none';")
        assert f"frame-ancestors http://127.0.0.1:{stage.url.port} " in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert (await shown(stage, told["ticket"])).status == 404


async def test_screenshot_is_served_inside_a_page_of_the_console(stage: Stage) -> None:
    image = b"RIFF" + bytes(400)
    member = warc.screenshot_record(f"{SITE}/", NOW_MS, image)
    await stage.ports.files.put("bodies/two.warc.gz", member)
    place = {"body_key": "bodies/two.warc.gz", "screenshot_length": len(member)}
    await stage.begin("/", **place, screenshot_offset=0)
    asked = {"url": f"{SITE}/", "crawl": RUN.id}
    reply = await shown(stage, (await stage.post("/console/picture", asked))["ticket"])
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "img-src data:" in reply.headers["Content-Security-Policy"]
    assert f'"data:image/webp;base64,{b64encode(image).decode()}"' in await reply.text()
    assert (await kept(stage, b"<p>none"))["ticket"]


async def test_stored_page_is_refused_by_other_host_or_port(stage: Stage) -> None:
    """A rebound DNS name cannot read it.

    The console's origin, which has the token, cannot either.
    """
    ticket = (await kept(stage, b"<p>"))["ticket"]
    elsewhere = {"Host": f"evil.example:{stage.stored_port}"}
    url = URL(f"http://127.0.0.1:{stage.stored_port}/{ticket}")
    assert (await stage.client.get(url, headers=elsewhere)).status == 421
    for path in (f"/{ticket}", f"/download/{ticket}"):
        assert (await stage.ask("GET", path, BEARER)).status == 404


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"body_key": None}, NOT_KEPT),
        (
            {"body_key": "bodies/gone.warc.gz"},
            "its body is past its retention, or its file was deleted",
        ),
        ({"content_type": "application/pdf"}, NO_TEXT),
        ({"content_type": "image/svg+xml"}, NO_TEXT),
        ({"content_type": None}, NO_TEXT),
    ],
)
async def test_missing_page_has_reason_and_no_ticket(
    stage: Stage, fields: dict[str, Any], why: str
) -> None:
    assert await kept(stage, b"<p>", **fields) == {"ticket": None, "why": why}
    other = await stage.post("/console/frame", {"url": f"{SITE}/b", "crawl": RUN.id})
    assert (other["ticket"], "no record" in other["why"]) == (None, True)


async def test_erased_page_shows_placeholder(stage: Stage) -> None:
    told = await kept(stage, b"", warc.tombstone(200))
    assert told == {"ticket": None, "why": "its body was forgotten"}


@pytest.mark.parametrize(
    ("content_type", "charset", "as_what"),
    [
        ("text/html", None, "text/html; charset=utf-8"),
        ("TEXT/HTML; charset=x", "big5", "text/html; charset=big5"),
        ("text/html", "x\r\nSet-Cookie: a=b", "text/html; charset=utf-8"),
        ("text/javascript", None, "text/plain; charset=utf-8"),
        ("application/json", None, "text/plain; charset=utf-8"),
        ("image/png", None, None),
        ("application/octet-stream", None, None),
    ],
)
def test_body_is_served_as_safe_type_or_refused(
    content_type: str, charset: str | None, as_what: str | None
) -> None:
    assert shown_as(record("/", content_type=content_type, charset=charset)) == as_what


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, ("an earlier run of site requested the seed", "7 days. To request")),
        ({"seeds": (f"{SITE}/", f"{SITE}/a")}, ("requested every seed",)),
        ({"resumes": ("site-0",), "pages_max": 0}, ("site-0 used up the limit of 0 pages",)),
        ({"resumes": ("site-0",)}, ("that site-0 left over",)),
    ],
)
async def test_run_without_requests_explains_why(
    tmp_path: Path, made: dict[str, Any], said: tuple[str, ...]
) -> None:
    async with opened(tmp_path) as stage:
        ended: dict[str, Any] = {"state": State.FINISHED, "finished_at_ms": NOW_MS}
        await stage.ports.crawls.create(replace(RUN, stop=Stop.FINISHED, **ended, **made))
        notice = (await stage.get(PULSE))["notice"]
        assert all(one in notice for one in said), notice
    async with opened(tmp_path / "other") as stage:
        await stage.ports.crawls.create(RUN)
        assert (await stage.get(PULSE))["notice"].startswith("No workers running")
