"""Visits of a crawl's packs and the waits of its functions with them: for `estimate`.

Held to the scale model (docs/scale.md), from whose mechanisms it is made:

- **Packs.** What a visit finds is cut into packs of 25 and a rest. A page has many new links early
  in a crawl and few late. The more pages a visit asks for, the larger its packs (`pack_urls`).
- **With a delay** (`_polite`) one pack of a host is out, and a function goes from one to the next
  until its round ends. So a pack is visited once, and once more for each round's end. A function
  has as many hosts as come at a round's beginning, and its time is shared by them. Where a slot is
  further off than a trip is worth, each page is a visit.
- **Without one** (`_free`) a visit asks for the whole pack, if the host answers in time.
- **Workers** are at most so many. Beyond that batches are full, and packs wait on the queue for
  nothing.
- **Hosts** answer at different speeds and are not asked faster than they answer. The slow ones are
  left at the end, with functions that have nothing else to wait for (`_speeds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

from orbweaver.budget.prices import second, wait_ms_most
from orbweaver.model.crawl import Crawl
from orbweaver.model.settings import Settings
from orbweaver.model.target import PACK_TARGETS_MAX
from orbweaver.politeness.host_schedule import spacing_ms
from orbweaver.politeness.pacer import BLOCK_MS

# Where nothing says how many pages there will be.
PAGES_ASSUMED = 10_000
# Defaults of a stack on AWS, which infra/config.py takes from here: workers at once, messages of a
# batch, memory.
WORKERS, BATCH, MEMORY_MB = 50, 40, Settings().memory_mb
# CPU of a page: whatever it holds, and by the KB, with main texts half as much again.
PAGE_CPU_MS, KB_CPU_MS, TEXT_CPU_SHARE = 2.0, 0.1, 0.5
# How long a round is (`round_s`), how long a visit waits without one (`wait_s_max`), how long the
# event source waits for a batch to fill, and how long a file waits for packs (`segment_wait_s`).
ROUND_S, WAIT_S, WINDOW_S, FILE_S = 60.0, 5.0, 1.0, 5.0
# Most requests a function makes at once (`fetch_concurrency`).
REQUESTS_MAX = 64
# A whole CPU; what a pack takes of one; what calls take beside, by the invocation; and which part
# of the pages' CPU comes after the last wait.
CPU_MB, PACK_CPU_MS, CALLS_S, LAST = 1_769, 20.0, 0.2, 0.25
# Of a page's links: those that not all pages of its host have.
OWN_LINKS = 0.6
# How many hosts begin a round together, of batches of so many: the batch to this power. The others
# of a batch are messages of packs that were taken on, and what comes apart from others.
FULL = 0.9
# What failed comes back by itself, in an invocation of its own where there is nothing else: so many
# of all pages, and so long.
ALONE, ALONE_S = 0.005, 2.0
# Without a delay: half a visit more than a pack's slots need, the last one; and packs that one
# visit found are on the queue one after the other.
VISITS_MORE, CLUMP = 0.5, 3
# Medians of hosts' answers are lognormal; sigma, and in how many parts they are looked at. A host's
# pace follows its slower answers.
SPREAD, PARTS, PACE = 0.7, 64, 1.5
# Sizes of packs and what a visit finds follow from each other: so often is that gone through.
STEPS = 8


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

    `packs` are those that ended, `taken_on` those that were visited before their messages came, and
    `files` what bodies are stored in; `hosts` how many an invocation asks, and `at_once` how many
    invocations there are at the same time, both on average.
    """

    packs: float
    deliveries: float
    taken_on: float
    visits: float
    invocations: float
    files: float
    seconds: float
    hosts: float
    at_once: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """A time in which the same hosts are at work; numbers are by the page but for the rate."""

    packs: float
    visits: float
    taken_on: float
    invocations: float
    files: float
    seconds: float
    hosts: float
    pages_a_s: float

    @property
    def parts(self) -> tuple[float, ...]:
        """What is summed up over a crawl."""
        return (
            self.packs, self.visits, self.taken_on, self.invocations, self.files, self.seconds,
            self.hosts * self.invocations,
        )  # fmt: skip


