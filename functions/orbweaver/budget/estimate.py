"""Estimate a crawl's usage of AWS and its least duration before it starts.

Every page is assumed to be requested once, without failures. A *visit* processes a pack (message
with up to 25 URLs) once. A *round* is the minute during which a function keeps a host
(worker/rounds.py). The result is within 30 % of the scale model
(docs/evidence/cost.md, bench/scale/bills.json).
"""

from __future__ import annotations

from math import ceil, exp, sqrt

from orbweaver.budget.billing_units import Stage, Term, Units
from orbweaver.budget.prices import (
    COUNTERS,
    JOURNAL_BYTES,
    LEDGER,
    NOTE,
    RECALL_HALVES,
    RECORD,
    URL_BYTES,
    second,
    wait_ms_most,
)
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.settings import Settings
from orbweaver.model.value import value_class
from orbweaver.politeness.host_schedule import spacing_ms
from orbweaver.politeness.pacer import BLOCK_MS

# Assumed number of pages if a crawl has no limit of pages.
PAGES_ASSUMED = 10_000
# Defaults of a stack on AWS, which infra/config.py imports: concurrent workers, messages per batch,
# memory.
WORKERS, BATCH, MEMORY_MB = 50, 40, Settings().function.memory_mb
# CPU time of a page: fixed part, part per KB, and additional share for main texts. Then the CPU
# time of a visit.
PAGE_CPU_MS, KB_CPU_MS, TEXT_CPU_SHARE, VISIT_CPU_MS = 2.0, 0.1, 0.5, 20.0
# Memory with which Lambda gives a function a whole CPU. Time of an invocation's calls to AWS.
CPU_MB, CALLS_S = 1_769, 0.2
# Length of a round (`round_s`), of a visit's wait without rounds (`wait_s_max`), and of a file's
# wait for packs (`segment_wait_s`).
ROUND_S, WAIT_S, FILE_S = 60.0, 5.0, 5.0
# Limit of concurrent requests of a function (`fetch_concurrency`), and messages per SQS request.
REQUESTS_MAX, MESSAGES = 64, 10
# Factor for response times: they vary, and a host's pace follows the slower ones.
PACE = 1.5
# Mean number of URLs per pack, because visits also send partial packs: with a delay (visits end
# early), without a delay, and per new link of a page.
PACK_URLS, PACK_URLS_FREE, LINK_URLS = 16, 22, 3
# Share of a page's links that are not on every page of the host.
OWN_LINKS = 0.6
# Number of hosts in a batch. With a delay: the batch size to the power of FULL, because the other
# messages belong to packs already visited. Without a delay: the batch size divided by CLUMP,
# because a visit sends several packs of one host at once.
FULL, CLUMP = 0.9, 5
# Duration of a cold start (docs/evidence/scale.md), and approximate lifetime of a container.
INIT_S, CONTAINER_S = 0.9, 7_200
# Invocations come in bursts, so there are PEAK containers per busy one, and PEAK_LEAST more.
# Without a delay, all possible containers start: FIRST at once, and MORE_A_S more each second.
PEAK, PEAK_LEAST, FIRST, MORE_A_S = 2.0, 2, 5, 5
# Shares of a page's links: links that a single container looks up in the table, and links claimed
# in vain, because another pack claims them at the same moment.
LOOKED_UP, LOST = 0.01, 0.0015
# MISSED: at most this number of a page's links is missing in the host's file of known claims,
# because another container has just found them. WRITTEN: such files written per file read.
MISSED, WRITTEN = 1.5, 0.09
# Bytes of a record, of a request, of a response's acknowledgements, and of an invocation's log.
RECORD_BYTES, REQUEST_BYTES, ACK_BYTES, ACKED_BYTES, LOG_BYTES = 700, 230, 52, 2_896, 1_100
# MB-milliseconds to export a record, with a function of 1,024 MB. Number of files of an export.
EXPORT_MB_MS, EXPORT_FILES = 300, 4


