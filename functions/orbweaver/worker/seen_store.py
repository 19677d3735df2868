"""Remember the URLs that a container has seen, to save reads of the table.

The memory is bounded, so it can forget URLs. A forgotten URL is looked up again. A URL counts as
claimed once its claim was read or written, or once a journal (redo log) that claims it is stored.
If the commit excludes the URL, the store forgets it.
"""

from __future__ import annotations

import logging
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from orbweaver.frontier.claims import ClaimStates
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.known_claims import DIGEST_BYTES, RECENT_BYTES, KnownClaims
from orbweaver.model.crawl import DAY_S, Crawl
from orbweaver.model.ports import Clock
from orbweaver.model.target import Target
from orbweaver.model.turns import slices
from orbweaver.model.url import host_of
from orbweaver.model.url_rules import by_window

if TYPE_CHECKING:
    from asyncio import Task

_log = logging.getLogger(__name__)
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
# Memory for the claims of all visited hosts together: about 650,000 digests.
HOSTS_BYTES_MAX = 5 * 1024 * 1024
# Memory of a visited host without its claims.
HOST_BYTES = 600
# A recently visited host keeps its claims. If hosts that are visited alternately evicted each
# other, all files would be read in vain.
IN_USE_MS = 120_000

# Run, page limit, host. A claim that was only read may be released if it exceeds the page limit.
# While the limit does not change, its link is refused again or deferred.
HostKey = tuple[str, int, str]


class UrlState(Enum):
    """State of a URL in its crawl. A WAITING URL is in a late pack (deferred links)."""

    NEW = "new"
    CLAIMED = "claimed"
    WAITING = "waiting"


@dataclass(slots=True)
class HostClaims:
    """Final claims of a visited host in one run, which its file shares with other containers.

    `loaded_until_ms` and `refused_until_ms` are the ends of the rounds in which the file was last
    read, and writing it failed. Each is tried once per round.
    """

    key: HostKey
    claims: KnownClaims = field(default_factory=KnownClaims)
    visited_ms: int = 0
    loaded_until_ms: int = 0
    refused_until_ms: int = 0
    is_written: bool = False
    loading: Task[None] | None = None
    saving: Task[None] | None = None

    @property
    def size_bytes(self) -> int:
        return HOST_BYTES + self.claims.size_bytes


