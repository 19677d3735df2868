"""One pack, from where earlier deliveries left it as far as it goes.

    recall   a committed pack sends its outbox again and ends; a journaled one goes on from there
    admit    a paused crawl's pack is parked; a stopped crawl's URLs end unasked
    visit    robots, slots, requests, answers          (visit.py)
    keep     bodies and texts, in one file a batch     (segments.py)
    journal  what it came to, written once
    settle   claim, store, commit, send                (settle.py)

A pack that comes a second time without a journal is cut into single URLs; a single URL that comes
a second time is a suspect, and is struck before it is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.conclude import Visit
from orbweaver.core.admission import admit_target
from orbweaver.core.crawl import DAY_S, Crawl, State
from orbweaver.core.draft import Draft
from orbweaver.core.journal import Journal, Letter, apart, outbox
from orbweaver.core.message import Pack, Seeds
from orbweaver.core.outcome import Refusal
from orbweaver.core.rules import by_window
from orbweaver.core.seen import Seen
from orbweaver.core.target import Kind
from orbweaver.core.traps import Shares
from orbweaver.ingest import draft_of
from orbweaver.settle import claimer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from orbweaver.core.standing import Recalled
    from orbweaver.core.target import Prior
    from orbweaver.ports import Clock, Frontier, Metrics, Packs
    from orbweaver.recent import RecentCrawls
    from orbweaver.segments import Segments
    from orbweaver.settings import Settings
    from orbweaver.settle import Settler
    from orbweaver.treasury import Purses, Treasury
    from orbweaver.visit import Visitor

# A single URL that was being processed when its worker died, this often, is to blame.
STRIKES_MAX = 3
# Every copy of a message is put off by itself, and may be copied again: a journal brings them down
# to one.
PUT_OFFS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message as the queue handed it over; `receives` counts this time too."""

    id: str
    body: str
    receives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A message is dealt with; `check` names the crawl that may be finished now."""

    check: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """Nothing was done for a pack yet: it is to be sent again as it is."""

    letter: Letter
    express: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopeless:
    """A message can never succeed."""

    reason: str


Result: TypeAlias = Done | PutOff | Hopeless


class Advancer:
    """Takes packs along; one a container, its caches outlive an invocation."""

    def __init__(  # noqa: PLR0913 - it stands in the middle of the path
        self,
        *,
        packs: Packs,
        crawls: RecentCrawls,
        frontier: Frontier,
        visitor: Visitor,
        settler: Settler,
        segments: Segments,
        treasury: Treasury,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
    ) -> None:
        """Take the ports, and the actors of the middle and the end of the path."""
        self._packs = packs
        self._crawls = crawls
        self._frontier = frontier
        self._visitor = visitor
        self._settler = settler
        self._segments = segments
        self._treasury = treasury
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._seen = Seen()
        self._shares = Shares(settings.bounds)
        self._spent: set[tuple[str, int]] = set()

    async def advance(
        self, delivery: Delivery, message: Pack | Seeds, known: Recalled, deadline_ms: int
    ) -> Result:
        """Take a pack or seeds as far as it goes from where earlier deliveries left it."""
        crawl = await self._crawls.get(message.crawl)
        if crawl is None:
            return Hopeless(reason=f"unknown crawl {message.crawl[:60]!r}")
        if known.ledger is not None or crawl.state is State.FINISHED:
            return await self._let_go(crawl, message, known)
        failures = delivery.receives - 1
        if isinstance(message, Pack):
            failures += message.failures
        if failures + 1 >= self._settings.receive_max:
            return Hopeless(reason=f"failed {failures} times")
        journal = known.journal
        if journal is None:
            suspected = failures > 0 or known.strikes > 0
            if isinstance(message, Pack):
                message = replace(message, failures=failures)
            came = await self._come_to(delivery, message, crawl, suspected, deadline_ms)
            if not isinstance(came, Journal):
                return came
            journal = await self._packs.write_journal(message.id, came)
        return await self._settle(crawl, message.id, journal)

    async def _let_go(self, crawl: Crawl, message: Pack | Seeds, known: Recalled) -> Done:
        """Finish with a message that is committed, or that came after its crawl's end."""
        if known.ledger is None:
            await self._settler.drop(crawl, message, known.journal)
            return Done(check=crawl.id)
        if known.journal is None:
            return Done()  # both are past their retention, and so is every other copy
        await self._settler.resend(crawl, message.id, known.journal, known.ledger)
        more = outbox(message.id, crawl.id, known.journal, known.ledger)
        return Done(check=None if more else crawl.id)

    async def _come_to(
        self,
        delivery: Delivery,
        message: Pack | Seeds,
        crawl: Crawl,
        suspected: bool,
        deadline_ms: int,
    ) -> Journal | Result:
        """Do the part of the work that happens once; `Done` if the message went elsewhere."""
        if crawl.state is State.PAUSED:
            if await self._packs.park(crawl.id, delivery.body, message.id):
                return Done()
            self._crawls.forget(crawl.id)
        if isinstance(message, Seeds):
            draft, purses = draft_of(message, crawl), self._treasury.open(crawl, message.id)
            return await self._sift(crawl, message, draft, message.at_ms, purses)
        if suspected and len(message.targets) > 1:
            return apart(await self._treasury.marked(crawl, message), self._clock.now_ms())
        if not suspected:
            return await self._visit(message, crawl, deadline_ms)
        strikes = await self._packs.strike(message.id)
        if strikes > STRIKES_MAX:
            # Whoever moves it back from the dead-letter queue gives it one more chance.
            await self._packs.absolve(message.id, STRIKES_MAX - 1)
            return Hopeless(reason=f"crashed its worker {STRIKES_MAX} times")
        try:
            # Put off, it stays a suspect; how often it was one when a worker died, strikes say.
            return await self._visit(replace(message, failures=1), crawl, deadline_ms)
        finally:
            # A worker that dies does not come by here; whatever else happened was no crash.
            await self._packs.absolve(message.id, strikes - 1)

    async def _visit(self, pack: Pack, crawl: Crawl, deadline_ms: int) -> Journal | PutOff:
        draft = Draft(crawl.id, crawl.hosts_counted)
        purses = self._treasury.open(crawl, pack.id)
        refused = admit_target(crawl, self._clock.now_ms())
        if refused is not None:
            for target in pack.targets:
                draft.leave(target, refused)
        else:
            until_ms = self._until_ms(deadline_ms)
            visit = Visit(crawl=crawl, draft=draft, until_ms=until_ms, purses=purses)
            with self._segments.taking_part(crawl.id) as part:
                with purses.attended():
                    await self._visitor.visit(visit, pack.targets)
                draft.locate(await part.put(draft.kept))
            purses.files = part.files
        delay_s = draft.put_off(pack.targets)
        # A commit gives back what is reserved; a suspect's strikes are those of its id.
        again = pack.put_offs < PUT_OFFS_MAX or pack.failures
        if delay_s is not None and not purses.reserved and again:
            # Nothing was asked: the same pack again, later, costs no write.
            pack = replace(pack, put_offs=pack.put_offs + 1)
            return PutOff(letter=Letter(pack=pack, delay_s=delay_s), express=crawl.express)
        return await self._sift(crawl, pack, draft, self._clock.now_ms(), purses)

    async def _sift(
        self, crawl: Crawl, message: Pack | Seeds, draft: Draft, at_ms: int, purses: Purses
    ) -> Journal:
        """Close the draft without the links that are known to be claimed already."""
        order = message.targets if isinstance(message, Pack) else ()
        looked_up = await self._drop_claimed(crawl, message, draft, at_ms)
        await purses.pay(draft, len(order), looked_up)
        await self._settler.samples.keep(crawl, draft.samples)
        return draft.journal(order, at_ms, purses.reserved)

    async def _drop_claimed(
        self, crawl: Crawl, message: Pack | Seeds, draft: Draft, at_ms: int
    ) -> int:
        """Forget links that are known to be claimed; how many had to be looked up."""
        order = message.targets if isinstance(message, Pack) else ()
        if (crawl.id, crawl.pages_max) in self._spent:
            dropped = draft.candidates
            draft.refuse(Refusal.BUDGET, len(dropped), dropped)
            draft.drop(dropped)
            return 0
        # What says that it was changed may be free though it was claimed.
        modified = draft.modified
        draft.drop(self._seen.of(crawl.id, draft.candidates, at_ms) - modified.keys())
        looked_up = len(draft.candidates)
        if looked_up:
            lapsed: dict[str, Prior] = {}
            for window_s, group in by_window(draft.links):
                claimer = claimer_of(crawl, message.id, at_ms, window_s)
                urls = [target.url for target in group]
                known = await self._frontier.known(claimer, urls, modified)
                self._remember(crawl, known.held, window_s)
                draft.drop(known.held)
                lapsed |= known.lapsed
            # What a person or a sitemap lists has an end.
            if order and all(target.kind is Kind.PAGE for target in order):
                trapped = self._shares.take(crawl.id, draft.candidates)
                draft.refuse(Refusal.PATTERN, len(trapped), trapped)
                draft.drop(trapped)
            draft.recall(lapsed)
        return looked_up

    async def _settle(self, crawl: Crawl, pack_id: str, journal: Journal) -> Done:
        ledger = await self._settler.apply(crawl, pack_id, journal)
        if ledger is None:
            return Done()
        if ledger.surplus:
            # A lowered budget may have left one shard nothing, and another one much.
            if crawl.shards == 1 or not crawl.quotas:
                self._spent.add((crawl.id, crawl.pages_max))
        else:
            for window_s, group in by_window(journal.candidates):
                self._remember(crawl, [target.url for target in group], window_s)
        self._count(journal)
        more = ledger.children or journal.again
        return Done(check=None if more else crawl.id)

    def _until_ms(self, deadline_ms: int) -> int:
        """When the last request of this invocation may start."""
        settings = self._settings
        latest_ms = deadline_ms - round((settings.fetch_total_s + settings.apply_reserve_s) * 1000)
        return min(latest_ms, self._clock.now_ms() + round(settings.wait_s_max * 1000))

    def _remember(self, crawl: Crawl, urls: Iterable[str], window_s: int | None) -> None:
        window_s = crawl.window_s if window_s is None else window_s
        if not crawl.continuous or window_s >= DAY_S:
            self._seen.add(crawl.id, urls, self._clock.now_ms())

    def _count(self, journal: Journal) -> None:
        for key, number in counted(journal.tally):
            self._metrics.add(key, number)


def counted(tally: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Name the metrics of a tally: of reasons and hosts there are none, of items those two."""
    found, invalid = tally.get("items", 0), tally.get("items_invalid", 0)
    for key, number in tally.items():
        if "." not in key and not key.startswith("items"):
            yield key, number
    if found:
        yield from (("ItemsValid", found - invalid), ("ItemsInvalid", invalid))


def suspect(pack: Pack, delivery: Delivery, known: Recalled) -> bool:
    """Whether a pack may have brought a worker down: one URL, here before, and no journal."""
    if known.journal is not None or known.ledger is not None:
        return False
    failed_before = delivery.receives > 1 or pack.failures > 0 or known.strikes > 0
    return len(pack.targets) == 1 and failed_before
