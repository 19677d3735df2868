"""Recurring crawls: schedules, and the one crawl that each event of a schedule starts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.app.wiring import control_of
from orbweaver.control.crawl_control import Conflict, ControlError
from orbweaver.control.crawl_spec import CrawlSpec, Overlap, PlanError
from orbweaver.control.definition import DefinitionError
from orbweaver.control.schedule import DUE, ScheduleError
from orbweaver.control.scheduler import Starter, Timetable
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.settings import Settings
from tests.memory import ManualClock, MemoryMetrics, World
from tests.unit.memory_ports import memory_ports

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
HOUR_MS = 3_600_000
SITE = "https://example.com/"
PLAN = CrawlSpec(seeds=(SITE,), every="6h", headers=(("X-Key", "k"),))
DUE_AT = "2026-11-21T09:00:00Z"
RUN = "example.com-20261121-090000"


class Stage:
    """A stage with a timetable that can fire its schedules."""

    def __init__(self, **settings: Any) -> None:
        self.world = World()
        self.clock = ManualClock(NOW_MS)
        self.metrics = MemoryMetrics()
        ports = memory_ports(self.world, self.clock, settings=Settings.of(**settings))
        control = control_of(ports)
        self.timetable = Timetable(schedules=ports.schedules, control=control, clock=self.clock)
        self.starter = Starter(control=control, clock=self.clock, metrics=self.metrics)

    async def fire(self, name: str = "example.com", due: str = DUE_AT) -> dict[str, str]:
        told = self.world.schedules[name].input.replace(DUE, due)
        return await self.starter.fire(json.loads(told))

    def end(self, crawl_id: str) -> None:
        crawl = self.world.crawls[crawl_id]
        at_ms = self.clock.now_ms()
        self.world.crawls[crawl_id] = replace(crawl, state=State.FINISHED, finished_at_ms=at_ms)


@pytest.fixture
def stage() -> Stage:
    return Stage()


# --- the timetable ------------------------------------------------------------------------------


async def test_put_schedule_has_name_of_crawl_and_next_times(stage: Stage) -> None:
    coming = await stage.timetable.put(PLAN)
    assert (coming.scheduled.name, coming.scheduled.expression) == ("example.com", "rate(6 hours)")
    assert coming.next_ms == tuple(NOW_MS + 6 * HOUR_MS * n for n in (1, 2, 3))
    assert stage.world.crawls == {}
    stage.clock.at_ms += 7 * HOUR_MS
    (listed,) = await stage.timetable.list()
    assert (listed.scheduled, listed.next_ms[0]) == (coming.scheduled, NOW_MS + 12 * HOUR_MS)


async def test_put_again_replaces_schedule(stage: Stage) -> None:
    await stage.timetable.put(PLAN)
    await stage.timetable.put(
        CrawlSpec(seeds=(SITE,), cron="0 3 * * ? *", timezone="Europe/Berlin")
    )
    (listed,) = await stage.timetable.list()
    assert listed.scheduled.expression == "cron(0 3 * * ? *)"
    assert (listed.scheduled.timezone, listed.scheduled.first_ms) == ("Europe/Berlin", None)
    assert "X-Key" not in listed.scheduled.input


async def test_remove_of_unknown_schedule_lists_existing(stage: Stage) -> None:
    await stage.timetable.put(PLAN)
    with pytest.raises(ControlError, match=r"there is no schedule 'x'.*: example.com"):
        await stage.timetable.remove("x")
    await stage.timetable.remove("example.com")
    with pytest.raises(ControlError, match="those that there are: none"):
        await stage.timetable.remove("example.com")


async def test_paused_schedule_fires_again_after_resume(stage: Stage) -> None:
    put = await stage.timetable.put(PLAN)
    paused = await stage.timetable.pause("example.com")
    assert (paused.scheduled, paused.next_ms) == (replace(put.scheduled, paused=True), ())
    assert await stage.timetable.list() == (paused,)
    assert await stage.timetable.pause("example.com") == paused
    stage.clock.at_ms += 7 * HOUR_MS
    resumed = await stage.timetable.pause("example.com", paused=False)
    assert (resumed.scheduled, resumed.next_ms[0]) == (put.scheduled, NOW_MS + 12 * HOUR_MS)
    with pytest.raises(ControlError, match=r"there is no schedule 'x'.*: example.com"):
        await stage.timetable.pause("x")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(PLAN, every=None), r"give every or cron in its table \[schedule\]"),
        (replace(PLAN, seeds=(f"https://{'a.' * 40}example/",)), "is too long for a schedule"),
        (replace(PLAN, webhook="https://example.com/"), "-c webhook_secret=generate"),
        (
            replace(PLAN, seeds=tuple(f"{SITE}{n:0200}" for n in range(1_180))),
            "name a sitemap that lists the seeds",
        ),
    ],
)
async def test_put_of_non_recurring_plan_is_refused(
    stage: Stage, plan: CrawlSpec, said: str
) -> None:
    with pytest.raises(ControlError, match=said):
        await stage.timetable.put(plan)
    assert stage.world.schedules == {}


async def test_put_of_invalid_plan_is_refused(stage: Stage) -> None:
    with pytest.raises(PlanError):
        await stage.timetable.put(replace(PLAN, every="1m"))
    with pytest.raises(PlanError, match="never comes"):
        await stage.timetable.put(replace(PLAN, every=None, cron="0 0 30 2 ? *"))


# --- firings ------------------------------------------------------------------------------------


async def test_firing_starts_run_named_after_due_time(stage: Stage) -> None:
    await stage.timetable.put(replace(PLAN, pages_max=7))
    stage.clock.at_ms += 40_000
    assert await stage.fire() == {"crawl": RUN}
    crawl = stage.world.crawls[RUN]
    assert (crawl.name, crawl.pages_max, crawl.headers) == ("example.com", 7, PLAN.headers)
    assert crawl.started_at_ms == NOW_MS + 40_000
    assert len(stage.world.sent) == 1
    assert stage.metrics.totals == {"SchedulesStarted": 1}


async def test_firing_delivered_twice_starts_one_crawl(stage: Stage) -> None:
    """The second delivery completes a start that sent no seeds, even if runs must not overlap."""
    await stage.timetable.put(PLAN)
    await stage.fire()
    stage.world.sent.clear()
    stage.clock.at_ms += 1_000
    assert await stage.fire() == {"crawl": RUN}
    assert list(stage.world.crawls) == [RUN]
    assert len(stage.world.sent) == 1
    stage.end(RUN)
    assert await stage.fire() == {"crawl": RUN}
    assert len(stage.world.sent) == 1


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.STOPPING])
async def test_firing_is_skipped_while_a_run_is_active(stage: Stage, state: State) -> None:
    await stage.timetable.put(PLAN)
    await stage.fire()
    stage.world.crawls[RUN] = replace(stage.world.crawls[RUN], state=state)
    other = Crawl(id="other", name="other", started_at_ms=0)
    stage.world.crawls[other.id] = other
    later = "example.com-20261121-150000"
    skipped = {"skipped": later, "running": RUN}
    assert await stage.fire(due="2026-11-21T15:00:00Z") == skipped
    assert set(stage.world.crawls) == {RUN, "other"}
    assert stage.metrics.totals["SchedulesSkipped"] == 1
    stage.end(RUN)
    assert await stage.fire(due="2026-11-21T15:00:00Z") == {"crawl": later}


async def test_firing_starts_overlapping_run_if_allowed(stage: Stage) -> None:
    await stage.timetable.put(replace(PLAN, overlap=Overlap.ALLOW))
    await stage.fire()
    await stage.fire(due="2026-11-21T15:00:00Z")
    assert len(stage.world.crawls) == 2


async def test_firing_without_time_uses_minute_of_arrival(stage: Stage) -> None:
    """Emulators leave the time out."""
    await stage.timetable.put(PLAN)
    stage.clock.at_ms += 59_999
    assert await stage.fire(due=DUE) == {"crawl": RUN}


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({}, ScheduleError),
        ({"due": DUE_AT, "definition": {}}, DefinitionError),
        ({"due": DUE_AT, "definition": {"seeds": [SITE], "of_tomorrow": 1}}, DefinitionError),
    ],
)
async def test_firing_with_invalid_payload_raises(
    stage: Stage, event: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await stage.starter.fire(event)
    assert stage.world.crawls == {}


async def test_firing_with_id_of_other_crawl_starts_nothing(stage: Stage) -> None:
    await stage.timetable.put(PLAN)
    stage.world.crawls[RUN] = Crawl(id=RUN, name="example.com", started_at_ms=0)
    with pytest.raises(Conflict):
        await stage.fire()


# --- webhooks -----------------------------------------------------------------------------------


async def test_webhook_without_signing_key_is_refused() -> None:
    plan = replace(PLAN, webhook="https://example.com/hook")
    signing = Stage(webhook_secret="generate")
    await signing.timetable.put(plan)
    assert await signing.fire() == {"crawl": RUN}
    assert signing.world.crawls[RUN].webhook == "https://example.com/hook"
    without = Stage()
    without.world.schedules.update(signing.world.schedules)
    with pytest.raises(ControlError, match=r"notify\.webhook: webhooks are signed"):
        await without.fire()
    assert without.world.crawls == {}


async def test_webhook_to_inner_address_is_refused_unless_allowed() -> None:
    plan = replace(PLAN, webhook="http://127.0.0.1:9/hook")
    with pytest.raises(ControlError, match=r"must not be dialled: 127\.0\.0\.1 is loopback"):
        await Stage(webhook_secret="key").timetable.put(plan)
    await Stage(webhook_secret="key", allow_addresses="127.0.0.0/8").timetable.put(plan)