def rounds_of(crawl: Crawl, assumed: Assumed) -> Rounds:
    """Go through a crawl by phases, of which each ends when its fastest hosts are done."""
    host_pages = assumed.pages / assumed.hosts
    left = [(hosts, gap_s, host_pages) for hosts, gap_s in _speeds(crawl, assumed)]
    sums = [0.0] * 7
    lasts_s = 0.0
    while left:
        hosts = sum(number for number, _, _ in left)
        slots_a_s = sum(number / gap_s for number, gap_s, _ in left)
        of_crawl = _polite if crawl.delay_ms else _free
        phase = of_crawl(crawl, assumed, hosts, hosts / slots_a_s)
        used = min(1.0, phase.pages_a_s / slots_a_s)
        took_s = min(pages * gap_s for _, gap_s, pages in left) / used
        pages_done = took_s * used * slots_a_s
        sums = [sum_ + part * pages_done for sum_, part in zip(sums, phase.parts, strict=True)]
        lasts_s += took_s
        after = [(number, gap_s, pages - took_s * used / gap_s) for number, gap_s, pages in left]
        left = [one for one in after if one[2] > host_pages * 1e-9]
    packs, visits, taken_on, invocations, files, seconds, asked = sums
    visits = max(1.0, visits)
    return Rounds(
        packs=max(1.0, packs),
        deliveries=visits,  # each has a message of its own, before it or after it
        taken_on=taken_on,
        visits=visits,
        invocations=max(1.0, invocations),
        files=max(1.0, files),
        seconds=seconds,
        hosts=asked / invocations,
        at_once=min(assumed.workers, seconds / lasts_s),
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


def _polite(crawl: Crawl, assumed: Assumed, hosts: float, gap_s: float) -> _Phase:
    """Say what a page takes while so many hosts have pages left, with slots so far apart."""
    host_pages = assumed.pages / assumed.hosts
    full = assumed.batch**FULL
    company = max(1.0, full * (1 - exp(-hosts / full)))
    at_work = min(hosts, assumed.workers * company)
    alone_ms = wait_ms_most(a_second=second(memory_mb=assumed.memory_mb), visits=1)
    # As many together wait for slots so far apart; who comes before there are goes back.
    enough = max(1.0, gap_s * 1000 / alone_ms)
    stays = enough <= company
    company = max(1.0, company - (enough - 1)) if stays else company
    slots = max(1.0, ROUND_S / gap_s) if stays else 1.0
    urls = pages = float(PACK_TARGETS_MAX)
    for _ in range(STEPS):
        urls = pack_urls(OWN_LINKS * assumed.links * pages)
        pages = max(1.0, 1 / (1 / urls + 1 / slots))
    packs = 1 / min(urls, max(1.0, host_pages))
    visits = min(1.0, max(packs, 1 / pages))
    cpu_s = _cpu_s(crawl, assumed, visits)
    if stays:
        seconds = max(gap_s / company, cpu_s)
        # Messages of what was taken on come after the round, all of them together.
        copies = max(packs / assumed.batch, 1 / (at_work * slots))
        invocations = seconds / ROUND_S + copies
        # What comes within the same seconds shares an invocation.
        sharing = 1 + ALONE * at_work / gap_s * (WINDOW_S + ALONE_S)
        seconds += CALLS_S * copies + ALONE * ALONE_S / sharing * (1 - 1 / company)
    else:
        seconds = cpu_s + PACE * assumed.answer_s + CALLS_S + packs * min(gap_s, BLOCK_MS / 1000)
        invocations = visits
    invocations = min(visits, max(invocations, visits / assumed.batch))
    return _Phase(
        packs=packs,
        visits=visits,
        taken_on=packs,
        invocations=invocations,
        # Alone, a pack has nothing to wait for.
        files=visits / (1 + FILE_S * (company - 1) * visits / gap_s),
        seconds=seconds,
        hosts=company,
        pages_a_s=min(at_work / gap_s, assumed.workers / seconds),
    )


def _free(crawl: Crawl, assumed: Assumed, hosts: float, gap_s: float) -> _Phase:
    """Say the same of a crawl without a delay: functions ask as soon as there are packs."""
    host_pages = assumed.pages / assumed.hosts
    batch = min(float(assumed.batch), max(1.0, hosts * host_pages / PACK_TARGETS_MAX))
    asked = _distinct(hosts, batch)
    # Packs of one host share what it answers meanwhile.
    slots = (1 + WAIT_S / gap_s) * asked / batch
    urls = pages = float(PACK_TARGETS_MAX)
    for _ in range(STEPS):
        urls = pack_urls(OWN_LINKS * assumed.links * pages)
        pages = urls if urls <= slots else max(1.0, urls / (urls / slots + VISITS_MORE))
    urls = min(urls, max(1.0, host_pages))
    visits = 1 / min(pages, urls)
    # Of the packs of an invocation.
    pages = batch / visits
    waits_s = max(min(WAIT_S, pages / asked * gap_s), pages * assumed.answer_s / REQUESTS_MAX)
    answer_s = PACE * assumed.answer_s
    cpu_s = pages * _cpu_s(crawl, assumed, 0.0)
    worked_s = max(waits_s + answer_s, cpu_s) + LAST * cpu_s
    packs_s = batch * (_cpu_s(crawl, assumed, 1.0) - _cpu_s(crawl, assumed, 0.0))
    seconds = worked_s + packs_s + CALLS_S
    return _Phase(
        packs=1 / urls,
        visits=visits,
        taken_on=0.0,
        invocations=visits / batch,
        files=visits / batch,
        seconds=visits / batch * seconds,
        hosts=asked,
        pages_a_s=assumed.workers * batch / seconds / visits,
    )


def _cpu_s(crawl: Crawl, assumed: Assumed, packs: float) -> float:
    """How long a page and its share of packs take of the CPU that a function has."""
    whole_ms = assumed.cpu_ms(texts=crawl.texts) + PACK_CPU_MS * packs
    return whole_ms / 1000 / min(1.0, assumed.memory_mb / CPU_MB)


def _distinct(hosts: float, packs: float) -> float:
    packs = max(1.0, packs / CLUMP)
    return min(packs, hosts) if hosts <= 1 else hosts * (1 - (1 - 1 / hosts) ** packs)


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
