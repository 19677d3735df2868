"""Retrace earlier runs of a crawl's name: claim the links that their journals list as left out.

The packs of a run form a tree: seeds, the packs that follow from them, and so on. Each id follows
from its parent's id. Journals and ledgers outlive the run, and contain for every pack:

    left        links omitted because of a limit, depth, scope or pattern        (Journal.left)
    surplus     links beyond the page limit, whose claims were released          (Ledger.surplus)
    late        late links that were never requested                        (frontier/late_links.py)
    unasked     URLs that ended because the run did                              (Journal.unasked)
    records     URLs that failed or that robots.txt disallowed, if they get another request
                                                                      (frontier/resumption.py)
    no ledger   packs that were in work or queued when the run was closed

A message names a few packs. Their omitted links are admitted again, by the limits and scope of the
continuing run, and claimed like any link: a claim within the window counts. Further messages cover
the packs that followed. The commit that sends a message also counts it as planned, so a run does
not end before it has read the whole tree.

The earlier run has finished, so its counters are closed. Packs that were in work are never counted,
and their claims can be abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.admission import admit_left_out
from orbweaver.frontier.claims import Recalled
from orbweaver.frontier.erase_rule import erase_rule
from orbweaver.frontier.journal import (
    Journal,
    Ledger,
    OutgoingPack,
    outbox,
    outbox_late,
    outbox_past,
    surplus_of,
)
from orbweaver.frontier.messages import PAST_PACKS_MAX, Pack, Past
from orbweaver.frontier.pack_result import FoundLinks
from orbweaver.frontier.resumption import requested_again, roots_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target
from orbweaver.model.url import Bounds
from orbweaver.worker.crawl_cache import RecentCrawls

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Frontier, Packs

# Packs whose journals are read at a time, for URLs without a request.
CHILDREN_AT_ONCE = 50


class EarlierRunReader:
    """Finds links that earlier runs left out, in the journals of their packs."""

    def __init__(
        self, *, packs: Packs, crawls: RecentCrawls, frontier: Frontier, bounds: Bounds
    ) -> None:
        self._packs = packs
        self._crawls = crawls
        self._frontier = frontier
        self._bounds = bounds

    async def look_through(self, past: Past, crawl: Crawl) -> list[FoundLinks]:
        """Return the links that packs of an earlier run left out, and the next packs.

        `past` names the run and the packs to read, `crawl` is the continuing run. The packs that
        followed from these packs are for a later message.
        """
        run = await self._crawls.get(past.run)
        if run is not None and run.state is not State.FINISHED:
            self._crawls.forget(past.run)  # the cached state may be from before the run's end
            run = await self._crawls.get(past.run)
        if run is None or run.state is not State.FINISHED:
            return [FoundLinks(counts={"past_lost": 1})]
        first = past.packs or roots_of(run)
        packs, later = first[:PAST_PACKS_MAX], list(first[PAST_PACKS_MAX:])
        found: list[FoundLinks] = []
        recalled = await self._packs.recall(packs)
        for pack in packs:
            known = recalled.get(pack, Recalled())
            if known.ledger is None and known.newer is None:
                continue  # the run never processed these seeds; this run has them too
            if known.ledger is None or known.journal is None:
                found.append(FoundLinks(counts={"past_lost": 1}))
                continue
            both = known.journal, known.ledger
            found.append(self._links(run, crawl, _left_out(*both)))
            later += [seeds.id for seeds in outbox_past(pack, run.id, known.journal)]
            children = await self._children(run, crawl, outbox(pack, run.id, *both))
            late = await self._late(run, crawl, outbox_late(pack, run.id, *both))
            for links, ended in (children, late):
                found += links
                later += ended
        for start in range(0, len(later), PAST_PACKS_MAX):
            following = Past(run=run.id, packs=tuple(later[start : start + PAST_PACKS_MAX]))
            found.append(FoundLinks(past=(following,), counts={"seeds_more": 1}))
        return found

    async def _children(
        self, run: Crawl, crawl: Crawl, outgoing_packs: Sequence[OutgoingPack]
    ) -> tuple[list[FoundLinks], list[str]]:
        """Return URLs that child packs did not request, and the ids of ended packs."""
        found: list[FoundLinks] = []
        ended: list[str] = []
        for start in range(0, len(outgoing_packs), CHILDREN_AT_ONCE):
            some = [outgoing.pack for outgoing in outgoing_packs[start : start + CHILDREN_AT_ONCE]]
            recalled = await self._packs.recall([child.id for child in some])
            unasked: list[Target] = []
            failed: list[Target] = []
            for child in some:
                known = recalled.get(child.id, Recalled())
                if known.ledger is None and known.newer is None:
                    unasked += child.targets
                    continue
                ended.append(child.id)
                if known.journal is not None:
                    left = frozenset(known.journal.unasked)
                    unasked += [target for target in child.targets if target.url in left]
                    failed += _requested_again(crawl, run, child.targets, known.journal)
            for targets in filter(None, (unasked, failed)):
                urls = [target.url for target in targets]
                await self._frontier.abandon(run, urls, failed=targets is failed)
                found.append(replace(self._links(run, crawl, targets), reopened=tuple(urls)))
        return found, ended

    async def _late(
        self, run: Crawl, crawl: Crawl, packs: Sequence[Pack]
    ) -> tuple[list[FoundLinks], list[str]]:
        """Return late links that were never requested, and the ids of processed late packs."""
        found: list[FoundLinks] = []
        ended: list[str] = []
        for start in range(0, len(packs), CHILDREN_AT_ONCE):
            some = packs[start : start + CHILDREN_AT_ONCE]
            recalled = await self._packs.recall([one.id for one in some])
            for one in some:
                known = recalled.get(one.id, Recalled())
                if known.ledger is None and known.newer is None:
                    found.append(self._links(run, crawl, one.targets))
                else:
                    ended.append(one.id)
        return found, ended

    def _links(self, run: Crawl, crawl: Crawl, targets: Iterable[Target]) -> FoundLinks:
        """Return the targets that the continuing run `crawl` admits, except erased ones."""
        rule = erase_rule(run)  # the journals of `run` still contain erased URLs
        links: list[Target] = []
        erased = 0
        for target in targets:
            if rule.url(target.url):
                erased += 1
                continue
            admitted = admit_left_out(crawl, target, self._bounds)
            if admitted is not None:
                links.append(replace(admitted, again=target.again))
        return FoundLinks(admitted=tuple(links), refused=((Refusal.ERASED, erased, ()),))


def _requested_again(
    crawl: Crawl, run: Crawl, targets: Iterable[Target], journal: Journal
) -> list[Target]:
    """Return the failed or disallowed targets of a pack that `crawl` must request again."""
    ends = {record.url: (record.outcome, record.reason) for record in journal.records}
    ends |= {end.url: (end.outcome, end.reason) for end in journal.unrecorded}
    found: list[Target] = []
    for target in targets:
        outcome, reason = ends.get(target.url, (None, None))
        if outcome is None or reason is None:
            continue
        is_seed = target.referrer is None
        if requested_again(crawl, run, outcome, reason, is_seed=is_seed):
            found.append(replace(target, again=True))
    return found


def _left_out(journal: Journal, ledger: Ledger) -> Sequence[Target]:
    # These links are in late packs.
    waits = journal.surplus_band is not None
    surplus = surplus_of(journal, ledger) if ledger.surplus and not waits else ()
    return (*journal.left, *surplus)
