"""Limits of a crawl beside its pages, and what the commit of a pack settles of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LimitPart(StrEnum):
    """What is reserved by the request or the pack; hosts' pages are counted one by one."""

    BYTES = "bytes"
    NANODOLLARS = "nanodollars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What the commit of a pack settles: what its journal's delivery had reserved, and spent."""

    part: LimitPart
    reserved: int
    spent: int
