"""URLs whose claims are known to exist: a bounded memory that saves asking the table again.

It may forget, and it may not invent: a URL goes in once its claim was read or written, or stands in
a journal, by which it is made. Two generations, the older of which is dropped when the newer is
full or old.

And whether it pays to ask the table about the others: an answer costs a tenth of a claim that is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable

GENERATION_URLS_MAX = 50_000
# Far below the shortest window the worker remembers claims of (a day).
GENERATION_MS = 600_000
# Of so many links at least it must be known whether they were claimed, and then of the recent ones
# no more may have been than so many in a hundred, for a look at a few of them to do.
ASKED_MIN = 100
CLAIMED_PERCENT_MAX = 5
CRAWLS_MAX = 1_000


class SeenUrls:
    """Remembers claimed URLs by dedup domain (the crawl's name)."""

    def __init__(self) -> None:
        self._newer: dict[str, set[str]] = {}
        self._older: dict[str, set[str]] = {}
        self._newer_urls = 0
        self._since_ms = 0

    def add(self, name: str, urls: Iterable[str], now_ms: int) -> None:
        """Remember URLs for 10 to 20 minutes."""
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
        """Forget URLs: they were given back."""
        gone = set(urls)
        newer = self._newer.get(name, set())
        self._newer_urls -= len(newer & gone)
        newer -= gone
        if name in self._older:
            self._older[name] -= gone

    def of(self, name: str, urls: Iterable[str], now_ms: int) -> set[str]:
        """Those of `urls` that are remembered."""
        found: set[str] = set()
        if not 0 <= now_ms - self._since_ms < 2 * GENERATION_MS:
            return found
        known = [kept[name] for kept in (self._newer, self._older) if name in kept]
        asked = set(urls) if known else found
        for kept in known:
            found |= asked & kept
        return found


class Novelty:
    """How many of a crawl's links that this container has not seen turn out to be claimed."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[int, int]] = {}

    def note(self, crawl: str, asked: int, claimed: int) -> None:
        """Note that of so many links some were claimed already, now or once."""
        if len(self._asked) >= CRAWLS_MAX and crawl not in self._asked:
            self._asked.clear()
        before, found = self._asked.get(crawl, (0, 0))
        if before >= 2 * ASKED_MIN:
            before, found = before // 2, found // 2
        self._asked[crawl] = before + asked, found + claimed

    def look(self, crawl: str) -> bool:
        """Whether each link is worth a look before it is claimed."""
        asked, claimed = self._asked.get(crawl, (0, 0))
        return asked < ASKED_MIN or 100 * claimed > CLAIMED_PERCENT_MAX * asked
