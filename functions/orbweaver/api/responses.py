"""Responses of the API: their bodies. Times are ISO 8601 in UTC, as in exports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from orbweaver.api.problems import Part
from orbweaver.budget.billing_units import units_of
from orbweaver.budget.prices import charged, metered, spent
from orbweaver.control.crawl_control import Status
from orbweaver.control.json_schema import Fits, schema_of_fields
from orbweaver.diagnostics.explanation import Explanation
from orbweaver.diagnostics.host_status import HostView
from orbweaver.diagnostics.refusal_report import Requests, Skipped, Spared
from orbweaver.diagnostics.url_status import Facts, UrlStatus
from orbweaver.exporting.cells import iso
from orbweaver.exporting.manifest import page_as_json
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.cuts import COUNTER
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome
from orbweaver.model.page_record import NEEDS_RENDERING, PageRecord

Moment = Annotated[str, Fits(form="date-time", example="2026-11-21T09:00:00.000Z")]
Next = Annotated[str | None, Fits(says="the cursor of the next page; null on the last one")]
Counts = Mapping[str, int]
# A record's row is written as in exports: its time is a text there.
ROW = schema_of_fields(PageRecord, fetched_at={"type": "string", "format": "date-time"})
ANYTHING = {"type": "object"}
Row = Annotated[Mapping[str, Any], Fits(schema=ROW)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a crawl."""

    id: str
    name: str
    state: State
    stop: Annotated[Stop | None, Fits(says="why it ended, or is to end")]
    started_at: Moment
    finished_at: Moment | None

    @classmethod
    def of(cls, crawl: "Crawl") -> Self:
        """Show a crawl."""
        ended_ms = crawl.finished_at_ms
        return cls(
            id=crawl.id,
            name=crawl.name,
            state=crawl.state,
            stop=crawl.stop,
            started_at=iso(crawl.started_at_ms),
            finished_at=None if ended_ms is None else iso(ended_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Crawls, newest first."""

    crawls: tuple[Run, ...]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a crawl stands; its counts are of claimed URLs, and `refused` of links never claimed."""

    crawl: Run
    claimed: int
    done: int
    outcomes: Counts
    reasons: Annotated[Mapping[str, Counts], Fits(says="by outcome")]
    refused: Counts
    incomplete: Annotated[Counts, Fits(says="pages that are cut, by part")]
    needs_rendering: Annotated[int, Fits(says="pages that are empty until their scripts have run")]
    retries: int
    deferrals: int
    bytes: int
    elapsed_s: float
    cost_usd: Annotated[float, Fits(says="an estimate, at list prices")]
    units: Annotated[Counts, Fits(says="what AWS bills, by term, as far as it was counted")]
    units_usd: Annotated[float, Fits(says="what that comes to, at list prices")]
    spent_usd: Annotated[float, Fits(says="`units_usd`; `cost_usd` where no units were counted")]
    pages_per_s: Annotated[float, Fits(says="pages fetched a second, over the whole run")]

    @classmethod
    def of(cls, status: "Status") -> Self:
        """Show a crawl and its counters."""
        total = status.counters.total
        units = units_of(total).by_term
        return cls(
            crawl=Run.of(status.crawl),
            claimed=status.counters.claimed,
            done=status.counters.done,
            outcomes={outcome: total.get(outcome, 0) for outcome in Outcome},
            reasons={outcome: _below(total, outcome) for outcome in Outcome},
            refused=_below(total, "refused"),
            incomplete=_below(total, COUNTER),
            needs_rendering=total.get(NEEDS_RENDERING, 0),
            retries=total.get("retries", 0),
            deferrals=total.get("deferrals", 0),
            bytes=total.get("bytes", 0),
            elapsed_s=round(status.elapsed_ms / 1000, 3),
            cost_usd=round(charged(total) or 0.0, 6),
            units={str(term): number for term, number in units.items()},
            units_usd=round(metered(total) or 0.0, 6),
            spent_usd=round(spent(total) or 0.0, 9),
            pages_per_s=round(status.pages_per_s, 2),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRow:
    """How a crawl stands, and what stands behind it."""

    progress: Progress
    runs: Annotated[int, Fits(says="how many runs of its name are asked for")]
    less_percent: Annotated[
        int | None,
        Fits(says="by how much less it could read than the run before it; null if unknown"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewList:
    """Crawls with how they stand: first those that have not ended, then the newest."""

    crawls: tuple[OverviewRow, ...]
    total: Annotated[int, Fits(says="how many there are, on all pages")]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key of a crawl that an edit would change."""

    key: str
    was: Annotated[Any, Fits(schema={})]
    becomes: Annotated[Any, Fits(schema={})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What an edit would change; nothing has been."""

    crawl: Run
    changes: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """What a crawl would cost on AWS, with what `orbweaver estimate` assumes by itself."""

    pages: Annotated[int, Fits(says="the definition's limit, or 10,000")]
    hosts: Annotated[int, Fits(says="of the seeds")]
    usd: float
    least_s: Annotated[float, Fits(says="how long it takes at the pace of its hosts")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What does not fit in a definition, and what it would start: name, number of seeds, cost."""

    problems: Annotated[tuple[Part, ...], Fits(says="the first 100 things that do not fit")]
    name: str | None
    seeds: int
    estimate: Estimated | None
    warnings: Annotated[tuple[str, ...], Fits(says="settings that fit and may surprise")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOfCrawl:
    """How a crawl that began at a host does there."""

    crawl: Run
    standing: HostView


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """How a host stands for all crawls together; times in ms since the epoch."""

    host: str
    blocked_until_ms: int | None
    next_slot_ms: int | None
    why: str | None
    failures: int
    strikes: Annotated[
        int, Fits(says="how often it asked to be left alone; 30 quiet minutes forgive all")
    ]
    struck_at_ms: Annotated[int | None, Fits(says="when it did last; null: strikes is 0")]
    robots_at_ms: Annotated[int | None, Fits(says="when its robots.txt was fetched")]
    robots_verdict: Annotated[
        str | None, Fits(says="rules, allow (there is none), unreachable; null: not asked for yet")
    ]
    robots: Annotated[str | None, Fits(says="its robots.txt, as far as it is shown")]
    robots_cut: Annotated[int, Fits(says="how many bytes of it are not shown")]
    line: Annotated[int | None, Fits(says="the line of it that decides on `url`")]
    allowed: Annotated[bool | None, Fits(says="whether `url` may be asked for, by robots.txt")]
    says: Annotated[str | None, Fits(says="what decides on `url`, in words")]
    crawls: Annotated[tuple[HostOfCrawl, ...], Fits(says="the newest that began there")]
    more: Annotated[int, Fits(says="how many further crawls began there")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """How a crawl does at the hosts that it began at; times in ms since the epoch."""

    crawl: Run
    hosts: tuple[HostView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a crawl left out and why, most frequent first within a kind; where requests went."""

    crawl: Run
    skipped: tuple[Skipped, ...]
    spared: Spared
    requests: Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Page records, day by day; those that come while somebody reads may be missed."""

    pages: tuple[Row, ...]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """An item of a page, and why it is not what its rule asks for, if it is not."""

    url: str
    fetched_at: Moment
    rule: str
    place: Annotated[int, Fits(says="which of the page's items of that rule it is, from 0")]
    item: Annotated[Mapping[str, Any], Fits(schema=ANYTHING, says="its fields, by name")]
    problems: tuple[str, ...]

    @classmethod
    def of(cls, record: PageRecord, item: Item) -> Self:
        """Show an item of a record."""
        return cls(
            url=record.url,
            fetched_at=iso(record.fetched_at),
            rule=item.table,
            place=item.place,
            item=dict(item.fields),
            problems=item.problems,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """Items, those of a page together, day by day."""

    items: tuple[FoundItem, ...]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundText:
    """The main text of a page; `left_out` says why it is not here."""

    url: str
    fetched_at: Moment
    title: str | None
    language: str | None
    text: str | None
    markdown: str | None
    left_out: str | None

    @classmethod
    def of(cls, record: PageRecord, document: Mapping[str, Any], left_out: str | None) -> Self:
        """Show what is stored of a record's text."""
        return cls(
            url=record.url,
            fetched_at=iso(record.fetched_at),
            title=document.get("title", record.title),
            language=document.get("language", record.language),
            text=document.get("text"),
            markdown=document.get("markdown"),
            left_out=left_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTexts:
    """Main texts of pages, day by day."""

    texts: tuple[FoundText, ...]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A file of an export, as its manifest has it; `path` is below `exports/` of the bucket."""

    day: str
    path: str
    table: str
    format: str
    rows: int
    bytes: int
    sha256: str
    link: Annotated[str, Fits(says="where it is to be had, for 15 minutes at most")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFiles:
    """The files of a crawl's exports, day by day; a day is there once it was exported."""

    files: tuple[ExportedFile, ...]
    next: Next = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Seeds that are on the queue."""

    crawl: str
    accepted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that is known of a URL."""

    about: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What became of a URL, and why."""

    url: Annotated[str | None, Fits(says="its canonical form; null if it is no URL")]
    crawl: str
    fate: UrlStatus
    verdict: str
    refusal: Annotated[str | None, Fits(says="the first rule that refuses it")]
    statements: tuple[Said, ...]
    record: Row | None

    @classmethod
    def of(cls, facts: "Facts", told: "Explanation") -> Self:
        """Show an explanation."""
        statements = tuple(Said(about=one.about, words=one.words) for one in told.statements)
        return cls(
            url=next((one.words for one in statements if one.about == "url"), None),
            crawl=facts.crawl.id,
            fate=told.url_status,
            verdict=told.verdict,
            refusal=told.refusal,
            statements=statements,
            record=None if facts.record is None else row_of(facts.record),
        )


def row_of(record: PageRecord) -> Mapping[str, Any]:
    """Spell a record as exports do."""
    cells: Mapping[str, Any] = page_as_json(record)
    return cells


def _below(total: Mapping[str, int], group: str) -> dict[str, int]:
    prefix = f"{group}."
    return {
        key.removeprefix(prefix): number
        for key, number in sorted(total.items())
        if key.startswith(prefix) and number
    }
