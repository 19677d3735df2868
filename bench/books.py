"""A crawl's AWS usage, from its own counters.

`nanodollars` is the crawl's own estimate. Counts of a meter (budget/billing_units.py) are summed by
term, such as write units or SQS requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.budget import billing_units
from orbweaver.budget.prices import spent
from orbweaver.model.amounts import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping


def units_of(counts: Mapping[str, int]) -> dict[str, Any]:
    terms = billing_units.units_of(counts).by_term
    dollars = spent(counts)
    nanodollars = None if dollars is None else round(dollars * NANO)
    return {
        "nanodollars": nanodollars,
        "units": {str(term): number for term, number in terms.items()},
    }
