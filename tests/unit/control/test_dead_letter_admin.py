"""Inspecting, redriving and purging dead letters, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from orbweaver.control.dead_letter_admin import HOLD_S, DeadLetterAdmin
from orbweaver.frontier.dead_letters import (
    EVERYTHING,
    NEW,
    NEWER_VERSION,
    UNKNOWN_CRAWL,
    DeadLetter,
    DeadLetterSelection,
)
from orbweaver.frontier.messages import Loose, MessageSource, Pack, SeedsMessage, decode, encode
from orbweaver.model.crawl import default_crawl
from orbweaver.model.errors import Transient
from orbweaver.model.target import Target
from tests.memory import (
    Mail,
    ManualClock,
    MemoryCrawls,
    MemoryDeadLetters,
    MemoryPacks,
    MemoryQueue,
    Moment,
    World,
)
from tests.memory.world import Gate, open_gate

NOW_MS = 1_795_251_600_000
LIMIT = 1_000


@dataclass
class Graveyard:
    """Dead letters in memory, and the component that manages them."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    gate: Gate = open_gate

    def __post_init__(self) -> None:
        crawl = default_crawl(NOW_MS)
        for name, express in (("shop-1", False), ("fast-1", True)):
            self.world.crawls[name] = replace(crawl, id=name, name=name, express=express)

    @property
    def port(self) -> MemoryDeadLetters:
        return MemoryDeadLetters(self.world, self.gate, clock=self.clock)

    @property
    def undertaker(self) -> DeadLetterAdmin:
        return self.by(self.port)

    def by(self, port: MemoryDeadLetters) -> DeadLetterAdmin:
        return DeadLetterAdmin(
            dead_letters=port,
            queue=MemoryQueue(self.world, self.gate),
            crawls=MemoryCrawls(self.world, self.gate),
            packs=MemoryPacks(self.world, self.gate),
            clock=self.clock,
        )

    def dead_letter(
        self, message: str | Pack | SeedsMessage | Loose, reason: str | None = "why"
    ) -> Mail:
        body = message if isinstance(message, str) else encode(message)
        mail = Mail(body=body, reason=reason, at_ms=NOW_MS)
        self.world.buried.append(mail)
        return mail

    def visible(self) -> int:
        return len(asyncio.run(self.port.take(LIMIT, 0)))

    def sent(self) -> list[tuple[object, bool]]:
        return [(decode(mail.body), mail.express) for mail in self.world.sent]


def pack(name: str = "p1", *, crawl: str = "shop-1", failures: int = 0, urls: int = 1) -> Pack:
    targets = tuple(Target(url=f"https://a.example/{n}", depth=1) for n in range(urls))
    return Pack(id=name, crawl=crawl, at_ms=NOW_MS, targets=targets, failures=failures)


@pytest.fixture
def yard() -> Graveyard:
    return Graveyard()


def test_look_makes_letters_visible_again_at_once(yard: Graveyard) -> None:
    for number in range(95):
        yard.dead_letter(f"{{{number}")
    found = asyncio.run(yard.undertaker.find(EVERYTHING, limit=LIMIT))
    assert len({case.letter.id for case in found.cases}) == 95
    assert not found.cut
    assert yard.visible() == 95


@pytest.mark.parametrize(("limit", "seen", "cut"), [(94, 94, True), (95, 95, False), (1, 1, True)])
def test_look_returns_limit_and_reports_more(
    yard: Graveyard, limit: int, seen: int, *, cut: bool
) -> None:
    for number in range(95):
        yard.dead_letter(f"{{{number}")
    found = asyncio.run(yard.undertaker.find(EVERYTHING, limit=limit))
    assert (len(found.cases), found.cut) == (seen, cut)
    assert yard.visible() == 95


class Slow(MemoryDeadLetters):
    """A queue that is interrupted after it takes messages and before it returns them."""

    interrupted: asyncio.Task[object] | None = None

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        taken = await super().take(count_max, hold_s)
        if self.interrupted is not None:
            self.interrupted.cancel()
            await asyncio.sleep(0)
        return taken


