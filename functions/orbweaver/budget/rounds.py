"""Model of how often packs (messages with up to 25 URLs) are visited, for `estimate`.

A *visit* processes a pack once. A *round* is the minute during which a function keeps a host
(worker/rounds.py). The model is calibrated against the scale model (docs/scale.md).
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

# Number of pages if it is unknown.
PAGES_ASSUMED = 10_000
# Defaults of a stack on AWS, which infra/config.py imports: concurrent workers, messages per batch,
# memory.
WORKERS, BATCH, MEMORY_MB = 50, 40, Settings().memory_mb
# CPU of a page: fixed, per KB, and the additional share for main texts.
PAGE_CPU_MS, KB_CPU_MS, TEXT_CPU_SHARE = 2.0, 0.1, 0.5
# Length of a round (`round_s`), of a visit's wait without rounds (`wait_s_max`), of the event
# source's wait for a full batch, and of a file's wait for packs (`segment_wait_s`).
ROUND_S, WAIT_S, WINDOW_S, FILE_S = 60.0, 5.0, 1.0, 5.0
# Limit of concurrent requests of a function (`fetch_concurrency`).
REQUESTS_MAX = 64
# Memory that gives a whole CPU, CPU of a pack, time of calls per invocation, and the share of the
# pages' CPU time after the last wait.
CPU_MB, PACK_CPU_MS, CALLS_S, LAST = 1_769, 20.0, 0.2, 0.25
# Share of a page's links that not all pages of its host have.
OWN_LINKS = 0.6
# Hosts that start a round together: the batch size to this power. The rest of a batch are messages
# of packs that were already visited, and messages that arrive at other times.
FULL = 0.9
# Failed URLs return separately, in an invocation of their own if the queue is empty: share of all
# pages, and duration.
ALONE, ALONE_S = 0.005, 2.0
# Without a delay: extra visits per pack, because the last visit is partial, and consecutive packs
# on the queue that one visit produced.
VISITS_MORE, CLUMP = 0.5, 3
# Medians of hosts' response times are lognormal: sigma, and the number of parts in the model. A
# host's pace follows its slower responses.
SPREAD, PARTS, PACE = 0.7, 64, 1.5
# Sizes of packs and new links of a visit depend on each other: number of iterations.
STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Assumptions about the site, its pages as transferred, and the stack."""

    pages: int
    hosts: int = 1
    links: int = 50
    body_bytes: int = 30_000
    answer_s: float = 0.2
    memory_mb: int = MEMORY_MB
    # Stack: concurrent workers, and packs per batch.
    workers: int = WORKERS
    batch: int = BATCH

    def cpu_ms(self, *, texts: bool) -> float:
        """Return the CPU time of a page on a whole CPU."""
        whole = PAGE_CPU_MS + KB_CPU_MS * self.body_bytes / 1000
        return whole * (1 + TEXT_CPU_SHARE) if texts else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Totals of a crawl: packs, deliveries, visits, invocations, and their seconds.

    `packs` are packs that ended, `taken_on` packs visited before their messages arrived, and
    `files` the files of bodies. `hosts` is the mean number of hosts per invocation, and `at_once`
    the mean number of concurrent invocations.
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
    """A time in which the same hosts have pages left. Numbers are per page, except the rate."""

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
        return (
            self.packs, self.visits, self.taken_on, self.invocations, self.files, self.seconds,
            self.hosts * self.invocations,
        )  # fmt: skip


def rounds_of(crawl: Crawl, assumed: Assumptions) -> Rounds:
    """Simulate a crawl by phases. Each phase ends when its fastest hosts are done."""
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
        deliveries=visits,  # each visit has a message, which arrives before or after it
        taken_on=taken_on,
        visits=visits,
        invocations=max(1.0, invocations),
        files=max(1.0, files),
        seconds=seconds,
        hosts=asked / invocations,
        at_once=min(assumed.workers, seconds / lasts_s),
    )


def _speeds(crawl: Crawl, assumed: Assumptions) -> list[tuple[float, float]]:
    """List groups of hosts by the distance of their slots: (number of hosts, seconds)."""
    # Hosts respond at different speeds. At the end only slow hosts remain, and functions wait for
    # them.
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


def _polite(crawl: Crawl, assumed: Assumptions, hosts: float, gap_s: float) -> _Phase:
    """Return the usage per page while `hosts` hosts have pages left, with slots `gap_s` apart."""
    # One pack of a host is in flight, and a function processes the host's packs one after the other
    # until its round ends. A function serves all hosts whose packs arrive at the start of a round,
    # and they share its time. If waiting for a slot costs more than another trip, each page needs a
    # visit.
    host_pages = assumed.pages / assumed.hosts
    full = assumed.batch**FULL
    company = max(1.0, full * (1 - exp(-hosts / full)))
    at_work = min(hosts, assumed.workers * company)
    alone_ms = wait_ms_most(a_second=second(memory_mb=assumed.memory_mb), visits=1)
    # This number of visits must wait together to make waiting cheaper. Earlier ones return to the
    # queue.
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
        # Messages of packs that were already visited arrive together after the round.
        copies = max(packs / assumed.batch, 1 / (at_work * slots))
        invocations = seconds / ROUND_S + copies
        # Messages that arrive within the same seconds share an invocation.
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
        # A single pack does not wait for others.
        files=visits / (1 + FILE_S * (company - 1) * visits / gap_s),
        seconds=seconds,
        hosts=company,
        pages_a_s=min(at_work / gap_s, assumed.workers / seconds),
    )


def _free(crawl: Crawl, assumed: Assumptions, hosts: float, gap_s: float) -> _Phase:
    """Return the usage per page without a delay, where functions request packs at once."""
    host_pages = assumed.pages / assumed.hosts
    batch = min(float(assumed.batch), max(1.0, hosts * host_pages / PACK_TARGETS_MAX))
    asked = _distinct(hosts, batch)
    # Slots per pack while a visit waits. Packs of one host share its slots.
    slots = (1 + WAIT_S / gap_s) * asked / batch
    urls = pages = float(PACK_TARGETS_MAX)
    for _ in range(STEPS):
        urls = pack_urls(OWN_LINKS * assumed.links * pages)
        pages = urls if urls <= slots else max(1.0, urls / (urls / slots + VISITS_MORE))
    urls = min(urls, max(1.0, host_pages))
    visits = 1 / min(pages, urls)
    # Pages per invocation.
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


def _cpu_s(crawl: Crawl, assumed: Assumptions, packs: float) -> float:
    """Return the CPU time of a page and its share of packs, on the function's part of a CPU."""
    whole_ms = assumed.cpu_ms(texts=crawl.texts) + PACK_CPU_MS * packs
    return whole_ms / 1000 / min(1.0, assumed.memory_mb / CPU_MB)


def _distinct(hosts: float, packs: float) -> float:
    packs = max(1.0, packs / CLUMP)
    return min(packs, hosts) if hosts <= 1 else hosts * (1 - (1 - 1 / hosts) ** packs)


def pack_urls(links: float) -> float:
    """Return the mean number of URLs per pack, if a visit finds up to `links` new links."""
    # The number of new links is uniform between 0 and `links` while a site is explored. Each visit
    # gives full packs and a partial one.
    full = float(PACK_TARGETS_MAX)
    if links <= 1:
        return full  # URLs come from sitemaps or seeds
    packs = log(min(links, full))
    if links > full:
        packs += (links - full) / full + log(links / full) / 2
    return min(full, links / max(packs, 1e-9))
