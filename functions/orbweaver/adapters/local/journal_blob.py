"""Encode journals (the redo logs of workers), in a thread if they are long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.frontier.journal_codec import encode, is_long

if TYPE_CHECKING:
    from orbweaver.frontier.journal import Journal


async def encoded(journal: Journal) -> bytes:
    # 5,000 links of 200 characters take 60 ms, mostly for compression.
    return await asyncio.to_thread(encode, journal) if is_long(journal) else encode(journal)
