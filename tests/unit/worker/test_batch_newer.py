"""Messages and items of a newer release wait on the queue, unchanged and uncounted."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import partial

import pytest

from orbweaver.frontier.messages import Close, Loose, encode, seeds_of
from orbweaver.model.crawl import State
from orbweaver.model.errors import Permanent, StoredNewer, Transient
from orbweaver.model.settings import Settings
from orbweaver.worker.batch import newer_in
from orbweaver.worker.pack import since_of
from tests.memory import Mail, Moment
from tests.unit.stage import CRAWL, NOW_MS, Stage, call_on, fail_on, html, noting, outcomes, pack_of
from tests.unit.worker.test_batch import A, packs

SAID = "stored by a newer version: a journal of version 3, but this version reads up to 2"
REMEDY = "; deploy that version or newer, then redrive"
# A pack as a later release might write it, with keys in another order.
NEWER = '{"at":5, "v":2,"work":[["u"]],"crawl":"site-1"}'
QUEUES = Settings.of(
    crawl_queue_url="https://sqs/1/crawl", express_queue_url="https://sqs/1/express"
)
SEEDS, CLOSE = (
    seeds_of("s", CRAWL.id, [A], at_ms=NOW_MS, planned=True)[0],
    Close(crawl=CRAWL.id, at_ms=1),
)


def held(
    body: str, crawl: str = CRAWL.id, *, express: bool = False, since_ms: int = NOW_MS
) -> Mail:
    return Mail(body=body, delay_s=900, group=crawl, express=express, since_ms=since_ms)


async def test_newer_message_waits_and_others_succeed() -> None:
    stage = Stage()
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=9)
    assert await stage.deliver(*packs(4), NEWER, *packs(9)[4:], receives=4) == []
    assert len(outcomes(stage.world)) == 9
    assert held(NEWER) in stage.world.sent
    assert stage.world.buried == []
    totals = stage.metrics.totals
    assert (totals["MessagesNewer"], totals["MessagesFailed"]) == (1, 0)


async def test_pack_with_newer_journal_waits_without_strike() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    pack = stage.begin(CRAWL, A)
    stage.world.newer[pack.id] = SAID
    assert await stage.deliver(pack, pack_of(A, pack="9" * 32), receives=4) == []
    assert stage.world.sent[-1] == held(encode(pack))
    assert stage.world.strikes.get(pack.id) is None
    assert effects.count("packs.strike") == 1  # the strike of the other pack
    assert stage.world.buried == []


@pytest.mark.parametrize(
    "body",
    [
        encode(pack_of(A)),
        encode(SEEDS),
        encode(replace(CLOSE, at_ms=NOW_MS - 86_400_000)),
        json.dumps({"url": A, "crawl": CRAWL.id}, indent=1),
    ],
    ids=["pack", "seeds", "close", "loose"],
)
@pytest.mark.parametrize("express", [False, True])
async def test_messages_of_newer_crawl_wait_on_own_lane(body: str, express: bool) -> None:
    stage = Stage(settings=QUEUES)
    stage.begin(replace(CRAWL, state=State.STOPPING))
    stage.world.newer[CRAWL.id] = SAID
    queue = "express" if express else "crawl"
    assert await stage.deliver(body, receives=4, queue=queue) == []
    assert stage.world.sent == [held(body, express=express)]
    assert (stage.web.urls, stage.world.buried) == ([], [])


async def test_loose_references_of_newer_crawl_wait_as_packs() -> None:
    stage = Stage(settings=QUEUES)
    stage.begin(CRAWL)
    stage.world.newer[CRAWL.id] = SAID
    loose = encode(Loose(crawl=CRAWL.id, references=(A,)))
    assert await stage.deliver(loose, NEWER, queue="seeds") == []
    assert stage.world.sent == [held(loose)]
    assert [mail.body for mail in stage.world.buried] == [NEWER]


async def test_newer_message_is_dead_lettered_after_limit(caplog: pytest.LogCaptureFixture) -> None:
    """The wait counts from its start, however often the message was sent."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.newer[pack.id] = SAID
    wait_ms = stage.settings.retention.newer_wait_s * 1000
    with caplog.at_level(logging.WARNING):
        assert await stage.deliver(pack, since_ms=NOW_MS - wait_ms + 1) == []
    assert stage.world.sent == [held(encode(pack), since_ms=NOW_MS - wait_ms + 1)]
    (event,) = [one for one in caplog.records if one.message == "message.newer"]
    assert (event.__dict__["why"], event.__dict__["crawl"]) == (SAID, CRAWL.id)
    assert await stage.deliver(pack, since_ms=NOW_MS - wait_ms) == []
    assert [(mail.body, mail.reason) for mail in stage.world.buried] == [
        (encode(pack), SAID + REMEDY)
    ]
    assert stage.metrics.totals["MessagesBuried"] == 1


