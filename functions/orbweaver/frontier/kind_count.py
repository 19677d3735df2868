"""What is counted of a kind of URLs: how many were asked for, were fruitful, and did not wait.

Each is counted as far as this container knows, and apart what of it others do not know yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

PRIOR, PRIOR_WEIGHT = 2 / 3, 1.5
# Of so many URLs at least it must be known what they brought.
TRIED_MIN = 3
# A kind with so many URLs, of which that share was fruitful, is known to be worth its requests.
RICH_ASKED, RICH_SCORE = 4, 0.7


@dataclass(slots=True)
class KindCount:
    """How many URLs of a kind were asked for and were fruitful; what of it others do not know.

    `out` counts those that did not wait to be asked for, also where they are answered by now,
    `texts` the pages whose text was compared, and `texts_new` those whose text was new;
    `others` what was asked for and was no page, but a picture. `unasked` are those that ended here
    without a request, as robots.txt forbids them.
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
        """Take in what is known of another kind, which this one takes the place of."""
        self.add(other.asked, other.fruitful)
        self.let_out(other.out)
        self.texts += other.texts
        self.texts_new += other.texts_new
        self.others += other.others
        self.unasked += other.unasked

    @property
    def weight(self) -> int:
        """How much the kind matters."""
        return self.asked

    @property
    def ended(self) -> int:
        """How many have ended, answered or not asked for."""
        return self.asked + self.unasked

    @property
    def ended_enough(self) -> bool:
        """Whether enough of it has ended for more of it to be let out at a time."""
        return self.ended >= TRIED_MIN

    @property
    def tried(self) -> bool:
        """Whether enough of it was asked for to judge it."""
        return self.asked >= TRIED_MIN

    @property
    def is_rich(self) -> bool:
        """Whether it is known to be worth its requests."""
        return self.asked >= RICH_ASKED and self.score(PRIOR) >= RICH_SCORE

    @property
    def stands_so_far(self) -> bool:
        """Whether at least half of what was asked for were fruitful."""
        return 2 * self.fruitful >= self.asked

    @property
    def stands(self) -> bool:
        """Whether it was tried, and most were fruitful: it is told apart where kinds are many."""
        return self.tried and self.stands_so_far

    @property
    def texts_vary(self) -> bool:
        """Whether its texts were new as a rule, as far as they were compared."""
        return 2 * self.texts_new >= self.texts

    @property
    def unshared(self) -> tuple[int, int, int]:
        """How many that others do not know of were asked for, were fruitful, and did not wait."""
        return self.asked_unshared, self.fruitful_unshared, self.out_unshared

    def tell(self, asked: int, fruitful: int, out: int) -> None:
        """Note that others know of so many more."""
        self.asked_unshared -= asked
        self.fruitful_unshared -= fruitful
        self.out_unshared -= out

    def add(self, asked: int, fruitful: int) -> None:
        """Count URLs, which others are to know of."""
        self.asked += asked
        self.fruitful += fruitful
        self.asked_unshared += asked
        self.fruitful_unshared += fruitful

    def let_out(self, urls: int = 1) -> None:
        """Count URLs that do not wait."""
        self.out += urls
        self.out_unshared += urls

    @property
    def credited(self) -> int:
        """How many were fruitful: no more than were asked for, though one may be credited twice."""
        return min(self.asked, self.fruitful)

    def score(self, prior: float) -> float:
        """Estimate the share of its URLs that are fruitful."""
        return (self.credited + PRIOR_WEIGHT * prior) / (self.asked + PRIOR_WEIGHT)
