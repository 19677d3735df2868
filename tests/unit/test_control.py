"""Starting, looking at and steering crawls, over the memory adapters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.memory import (
    ManualClock,
    MemoryCrawls,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    Moment,
    World,
)
from orbweaver.adapters.memory.world import Gate, ShardItem, open_gate
from orbweaver.control import Conflict, Control, UnknownCrawl
from orbweaver.core.crawl import Crawl, State, Stop, default_crawl
from orbweaver.core.message import Pack, Seeds, Target, decode, encode
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.plan import Plan, PlanError
from orbweaver.core.record import DAY_MS, PageRecord, page_key
from orbweaver.ports import Transient
from orbweaver.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SEED = "https://example.com/"
PLAN = Plan(seeds=(SEED,))


@dataclass
class Stage:
    """One world, and a control over it."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    gate: Gate = open_gate

    @property
    def control(self) -> Control:
        return Control(
            queue=MemoryQueue(self.world, self.gate),
            crawls=MemoryCrawls(self.world, self.gate),
            packs=MemoryPacks(self.world, self.gate),
            pages=MemoryPages(self.world, self.gate),
            clock=self.clock,
            settings=Settings(),
        )

    def count(self, crawl: Crawl, **tally: int) -> None:
        shard = self.world.shards.setdefault((crawl.id, 0), ShardItem())
        shard.tally = {**shard.tally, **tally}

    def put(self, crawl: str, url: str, at_ms: int, **fields: Any) -> PageRecord:
        outcome = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 0}
        record = PageRecord(crawl=crawl, url=url, fetched_at=at_ms, **{**outcome, **fields})
        self.world.pages[page_key(record, 16)] = record
        return record

    def sent(self) -> list[Any]:
        return [decode(mail.body) for mail in self.world.sent]


class Killed(Exception):
    """The process ends here."""


def kill_at(number: int) -> Gate:
    """Make a gate that ends the process at its so manieth moment."""
    passed = 0

    async def gate(_effect: str, _moment: Moment) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise Killed

    return gate


async def test_start_creates_the_crawl_and_sends_its_seeds() -> None:
    """The definition stands before the seeds are sent, and says how many messages to await."""
    stage = Stage()
    plan = Plan(seeds=tuple(f"{SEED}{place}" for place in range(150)))
    crawl = await stage.control.start(plan)
    assert stage.world.crawls == {crawl.id: crawl}
    first, second = stage.sent()
    assert isinstance(first, Seeds)
    assert first.references + second.references == crawl.seeds
    assert crawl.seeds_planned == 2
    assert first.planned
    assert second.planned
    assert first.id != second.id
    assert [mail.express for mail in stage.world.sent] == [False, False]


async def test_an_express_crawl_goes_by_the_express_queue() -> None:
    """Priority high sends the seeds past other crawls."""
    stage = Stage()
    await stage.control.start(replace(PLAN, express=True))
    assert [mail.express for mail in stage.world.sent] == [True]


async def test_a_plan_that_does_not_fit_leaves_nothing_behind() -> None:
    """Nothing is created or sent for a seed that is no URL."""
    stage = Stage()
    with pytest.raises(PlanError, match=r"'x' cannot be crawled"):
        await stage.control.start(Plan(seeds=(SEED, "x")))
    assert not stage.world.crawls
    assert not stage.world.sent


@pytest.mark.parametrize("moment", range(1, 5))
async def test_a_start_that_died_is_completed_by_starting_again(moment: int) -> None:
    """Wherever a start dies, the same start completes it with the same messages."""
    whole, stage = Stage(), Stage(gate=kill_at(moment))
    await whole.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Killed):
        await stage.control.start(replace(PLAN, id="run-1"))
    stage.gate = open_gate
    stage.clock.at_ms += 5_000
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    bodies = {mail.body for mail in stage.world.sent}
    if moment > 1:  # it was created before it died, so it stands as it was
        assert crawl.started_at_ms == NOW_MS
        assert bodies == {mail.body for mail in whole.world.sent}
    assert len(bodies) == 1
    assert {message.id for message in stage.sent()} == {whole.sent()[0].id}


async def test_starting_again_what_has_begun_sends_nothing() -> None:
    """Once the books say that the seeds were taken in, a repeated start is only an answer."""
    stage = Stage()
    crawl = await stage.control.start(replace(PLAN, id="run-1"))
    stage.count(crawl, seeds=1)
    assert await stage.control.start(replace(PLAN, id="run-1")) == crawl
    stage.world.crawls[crawl.id] = done = replace(crawl, state=State.FINISHED)
    assert await stage.control.start(replace(PLAN, id="run-1")) == done
    assert len(stage.world.sent) == 1


