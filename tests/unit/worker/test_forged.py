"""Forged messages on the seed queue can only add seeds: 1,000 bodies, and their redrive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.control.dead_letter_admin import DeadLetterAdmin
from orbweaver.frontier.dead_letters import EVERYTHING
from orbweaver.frontier.messages import MessageSource, child_id, encode
from orbweaver.model.crawl import State
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.settings import Settings
from orbweaver.model.url import host_of
from orbweaver.worker.pack import Delivery
from tests.memory import MemoryDeadLetters
from tests.unit.forged import Forged, Forger, Victim
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, Stage, answer, html, pack_of

BODIES = 1_000
BUDGET = 40
OUTSIDE = "https://outside.example"
SEEDS_QUEUE = "stack-seeds"
SETTINGS = Settings.of(
    seed_queue_url=f"https://sqs/1/{SEEDS_QUEUE}",
    crawl_queue_url="https://sqs/1/stack-crawl",
    express_queue_url="https://sqs/1/stack-express",
    receive_max=100,
)
VICTIM = Victim(
    crawl=CRAWL.id, inside=SITE, outside=OUTSIDE, packs=(ROOT, child_id(ROOT, 0), child_id(ROOT, 1))
)


def running(scope: Scope) -> Stage:
    stage = Stage(settings=SETTINGS)
    crawl = replace(
        CRAWL,
        seeds=(f"{SITE}/",),
        scope=scope,
        exclude=("/private/",),
        pages_max=BUDGET,
        depth_max=3,
    )
    stage.begin(crawl, f"{SITE}/")
    stage.web.put(f"{SITE}/", html("/linked"))
    stage.web.put(f"{SITE}/linked", html())
    return stage


async def drop(stage: Stage, *bodies: str) -> None:
    """Deliver bodies from the seed queue; no delivery may fail."""
    deliveries = [
        Delivery(id=f"sqs-{id(stage)}-{place}", body=body, receives=1, queue=SEEDS_QUEUE)
        for place, body in enumerate(bodies)
    ]
    for start in range(0, len(deliveries), 10):
        some = deliveries[start : start + 10]
        assert await stage.worker.run(some, stage.clock.now_ms() + 60_000) == ()


def forge(stage: Stage, seed: int) -> list[Forged]:
    forged = list(Forger(seed, VICTIM).bodies(BODIES))
    for url in {url for one in forged for _, url in one.seeds}:
        leads = "/lead/" in url
        stage.web.put(url, answer(302, location=f"{OUTSIDE}/widened") if leads else html("/sub"))
    return forged


@pytest.mark.thorough
@pytest.mark.parametrize("scope", [Scope.HOST, Scope.DOMAIN, Scope.PREFIX])
async def test_forged_bodies_only_make_seeds(scope: Scope) -> None:
    stage = running(scope)
    forged = forge(stage, seed=7)
    allowed = {seed for one in forged for seed in one.seeds}

    await drop(stage, *(one.body for one in forged))
    buried = len(stage.world.buried)
    await _redriven(stage)
    await stage.drain(20_000)

    crawl = stage.world.crawls[CRAWL.id]
    assert crawl.state is State.RUNNING
    ids = {"default": "default", CRAWL.name: CRAWL.id}
    claimed = {(ids[name], claim.url) for (name, _), claim in stage.world.claims.items()}
    linked = {(CRAWL.id, f"{SITE}/sub"), ("default", f"{OUTSIDE}/sub")}
    assert claimed - allowed <= linked
    of_victim = {url for name, url in claimed if name == CRAWL.id}
    assert 0 < len(of_victim) == BUDGET - 1
    assert {host_of(url) for url in of_victim} == {SITE}
    assert not any("/private/" in url for url in of_victim)
    assert ROOT not in stage.world.ledgers
    assert buried > BODIES / 2

    assert await stage.deliver(pack_of(f"{SITE}/")) == []
    await stage.drain(1_000)
    counters = stage.counts(crawl)
    ended = [counters.get(outcome, 0) for outcome in ("fetched", "redirected", "skipped", "failed")]
    assert counters["claimed"] == sum(ended) == BUDGET
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def _redriven(stage: Stage) -> None:
    undertaker = DeadLetterAdmin(
        dead_letters=MemoryDeadLetters(stage.world, clock=stage.clock),
        queue=stage.queue,
        crawls=stage.crawls,
        packs=stage.packs,
        clock=stage.clock,
    )
    done = await undertaker.redrive(EVERYTHING, limit=10_000, rate_per_s=1_000, malformed=True)
    assert done.sent > BODIES / 3
    back = [mail for mail in stage.world.sent if mail.source is MessageSource.SEEDS]
    stage.world.sent[:] = [mail for mail in stage.world.sent if mail.source is MessageSource.PACKS]
    await drop(stage, *(mail.body for mail in back))


async def test_forged_bodies_take_effect_on_pack_queue() -> None:
    """This proves that the generator makes effective bodies."""
    stage = running(Scope.HOST)
    forged = forge(stage, seed=7)
    for one in forged:
        await stage.deliver(one.body)
    assert stage.world.ledgers or stage.world.journals


async def test_pack_from_seed_queue_is_dead_lettered() -> None:
    stage = running(Scope.HOST)
    await drop(stage, encode(pack_of(f"{SITE}/")))
    (mail,) = stage.world.buried
    assert mail.reason is not None
    assert mail.reason.startswith("the seed queue takes seeds only")
    assert mail.source is MessageSource.SEEDS
    assert (stage.web.urls, stage.world.sent) == ([], [])


async def test_unknown_queue_counts_as_seed_queue() -> None:
    stage = running(Scope.HOST)
    delivery = Delivery(id="m", body=encode(pack_of(f"{SITE}/")), receives=1, queue="stack-other")
    await stage.worker.run([delivery], NOW_MS + 60_000)
    assert len(stage.world.buried) == 1
    assert stage.web.urls == []
