"""AWS's prices, and the amounts that a budget of dollars charges for claims and visits.

List prices of us-east-1, on demand, without free tier, as of `AS_OF`, first tier, in 1e-9 USD
(nanodollars). Source: the pricing pages of aws.amazon.com for sqs, dynamodb, lambda, cloudwatch,
s3, eventbridge and ec2 (data transfer).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from types import MappingProxyType

from orbweaver.budget.billing_units import Term, units_of
from orbweaver.model.amounts import NANO, in_dollars
from orbweaver.model.settings import ARM, X86
from orbweaver.model.target import PACK_TARGETS_MAX
from orbweaver.model.value import value_class

AS_OF = "2026-11"
GIGABYTE = 1024**3


@value_class
class Price:
    """Price in nanodollars for `per` units. `words` is AWS's wording."""

    nanodollars: float
    per: int = 1
    words: str

    def cost_of(self, number: float) -> float:
        return self.nanodollars * number / self.per


PRICES: Mapping[Term, Price] = MappingProxyType(
    {
        Term.WRITE: Price(nanodollars=625, words="$0.625 a million write units"),
        Term.READ_HALVES: Price(nanodollars=125, per=2, words="$0.125 a million read units"),
        # Messages with a group on a standard queue are billed as fair queues.
        Term.SQS: Price(nanodollars=500, words="$0.40 a million requests, $0.10 for fair queues"),
        Term.S3_PUT: Price(nanodollars=5_000, words="$0.005 a thousand PUT, COPY, POST, LIST"),
        Term.S3_GET: Price(nanodollars=400, words="$0.0004 a thousand GET and others"),
        Term.EVENTS: Price(nanodollars=1_000, words="$1.00 a million events"),
        Term.LOG_BYTES: Price(nanodollars=NANO // 2, per=GIGABYTE, words="$0.50 a GB taken in"),
        Term.SENT_BYTES: Price(nanodollars=90_000_000, per=GIGABYTE, words="$0.09 a GB sent"),
        Term.INVOCATIONS: Price(nanodollars=200, words="$0.20 a million"),
        Term.MB_MS: Price(nanodollars=13_333.4, per=1024 * 1000, words="$0.0000133334 a GB-second"),
        Term.MB_MS_X86: Price(
            nanodollars=16_666.7, per=1024 * 1000, words="$0.0000166667 a GB-second"
        ),
    }
)


def unit_cost(term: Term, number: int = 1) -> int:
    """Return the cost of units in whole nanodollars, rounded up."""
    return ceil(PRICES[term].cost_of(number))


def dollars(units: Mapping[Term, float]) -> float:
    return in_dollars(sum(PRICES[term].cost_of(number) for term, number in units.items()))


def metered(total: Mapping[str, int]) -> float | None:
    """Return the dollars for the units in a crawl's counters, or None if no units were counted."""
    units = units_of(total)
    return dollars(units.by_term) if units else None


def charged(total: Mapping[str, int]) -> float | None:
    """Return the dollars charged to a crawl's budget, by its counters, or None without charges."""
    return in_dollars(total["nanodollars"]) if "nanodollars" in total else None


def spent(total: Mapping[str, int]) -> float | None:
    """Return a crawl's cost in dollars: of its counted units, or its charges if there are none."""
    counted = metered(total)
    return charged(total) if counted is None else counted


# --- usage of a pack (message with up to 25 URLs) and of a URL ----------------------------------

# `estimate` multiplies these constants by expected numbers. The charges of a budget contain them.

# Half read units to read the journal, ledger and strikes of a pack.
RECALL_HALVES = 6
# Bytes of a journal without URLs, and bytes per URL.
JOURNAL_BYTES, URL_BYTES = 300, 150
# Write units: a ledger and counters of two KB in a transaction, the note that the next packs were
# sent, and a URL's record.
LEDGER, COUNTERS, NOTE, RECORD = 2, 4, 1, 1

# --- charges of a budget ------------------------------------------------------------------------

# A budget needs costs before a request. So it charges each claim and each visit, more than the
# counted costs. Not charged: deliveries of killed workers, packs requeued unread, transfer and
# storage.

# Cost of an SQS request of up to 64 KB.
SQS_REQUEST = unit_cost(Term.SQS)
# Costs of a KB written, and of 4 KB read by an eventually consistent read.
WRITE, READ_STALE = unit_cost(Term.WRITE), unit_cost(Term.READ_HALVES)
GB_SECOND, INVOCATION = unit_cost(Term.MB_MS, 1024 * 1000), unit_cost(Term.INVOCATIONS)
# Costs of a KB of logs, of a record's rows in exports, and of a file of bodies.
LOG_KB, EXPORTED_ROW, FILE = unit_cost(Term.LOG_BYTES, 1024), 20, unit_cost(Term.S3_PUT)

# A message is sent, received and deleted. Batches would cost less, but cannot be relied on.
_MESSAGE = 3 * SQS_REQUEST + INVOCATION
# Costs of a full pack's stored state, as if each pack wrote its counters alone
# (worker/group_commit.py), and of the time that a function with 1 GB needs for a pack.
_JOURNAL = ceil((JOURNAL_BYTES + PACK_TARGETS_MAX * URL_BYTES) / 1024)
_PACK = (
    unit_cost(Term.READ_HALVES, RECALL_HALVES)
    + (_JOURNAL + LEDGER + COUNTERS + NOTE) * WRITE
    + GB_SECOND // 10
    + LOG_KB
)
# A URL's share of a pack's cost. Packs hold up to 25 URLs, and are seldom full.
_SHARE = (_MESSAGE + _PACK) // 10
# Cost of all that happens once to a URL, requested or not: its claim, its record (of up to two KB)
# and export, and its share of a pack. So a crawl that has spent its dollars can still end every
# claimed URL.
CLAIM = WRITE + 2 * RECORD * WRITE + EXPORTED_ROW + _SHARE
# Cost of a URL that is requeued, of a request without the function's time, and of a link's lookup.
AGAIN = _SHARE
ASKED = WRITE + 2 * READ_STALE
LOOK_UP = READ_STALE
# Cost of a visit to a pack, whatever its content.
VISIT = LOG_KB + 4 * READ_STALE
# Number of new links per page whose cost is reserved before the request. Further links are paid for
# if enough dollars are left.
LINKS_EXPECTED = 20


def time_term(architecture: str) -> Term:
    return Term.MB_MS_X86 if architecture == X86 else Term.MB_MS


def second(*, memory_mb: int, architecture: str = ARM) -> float:
    """Return the cost of a second of a function, in nanodollars."""
    return unit_cost(time_term(architecture), 1024 * 1000) * memory_mb / 1024


def visit(*, urls: int, again: int, files: int, seconds: float, a_second: float) -> int:
    """Return the cost of a visit to a pack (message with up to 25 URLs), in nanodollars.

    The visit requested `urls` URLs, requeued `again` URLs and wrote `files` files. `a_second` is
    the cost of a second of the function.
    """
    memory = ceil(a_second * seconds)
    return VISIT + ASKED * urls + AGAIN * again + FILE * files + memory


def visit_cost_max(*, urls: int, seconds: float, a_second: float) -> int:
    """Return the maximum cost of a visit in nanodollars, without the links that it finds."""
    return visit(urls=urls, again=urls, files=1, seconds=seconds, a_second=a_second)


def spent_on(
    total: Mapping[str, int], some: tuple[float, float], whole: tuple[float, float]
) -> float:
    """Return the share of a crawl's cost that some of its URLs caused, in dollars.

    `total` are the crawl's counters. `some` and `whole` are (claims, requests) of these URLs and of
    the whole crawl.
    """
    parts = [CLAIM * claims + ASKED * requests for claims, requests in (some, whole)]
    return (spent(total) or 0.0) * parts[0] / parts[1] if parts[1] else 0.0


# Cost of requeuing a pack instead of waiting for its host: message, pack, file for its bodies.
TRIP = _MESSAGE + _PACK + FILE


def wait_ms_most(*, a_second: float, visits: int) -> float:
    """Return the longest wait in ms that costs less than to requeue `visits` packs.

    `a_second` is the cost of a second of the function that waits for all of these packs.
    """
    return TRIP * visits / (a_second / 1000)
