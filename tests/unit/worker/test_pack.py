"""One pack, from where earlier deliveries left it."""

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


async def test_a_pack_that_is_done_is_not_asked_for_again() -> None:
    """A second delivery finds the ledger and what is noted there, and costs nothing (case 2)."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html("/b"))
    await stage.deliver(pack)
    sent, counters = list(stage.world.sent), stage.counts()
    effects: list[str] = []
    stage.restart(noting(effects))
    assert await stage.deliver(pack) == []
    assert stage.web.urls == [A]
    assert stage.world.sent == sent
    assert stage.counts() == counters
    assert effects == ["packs.recall", "crawls.get"]


async def test_a_copy_that_looked_before_its_crawl_ended_lets_go_of_nothing() -> None:
    """It saw no ledger, then the end: what the other copy came to counts, for later runs too."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    await stage.frontier.claim(claimer_of(CRAWL, ROOT, NOW_MS), pack.targets)
    stage.web.put(A, html())
    other = Stage(world=stage.world, clock=stage.clock)
    copies = [stage.deliver(pack)]  # one, by the container that is not held up

    async def end_meanwhile(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.recall", Moment.AFTER) and copies:
            assert await copies.pop() == []

    other.restart(end_meanwhile)
    assert await other.deliver(pack) == []
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    later = claimer_of(replace(CRAWL, id="later"), "another pack", NOW_MS + 1)
    assert (await stage.frontier.known(later, [A])).held == {A}


async def test_an_outbox_that_may_be_missing_is_sent_again() -> None:
    """Who died before the note sends the same packs again, with the same ids (cases 5, 6)."""
    for effect, moment in (("queue.send", Moment.BEFORE), ("packs.sent", Moment.BEFORE)):
        stage = Stage(gate=kill_on(effect, moment))
        pack = stage.begin(CRAWL, A)
        stage.web.put(A, html("/b"))
        assert not await survives(stage.deliver(pack))
        stage.restart()
        assert await stage.deliver(pack) == []
        assert {message.id for message in stage.sent()} == {child_id(pack.id, 0)}
        assert stage.web.urls == [A]


async def test_a_ledger_without_its_journal_is_the_end() -> None:
    """What is past its retention has no copy left that could matter."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.ledgers[ROOT] = Ledger(pack=ROOT, children=())
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []


async def test_a_journaled_pack_goes_on_without_asking() -> None:
    """What was fetched is not fetched again, whatever has changed since (case 4)."""
    stage = Stage(gate=kill_on("packs.journal", Moment.AFTER))
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html("/b"), answer(404))
    assert not await survives(stage.deliver(pack))
    assert stage.world.pages == {}
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert stage.web.urls == [A]
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert urls_of(stage.sent()) == {B}


async def test_a_crash_before_the_journal_costs_a_second_fetch() -> None:
    """What was only in memory is lost and asked for once more, and counted once (case 3)."""
    stage = Stage(gate=kill_on("packs.journal", Moment.BEFORE))
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html())
    assert not await survives(stage.deliver(pack))
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert stage.web.urls == [A, A]
    assert stage.counts() == {"claimed": 1, "fetched": 1, "fetched.ok": 1, "bytes": 19}


async def test_a_delivery_that_comes_too_late_is_overruled() -> None:
    """A worker that froze writes no journal, record or count over another's (case 18)."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html("/late"))
    first = Journal(at_ms=NOW_MS, candidates=(Target(url=B, depth=1),), counts={"failed": 1})

    async def meanwhile(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.journal", Moment.BEFORE):
            stage.world.journals[ROOT] = first

    stage.restart(meanwhile)
    await stage.deliver(pack)
    assert stage.world.journals[ROOT] == first
    assert stage.world.pages == {}
    assert stage.counts() == {"claimed": 2, "failed": 1}
    assert urls_of(stage.sent()) == {B}


@pytest.mark.parametrize("remains", [True, False])
async def test_a_crash_at_any_step_of_a_pack_is_made_good(*, remains: bool) -> None:
    """Wherever the worker ends, the next one comes to the same, counted once (cases 3 to 6)."""
    moment = 1
    while True:
        stage = Stage(gate=kill_at(moment))
        pack = stage.begin(CRAWL, A)
        stage.web.put(A, html("/b") if remains else html())
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


async def test_seeds_are_claimed_and_become_a_pack() -> None:
    """References become claims and a pack; a second delivery finds that done (case 2)."""
    stage = Stage()
    stage.begin()
    for _ in range(2):
        assert await stage.deliver(SEEDS) == []
    assert stage.counts() == {"claimed": 2}
    (pack,) = stage.sent()
    assert isinstance(pack, Pack)
    assert pack.targets == (Target(url=A, depth=0), Target(url=B, depth=0))
    assert stage.web.urls == []


async def test_a_paused_crawl_sets_its_messages_aside() -> None:
    """Packs and seeds are parked as they came, and acknowledged; nothing is asked (case 23)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, state=State.PAUSED), A)
    assert await stage.deliver(pack, SEEDS) == []
    assert stage.world.parked == {
        (CRAWL.id, ROOT): encode(pack),
        (CRAWL.id, SEEDS.id): encode(SEEDS),
    }
    assert (stage.web.urls, stage.world.sent, stage.world.journals) == ([], [], {})


async def test_a_crawl_that_was_resumed_meanwhile_goes_on() -> None:
    """What cannot be parked any more is done, and the state is read anew."""
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
async def test_urls_of_a_stopped_crawl_end_unasked(crawl: Crawl, after_s: int, reason: str) -> None:
    """They are counted so that the books balance, leave no record, and the crawl ends."""
    stage = Stage()
    pack = stage.begin(crawl, A, B)
    stage.clock.at_ms += after_s * 1000
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []
    assert stage.world.pages == {}
    assert stage.counts() == {"claimed": 2, "skipped": 2, f"skipped.{reason}": 2}
    ended = stage.world.crawls[crawl.id]
    assert (ended.state, str(ended.stop)) == (State.FINISHED, reason)


async def test_a_pack_of_a_sealed_crawl_ends_quietly() -> None:
    """A stray copy after the end counts nothing, and has nothing checked."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.shards[CRAWL.id, 0].closed = True
    counters = dict(stage.counts())
    assert await stage.deliver(pack) == []
    assert stage.counts() == counters
    assert stage.world.announced == []


@pytest.mark.parametrize(
    ("passed_ms", "asked"),
    [(CRAWL_FRESH_MS - 1, True), (CRAWL_FRESH_MS, False), (-1, False)],
)
async def test_a_container_notices_a_cancellation_within_seconds(
    passed_ms: int, *, asked: bool
) -> None:
    """What is known of a crawl is read again after five seconds, or when the clock went back."""
    stage = Stage()
    stage.begin(CRAWL, A, B)
    stage.web.put(A, html())
    await stage.deliver(pack_of(A))
    stage.world.crawls[CRAWL.id] = replace(CRAWL, state=State.STOPPING)
    stage.clock.at_ms = NOW_MS + passed_ms
    await stage.deliver(pack_of(B, pack=child_id("b", 0)))
    assert (B in stage.web.urls) is asked


async def test_a_pack_of_a_crawl_that_is_not_there_is_buried() -> None:
    """Its crawl may yet come: the answer is not remembered."""
    stage = Stage()
    pack = pack_of(A, crawl="nobody")
    assert await stage.deliver(pack) == []
    (mail,) = stage.world.buried
    assert (mail.body, mail.reason) == (encode(pack), "unknown crawl 'nobody'")
    stage.begin(replace(CRAWL, id="nobody"))
    assert await stage.deliver(pack) == []
    assert stage.web.urls == [A]


# --- URLs that do not fit ---------------------------------------------------------------------


async def test_urls_of_a_pack_that_do_not_fit_end_with_a_reason() -> None:
    """They are counted and not asked for; the others are, and the books balance."""
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
