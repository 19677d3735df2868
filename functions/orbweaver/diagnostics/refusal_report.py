"""A report on a crawl: links refused, URLs skipped and failed, pages cut or empty; its requests.

Counts are the crawl's counters. Examples of what was claimed come from page records; those of what
was refused are what workers kept, written so that they may be shown. What ended because
the crawl was over has no record, and so no example.
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

REFUSED = "refused"
KINDS = (REFUSED, str(Outcome.SKIPPED), str(Outcome.FAILED), COUNTER, NEEDS_RENDERING)
# The reason of pages that need rendering, and its meaning.
SCRIPTS = "scripts"
NEEDED = (
    "it is empty until its scripts have run: text and links of it are not seen (a guess by its"
    " marks and its little text); --render auto runs them, on one machine with a Chromium"
)
# Records that are looked at for examples: the rare ones may go without.
RECORDS_MAX = 20_000
# Of links that wait.
KINDS_NAMED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """One reason: how often, what it means, and some URLs that it was the reason for.

    `kind` is `refused` for links that were never claimed, `incomplete` for pages of which the
    part that `reason` names is not whole, `needs_rendering` for pages that are empty until their
    scripts have run, or else an outcome. Of refused links `taken` counts the
    examples that were asked for all the same, since another page leads to them by a way that fits;
    they are none of `samples`.
    """

    kind: str
    reason: str
    count: int
    means: str
    samples: tuple[str, ...] = ()
    # What the records of these URLs name as the error, each once.
    causes: tuple[str, ...] = ()
    taken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKind:
    """The requests of a kind of URL; `texts` of `texts_read` are different, `usd` at list prices.

    `led_to` counts pages that may be indexed, that its pages named first, and that do not only lie
    in another folder.
    `exclude` is a pattern that leaves the kind out, and `saves_…` what that would have saved.
    """

    kind: str
    requests: int
    urls: int
    outcomes: Mapping[str, int]
    noindex: int
    titles: int
    bodies: int
    led_to: int
    texts_read: int
    texts: int
    example: str
    usd: float
    exclude: str
    saves_requests: int
    saves_usd: float
    brought_little: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests of a crawl by kind, those with the most first.

    `unread`: there are more records than were looked at. `other_…` are of kinds that are not named,
    `saves_…` what would have been saved without the `suggested` kinds, all together.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SparedKind:
    """Links of a kind of URL, and one of them, without values of parameters."""

    kind: str
    links: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spared:
    """Links that wait while a crawl runs, and are spared once it has ended.

    `links` counts different URLs that were never asked for, or says, where it is not `exact`, how
    many there are at most. `read` of them were looked at, those that would be asked for first, for
    `kinds`: the largest `KINDS_NAMED`, those with the most links first.
    """

    links: int = 0
    read: int = 0
    exact: bool = True
    kinds: tuple[SparedKind, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a crawl left out, by reason, most frequent first within a kind; its requests.

    `pages` counts those that could be read, `nothing_new` says that it ended without one URL: all
    that it began at was seen before.
    """

    crawl: Crawl
    skipped: tuple[Skipped, ...]
    requests: Requests
    spared: Spared = Spared()
    pages: int = 0
    nothing_new: bool = False


@dataclass(slots=True, kw_only=True)
class Examples:
    """Collects URLs for the reasons that the counters have, from records in any order."""

    wanted: dict[tuple[str, str], int]
    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    causes: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    looked_at: int = 0

    @classmethod
    def of(cls, total: Counts) -> Examples:
        """Say for which reasons there are URLs to be found."""
        return cls(
            wanted={
                (kind, reason): min(count, SAMPLES_MAX)
                for kind, reason, count in _counts(total)
                if kind != REFUSED
            }
        )

    @property
    def enough(self) -> bool:
        """Whether there is nothing more to look for, or no end of it."""
        return not self.wanted or self.looked_at >= RECORDS_MAX

    def see(self, record: PageRecord) -> None:
        """Take a record's URL for an example, if one of its kind is wanted."""
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
    requests: Requests = Requests(),
    spared: Spared = Spared(),
) -> Report:
    """Put the report together.

    `refused` holds the examples of refusals, `ended` those of them that have a record.
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
            means=_means(kind, reason),
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


def _means(kind: str, reason: str) -> str:
    """Say what a reason means; counters may be of another release."""
    if kind == NEEDS_RENDERING:
        return NEEDED
    if kind == COUNTER:
        return PARTS.get(reason, "")
    if kind == REFUSED:
        refusal = known(Refusal, reason)
        return "" if refusal is None else refusal.means
    found = known(Reason, reason)
    return "" if found is None else found.means
