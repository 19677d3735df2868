"""What a cancellation comes to: it ends soon, whatever the queue still holds back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.frontier.messages import Close, Pack, child_id, decode, encode
from orbweaver.model.crawl import State, Stop
from orbweaver.model.settings import Settings
from orbweaver.worker.apply_journal import CLOSE_AGAIN_S, CLOSE_TRIES, claimer_of
from orbweaver.worker.crawl_cache import CRAWL_FRESH_MS
from tests.memory import Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    SITE,
    Stage,
    control_of,
    fail_on,
    html,
    kill_on,
    pack_of,
    survives,
    urls_of,
)

if TYPE_CHECKING:
    from orbweaver.frontier.claims import Claimer

A, B, C = (f"{SITE}/{name}" for name in "abc")
LATER_ID = child_id("later", 0)
CLOSE = Close(crawl=CRAWL.id, at_ms=NOW_MS)
# Visits wait for slots for longer than a crawl is taken for what it was.
LONG_WAIT = Settings(wait_s_max=20.0)
STOPPING = replace(CRAWL, state=State.STOPPING, stop=Stop.CANCELLED)


def stopped(*, after_s: int = CLOSE_S) -> Stage:
    """Show a crawl that was cancelled a while ago: three URLs claimed, one of them fetched."""
    stage = Stage()
    stage.begin(STOPPING, A, B, C)
    stage.count(CRAWL, fetched=1)
    stage.clock.at_ms += after_s * 1000
    return stage


async def test_a_cancelled_crawl_waits_for_nothing_that_is_held_back() -> None:
    """What has no outcome is counted as cancelled, once, and the end is announced."""
    stage = stopped()
    assert await stage.deliver(encode(CLOSE)) == []
    crawl = stage.world.crawls[CRAWL.id]
    assert (crawl.state, crawl.stop) == (State.FINISHED, Stop.CANCELLED)
    ended = {"claimed": 3, "fetched": 1, "skipped": 2, "skipped.cancelled": 2}
    assert stage.counts() == ended
    ((_, total),) = stage.world.announced
    assert total == ended
    assert await stage.deliver(encode(CLOSE), encode(CLOSE)) == []
    assert stage.counts() == ended
    assert len(stage.world.announced) == 1


async def test_cancelling_has_the_crawl_closed_soon() -> None:
    """Word goes out with the cancellation, on the express lane, and takes effect after a while."""
    stage = Stage()
    stage.begin(CRAWL, A)
    await control_of(stage).cancel(CRAWL.id)
    (mail,) = stage.world.sent
    assert (mail.delay_s, mail.express, decode(mail.body)) == (CLOSE_S, True, CLOSE)
    assert await stage.drain() == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    assert stage.clock.at_ms <= NOW_MS + 60_000


async def test_nobody_is_cut_short() -> None:
    """Word that comes too early waits until whoever still asked must be through."""
    stage = stopped(after_s=2)
    assert await stage.deliver(encode(CLOSE)) == []
    (mail,) = stage.world.sent
    settings = stage.settings
    through_s = CRAWL_FRESH_MS / 1000 + settings.fetch_total_s + settings.apply_reserve_s
    assert mail.delay_s == through_s - 2
    assert stage.world.crawls[CRAWL.id] == STOPPING


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
async def test_a_crawl_that_goes_on_is_not_closed(state: State) -> None:
    """Only a cancelled crawl ends by word; nor does one that is not there."""
    stage = stopped()
    going = replace(CRAWL, state=state)
    stage.world.crawls[CRAWL.id] = going
    other = replace(CLOSE, crawl="nobody")
    assert await stage.deliver(encode(CLOSE), encode(other)) == []
    assert stage.world.crawls == {CRAWL.id: going}
    assert stage.world.announced == []


async def test_counters_that_move_all_the_time_are_closed_a_little_later() -> None:
    """While packs drain faster than the books can be sealed, word goes out again."""
    stage = stopped()

    async def busy(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("crawls.seal", Moment.BEFORE):
            stage.world.shards[CRAWL.id, 0].commits += 1

    stage.restart(busy)
    began_ms = stage.clock.at_ms
    assert await stage.deliver(encode(CLOSE)) == []
    (mail,) = stage.world.sent
    assert (decode(mail.body), mail.delay_s) == (CLOSE, CLOSE_AGAIN_S)
    assert 0 < stage.clock.at_ms - began_ms < CLOSE_TRIES * 1_000
    stage.restart()
    await stage.drain()
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_a_close_that_fails_comes_back() -> None:
    """A table that does not answer is our trouble; the word is not lost."""
    stage = stopped()
    stage.restart(fail_on("crawls.seal"))
    assert await stage.deliver(encode(CLOSE)) == [0]
    assert await stage.deliver(encode(CLOSE)) == []
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_an_end_that_was_not_told_is_told_by_the_next() -> None:
    """The closer may die between sealing and announcing; its message comes again."""
    stage = stopped()
    stage.restart(kill_on("crawls.seal", Moment.AFTER))
    assert not await survives(stage.deliver(encode(CLOSE)))
    stage.restart()
    assert await stage.deliver(encode(CLOSE)) == []
    assert len(stage.world.announced) == 1


async def test_what_comes_after_the_end_is_neither_asked_nor_recorded() -> None:
    """A pack that was held back finds its crawl ended, and other runs may have its URLs."""
    stage = stopped()
    await stage.frontier.claim(_claimer(CRAWL.id), pack_of(B).targets)
    await stage.deliver(encode(CLOSE))
    counters = dict(stage.counts())
    assert await stage.deliver(pack_of(B, pack=LATER_ID)) == []
    assert (stage.web.urls, stage.world.pages, stage.counts()) == ([], {}, counters)
    assert await stage.frontier.claim(_claimer("other"), pack_of(B).targets) == {B}


async def test_an_answer_that_was_not_counted_is_let_go() -> None:
    """Its worker died before the commit; what it had claimed for its links is free again."""
    stage = stopped()
    stage.world.crawls[CRAWL.id] = CRAWL
    stage.web.put(B, html("c"))
    stage.world.claims.clear()
    stage.restart(kill_on("packs.commit", Moment.BEFORE))
    pack = pack_of(B, pack=LATER_ID)
    assert not await survives(stage.deliver(pack))
    stage.world.crawls[CRAWL.id] = STOPPING
    stage.restart()
    await stage.deliver(encode(CLOSE))
    counters = dict(stage.counts())
    assert await stage.deliver(pack, receives=2) == []
    assert stage.counts() == counters
    assert not any(claim.pack == LATER_ID for claim in stage.world.claims.values())


async def test_what_a_stopped_crawl_leaves_others_may_ask_for() -> None:
    """Started again after a cancellation, the same name takes up what was not asked for."""
    stage = Stage()
    stage.begin(CRAWL, A, B)
    await stage.frontier.claim(_claimer(CRAWL.id), pack_of(A, B).targets)
    stage.world.crawls[CRAWL.id] = STOPPING
    assert await stage.deliver(pack_of(A, B)) == []
    assert stage.counts()["skipped.cancelled"] == 2
    again = replace(_claimer("other"), at_ms=NOW_MS + 60_000)
    assert (await stage.frontier.known(again, [A, B])).held == frozenset()
    assert await stage.frontier.claim(again, pack_of(A, B).targets) == {A, B}


@pytest.mark.parametrize("state", [State.PAUSED, State.STOPPING])
async def test_nothing_is_asked_a_few_seconds_after(state: State) -> None:
    """Also of a pack that waits for its slots: what is left of it comes back at once."""
    stage = Stage(settings=LONG_WAIT)
    crawl = replace(CRAWL, delay_ms=2_000)
    urls = [f"{SITE}/{number}" for number in range(9)]
    pack = stage.begin(crawl, *urls)

    def steer(_request: object) -> None:
        stage.world.crawls[CRAWL.id] = replace(crawl, state=state)

    stage.web.before = steer  # with the first request
    assert await stage.deliver(pack) == []
    began_ms = stage.web.asked[0][1]
    assert max(at_ms for _, at_ms in stage.web.asked) <= began_ms + CRAWL_FRESH_MS
    assert 1 < len(stage.web.asked) < len(urls)
    left = [message for message in stage.sent() if isinstance(message, Pack)]
    assert sum(len(message.targets) for message in left) == len(urls) - len(stage.web.asked)


async def test_a_new_delay_holds_within_seconds() -> None:
    """A pack that waits for slots at the old delay gives them up, and none of its URLs is lost."""
    stage = Stage(settings=LONG_WAIT)
    crawl = replace(CRAWL, delay_ms=1_000)
    urls = [f"{SITE}/{number}" for number in range(20)]
    pack = stage.begin(crawl, *urls)

    def slow(_request: object) -> None:
        stage.world.crawls[CRAWL.id] = replace(crawl, delay_ms=30_000)

    stage.web.before = slow
    assert await stage.deliver(pack) == []
    assert len(stage.web.asked) <= CRAWL_FRESH_MS // 1_000 + 1
    assert urls_of(stage.sent()) >= set(urls) - set(stage.web.urls)


def _claimer(crawl: str) -> Claimer:
    return claimer_of(replace(CRAWL, id=crawl), f"pack of {crawl}", NOW_MS)
