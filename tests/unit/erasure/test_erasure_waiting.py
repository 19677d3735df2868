"""What forgetting waits for, how often it tries, and what it says of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.erasure import erasure
from orbweaver.erasure.erasure import HIDDEN_LOOK_S, HIDDEN_WAIT_S, PASSES_MAX, Forgetter
from orbweaver.erasure.preview import Look, preview
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.manifest import PREFIX
from orbweaver.frontier.messages import MessageSource, encode
from orbweaver.model.columns import item_table
from orbweaver.model.crawl import State
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
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, pack_of

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.model.crawl import Crawl

WHOLE = ErasureScope(urls=frozenset({URL}))
RUN = ErasureScope(runs=frozenset({ENDED.id}))
PAUSED = replace(CRAWL, state=State.PAUSED, seeds=(URL,))


@pytest.fixture
def stage() -> Stage:
    """Return a stage with nothing on it."""
    return Stage()


# --- workers that are not done yet --------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended_s_ago", "waited_s"),
    [(None, CLOSE_S), (0, CLOSE_S), (CLOSE_S - 1, 1), (CLOSE_S, 0), (CLOSE_S + 9, 0)],
)
async def test_workers_get_time_to_end(
    stage: Stage, ended_s_ago: int | None, waited_s: int
) -> None:
    """What a worker had in hand when its crawl ended or was paused is stored before it goes."""
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
    assert effects[0] == ("dead_letters.take", NOW_MS + waited_s * 1000)
    assert (f"waiting {waited_s} s for workers to be done" in said) is bool(waited_s)


async def test_an_idle_store_is_not_waited_for(stage: Stage) -> None:
    """Where no worker is at work there is nothing to wait for, however lately a crawl ended."""
    stage.world.crawls[ENDED.id] = replace(ENDED, finished_at_ms=NOW_MS)
    stage.world.crawls["site-2"] = replace(PAUSED, id="site-2")
    await Forgetter(stores_of(stage), idle=True).forget(WHOLE)
    assert stage.clock.at_ms == NOW_MS


async def test_the_longest_wait_counts(stage: Stage) -> None:
    """Of two crawls the one that ended last is waited for."""
    for place, ago in enumerate((5, 0, 9)):
        crawl = replace(ENDED, id=f"site-{place}", finished_at_ms=NOW_MS - ago * 1000)
        stage.world.crawls[crawl.id] = crawl
    await forgetter_of(stage).forget(WHOLE)
    assert stage.clock.at_ms == NOW_MS + CLOSE_S * 1000


# --- messages that the queue holds back ---------------------------------------------------------


async def test_a_paused_crawls_messages_in_work_are_waited_for(stage: Stage) -> None:
    """One that a worker holds is dealt with as soon as it can be received."""
    pack = stage.begin(PAUSED, URL)
    mail = Mail(body=encode(pack))
    stage.world.sent.append(mail)
    free_ms = NOW_MS + (CLOSE_S + 20) * 1000
    stage.world.looks[mail.id] = (1, free_ms)
    said: list[str] = []
    done = await Forgetter(stores_of(stage), said.append).forget(WHOLE)
    assert done.left == ()
    assert done.done["messages"] == 1
    assert traces_of(stage.world, PATH) == []
    assert stage.clock.at_ms == NOW_MS + (CLOSE_S + 2 * HIDDEN_LOOK_S) * 1000
    assert sum("holds back" in word for word in said) == 2


@pytest.mark.parametrize("paused", [False, True])
async def test_the_wait_for_messages_ends(stage: Stage, *, paused: bool) -> None:
    """One that never comes is named, where its crawl goes on; others come to nothing."""
    crawl = PAUSED if paused else replace(ENDED, finished_at_ms=0)
    stage.world.crawls[crawl.id] = crawl
    mail = Mail(body=encode(pack_of(URL)))
    stage.world.sent.append(mail)
    stage.world.looks[mail.id] = (1, 2 * NOW_MS)
    done = await forgetter_of(stage).forget(WHOLE)
    waited_s = (stage.clock.at_ms - NOW_MS) / 1000
    if paused:
        assert CLOSE_S + HIDDEN_WAIT_S <= waited_s < CLOSE_S + HIDDEN_WAIT_S + 2 * HIDDEN_LOOK_S
        assert any("messages kept coming" in left for left in done.left)
    else:
        assert (waited_s, done.left) == (0, ())


async def test_it_ends_though_messages_keep_coming(stage: Stage) -> None:
    """A sender who never stops is not followed for ever, and that is said."""

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.unpark", Moment.BEFORE):
            parked = stage.world.parked
            parked["x-1", f"p{len(unparked)}"] = encode(pack_of(URL, crawl="x-1"))
            unparked.append(effect)

    unparked: list[str] = []
    stage.world.parked["x-1", "p"] = encode(pack_of(URL, crawl="x-1"))
    done = await forgetter_of(stage, gate).forget(WHOLE)
    assert len(unparked) == PASSES_MAX
    assert any("messages kept coming" in left for left in done.left)


# --- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 100])
async def test_batches_leave_nothing_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """All claims and records of a run go, and what claims of other runs keep of it; no others."""
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
    effects: list[str] = []

    async def gate(effect: str, _moment: Moment) -> None:
        effects.append(effect)

    done = await forgetter_of(stage, gate).forget(RUN)
    assert (done.done["claims"], done.done["records"]) == (14, 7)
    left = stage.world.claims.values()
    assert sorted(claim.crawl for claim in left) == ["other-1"] * 7 + ["site-0"] * 7
    assert all(claim.was is None for claim in left)
    assert {record.crawl for record in stage.world.pages.values()} == {"site-0", "other-1"}


async def test_other_runs_are_left_alone(stage: Stage) -> None:
    """To forget a run touches no definition, no examples and no record of another one."""
    stage.world.crawls |= {ENDED.id: ENDED, "other-1": replace(ENDED, id="other-1", name="other")}
    stage.world.samples["other-1"] = {"scope": (URL,)}
    stage.world.cookies["other-1", "example.com"] = "[]"
    before = (dict(stage.world.samples), stage.world.crawls["other-1"], dict(stage.world.cookies))
    done = await forgetter_of(stage).forget(RUN)
    after = (stage.world.samples, stage.world.crawls["other-1"], stage.world.cookies)
    assert after == before
    assert dict(done.done) == {"crawls": 1}


@pytest.mark.parametrize(("times", "gone"), [(1, True), (4, True), (5, False)])
async def test_definitions_that_are_edited_meanwhile(
    stage: Stage, times: int, *, gone: bool
) -> None:
    """An edit is kept and the seed goes all the same; one that never ceases is said."""
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


async def test_a_crawl_that_went_meanwhile_is_passed_over(stage: Stage) -> None:
    """A definition whose crawl is gone by then is none, and no reason to stop."""
    stage.world.crawls[ENDED.id] = replace(ENDED, finished_at_ms=0)

    class Traces(MemoryTraces):
        async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
            stage.world.crawls.pop(crawl.id)
            return False

    done = await Forgetter(replace(stores_of(stage), traces=Traces(stage.world))).forget(WHOLE)
    assert (dict(done.done), done.left) == ({}, ())


async def test_examples_without_it(stage: Stage) -> None:
    """Examples of other references stay, and lists that hold none of it are not written."""
    stage.world.crawls |= {ENDED.id: ENDED, "other-1": replace(ENDED, id="other-1")}
    stage.world.samples |= {ENDED.id: {"scope": (URL, OTHER)}, "other-1": {"scope": (OTHER,)}}
    writes: list[str] = []

    async def gate(effect: str, moment: Moment) -> None:
        if moment is Moment.BEFORE:
            writes.append(effect)

    done = await forgetter_of(stage, gate).forget(WHOLE)
    assert stage.world.samples == {ENDED.id: {"scope": (OTHER,)}, "other-1": {"scope": (OTHER,)}}
    assert (done.done["samples"], writes.count("traces.samples")) == (1, 1)


# --- the end ------------------------------------------------------------------------------------


async def test_tables_that_cannot_be_removed_are_named(stage: Stage, tmp_path: Path) -> None:
    """A refusal of the catalogue ends nothing: the rest goes, and that table is said."""
    fill(stage.world, tmp_path)
    stage.world.sent.pop()
    stage.world.catalogue["site_books"] = item_table(ENDED.name, "books", ())

    async def refusing(effect: str, _moment: Moment) -> None:
        if effect == "catalogue.remove":
            raise Permanent("denied")

    done = await forgetter_of(stage, refusing).forget(RUN)
    assert [("site" in left, "denied" in left) for left in done.left] == [(True, True)]
    assert traces_of(stage.world, PATH) == []
    assert done.done["crawls"] == 1


async def test_tables_stay_while_an_export_knows_the_name(stage: Stage, tmp_path: Path) -> None:
    """A run of the name that only exports know keeps the tables of items."""
    fill(stage.world, tmp_path)
    stage.world.sent.pop()
    stage.world.crawls["site-2"] = replace(ENDED, id="site-2", seeds=())
    stage.world.catalogue["site_books"] = item_table(ENDED.name, "books", ())
    done = await forgetter_of(stage).forget(ErasureScope(runs=frozenset({"site-2"})))
    assert "tables" not in done.done
    assert stage.world.catalogue.keys() == {"site_books"}


@pytest.mark.parametrize("others", [State.PAUSED, State.RUNNING])
async def test_a_paused_crawl_that_is_over_ends(stage: Stage, others: State) -> None:
    """What ended here may have been all that a paused crawl waited for; others are not ended."""
    pack = stage.begin(PAUSED, URL)
    other = replace(PAUSED, id="other-1", state=others, seeds=())
    stage.begin(other, OTHER)
    stage.world.sent.append(Mail(body=encode(pack)))
    await forgetter_of(stage).forget(WHOLE)
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    assert stage.world.crawls["other-1"].state is others
    assert [crawl.id for crawl, _ in stage.world.announced] == [CRAWL.id]


async def test_only_what_is_meant_is_buried(stage: Stage) -> None:
    """A crawl that has some of it keeps its definition; one all of which goes keeps its end."""
    stage.world.crawls |= {
        ENDED.id: ENDED,
        "other-1": replace(ENDED, id="other-1", name="other"),
    }
    done = await forgetter_of(stage).forget(WHOLE)
    assert "crawls" not in done.done
    assert stage.world.forgotten == set()
    assert await preview(stores_of(stage), WHOLE) == Look(found={})
    done = await forgetter_of(stage).forget(RUN)
    assert stage.world.forgotten == {ENDED.id}


async def test_a_forged_letter_names_no_crawl(stage: Stage) -> None:
    """A pack from the seed queue is nobody's: a crawl at work that it names holds nothing up."""
    stage.world.crawls[CRAWL.id] = CRAWL
    letter = Mail(body=encode(pack_of(URL)), reason="seeds only", source=MessageSource.SEEDS)
    stage.world.buried.append(letter)
    look = await preview(stores_of(stage), WHOLE)
    assert (dict(look.found), look.crawls) == ({"dead_letters": 1}, ())
    await forgetter_of(stage).forget(WHOLE)
    assert stage.world.buried == []


async def test_files_below_other_prefixes_stay(stage: Stage) -> None:
    """Only what may hold it is removed: not what stands beside the results of queries."""
    stage.world.files |= {"athena-results/1.csv": b"x", "athena/1.csv": b"y", f"{PREFIX}x": b"z"}
    done = await forgetter_of(stage).forget(WHOLE)
    assert stage.world.files == {"athena/1.csv": b"y", f"{PREFIX}x": b"z"}
    assert done.done == {"query_results": 1}