async def test_held_message_succeeds_after_deploy() -> None:
    stage = Stage().serve({A: html()})
    pack = stage.begin(CRAWL, A)
    stage.world.newer[pack.id] = SAID
    await stage.deliver(pack)
    for _ in range(200):
        (mail,) = stage.world.sent
        stage.world.sent.clear()
        stage.clock.at_ms += mail.delay_s * 1000
        assert await stage.deliver(mail.body, since_ms=mail.since_ms) == []
    assert stage.world.sent == [held(encode(pack))]
    stage.world.newer.clear()
    await stage.drain()
    assert stage.counts()["fetched"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


@pytest.mark.parametrize("effect", ["packs.commit", "packs.recall"])
async def test_pack_waits_for_finish_of_upgraded_crawl(effect: str) -> None:
    stage = Stage().serve({A: html()})
    pack = stage.begin(CRAWL, A)
    upgrade = partial(stage.world.newer.update, {CRAWL.id: SAID})
    stage.restart(call_on(effect, upgrade, Moment.AFTER))
    assert await stage.deliver(pack) == []
    assert stage.world.sent == [held(encode(pack))]
    stage.restart()
    stage.world.newer.clear()
    await stage.drain()
    assert stage.counts()["fetched"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


@pytest.mark.parametrize(
    ("state", "effect", "moment"),
    [
        (State.RUNNING, "packs.journal", Moment.BEFORE),
        (State.FINISHED, "packs.recall", Moment.AFTER),
    ],
)
async def test_newer_journal_is_not_overwritten(state: State, effect: str, moment: Moment) -> None:
    """The pack waits, also if its crawl is finished."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, state=state), A)
    upgrade = partial(stage.world.newer.update, {pack.id: SAID})
    stage.restart(call_on(effect, upgrade, moment))
    assert await stage.deliver(pack) == []
    assert (stage.world.sent, stage.world.journals) == ([held(encode(pack))], {})


@pytest.mark.parametrize("effect", ["queue.hold", "queue.bury"])
async def test_message_returns_if_hold_or_dead_letter_fails(effect: str) -> None:
    stage = Stage(gate=fail_on(effect))
    since_ms = None if effect == "queue.hold" else 0
    assert await stage.deliver(NEWER, since_ms=since_ms) == [0]
    assert (stage.world.sent, stage.world.buried) == ([], [])


@pytest.mark.parametrize(
    ("text", "since_ms"),
    [("1795251600000", NOW_MS), ("", None), ("-1", None), ("1e9", None), ("9" * 17, None)],
)
def test_waiting_since_is_read_only_if_valid(text: str, since_ms: int | None) -> None:
    """Senders of seeds may set any attribute."""
    attributes = {"waiting_since": {"stringValue": text, "dataType": "Number"}}
    assert since_of(attributes) == since_ms
    assert since_of({"waiting_since": {"binaryValue": text}}) is None
    assert since_of({}) is None


def test_only_newer_failures_without_bugs_wait() -> None:
    newer = StoredNewer(SAID)
    assert newer_in(newer) == SAID
    assert newer_in(ExceptionGroup("", [Transient(""), ExceptionGroup("", [newer])])) == SAID
    assert newer_in(ExceptionGroup("", [newer, KeyError("")])) is None
    assert newer_in(ExceptionGroup("", [Transient(""), Permanent("")])) is None
    assert newer_in(Transient("")) is None
