"""Run one seed: start crawls, inject faults, stop the faults, wait for the end, and check."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.frontier.messages import Close, Loose, encode, seeds_of
from orbweaver.model.crawl import Crawl, State, Stop, first_hosts, run_id
from tests.memory import World
from tests.simulation import loop
from tests.simulation.check import check
from tests.simulation.check_web import Violation
from tests.simulation.cloud import Cloud
from tests.simulation.coverage import kinds
from tests.simulation.erasing import erase
from tests.simulation.going_on import going_on
from tests.simulation.meaning import EDIT, edited
from tests.simulation.process import WorkerProcess
from tests.simulation.retrying import retry
from tests.simulation.ruling import edit
from tests.simulation.scenario import DAY_S, HOUR_S, CrawlPlan, Scenario, scenario
from tests.simulation.trace import STEPS_MAX, Endless, Trace
from tests.simulation.web import SimWeb

# Virtual time that suffices after faults have stopped.
CALM_S = 4 * DAY_S
REDRIVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one seed."""

    seed: int
    trace_hash: str
    violations: tuple[Violation, ...]
    # Fault counts, and the situations that the seed contains.
    counts: dict[str, int]
    kinds: dict[str, int]
    virtual_s: float
    asks: int


def simulate(seed: int, *, lines: list[str] | None = None) -> Result:
    return play(scenario(seed), lines=lines)


def play(plan: Scenario, *, lines: list[str] | None = None, steps_max: int = STEPS_MAX) -> Result:
    trace = Trace(lines=lines, steps_max=steps_max)
    try:
        result: Result = loop.run(_play(plan, World(), trace))
    except Endless:
        endless = Violation("I4 end", f"no end after {trace.steps} steps")
        return Result(
            seed=plan.seed,
            trace_hash=trace.hash,
            violations=(endless,),
            counts=dict(trace.counts),
            kinds={},
            virtual_s=0.0,
            asks=0,
        )
    return result


async def _play(plan: Scenario, world: World, trace: Trace) -> Result:
    running = asyncio.get_running_loop()
    web = SimWeb(plan.sites, running.time, trace.counts)
    cloud = Cloud(plan, world, web, trace)
    runs: list[tuple[CrawlPlan, str]] = []
    people = [running.create_task(_person(cloud, crawl, runs)) for crawl in plan.crawls]
    people += [running.create_task(_drop(cloud, at_s, body)) for at_s, body in plan.loose]
    people += [running.create_task(_drop(cloud, 1.0, body)) for body in plan.malformed]
    people += [running.create_task(_export(cloud, *event)) for event in plan.exporter.events]
    if plan.erases:
        people.append(running.create_task(erase(cloud, *plan.erases)))
    reaper = running.create_task(_reap(cloud, plan.ttl_lag_s))
    await cloud.run(plan.faults_until_s, stop_when_idle=False)
    cloud.calm()
    idle = await _converge(plan, cloud, people)
    for task in (*people, reaper):
        task.cancel()
    await cloud.exports.settle()
    trace.note(repr(sorted(world.pages)))
    trace.note(repr(sorted(world.files.items())))
    violations = check(plan, runs, world, web, cloud, idle=idle)
    return Result(
        seed=plan.seed,
        trace_hash=trace.hash,
        violations=tuple(violations),
        counts=dict(+trace.counts),
        kinds=dict(kinds(plan, runs, world, web)),
        virtual_s=running.time(),
        asks=len(web.asks),
    )


async def _converge(plan: Scenario, cloud: Cloud, people: list[asyncio.Task[None]]) -> bool:
    """Run until nothing is left to do, while a user redrives dead letters; True if it ended."""
    last_s = max([0.0, *(crawl.at_s for crawl in plan.crawls)])
    idle = False
    for redrives_left in reversed(range(REDRIVES + 1)):
        await _attended(cloud, last_s)
        steering = asyncio.gather(*people)
        while not steering.done():
            await cloud.run(cloud.now_s + HOUR_S, stop_when_idle=False)
        steering.result()  # Raises the errors of a user's process.
        idle = await cloud.run(cloud.now_s + CALM_S, stop_when_idle=True)
        cloud.collect()
        if not redrives_left or not cloud.redrive():
            break
    return idle


