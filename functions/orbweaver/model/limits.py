"""Define a crawl's byte and dollar limits, and the amounts that workers reserve from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LimitPart(StrEnum):
    """Limit of a crawl from which workers reserve amounts before they spend them.

    The page limit of a host has no reservations: its pages are counted one by one.
    """

    BYTES = "bytes"
    NANODOLLARS = "nanodollars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Amounts that a worker reserved and spent. The commit of its batch of URLs settles them."""

    part: LimitPart
    reserved: int
    spent: int
