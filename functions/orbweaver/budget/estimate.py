"""An estimate of a crawl's usage and least duration, before it has begun.

It has the terms and stages that the meter counts (budget/billing_units.py), and follows from a
definition and what is assumed of site and stack. `budget/rounds.py` says how often URLs go round
and how long functions wait. This module turns that into units: by the page, by packs delivered and
visited, by invocations.

- Every page is claimed, asked for and recorded once. Nothing fails, nothing is asked again.
- A pack is recalled whenever it is delivered, and journaled and committed whenever something of it
  was asked for. The packs of an invocation commit together.
- Every container begins once, which is billed like its work, and is replaced after some time.
- A container remembers which URLs it has seen, so each looks up a URL once that others have found:
  the more of them there are, the more links of a page are looked up. Few turn out to be claimed by
  others just now.
- Within 25 % of the scale model (docs/cost.md, bench/scale/bills.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, sqrt
from typing import TYPE_CHECKING

from orbweaver.budget.billing_units import Stage, Term, Units
from orbweaver.budget.rounds import OWN_LINKS, Assumed, rounds_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.politeness.host_schedule import spacing_ms

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
        (_per_page(assumed, at_once), float(assumed.pages)),
        (_per_pack(crawl, assumed, rounds), 1.0),
        (_per_invocation(crawl, rounds), rounds.invocations),
    ):
        for (term, stage), used in part.items():
            units.use(term, stage, ceil(used * number))
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


def _containers(at_once: int, busy_s: float) -> int:
    """How many containers begin, with so many at once and so much to do."""
    return at_once * ceil(max(1.0, busy_s / at_once / CONTAINER_S))


def _per_page(assumed: Assumed, containers: int) -> Mapping[tuple[Term, Stage], float]:
    acks = ceil(assumed.body_bytes / ACKED_BYTES)
    # Each container but the one that found a URL comes by it for the first time, or never.
    others = (containers - 1) * (1 - exp(-OWN_LINKS * assumed.links / containers))
    return {
        (Term.WRITE, Stage.CLAIM): 1 + LOST * assumed.links,
        (Term.READ_HALVES, Stage.LOOKUP): LOOKED_UP * assumed.links + others,
        (Term.WRITE, Stage.STORE): 1,
        (Term.SENT_BYTES, Stage.WEB): REQUEST_BYTES + ACK_BYTES * acks,
        (Term.READ_HALVES, Stage.EXPORT): RECORD_BYTES / 4096,
        (Term.MB_MS, Stage.EXPORT): EXPORT_MB_MS,
    }


def _per_pack(crawl: Crawl, assumed: Assumed, rounds: Rounds) -> Mapping[tuple[Term, Stage], float]:
    """List what packs take in all: delivered, visited, sent round again."""
    visits, again = rounds.visits, rounds.deliveries - rounds.visits
    journal_bytes = JOURNAL_BYTES * visits + URL_BYTES * assumed.pages
    # All visits but the last of a pack have something to send, and some of those.
    sent = max(0.3 * visits, visits - rounds.packs)
    return {
        # Packs that were requeued travel together.
        (Term.SQS, Stage.SEND): 1.15 * sent + min(again, rounds.invocations) / 2,
        # Journal, ledger and strikes of each pack.
        (Term.READ_HALVES, Stage.RECALL): 6 * rounds.deliveries,
        (Term.READ_HALVES, Stage.HOST): 2 * visits,
        (Term.WRITE, Stage.HOST): 1.05 * visits if crawl.delay_ms else 0,
        (Term.WRITE, Stage.JOURNAL): journal_bytes / 1024 + visits / 2,
        # A ledger for each pack; that it is sent.
        (Term.WRITE, Stage.COMMIT): 2 * visits,
        (Term.WRITE, Stage.SENT): sent,
        (Term.MB_MS, Stage.RUN): rounds.seconds * 1000 * assumed.memory_mb,
    }


def _per_invocation(crawl: Crawl, rounds: Rounds) -> Mapping[tuple[Term, Stage], float]:
    files = crawl.bodies is not Bodies.OFF or crawl.texts
    # Some invocations ask for nothing.
    asks = min(1.0, rounds.visits / rounds.invocations)
    # Where a pack leads to nothing more, the crawl may be finished, which all of its counters say.
    looks = 1 - exp(-rounds.packs / rounds.invocations)
    return {
        # Ten messages at once, received and deleted.
        (Term.SQS, Stage.RECEIVE): 2 * ceil(rounds.deliveries / rounds.invocations / MESSAGES),
        (Term.READ_HALVES, Stage.CRAWL): 2,
        (Term.READ_HALVES, Stage.ANNOUNCE): looks * (2 + 2 * crawl.shards),
        # Counters for some packs together, in a transaction of two KB.
        (Term.WRITE, Stage.COMMIT): 4 * asks,
        (Term.S3_PUT, Stage.BODIES): asks if files else 0,
        (Term.INVOCATIONS, Stage.RUN): 1,
        (Term.LOG_BYTES, Stage.RUN): LOG_BYTES,
    }
