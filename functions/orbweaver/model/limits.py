"""Define a crawl's byte and dollar limits, and their settlement by the commit of a pack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LimitPart(StrEnum):
    """A limit that is reserved per request or pack. Pages of hosts are counted individually."""

    BYTES = "bytes"
    NANODOLLARS = "nanodollars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Amounts that a journal's delivery reserved and spent, for the commit of its pack."""

    part: LimitPart
    reserved: int
    spent: int
