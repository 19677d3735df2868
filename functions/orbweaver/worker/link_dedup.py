"""Drop links that need no claim, and write a pack's journal (stored result) with the other links.

A claim makes a URL belong to a pack (message with up to 25 URLs). It costs a write even if it is
refused. A read costs a tenth of that, and a check in memory costs nothing, so links are looked up
first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from orbweaver.budget.reservation import Reservations
from orbweaver.frontier.crawler_traps import Shares
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.late_links import SURPLUS, Banded, band_at, late_links_max
from orbweaver.frontier.messages import Pack, SeedsMessage
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import PACK_TARGETS_MAX, Prior, Target, TargetKind
from orbweaver.model.turns import in_turns, slices, turn_after
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import by_window
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


class LinkDeduplicator:
    """Drops links that need no claim. One instance per container, so its memory is reused."""

    def __init__(
        self, ports: WorkerPorts, *, samples: Samples, kinds: KindLearning, seen: SeenStore
    ) -> None:
        self._packs = ports.packs
        self._frontier = ports.frontier
        self._backlog = ports.backlog
        # On AWS a surplus link costs writes, and an idle host costs nothing.
        self._shares_limit = ports.settings.waits_billed == "no"
        self._samples = samples
        self._kinds = kinds
        self._seen = seen
        self._shares = Shares(ports.settings.bounds)
        # Packs of one crawl hold this lock one after the other, from the check of `seen` to their
        # journal. So packs whose pages link to each other do not claim the same URLs at the same
        # time. A lock exists only while it is needed.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Results of packs that wait for the crawl's lock. They contain links of pages.
        self._waiting: defaultdict[str, list[PackResult]] = defaultdict(list)

    async def journal_result(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        result: PackResult,
        at_ms: int,
        reservations: Reservations,
    ) -> Journal:
        """Store a pack's result without links that need no claim. Return the stored result."""
        order = message.targets if isinstance(message, Pack) and not message.late else ()
        # Links from a person or a sitemap are finite. Links of pages may be endless (crawler
        # traps).
        of_pages = bool(order) and all(target.kind is TargetKind.PAGE for target in order)
        waiting = self._waiting[crawl.id] if of_pages and not crawl.continuous else []
        # Claims that other containers found count as seen here, so that each claim is checked once.
        await self._seen.note_host_claims(crawl, result.candidates)
        # Results of other workers decide which links are claimed now, and which are deferred.
        await self._kinds.before_sorting(crawl)
        async with self._turn(crawl, message, result, waiting) as alone:
            own_links = frozenset(result.candidates)
            if alone and (not self._seen.is_spent(crawl) or is_ordered(crawl)):
                await self._take_over(crawl, result, waiting)
            looked_up = await self._drop_claimed(crawl, message, result, at_ms, look=not alone)
            if of_pages:
                trapped: set[str] = set()
                async for part in slices(result.candidates):
                    trapped |= self._shares.take(crawl.id, part)
                result.drop(trapped)
                result.refuse(Refusal.PATTERN, len(trapped & own_links), trapped & own_links)
            if is_ordered(crawl):
                await self._sort_out(crawl, message, result)
            await reservations.pay(result, len(order), looked_up)
            await turn_after(result.candidates)
            self._keep_left(crawl, message, result)
            await turn_after(result.left)
            own = result.journal(order, at_ms, reservations.reserved, reservations.delivery_number)
            journal = await self._packs.write_journal(message.id, own)
            await reservations.settle(own, journal)
            await turn_after(journal.candidates)
            self._seen.note_journal(crawl, journal)
            taken = len(message.targets) if isinstance(message, Pack) and message.late else 0
            if journal.late or taken:
                self._kinds.note_waiting(crawl, len(journal.late) - taken)
        await self._samples.keep(crawl, result.samples)
        return journal

    async def _sort_out(
        self, crawl: Crawl, message: Pack | SeedsMessage, result: PackResult
    ) -> None:
        """Defer links that promise little, and all links if the page limit is reached."""
        # Links of late packs, and links that an earlier run left out, can be deferred. URLs that a
        # person listed cannot.
        band = band_at(message.place) if isinstance(message, Pack) and message.late else None
        prompt, late = list(result.links), list[Banded]()
        learner, spent = self._kinds.learner_for(crawl), self._seen.is_spent(crawl)
        surplus_band = band or SURPLUS
        judged = isinstance(message, Pack) or message.past is not None
        surplus: Sequence[Target] = ()
        if band is None and spent:
            if judged:
                prompt, late = await in_turns(learner.sort_links(prompt))
            prompt, surplus = [], prompt
        elif judged:
            prompt, late = await self._kinds.sort_links(crawl, prompt, band)
            if crawl.delay_ms and band is None and self._shares_limit:
                prompt, surplus = await self._split_by_host(crawl, prompt)
        # These links are not claimed, so workers must not count them as in flight.
        await self._kinds.note_not_in_flight(crawl, [target.url for target in surplus])
        late = [*((surplus_band, target) for target in surplus), *late]
        if crawl.delay_ms:  # group links by host, so that most late packs serve one host
            late.sort(key=lambda one: (one[0], host_of(one[1].url)))
        if crawl.delay_ms and band is not None:  # start with the host that has most links
            links_of = Counter(host_of(target.url) for target in prompt)
            prompt.sort(key=lambda target: -links_of[host_of(target.url)])
        room = late_links_max(crawl) - self._kinds.waiting(crawl)
        if band is None and len(late) > room:
            beyond = [target for _, target in late[max(0, room) :]]
            late = late[: max(0, room)]
            result.refuse(Refusal.BUDGET, len(beyond), [target.url for target in beyond])
            for target in beyond:
                result.leave_out(target)
        result.put_in_order(prompt)
        result.put_late(late, surplus_band)

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
            # The first pack is in flight.
            has_waiting = len(await self._backlog.first_places(crawl.id, host, 2)) > 1
            surplus += targets if has_waiting else targets[PACK_TARGETS_MAX:]
        left = {target.url for target in surplus}
        return [target for target in links if target.url not in left], surplus

    def _keep_left(self, crawl: Crawl, message: Pack | SeedsMessage, result: PackResult) -> None:
        """Keep up to `LEFT_MAX` omitted links in the result, each link once per container."""
        left = result.left
        if not left:
            return
        # Only a later run uses these links. A crawl without an end has no later run. Links that an
        # earlier run left out are in that run's journals.
        if crawl.continuous or (isinstance(message, SeedsMessage) and message.past is not None):
            result.keep_left(())
            return
        claiming = frozenset(result.candidates)
        new = [one for one in self._seen.unlisted(crawl, left) if one.url not in claiming]
        if len(new) > LEFT_MAX:
            result.count("left_beyond", len(new) - LEFT_MAX)
        result.keep_left(new[:LEFT_MAX])

    async def learn_from_journal(self, crawl: Crawl, journal: Journal, ledger: Ledger) -> None:
        """Remember which links of a stored result the pack has claimed, by its commit record."""
        others = await self._seen.note_commit(crawl, journal, ledger)
        if is_ordered(crawl):
            await self._kinds.note_not_in_flight(crawl, others)

    @asynccontextmanager
    async def _turn(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        result: PackResult,
        waiting: list[PackResult],
    ) -> AsyncIterator[bool]:
        """Hold the crawl's lock. Yields False if no link needs it or the wait was too long."""
        # Packs of a crawl with a dollar limit may wait for unused dollars, and must not block other
        # packs.
        if crawl.nanodollars_max is not None or not self._unseen(crawl, message, result):
            yield False
            return
        turn = self._turns.setdefault(crawl.id, asyncio.Lock())
        waiting.append(result)
        try:
            async with asyncio.timeout(TURN_WAIT_S):
                await turn.acquire()
        except TimeoutError:
            yield False
            return
        finally:
            waiting.remove(result)
        try:
            yield True
        finally:
            turn.release()
            if not self._waiting[crawl.id]:
                del self._waiting[crawl.id]

    def _unseen(self, crawl: Crawl, message: Pack | SeedsMessage, result: PackResult) -> bool:
        settled = _settled(message) or {UrlState.CLAIMED}
        return not settled.issuperset(self._seen.states(crawl, result.candidates).values())

    async def _take_over(self, crawl: Crawl, result: PackResult, waiting: list[PackResult]) -> None:
        """Add links of packs that wait for the lock. Those packs keep the links for now."""
        # One pack can fill its child packs better than many packs can.
        for _ in range(GATHER_TURNS):
            await asyncio.sleep(0)
        room = GATHERED_MAX
        for other in waiting:
            states = self._seen.states(crawl, other.candidates)
            for target in other.links:
                if states[target.url] is UrlState.CLAIMED or result.links_to(target.url):
                    continue
                if not room:
                    return
                result.link(target)
                room -= 1

    async def _drop_claimed(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        result: PackResult,
        at_ms: int,
        *,
        look: bool,
    ) -> int:
        """Drop links that are known to be claimed. Return the number of links looked up.

        `look` means that all links must be looked up, not only a sample.
        """
        spent = self._seen.is_spent(crawl)
        if spent and not is_ordered(crawl):
            dropped = result.candidates
            for target in result.links:
                result.leave_out(target)
            result.refuse(Refusal.BUDGET, len(dropped), dropped)
            result.drop(dropped)
            return 0
        # A page that a sitemap lists as changed can be claimed again. The same holds for a URL
        # whose claim was just abandoned.
        modified = result.modified
        free = modified.keys() | result.reopened
        settled = _settled(message)
        states = self._seen.states(crawl, result.candidates)
        result.drop({url for url, state in states.items() if state in settled} - free)
        if spent and UrlState.WAITING in settled:
            return 0  # these links are deferred, and looked up when due
        links = tuple(target for target in result.links if target.url not in result.reopened)
        probes = links
        if links and not (look or modified or self._seen.needs_lookup(crawl)):
            probes = links[:: -(-len(links) // PROBES)]
        found = await self._look_up(crawl, message, result, at_ms, probes)
        if found and len(probes) < len(links):
            probed = {target.url for target in probes}
            rest = [target for target in links if target.url not in probed]
            await self._look_up(crawl, message, result, at_ms, rest)
            return len(links)
        return len(probes)

    async def _look_up(
        self,
        crawl: Crawl,
        message: Pack | SeedsMessage,
        result: PackResult,
        at_ms: int,
        links: Sequence[Target],
    ) -> int:
        """Drop claimed links, and record expired claims. Return the number of both."""
        lapsed: dict[str, Prior] = {}
        modified = result.modified
        found = 0
        for window_s, group in by_window(links):
            claimer = claimer_of(crawl, message.id, at_ms, window_s)
            urls = [target.url for target in group]
            known = await self._frontier.known(claimer, urls, modified)
            self._seen.note_lookup(crawl, urls, known, window_s)
            result.drop(known.held)
            lapsed |= known.lapsed
            found += len(known.held) + len(known.lapsed)
        result.recall(lapsed)
        return found


def _settled(message: Pack | SeedsMessage) -> frozenset[UrlState]:
    """Return the states of links that the pack need not claim."""
    if isinstance(message, SeedsMessage):
        return frozenset({UrlState.CLAIMED})
    # The claim of a late link may have been released meanwhile.
    return frozenset() if message.late else frozenset({UrlState.CLAIMED, UrlState.WAITING})
