"""What a crawl used of AWS, from its own books.

`nanodollars` is the books' estimate. What a meter has counted (budget/billing_units.py) is added
up by term; of a whole stack, that is the object `units` of what `orbweaver crawl --json` says at
its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.budget import billing_units
from orbweaver.budget.prices import spent
from orbweaver.model.amounts import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping


def units_of(counts: Mapping[str, int]) -> dict[str, Any]:
    """Take what was spent and used out of a crawl's counters: as counted, if that was."""
    terms = billing_units.units_of(counts).by_term
    dollars = spent(counts)
    nanodollars = None if dollars is None else round(dollars * NANO)
    return {
        "nanodollars": nanodollars,
        "units": {str(term): number for term, number in terms.items()},
    }