@value_class
class Assumptions:
    """Assumptions about the site, the stack and the pages.

    `links` is the number per page, and `body_bytes` a page's size as transferred.
    """

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
        """Return a page's CPU time on a whole CPU. `texts`: the crawl extracts main texts."""
        whole = PAGE_CPU_MS + KB_CPU_MS * self.body_bytes / 1000
        return whole * (1 + TEXT_CPU_SHARE) if texts else whole


@value_class
class Work:
    """Totals of a crawl, and the numbers of hosts and containers at work at the same time.

    `hosts` is the number that one function serves. `files` counts files of bodies.
    """

    packs: float
    visits: float
    invocations: float
    files: float
    seconds: float
    hosts: float
    containers: int


@value_class
class Estimate:
    """Usage of a crawl, and its shortest duration, however many functions work on it."""

    units: Units
    least_s: float


def work_of(crawl: Crawl, assumed: Assumptions) -> Work:
    pages, delayed = assumed.pages, bool(crawl.delay_ms)
    host_pages, answer_s = pages / assumed.hosts, PACE * assumed.answer_s
    gap_s = max(1e-3, assumed.answer_s / max(1, crawl.concurrency))  # between a host's requests
    if delayed:
        gap_s = max(gap_s, spacing_ms(max(crawl.delay_ms, round(answer_s * 1000))) / 1000)
    urls = min(PACK_URLS if delayed else PACK_URLS_FREE, max(1.0, host_pages))
    if (new_links := OWN_LINKS * assumed.links) >= 1:  # otherwise URLs come from sitemaps
        urls = min(urls, LINK_URLS * new_links)
    packs = pages / urls
    batch = min(float(assumed.batch), max(1.0, packs))
    # Hosts that a function serves at a time. They share its time.
    full = batch**FULL if delayed else batch / CLUMP
    hosts = max(1.0, assumed.hosts * (1 - exp(-full / assumed.hosts)))
    # Slots of a pack in a visit. With a delay, a host has one leased pack.
    slots = ROUND_S / gap_s if delayed else (1 + WAIT_S / gap_s) * hosts / batch
    if delayed:
        # This number of hosts must wait together to make waiting cheaper than another invocation.
        a_second = second(memory_mb=assumed.memory_mb)
        enough = max(1.0, gap_s * 1000 / wait_ms_most(a_second=a_second, visits=1))
        slots = slots if enough <= hosts else 0.0
        hosts = max(1.0, hosts - (enough - 1))
    visited = urls * slots / (urls + slots) if delayed else min(urls, slots)
    visits = max(packs, pages / max(1.0, visited))
    cpu_share = min(1.0, assumed.memory_mb / CPU_MB)
    page_s, visit_s = assumed.cpu_ms(texts=crawl.texts) / 1000, VISIT_CPU_MS / 1000
    seconds = (pages * page_s + visits * visit_s) / cpu_share
    if not slots:  # each page needs an invocation
        invocations = visits
        seconds += pages * answer_s + packs * min(gap_s, BLOCK_MS / 1000)
    else:
        seconds = max(seconds, pages * max(gap_s / hosts, assumed.answer_s / REQUESTS_MAX))
        invocations = seconds / ROUND_S + packs / assumed.batch if delayed else visits / batch
        invocations = max(1.0, visits / assumed.batch, min(invocations, visits))
        seconds += 0.0 if delayed else invocations * answer_s
    seconds += CALLS_S * invocations
    if delayed:
        containers = PEAK * seconds / (host_pages * gap_s) + PEAK_LEAST
    else:
        # As many as AWS has added by the end. A crawl spreads once it has found enough URLs.
        added = FIRST * sqrt(1 + 2 * MORE_A_S / FIRST**2 * seconds)
        containers = min(invocations / 4, added)
    return Work(
        packs=packs,
        visits=visits,
        invocations=invocations,
        files=max(invocations, min(visits, seconds / FILE_S) if delayed else 0.0),
        seconds=seconds,
        hosts=hosts,
        containers=max(1, ceil(min(assumed.workers, containers, invocations))),
    )


