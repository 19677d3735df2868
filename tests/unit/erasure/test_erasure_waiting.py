"""Waiting and retries of erasure, and its report of remaining data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.erasure import erasure
from orbweaver.erasure.erasure import ErasurePreview, Forgetter, preview
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.manifest import PREFIX
from orbweaver.frontier.messages import MessageSource, encode
from orbweaver.model.columns import item_table
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import Permanent
from orbweaver.model.page_record import page_key
from tests.memory import Claim, Mail, MemoryTraces, Moment
from tests.unit.forgetting import (
    ENDED,
    OTHER,
    PATH,
    URL,
    fill,
    forgetter_of,
    record_of,
    stores_of,
    traces_of,
)
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, noting, pack_of

WHOLE = ErasureScope(urls=frozenset({URL}))
RUN = ErasureScope(runs=frozenset({ENDED.id}))
PAUSED = replace(CRAWL, state=State.PAUSED, seeds=(URL,))


@pytest.fixture
def stage() -> Stage:
    return Stage()


# --- workers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended_s_ago", "waited_s"),
    [(None, CLOSE_S), (0, CLOSE_S), (CLOSE_S - 1, 1), (CLOSE_S, 0), (CLOSE_S + 9, 0)],
)
async def test_erasure_waits_for_workers_of_ended_or_paused_crawl(
    stage: Stage, ended_s_ago: int | None, waited_s: int
) -> None:
    ended = replace(ENDED, finished_at_ms=NOW_MS - (ended_s_ago or 0) * 1000)
    crawl = PAUSED if ended_s_ago is None else ended
    stage.world.crawls[crawl.id] = crawl
    said: list[str] = []
    effects: list[tuple[str, int]] = []

    async def gate(effect: str, _moment: Moment) -> None:
        effects.append((effect, stage.clock.at_ms))

    stores = stores_of(stage, gate)
    look = await preview(stores, WHOLE)
    del effects[:]
    await Forgetter(stores, said.append).forget(WHOLE, look)
    first = next(at_ms for effect, at_ms in effects if effect == "dead_letters.take")
    assert first == NOW_MS + waited_s * 1000
    ruled = [at_ms for effect, at_ms in effects if effect == "traces.redefine"]
    assert set(ruled) == {NOW_MS}
    assert (f"waiting {waited_s} s for workers to be done" in said) is bool(waited_s)


async def test_erasure_without_workers_does_not_wait(stage: Stage) -> None:
    stage.world.crawls[ENDED.id] = replace(ENDED, finished_at_ms=NOW_MS)
    stage.world.crawls["site-2"] = replace(PAUSED, id="site-2")
    await Forgetter(stores_of(stage), idle=True).forget(WHOLE)
    assert stage.clock.at_ms == NOW_MS


async def test_erasure_waits_for_last_ended_crawl(stage: Stage) -> None:
    for place, ago in enumerate((5, 0, 9)):
        crawl = replace(ENDED, id=f"site-{place}", finished_at_ms=NOW_MS - ago * 1000)
        stage.world.crawls[crawl.id] = crawl
    await forgetter_of(stage).forget(WHOLE)
    assert stage.clock.at_ms == NOW_MS + CLOSE_S * 1000


# --- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 100])
async def test_small_batches_erase_everything_of_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(erasure, "BATCH", batch)
    stage.world.crawls[ENDED.id] = ENDED
    for place in range(7):
        for crawl in (ENDED.id, "site-0", "other-1"):
            url = f"{SITE}/{crawl}/{place}"
            was = Claim(url=url, pack="p", at_ms=1, expires_s=2, crawl=ENDED.id)
            stage.world.claims["site", url] = replace(
                was, crawl=crawl, was=was if crawl == "site-0" else None
            )
            record = record_of(url, crawl)
            stage.world.pages[page_key(record, 16)] = record
    done = await forgetter_of(stage).forget(RUN)
    assert (done.done["claims"], done.done["records"]) == (14, 7)
    left = stage.world.claims.values()
    assert sorted(claim.crawl for claim in left) == ["other-1"] * 7 + ["site-0"] * 7
    assert all(claim.was is None for claim in left)
    assert {record.crawl for record in stage.world.pages.values()} == {"site-0", "other-1"}


async def test_erasure_of_run_keeps_other_runs(stage: Stage) -> None:
    stage.world.crawls |= {ENDED.id: ENDED, "other-1": replace(ENDED, id="other-1", name="other")}
    stage.world.samples["other-1"] = {"scope": (URL,)}
    stage.world.cookies["other-1", "example.com"] = "[]"
    before = (dict(stage.world.samples), stage.world.crawls["other-1"], dict(stage.world.cookies))
    done = await forgetter_of(stage).forget(RUN)
    after = (stage.world.samples, stage.world.crawls["other-1"], stage.world.cookies)
    assert after == before
    assert dict(done.done) == {"crawls": 1}


@pytest.mark.parametrize(("times", "gone"), [(1, True), (4, True), (5, False)])
async def test_concurrent_edit_of_definition_is_kept(
    stage: Stage, times: int, *, gone: bool
) -> None:
    stage.world.crawls[ENDED.id] = replace(ENDED, finished_at_ms=0)
    edits = 0

    class Traces(MemoryTraces):
        async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
            nonlocal edits
            if edits < times:
                edits += 1
                stands = stage.world.crawls[ENDED.id]
                edited = replace(stands, edits=stands.edits + 1, delay_ms=edits)
                stage.world.crawls[ENDED.id] = edited
            return await super().redefine(crawl, was)

    stores = replace(stores_of(stage), traces=Traces(stage.world))
    done = await Forgetter(stores).forget(WHOLE)
    stands = stage.world.crawls[ENDED.id]
    assert (URL not in stands.seeds) is gone
    assert stands.delay_ms == times
    assert done.done.get("definitions", 0) == int(gone)
    assert [ENDED.id in left for left in done.left] == ([] if gone else [True])


async def test_crawl_deleted_meanwhile_is_ignored(stage: Stage) -> None:
    stage.world.crawls[ENDED.id] = replace(ENDED, finished_at_ms=0)

    class Traces(MemoryTraces):
        async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
            stage.world.crawls.pop(crawl.id)
            return False

    done = await Forgetter(replace(stores_of(stage), traces=Traces(stage.world))).forget(WHOLE)
    assert (dict(done.done), done.left) == ({}, ())


async def test_samples_lose_only_erased_url(stage: Stage) -> None:
    stage.world.crawls |= {ENDED.id: ENDED, "other-1": replace(ENDED, id="other-1")}
    stage.world.samples |= {ENDED.id: {"scope": (URL, OTHER)}, "other-1": {"scope": (OTHER,)}}
    writes: list[str] = []
    done = await forgetter_of(stage, noting(writes)).forget(WHOLE)
    assert stage.world.samples == {ENDED.id: {"scope": (OTHER,)}, "other-1": {"scope": (OTHER,)}}
    assert (done.done["samples"], writes.count("traces.samples")) == (1, 1)


# --- results ------------------------------------------------------------------------------------


async def test_refused_table_removal_is_reported(stage: Stage, tmp_path: Path) -> None:
    fill(stage.world, tmp_path)
    stage.world.catalogue["site_books"] = item_table(ENDED.name, "books", ())

    async def refusing(effect: str, _moment: Moment) -> None:
        if effect == "catalogue.remove":
            raise Permanent("denied")

    done = await forgetter_of(stage, refusing).forget(RUN)
    assert [("site" in left, "denied" in left) for left in done.left] == [(True, True)]
    assert traces_of(stage.world, PATH) == []
    assert done.done["crawls"] == 1


async def test_item_tables_are_kept_while_export_has_name(stage: Stage, tmp_path: Path) -> None:
    fill(stage.world, tmp_path)
    stage.world.crawls["site-2"] = replace(ENDED, id="site-2", seeds=())
    stage.world.catalogue["site_books"] = item_table(ENDED.name, "books", ())
    done = await forgetter_of(stage).forget(ErasureScope(runs=frozenset({"site-2"})))
    assert "tables" not in done.done
    assert stage.world.catalogue.keys() == {"site_books"}


async def test_only_erased_crawl_is_marked_forgotten(stage: Stage) -> None:
    stage.world.crawls |= {
        ENDED.id: ENDED,
        "other-1": replace(ENDED, id="other-1", name="other"),
    }
    done = await forgetter_of(stage).forget(WHOLE)
    assert "crawls" not in done.done
    assert stage.world.forgotten == set()
    assert await preview(stores_of(stage), WHOLE) == ErasurePreview(found={})
    done = await forgetter_of(stage).forget(RUN)
    assert stage.world.forgotten == {ENDED.id}


async def test_forged_dead_letter_belongs_to_no_crawl(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    letter = Mail(body=encode(pack_of(URL)), reason="seeds only", source=MessageSource.SEEDS)
    stage.world.buried.append(letter)
    look = await preview(stores_of(stage), WHOLE)
    assert (dict(look.found), look.crawls) == ({"dead_letters": 1}, ())
    await forgetter_of(stage).forget(WHOLE)
    assert stage.world.buried == []


async def test_files_with_other_prefixes_are_kept(stage: Stage) -> None:
    stage.world.files |= {"athena-results/1.csv": b"x", "athena/1.csv": b"y", f"{PREFIX}x": b"z"}
    done = await forgetter_of(stage).forget(WHOLE)
    assert stage.world.files == {"athena/1.csv": b"y", f"{PREFIX}x": b"z"}
    assert done.done == {"query_results": 1}
