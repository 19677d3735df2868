"""What a crawl will use and how long it takes at least, before it has begun.

The same terms and stages as the meter counts (core/units.py), from what a definition says and what
is assumed about the site. How many requests a pack, a visit and an invocation take was counted in
crawls of 10,000 generated pages; what they are made of says `_per_invocation`.

- Every page is claimed, asked for and recorded once. Nothing fails, nothing is asked again.
- Without a delay, an invocation takes ten full packs, and ends when CPU or answers let it.
- With one, it waits a few seconds for slots of the hosts that it has packs of: a host gives one
  every delay. What got none returns, which is a visit more. So a crawl of one slow host pays for
  waiting, and one of many hosts for pages.
- Every container begins once, which is billed like its work, and is replaced after some time. There
  are as many at once as their work takes in the time that the crawl lasts at least.
- A container remembers which URLs it has seen. Of the links of a page, few are looked up, and fewer
  turn out to be claimed by others just now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from orbweaver.core.crawl import Bodies
from orbweaver.core.politeness import spacing_ms
from orbweaver.core.units import Stage, Term, Units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.core.crawl import Crawl

# Messages of an invocation, and URLs of a pack: 25 at most.
PACKS, PACK_URLS = 10, 20
# How long a visit waits for slots; how many requests a function makes at once; a whole CPU.
WAIT_S, REQUESTS_MAX, CPU_MB = 5.0, 64, 1_769
# A container's beginning (docs/scale.md), how long AWS keeps one, about, and how many there may be.
INIT_S, CONTAINER_S, CONTAINERS_MAX = 0.9, 7_200, 50
# CPU of a page: whatever it holds, and by the KB, with main texts half as much again.
PAGE_CPU_MS, KB_CPU_MS, TEXT_CPU_SHARE = 2.0, 0.1, 0.5
# What calls take beside what is done meanwhile, by the invocation.
CALLS_S = 0.2
# Of a page's links: looked up, and claimed in vain.
LOOKED_UP, LOST = 0.01, 0.0015
# Bytes of a journal: of a URL, and beside those. Bytes of a record, a request and its answer's
# acknowledgements, and of an invocation's log.
URL_BYTES, JOURNAL_BYTES, RECORD_BYTES = 160, 300, 700
REQUEST_BYTES, ACK_BYTES, ACKED_BYTES, LOG_BYTES = 230, 52, 2_896, 1_100
# What exporting a record takes of a function with 1,024 MB.
EXPORT_MB_MS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What is taken to be so: of the site, of pages on the wire, and of the function."""

    pages: int
    hosts: int = 1
    links: int = 50
    body_bytes: int = 30_000
    answer_s: float = 0.2
    memory_mb: int = 1_024

    def cpu_ms(self, *, texts: bool) -> float:
        """How long a page takes on a whole CPU."""
        whole = PAGE_CPU_MS + KB_CPU_MS * self.body_bytes / 1000
        return whole * (1 + TEXT_CPU_SHARE) if texts else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a crawl will use, and how long it takes at least however many functions there are."""

    units: Units
    least_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Invocation:
    """What one comes to: pages, visits to packs, and hosts that it asks; how long it takes."""

    pages: float
    visits: int
    hosts: int
    seconds: float


def estimate(crawl: Crawl, assumed: Assumed) -> Estimate:
    """Say what a crawl of so many pages will use."""
    one = _invocation(crawl, assumed)
    units = Units()
    for part, number in (
        (_per_page(assumed), assumed.pages),
        (_per_invocation(crawl, assumed, one), assumed.pages / one.pages),
    ):
        for (term, stage), used in part.items():
            units.use(term, stage, ceil(used * number))
    units.use(Term.S3_PUT, Stage.EXPORT, 4)
    units.use(Term.EVENTS, Stage.ANNOUNCE, 1)
    spacing_s = spacing_ms(crawl.delay_ms) / 1000
    slots_s = spacing_s or assumed.answer_s / crawl.concurrency
    least_s = slots_s * assumed.pages / assumed.hosts
    begun_s = INIT_S * _containers(assumed.pages / one.pages, one.seconds, least_s)
    units.use(Term.MB_MS, Stage.RUN, ceil(begun_s * 1000 * assumed.memory_mb))
    return Estimate(units=units, least_s=least_s)


def _containers(invocations: float, seconds: float, least_s: float) -> int:
    """How many containers begin, for so many invocations in at least so long."""
    busy_s = invocations * seconds
    at_once = min(CONTAINERS_MAX, ceil(invocations), ceil(busy_s / max(least_s, seconds)))
    return at_once * ceil(max(1.0, busy_s / at_once / CONTAINER_S))


def _invocation(crawl: Crawl, assumed: Assumed) -> _Invocation:
    hosts = min(assumed.hosts, PACKS)
    spacing_s = spacing_ms(crawl.delay_ms) / 1000
    if spacing_s:
        # Packs of one host wait for the same slots.
        asked = min(PACKS * PACK_URLS // hosts, 1 + int(WAIT_S / spacing_s))
        pages, visits = hosts * asked, hosts * ceil(asked / PACK_URLS)
        waits_s = (asked - 1) * spacing_s + assumed.answer_s
    else:
        pages, visits = PACKS * PACK_URLS, PACKS
        at_once = min(REQUESTS_MAX, crawl.concurrency * hosts)
        waits_s = pages / at_once * assumed.answer_s
    pages = min(pages, assumed.pages)
    cpu_s = pages * assumed.cpu_ms(texts=crawl.texts) / 1000
    seconds = max(waits_s, cpu_s / min(1.0, assumed.memory_mb / CPU_MB)) + CALLS_S
    return _Invocation(pages=pages, visits=visits, hosts=hosts, seconds=seconds)


def _per_page(assumed: Assumed) -> Mapping[tuple[Term, Stage], float]:
    """List what every page takes."""
    acks = ceil(assumed.body_bytes / ACKED_BYTES)
    return {
        (Term.WRITE, Stage.CLAIM): 1 + LOST * assumed.links,
        (Term.READ_HALVES, Stage.LOOKUP): LOOKED_UP * assumed.links,
        (Term.WRITE, Stage.STORE): 1,
        (Term.SENT_BYTES, Stage.WEB): REQUEST_BYTES + ACK_BYTES * acks,
        (Term.READ_HALVES, Stage.EXPORT): RECORD_BYTES / 4096,
        (Term.MB_MS, Stage.EXPORT): EXPORT_MB_MS,
    }


def _per_invocation(
    crawl: Crawl, assumed: Assumed, one: _Invocation
) -> Mapping[tuple[Term, Stage], float]:
    """List what an invocation takes beside its pages."""
    visits = one.visits
    journal_bytes = JOURNAL_BYTES * visits + URL_BYTES * one.pages
    return {
        # Ten messages at once, received and deleted; sent with others of their batch.
        (Term.SQS, Stage.RECEIVE): 2 * ceil(visits / PACKS),
        (Term.SQS, Stage.SEND): 0.35 * visits,
        # Journal, ledger and strikes of each pack; the crawl; the hosts, and slots of theirs.
        (Term.READ_HALVES, Stage.RECALL): 6 * visits,
        (Term.READ_HALVES, Stage.CRAWL): 2,
        (Term.READ_HALVES, Stage.HOST): 4 * one.hosts,
        (Term.WRITE, Stage.HOST): one.hosts if crawl.delay_ms else 0,
        (Term.WRITE, Stage.JOURNAL): journal_bytes / 1024 + visits / 2,
        # A ledger for each pack and counters for some together, in transactions; that it is sent.
        (Term.WRITE, Stage.COMMIT): 2 * visits + 2,
        (Term.WRITE, Stage.SENT): 0.3 * visits,
        (Term.S3_PUT, Stage.BODIES): 1 if crawl.bodies is not Bodies.OFF or crawl.texts else 0,
        (Term.INVOCATIONS, Stage.RUN): 1,
        (Term.LOG_BYTES, Stage.RUN): LOG_BYTES,
        (Term.MB_MS, Stage.RUN): one.seconds * 1000 * assumed.memory_mb,
    }
