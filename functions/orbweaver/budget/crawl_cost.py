"""The cost of a crawl on AWS: an estimate from what its packs did, in nanodollars.

What is charged, and when, at the prices of budget/prices.py:

- a *claim* pays for all that happens to a URL once, whether it is asked for or not: its claim,
  record, and that record's export; its share of a pack's messages, journal, ledger and counters,
  and of the logs. So a crawl that has spent its dollars can still end every URL that it has
  claimed.
- a *visit* pays for what asking takes. That is memory for as long as it lasted, shared with the
  packs that the same function visited meanwhile; slots and looks at hosts; the file that it wrote,
  for itself and others; and for each URL that comes back, the next pack's share. Links that are
  looked up, it pays for one by one.

Not in it: deliveries that died, packs that were requeued unopened, transfer (what comes in is
free), storage, whatever else an account pays for being there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from orbweaver.budget.billing_units import Term
from orbweaver.budget.prices import NANO, each

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
# function with # 1 GB.
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


def visit(*, urls: int, again: int, files: int, seconds: float, memory_mb: int) -> int:
    """Cost of a visit to a pack of so many URLs, of which some come back, with files written."""
    memory = ceil(GB_SECOND * seconds * memory_mb / 1024)
    return VISIT + ASKED * urls + AGAIN * again + FILE * files + memory


def visit_most(*, urls: int, seconds: float, memory_mb: int) -> int:
    """Cost of a visit at most, but for the links that it finds."""
    return visit(urls=urls, again=urls, files=1, seconds=seconds, memory_mb=memory_mb)


def dollars(total: Mapping[str, int]) -> float:
    """Estimate what a crawl has cost so far, by its counts."""
    return total.get("nanodollars", 0) / NANO
