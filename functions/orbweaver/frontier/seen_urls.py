"""Remember URLs that are known to be claimed, to save reads of the table.

The memory is bounded, so it can forget URLs. A URL is added once its claim was read or written, or
once a journal (redo log) that claims it is stored. If the commit excludes the URL, it is removed.
"""

from __future__ import annotations

from collections.abc import Iterable

# URLs are kept in two generations. The older is dropped when the newer is full or old.
GENERATION_URLS_MAX = 50_000
# Far below the shortest dedup window (a day) of crawls whose claims are remembered.
GENERATION_MS = 1_800_000
# All links are looked up until ASKED_MIN results are known. After that, only a sample is
# looked up if at most CLAIMED_PERCENT_MAX of the recent links were claimed. A lookup costs a tenth
# of a refused claim.
ASKED_MIN = 100
CLAIMED_PERCENT_MAX = 5
CRAWLS_MAX = 1_000


class SeenUrls:
    """Remembers claimed URLs of several crawls. `name` identifies the crawl."""

    def __init__(self) -> None:
        self._newer: dict[str, set[str]] = {}
        self._older: dict[str, set[str]] = {}
        self._newer_urls = 0
        self._since_ms = 0

    def add(self, name: str, urls: Iterable[str], now_ms: int) -> None:
        """Remember claimed URLs of the crawl `name` for 30 to 60 minutes."""
        age_ms = now_ms - self._since_ms
        if self._newer_urls >= GENERATION_URLS_MAX or not 0 <= age_ms < GENERATION_MS:
            self._older = self._newer if 0 <= age_ms < 2 * GENERATION_MS else {}
            self._newer, self._newer_urls = {}, 0
            self._since_ms = now_ms
        known = self._newer.setdefault(name, set())
        before = len(known)
        known.update(urls)
        self._newer_urls += len(known) - before

    def forget(self, name: str, urls: Iterable[str]) -> None:
        """Remove URLs whose claims were released."""
        gone = set(urls)
        newer = self._newer.get(name, set())
        self._newer_urls -= len(newer & gone)
        newer -= gone
        if name in self._older:
            self._older[name] -= gone

    def known(self, name: str, urls: Iterable[str], now_ms: int) -> set[str]:
        found: set[str] = set()
        if not 0 <= now_ms - self._since_ms < 2 * GENERATION_MS:
            return found
        known = [kept[name] for kept in (self._newer, self._older) if name in kept]
        asked = set(urls) if known else found
        for kept in known:
            found |= asked & kept
        return found


class Novelty:
    """Measures how many of the links that are new to this container are already claimed."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[int, int]] = {}

    def note(self, crawl: str, asked: int, claimed: int) -> None:
        if len(self._asked) >= CRAWLS_MAX and crawl not in self._asked:
            self._asked.clear()
        before, found = self._asked.get(crawl, (0, 0))
        if before >= 2 * ASKED_MIN:
            before, found = before // 2, found // 2
        self._asked[crawl] = before + asked, found + claimed

    def needs_lookup(self, crawl: str) -> bool:
        """Return True if each link should be looked up before it is claimed."""
        asked, claimed = self._asked.get(crawl, (0, 0))
        return asked < ASKED_MIN or 100 * claimed > CLAIMED_PERCENT_MAX * asked
