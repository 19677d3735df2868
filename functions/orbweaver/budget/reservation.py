"""Reservations of one delivery of a pack (message with up to 25 URLs) from its crawl's limits.

A delivery reserves slightly more than its next requests need, because each increase is a write. The
commit settles the reservations. A crawl without limits of bytes, dollars or pages per host makes no
reservations and has no costs for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orbweaver.budget import prices
from orbweaver.budget.budget_rules import (
    COUNTED,
    BudgetSpent,
    BudgetState,
    BudgetWanted,
    Refused,
    ReservationRequest,
    ReserveAmount,
    TryLater,
    limit_of,
    next_step,
    settlements,
)
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl, LimitPart
from orbweaver.model.errors import Transient
from orbweaver.model.ports import Clock
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from random import Random

    from orbweaver.budget.ports import Budgets
    from orbweaver.frontier.ports import Crawls

# Attempts to reserve if other workers change the budget after it was read.
TAKE_TRIES = 5
# Largest random number that identifies a delivery of a pack.
BY_MAX = 2**53 - 1
# Attempts, and waits between them, while other deliveries might return amounts. The waits are
# short, because the pack must still be settled.
REACH_TRIES, REACH_WAIT_S = 4, 1.0
# Attempts to count URLs if the response is lost. Counting a URL twice has no effect.
COUNT_TRIES = 3
# If few bytes of the limit are left, a body is cut to them. The smallest cut is 1/SCRAP of the
# maximum body size (80 KB of 5 MB), or of the limit if that is less.
SCRAP = 64
# A delivery reserves at most 1/AHEAD_PART of a limit ahead, because other deliveries need some too.
AHEAD_PART = 64
# Bytes reserved for a body: the minimum, the value before this container has received a body of the
# crawl, and the maximum.
ROOM_BYTES_MIN, ROOM_BYTES_FIRST, ROOM_BYTES_MAX = 1024, 64 * 1024, 256 * 1024
# The reserved bytes are ROOM_SIZES times the largest recent body. The remembered size of that body
# decays by 1/ROOM_FADES per body.
ROOM_SIZES, ROOM_FADES = 2, 8
# Number of crawls whose body sizes are remembered.
SIZES_KEPT = 1_000


@value_class
class Payment:
    """Counts of a visit's bytes and cost, and the number of links that can be claimed."""

    counts: Mapping[str, int]
    links: int


@dataclass(slots=True, kw_only=True)
class AllowedSize:
    """Sizes that a body is allowed to have: now (`bytes_max`) and at most (`most`).

    `received` is the number of received bytes. It is None while unknown, because an incomplete body
    might have used all of `bytes_max`. `cut`: the crawl's limit had too few bytes left for the
    body.
    """

    bytes_max: int
    most: int
    reservation: Reservation | None = None
    received: int | None = 0
    cut: bool = False

    async def grow(self, size: int) -> None:
        """Increase `bytes_max` to `size`, or by less if the crawl's limit has too little left."""
        missing = min(size, self.most) - self.bytes_max
        if missing <= 0 or self.reservation is None:
            return
        taken = await self.reservation.extend(missing, plenty=max(missing, self.bytes_max))
        self.bytes_max += taken
        self.cut = taken < missing


