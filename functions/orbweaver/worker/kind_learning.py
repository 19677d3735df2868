"""What this container has learned of the kinds of URLs of its crawls, and shares with others."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from orbweaver.frontier.kind_scores import WAITING, KindLearner, asked_in, is_ordered
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import PortError
from orbweaver.model.page_record import PageRecord

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls

_log = logging.getLogger(__name__)

# Then those of the crawls that were met first begin anew.
CRAWLS_MAX = 50
# Counts are shared after so many answers; then after so many in a hundred of those that all have.
SHARED_FIRST, SHARED_MORE_PERCENT = 4, 10


class KindLearning:
    """Learns of crawls that have an order; one a container."""

    def __init__(self) -> None:
        self._learners: dict[str, KindLearner] = {}
        # How many answers there were when counts were last shared, here and of all.
        self._shared: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        # Links that wait: those that were told of by all, and those that were not told of yet.
        self._waiting_of_all: dict[str, int] = {}
        self._waiting: Counter[str] = Counter()

    def of(self, crawl: Crawl) -> KindLearner:
        """Return what is learned of a crawl."""
        found = self._learners.get(crawl.id)
        if found is None:
            while len(self._learners) >= CRAWLS_MAX:
                oldest = next(iter(self._learners))
                del self._learners[oldest]
                self._shared.pop(oldest, None)
                self._counted.pop(oldest, None)
                self._waiting_of_all.pop(oldest, None)
                self._waiting.pop(oldest, None)
            found = self._learners[crawl.id] = KindLearner()
        return found

    def wants_digest(self, crawl: Crawl, url: str) -> bool:
        """Whether the text of a page is to be compared with others."""
        return is_ordered(crawl) and self.of(crawl).wants_digest(url)

    def learn(self, crawl: Crawl, record: PageRecord, digest: int | None) -> None:
        """Learn from an answer."""
        if is_ordered(crawl):
            self.of(crawl).learn(record, digest)

    def waiting(self, crawl: Crawl) -> int:
        """Say about how many links of a crawl wait."""
        return self._waiting_of_all.get(crawl.id, 0) + self._waiting[crawl.id]

    def note_waiting(self, crawl: Crawl, links: int) -> None:
        """Count links that wait from now on, or that do no longer."""
        self._waiting[crawl.id] += links

    async def share(self, crawl: Crawl, crawls: Crawls, *, now: bool = False) -> None:
        """Add what was counted here to what all have counted, if there is enough of it by now.

        `now`: what all have counted matters, however little there is to add. A failure is made up
        for later. What is added twice, as an answer was lost, weighs twice.
        """
        if not is_ordered(crawl):
            return
        known, counted = self.of(crawl), self._counted.get(crawl.id, 0)
        new = known.asked - self._shared.get(crawl.id, 0)
        if not now and new < max(SHARED_FIRST, counted * SHARED_MORE_PERCENT // 100):
            return
        self._shared[crawl.id] = known.asked
        told, waiting = known.scores.unshared(), self._waiting[crawl.id]
        if waiting:
            told[WAITING] = waiting
        try:
            total = await (crawls.learn(crawl, told) if told else crawls.learned(crawl.id))
        except PortError as error:
            _log.warning("kinds.not_shared", extra={"crawl": crawl.id, "error": str(error)})
            return
        known.scores.share(told, total)
        self._counted[crawl.id] = asked_in(total)
        self._waiting[crawl.id] -= waiting
        self._waiting_of_all[crawl.id] = total.get(WAITING, 0)
