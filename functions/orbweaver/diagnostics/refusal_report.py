"""Report on a crawl: refused links, skipped and failed URLs, truncated or empty pages, requests.

Counts are the crawl's counters. Examples of queued URLs come from page records, examples of refused
links from workers. URLs that were still queued when the crawl ended have no record, so no example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from orbweaver.frontier.pack_result import SAMPLES_MAX
from orbweaver.frontier.yield_drop import pages_of
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.cuts import COUNTER, PAGES, PARTS, parts_of
from orbweaver.model.outcome import Outcome, Reason, Refusal, known
from orbweaver.model.page_record import NEEDS_RENDERING, PageRecord
from orbweaver.model.value import value_class

REFUSED = "refused"
KINDS = (REFUSED, str(Outcome.SKIPPED), str(Outcome.FAILED), COUNTER, NEEDS_RENDERING)
# Reason shown for pages that are empty without their scripts, and its meaning.
SCRIPTS = "scripts"
NEEDED = (
    "it is empty until its scripts have run: text and links of it are not seen (a guess by its"
    " marks and its little text); --render auto runs them, on one machine with a Chromium"
)
# Maximum number of records to search for examples. Rare reasons might get no example.
RECORDS_MAX = 20_000
# Maximum number of kinds (groups of similar URLs) to list for waiting links.
KINDS_NAMED = 100


@value_class
class Skipped:
    """One reason why links or URLs were left out, with its count, meaning and example URLs.

    `kind` is an outcome, or one of three words. `refused` is for links that were never queued.
    `incomplete` is for pages with an incomplete part, which `reason` names. `needs_rendering` is
    for pages that are empty without scripts. A crawl can still request a URL whose link it refused,
    because it accepted a link on another page. `taken` counts such examples, and `samples` omits
    them.
    """

    kind: str
    reason: str
    count: int
    means: str
    samples: tuple[str, ...] = ()
    # Distinct errors in the records of these URLs.
    causes: tuple[str, ...] = ()
    taken: int = 0


@value_class
class RequestKind:
    """The requests of one kind (group of similar URLs). `usd` is at list prices.

    `titles` and `bodies` count distinct titles and bodies, and are estimates unless `exact`. Of the
    `texts_read` texts that were compared, `texts` are distinct. `led_to` counts indexable pages
    that a page of this kind linked first. It omits pages whose URL differs from the linking URL
    only in folders. `exclude` is a pattern that excludes the kind, and `saves_…` are its savings.
    """

    kind: str
    requests: int
    urls: int
    outcomes: Mapping[str, int]
    noindex: int
    titles: int
    bodies: int
    exact: bool
    led_to: int
    texts_read: int
    texts: int
    example: str
    usd: float
    exclude: str
    saves_requests: int
    saves_usd: float
    brought_little: bool


@value_class
class Requests:
    """The requests of a crawl by kind (group of similar URLs), most requests first.

    `unread` means that more records exist than were read. `other_urls` and `other_requests` count
    kinds that are not listed. `saves_requests` and `saves_usd` are the savings if all `suggested`
    patterns are excluded.
    """

    records: int = 0
    unread: bool = False
    requests: int = 0
    usd: float = 0.0
    kinds: tuple[RequestKind, ...] = ()
    other_urls: int = 0
    other_requests: int = 0
    suggested: tuple[str, ...] = ()
    saves_requests: int = 0
    saves_usd: float = 0.0


@value_class
class SparedKind:
    """Links of one kind (group of similar URLs), with an example without parameter values."""

    kind: str
    links: int
    example: str


@value_class
class Spared:
    """Late links of a crawl: links that wait, or that an ended crawl did not request.

    `links` counts distinct URLs. It is an upper bound unless `exact`. `kinds` are the largest
    groups of similar URLs, largest first. They contain only the `read` links that the crawl would
    request first.
    """

    links: int = 0
    read: int = 0
    exact: bool = True
    kinds: tuple[SparedKind, ...] = ()


NO_REQUESTS, NONE_SPARED = Requests(), Spared()


@value_class
class Report:
    """All URLs that a crawl left out, by reason, most frequent first, and its requests.

    `pages` counts the pages that could be read. `nothing_new` means that the crawl ended without a
    request, because earlier runs had claimed all its seeds.
    """

    crawl: Crawl
    skipped: tuple[Skipped, ...]
    requests: Requests
    spared: Spared = Spared()
    pages: int = 0
    nothing_new: bool = False


@dataclass(slots=True, kw_only=True)
class Examples:
    """Collects example URLs for each reason why URLs were left out, from page records.

    Records can be added in any order. `wanted` has the number of missing examples by kind and
    reason.
    """

    wanted: dict[tuple[str, str], int]
    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    causes: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    looked_at: int = 0

    @classmethod
    def for_crawl(cls, total: Counts) -> Examples:
        return cls(
            wanted={
                (kind, reason): min(count, SAMPLES_MAX)
                for kind, reason, count in _counts(total)
                if kind != REFUSED
            }
        )

    @property
    def is_complete(self) -> bool:
        """True if no example is missing, or if `RECORDS_MAX` records were searched."""
        return not self.wanted or self.looked_at >= RECORDS_MAX

    def add(self, record: PageRecord) -> None:
        """Keep a record's URL as an example if its reason still needs one."""
        self.looked_at += 1
        keys = [(str(record.outcome), str(record.reason))]
        keys += [(COUNTER, name) for name, _ in parts_of(record.cut)] if record.cut else []
        keys += [(NEEDS_RENDERING, SCRIPTS)] if record.needs_rendering else []
        for key in keys:
            if key in self.wanted:
                self.found.setdefault(key, []).append(record.url)
                if record.error:
                    self.causes.setdefault(key, {})[record.error] = None
                self.wanted[key] -= 1
                if not self.wanted[key]:
                    del self.wanted[key]


