"""The one dollar model: AWS's prices, and what units, claims and visits cost by them.

List prices of us-east-1, on demand, without free tier, as of `AS_OF`, in 1e-9 USD
(nanodollars). Source: the pricing pages of aws.amazon.com for sqs, dynamodb, lambda, cloudwatch,
s3, eventbridge and ec2 (data transfer). Of several tiers the first is taken.

- **Counted units** are priced as they are: of a meter, of `estimate`, of the scale model.
- **A budget** has to know before it asks, so it charges by the claim and by the visit, above what
  is counted. A *claim* pays for what happens to a URL once, asked for or not: its claim, record and
  export, and its share of a pack. So a crawl that has spent its dollars can still end every URL
  that it has claimed. A *visit* pays for what asking takes: memory for as long as it lasted, shared
  with the packs that the same function visited; slots and looks at hosts; the file that it wrote;
  for each URL that returns, the next pack's share; each link that is looked up.

Not in a budget: deliveries that died, packs that were requeued unopened, transfer, storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType

from orbweaver.budget.billing_units import Term, units_of
from orbweaver.model.amounts import NANO, in_dollars
from orbweaver.model.settings import ARM, X86

AS_OF = "2026-11"
GIGABYTE = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """So many nanodollars for so many; `words` is how AWS puts it."""

    nanodollars: float
    per: int = 1
    words: str

    def of(self, number: float) -> float:
        """How many nanodollars some cost."""
        return self.nanodollars * number / self.per


PRICES: Mapping[Term, Price] = MappingProxyType(
    {
        Term.WRITE: Price(nanodollars=625, words="$0.625 a million write units"),
        Term.READ_HALVES: Price(nanodollars=125, per=2, words="$0.125 a million read units"),
        # Messages that have a group, on a standard queue: those of a fair one.
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


def each(term: Term, number: int = 1) -> int:
    """How many whole nanodollars some units of a term cost, rounded up."""
    return ceil(PRICES[term].of(number))


def dollars(units: Mapping[Term, float]) -> float:
    """Price units."""
    return in_dollars(sum(PRICES[term].of(number) for term, number in units.items()))


def metered(total: Mapping[str, int]) -> float | None:
    """Price the units of a crawl's counters; None if none were counted."""
    units = units_of(total)
    return dollars(units.by_term) if units else None


def charged(total: Mapping[str, int]) -> float | None:
    """Read from a crawl's counters what its budget was charged; None if nothing was."""
    return in_dollars(total["nanodollars"]) if "nanodollars" in total else None


def spent(total: Mapping[str, int]) -> float | None:
    """Price what a crawl has used: its units, or what was charged where none were counted."""
    counted = metered(total)
    return charged(total) if counted is None else counted


# --- what a budget charges ----------------------------------------------------------------------

# A request of 64 KB.
SQS_REQUEST = each(Term.SQS)
# A KB written, twice that in transactions; 4 KB read, half of that where it may be stale.
WRITE, WRITE_TRANSACTED = each(Term.WRITE), each(Term.WRITE, 2)
READ, READ_STALE = each(Term.READ_HALVES, 2), each(Term.READ_HALVES)
GB_SECOND, INVOCATION = each(Term.MB_MS, 1024 * 1000), each(Term.INVOCATIONS)
# What a record's rows come to, and a file that bodies are stored in.
LOG_KB, EXPORTED_ROW, FILE = each(Term.LOG_BYTES, 1024), 20, each(Term.S3_PUT)

# A message is sent, received and deleted; these come in batches, which is not counted on.
_MESSAGE = 3 * SQS_REQUEST + INVOCATION
# Recall; journal of some KB; ledger and counters of two KB in a transaction, as if no other pack
# shared it (worker/group_commit.py); the note that it is sent; what all of that takes of a
# function with 1 GB.
_PACK = 3 * READ + 5 * WRITE + 3 * WRITE_TRANSACTED + GB_SECOND // 10 + LOG_KB
# Packs hold up to 25 URLs, and are seldom full.
_SHARE = (_MESSAGE + _PACK) // 10
CLAIM = WRITE + 2 * WRITE + EXPORTED_ROW + _SHARE
# What a URL that comes back takes with it, and what asking for it takes beside time.
AGAIN = _SHARE
ASKED = WRITE + 2 * READ_STALE
LOOK_UP = READ_STALE
# What a visit to a pack takes whatever it holds, and how many new links a page is expected to have
# that are claimed: more are paid for if there is enough left.
VISIT = LOG_KB + 4 * READ_STALE
LINKS_EXPECTED = 20


def time_term(architecture: str) -> Term:
    """Say as what the time of a function is billed."""
    return Term.MB_MS_X86 if architecture == X86 else Term.MB_MS


def second(*, memory_mb: int, architecture: str = ARM) -> float:
    """How many nanodollars a second of a function costs."""
    return each(time_term(architecture), 1024 * 1000) * memory_mb / 1024


def visit(*, urls: int, again: int, files: int, seconds: float, a_second: float) -> int:
    """Cost of a visit to a pack of so many URLs, of which some come back, with files written."""
    memory = ceil(a_second * seconds)
    return VISIT + ASKED * urls + AGAIN * again + FILE * files + memory


def visit_most(*, urls: int, seconds: float, a_second: float) -> int:
    """Cost of a visit at most, but for the links that it finds."""
    return visit(urls=urls, again=urls, files=1, seconds=seconds, a_second=a_second)


def spent_on(
    total: Mapping[str, int], some: tuple[float, float], whole: tuple[float, float]
) -> float:
    """Price some URLs of a crawl, claimed and asked for so often: their part of what it spent."""
    parts = [CLAIM * claims + ASKED * requests for claims, requests in (some, whole)]
    return (spent(total) or 0.0) * parts[0] / parts[1] if parts[1] else 0.0


# What it takes to come back to a pack instead of waiting: message, pack, and a file for its bodies.
TRIP = _MESSAGE + _PACK + FILE


def wait_ms_most(*, a_second: float, visits: int) -> float:
    """How long a visit may wait, among so many in one function, for less than a trip costs."""
    return TRIP * visits / (a_second / 1000)