def test_look_interrupted_puts_back_taken_letters(yard: Graveyard) -> None:
    yard.dead_letter("{")
    port = Slow(yard.world, clock=yard.clock)

    async def interrupted() -> None:
        port.interrupted = asyncio.current_task()
        await yard.by(port).find(EVERYTHING, limit=LIMIT)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert yard.world.looks
    assert yard.visible() == 1


def test_look_succeeds_if_putting_back_fails(yard: Graveyard) -> None:
    yard.dead_letter("{")

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("dead_letters.put_back", Moment.BEFORE):
            raise Transient("throttled")

    yard.gate = gate
    assert len(asyncio.run(yard.undertaker.find(EVERYTHING, limit=LIMIT)).cases) == 1
    assert yard.visible() == 0
    yard.clock.at_ms += HOLD_S * 1000
    assert yard.visible() == 1


def redrive(
    yard: Graveyard, selection: DeadLetterSelection = EVERYTHING, *, malformed: bool = False
) -> object:
    """Redrive letters at fifty a second. Returns (sent, skipped)."""
    going = yard.undertaker.redrive(selection, limit=LIMIT, rate_per_s=50, malformed=malformed)
    done = asyncio.run(going)
    return done.sent, dict(done.skipped)


def test_redrive_uses_lane_of_crawl_and_resets_failures(yard: Graveyard) -> None:
    seeds = SeedsMessage(id="s1", crawl="fast-1", at_ms=1, references=("https://a.example/",))
    for message in (pack(failures=4), pack("p2", crawl="fast-1"), seeds):
        yard.dead_letter(message, "failed 4 times")
    yard.dead_letter("https://a.example/", None)
    assert redrive(yard) == (4, {})
    sent = {it.id: (it, lane) for it, lane in yard.sent() if isinstance(it, Pack | SeedsMessage)}
    assert sent.pop("p1") == (pack(failures=0), False)
    assert sent.pop("p2") == (pack("p2", crawl="fast-1"), True)
    assert sent.pop("s1") == (seeds, True)
    ((loose, lane),) = sent.values()
    assert (loose.crawl, lane) == ("default", False)
    assert yard.world.buried == []


def test_redrive_skips_letters_sure_to_fail_again(yard: Graveyard) -> None:
    for body in ("{", "nothing", pack(crawl="gone")):
        yard.dead_letter(body)
    assert redrive(yard) == (0, {"malformed": 2, UNKNOWN_CRAWL: 1})
    assert yard.world.sent == []
    assert yard.visible() == 3


def test_redrive_skips_letters_of_newer_version(yard: Graveyard) -> None:
    yard.dead_letter('{"v":2,"crawl":"shop-1","at":1}')
    yard.dead_letter(
        encode(SeedsMessage(id="s", crawl="fast-1", at_ms=1, references=("https://a/",)))
    )
    yard.world.newer["fast-1"] = "stored by a newer version"
    assert redrive(yard) == (0, {NEWER_VERSION: 2})
    assert yard.visible() == 2
    assert redrive(yard, malformed=True) == (1, {NEWER_VERSION: 1})
    assert [mail.body for mail in yard.world.sent] == ['{"v":2,"crawl":"shop-1","at":1}']


def test_redrive_sends_malformed_bodies_unchanged_if_asked(yard: Graveyard) -> None:
    yard.dead_letter('{"v":2}')
    assert redrive(yard, malformed=True) == (1, {})
    assert [mail.body for mail in yard.world.sent] == ['{"v":2}']
    assert yard.world.buried == []


def test_redrive_sends_only_selected_letters(yard: Graveyard) -> None:
    yard.dead_letter(pack("p1"), "failed 4 times")
    yard.dead_letter(pack("p2"), "crashed its worker 3 times")
    assert redrive(yard, DeadLetterSelection(reason="crashed")) == (1, {})
    assert [sent.id for sent, _ in yard.sent() if isinstance(sent, Pack)] == ["p2"]
    assert yard.visible() == 1


