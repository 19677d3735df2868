"""Completion: every crawl ends exactly once, for each shape and each user action.

Another seed: `ORBWEAVER_COMPLETION_SEED=7 make test ARGS=tests/e2e/test_completion.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.crawl import Crawl, Stop
from orbweaver.model.crawl_settings import Scope
from tests.e2e.announcements import listening
from tests.e2e.people import Heard, Office, at_work, until
from tests.e2e.shapes import CRAWLS, Place, Shape, Steering, Walked, scripts, shapes, walk
from tests.e2e.stand import Stand
from tests.sites import graph
from tests.sites.graph import Graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(300)]

SEED = int(os.environ.get("ORBWEAVER_COMPLETION_SEED", "1"))
AT_ONCE = 12
# The shortest allowed duration, and how much of it has passed when a crawl begins.
DURATION_S, OVER_S = 60, 56
OUTCOMES = ("fetched", "unchanged", "redirected", "skipped", "failed")
SHORT = {Steering.CANCEL: Stop.CANCELLED, Steering.ABANDON: Stop.CANCELLED}
SHORT[Steering.EXPIRE] = Stop.DURATION


@dataclass(slots=True, kw_only=True)
class Run:
    """One crawl of a shape, its expected result without steering, and its requests."""

    shape: Shape
    crawl: Crawl
    sites: Sequence[Graph]
    expected: Walked
    # Runs that share its claims. Only together they give the expected result.
    rivals: list[Run] = field(default_factory=list)

    @property
    def stop(self) -> Stop:
        if self.shape.steering in SHORT:
            return SHORT[self.shape.steering]
        return Stop.MAX_PAGES if self.over else Stop.FINISHED

    @property
    def over(self) -> bool:
        """True if it exceeds its budget; URLs forbidden by robots.txt do not count."""
        pages_max = self.shape.pages_max
        return pages_max is not None and len(self.expected.asked) > pages_max

    def asked(self) -> list[tuple[int, Place]]:
        agent = agent_of(self.crawl.id)
        return [
            (record.at_ms, (host, record.path))
            for host, site in enumerate(self.sites)
            for record in site.log.records()
            if record.user_agent == agent and record.path != "/robots.txt"
        ]


def agent_of(crawl_id: str) -> str:
    """Return a crawl's User-Agent, which identifies its requests."""
    return f"completion/1.0 (+{crawl_id})"


