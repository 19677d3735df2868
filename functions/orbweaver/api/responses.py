"""Response bodies of the API. Times are ISO 8601 in UTC, as in exports."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from orbweaver.api.problems import Part
from orbweaver.budget.billing_units import units_of
from orbweaver.budget.prices import charged, metered, spent
from orbweaver.control.crawl_control import Status
from orbweaver.control.json_reader import Fits, schema_of_fields
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
from orbweaver.model.value import value_class

Moment = Annotated[str, Fits(form="date-time", example="2026-11-21T09:00:00.000Z")]
Next = Annotated[str | None, Fits(says="the cursor of the next page; null on the last one")]
Counts = Mapping[str, int]
# A row has the columns of an exported page, with times as text.
ROW = schema_of_fields(PageRecord, fetched_at={"type": "string", "format": "date-time"})
ANYTHING = {"type": "object"}
Row = Annotated[Mapping[str, Any], Fits(schema=ROW)]


@value_class
class Run:
    """One run of a crawl."""

    id: str
    name: str
    state: State
    stop: Annotated[Stop | None, Fits(says="reason why it ended or stops")]
    started_at: Moment
    finished_at: Moment | None

    @classmethod
    def build(cls, crawl: "Crawl") -> Self:
        ended_ms = crawl.finished_at_ms
        return cls(
            id=crawl.id,
            name=crawl.name,
            state=crawl.state,
            stop=crawl.stop,
            started_at=iso(crawl.started_at_ms),
            finished_at=None if ended_ms is None else iso(ended_ms),
        )


@value_class
class Runs:
    """Crawls, newest first."""

    crawls: tuple[Run, ...]
    next: Next = None


@value_class
class Progress:
    """Progress of a crawl. `claimed` counts queued URLs, `refused` links that were never queued."""

    crawl: Run
    claimed: int
    done: int
    outcomes: Counts
    reasons: Annotated[Mapping[str, Counts], Fits(says="by outcome")]
    refused: Counts
    incomplete: Annotated[Counts, Fits(says="pages with a truncated or omitted part, by part")]
    needs_rendering: Annotated[int, Fits(says="pages that are empty until their scripts run")]
    retries: int
    deferrals: int
    bytes: int
    elapsed_s: float
    cost_usd: Annotated[float, Fits(says="an estimate, at list prices")]
    units: Annotated[Counts, Fits(says="billed units of AWS by term, as far as they were counted")]
    units_usd: Annotated[float, Fits(says="cost of `units`, at list prices")]
    spent_usd: Annotated[float, Fits(says="`units_usd`, or `cost_usd` if no units were counted")]
    pages_per_s: Annotated[float, Fits(says="pages fetched per second, over the whole run")]

    @classmethod
    def build(cls, status: "Status") -> Self:
        total = status.counters.total
        units = units_of(total).by_term
        return cls(
            crawl=Run.build(status.crawl),
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


@value_class
class OverviewRow:
    """Progress of a crawl, and a comparison with earlier runs of the same name."""

    progress: Progress
    runs: Annotated[int, Fits(says="number of runs of this name, if requested")]
    less_percent: Annotated[
        int | None,
        Fits(says="decrease of pages read since the previous run; null if unknown"),
    ]


@value_class
class OverviewList:
    """Crawls with their progress: unfinished crawls first, then the newest."""

    crawls: tuple[OverviewRow, ...]
    total: Annotated[int, Fits(says="number of crawls on all pages")]
    next: Next = None


@value_class
class Difference:
    """One key of a crawl that an edit would change."""

    key: str
    was: Annotated[Any, Fits(schema={})]
    becomes: Annotated[Any, Fits(schema={})]


@value_class
class Differences:
    """Changes that an edit would make. The crawl is unchanged."""

    crawl: Run
    changes: tuple[Difference, ...]


@value_class
class Estimated:
    """Cost of a crawl on AWS, with the defaults of `orbweaver estimate`."""

    pages: Annotated[int, Fits(says="the definition's limit, or 10,000")]
    hosts: Annotated[int, Fits(says="of the seeds")]
    usd: float
    least_s: Annotated[float, Fits(says="duration at the pace of its hosts")]


@value_class
class Checked:
    """Mistakes of a definition, and its name, number of seeds and estimated cost."""

    problems: Annotated[tuple[Part, ...], Fits(says="the first 100 mistakes")]
    name: str | None
    seeds: int
    estimate: Estimated | None
    warnings: Annotated[
        tuple[str, ...], Fits(says="valid settings with effects that may surprise")
    ] = ()


@value_class
class HostOfCrawl:
    """State of a host for one crawl that has a seed there."""

    crawl: Run
    standing: HostView


@value_class
class HostSeen:
    """State of a host for all crawls. Times are in ms since the epoch."""

    host: str
    blocked_until_ms: int | None
    next_slot_ms: int | None
    why: str | None
    failures: int
    strikes: Annotated[
        int, Fits(says="number of 429 and 503 responses; 30 minutes without one reset it")
    ]
    struck_at_ms: Annotated[int | None, Fits(says="time of the last one; null if strikes is 0")]
    robots_at_ms: Annotated[int | None, Fits(says="time when robots.txt was fetched")]
    robots_verdict: Annotated[
        str | None,
        Fits(says="rules, allow (no robots.txt) or unreachable; null if not requested yet"),
    ]
    robots: Annotated[str | None, Fits(says="its robots.txt, possibly truncated")]
    robots_cut: Annotated[int, Fits(says="number of bytes that are not shown")]
    line: Annotated[int | None, Fits(says="the line that decides on `url`")]
    allowed: Annotated[bool | None, Fits(says="whether robots.txt allows `url`")]
    says: Annotated[str | None, Fits(says="the decision on `url`, in words")]
    crawls: Annotated[tuple[HostOfCrawl, ...], Fits(says="the newest crawl with a seed there")]
    more: Annotated[int, Fits(says="number of further crawls with a seed there")]


@value_class
class HostList:
    """State of the hosts of a crawl's seeds. Times are in ms since the epoch."""

    crawl: Run
    hosts: tuple[HostView, ...]


