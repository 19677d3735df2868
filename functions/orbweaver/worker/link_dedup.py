"""Drop links that need no claim, and write a pack's journal (stored result) with the other links.

A claim makes a URL belong to a pack (message with up to 25 URLs). It costs a write even if it is
refused. A read costs a tenth of that, and a check in memory costs nothing, so links are looked up
first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.budget.reservation import Reservations
from orbweaver.frontier.crawler_traps import Shares
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.late_links import SURPLUS, Banded, band_at, late_links_max
from orbweaver.frontier.messages import Pack, SeedsMessage
from orbweaver.frontier.pack_result import FoundLinks, LinkPlan, PackResult
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import PACK_TARGETS_MAX, Prior, Target, TargetKind
from orbweaver.model.turns import in_turns, slices, turn_after
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import by_window
from orbweaver.model.value import value_class
from orbweaver.worker.apply_journal import Samples, claimer_of
from orbweaver.worker.kind_learning import KindLearning
from orbweaver.worker.seen_store import SeenStore, UrlState

if TYPE_CHECKING:
    from orbweaver.worker.ports import WorkerPorts

# Longest wait in seconds for the lock. It is held during a read and a write. A table that is slow
# for one pack must not block the pack's batch.
TURN_WAIT_S = 4.0
# Packs that waited for the same file request the lock within this number of event loop steps.
GATHER_TURNS = 4
# If links are usually new, only this number of links is looked up. If one of them is claimed, the
# worker looks up all links.
PROBES = 20
# Maximum number of links that a pack takes over from waiting packs: as many as one page may have.
GATHERED_MAX = 5_000
# Number of seeds whose hosts are compared, to find out whether a crawl has several hosts.
SEEDS_MAX = 100
# Maximum number of omitted links in a journal, at 20 to 30 bytes each.
LEFT_MAX = 1_000


@value_class
class _EndedPack:
    """A pack whose URLs have ended, and whose links are not deduplicated yet."""

    crawl: Crawl
    message: Pack | SeedsMessage
    result: PackResult
    at_ms: int

    @property
    def order(self) -> Sequence[Target]:
        """URLs of the pack. Deferred links were not requested yet."""
        return () if self.message.late else self.message.targets

    @property
    def band(self) -> int | None:
        """Band in which the links of a late pack have waited."""
        return band_at(self.message.place) if self.message.late else None

    @property
    def is_of_pages(self) -> bool:
        # Links from a person or a sitemap are finite. Links of pages may be endless (crawler
        # traps).
        return {target.kind for target in self.order} == {TargetKind.PAGE}

    @property
    def skipped_states(self) -> frozenset[UrlState]:
        """States of links that the pack need not claim."""
        if self.message.late:  # the claim of a late link may have been released meanwhile
            return frozenset()
        waiting = {UrlState.WAITING} if self.message.targets else set()
        return frozenset({UrlState.CLAIMED, *waiting})


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """Links of a pack that waits for the crawl's lock. The holder may take them over."""

    links: tuple[Target, ...]


