"""What one delivery has reserved of one thing that its crawl may use up.

Reserved ahead, so that most requests find what they need here: a reservation is a write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.core.allowance import COUNTED, Later, Spent, Take, Taking, Wanted, next_step

if TYPE_CHECKING:
    from orbweaver.core.allowance import Allowance, Part, Refused
    from orbweaver.core.crawl import Crawl
    from orbweaver.treasury import Treasury

# How often an allowance may change between being read and being taken from.
TAKE_TRIES = 5
# How long links wait for others to give back what would pay for them: the pack is to be settled.
REACH_TRIES, REACH_WAIT_S = 4, 1.0


class Purse:
    """What one delivery has reserved of one thing, and how much of that nobody has taken yet."""

    def __init__(self, treasury: Treasury, crawl: Crawl, part: Part, limit: int) -> None:
        self._treasury = treasury
        self._crawl = crawl
        self._key = (crawl.id, part, limit)
        self._left = 0
        self._out = 0
        self._lock = asyncio.Lock()
        self.part = part
        self.limit = limit
        self.reserved = 0

    async def take(self, whole: int, least: int, ahead: int = 1) -> int | Refused:
        """Take so much, or what is left, but no less than `least`; reserve some ahead."""
        async with self._lock:
            if self._left < whole:
                # As long as requests are out, what they bring back is better than a scrap.
                scrap = whole if self._out else least
                refused = await self._reserve(
                    Wanted(
                        plenty=whole * ahead - self._left,
                        whole=whole - self._left,
                        least=max(1, scrap - self._left),
                    )
                )
                if isinstance(refused, Later):
                    return refused
                if refused and self._out:
                    return Later()
                if self._left < least:
                    self._treasury.spent.add(self._key)
                    return Spent()
            taken = min(whole, self._left)
            self._left -= taken
            self._out += 1
            return taken

    def put_back(self, amount: int) -> None:
        """Put back what was not needed of what was taken."""
        self._left += amount
        self._out -= 1

    async def reach(self, amount: int, least: int) -> int:
        """Have so much reserved in all, if there is as much, in steps of `least`; what is."""
        for tries_left in reversed(range(REACH_TRIES)):
            missing = amount - self.reserved
            if missing <= 0:
                break
            wanted = Wanted(plenty=missing, whole=missing, least=min(missing, least))
            if not isinstance(await self._reserve(wanted), Later) or not tries_left:
                break
            await self._treasury.clock.sleep(REACH_WAIT_S)
        return self.reserved

    async def _reserve(self, wanted: Wanted) -> Refused | None:
        """Reserve more; None once that is done."""
        if self._key in self._treasury.spent:
            return Spent()
        amount, instead = wanted.plenty, None
        for _ in range(TAKE_TRIES):
            standing = await self._try(amount, instead)
            if standing is None:
                self.reserved += amount
                self._left += amount
                return None
            if not standing.begun:
                await self._begin()
                continue
            step = next_step(
                standing,
                wanted,
                limit=self.limit,
                mine=self.reserved,
                now_ms=self._treasury.clock.now_ms(),
            )
            if not isinstance(step, Take):
                return step
            amount, instead = step.amount, standing if step.dead else None
        return Later()

    async def _try(self, amount: int, instead: Allowance | None) -> Allowance | None:
        return await self._treasury.allowances.take(
            Taking(
                crawl=self._crawl,
                part=self.part,
                amount=amount,
                limit=self.limit,
                at_ms=self._treasury.clock.now_ms(),
                mine=self.reserved,
                instead=instead,
            )
        )

    async def _begin(self) -> None:
        """Begin where the books are: what was spent before there was a limit counts as well."""
        books = await self._treasury.crawls.books(self._crawl)
        used = books.total.get(COUNTED[self.part], 0)
        await self._treasury.allowances.begin(self._crawl, self.part, used)
