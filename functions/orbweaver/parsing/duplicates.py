"""Count identical bodies under different URLs of a host: a crawler trap that URLs do not show."""

from __future__ import annotations

from collections import OrderedDict

from isal.isal_zlib import crc32

# Links of this many identical pages of a host are followed. The identical empty pages of a wiki are
# fewer.
REPEATS_MAX = 50
PAGES_MAX = 50_000


class Repeats:
    """Counts how often each body occurs in a host's pages of a crawl."""

    def __init__(self) -> None:
        self._met: OrderedDict[tuple[str, str, int, int], int] = OrderedDict()

    def beyond(self, crawl: str, host: str, body: bytes) -> bool:
        """Count a body.

        Returns True if it occurred too often for its links to be followed.
        """
        # Size and CRC-32 distinguish the pages of one host and cost far less than parsing.
        key = (crawl, host, len(body), crc32(body))
        count = self._met.pop(key, 0) + 1
        self._met[key] = count
        if len(self._met) > PAGES_MAX:
            self._met.popitem(last=False)
        return count > REPEATS_MAX
