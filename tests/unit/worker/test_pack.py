"""Processing of one pack, continued from the state of earlier deliveries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.messages import Pack, SeedsMessage, child_id, encode
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.target import Target
from orbweaver.worker.apply_journal import claimer_of
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS
from tests.memory import Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    ROOT,
    SITE,
    Stage,
    answer,
    call_on,
    html,
    kill_at,
    kill_on,
    noting,
    outcomes,
    pack_of,
    survives,
    urls_of,
)

A, B = f"{SITE}/a", f"{SITE}/b"
SEEDS = SeedsMessage(id=child_id("seeds", 0), crawl=CRAWL.id, at_ms=NOW_MS, references=(A, B))


# --- recall -----------------------------------------------------------------------------------


async def test_finished_pack_is_not_requested_again() -> None:
    """The second delivery finds the ledger (commit record) and writes nothing (case 2)."""
    stage = Stage().serve({A: html("/b")})
    pack = stage.begin(CRAWL, A)
    await stage.deliver(pack)
    sent, counters = list(stage.world.sent), stage.counts()
    effects: list[str] = []
    stage.restart(noting(effects))
    assert await stage.deliver(pack) == []
    assert stage.web.urls == [A]
    assert stage.world.sent == sent
    assert stage.counts() == counters
    assert effects == ["packs.recall", "crawls.get"]


async def test_copy_read_before_crawl_end_releases_no_claim() -> None:
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    await stage.frontier.claim(claimer_of(CRAWL, ROOT, NOW_MS), pack.targets)
    stage.web.put(A, html())
    other = Stage(world=stage.world, clock=stage.clock)
    copies = [stage.deliver(pack)]  # one of them is delivered by the faster container

    async def end_meanwhile(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.recall", Moment.AFTER) and copies:
            assert await copies.pop() == []

    other.restart(end_meanwhile)
    assert await other.deliver(pack) == []
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    later = claimer_of(replace(CRAWL, id="later"), "another pack", NOW_MS + 1)
    assert (await stage.frontier.known(later, [A])).held == {A}


async def test_possibly_unsent_outbox_is_sent_again() -> None:
    """The packs have the same ids (cases 5, 6)."""
    for effect, moment in (("queue.send", Moment.BEFORE), ("packs.sent", Moment.BEFORE)):
        stage = Stage(gate=kill_on(effect, moment)).serve({A: html("/b")})
        pack = stage.begin(CRAWL, A)
        assert not await survives(stage.deliver(pack))
        stage.restart()
        assert await stage.deliver(pack) == []
        assert {message.id for message in stage.sent()} == {child_id(pack.id, 0)}
        assert stage.web.urls == [A]


async def test_ledger_without_journal_ends_pack() -> None:
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.ledgers[ROOT] = Ledger(pack=ROOT, children=())
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []


async def test_journaled_pack_is_not_fetched_again() -> None:
    """The journal of the first delivery is used, whatever has changed since (case 4)."""
    stage = Stage(gate=kill_on("packs.journal", Moment.AFTER)).serve({A: [html("/b"), answer(404)]})
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    assert stage.world.pages == {}
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert stage.web.urls == [A]
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert urls_of(stage.sent()) == {B}


async def test_crash_before_journal_costs_second_fetch() -> None:
    """The page is counted once (case 3)."""
    stage = Stage(gate=kill_on("packs.journal", Moment.BEFORE)).serve({A: html()})
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert stage.web.urls == [A, A]
    assert stage.counts() == {"claimed": 1, "fetched": 1, "fetched.ok": 1, "bytes": 19}


async def test_stale_delivery_uses_existing_journal() -> None:
    """The late delivery writes no journal, record or count (case 18)."""
    stage = Stage().serve({A: html("/late")})
    pack = stage.begin(CRAWL, A)
    first = Journal(at_ms=NOW_MS, candidates=(Target(url=B, depth=1),), counts={"failed": 1})
    stage.restart(call_on("packs.journal", lambda: stage.world.journals.update({ROOT: first})))
    await stage.deliver(pack)
    assert stage.world.journals[ROOT] == first
    assert stage.world.pages == {}
    assert stage.counts() == {"claimed": 2, "failed": 1}
    assert urls_of(stage.sent()) == {B}


@pytest.mark.parametrize("remains", [True, False])
async def test_crash_at_any_step_of_pack_is_repaired(*, remains: bool) -> None:
    """Every redelivery has the same result and counts once (cases 3 to 6)."""
    moment = 1
    while True:
        stage = Stage(gate=kill_at(moment)).serve({A: html("/b") if remains else html()})
        pack = stage.begin(CRAWL, A)
        if await survives(stage.deliver(pack)):
            break
        stage.restart()
        assert await stage.deliver(pack, receives=2) == []
        assert outcomes(stage.world) == {A: "fetched.ok"}, moment
        assert stage.counts()["fetched"] == 1, moment
        assert stage.counts()["claimed"] == 1 + remains, moment
        assert {message.id for message in stage.sent()} == (
            {child_id(ROOT, 0)} if remains else set()
        )
        assert (stage.world.crawls[CRAWL.id].state is State.FINISHED) is not remains, moment
        assert len(stage.web.urls) <= 2
        moment += 1
    assert moment > 10


# --- admit ------------------------------------------------------------------------------------


async def test_seeds_are_claimed_once_and_become_pack() -> None:
    """A second delivery makes no change (case 2)."""
    stage = Stage()
    stage.begin()
    for _ in range(2):
        assert await stage.deliver(SEEDS) == []
    assert stage.counts() == {"claimed": 2}
    (pack,) = stage.sent()
    assert isinstance(pack, Pack)
    assert pack.targets == (Target(url=A, depth=0), Target(url=B, depth=0))
    assert stage.web.urls == []


async def test_messages_of_paused_crawl_are_parked() -> None:
    """The messages are acknowledged, and no request is made (case 23)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, state=State.PAUSED), A)
    assert await stage.deliver(pack, SEEDS) == []
    assert stage.world.parked == {
        (CRAWL.id, ROOT): encode(pack),
        (CRAWL.id, SEEDS.id): encode(SEEDS),
    }
    assert (stage.web.urls, stage.world.sent, stage.world.journals) == ([], [], {})


