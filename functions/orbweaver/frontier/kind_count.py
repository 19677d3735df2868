"""Counts of one kind of URLs: requested, fruitful and let out.

Each count exists twice: the total that this container has seen, and the part that is not shared
with other containers yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

PRIOR, PRIOR_WEIGHT = 2 / 3, 1.5
# A kind is tried once this number of its URLs was requested.
TRIED_MIN = 3
# A kind with this number of requests and this score is known to be worth its requests.
RICH_ASKED, RICH_SCORE = 4, 0.7


@dataclass(slots=True)
class KindCount:
    """Counts of one kind.

    The `_unshared` fields are the parts that are not shared yet.

    `asked` counts requested URLs, and `out` URLs let out (not late), including answered ones.
    `texts` counts pages whose text was compared, and `texts_new` those with new text. `others`
    counts responses that were no page, such as pictures. `unasked` counts URLs that ended here
    without a request, for example because of robots.txt.
    """

    asked: int = 0
    fruitful: int = 0
    out: int = 0
    asked_unshared: int = 0
    fruitful_unshared: int = 0
    out_unshared: int = 0
    texts: int = 0
    texts_new: int = 0
    others: int = 0
    unasked: int = 0

    def merge(self, other: Self) -> None:
        """Add the counts of a kind that is merged into this one."""
        self.add(other.asked, other.fruitful)
        self.let_out(other.out)
        self.texts += other.texts
        self.texts_new += other.texts_new
        self.others += other.others
        self.unasked += other.unasked

    @property
    def weight(self) -> int:
        """Importance of the kind when kinds are merged."""
        return self.asked

    @property
    def ended(self) -> int:
        """Number of URLs that have ended, with or without a request."""
        return self.asked + self.unasked

    @property
    def ended_enough(self) -> bool:
        """True if enough URLs have ended to let out more than one at a time."""
        return self.ended >= TRIED_MIN

    @property
    def tried(self) -> bool:
        """True if enough URLs were requested to judge the kind."""
        return self.asked >= TRIED_MIN

    @property
    def is_rich(self) -> bool:
        """True if it is known to be worth its requests."""
        return self.asked >= RICH_ASKED and self.score(PRIOR) >= RICH_SCORE

    @property
    def stands_so_far(self) -> bool:
        """True if at least half of the requested URLs were fruitful."""
        return 2 * self.fruitful >= self.asked

    @property
    def stands(self) -> bool:
        """True if it was tried and mostly fruitful.

        Such kinds stay separate if there are too many.
        """
        return self.tried and self.stands_so_far

    @property
    def texts_vary(self) -> bool:
        """True if at least half of the compared texts were new."""
        return 2 * self.texts_new >= self.texts

    @property
    def unshared(self) -> tuple[int, int, int]:
        """Counts that are not shared yet: requested, fruitful, let out."""
        return self.asked_unshared, self.fruitful_unshared, self.out_unshared

    def tell(self, asked: int, fruitful: int, out: int) -> None:
        """Subtract counts that are shared now."""
        self.asked_unshared -= asked
        self.fruitful_unshared -= fruitful
        self.out_unshared -= out

    def add(self, asked: int, fruitful: int) -> None:
        """Count URLs, to be shared."""
        self.asked += asked
        self.fruitful += fruitful
        self.asked_unshared += asked
        self.fruitful_unshared += fruitful

    def let_out(self, urls: int = 1) -> None:
        """Count URLs that are let out."""
        self.out += urls
        self.out_unshared += urls

    @property
    def credited(self) -> int:
        """Number of fruitful URLs, at most the requested ones: one may be credited twice."""
        return min(self.asked, self.fruitful)

    def score(self, prior: float) -> float:
        """Estimate the fruitful share of its URLs."""
        return (self.credited + PRIOR_WEIGHT * prior) / (self.asked + PRIOR_WEIGHT)
