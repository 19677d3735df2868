"""What only a newer version can read waits on the queue, untouched and uncounted."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from orbweaver.frontier.messages import Close, Loose, encode, seeds_of
from orbweaver.model.crawl import State
from orbweaver.model.errors import Permanent, StoredNewer, Transient
from orbweaver.model.settings import Settings
from orbweaver.worker.batch import newer_in
from orbweaver.worker.pack import since_of
from tests.memory import Mail, Moment
from tests.unit.stage import CRAWL, NOW_MS, Stage, fail_on, html, noting, outcomes, pack_of
from tests.unit.worker.test_batch import A, packs

SAID = "stored by a newer version: a journal of version 3, but this version reads up to 2"
REMEDY = "; deploy that version or newer, then redrive"
# As a later release might write a pack, in an order of its own.
NEWER = '{"at":5, "v":2,"work":[["u"]],"crawl":"site-1"}'
QUEUES = Settings(crawl_queue_url="https://sqs/1/crawl", express_queue_url="https://sqs/1/express")
SEEDS, CLOSE = (
    seeds_of("s", CRAWL.id, [A], at_ms=NOW_MS, planned=True)[0],
    Close(crawl=CRAWL.id, at_ms=1),
)


def held(
    body: str, crawl: str = CRAWL.id, *, express: bool = False, since_ms: int = NOW_MS
) -> Mail:
    """Say how a body waits."""
    return Mail(body=body, delay_s=900, group=crawl, express=express, since_ms=since_ms)


async def test_a_message_of_a_newer_version_waits_and_its_neighbours_are_done() -> None:
    """Nine of ten are done; the tenth goes back byte for byte, the last time it could have come."""
    stage = Stage()
    stage.begin(CRAWL)
    stage.count(CRAWL, claimed=9)
    assert await stage.deliver(*packs(4), NEWER, *packs(9)[4:], receives=4) == []
    assert len(outcomes(stage.world)) == 9
    assert held(NEWER) in stage.world.sent
    assert stage.world.buried == []
    totals = stage.metrics.totals
    assert (totals["MessagesNewer"], totals["MessagesFailed"]) == (1, 0)


async def test_what_a_newer_version_left_of_a_pack_waits_unstruck() -> None:
    """A pack of one URL, at its last delivery but one, is no suspect for it."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    pack = stage.begin(CRAWL, A)
    stage.world.newer[pack.id] = SAID
    assert await stage.deliver(pack, pack_of(A, pack="9" * 32), receives=4) == []
    assert stage.world.sent[-1] == held(encode(pack))
    assert stage.world.strikes.get(pack.id) is None
    assert effects.count("packs.strike") == 1  # the other one's
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
async def test_messages_of_a_crawl_of_a_newer_version_wait(body: str, express: bool) -> None:
    """Whatever is to be done with them, it is not done; each waits on its own lane."""
    stage = Stage(settings=QUEUES)
    stage.begin(replace(CRAWL, state=State.STOPPING))
    stage.world.newer[CRAWL.id] = SAID
    queue = "express" if express else "crawl"
    assert await stage.deliver(body, receives=4, queue=queue) == []
    assert stage.world.sent == [held(body, express=express)]
    assert (stage.web.urls, stage.world.buried) == ([], [])


async def test_loose_references_from_the_seed_queue_wait_among_packs() -> None:
    """They mean the same there; what is no reference is refused as ever."""
    stage = Stage(settings=QUEUES)
    stage.begin(CRAWL)
    stage.world.newer[CRAWL.id] = SAID
    loose = encode(Loose(crawl=CRAWL.id, references=(A,)))
    assert await stage.deliver(loose, NEWER, queue="seeds") == []
    assert stage.world.sent == [held(loose)]
    assert [mail.body for mail in stage.world.buried] == [NEWER]


async def test_the_wait_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted from when it began, however often it was sent; the reason says what to do."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.world.newer[pack.id] = SAID
    wait_ms = stage.settings.newer_wait_s * 1000
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


async def test_once_it_is_deployed_it_goes_on() -> None:
    """What waited for days is done as if nothing had been, and counted once."""
    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html())
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
async def test_a_crawl_that_is_upgraded_meanwhile_waits_for_its_end(effect: str) -> None:
    """The pack is done; what is left to see, whether the crawl is finished, waits."""

    async def upgrade(passing: str, moment: Moment) -> None:
        if (passing, moment) == (effect, Moment.AFTER):
            stage.world.newer[CRAWL.id] = SAID

    stage = Stage(gate=upgrade)
    pack = stage.begin(CRAWL, A)
    stage.web.put(A, html())
    assert await stage.deliver(pack) == []
    assert stage.world.sent == [held(encode(pack))]
    stage.restart()
    stage.world.newer.clear()
    await stage.drain()
    assert stage.counts()["fetched"] == 1
    assert stage.world.crawls[CRAWL.id].state is State.FINISHED


async def test_a_journal_that_a_newer_version_wrote_first_stands() -> None:
    """A delivery that comes upon it when it writes its own leaves the pack to that version."""

    async def upgrade(passing: str, moment: Moment) -> None:
        if (passing, moment) == ("packs.journal", Moment.BEFORE):
            stage.world.newer[pack.id] = SAID

    stage = Stage(gate=upgrade)
    pack = stage.begin(CRAWL, A)
    assert await stage.deliver(pack) == []
    assert (stage.world.sent, stage.world.journals) == ([held(encode(pack))], {})


async def test_a_pack_of_a_finished_crawl_is_not_let_go_unread() -> None:
    """What it holds is only known once its journal is read."""
    recalls = 0

    async def upgrade(passing: str, moment: Moment) -> None:
        nonlocal recalls
        recalls += (passing, moment) == ("packs.recall", Moment.AFTER)
        if recalls:
            stage.world.newer[pack.id] = SAID

    stage = Stage(gate=upgrade)
    pack = stage.begin(replace(CRAWL, state=State.FINISHED), A)
    assert await stage.deliver(pack) == []
    assert stage.world.sent == [held(encode(pack))]


@pytest.mark.parametrize("effect", ["queue.hold", "queue.bury"])
async def test_what_cannot_be_held_comes_back(effect: str) -> None:
    """A queue that does not take it has the delivery fail, and that alone."""
    stage = Stage(gate=fail_on(effect))
    since_ms = None if effect == "queue.hold" else 0
    assert await stage.deliver(NEWER, since_ms=since_ms) == [0]
    assert (stage.world.sent, stage.world.buried) == ([], [])


@pytest.mark.parametrize(
    ("text", "since_ms"),
    [("1795251600000", NOW_MS), ("", None), ("-1", None), ("1e9", None), ("9" * 17, None)],
)
def test_since_when_a_message_waits_is_read_if_it_is_a_time(
    text: str, since_ms: int | None
) -> None:
    """Whoever may send seeds may write anything there."""
    attributes = {"waiting_since": {"stringValue": text, "dataType": "Number"}}
    assert since_of(attributes) == since_ms
    assert since_of({"waiting_since": {"binaryValue": text}}) is None
    assert since_of({}) is None


def test_only_a_failure_for_a_newer_version_alone_waits() -> None:
    """Beside a mistake of ours it is a failure; beside a port's trouble it waits."""
    newer = StoredNewer(SAID)
    assert newer_in(newer) == SAID
    assert newer_in(ExceptionGroup("", [Transient(""), ExceptionGroup("", [newer])])) == SAID
    assert newer_in(ExceptionGroup("", [newer, KeyError("")])) is None
    assert newer_in(ExceptionGroup("", [Transient(""), Permanent("")])) is None
    assert newer_in(Transient("")) is None
