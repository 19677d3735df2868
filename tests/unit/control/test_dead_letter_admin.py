"""Looking at dead letters, sending them back and throwing them away, on a world in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from orbweaver.control.dead_letter_admin import HOLD_S, Undertaker
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
    """A world with dead letters, and whoever looks after them."""

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
    def undertaker(self) -> Undertaker:
        return self.by(self.port)

    def by(self, port: MemoryDeadLetters) -> Undertaker:
        return Undertaker(
            dead_letters=port,
            queue=MemoryQueue(self.world, self.gate),
            crawls=MemoryCrawls(self.world, self.gate),
            packs=MemoryPacks(self.world, self.gate),
            clock=self.clock,
        )

    def bury(self, message: str | Pack | SeedsMessage | Loose, reason: str | None = "why") -> Mail:
        body = message if isinstance(message, str) else encode(message)
        mail = Mail(body=body, reason=reason, at_ms=NOW_MS)
        self.world.buried.append(mail)
        return mail

    def visible(self) -> int:
        return len(asyncio.run(self.port.take(LIMIT, 0)))

    def sent(self) -> list[tuple[object, bool]]:
        return [(decode(mail.body), mail.express) for mail in self.world.sent]


def pack(name: str = "p1", *, crawl: str = "shop-1", failures: int = 0, urls: int = 1) -> Pack:
    """Make a pack."""
    targets = tuple(Target(url=f"https://a.example/{n}", depth=1) for n in range(urls))
    return Pack(id=name, crawl=crawl, at_ms=NOW_MS, targets=targets, failures=failures)


@pytest.fixture
def yard() -> Graveyard:
    """Give a world with two crawls."""
    return Graveyard()


def test_looking_leaves_everything_as_it_was(yard: Graveyard) -> None:
    """All are found, and all can be seen again at once."""
    for number in range(95):
        yard.bury(f"{{{number}")
    found = asyncio.run(yard.undertaker.find(EVERYTHING, limit=LIMIT))
    assert len({case.letter.id for case in found.cases}) == 95
    assert not found.cut
    assert yard.visible() == 95


@pytest.mark.parametrize(("limit", "seen", "cut"), [(94, 94, True), (95, 95, False), (1, 1, True)])
def test_looking_is_bounded(yard: Graveyard, limit: int, seen: int, *, cut: bool) -> None:
    """No more than the limit are looked at, and it is said whether there are more."""
    for number in range(95):
        yard.bury(f"{{{number}")
    found = asyncio.run(yard.undertaker.find(EVERYTHING, limit=limit))
    assert (len(found.cases), found.cut) == (seen, cut)
    assert yard.visible() == 95


class Slow(MemoryDeadLetters):
    """Takes letters, and is interrupted before it can say which."""

    interrupted: asyncio.Task[object] | None = None

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        taken = await super().take(count_max, hold_s)
        if self.interrupted is not None:
            self.interrupted.cancel()
            await asyncio.sleep(0)
        return taken


def test_an_interrupted_look_puts_back_what_was_on_its_way(yard: Graveyard) -> None:
    """What was taken while somebody pressed Ctrl-C is put back, too."""
    yard.bury("{")
    port = Slow(yard.world, clock=yard.clock)

    async def interrupted() -> None:
        port.interrupted = asyncio.current_task()
        await yard.by(port).find(EVERYTHING, limit=LIMIT)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert yard.world.looks
    assert yard.visible() == 1


def test_what_cannot_be_put_back_comes_back_by_itself(yard: Graveyard) -> None:
    """A look is a look though putting back fails; the hold ends in time."""
    yard.bury("{")

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("dead_letters.put_back", Moment.BEFORE):
            raise Transient("throttled")

    yard.gate = gate
    found = asyncio.run(yard.undertaker.find(EVERYTHING, limit=LIMIT))
    assert len(found.cases) == 1
    assert yard.visible() == 0
    yard.clock.at_ms += HOLD_S * 1000
    assert yard.visible() == 1


def redrive(
    yard: Graveyard, selection: DeadLetterSelection = EVERYTHING, *, malformed: bool = False
) -> object:
    """Send letters back, fifty a second; (sent, skipped)."""
    going = yard.undertaker.redrive(selection, limit=LIMIT, rate_per_s=50, malformed=malformed)
    done = asyncio.run(going)
    return done.sent, dict(done.skipped)


def test_each_goes_back_on_its_lane(yard: Graveyard) -> None:
    """Packs and seeds of a crawl in a hurry go by express; packs have failed never."""
    seeds = SeedsMessage(id="s1", crawl="fast-1", at_ms=1, references=("https://a.example/",))
    for message in (pack(failures=4), pack("p2", crawl="fast-1"), seeds):
        yard.bury(message, "failed 4 times")
    yard.bury("https://a.example/", None)
    assert redrive(yard) == (4, {})
    sent = {it.id: (it, lane) for it, lane in yard.sent() if isinstance(it, Pack | SeedsMessage)}
    assert sent.pop("p1") == (pack(failures=0), False)
    assert sent.pop("p2") == (pack("p2", crawl="fast-1"), True)
    assert sent.pop("s1") == (seeds, True)
    ((loose, lane),) = sent.values()
    assert (loose.crawl, lane) == ("default", False)
    assert yard.world.buried == []


def test_what_would_come_straight_back_stays(yard: Graveyard) -> None:
    """No message, no URL, no crawl: left where it is, and counted."""
    for body in ("{", "nothing", pack(crawl="gone")):
        yard.bury(body)
    assert redrive(yard) == (0, {"malformed": 2, UNKNOWN_CRAWL: 1})
    assert yard.world.sent == []
    assert yard.visible() == 3


def test_letters_of_a_newer_version_stay(yard: Graveyard) -> None:
    """Theirs are messages, and crawls, that this version cannot read; asked for, bodies go back."""
    yard.bury('{"v":2,"crawl":"shop-1","at":1}')
    yard.bury(encode(SeedsMessage(id="s", crawl="fast-1", at_ms=1, references=("https://a/",))))
    yard.world.newer["fast-1"] = "stored by a newer version"
    assert redrive(yard) == (0, {NEWER_VERSION: 2})
    assert yard.visible() == 2
    assert redrive(yard, malformed=True) == (1, {NEWER_VERSION: 1})
    assert [mail.body for mail in yard.world.sent] == ['{"v":2,"crawl":"shop-1","at":1}']


def test_malformed_letters_are_sent_as_they_are_if_asked_for(yard: Graveyard) -> None:
    """A worker of another version may understand what this one does not."""
    yard.bury('{"v":2}')
    assert redrive(yard, malformed=True) == (1, {})
    assert [mail.body for mail in yard.world.sent] == ['{"v":2}']
    assert yard.world.buried == []


def test_only_what_is_meant_goes_back(yard: Graveyard) -> None:
    """The others are neither sent nor counted, and can be seen again."""
    yard.bury(pack("p1"), "failed 4 times")
    yard.bury(pack("p2"), "crashed its worker 3 times")
    assert redrive(yard, DeadLetterSelection(reason="crashed")) == (1, {})
    assert [sent.id for sent, _ in yard.sent() if isinstance(sent, Pack)] == ["p2"]
    assert yard.visible() == 1


def test_sending_back_is_paced(yard: Graveyard) -> None:
    """So many a second, and whoever waits is told how far it is."""
    for number in range(25):
        yard.bury(pack(f"p{number}"))
    told: list[int] = []
    asyncio.run(yard.undertaker.redrive(EVERYTHING, limit=LIMIT, rate_per_s=5, say=told.append))
    assert told == [5, 10, 15, 20, 25]
    assert yard.clock.at_ms - NOW_MS == 5_000


def test_a_letter_that_fails_again_is_not_sent_twice(yard: Graveyard) -> None:
    """What is buried anew while letters are sent back is for another run."""
    yard.bury('{"v":2}')

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("queue.send", Moment.AFTER):
            mail = yard.bury('{"v":2}')
            yard.world.buried[-1] = replace(mail, at_ms=NOW_MS + 1)

    yard.gate = gate
    assert redrive(yard, malformed=True) == (1, {NEW: 1})
    assert yard.visible() == 1


def test_nothing_is_lost_if_it_ends_in_between(yard: Graveyard) -> None:
    """A letter is sent before it is deleted: who dies in between leaves a copy with the same id."""
    yard.bury(pack())

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
def test_a_pack_without_a_chance_gets_one(yard: Graveyard, strikes: int, left: int) -> None:
    """Who was struck as often as may be is tried once more, and stays a suspect."""
    yard.world.strikes["p1"] = strikes
    yard.bury(pack(), None)
    yard.bury(pack("p2", urls=2), None)
    redrive(yard)
    assert yard.world.strikes == {"p1": left}


def purge(
    yard: Graveyard, selection: DeadLetterSelection, only: Sequence[str] | None = None
) -> object:
    """Throw letters away."""
    ids = None if only is None else frozenset(only)
    return asyncio.run(yard.undertaker.purge(selection, limit=LIMIT, only=ids))


def test_purge(yard: Graveyard) -> None:
    """What is meant is gone, what is not is there; nothing is sent."""
    kept = yard.bury(pack("p1"), "failed 4 times")
    yard.bury("{", "body is neither a URL nor valid JSON")
    assert purge(yard, DeadLetterSelection(reason="neither")) == (1, False)
    assert yard.world.buried == [kept]
    assert yard.world.sent == []
    assert purge(yard, DeadLetterSelection(host="a.example")) == (1, False)
    assert yard.world.buried == []


def test_purge_takes_only_what_was_counted(yard: Graveyard) -> None:
    """A letter that came after somebody was asked stays."""
    counted = yard.bury("{1")
    late = yard.bury("{2")
    assert purge(yard, EVERYTHING, [counted.id]) == (1, False)
    assert yard.world.buried == [late]
    assert yard.visible() == 1


def test_what_was_dropped_as_a_seed_never_becomes_more(yard: Graveyard) -> None:
    """A pack that came from the seed queue is no message ever after; seeds stay what they are."""
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