async def test_pack_of_crawl_resumed_meanwhile_is_processed() -> None:
    stage = Stage()
    pack = stage.begin(replace(CRAWL, state=State.PAUSED), A)

    effects: list[str] = []

    async def resume(effect: str, moment: Moment) -> None:
        effects.append(effect)
        if (effect, moment) == ("packs.park", Moment.BEFORE):
            stage.world.crawls[CRAWL.id] = CRAWL

    stage.restart(resume)
    stage.web.put(A, html("/b"))
    assert await stage.deliver(pack) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert stage.world.parked == {}
    effects.clear()
    assert await stage.deliver(pack_of(B, pack=child_id("b", 0))) == []
    assert "packs.park" not in effects


@pytest.mark.parametrize(
    ("crawl", "after_s", "reason"),
    [
        (replace(CRAWL, state=State.STOPPING, stop=Stop.CANCELLED), 0, "cancelled"),
        (CRAWL, 8 * 86_400, "duration"),
    ],
)
async def test_urls_of_stopped_crawl_are_skipped_without_record(
    crawl: Crawl, after_s: int, reason: str
) -> None:
    stage = Stage()
    pack = stage.begin(crawl, A, B)
    stage.clock.at_ms += after_s * 1000
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []
    assert stage.world.pages == {}
    assert stage.counts() == {"claimed": 2, "skipped": 2, f"skipped.{reason}": 2}
    ended = stage.world.crawls[crawl.id]
    assert (ended.state, str(ended.stop)) == (State.FINISHED, reason)


async def test_pack_after_sealed_crawl_has_no_effect() -> None:
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.shards[CRAWL.id, 0].closed = True
    counters = dict(stage.counts())
    assert await stage.deliver(pack) == []
    assert stage.counts() == counters
    assert stage.world.announced == []


@pytest.mark.parametrize(
    ("passed_ms", "asked"), [(CRAWL_FRESH_MS - 1, True), (CRAWL_FRESH_MS, False), (-1, False)]
)
async def test_cancellation_is_noticed_within_five_seconds(passed_ms: int, *, asked: bool) -> None:
    stage = Stage().serve({A: html()})
    stage.begin(CRAWL, A, B)
    await stage.deliver(pack_of(A))
    stage.world.crawls[CRAWL.id] = replace(CRAWL, state=State.STOPPING)
    stage.clock.at_ms = NOW_MS + passed_ms
    await stage.deliver(pack_of(B, pack=child_id("b", 0)))
    assert (B in stage.web.urls) is asked


async def test_pack_of_unknown_crawl_is_dead_lettered() -> None:
    """The crawl may appear later, so the lookup is not cached."""
    stage = Stage()
    pack = pack_of(A, crawl="nobody")
    assert await stage.deliver(pack) == []
    (mail,) = stage.world.buried
    assert (mail.body, mail.reason) == (encode(pack), "unknown crawl 'nobody'")
    stage.begin(replace(CRAWL, id="nobody"))
    assert await stage.deliver(pack) == []
    assert stage.web.urls == [A]


# --- inadmissible URLs ------------------------------------------------------------------------


async def test_inadmissible_targets_are_skipped_with_reason() -> None:
    stage = Stage()
    crawl = replace(CRAWL, seeds=(A,))
    linked = Target(url=B, depth=1, referrer=A)
    bad = {
        "scope": replace(linked, url="https://other.example/"),
        "depth": replace(linked, url=f"{SITE}/deep", depth=21),
        "invalid": replace(linked, url=f"{SITE}/x/../y"),
    }
    pack = replace(stage.begin(crawl, *"1234"), targets=(linked, *bad.values()))
    stage.web.put(B, html())
    assert await stage.deliver(pack) == []
    assert stage.web.urls == [B]
    skipped = {f"skipped.{reason}": 1 for reason in bad}
    counters = stage.counts()
    assert {key: counters[key] for key in skipped} == skipped
    assert (counters["claimed"], counters["fetched"], counters["skipped"]) == (4, 1, 3)
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    recorded = {B: "fetched.ok"}
    recorded |= {bad[reason].url: f"skipped.{reason}" for reason in ("scope", "depth")}
    assert outcomes(stage.world) == recorded
