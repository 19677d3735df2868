"""One pack, from where earlier deliveries left it as far as it goes.

    recall   a committed pack sends its outbox again and ends; a journaled one goes on from there
    admit    a paused crawl's pack is parked; a stopped crawl's URLs end unasked
    visit    robots, slots, requests, answers          (visit.py)
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
from orbweaver.core.journal import Draft, Journal, Letter, apart, outbox
from orbweaver.core.message import Pack, Seeds
from orbweaver.core.outcome import Outcome, Refusal
from orbweaver.core.seen import Seen
from orbweaver.core.target import Kind
from orbweaver.core.traps import Shares
from orbweaver.ingest import draft_of
from orbweaver.settle import claimer_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orbweaver.core.standing import Recalled
    from orbweaver.ports import Clock, Crawls, Frontier, Metrics, Packs
    from orbweaver.settings import Settings
    from orbweaver.settle import Settler
    from orbweaver.visit import Visitor

CRAWL_FRESH_MS = 5_000
# A single URL that was being processed when its worker died, this often, is to blame.
STRIKES_MAX = 3


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

    def __init__(
        self,
        *,
        packs: Packs,
        crawls: Crawls,
        frontier: Frontier,
        visitor: Visitor,
        settler: Settler,
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
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._seen = Seen()
        self._shares = Shares(settings.bounds)
        self._crawls_read: dict[str, tuple[int, Crawl | None]] = {}
        self._spent: set[tuple[str, int]] = set()

    async def advance(
        self, delivery: Delivery, message: Pack | Seeds, known: Recalled, deadline_ms: int
    ) -> Result:
        """Take a pack or seeds as far as it goes from where earlier deliveries left it."""
        crawl = await self._crawl(message.crawl)
        if crawl is None:
            return Hopeless(reason=f"unknown crawl {message.crawl[:60]!r}")
        if known.ledger is not None:
            if known.journal is None:
                return Done()  # both are past their retention, and so is every other copy
            await self._settler.resend(crawl, message.id, known.journal, known.ledger)
            more = outbox(message.id, crawl.id, known.journal, known.ledger)
            return Done(check=None if more else crawl.id)
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
            self._crawls_read.pop(crawl.id, None)
        if isinstance(message, Seeds):
            return await self._sift(crawl, message, draft_of(message, crawl), message.at_ms)
        if suspected and len(message.targets) > 1:
            return apart(message, self._clock.now_ms())
        if not suspected:
            return await self._visit(message, crawl, deadline_ms)
        strikes = await self._packs.strike(message.id)
        if strikes > STRIKES_MAX:
            # Whoever moves it back from the dead-letter queue gives it one more chance.
            await self._packs.absolve(message.id, STRIKES_MAX - 1)
            return Hopeless(reason=f"crashed its worker {STRIKES_MAX} times")
        try:
            return await self._visit(message, crawl, deadline_ms)
        finally:
            # A worker that dies does not come by here; whatever else happened was no crash.
            await self._packs.absolve(message.id, strikes - 1)

    async def _visit(self, pack: Pack, crawl: Crawl, deadline_ms: int) -> Journal | PutOff:
        draft = Draft(crawl.id)
        refused = admit_target(crawl, self._clock.now_ms())
        if refused is not None:
            for _ in pack.targets:
                draft.end_unrecorded(Outcome.SKIPPED, refused)
        else:
            visit = Visit(crawl=crawl, draft=draft, until_ms=self._until_ms(deadline_ms))
            await self._visitor.visit(visit, pack.targets)
        delay_s = draft.put_off(pack.targets)
        if delay_s is not None:
            # Nothing was asked: the same pack again, later, costs no write.
            return PutOff(letter=Letter(pack=pack, delay_s=delay_s), express=crawl.express)
        return await self._sift(crawl, pack, draft, self._clock.now_ms())

    async def _sift(self, crawl: Crawl, message: Pack | Seeds, draft: Draft, at_ms: int) -> Journal:
        """Close the draft without the links that are known to be claimed already."""
        order = message.targets if isinstance(message, Pack) else ()
        if (crawl.id, crawl.pages_max) in self._spent:
            dropped = draft.candidates
            draft.refuse(Refusal.BUDGET, len(dropped))
            draft.drop(dropped)
            return draft.journal(order, at_ms)
        # What says that it was changed may be free though it was claimed.
        modified = draft.modified
        draft.drop(self._seen.of(crawl.id, draft.candidates, at_ms) - modified.keys())
        if draft.candidates:
            claimer = claimer_of(crawl, message.id, at_ms)
            known = await self._frontier.known(claimer, draft.candidates, modified)
            self._remember(crawl, known.held)
            draft.drop(known.held)
            # What a person or a sitemap lists has an end.
            if order and all(target.kind is Kind.PAGE for target in order):
                trapped = self._shares.take(crawl.id, draft.candidates)
                draft.refuse(Refusal.PATTERN, len(trapped))
                draft.drop(trapped)
            draft.recall(known.lapsed)
        return draft.journal(order, at_ms)

    async def _settle(self, crawl: Crawl, pack_id: str, journal: Journal) -> Done:
        ledger = await self._settler.apply(crawl, pack_id, journal)
        if ledger is None:
            return Done()
        if ledger.surplus:
            self._spent.add((crawl.id, crawl.pages_max))
        else:
            self._remember(crawl, [target.url for target in journal.candidates])
        self._count(journal)
        more = ledger.children or journal.again
        return Done(check=None if more else crawl.id)

    def _until_ms(self, deadline_ms: int) -> int:
        """When the last request of this invocation may start."""
        settings = self._settings
        latest_ms = deadline_ms - round((settings.fetch_total_s + settings.apply_reserve_s) * 1000)
        return min(latest_ms, self._clock.now_ms() + round(settings.wait_s_max * 1000))

    async def _crawl(self, crawl_id: str) -> Crawl | None:
        now_ms = self._clock.now_ms()
        read_ms, crawl = self._crawls_read.get(crawl_id, (-CRAWL_FRESH_MS, None))
        if crawl is None or not 0 <= now_ms - read_ms < CRAWL_FRESH_MS:
            crawl = await self._crawls.get(crawl_id)
            self._crawls_read[crawl_id] = (now_ms, crawl)
        return crawl

    def _remember(self, crawl: Crawl, urls: Iterable[str]) -> None:
        if not crawl.continuous or crawl.window_s >= DAY_S:
            self._seen.add(crawl.id, urls, self._clock.now_ms())

    def _count(self, journal: Journal) -> None:
        for key, number in journal.tally.items():
            if "." not in key:
                self._metrics.add(key, number)


def suspect(pack: Pack, delivery: Delivery, known: Recalled) -> bool:
    """Whether a pack may have brought a worker down: one URL, here before, and no journal."""
    if known.journal is not None or known.ledger is not None:
        return False
    failed_before = delivery.receives > 1 or pack.failures > 0 or known.strikes > 0
    return len(pack.targets) == 1 and failed_before
