"""Collects the stored facts about a URL for `diagnostics/explanation.py`.

This module writes nothing. A robots.txt is fetched only if the caller provides a function for it. A
claim (record that a URL is queued) names the pack (batch of URLs) whose page linked the URL. The
journal (results) of each pack shows in which pack the URL was sent next, or how it ended. A URL
without an outcome might be a dead letter. While dead letters are read, other readers cannot see
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from orbweaver.diagnostics.explanation import Explanation, explain
from orbweaver.diagnostics.url_status import Facts, Journey, UrlStatus, choose
from orbweaver.frontier.claims import StoredClaim
from orbweaver.frontier.dead_letters import EVERYTHING, Case, DeadLetterSelection
from orbweaver.frontier.journal import outbox
from orbweaver.frontier.kind_scores import is_ordered, shared_counts_of
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, decode
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import PortError, UnknownCrawl
from orbweaver.model.outcome import Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Clock
from orbweaver.model.request_url import resolved_seed
from orbweaver.model.settings import Settings
from orbweaver.model.target import Prior
from orbweaver.model.url import host_of, redacted
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import RobotsEntry

if TYPE_CHECKING:
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, History, Packs
    from orbweaver.politeness.ports import Hosts

    AskRobots = Callable[[str, Crawl], Awaitable[RobotsEntry | None]]

# Maximum number of packs through which a URL is followed. Each requeue or retry adds one pack.
PACKS_MAX = 100
# Maximum number of crawl names to search for a claim, if the most likely crawl has not claimed the
# URL.
NAMES_MAX = 25
# Maximum number of seeds whose pages are checked for nofollow.
SEEDS_MAX = 5
# Maximum number of runs of a name to search, if the newest run has no data on a URL.
RUNS_MAX = 10
# Maximum number of a host's waiting packs to search for a URL.
BACKLOG_MAX = 50
# Maximum number of dead letters to search for a URL.
LETTERS_MAX = 1_000
# Maximum number of packs of late links (links that are requested last) to search for a URL.
LATE_MAX = 400


def knows(facts: Facts, told: Explanation) -> bool:
    """Return True if a run has stored data about a URL, not only rules that apply to the URL."""
    unseen = told.url_status in (UrlStatus.UNSEEN, UrlStatus.REFUSED)
    return not unseen or facts.late or bool(facts.refused) or facts.seed_nofollow


class Finder(Protocol):
    """Finds crawls by id or name, and page records by URL."""

    async def runs(self, which: str | None = None) -> tuple[Crawl, ...]:
        """Return the runs of an id or a name, newest first. Raises UnknownCrawl."""

    async def with_older(self, crawl: Crawl) -> tuple[Crawl, ...]:
        """Return a run and the earlier runs of its name, newest first."""

    async def page(self, url: str, crawl: Crawl | None = None) -> tuple[PageRecord, ...]:
        """Return a URL's records of the newest day that has any, newest first.

        If `crawl` is None, the records of all crawls are searched.
        """


class FoundLetters(Protocol):
    """The dead letters that a search found."""

    @property
    def cases(self) -> tuple[Case, ...]: ...

    @property
    def cut(self) -> bool:
        """True if the search did not read all dead letters."""


class LetterFinder(Protocol):
    """Searches dead letters."""

    async def find(self, selection: DeadLetterSelection, *, limit: int) -> FoundLetters: ...


@value_class
class Explainer:
    """Explains what happened to a URL. If `letters` is None, dead letters are not searched."""

    finder: Finder
    crawls: Crawls
    frontier: Frontier
    packs: Packs
    backlog: Backlog
    history: History
    hosts: Hosts
    clock: Clock
    settings: Settings
    letters: LetterFinder | None = None

    async def explain(
        self, reference: str, which: str | None = None, ask: AskRobots | None = None
    ) -> tuple[Facts, Explanation]:
        """Explain how a crawl treated the URL `reference`. Raises UnknownCrawl.

        `which` is the id or name of a crawl. None: the crawl that most likely has the URL.
        """
        # `ask` fetches a robots.txt if no copy is stored.
        runs, chosen = await self._choose(reference, which)
        first, told = await self._explain(reference, runs[0], chosen, ask)
        if runs[0].live or knows(first, told):
            return first, told

        async def asked(_host: str, _crawl: Crawl) -> RobotsEntry | None:
            return first.robots

        # Waiting and refused URLs are stored by run, so an older run can have data that the newest
        # lacks.
        for run in runs[1:RUNS_MAX]:
            why = f"{chosen}; {runs[0].id}, the newest of that name, knows nothing of it"
            found = await self._explain(reference, run, why, asked)
            if knows(*found):
                return found
        return first, told

    async def _explain(
        self, reference: str, crawl: Crawl, chosen: str, ask: AskRobots | None
    ) -> tuple[Facts, Explanation]:
        settings = self.settings
        facts = Facts(
            reference=reference,
            crawl=crawl,
            chosen=chosen,
            now_ms=self.clock.now_ms(),
            agent=settings.fetching.user_agent,
            retention_s=settings.retention.page_retention_s,
            bounds=settings.bounds,
            allowed=settings.fetching.allowed,
        )
        url = resolved_seed(reference, tracking=crawl.removed_parameters)
        if url is None:
            return facts, explain(facts)
        facts = await self._collect(facts, url)
        if facts.robots is None and ask is not None and crawl.obey_robots:
            facts = replace(facts, robots=await ask(host_of(url), crawl))
        return facts, explain(facts)

    async def _choose(self, reference: str, which: str | None) -> tuple[tuple[Crawl, ...], str]:
        """Return the chosen run and the earlier runs of its name, and the reason for the choice."""
        if which is not None:
            return await self.finder.runs(which), "the run you named"
        crawl, why = await self._likely(reference)
        return await self.finder.with_older(crawl), why

    async def _likely(self, reference: str) -> tuple[Crawl, str]:
        known = await self.crawls.list()
        if not known:
            raise UnknownCrawl("there is no crawl yet")
        # Crawls of a link check are never exported, so they cannot name the pages that link here.
        crawls = [crawl for crawl in known if not crawl.is_link_check] or known
        chosen = choose(crawls, reference)
        if chosen is not None and await self._claim_in(chosen[0], reference) is not None:
            return chosen
        newest = {crawl.name: crawl for crawl in reversed(crawls)}
        tried = None if chosen is None else chosen[0].id
        names = [crawl for crawl in reversed(newest.values()) if crawl.id != tried][:NAMES_MAX]
        claims = await asyncio.gather(*(self._claim_in(crawl, reference) for crawl in names))
        for crawl, claim in zip(names, claims, strict=True):
            if claim is not None:
                return crawl, "the newest that has claimed it"
        return chosen or (crawls[0], "the newest; it lies in the scope of none")

    async def _claim_in(self, crawl: Crawl, reference: str) -> StoredClaim | None:
        url = resolved_seed(reference, tracking=crawl.removed_parameters)
        return None if url is None else await self.frontier.last_claim(crawl.name, url)

    async def _collect(self, facts: Facts, url: str) -> Facts:
        crawl = facts.crawl
        claim, host = await asyncio.gather(
            self.frontier.last_claim(crawl.name, url), self.hosts.read_host(host_of(url))
        )
        facts = replace(facts, claim=claim, host=host, robots=host.robots)
        passed = None
        if claim is not None:
            if claim.crawl != crawl.id:
                facts = replace(facts, owner=await self.crawls.get(claim.crawl))
            journey, passed = await self._follow(claim, url)
            facts = replace(facts, journey=journey)
        record = await self._record(facts, url)
        known = facts.journey
        unended = record is None and passed is None
        if known is not None and unended and await self._waits(facts, url):
            facts = replace(facts, journey=replace(known, backlogged=True))
        if claim is None and record is None and passed is None:
            samples = await self.crawls.samples(crawl.id)
            reasons = [reason for reason, urls in samples.items() if redacted(url) in urls]
            facts = await self._late(facts, url)
            asked_not_to = Refusal.SEED_NOFOLLOW in samples
            facts = replace(facts, refused=tuple(sorted(reasons)), seed_nofollow=asked_not_to)
            if asked_not_to:
                facts = replace(facts, withdrawing=await self._withdrawing(crawl))
        facts = replace(facts, record=record or passed)
        return await self._with_letter(facts, url)

    async def _with_letter(self, facts: Facts, url: str) -> Facts:
        """Add the dead letter of a claimed or seed URL that has no outcome."""
        crawl, journey = facts.crawl, facts.journey
        ended = facts.record is not None or (journey is not None and journey.end is not None)
        known = facts.claim is not None or url in crawl.references
        if self.letters is None or ended or not known:
            return facts
        try:
            found = await self.letters.find(EVERYTHING, limit=LETTERS_MAX)
        except PortError as error:
            return replace(facts, letters_note=f"they could not be read: {error}")
        runs = {crawl.id, crawl.name, facts.run.id}
        pack = None if journey is None else journey.pack
        cases = [
            case
            for case in found.cases
            if case.crawl in runs
            and (
                (isinstance(case.message, Pack) and case.message.id == pack)
                or any(
                    resolved_seed(one, tracking=crawl.removed_parameters) == url
                    for one in case.references
                )
            )
        ]
        if cases:
            newest = max(cases, key=lambda case: (case.last_seen_ms, case.letter.id))
            return replace(facts, letter=newest)
        note = f"only {LETTERS_MAX:,} of them were looked at" if found.cut else None
        return replace(facts, letters_note=note)

    async def _late(self, facts: Facts, url: str) -> Facts:
        """Add to `facts` whether a URL waits as a late link, and the results of similar URLs."""
        crawl = facts.crawl
        if not is_ordered(crawl):
            return facts
        standing, counts = await asyncio.gather(
            self.backlog.first_places(crawl.id, LANE, LATE_MAX), self.crawls.learned(crawl.id)
        )
        packs = [decode(one.body) for one in standing]
        waits = any(
            target.url == url for pack in packs if isinstance(pack, Pack) for target in pack.targets
        )
        return replace(facts, late=waits, kind=shared_counts_of(url, counts))

    async def _withdrawing(self, crawl: Crawl) -> tuple[str, ...]:
        """Return the first seeds whose pages have no link that a crawl is allowed to follow."""
        seeds = [one for one in crawl.references if resolved_seed(one) is not None][:SEEDS_MAX]
        found = await asyncio.gather(*(self.finder.page(seed, crawl) for seed in seeds))
        return tuple(record.url for records in found for record in records if record.links == 0)

    async def _waits(self, facts: Facts, url: str) -> bool:
        """Return True if a URL is in a waiting pack of its host, not counting the first pack."""
        claim, run = facts.claim, facts.run
        if claim is None or not run.live or not run.delay_ms:
            return False
        standing = await self.backlog.first_places(claim.crawl, host_of(url), BACKLOG_MAX)
        packs = [decode(one.body) for one in standing[1:]]
        return any(
            target.url == url for pack in packs if isinstance(pack, Pack) for target in pack.targets
        )

    async def _record(self, facts: Facts, url: str) -> PageRecord | None:
        """Return a URL's record from the chosen run, or else from the run that claimed the URL."""
        crawl, claim = facts.crawl, facts.claim
        if claim is not None and claim.crawl != crawl.id:
            found = await self.finder.page(url, crawl)
            if found:
                return found[0]
        if claim is not None:
            prior = Prior(crawl=claim.crawl, at_ms=claim.at_ms)
            record = (await self.history.earlier_records({url: prior})).get(url)
            if record is not None:
                return record
        # For URLs that were claimed more than a day before they ended, or whose claim is deleted.
        found = await self.finder.page(url, facts.run)
        return found[0] if found else None

    async def _follow(self, claim: StoredClaim, url: str) -> tuple[Journey, PageRecord | None]:
        """Follow a URL from the pack that claimed it to its current pack."""
        journey = Journey(pack=claim.pack)
        for _ in range(PACKS_MAX):
            known = (await self.packs.recall([journey.pack])).get(journey.pack)
            if known is None or known.journal is None:
                break
            journal, ledger = known.journal, known.ledger
            record = next((one for one in journal.records if one.url == url), None)
            if record is not None and journey.target is not None:
                return journey, record
            end = next((one for one in journal.unrecorded if one.url == url), None)
            if end is not None and journey.target is not None:
                return replace(journey, end=end), None
            if ledger is None:  # this pack is being processed
                target = next((one for one in journal.candidates if one.url == url), None)
                return replace(journey, target=journey.target or target), None
            outgoing_packs = outbox(journey.pack, claim.crawl, journal, ledger)
            sent = [
                (outgoing, target)
                for outgoing in outgoing_packs
                for target in outgoing.pack.targets
                if target.url == url
            ]
            if not sent:
                return replace(journey, gone=journey.target is not None), None
            outgoing, target = sent[0]
            before = journey.target
            requeued = before is not None and before.attempt == target.attempt
            journey = Journey(
                pack=outgoing.pack.id,
                target=target,
                deferrals=journey.deferrals + requeued,
                due_at_ms=journal.at_ms + outgoing.delay_s * 1000,
            )
        return journey, None