async def _person(cloud: Cloud, plan: CrawlPlan, runs: list[tuple[CrawlPlan, str]]) -> None:
    """Start a crawl, then pause, resume, cancel, retry or edit it as planned."""
    await asyncio.sleep(plan.at_s)
    person = cloud.person()
    at_ms = cloud.start_ms + round(cloud.now_s * 1000)
    crawl_id = run_id(plan.name, at_ms)
    seeds = [
        message
        for seed in plan.seeds  # One message each, so that some are late.
        for message in seeds_of(f"{crawl_id}/{seed}", crawl_id, [seed], at_ms=at_ms, planned=True)
    ]
    if plan.resumable:
        seeds = list(seeds_of(crawl_id, crawl_id, plan.seeds, at_ms=at_ms, planned=True))
    crawl = Crawl(
        id=crawl_id,
        name=plan.name,
        started_at_ms=at_ms,
        seeds=plan.seeds,
        seeds_planned=len(seeds),
        hosts_counted=first_hosts(plan.seeds),
        depth_max=plan.depth_max,
        pages_max=plan.pages_max,
        delay_ms=plan.delay_ms,
        concurrency=plan.concurrency,
        window_s=plan.window_s,
        shards=plan.shards,
        stop_when_nothing_new=plan.stops,
        **plan.limits,
        rules=plan.rules,
        render=plan.render,
        links=plan.resumable,
        user_agent=f"sim/1.0 (+{crawl_id})",
    )
    if plan.goes_on:
        crawl, pasts = going_on(cloud.world, crawl)
        seeds += pasts
        cloud.trace.counts["gone on"] += len(pasts)
    cloud.world.crawls[crawl.id] = crawl
    runs.append((plan, crawl.id))
    if edited(plan):
        cloud.edits.append(partial(edit, cloud, plan, crawl.id))
    cloud.drop(encode(seeds[0]), delay_s=plan.seed_held_s)
    await person.queue.send_seeds(seeds[1:], express=False)
    started_s = cloud.now_s
    for number, after_s in enumerate(plan.extras):
        extra = Loose(crawl=crawl_id, references=(f"{plan.seeds[0]}extra/{number}",))
        asyncio.get_running_loop().call_later(after_s, cloud.drop, encode(extra))
    for after_s, action in plan.actions:
        await asyncio.sleep(max(0.0, started_s + after_s - cloud.now_s))
        if action == EDIT:
            edit(cloud, plan, crawl.id)
        else:
            await _steer(cloud, person, crawl.id, action)


async def _steer(cloud: Cloud, person: WorkerProcess, crawl_id: str, action: str) -> None:
    crawl = cloud.world.crawls[crawl_id]
    match action:
        case "pause":
            await person.crawls.move(replace(crawl, state=State.PAUSED), [State.RUNNING])
        case "resume":
            await person.crawls.move(replace(crawl, state=State.RUNNING), [State.PAUSED])
            await _unpark(cloud, person, crawl_id)
        case "cancel":
            stopped = replace(crawl, state=State.STOPPING, stop=Stop.CANCELLED)
            await person.crawls.move(stopped, [State.RUNNING, State.PAUSED])
            close = Close(crawl=crawl_id, at_ms=person.clock.now_ms())
            await person.queue.send_close(close, CLOSE_S)
            await _unpark(cloud, person, crawl_id)
        case "retry":
            await retry(cloud, person, crawl_id)
    cloud.steered.append((crawl_id, action, cloud.now_s))


async def _unpark(cloud: Cloud, person: WorkerProcess, crawl_id: str) -> None:
    parked = await person.packs.parked(crawl_id)
    for body in parked.values():
        cloud.drop(body)
    await person.packs.unpark(crawl_id, list(parked))


async def _attended(cloud: Cloud, until_s: float) -> None:
    """Run until a time, with a user who redrives dead letters a few times."""
    for _ in range(REDRIVES):
        await cloud.run(min(until_s, cloud.now_s + HOUR_S), stop_when_idle=False)
        cloud.redrive()
    await cloud.run(until_s, stop_when_idle=False)


async def _drop(cloud: Cloud, at_s: float, body: str) -> None:
    await asyncio.sleep(at_s)
    cloud.drop(body)


async def _export(cloud: Cloud, at_s: float, event: dict[str, Any]) -> None:
    await asyncio.sleep(at_s)
    cloud.exports.accept(event)


async def _reap(cloud: Cloud, lag_s: float) -> None:
    """Delete expired claims late, as DynamoDB's TTL does."""
    while True:
        await asyncio.sleep(HOUR_S)
        cloud.world.reap(round(cloud.start_ms / 1000 + cloud.now_s - lag_s))
