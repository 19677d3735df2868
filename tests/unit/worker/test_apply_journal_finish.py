"""The end of a crawl and its announcement."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.worker.apply_journal import ANNOUNCE_WAITS_S, SEAL_TRIES, UNBALANCED_CRAWLS_MAX
from tests.memory import Moment
from tests.unit.stage import CRAWL, NOW_MS, Stage, kill_on, survives
from tests.unit.worker.test_apply_journal import stage_of

# --- finish -----------------------------------------------------------------------------------


async def test_balanced_crawl_is_finished_and_announced_once() -> None:
    stage = stage_of()
    stage.count(CRAWL, claimed=2, fetched=1, failed=1)
    stage.clock.at_ms += 5_000
    await stage.applier.finish(CRAWL.id)
    crawl = stage.world.crawls[CRAWL.id]
    assert (crawl.state, crawl.stop, crawl.finished_at_ms, crawl.announced) == (
        State.FINISHED,
        Stop.FINISHED,
        NOW_MS + 5_000,
        True,
    )
    assert stage.world.shards[CRAWL.id, 0].closed
    ((announced, total),) = stage.world.announced
    assert (announced.id, announced.stop) == (CRAWL.id, Stop.FINISHED)
    assert total == {"claimed": 2, "fetched": 1, "failed": 1}
    await stage.applier.finish(CRAWL.id)
    assert len(stage.world.announced) == 1


@pytest.mark.parametrize(
    ("crawl", "counts"),
    [
        (CRAWL, {"claimed": 2, "fetched": 1}),
        (replace(CRAWL, seeds_planned=1), {}),
        (replace(CRAWL, continuous=True), {"claimed": 1, "fetched": 1}),
    ],
)
async def test_unbalanced_crawl_is_not_finished(crawl: Crawl, counts: dict[str, int]) -> None:
    stage = stage_of(crawl)
    stage.count(crawl, **counts)
    await stage.applier.finish(crawl.id)
    assert stage.world.crawls[crawl.id] == crawl
    assert stage.world.announced == []


async def test_unbalanced_numbers_are_logged_once_per_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The event shows why a crawl does not end."""
    crawl, other = replace(CRAWL, seeds_planned=3), replace(CRAWL, id="other")
    stage = stage_of(crawl)
    stage.world.crawls[other.id] = other
    stage.count(crawl, claimed=5, fetched=2, failed=1, seeds=2, late_packs=2, late_packs_taken=1)
    stage.count(other, claimed=1)
    checks = ((0, crawl), (59_999, crawl), (0, other), (1, crawl))
    with caplog.at_level(logging.INFO):
        for later_ms, checked in checks:
            stage.clock.at_ms += later_ms
            await stage.applier.finish(checked.id)
    logged = [record.__dict__ for record in caplog.records if record.message == "crawl.unbalanced"]
    fields = ("crawl", "claimed", "ended", "seeds_missing", "late_packs")
    stuck = (crawl.id, 5, 3, 1, 1)
    assert [tuple(record[field] for field in fields) for record in logged] == [
        stuck,
        (other.id, 1, 0, 0, 0),
        stuck,
    ]


async def test_logged_crawls_are_bounded() -> None:
    stage = stage_of()
    for number in range(UNBALANCED_CRAWLS_MAX + 1):
        crawl = replace(CRAWL, id=f"crawl-{number}")
        stage.world.crawls[crawl.id] = crawl
        stage.count(crawl, claimed=1)
        await stage.applier.finish(crawl.id)
    assert len(stage.applier._unbalanced_at_ms) == 1


async def test_missing_crawl_is_ignored() -> None:
    stage = Stage()
    await stage.applier.finish("gone")
    assert stage.world.announced == []


async def test_missing_announcement_is_made_by_next_worker() -> None:
    stage = stage_of(gate=kill_on("events.completed", Moment.BEFORE))
    assert not await survives(stage.applier.finish(CRAWL.id))
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    stage.restart()
    await stage.applier.finish(CRAWL.id)
    assert len(stage.world.announced) == 1
    assert stage.clock.at_ms == NOW_MS + round(1000 * sum(ANNOUNCE_WAITS_S))


async def test_announcement_in_progress_is_not_repeated() -> None:
    reads = 0

    async def gate(effect: str, moment: Moment) -> None:
        nonlocal reads
        reads += (effect, moment) == ("crawls.get", Moment.BEFORE)
        if reads == len(ANNOUNCE_WAITS_S):
            stage.world.crawls[CRAWL.id] = replace(ended, announced=True)

    ended = replace(CRAWL, state=State.FINISHED, stop=Stop.FINISHED, finished_at_ms=NOW_MS)
    stage = stage_of(ended, gate=gate)
    await stage.applier.finish(CRAWL.id)
    assert reads == len(ANNOUNCE_WAITS_S)
    assert stage.world.announced == []


@pytest.mark.parametrize(("interrupted", "sealed"), [(1, True), (2, True), (SEAL_TRIES, False)])
async def test_commit_before_seal_makes_finish_read_again(
    interrupted: int, *, sealed: bool
) -> None:
    times = 0

    async def gate(effect: str, moment: Moment) -> None:
        nonlocal times
        if (effect, moment) == ("crawls.seal", Moment.BEFORE):
            times += 1
            if times <= interrupted:
                stage.world.shards[CRAWL.id, 0].commits += 1

    stage = stage_of(gate=gate)
    stage.count(CRAWL, claimed=1, fetched=1)
    await stage.applier.finish(CRAWL.id)
    assert (stage.world.crawls[CRAWL.id].state is State.FINISHED) is sealed
    assert len(stage.world.announced) == int(sealed)


async def test_claim_before_seal_keeps_crawl_open() -> None:
    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.seal", Moment.BEFORE):
            stage.count(CRAWL, claimed=1)
            stage.world.shards[CRAWL.id, 0].commits += 1

    stage = stage_of(gate=gate)
    stage.count(CRAWL, claimed=1, fetched=1)
    await stage.applier.finish(CRAWL.id)
    assert stage.world.crawls[CRAWL.id] == CRAWL
    assert not stage.world.shards[CRAWL.id, 0].closed