class Reservation:
    """Amount that one delivery of a pack has reserved from one limit (bytes or dollars)."""

    def __init__(
        self, budget_keeper: BudgetKeeper, crawl: Crawl, part: LimitPart, limit: int
    ) -> None:
        self._budget_keeper = budget_keeper
        self._crawl = crawl
        self._key = (crawl.id, part, limit)
        # Reserved amount that is not taken yet, and number of open requests.
        self._left = 0
        self._out = 0
        self._lock = asyncio.Lock()
        self.part = part
        self.limit = limit
        self.reserved = 0

    async def take(self, whole: int, least: int, ahead: int = 0) -> int | Refused:
        """Take `whole`, or the amount left in the limit if that is at least `least`.

        Return the taken amount or the refusal. A new reservation includes `ahead`, an amount for
        the next requests.
        """
        async with self._lock:
            if self._left < whole:
                # While requests are open, the bytes they return are better than a scrap.
                scrap = whole if self._out else least
                refused = await self._reserve(
                    BudgetWanted(
                        plenty=whole + ahead - self._left,
                        whole=whole - self._left,
                        least=max(1, scrap - self._left),
                    )
                )
                if isinstance(refused, TryLater):
                    return refused
                if refused and self._out:
                    return TryLater()
                if self._left < least:
                    self._budget_keeper.spent.add(self._key)
                    return BudgetSpent()
            taken = min(whole, self._left)
            self._left -= taken
            self._out += 1
            return taken

    async def extend(self, amount: int, plenty: int) -> int:
        """Take `amount` more for an open request, or less if the limit has no more.

        Waits a few seconds for amounts that other deliveries might return. `plenty` is the amount
        to reserve if the limit has enough.
        """
        async with self._lock:
            for tries_left in reversed(range(REACH_TRIES)):
                missing = amount - self._left
                if missing <= 0:
                    break
                ahead = min(plenty, max(amount, self.limit // AHEAD_PART)) - self._left
                wanted = BudgetWanted(plenty=max(missing, ahead), whole=missing, least=1)
                refused = await self._reserve(wanted)
                waits = isinstance(refused, TryLater) or (refused is not None and self._out > 1)
                if not waits or not tries_left:
                    break
                await self._budget_keeper.clock.sleep(REACH_WAIT_S)
            taken = min(amount, self._left)
            self._left -= taken
            return taken

    def put_back(self, amount: int) -> None:
        """End a request and make `amount`, the part that it did not need, available again."""
        self._left += amount
        self._out -= 1

    async def reserve_up_to(self, amount: int, least: int) -> int:
        """Increase the reservation to `amount`, or by less if at least `least` is left.

        Return its size.
        """
        for tries_left in reversed(range(REACH_TRIES)):
            missing = amount - self.reserved
            if missing <= 0:
                break
            wanted = BudgetWanted(plenty=missing, whole=missing, least=min(missing, least))
            if not isinstance(await self._reserve(wanted), TryLater) or not tries_left:
                break
            await self._budget_keeper.clock.sleep(REACH_WAIT_S)
        return self.reserved

    async def _reserve(self, wanted: BudgetWanted) -> Refused | None:
        if self._key in self._budget_keeper.spent:
            return BudgetSpent()
        amount, instead = wanted.plenty, None
        for _ in range(TAKE_TRIES):
            standing = await self._try(amount, instead)
            if standing is None:
                self.reserved += amount
                self._left += amount
                return None
            if not standing.is_started:
                await self._begin()
                continue
            step = next_step(
                standing,
                wanted,
                limit=self.limit,
                mine=self.reserved,
                now_ms=self._budget_keeper.clock.now_ms(),
            )
            if not isinstance(step, ReserveAmount):
                return step
            amount, instead = step.amount, standing if step.dead else None
        return TryLater()

    async def _try(self, amount: int, instead: BudgetState | None) -> BudgetState | None:
        return await self._budget_keeper.budgets.take(
            ReservationRequest(
                crawl=self._crawl,
                part=self.part,
                amount=amount,
                limit=self.limit,
                at_ms=self._budget_keeper.clock.now_ms(),
                mine=self.reserved,
                instead=instead,
            )
        )

    async def _begin(self) -> None:
        """Create the budget from the crawl's counters, which contain the amount spent until now."""
        counters = await self._budget_keeper.crawls.counters(self._crawl)
        used = counters.total.get(COUNTED[self.part], 0)
        await self._budget_keeper.budgets.begin(self._crawl, self.part, used)


class BudgetKeeper:
    """Opens a `Reservations` for each delivery of a pack. A container has one instance."""

    def __init__(
        self,
        *,
        budgets: Budgets,
        crawls: Crawls,
        clock: Clock,
        random: Random,
        settings: Settings,
    ) -> None:
        self.budgets = budgets
        self.crawls = crawls
        self.clock = clock
        self.random = random
        self.settings = settings
        # Used-up limits, with their values at that time.
        self.spent: set[tuple[str, LimitPart, int]] = set()
        # Size of the largest recent body, by crawl.
        self._sizes: dict[str, int] = {}
        self.shared_clock = SharedClock(clock)

    def open(self, crawl: Crawl, pack_id: str) -> Reservations:
        return Reservations(self, crawl, pack_id)

    def room_bytes(self, crawl: Crawl, limit: int) -> int:
        """Return the bytes to reserve for a crawl's next body, by the sizes of recent bodies.

        `limit` is the crawl's limit of bytes.
        """
        size = self._sizes.get(crawl.id)
        expected = ROOM_BYTES_FIRST if size is None else ROOM_SIZES * size
        return max(ROOM_BYTES_MIN, min(expected, ROOM_BYTES_MAX, limit // AHEAD_PART))

    def received(self, crawl: Crawl, size: int) -> None:
        if len(self._sizes) >= SIZES_KEPT:
            self._sizes.clear()
        largest = self._sizes.get(crawl.id, 0)
        self._sizes[crawl.id] = max(size, largest - largest // ROOM_FADES)

    async def marked(self, crawl: Crawl, pack: Pack) -> Pack:
        """Mark the URLs of a pack that its earlier deliveries counted as pages of their hosts."""
        if crawl.host_pages_max is None:
            return pack
        hosts = {host_of(target.url) for target in pack.targets}
        counted: set[str] = set()
        for host in hosts:
            urls = [target.url for target in pack.targets if host_of(target.url) == host]
            counted |= await self.budgets.count(crawl, pack.id, host, urls, 0)
        return replace(pack, targets=tuple(_mark(target, counted) for target in pack.targets))


class Reservations:
    """Amounts of a crawl's limits that one delivery of a pack has reserved."""

    def __init__(self, budget_keeper: BudgetKeeper, crawl: Crawl, pack_id: str) -> None:
        self._budget_keeper = budget_keeper
        self._crawl = crawl
        self._pack_id = pack_id
        self._by = 0
        self._counted: set[str] = set()
        self._visited = False
        self._received = 0
        self._seconds = 0.0
        # Number of files written for the fetched content.
        self.files = 0
        self.bytes = _open(budget_keeper, crawl, LimitPart.BYTES)
        self.dollars = _open(budget_keeper, crawl, LimitPart.NANODOLLARS)

    @property
    def reserved(self) -> dict[str, int]:
        both = (self.bytes, self.dollars)
        return {each.part: each.reserved for each in both if each and each.reserved}

    @property
    def delivery_number(self) -> int:
        """Random number of this delivery, or 0 without reservations."""
        if self.reserved and not self._by:
            self._by = self._budget_keeper.random.randint(1, BY_MAX)
        return self._by

    @asynccontextmanager
    async def room(self, target: Target) -> AsyncIterator[AllowedSize | Refused]:
        """Reserve bytes for a URL's body while the block runs.

        Then give back the unused bytes.
        """
        most = self._most(target)
        taken: int | Refused = most
        if self.bytes is not None:
            taken = await self._room_bytes(self.bytes, most)
        if not isinstance(taken, int):
            yield taken
            return
        room = AllowedSize(bytes_max=taken, most=most, reservation=self.bytes)
        try:
            yield room
        finally:
            received = room.bytes_max
            if room.received is not None:
                received = min(received, room.received)
                self._budget_keeper.received(self._crawl, received)
            self._received += received
            if self.bytes is not None:
                self.bytes.put_back(room.bytes_max - received)

    async def _room_bytes(self, reservation: Reservation, most: int) -> int | Refused:
        limit = reservation.limit
        scrap = max(1, min(self._budget_keeper.settings.fetching.body_bytes_max, limit) // SCRAP)
        whole = min(most, self._budget_keeper.room_bytes(self._crawl, limit))
        ahead = max(0, min(whole * self._crawl.concurrency, limit // AHEAD_PART - whole))
        return await reservation.take(whole, min(whole, scrap), ahead=ahead)

    def _most(self, target: Target) -> int:
        settings = self._budget_keeper.settings
        sitemap = target.kind is TargetKind.SITEMAP
        return settings.fetching.sitemap_bytes_max if sitemap else settings.fetching.body_bytes_max

    async def count(
        self, host: str, targets: Sequence[Target]
    ) -> tuple[list[Target], list[Target]]:
        """Count URLs as pages of their host.

        Return (counted URLs, URLs beyond the host's limit).
        """
        limit = self._crawl.host_pages_max
        new = [target.url for target in targets if not target.counted]
        if limit is None or not new:
            return list(targets), []
        self._counted |= await self._count(host, new, limit)
        marked = [self.mark(target) for target in targets]
        return [one for one in marked if one.counted], [one for one in marked if not one.counted]

    def mark(self, target: Target) -> Target:
        return _mark(target, self._counted)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure this visit's share of the function's time while the block runs."""
        shared_clock = self._budget_keeper.shared_clock
        self._visited = True
        began_s = shared_clock.enter()
        try:
            yield
        finally:
            self._seconds = shared_clock.leave() - began_s

    @property
    def _a_second(self) -> float:
        settings = self._budget_keeper.settings
        return prices.second(
            memory_mb=settings.function.memory_mb, architecture=settings.function.architecture
        )

    async def admit(self, targets: Sequence[Target], seconds: float) -> Refused | None:
        """Reserve the highest possible cost of a visit that takes `seconds`.

        Return None on success.
        """
        if self.dollars is None:
            return None
        settings = self._budget_keeper.settings
        least = prices.visit_cost_max(urls=len(targets), seconds=seconds, a_second=self._a_second)
        links = sum(
            settings.worker.links_per_page_max
            if target.kind is TargetKind.SITEMAP
            else prices.LINKS_EXPECTED
            for target in targets
        )
        taken = await self.dollars.take(least + links * prices.CLAIM, least)
        return None if isinstance(taken, int) else taken

    async def pay(self, *, urls: int, again: int, looked_up: int, links: int) -> Payment:
        """Pay for a visit of `urls`, of which `again` return, and for claims of new `links`."""
        counts: dict[str, int] = {}
        if self._received:
            counts[COUNTED[LimitPart.BYTES]] = self._received
        spent = prices.LOOK_UP * looked_up
        if self._visited:
            spent += prices.visit(
                urls=urls,
                again=again,
                files=self.files,
                seconds=self._seconds,
                a_second=self._a_second,
            )
        if self.dollars is not None:
            due = spent + prices.CLAIM * links
            there = await self.dollars.reserve_up_to(due, least=prices.CLAIM)
            # A frozen function pays at most for its reserved time.
            spent = min(spent, there)
            links = min(links, (there - spent) // prices.CLAIM)
        if spent:
            counts[COUNTED[LimitPart.NANODOLLARS]] = spent
        return Payment(counts=counts, links=links)

    async def settle(self, own: Journal, standing: Journal) -> None:
        """Settle these reservations unless the stored journal is this delivery's.

        `own` is the journal of this delivery, the other argument is the stored one.
        """
        settled = settlements(own.reserved, own.counts)
        if settled and own.delivery != standing.delivery:
            # If this fails, they stay reserved until they count as a killed worker's.
            with suppress(Transient):
                await self._budget_keeper.budgets.settle(self._crawl, settled)

    async def _count(self, host: str, urls: Sequence[str], limit: int) -> frozenset[str]:
        budgets = self._budget_keeper.budgets
        for _ in range(COUNT_TRIES - 1):
            try:
                return await budgets.count(self._crawl, self._pack_id, host, urls, limit)
            except Transient:
                continue
        return await budgets.count(self._crawl, self._pack_id, host, urls, limit)


class SharedClock:
    """Divides a function's time among its concurrent visits.

    A visit calls `enter` and `leave`. The difference of the results is its share in seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._present = 0
        self._shared_s = 0.0
        self._since_ms = 0

    def enter(self) -> float:
        shared_s = self._now_s()
        self._present += 1
        return shared_s

    def leave(self) -> float:
        shared_s = self._now_s()
        self._present -= 1
        return shared_s

    def _now_s(self) -> float:
        now_ms = self._clock.now_ms()
        if self._present:
            self._shared_s += max(0, now_ms - self._since_ms) / 1000 / self._present
        self._since_ms = now_ms
        return self._shared_s


def _open(budget_keeper: BudgetKeeper, crawl: Crawl, part: LimitPart) -> Reservation | None:
    limit = limit_of(crawl, part)
    return None if limit is None else Reservation(budget_keeper, crawl, part, limit)


def _mark(target: Target, counted: set[str]) -> Target:
    marked = target.url in counted and not target.counted
    return replace(target, counted=True) if marked else target
