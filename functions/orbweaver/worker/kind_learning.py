"""What this container has learned of the kinds of URLs of its crawls, and shares with others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.frontier.kind_scores import WAITING, asked_in, is_ordered
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


@dataclass(slots=True)
class _Learned:
    """What is learned of a crawl here, and what of it all have been told."""

    learner: KindLearner = field(default_factory=KindLearner)
    # How many answers there were when counts were last shared, here and of all.
    shared: int = 0
    counted: int = 0
    # Links that wait: those that were told of by all, and those that were not told of yet.
    waiting_of_all: int = 0
    waiting: int = 0


class KindLearning:
    """Learns of crawls that have an order; one a container."""

    def __init__(self) -> None:
        self._crawls: dict[str, _Learned] = {}

    def of(self, crawl: Crawl) -> KindLearner:
        """Return what is learned of a crawl."""
        return self._of(crawl).learner

    def wants_digest(self, crawl: Crawl, url: str) -> bool:
        """Whether the text of a page is to be compared with others."""
        return is_ordered(crawl) and self.of(crawl).wants_digest(url)

    def learn(self, crawl: Crawl, record: PageRecord, digest: Sequence[int] | None) -> None:
        """Learn from an answer."""
        if is_ordered(crawl):
            self.of(crawl).learn(record, digest)

    def waiting(self, crawl: Crawl) -> int:
        """Say about how many links of a crawl wait."""
        known = self._of(crawl)
        return known.waiting_of_all + known.waiting

    def note_waiting(self, crawl: Crawl, links: int) -> None:
        """Count links that wait from now on, or that do no longer."""
        self._of(crawl).waiting += links

    async def share(self, crawl: Crawl, crawls: Crawls, *, now: bool = False) -> None:
        """Add what was counted here to what all have counted, if there is enough of it by now.

        `now`: what all have counted matters, however little there is to add. A failure is made up
        for later. What is added twice, as an answer was lost, weighs twice.
        """
        if not is_ordered(crawl):
            return
        known = self._of(crawl)
        scores, asked = known.learner.scores, known.learner.asked
        least = max(SHARED_FIRST, known.counted * SHARED_MORE_PERCENT // 100)
        if not now and asked - known.shared < least:
            return
        known.shared = asked
        told, waiting = scores.unshared(), known.waiting
        if waiting:
            told[WAITING] = waiting
        try:
            total = await (crawls.learn(crawl, told) if told else crawls.learned(crawl.id))
        except PortError as error:
            _log.warning("kinds.not_shared", extra={"crawl": crawl.id, "error": str(error)})
            return
        scores.share(told, total)
        known.counted = asked_in(total)
        known.waiting -= waiting
        known.waiting_of_all = total.get(WAITING, 0)

    def _of(self, crawl: Crawl) -> _Learned:
        found = self._crawls.get(crawl.id)
        if found is None:
            while len(self._crawls) >= CRAWLS_MAX:
                del self._crawls[next(iter(self._crawls))]
            found = self._crawls[crawl.id] = _Learned()
        return found
