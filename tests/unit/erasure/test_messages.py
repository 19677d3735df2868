"""Erasure in messages and journals: all others are kept unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.erasure import messages as erasure_messages
from orbweaver.erasure.messages import HOLD_S, MessageEraser
from orbweaver.erasure.ports import JournalTrace
from orbweaver.erasure.scope import ErasureScope
from orbweaver.frontier.backlog import BacklogState, WaitingPack
from orbweaver.frontier.dead_letters import RECEIVED_TOO_OFTEN
from orbweaver.frontier.journal import Journal, Ledger, Requeue
from orbweaver.frontier.messages import (
    Close,
    Loose,
    MessageSource,
    Pack,
    Past,
    SeedsMessage,
    child_id,
    decode,
    encode,
)
from orbweaver.model.crawl import State
from orbweaver.model.target import Target
from tests.memory import Claim, Mail
from tests.unit.forgetting import OTHER, PATH, URL, stores_of, traces_of
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, Stage, outcomes, pack_of, urls_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

WHOLE = ErasureScope(urls=frozenset({URL}))
PAUSED = replace(CRAWL, state=State.PAUSED)
CHILD = child_id(ROOT, 1)
SEEDS = SeedsMessage(id="5eed", crawl=CRAWL.id, at_ms=NOW_MS, references=(URL, OTHER))
NEWER = '{"v":2,"crawl":"site-1","at":1,"work":"compressed"}'


@pytest.fixture
def stage() -> Stage:
    return Stage()


def message_eraser_of(stage: Stage, scope: ErasureScope = WHOLE) -> MessageEraser:
    return MessageEraser(stores_of(stage), scope)


def visible(stage: Stage, mails: Sequence[Mail]) -> bool:
    looks = stage.world.looks
    return all(looks.get(mail.id, (0, 0))[1] <= stage.clock.now_ms() for mail in mails)


# --- queues -------------------------------------------------------------------------------------


@pytest.mark.parametrize("express", [False, True])
@pytest.mark.parametrize("known", [False, True])
async def test_other_messages_are_returned_unchanged(
    stage: Stage, *, known: bool, express: bool
) -> None:
    if known:
        stage.world.crawls[CRAWL.id] = replace(CRAWL, express=express)
    messages: list[Pack | SeedsMessage | Close | Loose] = [
        replace(pack_of(OTHER), failures=2, requeues=3),
        SeedsMessage(id="5eed", crawl=CRAWL.id, at_ms=1, references=(OTHER,), planned=True),
        Close(crawl=CRAWL.id, at_ms=5),
        Loose(crawl=CRAWL.id, references=(OTHER, "no url")),
    ]
    bodies = [encode(message) for message in messages]
    before = [Mail(body=body) for body in bodies]
    stage.world.sent += before
    message_eraser = message_eraser_of(stage)
    assert not await message_eraser.erase()
    after = {mail.body: mail for mail in stage.world.sent}
    assert len(stage.world.sent) == len(bodies)
    assert after.keys() == set(bodies)
    assert not {mail.id for mail in before} & {mail.id for mail in stage.world.sent}
    pack, seeds, close, loose = (after[body] for body in bodies)
    assert (pack.express, seeds.express, close.express) == (*[known and express] * 2, True)
    assert close.delay_s == 0
    assert loose.source is MessageSource.SEEDS
    assert visible(stage, stage.world.sent)
    assert (dict(message_eraser.done), message_eraser.left) == ({}, set())


@pytest.mark.parametrize("body", ['{"no": "message"}', NEWER], ids=["malformed", "newer"])
async def test_unreadable_message_is_returned_to_queue(stage: Stage, body: str) -> None:
    mails = [Mail(body=body), Mail(body=encode(pack_of(OTHER)))]
    stage.world.sent += mails
    scope = ErasureScope(runs=frozenset({"another-1"}))
    assert not await message_eraser_of(stage, scope).erase()
    assert mails[0].id in {mail.id for mail in stage.world.sent}
    assert len(stage.world.sent) == 2
    assert visible(stage, stage.world.sent)


@pytest.mark.parametrize("source", MessageSource)
async def test_malformed_message_naming_url_is_erased(stage: Stage, source: MessageSource) -> None:
    bodies = [f'{{"strange": "{URL}"}}', f"[{URL}]", f'{{"strange": "{URL}0"}}']
    stage.world.sent += [Mail(body=body, source=source) for body in bodies]
    stage.world.buried += [Mail(body=body, source=source, reason="malformed") for body in bodies]
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert dict(message_eraser.done) == {"messages": 2, "dead_letters": 2}
    assert [mail.body for mail in stage.world.sent] == bodies[2:]
    assert [mail.body for mail in stage.world.buried] == bodies[2:]


async def test_rest_of_message_is_sent(stage: Stage) -> None:
    mail = Mail(
        body=encode(Loose(crawl="site-1", references=(URL, OTHER))), source=MessageSource.SEEDS
    )
    stage.world.sent.append(mail)
    stage.world.sent.append(Mail(body=encode(Loose(crawl="site-1", references=(URL,)))))
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert not await message_eraser.erase()
    assert [mail.body for mail in stage.world.sent] == [
        encode(Loose(crawl="site-1", references=(OTHER,)))
    ]
    assert [mail.source for mail in stage.world.sent] == [MessageSource.SEEDS]
    assert message_eraser.done["messages"] == 2


@pytest.mark.parametrize(("reason", "said"), [("crashed", "crashed"), (None, RECEIVED_TOO_OFTEN)])
async def test_rest_of_dead_letter_stays_dead_letter(
    stage: Stage, reason: str | None, said: str
) -> None:
    other = Mail(body=encode(pack_of(OTHER)), reason="other")
    held = Mail(
        body=encode(Loose(crawl="site-1", references=(URL, OTHER))),
        reason=reason,
        source=MessageSource.SEEDS,
    )
    stage.world.buried += [held, other]
    message_eraser = message_eraser_of(stage)
    assert [letter.id for letter in await message_eraser.dead_letters()] == [held.id]
    assert visible(stage, stage.world.buried)
    assert [mail.id for mail in stage.world.buried] == [held.id, other.id]
    assert await message_eraser.erase()
    assert message_eraser.done["dead_letters"] == 1
    kept, left = stage.world.buried
    assert kept.id == other.id
    assert left.body == encode(Loose(crawl="site-1", references=(OTHER,)))
    assert (left.reason, left.source) == (said, MessageSource.SEEDS)
    assert visible(stage, stage.world.buried)
    assert stage.world.sent == []


async def test_dead_letters_are_visible_after_fault(stage: Stage) -> None:
    stage.world.buried += [Mail(body=encode(pack_of(URL))), Mail(body=encode(pack_of(OTHER)))]
    message_eraser = message_eraser_of(stage)
    stage.world.newer[CRAWL.id] = "stored by a newer version"
    stage.world.crawls[CRAWL.id] = CRAWL
    with pytest.raises(Exception, match="newer"):
        await message_eraser.erase()
    assert len(stage.world.buried) == 2
    assert visible(stage, stage.world.buried)


@pytest.mark.parametrize(("count", "left"), [(2, False), (3, True)])
async def test_queue_exceeding_memory_is_reported(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, count: int, *, left: bool
) -> None:
    monkeypatch.setattr(erasure_messages, "MESSAGES_MAX", 3)
    monkeypatch.setattr(erasure_messages, "TAKEN_MAX", 2)
    packs = [pack_of(URL, pack=child_id(ROOT, place)) for place in range(count)]
    stage.world.sent += [Mail(body=encode(pack)) for pack in packs]
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert stage.world.sent == []
    assert any("the queue has more than 3 messages" in said for said in message_eraser.left) is left


async def test_messages_in_flight_are_counted_as_hidden(stage: Stage) -> None:
    mail = Mail(body=encode(pack_of(URL)))
    stage.world.sent.append(mail)
    stage.world.looks[mail.id] = (1, NOW_MS + 1)
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.hidden() == 1
    assert not await message_eraser.erase()
    assert stage.world.sent == [mail]
    stage.clock.at_ms += 1
    assert await message_eraser.hidden() == 0


async def test_taken_messages_are_hidden_from_workers(stage: Stage) -> None:
    stage.world.sent.append(Mail(body=encode(pack_of(URL))))
    taken = await message_eraser_of(stage)._take(stores_of(stage).lanes[0], "the queue")
    assert [letter.body for letter in taken] == [stage.world.sent[0].body]
    assert stage.world.looks[stage.world.sent[0].id][1] == NOW_MS + HOLD_S * 1000


# --- unfinished crawls --------------------------------------------------------------------------


async def test_messages_of_running_crawl_are_kept_and_reported(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    body = encode(pack_of(URL))
    stage.world.sent += [Mail(body=body), Mail(body=encode(SEEDS))]
    buried = Mail(body=body, reason="crashed")
    stage.world.buried.append(buried)
    stage.world.parked[CRAWL.id, ROOT] = body
    message_eraser = message_eraser_of(stage)
    assert not await message_eraser.erase()
    assert sorted(mail.body for mail in stage.world.sent) == sorted([body, encode(SEEDS)])
    assert visible(stage, stage.world.sent)
    assert stage.world.buried == [buried]
    assert visible(stage, [buried])
    assert stage.world.parked == {(CRAWL.id, ROOT): body}
    (said,) = message_eraser.left
    assert CRAWL.id in said
    assert f"is {State.RUNNING}" in said


async def test_messages_of_cancelled_crawl_are_erased(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = replace(CRAWL, state=State.STOPPING)
    stage.world.sent.append(Mail(body=encode(SEEDS)))
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert [mail.body for mail in stage.world.sent] == [encode(replace(SEEDS, references=(OTHER,)))]
    assert (stage.world.commits, stage.world.journals, message_eraser.left) == ([], {}, set())


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("others", [False, True])
async def test_seeds_of_paused_crawl_are_taken_in(
    stage: Stage, *, planned: bool, others: bool
) -> None:
    references = (URL, OTHER) if others else (URL,)
    stage.world.crawls[CRAWL.id] = PAUSED
    stage.world.sent.append(
        Mail(body=encode(replace(SEEDS, references=references, planned=planned)))
    )
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert traces_of(stage.world, PATH) == []
    assert {url for _, url in stage.world.claims} == ({OTHER} if others else set())
    assert urls_of(stage.sent()) == ({OTHER} if others else set())
    assert stage.counts().get("claimed", 0) == int(others)
    assert stage.counts().get("seeds", 0) == int(planned)


async def test_pack_of_paused_crawl_is_ended(stage: Stage) -> None:
    pack = stage.begin(PAUSED, URL, OTHER)
    led = Target(url=f"{SITE}/led", depth=1, referrer=URL)
    pack = replace(pack, targets=(*pack.targets, led))
    stage.world.claims[CRAWL.name, URL] = Claim(
        url=URL, pack="p", at_ms=1, expires_s=NOW_MS, crawl=CRAWL.id
    )
    stage.world.sent.append(Mail(body=encode(pack)))
    assert await message_eraser_of(stage).erase()
    assert (CRAWL.name, URL) not in {
        key for key, claim in stage.world.claims.items() if not claim.unasked
    }
    (mail,) = stage.world.sent
    assert mail.delay_s >= 1
    (left,) = stage.sent()
    assert isinstance(left, Pack)
    assert [(one.url, one.referrer) for one in left.targets] == [
        (OTHER, None),
        (led.url, None),
    ]
    assert stage.counts()["skipped.forgotten"] == 1
    assert stage.world.ledgers[pack.id].sent


async def test_pack_with_journal_ends_as_journal_records(stage: Stage) -> None:
    pack = stage.begin(PAUSED, URL)
    journal = Journal(at_ms=7, candidates=(Target(url=OTHER, depth=1),), crawl=CRAWL.id)
    stage.world.journals[pack.id] = journal
    stage.world.sent.append(Mail(body=encode(pack)))
    assert await message_eraser_of(stage).erase()
    assert stage.world.journals[pack.id] == journal
    assert stage.world.claims[CRAWL.name, OTHER].pack == pack.id
    assert "skipped" not in stage.counts()


@pytest.mark.parametrize("sent", [False, True])
async def test_committed_pack_sends_children_once(stage: Stage, *, sent: bool) -> None:
    pack = stage.begin(PAUSED, URL)
    stage.world.journals[pack.id] = Journal(
        at_ms=7, candidates=(Target(url=OTHER, depth=1),), crawl=CRAWL.id
    )
    stage.world.ledgers[pack.id] = Ledger(pack=pack.id, children=(0,), sent=sent)
    stage.world.sent.append(Mail(body=encode(pack)))
    assert await message_eraser_of(stage).erase()
    assert len(stage.sent()) == (0 if sent else 1)
    assert stage.world.ledgers[pack.id].sent
    assert stage.world.commits == []


async def test_ledger_without_journal_ends_message(stage: Stage) -> None:
    pack = stage.begin(PAUSED, URL)
    stage.world.ledgers[pack.id] = Ledger(pack=pack.id, children=(), sent=True)
    stage.world.parked[CRAWL.id, pack.id] = encode(pack)
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert (stage.world.parked, stage.world.sent, stage.world.commits) == ({}, [], [])
    assert stage.world.journals == {}
    assert dict(message_eraser.done) == {"parked": 1}


# --- backlogs ---------------------------------------------------------------------------------

FIRST, SECOND, THIRD = (
    replace(pack_of(*urls, pack=child_id(ROOT, number)), place=f"1.{number}")
    for number, urls in enumerate(((URL, OTHER), (URL, f"{SITE}/b"), (f"{SITE}/c",)))
)


def have_wait(stage: Stage, out: Pack | None, *packs: Pack) -> None:
    """Put packs into the backlog of their host. `in_flight` is already in flight."""
    for pack in packs:
        waiting = WaitingPack(place=pack.place, body=encode(pack))
        stage.world.backlog[CRAWL.id, SITE][pack.place] = waiting
    if out is not None:
        stage.world.out[CRAWL.id, SITE] = BacklogState(edits=1, in_flight=out.place, holder="p0")


def standing(stage: Stage) -> dict[str, str]:
    """Return the holder of each place in the backlog, empty if it has none."""
    line = stage.world.out[CRAWL.id, SITE]
    places = stage.world.backlog[CRAWL.id, SITE]
    return {place: line.holder if place == line.in_flight else "" for place in places}


async def test_waiting_pack_of_host_is_ended(stage: Stage) -> None:
    stage.begin(PAUSED, URL, f"{SITE}/b", f"{SITE}/c")
    have_wait(stage, THIRD, SECOND, THIRD)
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert dict(message_eraser.done) == {"waiting": 1, "journals": 1}
    assert (standing(stage), urls_of(stage.sent())) == ({THIRD.place: "p0"}, {f"{SITE}/b"})
    assert stage.counts()["skipped.forgotten"] == 1
    assert not await message_eraser_of(stage).erase()


@pytest.mark.parametrize("sent", [False, True])
async def test_next_waiting_pack_of_host_is_sent(stage: Stage, *, sent: bool) -> None:
    stage.begin(PAUSED, URL, OTHER, f"{SITE}/b", f"{SITE}/c")
    have_wait(stage, FIRST, FIRST, SECOND, THIRD)
    if sent:
        stage.world.sent.append(Mail(body=encode(FIRST)))
    passes = [await message_eraser_of(stage).erase() for _ in range(4)]
    assert (passes[0], passes[-1]) == (True, False)
    assert standing(stage) == {THIRD.place: SECOND.id}
    assert urls_of(stage.sent()) == {OTHER, f"{SITE}/b", f"{SITE}/c"}
    assert traces_of(stage.world, PATH) == []
    assert stage.counts()["skipped.forgotten"] == 2


async def test_other_urls_of_waiting_pack_get_new_places(stage: Stage) -> None:
    stage.begin(replace(PAUSED, delay_ms=1_000), URL, OTHER, f"{SITE}/b", f"{SITE}/c")
    have_wait(stage, FIRST, FIRST, SECOND, THIRD)
    stage.world.sent.append(Mail(body=encode(FIRST)))
    passes = [await message_eraser_of(stage).erase() for _ in range(4)]
    assert (passes[0], passes[-1]) == (True, False)
    waiting = [decode(one.body) for one in stage.world.backlog[CRAWL.id, SITE].values()]
    packs = [message for message in waiting if isinstance(message, Pack)]
    assert urls_of(packs) == {OTHER, f"{SITE}/b", f"{SITE}/c"}
    (out,) = [place for place, taker in standing(stage).items() if taker]
    assert {message.place for message in stage.sent() if isinstance(message, Pack)} == {out}
    assert traces_of(stage.world, PATH) == []


async def test_waiting_packs_of_running_crawl_are_kept(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    have_wait(stage, FIRST, FIRST, SECOND)
    message_eraser = message_eraser_of(stage)
    assert not await message_eraser.erase()
    assert standing(stage) == {FIRST.place: "p0", SECOND.place: ""}
    (said,) = message_eraser.left
    assert f"{CRAWL.id} is {State.RUNNING}" in said


async def test_waiting_packs_of_ended_crawl_are_erased(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = replace(CRAWL, state=State.STOPPING)
    have_wait(stage, FIRST, FIRST, SECOND, THIRD)
    stage.world.sent.append(Mail(body=encode(FIRST)))
    assert await message_eraser_of(stage).erase()
    assert standing(stage) == {THIRD.place: ""}
    assert [urls_of([message]) for message in stage.sent()] == [{OTHER}, {f"{SITE}/b"}]
    assert (stage.world.commits, stage.world.journals) == ([], {})


# --- journals -----------------------------------------------------------------------------------

CHILDREN = Journal(at_ms=1, candidates=(Target(url=URL, depth=1),), crawl=CRAWL.id)
RECORDED = Journal(at_ms=1, unrecorded=(), unasked=(URL,), crawl=CRAWL.id)
LEFT = Journal(at_ms=1, left=(Target(url=URL, depth=1),), crawl=CRAWL.id)
AGAIN = Journal(
    at_ms=1, returning=(Requeue(target=Target(url=URL, depth=0), delay_s=9),), crawl=CRAWL.id
)
PAST = replace(LEFT, past=(Past(run="site-0"),))


@pytest.mark.parametrize(
    ("journal", "ledger", "goes"),
    [
        (CHILDREN, None, False),
        (CHILDREN, Ledger(pack=ROOT, children=(0,)), False),
        (CHILDREN, Ledger(pack=ROOT, children=(0,), sent=True), True),
        (CHILDREN, Ledger(pack=ROOT, children=(), surplus=True), False),
        (CHILDREN, Ledger(pack=ROOT, children=(), surplus=True, sent=True), True),
        (CHILDREN, Ledger(pack=ROOT, children=()), True),
        (AGAIN, Ledger(pack=ROOT, children=()), False),
        (RECORDED, Ledger(pack=ROOT, children=()), False),
        (RECORDED, Ledger(pack=ROOT, children=(), sent=True), True),
        (PAST, Ledger(pack=ROOT, children=()), False),
        (LEFT, Ledger(pack=ROOT, children=()), True),
        (LEFT, None, False),
    ],
)
async def test_journal_is_kept_while_worker_needs_it(
    stage: Stage, journal: Journal, ledger: Ledger | None, *, goes: bool
) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    stage.world.journals[ROOT] = journal
    if ledger is not None:
        stage.world.ledgers[ROOT] = ledger
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase() is goes
    assert (ROOT not in stage.world.journals) is goes
    assert message_eraser.done.get("journals", 0) == int(goes)
    assert bool(message_eraser.left) is not goes
    assert stage.world.ledgers == ({} if ledger is None else {ROOT: ledger})
    assert stage.world.sent == []


@pytest.mark.parametrize("ended", [False, True])
async def test_journal_of_ended_or_missing_crawl_is_erased(stage: Stage, *, ended: bool) -> None:
    if ended:
        stage.world.crawls[CRAWL.id] = replace(CRAWL, state=State.FINISHED)
    other = replace(CHILDREN, candidates=(Target(url=OTHER, depth=1),))
    stage.world.journals |= {ROOT: CHILDREN, CHILD: other}
    message_eraser = message_eraser_of(stage)
    assert await message_eraser.erase()
    assert stage.world.journals == {CHILD: other}
    assert (stage.world.ledgers, message_eraser.left) == ({}, set())


async def test_uncommitted_journal_of_earlier_version_is_kept(stage: Stage) -> None:
    """The journal names no crawl, so it may belong to any running crawl."""
    stage.world.crawls[CRAWL.id] = CRAWL
    stage.world.journals[ROOT] = replace(CHILDREN, crawl="")
    message_eraser = message_eraser_of(stage)
    assert not await message_eraser.erase()
    assert ROOT in stage.world.journals
    assert len(message_eraser.left) == 1


async def test_journal_of_paused_crawl_is_committed_first(stage: Stage) -> None:
    pack = stage.begin(PAUSED, OTHER)
    stage.world.journals[pack.id] = replace(CHILDREN, counts={"fetched": 1, "fetched.ok": 1})
    assert await message_eraser_of(stage).erase()
    assert pack.id not in stage.world.journals
    assert stage.world.ledgers[pack.id].sent
    assert stage.counts() == {"claimed": 2, "fetched": 1, "fetched.ok": 1}
    assert traces_of(stage.world, PATH) == [f"claims {(CRAWL.name, URL)}", "sent 0"]
    assert await message_eraser_of(stage).erase()
    assert stage.world.sent == []
    assert stage.counts()["skipped.forgotten"] == 1


async def test_committed_pack_of_paused_crawl_is_not_counted_again(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = PAUSED
    stage.world.journals[ROOT] = CHILDREN
    stage.world.ledgers[ROOT] = Ledger(pack=ROOT, children=(0,))
    assert await message_eraser_of(stage).erase()
    assert stage.world.commits == []
    assert len(stage.world.sent) == 1
    assert stage.world.ledgers[ROOT].sent
    assert ROOT not in stage.world.journals


@pytest.mark.parametrize(
    ("journal", "counted"),
    [(None, 0), (CHILDREN, 1), (replace(CHILDREN, candidates=()), None)],
    ids=["never finished", "holds it", "holds none"],
)
async def test_orphaned_journals_are_erased(
    stage: Stage, journal: Journal | None, counted: int | None
) -> None:
    stage.world.crawls[CRAWL.id] = CRAWL
    trace = JournalTrace(key="digest", pack=ROOT, journal=journal, is_orphan=True)
    stores = stores_of(stage)
    removed: list[JournalTrace] = []

    class Traces(type(stores.traces)):  # type: ignore[misc]
        async def journals(self) -> AsyncIterator[JournalTrace]:
            yield trace

        async def remove_journals(self, journals: Sequence[JournalTrace]) -> None:
            removed.extend(journals)

    message_eraser = MessageEraser(replace(stores, traces=Traces(stage.world)), WHOLE)
    await message_eraser.erase()
    assert removed == ([] if counted is None else [trace])
    assert message_eraser.done.get("journals", 0) == (counted or 0)
    assert message_eraser.left == set()
    assert outcomes(stage.world) == {}