def test_redrive_is_paced_and_reports_progress(yard: Graveyard) -> None:
    for number in range(25):
        yard.dead_letter(pack(f"p{number}"))
    told: list[int] = []
    asyncio.run(yard.undertaker.redrive(EVERYTHING, limit=LIMIT, rate_per_s=5, say=told.append))
    assert told == [5, 10, 15, 20, 25]
    assert yard.clock.at_ms - NOW_MS == 5_000


def test_redrive_skips_letters_failed_since_start(yard: Graveyard) -> None:
    yard.dead_letter('{"v":2}')

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("queue.send", Moment.AFTER):
            mail = yard.dead_letter('{"v":2}')
            yard.world.buried[-1] = replace(mail, at_ms=NOW_MS + 1)

    yard.gate = gate
    assert redrive(yard, malformed=True) == (1, {NEW: 1})
    assert yard.visible() == 1


def test_redrive_crash_leaves_copy_with_same_id(yard: Graveyard) -> None:
    yard.dead_letter(pack())

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("dead_letters.delete", Moment.BEFORE):
            raise Transient("lost")

    yard.gate = gate
    with pytest.raises(Transient):
        redrive(yard)
    yard.gate = open_gate
    assert yard.visible() == 1
    assert redrive(yard) == (1, {})
    assert yard.sent() == [(pack(), False), (pack(), False)]


@pytest.mark.parametrize(("strikes", "left"), [(3, 2), (2, 2), (1, 1)])
def test_redrive_of_pack_with_most_strikes_leaves_one_attempt(
    yard: Graveyard, strikes: int, left: int
) -> None:
    yard.world.strikes["p1"] = strikes
    yard.dead_letter(pack(), None)
    yard.dead_letter(pack("p2", urls=2), None)
    redrive(yard)
    assert yard.world.strikes == {"p1": left}


def purge(
    yard: Graveyard, selection: DeadLetterSelection, only: Sequence[str] | None = None
) -> object:
    ids = None if only is None else frozenset(only)
    return asyncio.run(yard.undertaker.purge(selection, limit=LIMIT, only=ids))


def test_purge_deletes_only_selected_letters(yard: Graveyard) -> None:
    kept = yard.dead_letter(pack("p1"), "failed 4 times")
    yard.dead_letter("{", "body is neither a URL nor valid JSON")
    assert purge(yard, DeadLetterSelection(reason="neither")) == (1, False)
    assert (yard.world.buried, yard.world.sent) == ([kept], [])
    assert purge(yard, DeadLetterSelection(host="a.example")) == (1, False)
    assert yard.world.buried == []


def test_purge_deletes_only_counted_letters(yard: Graveyard) -> None:
    counted = yard.dead_letter("{1")
    late = yard.dead_letter("{2")
    assert purge(yard, EVERYTHING, [counted.id]) == (1, False)
    assert yard.world.buried == [late]
    assert yard.visible() == 1


def test_purge_tombstone_of_seed_queue_pack_stays_seed(yard: Graveyard) -> None:
    seeds = Loose(crawl="shop-1", references=("https://b.example/",))
    for body in (encode(pack()), encode(seeds)):
        mail = Mail(body=body, reason="why", at_ms=NOW_MS, source=MessageSource.SEEDS)
        yard.world.buried.append(mail)
    done = asyncio.run(yard.undertaker.redrive(EVERYTHING, limit=LIMIT, rate_per_s=100))
    assert (done.sent, dict(done.skipped)) == (1, {"malformed": 1})
    ((message, _),) = yard.sent()
    assert isinstance(message, SeedsMessage)
    assert message.dropped
    asyncio.run(yard.undertaker.redrive(EVERYTHING, limit=LIMIT, rate_per_s=100, malformed=True))
    assert [mail.source for mail in yard.world.sent] == [MessageSource.PACKS, MessageSource.SEEDS]
