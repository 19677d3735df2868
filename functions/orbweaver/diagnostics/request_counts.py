"""A crawl's requests by kind (group of similar URLs): results, cost, and exclusion patterns.

The counts come from page records in any order, so URLs without a record are not counted. Memory is
bounded: a limited number of kinds (`model/url_kind.py`), of distinct titles and bodies per kind
(`Distinct`), and of text locations. Texts are compared by digests of stored main texts, or of
bodies if no text is stored.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nsmallest
from itertools import accumulate
from typing import Self

from orbweaver.budget.prices import spent_on
from orbweaver.diagnostics.refusal_report import RequestKind, Requests
from orbweaver.frontier import warc
from orbweaver.frontier.journal import NOTHING
from orbweaver.frontier.retrying import all_of
from orbweaver.model.crawl import Counts
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.ports import Files
from orbweaver.model.url_kind import (
    FOLDED_SHARE,
    Kinds,
    Shape,
    covers,
    example_of,
    folded,
    in_any_folder,
    kind_text,
    pattern_of,
    shape_of,
)
from orbweaver.model.url_patterns import matches
from orbweaver.model.value import value_class
from orbweaver.parsing.charset import decode
from orbweaver.parsing.main_text import plain_words
from orbweaver.parsing.text_digest import distance, text_digest

# Two texts count as equal if their digests differ in at most this number of bits.
NEAR_BITS = 8
DIFFERENT_KEPT = 128
SAMPLES_MAX = 12
KINDS_SAMPLED = 25
# Maximum bytes of one sampled page, and of all sampled pages of a kind. Extracting a main text
# takes 0.3 ms of CPU per KB, so all samples take 5 s.
SAMPLE_BYTES_MAX, SAMPLES_BYTES_MAX = 256 * 1024, 640 * 1024
# To suggest an exclusion, a kind needs this many requests, and this share of all requests.
SUGGESTED_MIN, SUGGESTED_SHARE = 10, 0.005
# Kinds are merged in this many passes. Pass n, counted from 0, keeps the first n folders of a path.
# Useful kinds have at most `OTHERS_SHARE` of the requests of a merged kind.
FOLDERS_KEPT, OTHERS_SHARE = 3, 0.1
# If a crawl has fewer distinct titles per page than this, titles are ignored.
TITLES_SHARE = 0.1
READ_AT_ONCE = 16


@dataclass(slots=True)
class Distinct:
    """Counts distinct texts: exactly up to `DIFFERENT_KEPT`, above that with an error of 10 %."""

    kept: set[int] = field(default_factory=set)
    zeros: int = 0

    def add(self, text: str) -> None:
        self._take((int.from_bytes(_hash(text), "little"),))

    def merge(self, other: Distinct) -> None:
        self.zeros = max(self.zeros, other.zeros)
        kept, self.kept = self.kept, set()
        self._take((*kept, *other.kept))

    def _take(self, hashes: Iterable[int]) -> None:
        self.kept.update(one for one in hashes if not one & (1 << self.zeros) - 1)
        # If there are too many hashes, keep the ones that end in one more zero bit.
        while len(self.kept) > DIFFERENT_KEPT:
            self.zeros += 1
            self.kept = {one for one in self.kept if not one & (1 << self.zeros) - 1}

    @property
    def count(self) -> int:
        return len(self.kept) << self.zeros

    @property
    def exact(self) -> bool:
        return not self.zeros


@value_class
class StoredText:
    """Location of a page's main text, or of its body if `body` is True.

    `bytes` is the decoded size of the page.
    """

    url: str
    title: str
    content_type: str | None
    key: str
    offset: int
    length: int
    bytes: int
    body: bool


@dataclass(slots=True)
class KindCounts:
    """Counts of one kind of URLs. A sample is the hash of a URL and the location of its text."""

    urls: int = 0
    requests: int = 0
    noindex: int = 0
    sitemaps: int = 0
    led_to: int = 0
    seeds: int = 0
    with_items: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    titles: Distinct = field(default_factory=Distinct)
    bodies: Distinct = field(default_factory=Distinct)
    samples: list[tuple[bytes, StoredText]] = field(default_factory=list)
    example: tuple[bytes, str] | None = None

    @property
    def weight(self) -> int:
        """Sort key: the number of requests, then the number of URLs."""
        return self.requests * 1_000 + self.urls

    @property
    def pages(self) -> int:
        """Number of URLs that were fetched or are unchanged, without sitemaps."""
        return self.outcomes[Outcome.FETCHED] + self.outcomes[Outcome.UNCHANGED] - self.sitemaps

    def merge(self, other: Self) -> None:
        self.urls += other.urls
        self.requests += other.requests
        self.noindex += other.noindex
        self.sitemaps += other.sitemaps
        self.led_to += other.led_to
        self.seeds += other.seeds
        self.with_items += other.with_items
        self.outcomes += other.outcomes
        self.titles.merge(other.titles)
        self.bodies.merge(other.bodies)
        self.samples = nsmallest(SAMPLES_MAX, (*self.samples, *other.samples), key=_first)
        examples = [one for one in (self.example, other.example) if one is not None]
        self.example = min(examples, default=None)

    def add(self, record: PageRecord) -> None:
        self.urls += 1
        # A record without a request has no latency.
        self.requests += record.attempt if record.latency_ms is not None else 0
        self.outcomes[record.outcome] += 1
        self.noindex += record.reason is Reason.NOINDEX
        self.sitemaps += record.reason is Reason.SITEMAP
        self.seeds += record.depth == 0 and record.referrer is None
        self.with_items += (record.items or 0) > (record.items_invalid or 0)
        digest = _hash(record.url)
        if self.example is None or digest < self.example[0]:
            self.example = (digest, example_of(record.url))
        if record.outcome not in (Outcome.FETCHED, Outcome.UNCHANGED):
            return
        body = record.sha256 or record.url
        self.titles.add(record.title or body)
        self.bodies.add(body)
        place = stored_text(record)
        if place is not None and (len(self.samples) < SAMPLES_MAX or digest < self.samples[-1][0]):
            self.samples = nsmallest(SAMPLES_MAX, (*self.samples, (digest, place)), key=_first)


class RequestCounts:
    """Counts requests by kind of URL, record by record."""

    def __init__(self) -> None:
        self.records = 0
        self._kinds = Kinds(KindCounts)

    def add(self, record: PageRecord) -> None:
        self.records += 1
        self._kinds.data_of(record.url).add(record)
        if record.referrer is not None and _may_be_indexed(record):
            here, there = (in_any_folder(shape_of(url)) for url in (record.url, record.referrer))
            if here != there:
                self._kinds.data_of(record.referrer).led_to += 1

    def samples(self) -> list[StoredText]:
        """Return the locations of a sample of texts, which the caller reads."""
        # Take the URLs with the lowest hashes from the kinds with the most requests. So the same
        # records always give the same sample.
        places = []
        for found in list(self._folded().values())[:KINDS_SAMPLED]:
            sizes = accumulate(place.bytes for _, place in found.samples)
            enough = sum(size <= SAMPLES_BYTES_MAX for size in sizes)
            places += [place for _, place in found.samples[:enough]]
        return places

    def _folded(self) -> dict[Shape, KindCounts]:
        """Merge kinds that have few requests and differ in one word."""
        found = {shape: one for shape, one in self._kinds.heaviest().items() if one.urls}
        least = FOLDED_SHARE * sum(one.requests for one in found.values())
        places = folded({shape: one.requests for shape, one in found.items()}, least)
        return _merged((places[shape], one) for shape, one in found.items())

    def requests(
        self,
        total: Counts,
        digests: Mapping[str, int] = NOTHING,
        *,
        seeds: Collection[str] = (),
        unread: bool = False,
    ) -> Requests:
        """Return the requests by kind, with exclusion patterns that match no seed.

        `total` are the crawl's counters, and `digests` the digests of the texts read, by URL.
        `unread` is True if some records were not added.
        """
        judged = _Judged.build(self._folded(), digests)
        for kept in range(FOLDERS_KEPT):
            judged = _Judged.build(_merge_folders(judged, kept), digests)
        found, rest = judged.found, self._kinds.rest
        asked = sum(one.requests for one in found.values()) + rest.requests
        urls = max(self.records, total.get("claimed", 0))
        per_record = asked / self.records if self.records else 0.0

        # A kind's share of the crawl's cost, by the budget's prices for claims (records of queued
        # URLs) and requests. An exclusion saves at least this amount. It also leaves out pages that
        # only excluded pages link.
        def usd(some: Iterable[KindCounts]) -> float:
            parts = [(one.urls, one.requests) for one in some]
            these = (sum(one for one, _ in parts), sum(one for _, one in parts))
            return spent_on(total, these, (urls, per_record * urls))

        least = max(SUGGESTED_MIN, SUGGESTED_SHARE * asked)
        useless = [one for one in judged.spare if found[one].requests >= least]
        useless = [one for one in useless if judged.alone(one)]
        useless = [one for one in useless if not _matches_any(pattern_of(one), seeds)]
        suggested = [
            shape
            for shape in useless
            if not any(other != shape and covers(other, shape) for other in useless)
        ]
        saved = {one for shape in suggested for one in judged.covered(shape)}
        return Requests(
            records=self.records,
            unread=unread,
            requests=asked,
            usd=usd((*found.values(), rest)),
            kinds=tuple(_kind(judged, shape, usd) for shape in found),
            other_urls=rest.urls,
            other_requests=rest.requests,
            suggested=tuple(map(pattern_of, suggested)),
            saves_requests=sum(found[one].requests for one in saved),
            saves_usd=usd(found[one] for one in saved),
        )


@value_class
class _Judged:
    """All kinds, with the numbers of their distinct texts and of their texts that were read.

    `little` are kinds with few useful requests (`_brought_little`), `spare` those of them that can
    be excluded (`_can_be_spared`).
    """

    found: Mapping[Shape, KindCounts]
    texts: Mapping[Shape, tuple[int, int]]
    little: Mapping[Shape, None]
    spare: Mapping[Shape, None]

    @classmethod
    def build(cls, found: Mapping[Shape, KindCounts], digests: Mapping[str, int]) -> Self:
        texts = {shape: _texts(one, digests) for shape, one in found.items()}
        titles, pages = (
            sum(one.titles.count for one in found.values()),
            sum(one.pages for one in found.values()),
        )
        titled = titles >= TITLES_SHARE * pages
        little = [
            shape
            for shape, one in found.items()
            if _brought_little(one, texts[shape], titled=titled)
        ]
        spare = [one for one in little if _can_be_spared(found[one], texts[one], titled=titled)]
        known = (dict.fromkeys(little), dict.fromkeys(spare))
        return cls(found=found, texts=texts, little=known[0], spare=known[1])

    def covered(self, shape: Shape) -> list[Shape]:
        """Return the kinds whose URLs the exclusion pattern of `shape` (a kind of URL) matches."""
        return [one for one in self.found if covers(shape, one)]

    def alone(self, shape: Shape) -> bool:
        """Return whether the exclusion pattern of `shape` matches only kinds that can be spared."""
        return self.spare.keys() >= set(self.covered(shape))


def _merge_folders(judged: _Judged, kept: int) -> dict[Shape, KindCounts]:
    """Merge kinds that brought little and differ only in folders after the first `kept` ones.

    A merged kind can include useful kinds with a small share of its requests (`OTHERS_SHARE`).
    """
    groups: defaultdict[Shape, list[Shape]] = defaultdict(list)
    for shape in judged.little:
        groups[in_any_folder(shape, kept)].append(shape)
    places: dict[Shape, Shape] = {}
    for wider, shapes in groups.items():
        within = judged.covered(wider)
        asked = {shape: judged.found[shape].requests for shape in within}
        others = sum(asked[shape] for shape in within if shape not in judged.little)
        if len(shapes) > 1 and others <= OTHERS_SHARE * sum(asked.values()):
            places |= {shape: wider for shape in within if shape not in places}
    return _merged((places.get(shape, shape), one) for shape, one in judged.found.items())


def _merged(kinds: Iterable[tuple[Shape, KindCounts]]) -> dict[Shape, KindCounts]:
    """Add up the counts of equal shapes. The kinds with the most requests come first."""
    found: defaultdict[Shape, KindCounts] = defaultdict(KindCounts)
    for shape, one in kinds:
        found[shape].merge(one)
    return dict(sorted(found.items(), key=lambda one: (-one[1].weight, kind_text(one[0]))))


def _kind(
    judged: _Judged, shape: Shape, usd: Callable[[Iterable[KindCounts]], float]
) -> RequestKind:
    one, without = judged.found[shape], [judged.found[other] for other in judged.covered(shape)]
    texts, texts_read = judged.texts[shape]
    pages = one.outcomes[Outcome.FETCHED] + one.outcomes[Outcome.UNCHANGED]
    return RequestKind(
        kind=kind_text(shape),
        requests=one.requests,
        urls=one.urls,
        outcomes={str(outcome): one.outcomes[outcome] for outcome in sorted(one.outcomes)},
        noindex=one.noindex,
        # An estimate can exceed the number of pages.
        titles=min(one.titles.count, pages),
        bodies=min(one.bodies.count, pages),
        exact=one.titles.exact and one.bodies.exact,
        led_to=one.led_to,
        texts=texts,
        texts_read=texts_read,
        example=one.example[1] if one.example else "",
        usd=usd((one,)),
        exclude=pattern_of(shape),
        saves_requests=sum(other.requests for other in without),
        saves_usd=usd(without),
        brought_little=shape in judged.little,
    )


def _texts(one: KindCounts, digests: Mapping[str, int]) -> tuple[int, int]:
    """Return how many texts of a kind are distinct, and how many were read."""
    read = [digests[place.url] for _, place in one.samples if place.url in digests]
    different: list[int] = []
    for digest in read:
        if all(distance(digest, other) > NEAR_BITS for other in different):
            different.append(digest)
    return len(different), len(read)


def _brought_little(one: KindCounts, texts: tuple[int, int], *, titled: bool) -> bool:
    """Return whether at most half of a kind's requests brought new content or led to new pages."""
    # A page is new if it is indexable, and its title, body and (in the sample) text are unique in
    # its kind. A request also counts if its page was the first to link an indexable page, unless
    # both URLs differ only in their folders. Titles are ignored if few pages have a title of their
    # own.
    pages = max(0, one.pages - one.noindex)
    by_text = pages * texts[0] / texts[1] if texts[1] else pages
    by_title = one.titles.count if titled else pages
    new = max(min(pages, by_title, one.bodies.count, by_text), one.with_items)
    return one.requests > 0 and (one.sitemaps + new + one.led_to) * 2 <= one.requests


