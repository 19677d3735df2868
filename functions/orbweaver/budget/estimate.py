"""An estimate of a crawl's usage and least duration, before it has begun.

It has the terms and stages that the meter counts (budget/billing_units.py), and follows from a
definition and what is assumed of site and stack. `budget/rounds.py` says how often URLs go round
and how long functions wait. This module turns that into units: by the page, by packs delivered and
visited, by invocations.

- Every page is claimed, asked for and recorded once. Nothing fails, nothing is asked again.
- A pack is recalled whenever it is delivered, and journaled and committed whenever something of it
  was asked for. The packs of an invocation commit together.
- Every container begins once, which is billed like its work, and is replaced after some time.
- A container remembers which URLs it has seen. Without a delay each looks up a URL once that others
  have found: the more of them there are, the more links of a page are looked up. With one, what is
  known of a host's claims travels with it by a file, read once a round and host, and few links are
  looked up. Few turn out to be claimed by others just now.
- Within 25 % of the scale model (docs/cost.md, bench/scale/bills.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, log1p, sqrt
from typing import TYPE_CHECKING

from orbweaver.budget.billing_units import Stage, Term, Units
from orbweaver.budget.rounds import OWN_LINKS, ROUND_S, Assumed, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.politeness.host_schedule import spacing_ms
from orbweaver.politeness.pacer import BLOCK_MS

if TYPE_CHECKING:
    from orbweaver.budget.rounds import Rounds

# Messages of a request of SQS.
MESSAGES = 10
# A container's beginning (docs/scale.md), and how long AWS keeps one, about.
INIT_S, CONTAINER_S = 0.9, 7_200
# Invocations come in crowds: how many containers there are for each that is busy on average, and
# beside. Without a delay all come that may: so many at first, and so many more each second.
PEAK, PEAK_LEAST, FIRST, MORE_A_S = 2.0, 2, 5, 5
# Of a page's links: looked up by a container that is alone, and claimed in vain.
LOOKED_UP, LOST = 0.01, 0.0015
# Links of a page that another container found just before it handed a host on, at most; and files
# of claims that are written, for each that is read.
MISSED, WRITTEN = 1.5, 0.09
# Bytes of a journal: of a URL, and beside those. Bytes of a record, a request and its answer's
# acknowledgements, and of an invocation's log.
URL_BYTES, JOURNAL_BYTES, RECORD_BYTES = 160, 300, 700
REQUEST_BYTES, ACK_BYTES, ACKED_BYTES, LOG_BYTES = 230, 52, 2_896, 1_100
# What exporting a record takes of a function with 1,024 MB.
EXPORT_MB_MS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a crawl will use, and how long it takes at least however many functions there are."""

    units: Units
    least_s: float


def estimate(crawl: Crawl, assumed: Assumed) -> Estimate:
    """Say what a crawl of so many pages will use."""
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


def _at_once(crawl: Crawl, assumed: Assumed, rounds: Rounds) -> int:
    """How many containers there are at once, at most."""
    if crawl.delay_ms:
        wanted = PEAK * rounds.at_once + PEAK_LEAST
    else:
        # As many as AWS has added until the work is done; a crawl is found out before it spreads.
        wanted = min(
            rounds.invocations / 4, FIRST * sqrt(1 + 2 * MORE_A_S / FIRST**2 * rounds.seconds)
        )
    return max(1, min(assumed.workers, ceil(wanted), ceil(rounds.invocations)))


def _travels(crawl: Crawl) -> bool:
    """Whether what is known of a host's claims travels with it."""
    return bool(crawl.delay_ms) and not crawl.continuous


def _knowing(crawl: Crawl, assumed: Assumed, rounds: Rounds, at_once: int) -> float:
    """How many containers come to know of a host, of those that may have a round of it."""
    if not crawl.delay_ms:
        return float(at_once)
    host_rounds = rounds.hosts * rounds.seconds / ROUND_S / assumed.hosts
    return at_once * (1 - exp(max(1.0, host_rounds) * log1p(-1 / at_once))) if at_once > 1 else 1.0


def _containers(at_once: int, busy_s: float) -> int:
    """How many containers begin, with so many at once and so much to do."""
    return at_once * ceil(max(1.0, busy_s / at_once / CONTAINER_S))


def _per_page(
    crawl: Crawl, assumed: Assumed, containers: float
) -> Mapping[tuple[Term, Stage], float]:
    acks = ceil(assumed.body_bytes / ACKED_BYTES)
    # Each container but the one that found a URL comes by it for the first time, or never.
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


def _per_pack(crawl: Crawl, assumed: Assumed, rounds: Rounds) -> Mapping[tuple[Term, Stage], float]:
    """List what packs take in all: delivered, visited, taken on."""
    visits, taken_on = rounds.visits, rounds.taken_on
    journal_bytes = JOURNAL_BYTES * visits + URL_BYTES * assumed.pages
    # All visits but the last of a pack have something to send, and some of those.
    sent = max(0.3 * visits, visits - rounds.packs)
    units = {
        # Packs that one visit found travel together.
        (Term.SQS, Stage.SEND): 1.15 * sent,
        # Journal, ledger and strikes of each pack.
        (Term.READ_HALVES, Stage.RECALL): 6 * (rounds.deliveries + taken_on),
        (Term.READ_HALVES, Stage.HOST): 2 * visits,
        (Term.WRITE, Stage.JOURNAL): journal_bytes / 1024 + visits / 2,
        # A ledger for each pack, and counters for those that share a file, in a transaction of two
        # KB; that it is sent.
        (Term.WRITE, Stage.COMMIT): 2 * visits + 4 * rounds.files,
        (Term.WRITE, Stage.SENT): sent,
        (Term.MB_MS, Stage.RUN): rounds.seconds * 1000 * assumed.memory_mb,
    }
    if crawl.delay_ms:
        # Slots by the block, and for a pack's rest; a host is looked at every few seconds.
        blocks = assumed.pages / max(1, BLOCK_MS // crawl.delay_ms)
        units |= {
            (Term.READ_HALVES, Stage.HOST): 2 * max(visits, blocks),
            (Term.WRITE, Stage.HOST): min(float(assumed.pages), visits + blocks),
            # One pack of a host is out, the others wait: put, taken and left, in two writes, and
            # left once more with its message where that comes later; looked at as often.
            (Term.SQS, Stage.SEND): visits,
            (Term.WRITE, Stage.SEND): 4 * visits + 2 * taken_on,
            (Term.READ_HALVES, Stage.SEND): 4 * visits + 2 * taken_on,
            (Term.WRITE, Stage.SENT): visits,
        }
    return units


def _per_invocation(crawl: Crawl, rounds: Rounds) -> Mapping[tuple[Term, Stage], float]:
    # Where a pack leads to nothing more, the crawl may be finished, which all of its counters say.
    looks = 1 - exp(-rounds.packs / rounds.invocations)
    return {
        # Ten messages at once, received and deleted.
        (Term.SQS, Stage.RECEIVE): 2 * ceil(rounds.deliveries / rounds.invocations / MESSAGES),
        (Term.READ_HALVES, Stage.CRAWL): 2,
        (Term.READ_HALVES, Stage.ANNOUNCE): looks * (2 + 2 * crawl.shards),
        (Term.INVOCATIONS, Stage.RUN): 1,
        (Term.LOG_BYTES, Stage.RUN): LOG_BYTES,
    }