def estimate(crawl: Crawl, assumed: Assumptions) -> Estimate:
    work, pages, delayed = work_of(crawl, assumed), assumed.pages, bool(crawl.delay_ms)
    visits, invocations, at_once = work.visits, work.invocations, work.containers
    taken_on = work.packs if delayed else 0.0  # packs visited before their messages arrived
    # Each visit sends messages. Without a delay, most last visits of packs do not.
    sent = visits if delayed else max(0.3 * visits, visits - work.packs)
    # A container remembers the URLs that it has seen. So each container looks up each URL once that
    # others have found.
    others = (at_once - 1) * (1 - exp(-OWN_LINKS * assumed.links / at_once))
    shared = 0.0  # files in which workers hand on the known claims of a host
    if delayed and not crawl.continuous:
        others = min(others, MISSED)
        shared = work.hosts * max(work.seconds / ROUND_S, 1.0)
    # With a delay, slots are reserved by block, and for the rest of a pack.
    blocks = pages / max(1, BLOCK_MS // crawl.delay_ms) if delayed else 0.0
    # One pack of a host is leased, the others wait in a table. Each is added, taken and removed,
    # in two writes, and removed once more if its message comes later. It is read as often.
    waiting = 4 * visits + 2 * taken_on if delayed else 0.0
    # If no pack follows from a pack, the crawl may be complete, so all its counters are read.
    looks = 1 - exp(-work.packs / invocations)
    started = at_once * ceil(max(1.0, work.seconds / at_once / CONTAINER_S))
    keeps = crawl.bodies is not Bodies.OFF or crawl.texts or crawl.links
    stored = work.files if keeps else 0.0
    acks = ceil(assumed.body_bytes / ACKED_BYTES)
    used: dict[tuple[Term, Stage], float] = {
        (Term.SQS, Stage.RECEIVE): 2 * invocations * ceil(visits / invocations / MESSAGES),
        (Term.READ_HALVES, Stage.RECALL): RECALL_HALVES * (visits + taken_on),
        (Term.READ_HALVES, Stage.CRAWL): 2 * invocations,
        (Term.READ_HALVES, Stage.HOST): 2 * max(visits, blocks),
        (Term.WRITE, Stage.HOST): min(float(pages), visits + blocks) if delayed else 0.0,
        (Term.SENT_BYTES, Stage.WEB): pages * (REQUEST_BYTES + ACK_BYTES * acks),
        (Term.READ_HALVES, Stage.LOOKUP): pages * (LOOKED_UP * assumed.links + others),
        (Term.S3_GET, Stage.BODIES): shared,
        (Term.S3_PUT, Stage.BODIES): ceil(stored) + WRITTEN * shared,
        (Term.WRITE, Stage.JOURNAL): (JOURNAL_BYTES * visits + URL_BYTES * pages) / 1024
        + visits / 2,
        (Term.WRITE, Stage.CLAIM): pages * (1 + LOST * assumed.links),
        (Term.WRITE, Stage.STORE): pages * RECORD,
        (Term.WRITE, Stage.COMMIT): LEDGER * visits + COUNTERS * work.files,
        (Term.SQS, Stage.SEND): sent,
        (Term.WRITE, Stage.SEND): waiting,
        (Term.READ_HALVES, Stage.SEND): waiting,
        (Term.WRITE, Stage.SENT): NOTE * sent,
        (Term.READ_HALVES, Stage.ANNOUNCE): looks * (2 + 2 * crawl.shards) * invocations,
        (Term.EVENTS, Stage.ANNOUNCE): 1,
        (Term.READ_HALVES, Stage.EXPORT): pages * RECORD_BYTES / 4096,
        (Term.S3_PUT, Stage.EXPORT): EXPORT_FILES,
        (Term.MB_MS, Stage.EXPORT): pages * EXPORT_MB_MS,
        (Term.MB_MS, Stage.RUN): 1000 * assumed.memory_mb * (work.seconds + INIT_S * started),
        (Term.INVOCATIONS, Stage.RUN): invocations,
        (Term.LOG_BYTES, Stage.RUN): LOG_BYTES * invocations,
    }
    slot_s = spacing_ms(crawl.delay_ms) / 1000 or assumed.answer_s / crawl.concurrency
    return Estimate(
        units=Units({key: ceil(number) for key, number in used.items() if number}),
        least_s=slot_s * pages / assumed.hosts,
    )
