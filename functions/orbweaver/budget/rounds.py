"""Rounds of a crawl's URLs and the waits of its functions with them: for `estimate`.

Held to the scale model (docs/scale.md), from whose mechanisms it is made. Each of these has a
function of its own below, so that a change of how workers wait changes one of them:

- **Packs.** What a visit finds is cut into packs of 25 and a rest. A page has many new links early
  in a crawl and few late. The more pages a visit asks for, the larger its packs (`pack_urls`).
- **Visits.** With a delay, a visit has slots for as long as it waits. The rest of its pack returns
  when its turn is due, but not exactly. So a pack takes more visits than its slots need (`_trips`).
  Without one, a visit asks for the whole pack, if the host answers in time.
- **The waiting line** is 15 minutes long. Packs that find no place in it return after those 15
  minutes all the same, mostly in vain (`_redelivered`). They get what slots there are one by one,
  and a request waits for each.
- **Batches.** A function takes what comes within the window, or a full batch. It is paid for until
  the last of its packs has had its last slot (`_seconds`). With many hosts, many wait at once.
- **Workers** are at most so many. Beyond that batches are full, and packs wait on the queue for
  nothing.
- **Hosts** answer at different speeds and are not asked faster than they answer. The slow ones are
  left at the end, with functions that have nothing else to wait for (`_speeds`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, log
from statistics import NormalDist

from orbweaver.model.crawl import Crawl
from orbweaver.model.target import PACK_TARGETS_MAX
from orbweaver.politeness.host_schedule import HORIZON_MS, spacing_ms

# Where nothing says how many pages there will be.
PAGES_ASSUMED = 10_000
# Of a stack whose context does not say otherwise: workers at once, messages of a batch, memory.
WORKERS, BATCH, MEMORY_MB = 50, 10, 1_024
# CPU of a page: whatever it holds, and by the KB, with main texts half as much again.
PAGE_CPU_MS, KB_CPU_MS, TEXT_CPU_SHARE = 2.0, 0.1, 0.5
# How long a visit waits for slots (`wait_s_max`), how many requests a function makes at once
# (`fetch_concurrency`), and how long the event source waits for a batch to fill.
WAIT_S, REQUESTS_MAX, WINDOW_S = 5.0, 64, 1.0
# A whole CPU; what a pack takes of one; what calls take beside, by the invocation; and which part
# of the pages' CPU comes after the last wait.
CPU_MB, PACK_CPU_MS, CALLS_S, LAST = 1_769, 20.0, 0.2, 0.25
# Of a page's links: those that not all pages of its host have.
OWN_LINKS = 0.6
# Visits of a pack beyond what its slots need: what it holds is split between times, and its last
# visit seldom uses all; without a delay half a visit, the last one. In company more of them: what
# returns is sent with its batch, later than its turn was reckoned for, into the next one's turn.
VISITS_MORE, VISITS_MORE_FREE, VISITS_LATE = 1.6, 0.5, 1.0
# Without a delay, packs that one visit found are on the queue one after the other.
CLUMP = 3
# For each visit that asks: those that find no slot, in a line with room.
IN_VAIN = 0.25
# Of all packs that a host's pages make, those there are at the same time.
PACKS_AT_ONCE = 0.75
# How soon visits ask for single pages, by what deliveries grow.
SINGLES = 0.6
# How much of the wait a batch of few packs saves: m packs wait m / (m + this) of it.
SHORT_WAITS = 0.4
# Medians of hosts' answers are lognormal; sigma, and in how many parts they are looked at. A host's
# pace follows its slower answers.
SPREAD, PARTS, PACE = 0.7, 16, 1.5
# Sizes of packs and batches follow from each other: so often is that gone through.
ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What is taken to be so: of the site, of pages on the wire, and of the stack."""

    pages: int
    hosts: int = 1
    links: int = 50
    body_bytes: int = 30_000
    answer_s: float = 0.2
    memory_mb: int = MEMORY_MB
    # Of the stack: how many workers there may be at once, and how many packs each is given.
    workers: int = WORKERS
    batch: int = BATCH

    def cpu_ms(self, *, texts: bool) -> float:
        """How long a page takes on a whole CPU."""
        whole = PAGE_CPU_MS + KB_CPU_MS * self.body_bytes / 1000
        return whole * (1 + TEXT_CPU_SHARE) if texts else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What a crawl's pages come to, in all: packs delivered, visited, invocations, their seconds.

    `packs` are those that ended; `hosts` how many an invocation asks, and `at_once` how many
    invocations there are at the same time, both on average.
    """

    packs: float
    deliveries: float
    visits: float
    invocations: float
    seconds: float
    hosts: float
    at_once: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trips:
    """What a page takes of packs: ended, delivered, visited; `least` deliveries without a crowd."""

    packs: float
    least: float
    deliveries: float
    visits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """A time in which the same hosts are at work; numbers are by the page but for the rate."""

    trips: _Trips
    invocations: float
    seconds: float
    hosts: float
    pages_a_s: float


def rounds_of(crawl: Crawl, assumed: Assumed) -> Rounds:
    """Go through a crawl by phases, of which each ends when its fastest hosts are done."""
    host_pages = assumed.pages / assumed.hosts
    left = [(hosts, gap_s, host_pages) for hosts, gap_s in _speeds(crawl, assumed)]
    sums = [0.0] * 6
    lasts_s = 0.0
    while left:
        hosts = sum(number for number, _, _ in left)
        slots_a_s = sum(number / gap_s for number, gap_s, _ in left)
        phase = _phase(crawl, assumed, hosts, hosts / slots_a_s)
        used = min(1.0, phase.pages_a_s / slots_a_s)
        took_s = min(pages * gap_s for _, gap_s, pages in left) / used
        pages_done = took_s * used * slots_a_s
        trips = phase.trips
        of_page = (
            trips.packs, trips.deliveries, trips.visits, phase.invocations, phase.seconds,
            phase.hosts * phase.invocations,
        )  # fmt: skip
        sums = [sum_ + part * pages_done for sum_, part in zip(sums, of_page, strict=True)]
        lasts_s += took_s
        after = [(number, gap_s, pages - took_s * used / gap_s) for number, gap_s, pages in left]
        left = [one for one in after if one[2] > host_pages * 1e-9]
    packs, deliveries, visits, invocations, seconds, asked = sums
    return Rounds(
        packs=max(1.0, packs),
        deliveries=max(1.0, deliveries),
        visits=max(1.0, visits),
        invocations=max(1.0, invocations),
        seconds=seconds,
        hosts=asked / invocations,
        at_once=seconds / lasts_s,
    )


def _speeds(crawl: Crawl, assumed: Assumed) -> list[tuple[float, float]]:
    """List hosts by how far apart their slots are, in seconds: how many, and how far."""
    parts = min(assumed.hosts, PARTS)
    found = []
    for place in range(parts):
        answer_s = assumed.answer_s * exp(SPREAD * NormalDist().inv_cdf((place + 0.5) / parts))
        gap_s = max(1e-3, answer_s / max(1, crawl.concurrency))
        if crawl.delay_ms:
            delay_ms = max(crawl.delay_ms, round(PACE * answer_s * 1000))
            gap_s = max(gap_s, spacing_ms(delay_ms) / 1000)
        found.append((assumed.hosts / parts, gap_s))
    return found


def _phase(crawl: Crawl, assumed: Assumed, hosts: float, gap_s: float) -> _Phase:
    """Say what a page takes while so many hosts have pages left, with slots so far apart."""
    host_pages = assumed.pages / assumed.hosts
    full = min(float(assumed.batch), max(1.0, hosts * host_pages / PACK_TARGETS_MAX))
    if not crawl.delay_ms:
        pages_a_s, batch = inf, full  # every function asks for itself, as soon as there are packs
    else:
        pages_a_s, batch = hosts / gap_s, 1.0
    trips = _trips(crawl, assumed, hosts, gap_s, batch)
    for _ in range(ROUNDS if pages_a_s < inf else 0):
        trips = _trips(crawl, assumed, hosts, gap_s, batch)
        packs = PACKS_AT_ONCE * host_pages * trips.packs
        trips = _asking(trips, _redelivered(trips.least, packs, gap_s))
        batch = min(full, 1 + WINDOW_S * trips.deliveries * pages_a_s)
    seconds = _seconds(crawl, assumed, trips, hosts, gap_s, batch)
    if pages_a_s * trips.deliveries / batch * seconds > assumed.workers:
        # The queue holds what is more: batches are full, nothing comes too late or too often.
        batch = full
        alone = _trips(crawl, assumed, hosts, gap_s, 1.0 if crawl.delay_ms else batch)
        seconds = _seconds(crawl, assumed, alone, hosts, gap_s, batch)
        delivered_a_s = assumed.workers * batch / seconds
        pages_a_s = min(pages_a_s, delivered_a_s / alone.least)
        trips = _asking(alone, delivered_a_s / pages_a_s)
    return _Phase(
        trips=trips,
        invocations=trips.deliveries / batch,
        seconds=trips.deliveries / batch * seconds,
        hosts=_distinct(crawl, hosts, batch),
        pages_a_s=pages_a_s,
    )


def pack_urls(links: float) -> float:
    """How many URLs packs hold on average, if a visit finds up to so many new links.

    Between none and all of those, evenly, as a site is found out; of each visit there are full
    packs and one that is not. The mean is over packs.
    """
    full = float(PACK_TARGETS_MAX)
    if links <= 1:
        return full  # nothing is found by links: they come by sitemaps or seeds
    packs = log(min(links, full))
    if links > full:
        packs += (links - full) / full + log(links / full) / 2
    return min(full, links / max(packs, 1e-9))


def _trips(crawl: Crawl, assumed: Assumed, hosts: float, gap_s: float, batch: float) -> _Trips:
    """How often packs are delivered and visited, in batches of so many, if lines have room."""
    host_pages = assumed.pages / assumed.hosts
    slots, more, vain = 1 + WAIT_S / gap_s, VISITS_MORE, IN_VAIN
    if crawl.delay_ms:
        more += VISITS_LATE * (1 - 1 / batch)
    else:
        # Packs of one host share what it answers meanwhile.
        slots, more, vain = slots * _distinct(crawl, hosts, batch) / batch, VISITS_MORE_FREE, 0.0
    urls, pages = float(PACK_TARGETS_MAX), float(PACK_TARGETS_MAX)
    for _ in range(ROUNDS):
        urls = pack_urls(OWN_LINKS * assumed.links * pages)
        alone = urls <= slots and not crawl.delay_ms
        pages = max(1.0, urls if alone else urls / (urls / slots + more))
    urls = min(urls, max(1.0, host_pages))
    visits = 1 / min(pages, urls)
    least = visits * (1 + vain)
    return _Trips(packs=1 / urls, least=least, deliveries=least, visits=visits)


def _asking(alone: _Trips, deliveries: float) -> _Trips:
    """With more deliveries than packs alone need: more of them ask, for fewer pages each."""
    more = 1 - exp(-SINGLES * max(0.0, deliveries - alone.least))
    visits = alone.visits + max(0.0, 1 - alone.visits) * more
    return replace(alone, deliveries=deliveries, visits=min(visits, deliveries))


def _redelivered(least: float, packs: float, gap_s: float) -> float:
    """Deliveries a page where a host has so many packs: each comes once in its line's length."""
    often = packs * gap_s / (HORIZON_MS / 1000)
    return float((least**3 + often**3) ** (1 / 3))


