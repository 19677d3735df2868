"""Erasure removes every trace, keeps the rest, and survives a kill at any moment."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.control.crawl_control import Conflict
from orbweaver.erasure.erasure import exported, preview
from orbweaver.erasure.scope import ErasureScope, scope_of_host, scope_of_url
from orbweaver.exporting.formats import outcomes
from orbweaver.exporting.glue_schema import query_name
from orbweaver.exporting.manifest import (
    PREFIX,
    File,
    Sums,
    decode_manifest,
    encode_manifest,
    manifest_path,
)
from orbweaver.frontier.messages import SeedsMessage, encode
from orbweaver.model.auth import OriginAuth
from orbweaver.model.columns import item_table
from orbweaver.model.crawl import State
from orbweaver.model.errors import StoredNewer
from tests.memory import Mail
from tests.unit.forgetting import (
    DAY,
    ELSEWHERE,
    ENDED,
    OTHER,
    PATH,
    URL,
    URLS,
    everything,
    fill,
    forgetter_of,
    stores_of,
    traces_of,
    unpacked,
)
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, html, kill_at, noting, survives
from tests.unit.stage import outcomes as ends

WHOLE = ErasureScope(urls=frozenset({URL}))
# Bodies of other pages that link to the erased URL.
LINKS = replace(WHOLE, mentions=True)
SCOPE = {
    "url": (WHOLE, (PATH,)),
    "host": (ErasureScope(host="other.example"), ("other.example",)),
    "crawl": (ErasureScope(runs=frozenset({ENDED.id})), (PATH, ELSEWHERE, OTHER)),
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage()
    fill(made.world, tmp_path)
    return made


@pytest.mark.parametrize("which", SCOPE)
async def test_erased_scope_leaves_no_trace(stage: Stage, which: str) -> None:
    scope, needles = SCOPE[which]
    before = traces_of(stage.world, *needles)
    assert {place.split()[0] for place in before} >= {"claims", "pages", "buried", "file"}
    done = await forgetter_of(stage).forget(scope)
    assert traces_of(stage.world, *needles) == []
    assert done.left == ()
    again = await forgetter_of(stage).forget(scope)
    assert {kind: count for kind, count in again.done.items() if kind != "crawls"} == {}


async def test_other_pages_are_kept_without_referrer(stage: Stage) -> None:
    world = stage.world
    await forgetter_of(stage).forget(WHOLE)
    records = {record.url: record for record in world.pages.values()}
    assert set(records) == {OTHER, ELSEWHERE}
    assert (records[OTHER].canonical, records[ELSEWHERE].referrer) == (None, None)
    assert records[OTHER].extracted[0].fields == {"name": "J", "page": None}
    assert {url for _, url in world.claims} == {OTHER, ELSEWHERE}
    assert world.crawls[ENDED.id].seeds == (OTHER, ELSEWHERE)
    for url in (OTHER, ELSEWHERE):
        record = records[url]
        assert record.body_key is not None
        assert record.body_offset
        assert record.body_length
        end = record.body_offset + record.body_length
        assert url in unpacked(".gz", world.files[record.body_key][record.body_offset : end])


async def test_manifests_list_files_after_erasure(stage: Stage) -> None:
    world = stage.world
    await forgetter_of(stage).forget(WHOLE)
    for crawl in (None, ENDED.id):
        body = world.files[PREFIX + manifest_path(DAY, crawl)]
        manifest = decode_manifest(body)
        assert manifest is not None
        assert manifest.rows == {"pages": 2, "texts": 2}
        assert manifest.crawls[ENDED.id].outcomes == {"fetched": 2}
        for file in manifest.files:
            stands = world.files[PREFIX + file.path]
            assert (file.rows, file.bytes) == (2, len(stands)), file.path
            if file.table == "pages" and file.format != "warc":
                assert outcomes(file.path, stands) == {"fetched": 2}
    assert not any("_work/" in key for key in world.files)


@pytest.mark.thorough
@pytest.mark.parametrize("step", [pytest.param(5, marks=pytest.mark.long), 17])
@pytest.mark.parametrize("which", SCOPE)
async def test_erasure_killed_at_any_moment_completes(
    tmp_path: Path, which: str, step: int
) -> None:
    scope, needles = SCOPE[which]
    whole = Stage()
    fill(whole.world, tmp_path)
    await forgetter_of(whole).forget(scope)
    wanted = _files(whole)
    number, finished = 1, False
    while not finished:
        stage = Stage()
        fill(stage.world, tmp_path)
        finished = await survives(forgetter_of(stage, kill_at(number)).forget(scope))
        stage.clock.at_ms += 1_000_000  # its messages become visible again
        await forgetter_of(stage).forget(scope)
        assert traces_of(stage.world, *needles) == [], number
        assert _files(stage) == wanted, number
        number += step  # testing every moment would take minutes
    assert number > 100


def _files(stage: Stage) -> dict[str, str]:
    return {key: text for key, text in everything(stage.world).items() if key.startswith("file")}


async def test_sources_of_data_are_erased_before_data(stage: Stage) -> None:
    """Order: the rule, dead letters, claims and records, files.

    Data erased later cannot restore data erased earlier.
    """
    effects: list[str] = []
    await forgetter_of(stage, noting(effects)).forget(WHOLE)
    order = ("traces.redefine", "dead_letters.delete", "traces.claim", "traces.record", "files.put")
    firsts = [effects.index(effect) for effect in order]
    assert firsts == sorted(firsts)


async def test_late_message_restores_nothing(stage: Stage) -> None:
    late = [mail.body for mail in stage.world.sent]
    await forgetter_of(stage).forget(WHOLE)
    stage.restart()
    for body in late[:2]:
        assert await stage.deliver(body) == []
    assert traces_of(stage.world, PATH) == []


async def test_erased_crawl_keeps_its_end(stage: Stage) -> None:
    late = [mail.body for mail in stage.world.sent]
    await forgetter_of(stage).forget(SCOPE["crawl"][0])
    assert await stage.crawls.list() == ()
    stage.restart()
    assert await stage.deliver(*late[:2]) == []
    assert stage.world.buried == []
    assert traces_of(stage.world, PATH) == []


# --- running crawls -----------------------------------------------------------------------------


async def test_data_of_newer_version_is_not_erased(stage: Stage) -> None:
    body = '{"v":2,"crawl":"site-9","at":1,"work":"compressed"}'
    stage.world.buried.append(Mail(body=body, reason="stored by a newer version"))
    done = await forgetter_of(stage).forget(WHOLE)
    assert any("of version 2" in left and "deploy that version" in left for left in done.left)
    assert [mail.body for mail in stage.world.buried].count(body) == 1
    stage.world.newer[ENDED.id] = "stored by a newer version"
    with pytest.raises(StoredNewer):
        await forgetter_of(stage).forget(WHOLE)


async def test_crawl_must_have_finished_to_be_erased(stage: Stage) -> None:
    stage.world.crawls[ENDED.id] = replace(ENDED, state=State.PAUSED, finished_at_ms=None)
    with pytest.raises(Conflict, match="cancel"):
        await forgetter_of(stage).forget(SCOPE["crawl"][0])


async def test_item_tables_are_removed_with_last_run_of_name(stage: Stage) -> None:
    world = stage.world
    tables = [item_table(name, "books", ()) for name in (ENDED.name, "other")]
    world.catalogue |= {query_name(table.name): table for table in tables}
    other = replace(ENDED, id=f"{ENDED.name}-20200101-000000")
    world.crawls[other.id] = other
    await forgetter_of(stage).forget(SCOPE["crawl"][0])
    assert len(world.catalogue) == 2
    done = await forgetter_of(stage).forget(ErasureScope(runs=frozenset({other.id})))
    assert done.done["tables"] == 1
    assert [table.name for table in world.catalogue.values()] == ["items/other/books"]


async def test_manifests_omit_tables_without_files(stage: Stage) -> None:
    world = stage.world
    theirs = File(
        path=f"items/other/books/parquet/dt={DAY}/other-1/part-00-00000.parquet",
        table="items/other/books",
        format="parquet",
        crawl="other-1",
        rows=1,
        bytes=1,
        sha256=hashlib.sha256(b"x").hexdigest(),
    )
    world.files[PREFIX + theirs.path] = b"x"
    key = PREFIX + manifest_path(DAY, None)
    manifest = decode_manifest(world.files[key])
    assert manifest is not None
    sums = {**manifest.crawls, "other-1": Sums(name="other", rows={"pages": 1}, outcomes={})}
    columns = {f"items/{name}/books": () for name in (ENDED.name, "other")} | {"pages": ()}
    manifest = replace(manifest, crawls=sums, files=(*manifest.files, theirs), columns=columns)
    world.files[key] = encode_manifest(manifest)
    await forgetter_of(stage).forget(SCOPE["crawl"][0])
    left = decode_manifest(world.files[key])
    assert left is not None
    assert left.columns.keys() == {"items/other/books", "pages"}
    assert ENDED.name.encode() not in world.files[key]


async def _paused(stage: Stage, steps: int) -> None:
    """Start a crawl, and pause it after `steps` messages."""
    links = {OTHER: (URL, f"{SITE}/a"), f"{SITE}/a": (URL, f"{SITE}/b"), URL: (OTHER,)}
    for url in (OTHER, URL, f"{SITE}/a", f"{SITE}/b"):
        stage.web.put(url, html(*links.get(url, ())))
    seeds = SeedsMessage(id="5eed", crawl=CRAWL.id, at_ms=NOW_MS, references=(OTHER,), planned=True)
    stage.world.crawls[CRAWL.id] = replace(CRAWL, seeds=(OTHER,), seeds_planned=1)
    stage.world.sent.append(Mail(body=encode(seeds)))
    for _ in range(steps):
        mail = stage.world.sent.pop(0)
        await stage.deliver(mail.body)
    crawl = stage.world.crawls[CRAWL.id]
    if crawl.state is State.RUNNING:
        stage.world.crawls[CRAWL.id] = replace(crawl, state=State.PAUSED)


async def _finish(stage: Stage) -> None:
    """Resume the crawl, if it is still paused, and run it to its end."""
    crawl = stage.world.crawls[CRAWL.id]
    if crawl.state is State.PAUSED:
        stage.world.crawls[CRAWL.id] = replace(crawl, state=State.RUNNING)
        stage.restart()
        bodies = list(stage.world.parked.values())
        stage.world.parked.clear()
        stage.world.sent += [Mail(body=body) for body in bodies]
        await stage.drain()
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("steps", range(4))
async def test_paused_crawl_finishes_after_erasure(steps: int, *, parked: bool) -> None:
    """Its claimed URLs end as `skipped: erased`, so its counters balance."""
    stage = Stage()
    await _paused(stage, steps)
    stage.restart()
    if parked:
        await stage.drain()
    await forgetter_of(stage).forget(LINKS)
    assert traces_of(stage.world, PATH) == []
    await _finish(stage)
    counts = stage.counts()
    assert counts["claimed"] == sum(counts.get(end, 0) for end in ("fetched", "skipped", "failed"))
    assert set(ends(stage.world)) == {OTHER, f"{SITE}/a", f"{SITE}/b"}
    assert counts.get("skipped.erased", 0) == (1 if steps == 2 else 0)


@pytest.mark.parametrize("steps", [2, 3])
async def test_erasure_of_paused_crawl_survives_kill(steps: int) -> None:
    number, finished = 1, False
    while not finished:
        stage = Stage()
        await _paused(stage, steps)
        finished = await survives(forgetter_of(stage, kill_at(number)).forget(LINKS))
        stage.clock.at_ms += 1_000_000
        await forgetter_of(stage).forget(LINKS)
        assert traces_of(stage.world, PATH) == [], number
        await _finish(stage)
        number += 3


# --- scope --------------------------------------------------------------------------------------


def test_scope_of_url_follows_tracking_of_crawls() -> None:
    kept = replace(CRAWL, tracking=())
    scope = scope_of_url(f"{URL}?utm_source=x&a=1#top", [CRAWL, kept])
    assert scope.urls == {f"{URL}?a=1", f"{URL}?utm_source=x&a=1"}
    with pytest.raises(ValueError, match="http"):
        scope_of_url("mailto:x@example.org", [])


@pytest.mark.parametrize(
    ("named", "url", "in_scope"),
    [
        ("Example.org", "https://example.org/a", True),
        ("example.org", "http://example.org:8080/", True),
        ("example.org", "https://www.example.org/", False),
        ("example.org:8080", "http://example.org:8080/", True),
        ("example.org:8080", "http://example.org/", False),
        ("https://example.org", "https://example.org/", True),
        ("https://example.org", "http://example.org/", False),
        ("example.org", "ftp://example.org/", False),
    ],
)
def test_scope_of_host_matches_name_port_and_scheme(named: str, url: str, in_scope: bool) -> None:
    assert scope_of_host(named).url(url) is in_scope


async def test_exported_returns_names_of_runs(stage: Stage) -> None:
    assert await exported(stores_of(stage).files) == {ENDED.id: ENDED.name}


async def test_preview_counts_without_effect(stage: Stage) -> None:
    before = everything(stage.world)
    look = await preview(stores_of(stage), WHOLE)
    assert dict(look.found) == {
        "claims": 1,
        "records": 1,
        "mentions_in_records": 2,
        "dead_letters": 2,
        "definitions": 1,
    }
    assert look.crawls == ()
    assert everything(stage.world) == before


async def test_bodies_mentioning_url_are_erased_on_request(stage: Stage) -> None:
    from random import Random

    from orbweaver.frontier import warc
    from orbweaver.frontier.body_file import Kept, Segment

    segment = Segment(ENDED.id, NOW_MS, Random(5))
    body = f'<a href="{PATH}">Jane</a>'.encode()
    response = warc.response(OTHER, NOW_MS, status=200, headers={}, body=body, truncated=False)
    segment.add(Kept(url=OTHER, response=response))
    stage.world.files[segment.key] = segment.whole()
    done = await forgetter_of(stage).forget(WHOLE)
    assert done.done["mentions"] == 1
    assert traces_of(stage.world, PATH) == [f"file {segment.key}"]
    await forgetter_of(stage).forget(replace(WHOLE, mentions=True))
    assert traces_of(stage.world, PATH) == []
    assert URLS[1] in everything(stage.world)[f"pages {next(iter(stage.world.pages))}"]


async def test_host_with_future_slot_loses_robots_only(stage: Stage) -> None:
    host = "https://other.example"
    stage.world.hosts[host] = replace(stage.world.hosts[host], tat_ms=NOW_MS + 10**9)
    done = await forgetter_of(stage).forget(ErasureScope(host="other.example"))
    assert stage.world.hosts[host].tat_ms == NOW_MS + 10**9
    assert stage.world.hosts[host].robots is None
    assert any(host in left for left in done.left)


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ("crawl", {("other-1", "example.com"), ("other-1", "example.org")}),
        ("host", {("other-1", "example.org")}),
        (
            "url",
            {("other-1", "example.com"), ("other-1", "example.org"), (ENDED.id, "example.com")},
        ),
    ],
)
async def test_cookies_are_erased_with_crawl_or_site(
    stage: Stage, which: str, left: set[tuple[str, str]]
) -> None:
    stage.world.cookies |= dict.fromkeys(
        [(ENDED.id, "example.com"), ("other-1", "example.com"), ("other-1", "example.org")], "[]"
    )
    stage.world.cookies[ENDED.id, SITE] = "{}"
    scope = ErasureScope(host="example.com") if which == "host" else SCOPE[which][0]
    done = await forgetter_of(stage).forget(scope)
    # The state of a login is erased with the cookies of its site.
    if (ENDED.id, "example.com") in left:
        left = left | {(ENDED.id, SITE)}
    assert set(stage.world.cookies) == left
    assert done.done.get("cookies", 0) == 4 - len(left)


async def test_headers_and_login_of_host_are_erased_with_host(stage: Stage) -> None:
    own = ((SITE, (("X-Key", "k"),)), ("https://other.example", (("X-Key", "o"),)))
    auth = tuple(OriginAuth(origin=origin, bearer="env:T") for origin, _ in own)
    stage.world.crawls[ENDED.id] = replace(ENDED, host_headers=own, auth=auth)
    await forgetter_of(stage).forget(ErasureScope(host="example.com"))
    assert stage.world.crawls[ENDED.id].host_headers == own[1:]
    assert stage.world.crawls[ENDED.id].auth == auth[1:]


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (ErasureScope(runs=frozenset({ENDED.id})), ["claimed/other-1/5/b"]),
        (ErasureScope(host="example.org"), []),
    ],
)
async def test_claim_files_are_erased_with_run_or_host(
    stage: Stage, scope: ErasureScope, left: list[str]
) -> None:
    """The digests in a file do not reveal their host, so erasing a host removes all files."""
    for run in (ENDED.id, "other-1"):
        stage.world.files[f"claimed/{run}/5/b"] = b"digests"
    done = await forgetter_of(stage).forget(scope)
    assert [key for key in stage.world.files if key.startswith("claimed/")] == left
    assert done.done["claim_files"] == 2 - len(left)
