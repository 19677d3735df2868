"""A batch in, the ids of what is to come back out; a whole crawl from its seed to its end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from orbweaver.adapters.memory import Moment
from orbweaver.advance import Delivery
from orbweaver.core.crawl import Crawl, State, Stop, default_crawl
from orbweaver.core.message import Loose, Pack, child_id, encode, seeds_of
from orbweaver.core.politeness import Host
from orbweaver.ports import PortError, Transient
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    REMAINING_MS,
    ROOT,
    SITE,
    Stage,
    answer,
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

A, B = f"{SITE}/a", f"{SITE}/b"


def packs(count: int) -> list[Pack]:
    """Make packs of one URL each."""
    return [pack_of(f"{SITE}/{place}", pack=child_id("p", place)) for place in range(count)]


# --- from seed to end -------------------------------------------------------------------------


async def test_a_bare_url_becomes_pages() -> None:
    """A URL dropped on the queue is crawled within the default crawl's bounds."""
    stage = Stage()
    stage.web.put(f"{SITE}/", html("/a", "//other.example/"))
    stage.web.put(A, html("/"))
    assert await stage.deliver(f"{SITE}/") == []
    await stage.drain()
    assert outcomes(stage.world) == {f"{SITE}/": "fetched.ok", A: "fetched.ok"}
    crawl = default_crawl(NOW_MS)
    assert stage.world.crawls == {"default": crawl}
    books = stage.tally(crawl)
    assert (books["claimed"], books["fetched"], books["refused.scope"]) == (2, 2, 1)


async def test_a_crawl_runs_from_its_seeds_to_its_end() -> None:
    """Every page is fetched once, the books balance, and the end is announced once."""
    stage = Stage()
    crawl = replace(CRAWL, seeds_planned=1, obey_robots=True, delay_ms=1_000)
    stage.world.crawls[crawl.id] = crawl
    for place in range(40):
        stage.web.put(f"{SITE}/{place}", html(f"/{place + 1}", f"/{place // 2}", "/0#top"))
    stage.web.put(f"{SITE}/20", answer(503, retry_after="30"), html("/21"))
    stage.web.put(f"{SITE}/40", answer(302, location="/end"))
    crawl = replace(crawl, depth_max=50)
    stage.world.crawls[crawl.id] = crawl
    (seeds,) = seeds_of(crawl.id, crawl.id, [f"{SITE}/0"], at_ms=NOW_MS, planned=True)
    await stage.deliver(seeds)
    await stage.drain()
    expected = {f"{SITE}/{place}": "fetched.ok" for place in range(40)}
    expected |= {f"{SITE}/40": "redirected.redirect", f"{SITE}/end": "failed.http_client_error"}
    assert outcomes(stage.world) == expected
    ended = stage.world.crawls[crawl.id]
    assert (ended.state, ended.stop) == (State.FINISHED, Stop.FINISHED)
    assert stage.tally()["claimed"] == 42
    assert len(stage.world.announced) == 1
    assert stage.world.buried == []


async def test_a_chain_of_forty_links_is_followed_to_its_end() -> None:
    """Depth is bounded by the crawl and by nothing else (case 22)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, depth_max=40), f"{SITE}/0")
    for place in range(50):
        stage.web.put(f"{SITE}/{place}", html(f"/{place + 1}"))
    await stage.deliver(pack)
    assert await stage.drain() == 40
    assert len(outcomes(stage.world)) == 41
    assert stage.tally()["refused.depth"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_an_endless_site_ends_at_its_budget() -> None:
    """Pages that link to ever new pages are crawled up to the budget, to the page."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, pages_max=30, depth_max=1_000), f"{SITE}/0")
    for place in range(100):
        stage.web.put(f"{SITE}/{place}", html(f"/{2 * place + 1}", f"/{2 * place + 2}"))
    await stage.deliver(pack)
    await stage.drain()
    assert len(outcomes(stage.world)) == 30
    assert stage.world.crawls[CRAWL.id].stop is Stop.MAX_PAGES