def _distinct(crawl: Crawl, hosts: float, packs: float) -> float:
    if not crawl.delay_ms:
        packs = max(1.0, packs / CLUMP)
    return min(packs, hosts) if hosts <= 1 else hosts * (1 - (1 - 1 / hosts) ** packs)


def _seconds(
    crawl: Crawl, assumed: Assumed, trips: _Trips, hosts: float, gap_s: float, batch: float
) -> float:
    """How long an invocation lasts that has so many packs."""
    pages = batch / trips.deliveries
    asking = pages * trips.visits
    # A visit that asks waits once, and not that long for a slot that is mostly beyond reach.
    waits_s = WAIT_S * min(asking, asking / (asking + SHORT_WAITS)) * min(1.0, WAIT_S / gap_s)
    answer_s = PACE * assumed.answer_s * min(1.0, asking)
    if not crawl.delay_ms:
        waits_s = min(WAIT_S, pages / _distinct(crawl, hosts, batch) * gap_s)
    waits_s = max(waits_s, pages * assumed.answer_s / REQUESTS_MAX)
    share = min(1.0, assumed.memory_mb / CPU_MB)
    cpu_s = pages * assumed.cpu_ms(texts=crawl.texts) / 1000 / share
    packs_s = batch * PACK_CPU_MS / 1000 / share
    worked_s = max(waits_s + answer_s, cpu_s) + LAST * cpu_s
    return worked_s + packs_s + CALLS_S
