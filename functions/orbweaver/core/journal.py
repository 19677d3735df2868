"""What a pack came to: decided once, written once, and replayed by every later delivery.

The journal is a redo log. A delivery fetches, then writes its journal *if absent*; from there on
whoever holds the pack (this delivery, a duplicate, a redelivery after a crash) does the same
things with the same values: claims the same candidates as of the same moment, stores the same
records under the same keys, commits the same counts. The ledger then adds the one fact that
depends on others: which candidates this pack won. Journal + ledger determine the outbox, so its
packs have the same ids whoever sends them.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orbweaver.core.message import PACK_TARGETS_MAX, Pack, child_id
from orbweaver.core.outcome import Outcome, Refusal
from orbweaver.core.record import PageRecord, from_fields, to_fields
from orbweaver.core.target import Kind, Target, extras_of, with_extras
from orbweaver.core.url import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orbweaver.core.crawl import Tally
    from orbweaver.core.message import Prior

VERSION = 1
DELAY_S_MAX = 900
# Deferred URLs that come due within this many seconds of each other travel together.
TOGETHER_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A URL that has no outcome yet and comes back after a delay: deferred, or a retry."""

    target: Target
    delay_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Everything a pack came to before others had a say; `at_ms` is the moment it claims as of.

    `alone` sends every returning URL in a pack of its own, so that one that crashes us goes on
    by itself.
    """

    at_ms: int
    records: tuple[PageRecord, ...] = ()
    again: tuple[Again, ...] = ()
    candidates: tuple[Target, ...] = ()
    tally: Tally = field(default_factory=dict)
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The fact that a pack is committed: `children` index the candidates it won and may send.

    `surplus` says that it had won more than the budget left, and must give those claims back;
    `sent`, that this is done and its outbox is on the queue: without that word a copy of an early
    pack would send everything that came of it again.
    """

    pack: str
    children: tuple[int, ...]
    surplus: bool = False
    sent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A pack to send, and how long the queue is to hold it."""

    pack: Pack
    delay_s: int = 0


class Draft:
    """Collects what a pack comes to while its URLs end, in any order."""

    def __init__(self, crawl: str) -> None:
        """Start empty for a pack of `crawl`."""
        self._crawl = crawl
        self._records: dict[str, PageRecord] = {}
        self._again: dict[str, Again] = {}
        self._candidates: dict[str, Target] = {}
        self._tally: Counter[str] = Counter()

    def end(self, record: PageRecord) -> None:
        """Note a URL's outcome."""
        self._records[record.url] = record
        self.end_unrecorded(record.outcome, record.reason)
        if record.bytes:
            self._tally["bytes"] += record.bytes

    def end_unrecorded(self, outcome: str, reason: str) -> None:
        """Count an outcome without a page record: a crawl that was stopped records nothing."""
        self._tally[outcome] += 1
        self._tally[f"{outcome}.{reason}"] += 1

    def again(self, target: Target, delay_s: float, *, why: str) -> None:
        """Send a URL round once more, `why` being `retries` or `deferrals`.

        Never at once: a host that is blocked for another 300 ms would be asked about all the time.
        """
        delay = min(max(1, ceil(delay_s)), DELAY_S_MAX)
        self._again[target.url] = Again(target=target, delay_s=delay)
        self._tally[why] += 1

    def put_off(self, order: Sequence[Target]) -> int | None:
        """Seconds until the first of a pack's URLs returns, if none of them was even asked for."""
        if not order or any(
            target.url not in self._again or self._again[target.url].target != target
            for target in order
        ):
            return None
        return min(item.delay_s for item in self._again.values())

    def link(self, target: Target) -> None:
        """Note a link that is in scope; the first one that names a URL counts, or a sitemap."""
        standing = self._candidates.get(target.url)
        if standing is None or (target.kind is Kind.SITEMAP and standing.kind is Kind.PAGE):
            self._candidates[target.url] = target

    def links_to(self, url: str) -> bool:
        """Whether a URL is among the links noted so far."""
        return url in self._candidates

    def refuse(self, refusal: Refusal, count: int = 1) -> None:
        """Count references that are not to be claimed."""
        if count:
            self._tally[f"refused.{refusal}"] += count

    def count(self, key: str, count: int = 1) -> None:
        """Count anything else."""
        self._tally[key] += count

    @property
    def candidates(self) -> tuple[str, ...]:
        """URLs of the links noted so far."""
        return tuple(self._candidates)

    @property
    def modified(self) -> dict[str, int]:
        """When those of these links were changed last that say so, in ms."""
        return {
            url: target.modified_at_ms
            for url, target in self._candidates.items()
            if target.modified_at_ms is not None
        }

    def knows(self, url: str) -> bool:
        """Whether a URL has ended, or comes back."""
        return url in self._records or url in self._again

    def outcome(self, url: str) -> Outcome | None:
        """How a URL ended, if it has by now."""
        record = self._records.get(url)
        return None if record is None else record.outcome

    def drop(self, urls: Iterable[str]) -> None:
        """Forget links that need not be claimed."""
        for url in urls:
            self._candidates.pop(url, None)

    def recall(self, priors: Mapping[str, Prior]) -> None:
        """Note of links when they were last claimed."""
        for url, prior in priors.items():
            self._candidates[url] = replace(self._candidates[url], prior=prior)

    def journal(self, order: Sequence[Target], at_ms: int) -> Journal:
        """Close the draft, in the pack's order."""
        urls = [target.url for target in order]
        return Journal(
            at_ms=at_ms,
            records=tuple(self._records[url] for url in urls if url in self._records),
            again=tuple(self._again[url] for url in urls if url in self._again),
            candidates=tuple(self._candidates.values()),
            tally=MappingProxyType(dict(sorted(self._tally.items()))),
        )