async def test_every_crawl_ends_once_and_never_early(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\ncompletion seed: {SEED}")
    made = shapes(Random(SEED))
    runs: list[Run] = []
    at_once = asyncio.Semaphore(AT_ONCE)
    with listening(stand, "completion") as queue_url:
        async with at_work(stand, queue_url, monkeypatch, slow_s=OVER_S) as office:
            async with AsyncExitStack() as open_sites:

                async def one(shape: Shape) -> None:
                    async with at_once:
                        sites = await _serve(shape, open_sites)
                        await _crawl(office, shape, sites, runs)

                await asyncio.gather(*map(one, made))
                await asyncio.to_thread(stand.wait_idle)
                afterwards = {run.crawl.id: await office.counts(run.crawl.id) for run in runs}
            heard = {each.detail["crawl"]: each for each in office.heard}
            announced = Counter(each.detail["crawl"] for each in office.heard)

    assert announced == {run.crawl.id: 1 for run in runs}
    assert len(runs) >= CRAWLS
    wrong = {
        run.crawl.id: found
        for run in runs
        if (found := [*_wrong(run, heard[run.crawl.id], afterwards), *_wrong_pages(run, heard)])
    }
    assert not wrong, f"seed {SEED}: {wrong}"


async def _serve(shape: Shape, open_sites: AsyncExitStack) -> list[Graph]:
    sites = [await open_sites.enter_async_context(graph.serve({})) for _ in range(shape.hosts)]
    urls = [site.url for site in sites]
    for host, site in enumerate(sites):
        site.scripts = scripts(shape, host, urls)
    return sites


async def _crawl(office: Office, shape: Shape, sites: Sequence[Graph], runs: list[Run]) -> None:
    async def start(number: int, seeds: Sequence[Place], expected: Walked) -> Run:
        plan = _plan(shape, sites, number, seeds)
        crawl = await office.start(plan, tardy=shape.steering is Steering.EXPIRE)
        run = Run(shape=shape, crawl=crawl, sites=sites, expected=expected)
        runs.append(run)
        return run

    lots = [shape.seeds] if shape.rival is None else [shape.seeds, shape.rival]
    expected = walk(shape, [seed for seeds in lots for seed in seeds])
    both = await asyncio.gather(*(start(n, seeds, expected) for n, seeds in enumerate(lots)))
    for run in both if len(both) > 1 else ():
        run.rivals = list(both)
    await _steer(office, both[0])
    await asyncio.gather(*(office.ended(run.crawl.id) for run in both))
    if shape.again:
        last = await start(2, shape.seeds, Walked())
        await office.ended(last.crawl.id)


def _plan(shape: Shape, sites: Sequence[Graph], number: int, seeds: Sequence[Place]) -> CrawlSpec:
    name = f"{shape.name}-{SEED}"
    crawl_id = f"{name}-{number}"
    return CrawlSpec(
        name=name,
        id=crawl_id,
        seeds=tuple(sites[host].url + path for host, path in seeds),
        scope=Scope.ANY if shape.any_host else Scope.HOST,
        pages_max=shape.pages_max,
        depth_max=1_000 if shape.depth_max is None else shape.depth_max,
        delay_ms=shape.delay_ms,
        concurrency=1 if shape.delay_ms else shape.concurrency,
        duration_max_s=DURATION_S if shape.steering is Steering.EXPIRE else 3_600,
        express=shape.express,
        user_agents=(agent_of(crawl_id),),
    )


async def _steer(office: Office, run: Run) -> None:
    steering, crawl_id = run.shape.steering, run.crawl.id
    if steering in (Steering.NONE, Steering.EXPIRE):
        return
    await until(lambda: len(run.asked()) >= run.shape.steered_after, f"{crawl_id} is under way")
    if steering is not Steering.CANCEL:
        await office.steer("pause", crawl_id)
        await asyncio.sleep(run.shape.paused_s)
        assert not office.has_ended(crawl_id)
    await office.steer("resume" if steering is Steering.PAUSE else "cancel", crawl_id)


def _wrong(run: Run, heard: Heard, afterwards: dict[str, dict[str, int]]) -> list[str]:
    """Describe errors in a run's end: reason, counts, or an early end."""
    detail, wrong = heard.detail, []
    counts = detail["counts"]
    if detail["stop"] != run.stop:
        wrong.append(f"it ended by {detail['stop']} and not by {run.stop}")
    if counts.get("claimed", 0) != _done(counts):
        wrong.append(f"what is claimed is not done: {counts}")
    if not counts == heard.counts == afterwards[run.crawl.id]:
        wrong.append(f"announced {counts}, then {heard.counts}, then {afterwards[run.crawl.id]}")
    late = [place for at_ms, place in run.asked() if at_ms > detail["finished_at_ms"]]
    if late:
        wrong.append(f"asked for after the end: {late}")
    return wrong


def _wrong_pages(run: Run, heard: dict[str, Heard]) -> list[str]:
    """Describe errors in the pages of all runs that share claims."""
    together = run.rivals or [run]
    asked = Counter(place for each in together for _, place in each.asked())
    counts: Counter[str] = Counter()
    for each in together:
        counts.update(heard[each.crawl.id].detail["counts"])
    expected, wrong = run.expected, []
    twice = [place for place, number in asked.items() if number > 1]
    if twice:
        wrong.append(f"asked for twice: {twice}")
    if not asked.keys() <= expected.asked:
        wrong.append(f"asked for though it should not be: {asked.keys() - expected.asked}")
    taken = counts["claimed"] - counts["unspent"]
    if run.over and taken != run.shape.pages_max:
        wrong.append(f"{taken} of its budget taken, and not {run.shape.pages_max}")
    if run.stop is Stop.FINISHED:
        if asked.keys() != expected.asked:
            wrong.append(f"not asked for: {expected.asked - asked.keys()}")
        found = Counter({outcome: counts[outcome] for outcome in OUTCOMES})
        if +found != expected.counts():
            wrong.append(f"it came to {+found}, and not to {expected.counts()}")
    elif run.stop is not Stop.MAX_PAGES and counts["claimed"] >= len(expected.outcomes):
        wrong.append("it was done before it was ended: make its site longer")
    return wrong


def _done(counts: dict[str, int]) -> int:
    return sum(counts.get(outcome, 0) for outcome in OUTCOMES)
