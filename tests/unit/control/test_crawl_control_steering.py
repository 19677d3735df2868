"""Pausing, resuming and cancelling crawls, over the memory adapters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from orbweaver.control.crawl_control import Conflict, Control
from orbweaver.frontier.messages import Close, Pack, SeedsMessage, decode, encode
from orbweaver.model.crawl import Crawl, State, Stop, default_crawl
from orbweaver.model.errors import StoredNewer, Transient
from orbweaver.model.target import Target
from tests.memory import Moment
from tests.memory.world import Mail, open_gate
from tests.unit.control_stage import NOW_MS, PLAN, SEED, Killed, Stage, kill_at


async def test_pause_and_resume_may_be_repeated_until_crawl_ends() -> None:
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    for _ in range(2):
        assert (await stage.control.pause(crawl.id)).state is State.PAUSED
    for _ in range(2):
        assert (await stage.control.resume(crawl.id)).state is State.RUNNING
    stage.world.crawls[crawl.id] = replace(crawl, state=State.FINISHED)
    for act in (stage.control.pause, stage.control.resume, stage.control.cancel):
        with pytest.raises(Conflict, match="finished: start it again"):
            await act(crawl.id)


@pytest.mark.parametrize(
    ("pauses", "silent_ms", "ran_ms"),
    [(False, 0, 100_000), (False, 60_000, 40_000), (False, 900_000, 0), (True, 90_000, 30_000)],
)
async def test_time_without_worker_is_no_duration_of_resumed_crawl(
    pauses: bool, silent_ms: int, ran_ms: int
) -> None:
    """The workers of a paused crawl can die later than its pause begins."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    stage.clock.at_ms += 30_000
    if pauses:
        await stage.control.pause(crawl.id)
    stage.clock.at_ms += 70_000
    resumed = await stage.control.resume(crawl.id, silent_ms=silent_ms)
    assert resumed.ran_ms(stage.clock.at_ms) == ran_ms


async def test_cancel_may_be_repeated_and_not_undone(stage: Stage, crawl: Crawl) -> None:
    for _ in range(2):
        cancelled = await stage.control.cancel(crawl.id)
        assert (cancelled.state, cancelled.stop) == (State.STOPPING, Stop.CANCELLED)
        assert stage.world.crawls[crawl.id] == cancelled
    with pytest.raises(Conflict, match="is stopping"):
        await stage.control.resume(crawl.id)


async def test_cancel_of_crawl_without_end_is_refused(stage: Stage) -> None:
    """Its URLs on the queue name no crawl, so a cancellation would refuse them for good."""
    stage.world.crawls["default"] = default_crawl(NOW_MS)
    with pytest.raises(Conflict, match="can be paused, but not cancelled"):
        await stage.control.cancel("default")
    await stage.control.pause("default")
    await stage.control.resume("default")
    assert not stage.world.sent


def park(stage: Stage, crawl: Crawl, packs: int) -> set[str]:
    """Park packs and seeds of a paused crawl in a table, as workers do."""
    bodies = {}
    for place in range(packs):
        target = Target(url=f"{SEED}{place}", depth=1)
        pack = Pack(id=f"p{place}", crawl=crawl.id, at_ms=NOW_MS, targets=(target,))
        bodies[pack.id] = encode(pack)
    seeds = SeedsMessage(id="s", crawl=crawl.id, at_ms=NOW_MS, references=(SEED,))
    bodies["s"] = encode(seeds)
    stage.world.parked |= {(crawl.id, key): body for key, body in bodies.items()}
    return set(bodies.values())


def closes(mail: Mail) -> bool:
    return isinstance(decode(mail.body), Close)


@pytest.mark.parametrize(
    ("act", "state"), [(Control.resume, State.RUNNING), (Control.cancel, State.STOPPING)]
)
async def test_steering_repeated_after_crash_sends_parked_packs(
    act: Callable[[Control, str], Awaitable[Crawl]], state: State
) -> None:
    for moment in range(1, 1_000):
        stage = Stage()
        crawl = await stage.control.start(PLAN)
        stage.count(crawl, seeds=1)
        await stage.control.pause(crawl.id)
        stage.world.sent.clear()
        bodies = park(stage, crawl, packs=3)
        stage.gate = kill_at(moment)
        try:
            await act(stage.control, crawl.id)
        except Killed:
            stage.gate = open_gate
            await act(stage.control, crawl.id)
        else:
            break
        assert stage.world.crawls[crawl.id].state is state
        assert not stage.world.parked
        assert {mail.body for mail in stage.world.sent if not closes(mail)} == bodies
        assert any(map(closes, stage.world.sent)) is (state is State.STOPPING)
    assert moment > 10


async def test_resume_sends_packs_of_newer_version_unchanged(stage: Stage, crawl: Crawl) -> None:
    stage.count(crawl, seeds=1)
    await stage.control.pause(crawl.id)
    park(stage, crawl, packs=1)
    body = '{"v": 2, "crawl": "x", "work": []}'
    stage.world.parked[crawl.id, "p9"] = body
    stage.world.sent.clear()
    await stage.control.resume(crawl.id)
    held = [mail for mail in stage.world.sent if mail.body == body]
    assert [(mail.delay_s, mail.since_ms, mail.group) for mail in held] == [(900, NOW_MS, crawl.id)]
    assert (len(stage.world.sent), stage.world.parked) == (3, {})


@pytest.mark.parametrize("which", ["by id", "by name", "the newest"])
async def test_crawl_of_newer_version_is_not_steered(stage: Stage, which: str) -> None:
    first = await stage.control.start(PLAN)
    stage.clock.at_ms += 60_000
    crawl = await stage.control.start(replace(PLAN, depth_max=3))
    stage.world.newer[crawl.id] = "stored by a newer version: the crawl"
    asked = {"by id": crawl.id, "by name": crawl.name, "the newest": None}[which]
    with pytest.raises(StoredNewer):
        await stage.control.find(asked)
    assert await stage.control.find(first.id) == first
    stage.clock.at_ms += 60_000
    third = await stage.control.start(replace(PLAN, depth_max=4))
    if asked != crawl.id:
        assert await stage.control.find(asked) == third


async def test_resume_of_many_parked_packs_works_in_steps(stage: Stage, crawl: Crawl) -> None:
    """Each step is deleted once it is sent, so a crash repeats at most one step."""
    stage.count(crawl, seeds=1)
    await stage.control.pause(crawl.id)
    park(stage, crawl, packs=250)

    async def fail(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("queue.send", Moment.BEFORE) and len(stage.world.sent) > 130:
            raise Transient("throttled")

    stage.world.sent.clear()
    stage.gate = fail
    with pytest.raises(Transient):
        await stage.control.resume(crawl.id)
    assert len(stage.world.parked) == 151


@pytest.mark.parametrize("act", [Control.resume, Control.cancel])
async def test_resume_sends_missing_seeds(
    stage: Stage, crawl: Crawl, act: Callable[[Control, str], Awaitable[Crawl]]
) -> None:
    """Otherwise a crawl whose start crashed before it sent the seeds could never end."""
    seeds = stage.world.sent.copy()
    stage.world.sent.clear()
    await act(stage.control, crawl.id)
    assert [mail for mail in stage.world.sent if not closes(mail)] == seeds