class LinkDeduplicator:
    """Drops links that need no claim. One instance per container, so its memory is reused."""

    def __init__(
        self, ports: WorkerPorts, *, samples: Samples, kinds: KindLearning, seen: SeenStore
    ) -> None:
        self._packs = ports.packs
        self._frontier = ports.frontier
        self._backlog = ports.backlog
        # On AWS a surplus link costs writes, and an idle host costs nothing.
        self._shares_limit = ports.settings.function.waits_billed == "no"
        self._samples = samples
        self._kinds = kinds
        self._seen = seen
        self._shares = Shares(ports.settings.bounds)
        # Packs of one crawl hold this lock one after the other, from the check of `seen` to their
        # journal. So packs whose pages link to each other do not claim the same URLs at the same
        # time. A lock exists only while it is needed.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Offers of packs that wait for the crawl's lock. They contain links of pages.
        self._offers: defaultdict[str, list[_Offer]] = defaultdict(list)

    async def journal_result(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        result: PackResult,
        at_ms: int,
        reservations: Reservations,
    ) -> Journal:
        """Store a pack's result without links that need no claim. Return the stored result."""
        pack = _EndedPack(crawl=crawl, message=message, result=result, at_ms=at_ms)
        # Claims that other containers found count as seen here, so that each claim is checked once.
        await self._seen.note_host_claims(crawl, result.candidates)
        # Results of other workers decide which links are claimed now, and which are deferred.
        await self._kinds.before_sorting(crawl)
        async with self._turn(pack) as offers:
            own_links = result.candidates
            if offers is not None and (is_ordered(crawl) or not self._seen.is_spent(crawl)):
                await self._take_over(pack, offers)
            links, looked_up = await self._new_links(pack, look=offers is None)
            links = await self._without_traps(pack, links, own_links)
            plan = await self._sort_out(pack, links)
            plan = await self._pay(pack, plan, reservations, looked_up)
            plan = replace(plan, left=self._left_out(pack, plan))
            await turn_after(plan.left)
            own = result.journal(
                pack.order, at_ms, plan, reservations.reserved, reservations.delivery_number
            )
            journal = await self._packs.write_journal(message.id, own)
            await reservations.settle(own, journal)
            await turn_after(journal.candidates)
            self._seen.note_journal(crawl, journal)
            taken = len(message.targets) if message.late else 0
            if journal.late or taken:
                self._kinds.note_waiting(crawl, len(journal.late) - taken)
        await self._samples.keep(crawl, result.samples)
        return journal

    async def learn_from_journal(self, crawl: Crawl, journal: Journal, ledger: Ledger) -> None:
        """Remember which links of a stored result the pack has claimed, by its commit record."""
        others = await self._seen.note_commit(crawl, journal, ledger)
        if is_ordered(crawl):
            await self._kinds.note_unscheduled(crawl, others)

    @asynccontextmanager
    async def _turn(self, pack: _EndedPack) -> AsyncIterator[Sequence[_Offer] | None]:
        """Hold the crawl's lock, and yield the offers of packs that wait for it.

        Yields None if no link needs the lock or the wait was too long.
        """
        crawl, result = pack.crawl, pack.result
        states = self._seen.states(crawl, result.candidates).values()
        # Packs of a crawl with a dollar limit may wait for unused dollars, and must not block other
        # packs.
        if crawl.nanodollars_max is not None or (
            (pack.skipped_states or {UrlState.CLAIMED}).issuperset(states)
        ):
            yield None
            return
        turn = self._turns.setdefault(crawl.id, asyncio.Lock())
        offers = self._offers[crawl.id] if pack.is_of_pages and not crawl.continuous else []
        offer = _Offer(result.links)
        offers.append(offer)
        try:
            async with asyncio.timeout(TURN_WAIT_S):
                await turn.acquire()
        except TimeoutError:
            yield None
            return
        finally:
            offers.remove(offer)
        try:
            yield offers
        finally:
            turn.release()
            if not self._offers[crawl.id]:
                del self._offers[crawl.id]

    async def _take_over(self, pack: _EndedPack, offers: Sequence[_Offer]) -> None:
        """Add links of packs that wait for the lock. Those packs keep the links for now."""
        # One pack can fill its child packs better than many packs can.
        for _ in range(GATHER_TURNS):
            await asyncio.sleep(0)
        room = GATHERED_MAX
        for offer in offers:
            states = self._seen.states(pack.crawl, [target.url for target in offer.links])
            new = [
                target
                for target in offer.links
                if states[target.url] is not UrlState.CLAIMED
                and not pack.result.links_to(target.url)
            ]
            pack.result.add_links(FoundLinks(admitted=tuple(new[:room])))
            room = max(0, room - len(new))

    async def _new_links(self, pack: _EndedPack, *, look: bool) -> tuple[Sequence[Target], int]:
        """Return the links that are not known to be claimed, and the number of links looked up.

        `look` means that all links must be looked up, not only a sample.
        """
        crawl, result = pack.crawl, pack.result
        spent = self._seen.is_spent(crawl)
        if spent and not is_ordered(crawl):
            result.add_links(_beyond_limit(Refusal.BUDGET, result.links))
            return (), 0
        # A page that a sitemap lists as changed can be claimed again. The same holds for a URL
        # whose claim was just abandoned.
        modified = {
            target.url: target.modified_at_ms
            for target in result.links
            if target.modified_at_ms is not None
        }
        free = modified.keys() | result.reopened
        states = self._seen.states(crawl, result.candidates)
        links = [
            target
            for target in result.links
            if target.url in free or states[target.url] not in pack.skipped_states
        ]
        if spent and UrlState.WAITING in pack.skipped_states:
            return links, 0  # these links are deferred, and looked up when due
        unknown = [target for target in links if target.url not in result.reopened]
        probes = unknown
        if unknown and not (look or modified or self._seen.needs_lookup(crawl)):
            probes = unknown[:: -(-len(unknown) // PROBES)]
        held, lapsed = await self._look_up(pack, probes, modified)
        if (held or lapsed) and len(probes) < len(unknown):
            probed = {target.url for target in probes}
            rest = [target for target in unknown if target.url not in probed]
            more_held, more_lapsed = await self._look_up(pack, rest, modified)
            held, lapsed, probes = held | more_held, lapsed | more_lapsed, unknown
        new = [target for target in links if target.url not in held]
        return [
            replace(target, prior=lapsed[target.url]) if target.url in lapsed else target
            for target in new
        ], len(probes)

    async def _look_up(
        self, pack: _EndedPack, links: Sequence[Target], modified: Mapping[str, int]
    ) -> tuple[set[str], dict[str, Prior]]:
        """Return claimed links, and the expired claims of other links, by the table."""
        held: set[str] = set()
        lapsed: dict[str, Prior] = {}
        for window_s, group in by_window(links):
            claimer = claimer_of(pack.crawl, pack.message.id, pack.at_ms, window_s)
            urls = [target.url for target in group]
            known = await self._frontier.known(claimer, urls, modified)
            self._seen.note_lookup(pack.crawl, urls, known, window_s)
            held |= known.held
            lapsed |= known.lapsed
        return held, lapsed

    async def _without_traps(
        self, pack: _EndedPack, links: Sequence[Target], own: Sequence[str]
    ) -> Sequence[Target]:
        """Refuse links of crawler traps: too many similar URLs. Count only the pack's own links."""
        if not pack.is_of_pages:
            return links
        trapped: set[str] = set()
        async for part in slices([target.url for target in links]):
            trapped |= self._shares.take(pack.crawl.id, part)
        own_trapped = tuple(url for url in own if url in trapped)
        refused = ((Refusal.PATTERN, len(own_trapped), own_trapped),)
        pack.result.add_links(FoundLinks(refused=refused))
        return [target for target in links if target.url not in trapped]

    async def _sort_out(self, pack: _EndedPack, links: Sequence[Target]) -> LinkPlan:
        """Defer links that promise little, and all links if the page limit is reached."""
        crawl, message, band = pack.crawl, pack.message, pack.band
        if not is_ordered(crawl):
            return LinkPlan(now=links)
        # Links of late packs, and links that an earlier run left out, can be deferred. URLs that a
        # person listed cannot.
        judged = isinstance(message, Pack) or message.past is not None
        prompt, late = list(links), list[Banded]()
        surplus_band = band or SURPLUS
        surplus: Sequence[Target] = ()
        if band is None and self._seen.is_spent(crawl):
            if judged:
                learner = self._kinds.learner_for(crawl)
                prompt, late = await in_turns(learner.sort_links(prompt))
            prompt, surplus = [], prompt
        elif judged:
            prompt, late = await self._kinds.sort_links(crawl, prompt, band)
            if crawl.delay_ms and band is None and self._shares_limit:
                prompt, surplus = await self._split_by_host(crawl, prompt)
        # These links are not claimed, so workers must not count them as scheduled.
        await self._kinds.note_unscheduled(crawl, [target.url for target in surplus])
        late = [*((surplus_band, target) for target in surplus), *late]
        if crawl.delay_ms:  # group links by host, so that most late packs serve one host
            late.sort(key=lambda one: (one[0], host_of(one[1].url)))
        if crawl.delay_ms and band is not None:  # start with the host that has most links
            links_of = Counter(host_of(target.url) for target in prompt)
            prompt.sort(key=lambda target: -links_of[host_of(target.url)])
        if band is None:
            room = max(0, late_links_max(crawl) - self._kinds.waiting(crawl))
            late, beyond = late[:room], [target for _, target in late[room:]]
            pack.result.add_links(_beyond_limit(Refusal.BUDGET, beyond))
        return LinkPlan(now=prompt, late=late, surplus_band=surplus_band)

    async def _split_by_host(
        self, crawl: Crawl, links: Sequence[Target]
    ) -> tuple[list[Target], list[Target]]:
        """Split links into those to claim now, and surplus links of hosts with waiting URLs.

        A host that has a waiting pack gets no link, and another host gets one pack. Otherwise the
        hosts whose pages come first would use up the page limit, and the crawl would end with a few
        hosts, each with many URLs.
        """
        hosts: defaultdict[str, list[Target]] = defaultdict(list)
        for target in links:
            hosts[host_of(target.url)].append(target)
        if len({*map(host_of, crawl.seeds[:SEEDS_MAX]), *hosts}) == 1:
            return list(links), []
        surplus: list[Target] = []
        for host, targets in hosts.items():
            # The first one is the leased pack.
            has_waiting = len(await self._backlog.first_places(crawl.id, host, 2)) > 1
            surplus += targets if has_waiting else targets[PACK_TARGETS_MAX:]
        left = {target.url for target in surplus}
        return [target for target in links if target.url not in left], surplus

    async def _pay(
        self, pack: _EndedPack, plan: LinkPlan, reservations: Reservations, looked_up: int
    ) -> LinkPlan:
        """Count the cost of a pack, and leave out links that no dollars are left for."""
        paid = await reservations.pay(
            urls=len(pack.order),
            again=pack.result.returning,
            looked_up=looked_up,
            links=len(plan.now),
        )
        beyond = _beyond_limit(Refusal.DOLLARS, plan.now[paid.links :])
        pack.result.add_links(FoundLinks(counts=paid.counts), beyond)
        plan = replace(plan, now=plan.now[: paid.links])
        await turn_after(plan.now)
        return plan

    def _left_out(self, pack: _EndedPack, plan: LinkPlan) -> Sequence[Target]:
        """Return up to `LEFT_MAX` omitted links, each link once per container."""
        crawl, left = pack.crawl, pack.result.left
        # Only a later run uses these links. A crawl without an end has no later run. Links that an
        # earlier run left out are in that run's journals.
        if not left or crawl.continuous or pack.message.past is not None:
            return ()
        claiming = {target.url for target in plan.now}
        new = [one for one in self._seen.unlisted(crawl, left) if one.url not in claiming]
        if len(new) > LEFT_MAX:
            pack.result.add_links(FoundLinks(counts={"left_beyond": len(new) - LEFT_MAX}))
        return new[:LEFT_MAX]


def _beyond_limit(refusal: Refusal, links: Sequence[Target]) -> FoundLinks:
    """Leave links to a later run, because a limit of this run is reached."""
    urls = tuple(target.url for target in links)
    return FoundLinks(refused=((refusal, len(urls), urls),), left=tuple(links))
