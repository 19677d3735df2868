"""Batches of messages: failed ids, and whole crawls from seed to end."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import Loose, Pack, child_id, encode, seeds_of
from orbweaver.model.crawl import State, Stop, default_crawl
from orbweaver.model.errors import Transient
from tests.memory import Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    SITE,
    Stage,
    answer,
    fail_on,
    html,
    noting,
    outcomes,
    pack_of,
)

A, B = f"{SITE}/a", f"{SITE}/b"


def packs(count: int) -> list[Pack]:
    return [pack_of(f"{SITE}/{place}", pack=child_id("p", place)) for place in range(count)]


# --- from seed to end -------------------------------------------------------------------------


async def test_bare_url_is_crawled_by_default_crawl() -> None:
    stage = Stage().serve({"/": html("/a", "//other.example/"), A: html("/")})
    assert await stage.deliver(f"{SITE}/") == []
    await stage.drain()
    assert outcomes(stage.world) == {f"{SITE}/": "fetched.ok", A: "fetched.ok"}
    crawl = default_crawl(NOW_MS)
    assert stage.world.crawls == {"default": crawl}
    counters = stage.counts(crawl)
    assert (counters["claimed"], counters["fetched"], counters["refused.scope"]) == (2, 2, 1)


async def test_crawl_runs_from_seeds_to_announced_end() -> None:
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
    assert stage.counts()["claimed"] == 42
    assert len(stage.world.announced) == 1
    assert stage.world.buried == []


async def test_chain_of_forty_links_is_followed() -> None:
    """Only the crawl bounds the depth (case 22)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, depth_max=40), f"{SITE}/0")
    for place in range(50):
        stage.web.put(f"{SITE}/{place}", html(f"/{place + 1}"))
    await stage.deliver(pack)
    assert await stage.drain() == 40
    assert len(outcomes(stage.world)) == 41
    assert stage.counts()["refused.depth"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_claimed_links_are_not_counted_as_too_deep() -> None:
    stage = Stage()
    crawl = replace(CRAWL, depth_max=1)
    stage.world.crawls[crawl.id] = crawl
    stage.web.put(f"{SITE}/", html("/a", "/b"))
    stage.web.put(f"{SITE}/a", html("/", "/a", "/b", "/deep"))
    stage.web.put(f"{SITE}/b", html("/", "/a", "/deep", "/deeper"))
    (seeds,) = seeds_of(crawl.id, crawl.id, [f"{SITE}/"], at_ms=NOW_MS, planned=True)
    await stage.deliver(seeds)
    await stage.drain()
    assert stage.counts()["refused.depth"] == 3
    assert set(stage.world.samples[CRAWL.id]["depth"]) == {f"{SITE}/deep", f"{SITE}/deeper"}


async def test_endless_site_ends_at_page_budget() -> None:
    stage = Stage()
    pack = stage.begin(replace(CRAWL, pages_max=30, depth_max=1_000), f"{SITE}/0")
    for place in range(100):
        stage.web.put(f"{SITE}/{place}", html(f"/{2 * place + 1}", f"/{2 * place + 2}"))
    await stage.deliver(pack)
    await stage.drain()
    assert len(outcomes(stage.world)) == 30
    assert stage.world.crawls[CRAWL.id].stop is Stop.MAX_PAGES


# --- one message among others -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "body is neither a URL nor valid JSON"),
        ("[" * 100_000, "body is neither a URL nor valid JSON"),
        ('{"v":0}', "version 0 is not 1"),
        ("x" * 1_000_000, "URL is longer than 8192 characters"),
        ("example.com", "no usable URL: not an absolute URL"),
        (json.dumps({"url": A, "crawl": "nobody"}), "unknown crawl 'nobody'"),
        (encode(pack_of(A, crawl="nobody")), "unknown crawl 'nobody'"),
    ],
)
async def test_bad_message_is_dead_lettered_and_others_succeed(body: str, reason: str) -> None:
    """The dead letter has a reason (cases 7, 8, 15)."""
    stage = Stage()
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=9)
    assert await stage.deliver(*packs(4), body, *packs(9)[4:]) == []
    assert len(outcomes(stage.world)) == 9
    assert [(mail.body, mail.reason) for mail in stage.world.buried] == [(body, reason)]
    assert stage.metrics.totals["MessagesBuried"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_failed_message_returns_alone() -> None:
    """This holds for expected and unexpected failures (cases 9, 11)."""
    errors = {3: Transient("busy"), 6: RuntimeError("a mistake of ours")}
    numbers = itertools.count()

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.journal", Moment.BEFORE):
            error = errors.get(next(numbers))
            if error is not None:
                raise error

    stage = Stage(gate=gate)
    stage.begin(CRAWL)
    returned = await stage.deliver(*packs(10))
    assert returned == [3, 6]
    assert len(outcomes(stage.world)) == 8
    assert stage.metrics.totals["MessagesFailed"] == 2
    again = [packs(10)[place] for place in returned]
    assert await stage.deliver(*again, receives=2) == []
    assert len(outcomes(stage.world)) == 10


@pytest.mark.parametrize(
    ("effect", "error", "event"),
    [
        ("packs.journal", Transient, "message.deferred"),
        ("packs.commit", Transient, "message.deferred"),
        ("packs.journal", RuntimeError, "message.failed"),
        ("hosts.reserve", RuntimeError, "message.failed"),
    ],
)
async def test_transient_failure_is_warning_and_bug_is_error(
    caplog: pytest.LogCaptureFixture, effect: str, error: type[Exception], event: str
) -> None:
    stage = Stage(gate=fail_on(effect, times=9, error=error))
    pack = stage.begin(CRAWL, A)
    assert await stage.deliver(pack) == [0]
    assert [record.message for record in caplog.records] == [event]


async def test_unsent_loose_references_return() -> None:
    """The references stay queued until their seeds are queued (case 12)."""
    stage = Stage(gate=fail_on("queue.send"))
    assert await stage.deliver(encode(Loose(crawl="default", references=(A,)))) == [0]
    assert stage.world.buried == []
    assert await stage.deliver(A, receives=2) == []
    assert len(stage.world.sent) == 1


async def test_message_returns_if_dead_letter_write_fails() -> None:
    stage = Stage(gate=fail_on("queue.bury"))
    assert await stage.deliver("{") == [0]
    assert await stage.deliver("{") == []
    assert len(stage.world.buried) == 1


# --- unavailable tables -----------------------------------------------------------------------


async def test_throttling_for_minutes_loses_no_message() -> None:
    """Batches return to the queue without requests or dead letters (case 16)."""

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


@pytest.mark.parametrize(
    ("receives", "retried"), [(1, [15, 15]), (2, [120, 120]), (3, []), (4, [])]
)
@pytest.mark.parametrize("effect", ["packs.recall", "crawls.get"])
async def test_failed_message_is_visible_soon_after_few_receives(
    effect: str, receives: int, retried: list[int]
) -> None:
    """A throttled request costs seconds. A longer outage must not use up the deliveries."""
    stage = Stage(gate=fail_on(effect, times=9))
    stage.begin(CRAWL)
    assert await stage.deliver(*packs(2), receives=receives) == [0, 1]
    assert [delay_s for _, delay_s in stage.world.retried] == retried


async def test_failure_outside_messages_fails_batch() -> None:
    """The whole batch returns and succeeds later (case 9)."""
    stage = Stage(gate=fail_on("crawls.shard", error=RuntimeError))
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    with pytest.raises(RuntimeError):
        await stage.deliver(*packs(2))
    stage.restart()
    assert await stage.deliver(*packs(2), receives=2) == []
    assert len(stage.web.urls) == 2
    assert stage.counts()["failed"] == 2
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


@pytest.mark.parametrize("effect", ["crawls.shard", "crawls.seal", "events.completed"])
async def test_failed_finish_check_is_repeated(effect: str) -> None:
    stage = Stage(gate=fail_on(effect))
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=2)
    assert await stage.deliver(*packs(2)) == [0, 1]
    assert stage.world.announced == []
    assert await stage.deliver(*packs(2), receives=2) == []
    assert len(stage.world.announced) == 1


async def test_crawl_is_checked_once_per_batch() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    stage.begin(CRAWL)
    stage.begin(replace(CRAWL, id="other-1"))
    stage.count(CRAWL, claimed=9)
    other = pack_of(f"{SITE}/x", crawl="other-1", pack=child_id("x", 0))
    await stage.deliver(*packs(3), other)
    assert effects.count("crawls.shard") == 2
