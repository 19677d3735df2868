"""What a crawl used of AWS, from its own books.

`nanodollars` is the books' estimate. A meter that counts billable units adds counters of its own:
those whose names begin with `units.` are taken over here, and shown per page. Of a whole stack,
they are the object `units` of what `orbweaver crawl --json` says at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

METERED = "units."
NANO = 1_000_000_000


def units_of(tally: Mapping[str, int]) -> dict[str, Any]:
    """Take what was spent and used out of a crawl's counters."""
    units = {
        name.removeprefix(METERED): number
        for name, number in tally.items()
        if name.startswith(METERED)
    }
    return {"nanodollars": tally.get("nanodollars"), "units": units}
