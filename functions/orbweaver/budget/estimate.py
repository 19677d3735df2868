"""Estimate a crawl's usage of AWS and its least duration before it starts.

Every page is assumed to be requested once, without failures. The result is within 25 % of the scale
model (docs/cost.md, bench/scale/bills.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, log1p, sqrt
from typing import TYPE_CHECKING

from orbweaver.budget.billing_units import Stage, Term, Units
from orbweaver.budget.rounds import OWN_LINKS, ROUND_S, Assumptions, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.politeness.host_schedule import spacing_ms
from orbweaver.politeness.pacer import BLOCK_MS

if TYPE_CHECKING:
    from orbweaver.budget.rounds import Rounds

# Messages per request of SQS.
MESSAGES = 10
# Duration of a cold start (docs/scale.md), and approximate lifetime of a container.
INIT_S, CONTAINER_S = 0.9, 7_200
# Invocations come in bursts, so there are PEAK containers per busy one, and PEAK_LEAST more.
# Without a delay, all possible containers start: FIRST at once, and MORE_A_S more each second.
PEAK, PEAK_LEAST, FIRST, MORE_A_S = 2.0, 2, 5, 5
# Shares of a page's links: looked up in the table by a single container, and claimed in vain
# because another pack claims them at the same moment.
LOOKED_UP, LOST = 0.01, 0.0015
# MISSED: limit of links per page that the host's file of claims lacks, because another container
# has just found them. WRITTEN: such files written per file read.
MISSED, WRITTEN = 1.5, 0.09
# Bytes of a journal per URL, and without URLs. Bytes of a record, of a request and of a response's
# acknowledgements, and of an invocation's log.
URL_BYTES, JOURNAL_BYTES, RECORD_BYTES = 160, 300, 700
REQUEST_BYTES, ACK_BYTES, ACKED_BYTES, LOG_BYTES = 230, 52, 2_896, 1_100
# MB-milliseconds to export a record, with a function of 1,024 MB.
EXPORT_MB_MS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Usage of a crawl, and its least duration with any number of functions."""

    units: Units
    least_s: float


def estimate(crawl: Crawl, assumed: Assumptions) -> Estimate:
    rounds = rounds_of(crawl, assumed)
    at_once = _at_once(crawl, assumed, rounds)
    units = Units()
    for part, number in (
        (
            _per_page(crawl, assumed, _knowing(crawl, assumed, rounds, at_once)),
            float(assumed.pages),
        ),
        (_per_pack(crawl, assumed, rounds), 1.0),
        (_per_invocation(crawl, rounds), rounds.invocations),
    ):
        for (term, stage), used in part.items():
            units.use(term, stage, ceil(used * number))
    if crawl.bodies is not Bodies.OFF or crawl.texts:
        units.use(Term.S3_PUT, Stage.BODIES, ceil(rounds.files))
    if _travels(crawl):
        read = rounds.hosts * max(rounds.seconds / ROUND_S, 1.0)
        units.use(Term.S3_GET, Stage.BODIES, ceil(read))
        units.use(Term.S3_PUT, Stage.BODIES, ceil(WRITTEN * read))
    units.use(Term.S3_PUT, Stage.EXPORT, 4)
    units.use(Term.EVENTS, Stage.ANNOUNCE, 1)
    spacing_s = spacing_ms(crawl.delay_ms) / 1000
    slots_s = spacing_s or assumed.answer_s / crawl.concurrency
    least_s = slots_s * assumed.pages / assumed.hosts
    begun_s = INIT_S * _containers(at_once, rounds.seconds)
    units.use(Term.MB_MS, Stage.RUN, ceil(begun_s * 1000 * assumed.memory_mb))
    return Estimate(units=units, least_s=least_s)


def _at_once(crawl: Crawl, assumed: Assumptions, rounds: Rounds) -> int:
    if crawl.delay_ms:
        wanted = PEAK * rounds.at_once + PEAK_LEAST
    else:
        # As many containers as AWS has added by the end. A crawl spreads only once it has found
        # enough URLs.
        wanted = min(
            rounds.invocations / 4, FIRST * sqrt(1 + 2 * MORE_A_S / FIRST**2 * rounds.seconds)
        )
    return max(1, min(assumed.workers, ceil(wanted), ceil(rounds.invocations)))


def _travels(crawl: Crawl) -> bool:
    """Return True if workers hand on the known claims of a host in a file."""
    return bool(crawl.delay_ms) and not crawl.continuous


