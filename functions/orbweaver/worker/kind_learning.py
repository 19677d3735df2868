"""What this container has learned of the kinds of URLs of its crawls, and shares with others.

    counts  of kinds, in an item by crawl, as soon as there are enough new ones: where kinds bring
            little, of most answers, and of links that do not wait before others sort out theirs
    files   with digests of what was met (frontier/met.py), numbered in the same item, where
            others learn of the crawl as well, or are to go on with it

What others know is read before links are sorted out. Files are hints, like those that travel with
hosts (worker/host_claims.py), and lie beside them: one that is lost costs some requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.frontier.kind_scores import FILES, WAITING, asked_in, is_ordered
from orbweaver.frontier.known_claims import folder_of
from orbweaver.frontier.late import SOON_DONE, Banded, late_least
from orbweaver.frontier.met import NEWS_BYTES_MAX
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

# Then those of the crawls that were met first begin anew.
CRAWLS_MAX = 50
# Counts are shared after so many answers, and so many in a hundred of those that all have; or, as
# long as a process of a store is alone with it, of its own.
SHARED_FIRST, SHARED_PERCENT, SHARED_ALONE_PERCENT = 4, 10, 30
# So where a kind is known that brings little: there it matters what others know. When links are
# sorted out, those that do not wait count as well.
SHARED_SOON_PERCENT, SORTING_PERCENT = 3, 1
# A file is numbered before it is there: so often is it looked for.
LOOKS_MAX = 3
READ_AT_ONCE = 20
# Packs wait for it before they are written down; longer than that it is given up for once.
SHARED_WITHIN_S = 3.0


@dataclass(slots=True)
class _Learned:
    """What is learned of a crawl here, and what of it all have been told."""

    learner: KindLearner = field(default_factory=KindLearner)
    # How many answers there were when counts and files were last shared; and of all, last.
    shared: int = 0
    counted: int = 0
    # Links that wait: those that were told of by all, and those that were not told of yet.
    waiting_of_all: int = 0
    waiting: int = 0
    # How many files there are; those that are to be read, and how often they were looked for.
    files: int = 0
    unread: dict[int, int] = field(default_factory=dict)
    sharing: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Whether what others know was read before a page was judged.
    has_read: bool = False

    @property
    def is_early(self) -> bool:
        """Whether these are the first answers of the crawl, in which each says much."""
        return max(self.learner.asked, self.counted) < SOON_DONE

    @property
    def alone(self) -> bool:
        """Whether no other had learned of the crawl when counts were last shared."""
        return self.counted <= self.shared


class KindLearning:
    """Learns of crawls that have an order; one a container."""

    def __init__(self, *, crawls: Crawls, files: Files, settings: Settings) -> None:
        self._crawls, self._files = crawls, files
        # Else files are left only where several learn of a crawl at a time.
        self._hands_on, self._barred = settings.hands_on, settings.claims_travel == "no"
        self._known: dict[str, _Learned] = {}

    def of(self, crawl: Crawl) -> KindLearner:
        """Return what is learned of a crawl."""
        return self._of(crawl).learner

    def wants_digest(self, crawl: Crawl, url: str) -> bool:
        """Whether the text of a page is to be compared with others."""
        return is_ordered(crawl) and self.of(crawl).wants_digest(url)

    def learn(
        self,
        crawl: Crawl,
        record: PageRecord,
        digest: Sequence[int] | None = None,
        *,
        redirected: bool = False,
    ) -> None:
        """Learn from how a URL ended; `redirected` says that another one led to it."""
        if is_ordered(crawl):
            self.of(crawl).learn(record, digest, redirected=redirected)

    def leave(self, crawl: Crawl, targets: Iterable[Target]) -> None:
        """Note URLs that are not asked for, and have no record."""
        for target in targets if is_ordered(crawl) else ():
            self.of(crawl).leave(target.url)

    def waiting(self, crawl: Crawl) -> int:
        """Say about how many links of a crawl wait."""
        known = self._of(crawl)
        return known.waiting_of_all + known.waiting

    def looks_soon(self, crawl: Crawl) -> bool:
        """Whether links that wait are looked at though something is out, as always is.

        So it is where several work on a crawl, in its first answers, and what waits may matter.
        """
        if not is_ordered(crawl) or self.waiting(crawl) <= 0:
            return False
        known = self._of(crawl)
        return known.is_early and not known.alone and not known.learner.scores.calm

    def note_waiting(self, crawl: Crawl, links: int) -> None:
        """Count links that wait from now on, or that do no longer."""
        self._of(crawl).waiting += links

    async def before_judging(self, crawl: Crawl) -> None:
        """Read what others have learned before a page is judged by it, in the first answers.

        So it is where several work on a crawl and some kinds bring little; and once in any case.
        """
        if not is_ordered(crawl):
            return
        known = self._of(crawl)
        matters = not known.alone and known.learner.scores.doubtful
        if (matters and known.is_early) or not known.has_read:
            known.has_read = True
            await self._share(crawl, known, sorting=True)

    async def share(self, crawl: Crawl) -> None:
        """Add what was learned here to what all know, if there is enough of it, and read that.

        A failure, or what takes too long, is made up for later. What is added twice, as an answer
        was lost, weighs twice.
        """
        if is_ordered(crawl) and self._has_enough(self._of(crawl)):
            await self._share(crawl, self._of(crawl))

    async def before_sorting(self, crawl: Crawl) -> None:
        """Read what others have learned, and add to it, before links are sorted out.

        Not where a process is alone with it.
        """
        if not is_ordered(crawl):
            return
        known = self._of(crawl)
        if self._has_enough(known) or not (known.shared and self._is_alone(known)):
            await self._share(crawl, known, sorting=True)

    async def sorted_out(
        self, crawl: Crawl, links: Sequence[Target], band: int | None
    ) -> tuple[list[Target], list[Banded]]:
        """Sort out links, and tell others which do not wait, before they sort out theirs.

        Where they have just done so, and too many of a kind would be out, it is done once more.
        """
        learner = self.of(crawl)
        least = late_least(crawl)
        prompt, late = await in_turns(learner.sorting_out(links, band, least))
        await self._tell_sorted(crawl)
        async for part in slices(prompt):
            if learner.too_many_out(part):
                break
        else:
            return prompt, late
        await self.take_back(crawl, [link.url for link in prompt])
        prompt, late = await in_turns(learner.sorting_out(links, band, least))
        await self._tell_sorted(crawl)
        return prompt, late

    async def take_back(self, crawl: Crawl, urls: Sequence[str]) -> None:
        """Note that links are not out: others have claimed them, or the limit is reached."""
        learner = self.of(crawl)
        async for part in slices(urls):
            learner.take_back(part)

    async def _tell_sorted(self, crawl: Crawl) -> None:
        if self._has_sorted_enough(self._of(crawl)):
            await self._share(crawl, self._of(crawl), sorting=True, with_files=False)

    async def _share(
        self, crawl: Crawl, known: _Learned, *, sorting: bool = False, with_files: bool = True
    ) -> None:
        if known.sharing.locked():
            if sorting:  # what is being read is as good
                async with known.sharing:
                    pass
            return
        async with known.sharing:
            try:
                async with asyncio.timeout(SHARED_WITHIN_S):
                    await self._exchange(crawl, known, with_files=with_files)
            except (PortError, TimeoutError) as error:
                told = {"crawl": crawl.id, "error": str(error) or type(error).__name__}
                _log.warning("kinds.not_shared", extra=told)

    def _has_enough(self, known: _Learned) -> bool:
        """Whether there are enough answers that others do not know of."""
        least, percent = SHARED_FIRST, SHARED_PERCENT
        if self._is_alone(known):
            percent = SHARED_ALONE_PERCENT
        elif known.learner.scores.doubtful:
            least, percent = 1, SHARED_SOON_PERCENT
        return known.learner.asked - known.shared >= max(least, known.counted * percent // 100)

    def _has_sorted_enough(self, known: _Learned) -> bool:
        """Whether others are to know before they sort out links."""
        if self._is_alone(known) or not known.learner.scores.doubtful:
            return False
        least = max(1, known.counted * SORTING_PERCENT // 100)
        return known.learner.scores.untold >= least

    def _is_alone(self, known: _Learned) -> bool:
        """Whether no other learns of the crawl, as far as is known, nor is to go on with it."""
        return known.alone and not self._hands_on

    async def _exchange(self, crawl: Crawl, known: _Learned, *, with_files: bool) -> None:
        scores = known.learner.scores
        told: dict[str, int] = {}
        total: Counts = {}
        adds = known.counted and (self._has_enough(known) or self._has_sorted_enough(known))
        if not adds:
            total = await self._crawls.learned(crawl.id)
            known.counted = asked_in(total)
        if adds or self._has_enough(known):
            leaves = with_files and (self._hands_on or not (known.alone or self._barred))
            if with_files:
                known.shared = known.learner.asked
            told = scores.unshared()
            if known.waiting:
                told[WAITING] = known.waiting
            if leaves and scores.met.has_news:
                told[FILES] = 1
            total = await self._crawls.learn(crawl, told)
            known.counted = asked_in(total)
        scores.share(told, total)
        known.waiting -= told.get(WAITING, 0)
        known.waiting_of_all = total.get(WAITING, 0)
        newest = total.get(FILES, 0)
        known.unread |= dict.fromkeys(range(known.files + 1, newest + 1), 0)
        known.files = max(known.files, newest)
        folder = f"{folder_of(crawl.id)}kinds/"
        if FILES in told:
            known.unread.pop(newest, None)
            await self._files.put(f"{folder}{newest}", scores.met.told())
        await self._read(folder, known)

    async def _read(self, folder: str, known: _Learned) -> None:
        """Take in all that others have left in files: who comes seldom has many to read."""
        wanted = list(known.unread)
        for start in range(0, len(wanted), READ_AT_ONCE):
            numbers = wanted[start : start + READ_AT_ONCE]
            found = await asyncio.gather(*(self._body(f"{folder}{number}") for number in numbers))
            for number, body in zip(numbers, found, strict=True):
                looks = known.unread.pop(number) + 1
                if body is not None:
                    known.learner.scores.met.take(body)
                elif looks < LOOKS_MAX:
                    known.unread[number] = looks

    async def _body(self, key: str) -> bytes | None:
        try:
            return await self._files.get(key, NEWS_BYTES_MAX)
        except PortError:
            return None  # who may not list is told that it may not read what is not there

    def _of(self, crawl: Crawl) -> _Learned:
        found = self._known.get(crawl.id)
        if found is None:
            while len(self._known) >= CRAWLS_MAX:
                del self._known[next(iter(self._known))]
            found = self._known[crawl.id] = _Learned()
        return found