# --- one message beside others ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "body is neither a URL nor valid JSON"),
        ("[" * 100_000, "body is neither a URL nor valid JSON"),
        ('{"v":9}', "version 9 is not 1"),
        ("x" * 1_000_000, "URL is longer than 8192 characters"),
        ("example.com", "no usable URL: not an absolute URL"),
        (json.dumps({"url": A, "crawl": "nobody"}), "unknown crawl 'nobody'"),
        (encode(pack_of(A, crawl="nobody")), "unknown crawl 'nobody'"),
    ],
)
async def test_one_bad_message_is_buried_and_its_neighbours_are_done(
    body: str, reason: str
) -> None:
    """Nine of ten are processed; the tenth goes to the dead letters with its reason (cases 7, 8, 15)."""  # noqa: E501 - one sentence
    stage = Stage()
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=9)
    assert await stage.deliver(*packs(4), body, *packs(9)[4:]) == []
    assert len(outcomes(stage.world)) == 9
    assert [(mail.body, mail.reason) for mail in stage.world.buried] == [(body, reason)]
    assert stage.metrics.totals["MessagesBuried"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_one_message_that_fails_comes_back_alone() -> None:
    """A failure of ours, foreseen or not, is its own message's (cases 9, 11)."""

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.journal", Moment.BEFORE):
            errors = {2: Transient("busy"), 5: RuntimeError("a mistake of ours")}
            number = len(stage.world.journals)
            failing = errors.pop(number, None) if number not in failed else None
            if failing is not None:
                failed.add(number)
                raise failing

    failed: set[int] = set()
    stage = Stage(gate=gate)
    stage.begin(CRAWL)
    returned = await stage.deliver(*packs(10))
    assert len(returned) == 2
    assert len(outcomes(stage.world)) == 8
    assert stage.metrics.totals["MessagesFailed"] == 2
    again = [packs(10)[place] for place in returned]
    assert await stage.deliver(*again, receives=2) == []
    assert len(outcomes(stage.world)) == 10


async def test_loose_references_that_cannot_be_sent_come_back() -> None:
    """Until their seeds are on the queue they stay where they are (case 12)."""
    stage = Stage(gate=fail_on("queue.send"))
    assert await stage.deliver(encode(Loose(crawl="default", references=(A,)))) == [0]
    assert stage.world.buried == []
    assert await stage.deliver(A, receives=2) == []
    assert len(stage.world.sent) == 1


async def test_a_message_that_cannot_be_buried_comes_back() -> None:
    """A dead letter is acknowledged once it lies with the dead."""
    stage = Stage(gate=fail_on("queue.bury"))
    assert await stage.deliver("{") == [0]
    assert await stage.deliver("{") == []
    assert len(stage.world.buried) == 1


# --- tables that do not answer ----------------------------------------------------------------


async def test_minutes_of_throttling_lose_nothing() -> None:
    """While tables refuse, batches come back unasked and unburied; then they are done (case 16)."""

    async def refuse(effect: str, moment: Moment) -> None:
        if not effect.startswith("queue") and stage.clock.at_ms < NOW_MS + 300_000:
            raise Transient(effect)

    stage = Stage()
    stage.begin(CRAWL)
    stage.restart(refuse)
    while stage.clock.at_ms < NOW_MS + 300_000:
        assert await stage.deliver(*packs(3), "https://new.example/") == [0, 1, 2, 3]
        stage.clock.at_ms += 100_000
    assert (stage.world.buried, stage.web.urls) == ([], [])
    assert await stage.deliver(*packs(3), receives=4) == []
    assert len(outcomes(stage.world)) == 3


async def test_a_mistake_outside_of_all_messages_fails_the_batch() -> None:
    """What nobody foresaw ends the invocation; all of the batch comes back, and is done (case 9)."""  # noqa: E501 - one sentence

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.shard", Moment.BEFORE):
            raise RuntimeError("a mistake of ours")

    stage = Stage(gate=gate)
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    with pytest.raises(RuntimeError):
        await stage.deliver(*packs(2))
    stage.restart()
    assert await stage.deliver(*packs(2), receives=2) == []
    assert len(stage.web.urls) == 2
    assert stage.tally()["failed"] == 2
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


@pytest.mark.parametrize("effect", ["crawls.shard", "crawls.seal", "events.completed"])
async def test_a_check_that_fails_is_made_again(effect: str) -> None:
    """Whoever asked whether the crawl is finished comes back until it is known, and told."""
    stage = Stage(gate=fail_on(effect))
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    assert await stage.deliver(*packs(2)) == [0, 1]
    assert stage.world.announced == []
    assert await stage.deliver(*packs(2), receives=2) == []
    assert len(stage.world.announced) == 1


async def test_a_crawl_is_checked_once_a_batch() -> None:
    """However many packs may have been the last, the books are read once."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    stage.begin(CRAWL)
    stage.begin(replace(CRAWL, id="other-1"))
    stage.count(CRAWL, claimed=9)
    other = pack_of(f"{SITE}/x", crawl="other-1", pack=child_id("x", 0))
    await stage.deliver(*packs(3), other)
    assert effects.count("crawls.shard") == 2


# --- the same message, more than once ---------------------------------------------------------


async def test_the_same_message_twice_at_once_counts_once() -> None:
    """Two containers may fetch it both, and come to one result and one set of children (case 1)."""
    stage = Stage(gate=hand_over)
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html("/b", "/c"))
    twin = Stage(gate=hand_over, world=stage.world, clock=stage.clock)
    twin.web = stage.web
    twin.restart(hand_over)
    one, other = await asyncio.gather(stage.deliver(pack, pack), twin.deliver(pack))
    assert (one, other) == ([], [])
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert stage.tally()["claimed"] == 3
    assert stage.tally()["fetched"] == 1
    assert {message.id for message in stage.sent()} == {child_id(ROOT, 0)}


async def test_two_pages_that_link_the_same_send_it_once() -> None:
    """Whoever claims a URL sends it; its outcome is counted once (case 1)."""
    stage = Stage(gate=hand_over)
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    for place in range(2):
        stage.web.put(f"{SITE}/{place}", html("/same", "/0", "/1"))
    stage.count(CRAWL, claimed=0)
    await stage.deliver(*packs(2))
    sent = [target.url for pack in stage.sent() if isinstance(pack, Pack) for target in pack.targets]
    assert sent.count(f"{SITE}/same") == 1


async def test_what_lay_with_the_dead_goes_on_when_it_is_moved_back() -> None:
    """With the fault gone a redriven message is done once; with it there, it is back (case 24)."""
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
    assert stage.tally(crawl)["fetched"] == 1


async def test_a_lost_announcement_is_made_up_for_by_the_redelivery() -> None:
    """The last message of a crawl is acknowledged once its end is announced (case 6)."""
    stage = Stage(gate=kill_on("events.completed", Moment.BEFORE))
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    stage.restart()
    assert await stage.deliver(pack, receives=2) == []
    assert len(stage.world.announced) == 1


# --- order within a batch ---------------------------------------------------------------------


async def test_suspects_come_last_one_by_one_the_least_suspect_first() -> None:
    """Whatever one of them does to the worker, everybody before it is done."""
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


async def test_a_suspect_with_a_journal_is_none() -> None:
    """Its page was survived; it goes on with everybody else, unstruck."""
    stage = Stage(gate=kill_on("packs.commit", Moment.BEFORE))
    pack = stage.begin(CRAWL, A)
    assert not await survives(stage.deliver(pack))
    effects: list[str] = []
    stage.restart(noting(effects))
    await stage.deliver(pack, receives=2)
    assert "packs.strike" not in effects


@pytest.mark.parametrize("express", [False, True])
async def test_what_is_put_off_is_sent_last(*, express: bool) -> None:
    """Packs that nothing was done for go back by their own queue, when all else is done."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, express=express, delay_ms=1_000)
    stage.begin(crawl)
    blocked = "https://blocked.example"
    stage.world.hosts[blocked] = Host(name=blocked, blocked_until_ms=NOW_MS + 60_000)
    waiting = pack_of(f"{blocked}/x")
    assert await stage.deliver(waiting, *packs(1)) == []
    assert [(mail.body, mail.express) for mail in stage.world.sent] == [(encode(waiting), express)]
    assert effects.index("packs.commit") < effects.index("queue.send")
    assert stage.metrics.totals["PacksPutOff"] == 1


async def test_what_cannot_be_put_off_comes_back() -> None:
    """If the queue does not take it again, the message itself returns (case 12)."""
    stage = Stage(gate=fail_on("queue.send"))
    crawl = replace(CRAWL, delay_ms=1_000)
    pack = stage.begin(crawl, A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 60_000)
    assert await stage.deliver(pack) == [0]
    assert stage.world.sent == []


@pytest.mark.parametrize("crawl", [CRAWL, replace(CRAWL, delay_ms=1_000)])
async def test_with_no_time_left_nothing_is_begun(crawl: Crawl) -> None:
    """Near its limit a worker takes no URL, and gives all of them back (case 10)."""
    stage = Stage()
    pack = stage.begin(crawl, A, B)
    assert await stage.deliver(pack, remaining_ms=5_000) == []
    assert stage.web.urls == []
    assert urls_of(stage.sent()) == {A, B}
    assert stage.clock.at_ms < NOW_MS + 5_000


async def test_only_messages_of_the_batch_are_named() -> None:
    """Whatever fails, the ids that come back are ids that came in (case 11)."""
    stage = Stage()
    stage.begin(CRAWL)
    bodies = [encode(pack) for pack in packs(3)] + ["{", A, bodies_twice()]
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
        assert failed, effect
        assert len(set(failed)) == len(failed), effect
        assert set(failed) <= {delivery.id for delivery in deliveries}, effect
    assert issubclass(Transient, PortError)


def bodies_twice() -> str:
    """Give the first pack a second time."""
    return encode(packs(1)[0])


async def test_an_empty_batch_is_nothing() -> None:
    """No message, no effect; flushing writes what was counted."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    assert await stage.deliver() == []
    stage.worker.flush()
    assert effects == []
