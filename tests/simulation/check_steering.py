"""Pause and cancel: requests stop, and a cancelled crawl ends soon."""

from __future__ import annotations

from collections.abc import Iterator

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.model.crawl import State, Stop
from orbweaver.model.settings import Settings
from orbweaver.rendering.task import RenderLimits
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS
from tests.memory import World
from tests.simulation.check_web import ROBOTS, Violation
from tests.simulation.cloud import Cloud
from tests.simulation.faults import Faults
from tests.simulation.rendering import DATA
from tests.simulation.scenario import Scenario
from tests.simulation.web import SimWeb

# Longer than the cache age, by several table latencies between read and request.
LOOKS = 4
# Maximum duration of a rendered page.
RENDER_S = RenderLimits().total_s
# A minute, plus one round (invocation) in which all workers may be busy.
ENDED_S = 60.0 + Settings().worker.round_s


def check_steering(plan: Scenario, world: World, web: SimWeb, cloud: Cloud) -> Iterator[Violation]:
    # A frozen worker, or one whose clock went back, does not notice that its cache is old.
    if plan.faults.frozen or plan.faults.jumps:
        return
    known_s = CRAWL_FRESH_MS / 1000 + 0.1 + LOOKS * plan.faults.latency_s
    for place, (crawl_id, action, at_s) in enumerate(cloud.steered):
        if action not in ("pause", "cancel"):
            continue
        later = [
            then_s
            for other, what, then_s in cloud.steered[place + 1 :]
            if other == crawl_id and what == "resume"
        ]
        agent = world.crawls[crawl_id].user_agent
        begun: dict[str, float] = {}
        for ask in web.asks:
            if ask.agent != agent or ask.path == ROBOTS:
                continue
            # A worker finishes the page that it is rendering.
            page = ask.origin + ask.path.replace(DATA, "/", 1)
            if ask.path.startswith(DATA) and ask.at_s - begun.get(page, ask.at_s) <= RENDER_S:
                asked_s = begun.get(page, ask.at_s)
            else:
                asked_s = begun[page] = ask.at_s
            if at_s + known_s < asked_s < min([*later, float("inf")]):
                yield Violation(f"{action} asks", f"{crawl_id}{ask.path}: {ask.at_s - at_s:.1f} s")
                break
        if action == "cancel" and plan.faults == Faults():
            yield from _ended(world, cloud, crawl_id, at_s)


def _ended(world: World, cloud: Cloud, crawl_id: str, at_s: float) -> Iterator[Violation]:
    """Check that without faults, a cancelled crawl ends a minute after a round (one invocation)."""
    crawl = world.crawls[crawl_id]
    end_ms = crawl.finished_at_ms
    late = end_ms is None or (end_ms - cloud.start_ms) / 1000 > at_s + ENDED_S
    if crawl.state is not State.FINISHED or (crawl.stop is Stop.CANCELLED and late):
        yield Violation("cancel ends", f"{crawl_id}: {end_ms}, closed after {CLOSE_S} s")
