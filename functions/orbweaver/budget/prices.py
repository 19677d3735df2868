"""AWS's prices for a unit of each term, in 1e-9 USD (nanodollars): the one table of them.

List prices of us-east-1, arm64, on demand, without free tier, as of `AS_OF`. Source: the pricing
pages of aws.amazon.com for sqs, dynamodb, lambda, cloudwatch, s3, eventbridge and ec2 (data
transfer). The first tier is taken where there are several: what is used more gets cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType

from orbweaver.budget.billing_units import Term

AS_OF = "2026-11"
NANO = 1_000_000_000
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
    }
)


def each(term: Term, number: int = 1) -> int:
    """How many whole nanodollars some units of a term cost, rounded up."""
    return ceil(PRICES[term].of(number))


def nanodollars(units: Mapping[Term, float]) -> float:
    """Price units."""
    return sum(PRICES[term].of(number) for term, number in units.items())


def dollars(units: Mapping[Term, float]) -> float:
    """Price units, in dollars."""
    return nanodollars(units) / NANO
