"""Define a crawl's byte and dollar limits, and the amounts that workers reserve from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LimitPart(StrEnum):
    """Limit from which workers reserve before they spend. Pages of hosts are counted singly."""

    BYTES = "bytes"
    NANODOLLARS = "nanodollars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Amount that a worker reserved and spent. The commit of its batch of URLs settles it."""

    part: LimitPart
    reserved: int
    spent: int
