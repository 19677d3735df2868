"""Content that comes again and again under new URLs: a trap that no URL gives away.

A fingerprint is the size of a body and its CRC-32: enough to tell pages of one host apart, and
far cheaper than parsing. Each container counts for itself, and forgets the longest unused first.
"""

from __future__ import annotations

from collections import OrderedDict

from isal.isal_zlib import crc32

# So many pages of a host may be the same and be followed; a wiki's empty pages are fewer.
REPEATS_MAX = 50
PAGES_MAX = 50_000


class Repeats:
    """How often each content was met."""

    def __init__(self) -> None:
        """Start with nothing met."""
        self._met: OrderedDict[tuple[str, str, int, int], int] = OrderedDict()

    def beyond(self, crawl: str, host: str, body: bytes) -> bool:
        """Meet a body once more; whether that is now too often to follow its links."""
        key = (crawl, host, len(body), crc32(body))
        count = self._met.pop(key, 0) + 1
        self._met[key] = count
        if len(self._met) > PAGES_MAX:
            self._met.popitem(last=False)
        return count > REPEATS_MAX
