"""Erase rule of a crawl: URLs and hosts that it must not request, claim or record any more.

`orbweaver forget` writes the rule into the crawl's item, which workers reload every five seconds.
The rule consists of digests, so it does not store the erased names.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url import host_of, hostname_of

# Packs that wait in a table are kept for a year. A rule outlives them.
KEPT_D = 366
# These digests use at most 64 KB of a crawl's item. The item is limited to 400 KB, and has up to
# 256 KB of seeds.
NAMES_MAX = 2_000
_URL = re.compile(r"https?://[^\s\"'<>]+")


class UrlMatcher(ABC):
    """Recognises erased URLs, and removes them from values and records."""

    @abstractmethod
    def url(self, url: str | None) -> bool:
        """Return True if a URL is erased."""

    @abstractmethod
    def text(self, text: str | None) -> bool:
        """Return True if a text mentions an erased URL."""

    def run(self, _crawl_id: str | None) -> bool:
        """Return True if all data of a run is erased."""
        return False

    def value_left(self, value: Any) -> Any:
        """Return a cell's value without erased URLs.

        A text that mentions an erased URL becomes None. Such texts are removed from lists.
        """
        match value:
            case str():
                return None if self.url(value) or self.text(value) else value
            case list() | tuple():
                kept = [one for one in value if one is None or self.value_left(one) is not None]
                return value if len(kept) == len(value) else kept
            case _:
                return value

    def record_left(self, record: PageRecord) -> PageRecord | None:
        """Return a record without erased URLs, or None if its own URL or its run is erased.

        Returns the same object if the record mentions no erased URL.
        """
        if self.run(record.crawl) or self.url(record.url):
            return None
        cut = {
            name: None
            for name in ("referrer", "canonical", "title", "description", "error")
            if self.url(getattr(record, name)) or self.text(getattr(record, name))
        }
        extracted = tuple(map(self._item_left, record.extracted))
        if not cut and all(
            new is old for new, old in zip(extracted, record.extracted, strict=True)
        ):
            return record
        return replace(record, extracted=extracted, **cut)  # type: ignore[arg-type]

    def _item_left(self, item: Item) -> Item:
        fields = {name: self.value_left(value) for name, value in item.fields.items()}
        problems = tuple(problem for problem in item.problems if not self.text(problem))
        if fields == dict(item.fields) and problems == item.problems:
            return item
        return replace(item, fields=fields, problems=problems or item.problems[:0])


@dataclass(frozen=True)
class EraseRule(UrlMatcher):
    """Recognises erased URLs by their digest, or by the digest of their host.

    The digest of a host is made from its origin, its `name:port` or its name.
    """

    digests: frozenset[str] = frozenset()

    def url(self, url: str | None) -> bool:
        if not self.digests or not url:
            return False
        origin = host_of(url)
        names = (url, origin, origin.partition("://")[2], hostname_of(url))
        return not self.digests.isdisjoint(map(_digest, names))

    def text(self, text: str | None) -> bool:
        if not self.digests or not text:
            return False
        # Punctuation after a URL can end the sentence or belong to the URL, so both readings are
        # checked.
        return any(self.url(one) or self.url(one.rstrip(".,;:!?)]")) for one in _URL.findall(text))


NO_RULE = EraseRule()


def erase_rule(crawl: Crawl) -> EraseRule:
    return EraseRule(frozenset(digest for digest, _ in crawl.erased)) if crawl.erased else NO_RULE


def with_erased(crawl: Crawl, names: Iterable[str], now_ms: int) -> Crawl:
    """Return the crawl with `names` (URLs or hosts) added to its erase rule.

    Digests that are older than a year are removed from the rule.
    """
    today = now_ms // 86_400_000
    kept = {digest: day for digest, day in crawl.erased if today - day < KEPT_D}
    erased = kept | {_digest(name): today for name in names}
    return replace(crawl, erased=tuple(sorted(erased.items())))


def _digest(name: str) -> str:
    return blake2b(name.encode(errors="replace"), digest_size=8).hexdigest()
