"""Share what workers learn about groups of similar URLs (kinds) in an ordered crawl.

An ordered crawl first requests the groups that bring new pages (frontier/kind_learner.py). Workers
share counts in one item per crawl, and digests of page content in files, which may be lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.frontier.kind_count import TRIED_MIN
from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.frontier.kind_scores import FILES, WAITING, is_ordered, requested_in
from orbweaver.frontier.known_claims import folder_of
from orbweaver.frontier.late_links import SOON_DONE, Banded, late_links_min
from orbweaver.frontier.seen_content import NEWS_BYTES_MAX
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import PortError
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target
from orbweaver.model.turns import in_turns, slices

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.model.crawl import Counts
    from orbweaver.model.ports import Files
    from orbweaver.model.settings import Settings

_log = logging.getLogger(__name__)

# Beyond this number, the oldest crawls are forgotten.
CRAWLS_MAX = 50
# Counts are shared after TRIED_MIN new responses, or after SHARED_PERCENT of all workers' responses
# if that is more.
SHARED_PERCENT = 10
# The percentage if some group of URLs is known to bring little, because other workers need these
# counts sooner. While links are sorted, SORTING_PERCENT applies, and links that are claimed now
# count too.
SHARED_SOON_PERCENT, SORTING_PERCENT = 3, 1
# A file gets its number before it exists, so a failed read is repeated up to this number of times.
LOOKS_MAX = 3
READ_AT_ONCE = 20
# Packs wait this long for the exchange of results before their journal is written. An exchange that
# takes longer is skipped once.
SHARED_WITHIN_S = 3.0


@dataclass(slots=True)
class _Learned:
    """Results of one crawl in this container, and which part of them is shared."""

    learner: KindLearner = field(default_factory=KindLearner)
    # Number of this container's responses, and number of all workers' responses, when this
    # container last shared its results.
    shared: int = 0
    counted: int = 0
    # Number of deferred (late) links: the shared number of all workers, and the part of this
    # container that is not shared yet.
    waiting_of_all: int = 0
    waiting: int = 0
    # Number of files, and the numbers of unread files, each with its failed reads.
    files: int = 0
    unread: dict[int, int] = field(default_factory=dict)
    sharing: asyncio.Lock = field(default_factory=asyncio.Lock)
    # True once the shared results were read.
    has_read: bool = False

    @property
    def is_early(self) -> bool:
        """True during the first responses of the crawl, when each response matters most."""
        return max(self.learner.asked, self.counted) < SOON_DONE

    @property
    def alone(self) -> bool:
        return self.counted <= self.shared


class KindLearning:
    """Learns which groups of similar URLs (kinds) bring new pages. One instance per container."""

    def __init__(self, *, crawls: Crawls, files: Files, settings: Settings) -> None:
        self._crawls, self._files = crawls, files
        # Files are always written if another container may continue the crawl, and otherwise only
        # while several workers process it.
        self._hands_on, self._barred = (
            settings.function.shares_claims,
            settings.function.claims_travel == "no",
        )
        self._known: dict[str, _Learned] = {}

    def learner_for(self, crawl: Crawl) -> KindLearner:
        return self._learner(crawl).learner

    def wants_digest(self, crawl: Crawl, url: str) -> bool:
        """Return True if the text of a page must be compared with other texts."""
        return is_ordered(crawl) and self.learner_for(crawl).wants_digest(url)

    def learn(self, crawl: Crawl, record: PageRecord, digest: Sequence[int] | None = None) -> None:
        if is_ordered(crawl):
            self.learner_for(crawl).learn(record, digest)

    def leave(self, crawl: Crawl, targets: Iterable[Target]) -> None:
        """Record URLs that end without a request or a record."""
        for target in targets if is_ordered(crawl) else ():
            self.learner_for(crawl).leave(target.url)

    def waiting(self, crawl: Crawl) -> int:
        """Return the approximate number of the crawl's deferred links."""
        known = self._learner(crawl)
        return known.waiting_of_all + known.waiting

    def looks_soon(self, crawl: Crawl) -> bool:
        """Return True if a crawl's deferred links are sent before few URLs are in flight."""
        if not is_ordered(crawl) or self.waiting(crawl) <= 0:
            return False
        # This holds for the first responses of a crawl with several workers, if the order of groups
        # matters.
        known = self._learner(crawl)
        return known.is_early and not known.alone and not known.learner.scores.is_mostly_fruitful

    def note_waiting(self, crawl: Crawl, links: int) -> None:
        self._learner(crawl).waiting += links

    async def before_judging(self, crawl: Crawl) -> None:
        """Read other workers' results before a page is judged by them."""
        if not is_ordered(crawl):
            return
        known = self._learner(crawl)
        # Results are read for the first page. They are also read for the first responses, if
        # several workers process the crawl and some groups bring little.
        matters = not known.alone and known.learner.scores.has_relevant_barren
        if (matters and known.is_early) or not known.has_read:
            known.has_read = True
            await self._share(crawl, known, sorting=True)

    async def share(self, crawl: Crawl) -> None:
        """Exchange results with other workers if enough are new."""
        if is_ordered(crawl) and self._has_enough(self._learner(crawl)):
            await self._share(crawl, self._learner(crawl))

    async def before_sorting(self, crawl: Crawl) -> None:
        """Exchange results with other workers before links are sorted."""
        if not is_ordered(crawl):
            return
        known = self._learner(crawl)
        if self._has_enough(known) or not (known.shared and self._is_alone(known)):
            await self._share(crawl, known, sorting=True)

    async def sort_links(
        self, crawl: Crawl, links: Sequence[Target], band: int | None
    ) -> tuple[list[Target], list[Banded]]:
        """Return the links to claim now, and the deferred links with their bands (ranks).

        `band` is the band in which the links have waited. New links have no band.
        """
        learner = self.learner_for(crawl)
        least = late_links_min(crawl)
        prompt, late = await in_turns(learner.sort_links(links, band, least))
        await self._tell_sorted(crawl)
        # Sort once more if another worker has just shared too many links of the same group.
        async for part in slices(prompt):
            if learner.has_too_many_pending(part):
                break
        else:
            return prompt, late
        await self.note_unscheduled(crawl, [link.url for link in prompt])
        prompt, late = await in_turns(learner.sort_links(links, band, least))
        await self._tell_sorted(crawl)
        return prompt, late

    async def note_unscheduled(self, crawl: Crawl, urls: Sequence[str]) -> None:
        """Record that links are not scheduled: claimed by other packs, or beyond the limit."""
        learner = self.learner_for(crawl)
        async for part in slices(urls):
            learner.note_unscheduled(part)

    async def _tell_sorted(self, crawl: Crawl) -> None:
        if self._has_sorted_enough(self._learner(crawl)):
            await self._share(crawl, self._learner(crawl), sorting=True, with_files=False)

    async def _share(
        self, crawl: Crawl, known: _Learned, *, sorting: bool = False, with_files: bool = True
    ) -> None:
        if known.sharing.locked():
            if sorting:  # wait for the exchange in progress
                async with known.sharing:
                    pass
            return
        async with known.sharing:
            try:
                async with asyncio.timeout(SHARED_WITHIN_S):
                    await self._exchange(crawl, known, with_files=with_files)
            except (PortError, TimeoutError) as error:  # the next exchange repeats it
                told = {"crawl": crawl.id, "error": str(error) or type(error).__name__}
                _log.warning("kinds.not_shared", extra=told)

    def _has_enough(self, known: _Learned) -> bool:
        least, percent = TRIED_MIN, SHARED_PERCENT
        if known.learner.scores.has_relevant_barren and not self._is_alone(known):
            least, percent = 1, SHARED_SOON_PERCENT
        return known.learner.asked - known.shared >= max(least, known.counted * percent // 100)

    def _has_sorted_enough(self, known: _Learned) -> bool:
        if self._is_alone(known) or not known.learner.scores.has_relevant_barren:
            return False
        least = max(1, known.counted * SORTING_PERCENT // 100)
        return known.learner.scores.unshared_count >= least

    def _is_alone(self, known: _Learned) -> bool:
        return known.alone and not self._hands_on

    async def _exchange(self, crawl: Crawl, known: _Learned, *, with_files: bool) -> None:
        scores = known.learner.scores
        told: dict[str, int] = {}
        total: Counts = {}
        adds = known.counted and (self._has_enough(known) or self._has_sorted_enough(known))
        if not adds:
            total = await self._crawls.learned(crawl.id)
            known.counted = requested_in(total)
        if adds or self._has_enough(known):
            leaves = with_files and (self._hands_on or not (known.alone or self._barred))
            if with_files:
                known.shared = known.learner.asked
            told = scores.unshared()
            if known.waiting:
                told[WAITING] = known.waiting
            # The crawl's item counts the files. They are in the folder of worker/host_claims.py.
            if leaves and scores.met.has_news:
                told[FILES] = 1
            # If the table's response is lost, these results are added twice and count twice.
            total = await self._crawls.learn(crawl, told)
            known.counted = requested_in(total)
        scores.adopt_shared(told, total)
        known.waiting -= told.get(WAITING, 0)
        known.waiting_of_all = total.get(WAITING, 0)
        newest = total.get(FILES, 0)
        known.unread |= dict.fromkeys(range(known.files + 1, newest + 1), 0)
        known.files = max(known.files, newest)
        folder = f"{folder_of(crawl.id)}kinds/"
        if FILES in told:
            known.unread.pop(newest, None)
            await self._files.put(f"{folder}{newest}", scores.met.encode_news())
        await self._read(folder, known)

    async def _read(self, folder: str, known: _Learned) -> None:
        wanted = list(known.unread)
        for start in range(0, len(wanted), READ_AT_ONCE):
            numbers = wanted[start : start + READ_AT_ONCE]
            found = await asyncio.gather(*(self._body(f"{folder}{number}") for number in numbers))
            for number, body in zip(numbers, found, strict=True):
                looks = known.unread.pop(number) + 1
                if body is not None:
                    known.learner.scores.met.add_news(body)
                elif looks < LOOKS_MAX:
                    known.unread[number] = looks

    async def _body(self, key: str) -> bytes | None:
        try:
            return await self._files.get(key, NEWS_BYTES_MAX)
        except PortError:
            return None  # without the right to list, S3 denies reads of absent files

    def _learner(self, crawl: Crawl) -> _Learned:
        found = self._known.get(crawl.id)
        if found is None:
            while len(self._known) >= CRAWLS_MAX:
                del self._known[next(iter(self._known))]
            found = self._known[crawl.id] = _Learned()
        return found
