"""Counts of one kind of URLs (a group of similar URLs).

Each count exists twice: the total, and the part that is not shared with other containers yet
(`_unshared`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

# Number of requests after which a kind of URLs is *tried*: enough to judge it.
TRIED_MIN = 3
# Share that counts as most: of the URLs of a kind, or of the kinds of a crawl. A tried kind whose
# URLs were mostly fruitful is *rich*: worth its requests.
MOST = 0.7
# Most URLs of an unknown kind are expected to be fruitful. This weighs as much as PRIOR_WEIGHT
# requests.
PRIOR_WEIGHT = 1.5


@dataclass(slots=True)
class KindCount:
    """Counts of one kind of URLs.

    - `requested`: requested URLs
    - `fruitful`: URLs whose page was new, or was the first to link to a new page
    - `scheduled`: URLs that were claimed at once instead of late, even if they have ended since
    - `texts`, `texts_new`: pages whose text was compared, and pages with new text
    - `others`: responses that were no page, such as pictures
    - `not_requested`: URLs that ended without a request, for example because of robots.txt
    """

    requested: int = 0
    fruitful: int = 0
    scheduled: int = 0
    asked_unshared: int = 0
    fruitful_unshared: int = 0
    out_unshared: int = 0
    texts: int = 0
    texts_new: int = 0
    others: int = 0
    not_requested: int = 0

    def merge(self, other: Self) -> None:
        self.add(other.requested, other.fruitful)
        self.add_scheduled(other.scheduled)
        self.texts += other.texts
        self.texts_new += other.texts_new
        self.others += other.others
        self.not_requested += other.not_requested

    @property
    def weight(self) -> int:
        return self.requested

    @property
    def ended(self) -> int:
        return self.requested + self.not_requested

    @property
    def has_ended_enough(self) -> bool:
        """True if enough URLs have ended to allow several pending URLs of this kind."""
        return self.ended >= TRIED_MIN

    @property
    def is_tried(self) -> bool:
        return self.requested >= TRIED_MIN

    @property
    def is_rich(self) -> bool:
        return self.is_tried and self.score(MOST) >= MOST

    @property
    def is_fruitful_so_far(self) -> bool:
        """True if at least half of the requested URLs were fruitful."""
        return 2 * self.fruitful >= self.requested

    @property
    def is_fruitful(self) -> bool:
        """True if enough URLs were requested to judge the kind, and at least half were fruitful."""
        # Such kinds are not merged when there are too many kinds.
        return self.is_tried and self.is_fruitful_so_far

    @property
    def texts_vary(self) -> bool:
        return 2 * self.texts_new >= self.texts

    @property
    def unshared(self) -> tuple[int, int, int]:
        """Counts that other containers cannot read yet: requested, fruitful, claimed at once."""
        return self.asked_unshared, self.fruitful_unshared, self.out_unshared

    def subtract_shared(self, asked: int, fruitful: int, out: int) -> None:
        """Subtract from the unshared counts, because other containers can read them now."""
        self.asked_unshared -= asked
        self.fruitful_unshared -= fruitful
        self.out_unshared -= out

    def add(self, asked: int, fruitful: int) -> None:
        self.requested += asked
        self.fruitful += fruitful
        self.asked_unshared += asked
        self.fruitful_unshared += fruitful

    def add_scheduled(self, urls: int = 1) -> None:
        self.scheduled += urls
        self.out_unshared += urls

    @property
    def credited(self) -> int:
        # A URL may be counted as fruitful twice: by its own page, and by a page that it links to.
        return min(self.requested, self.fruitful)

    def score(self, prior: float) -> float:
        return (self.credited + PRIOR_WEIGHT * prior) / (self.requested + PRIOR_WEIGHT)