def _can_be_spared(one: KindCounts, texts: tuple[int, int], *, titled: bool) -> bool:
    """Return whether excluding a kind loses no seed, item, link or distinct text."""
    # No page is a seed, has a valid item, or was the first to link an indexable page. At most half
    # of the requests brought a distinct title or body, and at most half of the texts read are
    # distinct. If no texts were read, a distinct body counts as a distinct text.
    if one.seeds or one.with_items or one.led_to or one.sitemaps:
        return False
    pages = max(0, one.pages - one.noindex)
    by_text = pages * texts[0] / texts[1] if texts[1] else min(pages, one.bodies.count)
    by_title = min(pages, one.bodies.count, one.titles.count if titled else pages)
    return max(by_text, by_title) * 2 <= one.requests


def _matches_any(pattern: str, urls: Collection[str]) -> bool:
    return any(matches((pattern,), url) for url in urls)


def _may_be_indexed(record: PageRecord) -> bool:
    """Return whether a record's page was read and is indexable."""
    read = record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED)
    return read and record.reason not in (Reason.NOINDEX, Reason.SOFT_404, Reason.REPEATED)


def stored_text(record: PageRecord) -> StoredText | None:
    """Return the location of a page's text, or else of its HTML body.

    None: neither is stored, or the page is too large to be read for a report.
    """
    key, body = record.body_key, record.text_offset is None
    offset, length = record.text_offset, record.text_length
    if body:
        offset, length = record.body_offset, record.body_length
    if key is None or offset is None or length is None or (record.bytes or 0) > SAMPLE_BYTES_MAX:
        return None
    if body and record.charset is None:  # the body is not an HTML page
        return None
    return StoredText(
        url=record.url,
        title=record.title or "",
        content_type=record.content_type,
        key=key,
        offset=offset,
        length=length,
        bytes=record.bytes or 0,
        body=body,
    )


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _first(one: tuple[bytes, StoredText]) -> bytes:
    return one[0]


async def digests_of(places: Iterable[StoredText], files: Files) -> Mapping[str, int]:
    """Return the digests of stored texts by URL. Deleted and unreadable texts are omitted."""
    found = await all_of((_digest(place, files) for place in places), READ_AT_ONCE)
    return {url: digest for url, digest in found if digest is not None}


async def _digest(place: StoredText, files: Files) -> tuple[str, int | None]:
    try:
        member = await files.cut(place.key, place.offset, place.length)
        text = None if member is None else _text(place, member)
    except (Transient, Permanent, ValueError):
        text = None
    echo = f"{place.url} {place.title}"
    return place.url, None if text is None else text_digest(text, echo)


def _text(place: StoredText, member: bytes) -> str | None:
    """Return the text of a stored WARC record. None: erased. Raises ValueError if invalid."""
    stored = warc.read(member)
    if warc.is_tombstone(stored):
        return None
    if place.body:
        # Bounded: this process has no limits of a page.
        return plain_words(decode(stored.body(), place.content_type)[1])
    found = json.loads(stored.payload)["text"]
    return found if isinstance(found, str) else None
