"""Results of pages, and the unfinished result of a pack (a message with up to 25 URLs).

The result of a page is added as a whole when the page ends. At the end, the pack's result becomes
its journal (redo log).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import filterfalse, islice
from math import ceil
from types import MappingProxyType
from typing import Literal, TypeAlias, assert_never

from orbweaver.frontier.body_file import BodyLocation, Kept, with_body_location
from orbweaver.frontier.erase_rule import NO_RULE, EraseRule, erase_rule
from orbweaver.frontier.journal import DELAY_S_MAX, NOTHING, Journal, Requeue, Unrecorded
from orbweaver.frontier.late_links import Banded
from orbweaver.frontier.messages import Past
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.cuts import counters
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import NEEDS_RENDERING, RENDERED, PageRecord
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of, redacted
from orbweaver.model.value import value_class

# Maximum number of sample URLs per reason of refusal.
SAMPLES_MAX = 5


@value_class
class FoundLinks:
    """Found links: admitted, refused (reason, count, URLs), and left for later runs.

    A reason has samples of its URLs, or all URLs if the crawl stores links and has refused them.
    `reopened` are URLs whose claims were just abandoned, so that caches of claims are outdated.
    `past` names packs of an earlier run that must be read next, for links that they left out.
    """

    admitted: tuple[Target, ...] = ()
    refused: tuple[tuple[Refusal, int, tuple[str, ...]], ...] = ()
    left: tuple[Target, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    reopened: tuple[str, ...] = ()
    past: tuple[Past, ...] = ()


@value_class
class LinkPlan:
    """Links as a journal lists them: to claim `now`, deferred (`late`), and left for later runs.

    `surplus_band` is the band in which links beyond the page limit wait.
    """

    now: Sequence[Target] = ()
    late: Sequence[Banded] = ()
    left: Sequence[Target] = ()
    surplus_band: int | None = None


@value_class
class EndedPage:
    """A URL that has ended. Its content (`kept`) is stored only if `recorded` is true."""

    record: PageRecord
    recorded: bool = True
    kept: Kept | None = None


@value_class
class Returning:
    """A URL that must be requested later, after `delay_s`."""

    target: Target
    delay_s: float
    why: Literal["retries", "deferrals"] = "deferrals"


@value_class
class NotRequested:
    """A URL that ends without a request, because its crawl ended or a limit is reached."""

    target: Target
    reason: Reason


@value_class
class InvalidUrl:
    """A URL that is skipped without a record, because it cannot be a key."""


PageEnd: TypeAlias = EndedPage | Returning | NotRequested | InvalidUrl


@value_class
class PageResult:
    """Result of processing one URL."""

    end: PageEnd
    found: tuple[FoundLinks, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


class PackResult:
    """Collects the results of a pack's URLs, which may end in any order."""

    def __init__(self, crawl: str, hosts: Sequence[str] = (), erased: EraseRule = NO_RULE) -> None:
        """Start an empty result for a pack of `crawl`. URLs of `hosts` are also counted by host."""
        self.crawl = crawl
        self._erased = erased
        self._hosts = {host: index for index, host in enumerate(hosts)}
        self._records: dict[str, PageRecord] = {}
        self._again: dict[str, Requeue] = {}
        self._candidates: dict[str, Target] = {}
        self._counts: Counter[str] = Counter()
        self._samples: defaultdict[str, list[str]] = defaultdict(list)
        self._unasked: list[str] = []
        self._unrecorded: set[str] = set()
        self._kept: list[Kept] = []
        # Total size of the stored content in memory.
        self.held_bytes = 0
        # By URL and depth, because the same URL can also be found at an admitted depth.
        self._left: dict[tuple[str, int], Target] = {}
        self._past: list[Past] = []
        self._reopened: set[str] = set()
        self.must_store = False

    def add(self, *pages: PageResult) -> None:
        for page in pages:
            self.add_links(*page.found)
            self._counts.update(page.counts)
            match page.end:
                case EndedPage():
                    self._end(page.end)
                case Returning():
                    self._return(page.end)
                case NotRequested(target=target, reason=reason):
                    self._unasked.append(target.url)
                    self._count_end(Outcome.SKIPPED, reason, target.url)
                case InvalidUrl():
                    self._count_end(Outcome.SKIPPED, Reason.INVALID)
                case _:
                    assert_never(page.end)

    def add_links(self, *results: FoundLinks) -> None:
        for found in results:
            for refusal, count, urls in found.refused:
                self._refuse(refusal, count, urls)
            for target in found.left:
                if not self._erased.url(target.url):
                    self._left.setdefault((target.url, target.depth), target)
            for target in found.admitted:
                self._link(target)
            self._counts.update(found.counts)
            self._reopened.update(found.reopened)
            self._past += found.past

    def _end(self, page: EndedPage) -> None:
        record, recorded, kept = page.record, page.recorded, page.kept
        self._records[record.url] = record
        if not recorded:
            self._unrecorded.add(record.url)
        self._count_end(record.outcome, record.reason, record.url)
        if record.bytes:
            self._counts["bytes"] += record.bytes
        for name in counters(record.cut):
            self._counts[name] += 1
        if record.needs_rendering:
            self._counts[NEEDS_RENDERING] += 1
        if record.rendered:
            self._counts[RENDERED] += 1
        if record.items and recorded:
            self._counts["items"] += record.items
            self._counts["items_invalid"] += record.items_invalid or 0
        if kept is not None and recorded:
            self._kept.append(kept)
            self.held_bytes += kept.size

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of the URLs that have ended so far, as a commit would add them."""
        return self._counts

    @property
    def kept(self) -> Sequence[Kept]:
        return self._kept

    def locate(self, locations: Mapping[str, BodyLocation]) -> None:
        """Record in which files pages' contents are stored, and drop the contents from memory."""
        for url, location in locations.items():
            self._records[url] = with_body_location(self._records[url], location)
        self._kept, self.held_bytes = [], 0

    def _count_end(self, outcome: Outcome, reason: Reason, url: str = "") -> None:
        self._counts[outcome] += 1
        self._counts[f"{outcome}.{reason}"] += 1
        index = self._hosts.get(host_of(url)) if self._hosts and url else None
        if index is not None:
            self._counts[f"host.{index}.done"] += 1
            self._counts[f"host.{index}.failed"] += outcome is Outcome.FAILED

    def _return(self, page: Returning) -> None:
        # Otherwise a host that is blocked for another 300 ms would be checked all the time.
        delay_s = min(max(1, ceil(page.delay_s)), DELAY_S_MAX)
        self._again[page.target.url] = Requeue(target=page.target, delay_s=delay_s)
        self._counts[page.why] += 1

    def count(self, counts: Mapping[str, int]) -> None:
        """Add counts that must be stored, even if all URLs of the pack are sent again."""
        self._counts.update(counts)
        self.must_store = True

    def requeue_delay_s(self, order: Sequence[Target]) -> int | None:
        """Return the shortest delay after which a URL of the pack must be sent again, in seconds.

        Returns None unless all URLs of the pack (`order`) must be sent again unchanged.
        """
        if not order or any(
            target.url not in self._again or not _same(self._again[target.url].target, target)
            for target in order
        ):
            return None
        return min(item.delay_s for item in self._again.values())

    def _link(self, target: Target) -> None:
        """Add a link. Of links with the same URL, a sitemap is kept, else the lowest depth."""
        if self._erased.url(target.url):
            self._refuse(Refusal.ERASED)
            return
        standing = self._candidates.get(target.url)
        if (
            standing is None
            or (target.kind is TargetKind.SITEMAP and standing.kind is TargetKind.PAGE)
            or (target.kind is standing.kind and target.depth < standing.depth)
        ):
            self._candidates[target.url] = target

    def links_to(self, url: str, depth: int | None = None) -> bool:
        """Return True if `url` is among the links found so far, at `depth` or a lower depth."""
        standing = self._candidates.get(url)
        return standing is not None and (depth is None or standing.depth <= depth)

    def _refuse(self, refusal: Refusal, count: int = 1, urls: Iterable[str] = ()) -> None:
        """Count refused references, and keep up to `SAMPLES_MAX` of their URLs as samples."""
        if count:
            self._counts[f"refused.{refusal}"] += count
        taken = self._samples[refusal] if urls else []
        shown = filterfalse(self._erased.url, urls)
        taken += [redacted(url) for url in islice(shown, max(0, SAMPLES_MAX - len(taken)))]

    @property
    def left(self) -> tuple[Target, ...]:
        return tuple(self._left.values())

    @property
    def reopened(self) -> frozenset[str]:
        """URLs whose claims were just abandoned, so that caches of claims are outdated."""
        return frozenset(self._reopened)

    @property
    def samples(self) -> Mapping[str, Sequence[str]]:
        return {reason: tuple(dict.fromkeys(urls)) for reason, urls in self._samples.items()}

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(self._candidates)

    @property
    def links(self) -> tuple[Target, ...]:
        return tuple(self._candidates.values())

    @property
    def returning(self) -> int:
        return len(self._again)

    @property
    def deferrals(self) -> int:
        return self._counts["deferrals"]

    def knows(self, url: str) -> bool:
        """Return True if a URL has ended or will be sent again."""
        return url in self._records or url in self._again or url in self._unasked

    def outcome(self, url: str) -> Outcome | None:
        record = self._records.get(url)
        return None if record is None else record.outcome

    def journal(
        self,
        order: Sequence[Target],
        at_ms: int,
        plan: LinkPlan | None = None,
        reserved: Mapping[str, int] = NOTHING,
        by: int = 0,
    ) -> Journal:
        """Return the journal, in the order of the pack's URLs.

        Without a `plan`, all links are claimed now. `reserved` are the amounts that the delivery
        with the number `by` reserved from budgets.
        """
        plan = plan or LinkPlan(now=self.links, left=self.left)
        urls = [target.url for target in order]
        again = tuple(self._again[url] for url in urls if url in self._again)
        counts = Counter(self._counts)
        if taken := _retries_taken(order, again):
            counts["retries_taken"] = taken
        ended = [self._records[url] for url in urls if url in self._records]
        return Journal(
            at_ms=at_ms,
            records=tuple(record for record in ended if record.url not in self._unrecorded),
            returning=again,
            candidates=tuple(plan.now),
            counts=MappingProxyType(dict(sorted(counts.items()))),
            reserved=reserved,
            delivery=by,
            unasked=tuple(self._unasked),
            unrecorded=tuple(
                Unrecorded(url=record.url, outcome=record.outcome, reason=record.reason)
                for record in ended
                if record.url in self._unrecorded
            ),
            crawl=self.crawl,
            left=tuple(plan.left),
            past=tuple(self._past),
            late=tuple(plan.late),
            surplus_band=plan.surplus_band,
        )


