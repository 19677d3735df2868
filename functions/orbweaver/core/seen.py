"""URLs whose claims are known to exist: a bounded memory that saves asking the table again.

It may forget, and it may not invent: a URL goes in once its claim was read or written. Two
generations, the older of which is dropped when the newer is full or old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

GENERATION_URLS_MAX = 50_000
# Far below the shortest window the worker remembers claims of (a day).
GENERATION_MS = 600_000


class Seen:
    """Remembers claimed URLs by dedup domain (the crawl's name)."""

    def __init__(self) -> None:
        """Start empty."""
        self._newer: set[tuple[str, str]] = set()
        self._older: set[tuple[str, str]] = set()
        self._since_ms = 0

    def add(self, name: str, urls: Iterable[str], now_ms: int) -> None:
        """Remember URLs for 10 to 20 minutes."""
        age_ms = now_ms - self._since_ms
        if len(self._newer) >= GENERATION_URLS_MAX or not 0 <= age_ms < GENERATION_MS:
            self._older = self._newer if 0 <= age_ms < 2 * GENERATION_MS else set()
            self._newer = set()
            self._since_ms = now_ms
        self._newer.update((name, url) for url in urls)

    def of(self, name: str, urls: Iterable[str], now_ms: int) -> set[str]:
        """Those of `urls` that are remembered."""
        if not 0 <= now_ms - self._since_ms < 2 * GENERATION_MS:
            return set()
        newer, older = self._newer, self._older
        return {url for url in urls if (name, url) in newer or (name, url) in older}