def outbox(pack_id: str, crawl: str, journal: Journal, ledger: Ledger) -> tuple[Letter, ...]:
    """List the packs that a committed pack gives rise to; the same list every time."""
    children = [journal.candidates[place] for place in ledger.children]
    groups = [(group, 0) for group in _by_host(children)]
    groups += list(_by_due(journal.again, 1 if journal.alone else PACK_TARGETS_MAX))
    return tuple(
        Letter(
            pack=Pack(
                id=child_id(pack_id, place), crawl=crawl, at_ms=journal.at_ms, targets=tuple(group)
            ),
            delay_s=delay_s,
        )
        for place, (group, delay_s) in enumerate(groups)
    )


def apart(pack: Pack, at_ms: int) -> Journal:
    """Journal a pack that crashed us before: nothing done, every URL sent on by itself."""
    again = tuple(Again(target=target, delay_s=0) for target in pack.targets)
    return Journal(at_ms=at_ms, again=again, alone=True)


def surplus_of(journal: Journal, ledger: Ledger) -> tuple[Target, ...]:
    """List the candidates whose claims, if this pack holds them, are to be given back."""
    kept = set(ledger.children)
    return tuple(target for place, target in enumerate(journal.candidates) if place not in kept)


def commit_tally(journal: Journal, ledger: Ledger, won: int) -> Tally:
    """Counts that a commit adds: the journal's, the claims kept, and those beyond the budget."""
    tally = dict(journal.tally)
    tally["claimed"] = len(ledger.children)
    if won > len(ledger.children):
        key = f"refused.{Refusal.BUDGET}"
        tally[key] = tally.get(key, 0) + won - len(ledger.children)
    return tally


def _by_host(targets: Sequence[Target]) -> Iterator[list[Target]]:
    """Cut targets into full packs of one host each, then mixed packs of what is left.

    A sitemap stands for thousands of URLs, so it travels alone.
    """
    hosts: defaultdict[str, list[Target]] = defaultdict(list)
    for target in targets:
        if target.kind is Kind.SITEMAP:
            yield [target]
        else:
            hosts[host_of(target.url)].append(target)
    rest: list[Target] = []
    for queue in hosts.values():
        full = len(queue) - len(queue) % PACK_TARGETS_MAX
        yield from _cut(queue[:full])
        rest += queue[full:]
    yield from _cut(rest)


def _by_due(again: Sequence[Again], size: int) -> Iterator[tuple[list[Target], int]]:
    """Cut returning targets into packs that come due together, at the latest one's time."""
    due: defaultdict[int, list[Again]] = defaultdict(list)
    for item in again:
        due[-(-item.delay_s // TOGETHER_S)].append(item)
    for bucket in sorted(due):
        delay_s = max(item.delay_s for item in due[bucket])
        for group in _cut([item.target for item in due[bucket]], size):
            yield group, delay_s


def _cut(targets: Sequence[Target], size: int = PACK_TARGETS_MAX) -> Iterator[list[Target]]:
    for start in range(0, len(targets), size):
        yield list(targets[start : start + size])


def encode(journal: Journal) -> bytes:
    """Render a journal as compressed JSON: about 200 bytes a page of a documentation site."""
    body = {
        "v": VERSION,
        "at": journal.at_ms,
        "records": [to_fields(record) for record in journal.records],
        "again": [_target_row(item.target, item.delay_s) for item in journal.again],
        "candidates": [_target_row(target) for target in journal.candidates],
        "tally": dict(journal.tally),
        "alone": journal.alone,
    }
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 6)


def decode(blob: bytes) -> Journal:
    """Read a journal back."""
    body: dict[str, Any] = json.loads(zlib.decompress(blob))
    return Journal(
        at_ms=body["at"],
        records=tuple(from_fields(raw) for raw in body["records"]),
        again=tuple(Again(target=_target(row), delay_s=row[5]) for row in body["again"]),
        candidates=tuple(_target(row) for row in body["candidates"]),
        tally=MappingProxyType(body["tally"]),
        alone=body["alone"],
    )


def _target_row(target: Target, *more: int) -> list[Any]:
    row = [target.url, target.depth, target.attempt, target.hops, target.referrer, *more]
    extras = extras_of(target)
    return [*row, extras] if extras else row


def _target(row: list[Any]) -> Target:
    url, depth, attempt, hops, referrer, *more = row
    target = Target(url=url, depth=depth, attempt=attempt, hops=hops, referrer=referrer)
    return with_extras(target, more[-1]) if more and isinstance(more[-1], dict) else target