def report_of(
    crawl: Crawl,
    total: Counts,
    examples: Examples,
    refused: Mapping[str, Sequence[str]],
    ended: AbstractSet[str] = frozenset(),
    requests: Requests = NO_REQUESTS,
    spared: Spared = NONE_SPARED,
) -> Report:
    """Build the report of a crawl with these counters.

    `refused` has example links by reason. `ended` are the refused examples that have a record.
    """
    samples = {(REFUSED, reason): urls for reason, urls in refused.items()}
    lines = []
    for kind, reason, count in _counts(total):
        known = samples.get((kind, reason), ())
        left = [url for url in known if url not in ended]
        skipped = Skipped(
            kind=kind,
            reason=reason,
            count=count,
            means=_meaning(kind, reason),
            samples=tuple(left if known else examples.found.get((kind, reason), ())),
            taken=len(known) - len(left),
            causes=tuple(examples.causes.get((kind, reason), ())),
        )
        lines.append(skipped)
    lines.sort(key=lambda line: (KINDS.index(line.kind), -line.count, line.reason))
    nothing_new = not crawl.live and not total.get("claimed") and not lines
    pages = pages_of(total)
    return Report(
        crawl=crawl,
        skipped=tuple(lines),
        pages=pages,
        requests=requests,
        spared=spared,
        nothing_new=nothing_new,
    )


def _counts(total: Counts) -> list[tuple[str, str, int]]:
    counts = []
    for key, count in total.items():
        kind, dot, reason = key.partition(".")
        if key == NEEDS_RENDERING and count:
            counts.append((kind, SCRIPTS, count))
        elif dot and count and kind in KINDS and key != f"{COUNTER}.{PAGES}":
            counts.append((kind, reason, count))
    return counts


def _meaning(kind: str, reason: str) -> str:
    """Return the meaning of a reason, or "" if the reason comes from another release."""
    if kind == NEEDS_RENDERING:
        return NEEDED
    if kind == COUNTER:
        return PARTS.get(reason, "")
    if kind == REFUSED:
        refusal = known(Refusal, reason)
        return "" if refusal is None else refusal.means
    found = known(Reason, reason)
    return "" if found is None else found.means