class SeenStore:
    """Stores the state of URLs, by crawl. One instance per container."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claimed, self._waiting, self._left = SeenUrls(), SeenUrls(), SeenUrls()
        self._novelty = Novelty()
        # The last CRAWLS_MAX crawls and page limits that a commit exceeded. If the store forgets
        # one, commits refuse its links again.
        self._spent: dict[tuple[str, int], None] = {}
        self._spent_forgotten = 0
        # Ordered by last visit, oldest first. Claims of other runs are never included, because
        # those runs may release them.
        self._hosts: dict[HostKey, HostClaims] = {}

    def states(self, crawl: Crawl, urls: Collection[str]) -> dict[str, UrlState]:
        states = dict.fromkeys(urls, UrlState.NEW)
        claimed, waiting = self._known(crawl, urls)
        return (
            states
            | dict.fromkeys(waiting, UrlState.WAITING)
            | dict.fromkeys(claimed, UrlState.CLAIMED)
        )

    def seen(self, crawl: Crawl, urls: Collection[str]) -> set[str]:
        """Return the URLs that are not new."""
        claimed, waiting = self._known(crawl, urls)
        return claimed | waiting

    def _known(self, crawl: Crawl, urls: Collection[str]) -> tuple[set[str], set[str]]:
        """Return the claimed URLs, and the waiting ones."""
        now_ms = self._clock.now_ms()
        claimed = self._claimed.known(crawl.id, urls, now_ms)
        return claimed, self._waiting.known(crawl.id, urls, now_ms)

    def unlisted(self, crawl: Crawl, left: Collection[Target]) -> list[Target]:
        """Return the omitted links that are not claimed, and that no journal lists as omitted."""
        now_ms = self._clock.now_ms()
        claimed = self._claimed.known(crawl.id, (target.url for target in left), now_ms)
        listed = self._left.known(crawl.id, map(_as_left, left), now_ms)
        return [one for one in left if one.url not in claimed and _as_left(one) not in listed]

    def is_spent(self, crawl: Crawl) -> bool:
        """Return True if a commit of the crawl exceeded its page limit."""
        return (crawl.id, crawl.pages_max) in self._spent

    def needs_lookup(self, crawl: Crawl) -> bool:
        """Return True if each link should be looked up before it is claimed."""
        return self._novelty.needs_lookup(crawl.id)

    async def note_host_claims(self, crawl: Crawl, urls: Sequence[str]) -> None:
        """Record as claimed those URLs that other containers have claimed, by their files."""
        now_ms = self._clock.now_ms()
        unseen = set(urls) - self._claimed.known(crawl.id, urls, now_ms)
        async for part in slices([*unseen]):
            known = [
                url
                for host, some in self._of_visited_hosts(crawl, part)
                for url in some
                if host.claims.is_known(url)
            ]
            self._claimed.add(crawl.id, known, now_ms)

    def note_lookup(
        self, crawl: Crawl, urls: Sequence[str], found: ClaimStates, window_s: int | None
    ) -> None:
        """Record the result of a look-up of `urls`, whose dedup window is `window_s`."""
        self._novelty.note(crawl.id, len(urls), len(found.held) + len(found.lapsed))
        self._note_claimed(crawl, found.held, window_s)
        # After a page limit was edited, one counter may have budget left while another has none.
        # Then claims can be released.
        if not crawl.quotas:
            self._note_final(crawl, found.own)

    def note_journal(self, crawl: Crawl, journal: Journal) -> None:
        """Record the links of a stored journal: to claim, deferred, or omitted."""
        if journal.late:
            urls = [target.url for _, target in journal.late]
            self._waiting.add(crawl.id, urls, self._clock.now_ms())
        self._note_candidates(crawl, journal)
        self._left.add(crawl.id, map(_as_left, journal.left), self._clock.now_ms())

    async def note_commit(self, crawl: Crawl, journal: Journal, ledger: Ledger) -> list[str]:
        """Record which candidates of a journal its pack has claimed, by its commit record.

        Return the other candidates.
        """
        children = [journal.candidates[index].url for index in ledger.children]
        async for part in slices(children):
            self._note_final(crawl, part)
        others = {target.url for target in journal.candidates}.difference(children)
        if not ledger.surplus:
            self._novelty.note(crawl.id, len(journal.candidates), len(others))
            self._note_candidates(crawl, journal)
            return [*others]
        self._claimed.forget(crawl.id, (target.url for target in journal.candidates))
        for host, some in self._of_visited_hosts(crawl, others):
            host.claims.discard(some)
        # After the budget was lowered, one counter shard may be used up while another has much
        # left.
        if crawl.shards == 1 or not crawl.quotas:
            self._spent[crawl.id, crawl.pages_max] = None
        if len(self._spent) > CRAWLS_MAX:
            self._spent.pop(next(iter(self._spent)))
            self._spent_forgotten += 1
            _log.info("limits.forgotten", extra={"crawls": self._spent_forgotten})
        return [*others]

    def visit_host(self, crawl: Crawl, host: str) -> HostClaims | None:
        """Return the claims of a host that a pack visits. None: memory is short."""
        key = (crawl.id, crawl.pages_max, host)
        visited = self._hosts.pop(key, None)
        if visited is None:
            if not self._has_room(HOST_BYTES):
                return None
            visited = HostClaims(key)
        self._hosts[key] = visited
        visited.visited_ms = self._clock.now_ms()
        return visited

    def merge_file(self, host: HostClaims, digests: array[int]) -> None:
        """Add the digests of a host's file, if they fit into memory."""
        if self._hosts.get(host.key) is not host:
            return
        if self._has_room(DIGEST_BYTES * max(0, len(digests) - len(host.claims))):
            host.claims.merge(digests)
        # The two sets shared fewer claims than assumed, so the host may be too large.
        if not self._has_room(0):
            self._hosts.pop(host.key, None)

    def _note_candidates(self, crawl: Crawl, journal: Journal) -> None:
        for window_s, group in by_window(journal.candidates):
            self._note_claimed(crawl, [target.url for target in group], window_s)

    def _note_claimed(self, crawl: Crawl, urls: Iterable[str], window_s: int | None) -> None:
        window_s = crawl.window_s if window_s is None else window_s
        if not crawl.continuous or window_s >= DAY_S:
            self._claimed.add(crawl.id, urls, self._clock.now_ms())

    def _note_final(self, crawl: Crawl, urls: Iterable[str]) -> None:
        """Record claims that are never released."""
        for host, some in self._of_visited_hosts(crawl, urls):
            # Freeing memory may remove this host, if its last visit was long ago.
            if self._has_room(RECENT_BYTES * len(some)) and host.key in self._hosts:
                host.claims.add(some)

    def _of_visited_hosts(
        self, crawl: Crawl, urls: Iterable[str]
    ) -> list[tuple[HostClaims, list[str]]]:
        found: defaultdict[HostKey, list[str]] = defaultdict(list)
        for url in urls if self._hosts else ():
            found[crawl.id, crawl.pages_max, host_of(url)].append(url)
        return [(self._hosts[key], some) for key, some in found.items() if key in self._hosts]

    def _has_room(self, more_bytes: int) -> bool:
        """Return True if more bytes fit into memory, after evicting hosts that are not in use."""
        held = sum(host.size_bytes for host in self._hosts.values())
        in_use_ms = self._clock.now_ms() - IN_USE_MS
        for key, host in list(self._hosts.items()):
            if held + more_bytes <= HOSTS_BYTES_MAX or host.visited_ms >= in_use_ms:
                break
            held -= host.size_bytes
            del self._hosts[key]
        return held + more_bytes <= HOSTS_BYTES_MAX


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


def _as_left(target: Target) -> str:
    return f"{target.depth} {target.url}"