@value_class
class LeftOut:
    """Skipped links by reason, most frequent first, and requests by group of similar URLs."""

    crawl: Run
    skipped: tuple[Skipped, ...]
    spared: Spared
    requests: Requests


@value_class
class Rows:
    """Page records, day by day. Records stored while the list is read might be missing."""

    pages: tuple[Row, ...]
    next: Next = None


@value_class
class FoundItem:
    """An item extracted from a page, with its problems if it is invalid."""

    url: str
    fetched_at: Moment
    rule: str
    place: Annotated[int, Fits(says="index among the page's items of that rule, from 0")]
    item: Annotated[Mapping[str, Any], Fits(schema=ANYTHING, says="its fields, by name")]
    problems: tuple[str, ...]

    @classmethod
    def build(cls, record: PageRecord, item: Item) -> Self:
        return cls(
            url=record.url,
            fetched_at=iso(record.fetched_at),
            rule=item.table,
            place=item.place,
            item=dict(item.fields),
            problems=item.problems,
        )


@value_class
class FoundItems:
    """Items of a crawl, day by day. All items of a page are together."""

    items: tuple[FoundItem, ...]
    next: Next = None


@value_class
class FoundText:
    """The main text of a page. `left_out` has the reason if the text is missing."""

    url: str
    fetched_at: Moment
    title: str | None
    language: str | None
    text: str | None
    markdown: str | None
    left_out: str | None

    @classmethod
    def build(cls, record: PageRecord, document: Mapping[str, Any], left_out: str | None) -> Self:
        return cls(
            url=record.url,
            fetched_at=iso(record.fetched_at),
            title=document.get("title", record.title),
            language=document.get("language", record.language),
            text=document.get("text"),
            markdown=document.get("markdown"),
            left_out=left_out,
        )


@value_class
class FoundTexts:
    """Main texts of a crawl's pages, day by day."""

    texts: tuple[FoundText, ...]
    next: Next = None


@value_class
class ExportedFile:
    """A file of an export, as in its manifest. `path` is below `exports/` of the bucket."""

    day: str
    path: str
    table: str
    format: str
    rows: int
    bytes: int
    sha256: str
    link: Annotated[str, Fits(says="download link, valid for 15 minutes")]


@value_class
class ExportedFiles:
    """The files of a crawl's exports, day by day."""

    files: tuple[ExportedFile, ...]
    next: Next = None


@value_class
class Accepted:
    """Number of seeds that were queued, and their crawl."""

    crawl: str
    accepted: int


@value_class
class Said:
    """One fact about a URL."""

    about: str
    words: str


@value_class
class Explained:
    """The outcome of a URL, with reasons."""

    url: Annotated[str | None, Fits(says="its canonical form; null if it is not a URL")]
    crawl: str
    fate: UrlStatus
    verdict: str
    refusal: Annotated[str | None, Fits(says="the first rule that refuses the URL")]
    statements: tuple[Said, ...]
    record: Row | None

    @classmethod
    def build(cls, facts: "Facts", told: "Explanation") -> Self:
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
    cells: Mapping[str, Any] = page_as_json(record)
    return cells


def _below(total: Mapping[str, int], group: str) -> dict[str, int]:
    prefix = f"{group}."
    return {
        key.removeprefix(prefix): number
        for key, number in sorted(total.items())
        if key.startswith(prefix) and number
    }
