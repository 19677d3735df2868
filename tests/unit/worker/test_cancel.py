"""Cancellation of a crawl, which ends soon despite delayed messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.frontier.claims import Claimer
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

A, B, C = (f"{SITE}/{name}" for name in "abc")
LATER_ID = child_id("later", 0)
CLOSE = Close(crawl=CRAWL.id, at_ms=NOW_MS)
# Visits wait for slots for longer than the crawl cache is valid.
LONG_WAIT = Settings.of(wait_s_max=20.0)
STOPPING = replace(CRAWL, state=State.STOPPING, stop=Stop.CANCELLED)


def stopped(*, after_s: int = CLOSE_S) -> Stage:
    """Make a stage with a cancelled crawl: three URLs claimed, one of them fetched."""
    stage = Stage()
    stage.begin(STOPPING, A, B, C)
    stage.count(CRAWL, fetched=1)
    stage.clock.at_ms += after_s * 1000
    return stage


async def test_close_ends_cancelled_crawl_despite_delayed_packs() -> None:
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


async def test_cancel_sends_delayed_close_message() -> None:
    stage = Stage()
    stage.begin(CRAWL, A)
    await control_of(stage).cancel(CRAWL.id)
    (mail,) = stage.world.sent
    assert (mail.delay_s, mail.express, decode(mail.body)) == (CLOSE_S, True, CLOSE)
    assert await stage.drain() == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED
    assert stage.clock.at_ms <= NOW_MS + 60_000


async def test_early_close_waits_for_running_requests() -> None:
    stage = stopped(after_s=2)
    assert await stage.deliver(encode(CLOSE)) == []
    (mail,) = stage.world.sent
    settings = stage.settings
    through_s = (
        CRAWL_FRESH_MS / 1000 + settings.fetching.fetch_total_s + settings.worker.apply_reserve_s
    )
    assert mail.delay_s == through_s - 2
    assert stage.world.crawls[CRAWL.id] == STOPPING


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
async def test_close_is_ignored_unless_crawl_is_cancelled(state: State) -> None:
    stage = stopped()
    going = replace(CRAWL, state=state)
    stage.world.crawls[CRAWL.id] = going
    other = replace(CLOSE, crawl="nobody")
    assert await stage.deliver(encode(CLOSE), encode(other)) == []
    assert stage.world.crawls == {CRAWL.id: going}
    assert stage.world.announced == []


async def test_close_is_sent_again_while_counters_move() -> None:
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


async def test_failed_close_returns() -> None:
    stage = stopped()
    stage.restart(fail_on("crawls.seal"))
    assert await stage.deliver(encode(CLOSE)) == [0]
    assert await stage.deliver(encode(CLOSE)) == []
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_close_makes_missing_announcement() -> None:
    stage = stopped()
    stage.restart(kill_on("crawls.seal", Moment.AFTER))
    assert not await survives(stage.deliver(encode(CLOSE)))
    stage.restart()
    assert await stage.deliver(encode(CLOSE)) == []
    assert len(stage.world.announced) == 1


async def test_pack_after_end_is_not_requested_or_recorded() -> None:
    stage = stopped()
    await stage.frontier.claim(_claimer(CRAWL.id), pack_of(B).targets)
    await stage.deliver(encode(CLOSE))
    counters = dict(stage.counts())
    assert await stage.deliver(pack_of(B, pack=LATER_ID)) == []
    assert (stage.web.urls, stage.world.pages, stage.counts()) == ([], {}, counters)
    assert await stage.frontier.claim(_claimer("other"), pack_of(B).targets) == {B}


async def test_uncommitted_pack_releases_claims_after_end() -> None:
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


async def test_urls_of_cancelled_crawl_can_be_claimed() -> None:
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
async def test_waiting_pack_stops_soon_after_cancel_or_pause(state: State) -> None:
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
    assert stage.clock.at_ms <= began_ms + CRAWL_FRESH_MS + 2 * crawl.delay_ms
    left = [message for message in stage.sent() if isinstance(message, Pack)]
    assert sum(len(message.targets) for message in left) == len(urls) - len(stage.web.asked)


async def test_new_delay_applies_within_seconds() -> None:
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
