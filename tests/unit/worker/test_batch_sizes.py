"""Concurrent messages: duplicates, suspects (URLs that may crash a worker), deferred packs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orbweaver.frontier.claims import Recalled
from orbweaver.frontier.messages import Pack, child_id, encode
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_schedule import Host
from orbweaver.worker.batch import is_suspect
from orbweaver.worker.pack import Delivery
from orbweaver.worker.rounds import Round
from orbweaver.worker.shutdown import ShutdownSignal
from tests.memory import ManualClock, Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    REMAINING_MS,
    ROOT,
    SITE,
    Stage,
    fail_on,
    hand_over,
    html,
    kill_on,
    noting,
    outcomes,
    pack_of,
    survives,
    urls_of,
)
from tests.unit.worker.test_batch import A, B, packs

# --- duplicates -------------------------------------------------------------------------------


async def test_duplicate_message_counts_once() -> None:
    """Two containers fetch the pack and create one set of child packs (case 1)."""
    stage = Stage(gate=hand_over).serve({A: html("/b", "/c")})
    pack = stage.begin(CRAWL, A)
    twin = Stage(gate=hand_over, world=stage.world, clock=stage.clock)
    twin.web = stage.web
    twin.restart(hand_over)
    one, other = await asyncio.gather(stage.deliver(pack, pack), twin.deliver(pack))
    assert (one, other) == ([], [])
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert stage.counts()["claimed"] == 3
    assert stage.counts()["fetched"] == 1
    assert {message.id for message in stage.sent()} == {child_id(ROOT, 0)}


async def test_committed_pack_is_not_claimed_again() -> None:
    """Otherwise a claim that the other delivery has released would stay held."""
    stage = Stage()
    crawl = replace(CRAWL, pages_max=2)
    pack = stage.begin(crawl, A)
    stage.web.put(A, html("/b", "/c"))
    committed = asyncio.Event()
    effects: list[str] = []

    async def first(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.sent", Moment.AFTER):
            committed.set()

    async def second(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.journal", Moment.BEFORE):
            await committed.wait()
        if committed.is_set():
            effects.append(effect)

    twin = Stage(world=stage.world, clock=ManualClock(NOW_MS + 1))
    twin.web = stage.web
    stage.restart(first)
    twin.restart(second)
    async with asyncio.timeout(10):
        one, other = await asyncio.gather(stage.deliver(pack), twin.deliver(pack))
    assert (one, other) == ([], [])
    assert "packs.journal" in effects
    assert "frontier.claim" not in effects
    assert outcomes(stage.world) == {A: "fetched.ok"}


async def test_link_on_two_pages_is_sent_once() -> None:
    """The pack that claims the URL sends it, and its outcome counts once (case 1)."""
    stage = Stage(gate=hand_over)
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    for place in range(2):
        stage.web.put(f"{SITE}/{place}", html("/same"))
    await stage.deliver(*packs(2))
    sent = [
        target.url for pack in stage.sent() if isinstance(pack, Pack) for target in pack.targets
    ]
    assert sent.count(f"{SITE}/same") == 1


async def test_redriven_message_succeeds_after_fix() -> None:
    """While the fault remains, it returns to the dead letters (case 24)."""
    stage = Stage()
    pack = pack_of(A, crawl="late-1")
    await stage.deliver(pack)
    (mail,) = stage.world.buried
    await stage.deliver(mail.body)
    assert [one.body for one in stage.world.buried] == [mail.body, mail.body]
    crawl = replace(CRAWL, id="late-1")
    stage.begin(crawl)
    stage.count(crawl, claimed=1)
    stage.web.put(A, html())
    for _ in range(3):
        assert await stage.deliver(mail.body) == []
    assert stage.web.urls == [A]
    assert stage.counts(crawl)["fetched"] == 1


async def test_redelivery_makes_missing_announcement() -> None:
    """The last message is acknowledged after the announcement (case 6)."""
    stage = Stage(gate=kill_on("events.completed", Moment.BEFORE))
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert len(stage.world.announced) == 1


# --- order within a batch ---------------------------------------------------------------------


async def test_suspects_run_last_one_by_one() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    stage.begin(CRAWL)
    three = packs(3)
    stage.world.strikes |= {three[0].id: 2, three[1].id: 1}
    suspects = [replace(pack, failures=1) for pack in three]
    fresh = pack_of(A)
    assert await stage.deliver(*suspects, fresh) == []
    assert stage.web.urls == [A, f"{SITE}/2", f"{SITE}/1", f"{SITE}/0"]
    commits = [place for place, effect in enumerate(effects) if effect == "packs.commit"]
    strikes = [place for place, effect in enumerate(effects) if effect == "packs.strike"]
    assert commits[0] < strikes[0] < commits[1] < strikes[1] < commits[2] < strikes[2]


async def test_suspect_with_journal_is_not_struck() -> None:
    stage = Stage(gate=kill_on("packs.commit", Moment.BEFORE))
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    effects: list[str] = []
    stage.restart(noting(effects))
    [known] = (await stage.packs.recall([pack.id])).values()
    again = Delivery(id="m", body=encode(pack), receives=2)
    assert is_suspect(pack, again, Recalled())
    assert not is_suspect(pack, again, known)
    await stage.deliver(pack, receives=2)
    assert "packs.strike" not in effects


@pytest.mark.parametrize("express", [False, True])
async def test_deferred_pack_is_sent_last_by_own_queue(*, express: bool) -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, express=express, delay_ms=1_000)
    stage.begin(crawl)
    blocked = "https://blocked.example"
    stage.world.hosts[blocked] = Host(name=blocked, blocked_until_ms=NOW_MS + 60_000)
    waiting = pack_of(f"{blocked}/x")
    assert await stage.deliver(waiting, *packs(1)) == []
    again = encode(replace(waiting, requeues=1))
    assert [(mail.body, mail.express) for mail in stage.world.sent] == [(again, express)]
    assert effects.index("packs.commit") < effects.index("queue.send")
    assert stage.metrics.totals["PacksPutOff"] == 1


@pytest.mark.parametrize(("blocked_s", "resent"), [(15, True), (600, False)])
async def test_early_pack_without_slot_is_sent_for_the_next_round(
    blocked_s: int, *, resent: bool
) -> None:
    stage = Stage()
    crawl = replace(CRAWL, delay_ms=1_000)
    stage.begin(crawl)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 1_000 * blocked_s)
    pack = pack_of(A)
    round_ = Round(
        clock=stage.clock,
        settings=Settings(),
        deadline_ms=NOW_MS + 900_000,
        ending=ShutdownSignal(),
    )

    async def nothing() -> None: ...

    async def take(_pack: Pack) -> None: ...

    await round_.run(nothing(), take)
    await stage.worker.take_on(pack, round_)
    again = encode(replace(pack, requeues=1))
    assert [mail.body for mail in stage.world.sent] == [again] * resent
    for mail in stage.world.sent:
        assert blocked_s <= mail.delay_s < round_.copy_delay_s(crawl.id)


async def test_pack_returns_if_deferral_fails() -> None:
    """The queue rejects the pack, so the message returns (case 12)."""
    stage = Stage(gate=fail_on("queue.send"))
    crawl = replace(CRAWL, delay_ms=1_000)
    pack = stage.begin(crawl, A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 60_000)
    assert await stage.deliver(pack) == [0]
    assert stage.world.sent == []


@pytest.mark.parametrize("crawl", [CRAWL, replace(CRAWL, delay_ms=1_000)])
async def test_no_url_is_started_without_remaining_time(crawl: Crawl) -> None:
    """A worker near its time limit returns all URLs to the queue (case 10)."""
    stage = Stage()
    pack = stage.begin(crawl, A, B)
    assert await stage.deliver(pack, remaining_ms=5_000) == []
    assert stage.web.urls == []
    assert urls_of(stage.sent()) == {A, B}
    assert stage.clock.at_ms < NOW_MS + 5_000


async def test_failed_ids_belong_to_batch() -> None:
    """Every returned id came in with the batch (case 11)."""
    stage = Stage()
    stage.begin(CRAWL)
    bodies = [encode(pack) for pack in packs(3)] + ["{", A, encode(packs(1)[0])]
    deliveries = [
        Delivery(id=f"m{place}", body=body, receives=1) for place, body in enumerate(bodies)
    ]
    effects: list[str] = []
    stage.restart(noting(effects))
    await stage.worker.run(deliveries, NOW_MS + REMAINING_MS)
    for effect in sorted(set(effects)):
        twin = Stage(gate=fail_on(effect, times=1_000))
        twin.begin(CRAWL)
        failed = await twin.worker.run(deliveries, NOW_MS + REMAINING_MS)
        # While the host item is unavailable, its URLs are sent again without a failure.
        assert bool(failed) is not effect.startswith("hosts."), effect
        assert len(set(failed)) == len(failed), effect
        assert set(failed) <= {delivery.id for delivery in deliveries}, effect


async def test_empty_batch_has_no_effect() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    assert await stage.deliver() == []
    stage.worker.flush()
    assert effects == []