@pytest.mark.parametrize("other", [{"seeds": (f"{SEED}x",)}, {"delay_ms": 5}, {"name": "other"}])
async def test_an_id_is_not_given_twice(other: dict[str, Any]) -> None:
    """An id that belongs to a crawl with other seeds or options is refused."""
    stage = Stage()
    await stage.control.start(replace(PLAN, id="run-1"))
    with pytest.raises(Conflict, match="'run-1' belongs to a crawl with other seeds or options"):
        await stage.control.start(replace(PLAN, id="run-1", **other))
    assert len(stage.world.sent) == 1


async def test_a_create_without_a_trace_is_a_conflict() -> None:
    """A crawl that is taken and yet cannot be read is not started."""
    stage = Stage()

    async def forget(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.create", Moment.AFTER):
            stage.world.crawls.clear()

    await stage.control.start(PLAN)
    stage.gate = forget
    with pytest.raises(Conflict):
        await stage.control.start(PLAN)


async def test_a_crawl_is_found_by_id_name_or_age() -> None:
    """An id means itself, a name its newest run, and nothing the newest run of all."""
    stage = Stage()
    ids = []
    for name in ("shop", "news", "shop"):
        stage.clock.at_ms += 60_000
        ids.append((await stage.control.start(replace(PLAN, name=name))).id)
    control = stage.control
    assert (await control.find(ids[0])).id == ids[0]
    assert (await control.find("shop")).id == ids[2]
    assert (await control.find("news")).id == ids[1]
    assert (await control.find()).id == ids[2]
    assert [crawl.id for crawl in await control.crawls()] == ids[::-1]


async def test_an_unknown_crawl_is_answered_with_the_nearest_one() -> None:
    """A mistyped id is not found, and the one that was meant is named."""
    stage = Stage()
    with pytest.raises(UnknownCrawl, match="no crawl yet"):
        await stage.control.find()
    with pytest.raises(UnknownCrawl, match=r"'x'$"):
        await stage.control.find("x")
    await stage.control.start(replace(PLAN, name="bookshop"))
    with pytest.raises(UnknownCrawl, match="did you mean bookshop"):
        await stage.control.find("bokshop")


async def test_status_is_the_crawl_and_its_books() -> None:
    """Counters are added up over all shards, and time stands still once the crawl has ended."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    stage.world.shards[crawl.id, 3] = ShardItem(tally={"claimed": 2, "fetched": 1})
    stage.count(crawl, claimed=3, failed=1)
    stage.clock.at_ms += 5_000
    status = await stage.control.status(crawl.id)
    assert (status.books.claimed, status.books.done, status.elapsed_ms) == (5, 2, 5_000)
    stage.world.crawls[crawl.id] = replace(crawl, finished_at_ms=NOW_MS + 2_000)
    assert (await stage.control.status()).elapsed_ms == 2_000


async def test_an_unfinished_run_of_a_name_is_found() -> None:
    """Only runs that have not ended count, whatever their options."""
    stage = Stage()
    assert await stage.control.unfinished(PLAN) is None
    crawl = await stage.control.start(replace(PLAN, delay_ms=5))
    assert await stage.control.unfinished(PLAN) == crawl
    stage.world.crawls[crawl.id] = replace(crawl, state=State.FINISHED)
    assert await stage.control.unfinished(PLAN) is None


async def test_pages_are_read_over_all_days_of_a_crawl() -> None:
    """Pages of other crawls are left out, and so are other outcomes and those beyond the limit."""
    stage = Stage()
    crawl = await stage.control.start(replace(PLAN, id="a"))
    mine = [stage.put("a", f"{SEED}{n}", NOW_MS + n * DAY_MS // 4) for n in range(12)]
    broken = {"outcome": Outcome.FAILED, "reason": Reason.DNS}
    mine.append(stage.put("a", f"{SEED}broken", NOW_MS, **broken))
    stage.put("ab", SEED, NOW_MS)
    stage.clock.at_ms += 4 * DAY_MS
    control = stage.control
    assert {record.url async for record in control.pages(crawl)} == {one.url for one in mine}
    assert [one async for one in control.pages(crawl, outcome=Outcome.FAILED)] == [mine[-1]]
    assert len([one async for one in control.pages(crawl, limit=5)]) == 5
    assert len([one async for one in control.pages(crawl, limit=0)]) == 0


async def test_a_page_is_found_on_its_newest_day() -> None:
    """The newest record of a URL wins, from whichever crawl; within a day all are shown."""
    stage = Stage()
    for name in ("a", "b", "c"):
        await stage.control.start(replace(PLAN, id=name))
    stage.clock.at_ms += 2 * DAY_MS
    stage.put("a", f"{SEED}x", NOW_MS)
    second = stage.put("b", f"{SEED}x", NOW_MS + DAY_MS)
    third = stage.put("c", f"{SEED}x", NOW_MS + DAY_MS + 5)
    for number in range(50):  # neighbours in all shards, before and behind
        stage.put("b", f"{SEED}{number}", NOW_MS + DAY_MS)
    assert await stage.control.page("HTTPS://EXAMPLE.COM/x#y") == (third, second)
    only = await stage.control.find("b")
    assert await stage.control.page(f"{SEED}x", only) == (second,)
    assert await stage.control.page(f"{SEED}unknown") == ()
    with pytest.raises(ValueError, match="not an absolute URL"):
        await stage.control.page("x")


async def test_records_past_their_retention_are_not_looked_for() -> None:
    """A crawl without an end is asked only for the days whose records are kept."""
    stage = Stage()
    stage.world.crawls["default"] = default_crawl(NOW_MS - 400 * DAY_MS)
    days: list[str] = []

    async def note(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("pages.read", Moment.BEFORE):
            days.append(effect)

    stage.gate = note
    assert await stage.control.page(SEED) == ()
    assert len(days) == 31


async def test_pausing_and_resuming() -> None:
    """Both may be repeated; a crawl that has ended can do neither."""
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


async def test_a_cancelled_crawl_does_not_go_on() -> None:
    """Cancelling says why the crawl will end, may be repeated, and cannot be taken back."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    for _ in range(2):
        cancelled = await stage.control.cancel(crawl.id)
        assert (cancelled.state, cancelled.stop) == (State.STOPPING, Stop.CANCELLED)
        assert stage.world.crawls[crawl.id] == cancelled
    with pytest.raises(Conflict, match="is stopping"):
        await stage.control.resume(crawl.id)


async def test_a_crawl_without_an_end_is_not_cancelled() -> None:
    """Bare URLs would be refused for good, so the crawl they belong to can only be paused."""
    stage = Stage()
    stage.world.crawls["default"] = default_crawl(NOW_MS)
    with pytest.raises(Conflict, match="can be paused, but not cancelled"):
        await stage.control.cancel("default")
    await stage.control.pause("default")
    await stage.control.resume("default")
    assert not stage.world.sent


def park(stage: Stage, crawl: Crawl, packs: int) -> set[str]:
    """Have packs and seeds of a crawl set aside, as workers do."""
    bodies = {}
    for place in range(packs):
        target = Target(url=f"{SEED}{place}", depth=1)
        pack = Pack(id=f"p{place}", crawl=crawl.id, at_ms=NOW_MS, targets=(target,))
        bodies[pack.id] = encode(pack)
    seeds = Seeds(id="s", crawl=crawl.id, at_ms=NOW_MS, references=(SEED,))
    bodies["s"] = encode(seeds)
    stage.world.parked |= {(crawl.id, key): body for key, body in bodies.items()}
    return set(bodies.values())


@pytest.mark.parametrize(
    ("act", "state"), [(Control.resume, State.RUNNING), (Control.cancel, State.STOPPING)]
)
async def test_what_was_parked_is_sent_again_wherever_it_is_interrupted(
    act: Callable[[Control, str], Awaitable[Crawl]], state: State
) -> None:
    """At whichever moment the process dies, doing it again leaves nothing parked and loses none."""
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
        assert {mail.body for mail in stage.world.sent} == bodies
    assert moment > 10


async def test_many_parked_packs_are_sent_in_steps() -> None:
    """Each step is forgotten as soon as it is sent, so that a crash repeats one step only."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
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
async def test_seeds_that_never_arrived_are_sent_too(
    act: Callable[[Control, str], Awaitable[Crawl]],
) -> None:
    """A crawl whose start died before its seeds were sent could otherwise never end."""
    stage = Stage()
    crawl = await stage.control.start(PLAN)
    seeds = stage.world.sent.copy()
    stage.world.sent.clear()
    await act(stage.control, crawl.id)
    assert stage.world.sent == seeds