def _knowing(crawl: Crawl, assumed: Assumptions, rounds: Rounds, at_once: int) -> float:
    """Return the expected number of containers that process a host."""
    if not crawl.delay_ms:
        return float(at_once)
    host_rounds = rounds.hosts * rounds.seconds / ROUND_S / assumed.hosts
    return at_once * (1 - exp(max(1.0, host_rounds) * log1p(-1 / at_once))) if at_once > 1 else 1.0


def _containers(at_once: int, busy_s: float) -> int:
    """Return the number of cold starts, for `at_once` containers and `busy_s` of work."""
    return at_once * ceil(max(1.0, busy_s / at_once / CONTAINER_S))


def _per_page(
    crawl: Crawl, assumed: Assumptions, containers: float
) -> Mapping[tuple[Term, Stage], float]:
    acks = ceil(assumed.body_bytes / ACKED_BYTES)
    # A container remembers the URLs that it has seen. So each container looks up each URL once that
    # others have found.
    others = (containers - 1) * (1 - exp(-OWN_LINKS * assumed.links / containers))
    if _travels(crawl):
        others = min(others, MISSED)
    return {
        (Term.WRITE, Stage.CLAIM): 1 + LOST * assumed.links,
        (Term.READ_HALVES, Stage.LOOKUP): LOOKED_UP * assumed.links + others,
        (Term.WRITE, Stage.STORE): 1,
        (Term.SENT_BYTES, Stage.WEB): REQUEST_BYTES + ACK_BYTES * acks,
        (Term.READ_HALVES, Stage.EXPORT): RECORD_BYTES / 4096,
        (Term.MB_MS, Stage.EXPORT): EXPORT_MB_MS,
    }


def _per_pack(
    crawl: Crawl, assumed: Assumptions, rounds: Rounds
) -> Mapping[tuple[Term, Stage], float]:
    """List the usage of all packs (messages with up to 25 URLs)."""
    visits, taken_on = rounds.visits, rounds.taken_on
    journal_bytes = JOURNAL_BYTES * visits + URL_BYTES * assumed.pages
    # Each visit sends messages, except most last visits of packs.
    sent = max(0.3 * visits, visits - rounds.packs)
    units = {
        # Packs found in one visit are sent together.
        (Term.SQS, Stage.SEND): 1.15 * sent,
        # Journal, ledger and strikes of each pack.
        (Term.READ_HALVES, Stage.RECALL): 6 * (rounds.deliveries + taken_on),
        (Term.READ_HALVES, Stage.HOST): 2 * visits,
        (Term.WRITE, Stage.JOURNAL): journal_bytes / 1024 + visits / 2,
        # A ledger for each pack, and counters for packs that share a file, in a transaction of two
        # KB. Then a note that the next packs were sent.
        (Term.WRITE, Stage.COMMIT): 2 * visits + 4 * rounds.files,
        (Term.WRITE, Stage.SENT): sent,
        (Term.MB_MS, Stage.RUN): rounds.seconds * 1000 * assumed.memory_mb,
    }
    if crawl.delay_ms:
        # Slots are reserved by block, and for the rest of a pack. A host is read every few seconds.
        blocks = assumed.pages / max(1, BLOCK_MS // crawl.delay_ms)
        units |= {
            (Term.READ_HALVES, Stage.HOST): 2 * max(visits, blocks),
            (Term.WRITE, Stage.HOST): min(float(assumed.pages), visits + blocks),
            # One pack of a host is in flight, the others wait in a table. Each is added, taken and
            # removed, in two writes, and removed once more if its message comes later. It is read
            # as often.
            (Term.SQS, Stage.SEND): visits,
            (Term.WRITE, Stage.SEND): 4 * visits + 2 * taken_on,
            (Term.READ_HALVES, Stage.SEND): 4 * visits + 2 * taken_on,
            (Term.WRITE, Stage.SENT): visits,
        }
    return units


def _per_invocation(crawl: Crawl, rounds: Rounds) -> Mapping[tuple[Term, Stage], float]:
    # If no pack follows from a pack, the crawl may be complete, so all its counters are read.
    looks = 1 - exp(-rounds.packs / rounds.invocations)
    return {
        # Requests to SQS: up to ten messages each, received and deleted.
        (Term.SQS, Stage.RECEIVE): 2 * ceil(rounds.deliveries / rounds.invocations / MESSAGES),
        (Term.READ_HALVES, Stage.CRAWL): 2,
        (Term.READ_HALVES, Stage.ANNOUNCE): looks * (2 + 2 * crawl.shards),
        (Term.INVOCATIONS, Stage.RUN): 1,
        (Term.LOG_BYTES, Stage.RUN): LOG_BYTES,
    }