def not_requested(target: Target, reason: Reason) -> PageResult:
    return PageResult(end=NotRequested(target=target, reason=reason))


def result_for(crawl: Crawl) -> PackResult:
    return PackResult(crawl.id, crawl.hosts_counted, erase_rule(crawl))


class UncommittedResults:
    """Results of packs in this process that are not committed yet, for progress displays.

    No decision uses them, and they are not stored. If the process dies, these URLs are requested
    again.
    """

    # A pack of a host with one request per second takes half a minute. The stored counters change
    # only when it is committed.
    def __init__(self) -> None:
        self._results: dict[str, PackResult] = {}

    def begin(self, pack_id: str, result: PackResult) -> None:
        self._results[pack_id] = result

    def end(self, pack_id: str) -> None:
        """Remove a pack that is committed or will be repeated. A second call has no effect."""
        self._results.pop(pack_id, None)

    def counts(self, crawl_id: str) -> Counts:
        total: Counter[str] = Counter()
        for result in self._results.values():
            if result.crawl == crawl_id:
                total.update(result.counts)
        return total


def _retries_taken(order: Sequence[Target], again: Sequence[Requeue]) -> int:
    """Count the URLs of a pack that were requested for a second or later attempt."""
    deferred = {(one.target.url, one.target.attempt) for one in again}
    return sum(
        target.attempt > 1 and (target.url, target.attempt) not in deferred for target in order
    )


def _same(target: Target, sent: Target) -> bool:
    """Return True if two targets are equal, ignoring `counted`."""
    return target == sent or replace(target, counted=sent.counted) == sent
