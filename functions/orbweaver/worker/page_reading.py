"""Page reading: all that is done with the bytes of one answer, on plain values.

Job and reading are frozen values, so that a process of its own can do the work
(`adapters/local/reader.py`); its page comes back `bare`, without HTML and tree. A reading grows by
stages; where it is broken off, the last one says what is left out, and what was found before it
counts.

    links     charset, tree or outline, links, title, whether it is a "not found" page
    items     what the rules of a crawl find on it
    keeping   redaction, main text, body; as the records that are stored

Light answers are read in place, the others by a process of its own:

- Light is what takes at most 100 ms of CPU in place at a time, whatever it holds. Told by counts
  that take a hundredth of the reading itself; in doubt it is not light.
- Links, title and body of a page: at most `BYTES_MAX` and `TAGS_MAX`. It is read by its outline,
  which is linear (`parsing/html_scan.py`); a small one becomes a tree, which is quicker there, and
  as yet not slow where lexbor is quadratic.
- Main text and redaction are ten times as slow: at most `SMALL_BYTES_MAX` and `SMALL_TAGS_MAX`.
- Items need a tree. They are light on a page that becomes one for its links, and on an orderly one
  (`parsing/parse_guard.py`) of at most `SMALL_BYTES_MAX` and `SMALL_TAGS_MAX`. Both only up to
  `LIGHT_UNITS` of work. Rules may look at each part of a page for each other part of it. What takes
  more is read anew by that process. Extractors of a user's own are never light.
- Each stage is a turn by itself, and so is each slice of a page's links.

Measured: docs/adr/0015-reading-has-a-budget.md.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from orbweaver.frontier.body_file import Kept, kept_of
from orbweaver.frontier.kind_learner import echo_of
from orbweaver.frontier.stored_content import Keeping, harvest, redacted_item
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.cuts import Cuts, joined
from orbweaver.model.item import Item
from orbweaver.model.url import TRACKING_PARAMETERS
from orbweaver.parsing.html_scan import TAG_BYTES_MIN
from orbweaver.parsing.main_text import plain_words
from orbweaver.parsing.markup import is_rewritten
from orbweaver.parsing.page import LINKS_MAX, Page, Prepared, parsing, prepare
from orbweaver.parsing.parse_guard import is_orderly
from orbweaver.parsing.soft_404 import is_missing
from orbweaver.parsing.text_digest import text_runs

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.http_exchange import Response
    from orbweaver.model.item_rules import ItemRule


class ReadingStage(StrEnum):
    """A part of the work, as messages name it."""

    LINKS = "links"
    ITEMS = "items"
    KEEPING = "text and body"

    def __reduce_ex__(self, _protocol: object) -> tuple[type[ReadingStage], tuple[str]]:
        """Pickle by value: Python 3.11.0 to 3.11.3 (Debian 12's) would call `getattr` for it."""
        return ReadingStage, (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingJob:
    """An answer with a body, and what its crawl wants of it; `html`: it is a page."""

    url: str
    at_ms: int
    answer: Response
    html: bool = True
    links_max: int = LINKS_MAX
    tracking: frozenset[str] = TRACKING_PARAMETERS
    agent: str = ""
    # Rules about this URL.
    items: tuple[ItemRule, ...] = ()
    keeping: Keeping = field(default_factory=Keeping)
    noindex_skipped: bool = False
    obey_nofollow: bool = True
    # Whether its text is to be compared with others (frontier/kind_learner.py).
    digested: bool = False
    # Whether a process of its own reads it, because its worker may have died of it.
    apart: bool = False

    @property
    def body(self) -> bytes:
        """The decoded body."""
        return self.answer.body or b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReading:
    """What an answer says; `items` and `kept` are redacted.

    `left` is the stage that the work was broken off at, and `why`; `cut` counts what is left out
    for its size (`model/cuts.py`).
    """

    page: Page | None = None
    missing: bool = False
    items: tuple[Item, ...] | None = None
    kept: Kept | None = None
    cut: Cuts = ()
    # Some of the runs of words of its text, where it is to be compared with others.
    digest: tuple[int, ...] | None = None
    left: ReadingStage | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costly:
    """Nothing of an answer could be read within what a page may cost."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderBusy:
    """An answer was not read, because too many others wait for the same."""


Read: TypeAlias = PageReading | Costly | ReaderBusy


def job_of(  # noqa: PLR0913 - facts of an answer and wishes of its crawl
    crawl: Crawl,
    url: str,
    answer: Response,
    at_ms: int,
    *,
    html: bool,
    agent: str,
    links_max: int,
    digested: bool = False,
    apart: bool = False,
) -> ReadingJob:
    """Say what a crawl wants read of an answer, of which `agent` asked."""
    items: tuple[ItemRule, ...] = ()
    if crawl.items and html:
        # Most crawls have no items: what finds them is not for every cold start to import.
        from orbweaver.extraction.extract import rules_for

        items = rules_for(crawl.items, url)
    return ReadingJob(
        url=url,
        at_ms=at_ms,
        answer=answer,
        html=html,
        links_max=links_max,
        tracking=crawl.stripped,
        agent=agent,
        items=items,
        keeping=Keeping(bodies=crawl.bodies, texts=crawl.texts, redacted=crawl.redacted),
        noindex_skipped=crawl.noindex_skipped,
        obey_nofollow=crawl.obey_nofollow,
        digested=digested,
        apart=apart,
    )


def read(
    job: ReadingJob,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
) -> PageReading:
    """Read an answer to its end; `extractors` are the user's own functions by name."""
    *_, reading = (found for found in stages(job, extractors, prepared) if found is not None)
    return reading


def prepared_of(job: ReadingJob) -> Prepared:
    """Do the first half of what reading a page takes, for `read` to go on with."""
    return prepare(job.body, job.answer.headers.get("content-type"))


def stages(
    job: ReadingJob,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
    units_max: int | None = None,
) -> Iterator[PageReading | None]:
    """Read an answer; what is found so far, before each stage that may be costly, and at the end.

    None marks a pause between two slices of a page's links.

    What is thrown away in any case is not worked out: items and text of a page that leads on.
    Raises HeavyError where items take more than `units_max`.
    """
    if not job.html:
        kept, cut = _kept(job, None)
        yield PageReading(kept=kept, cut=cut)
        return
    page = yield from _parsed(job, prepared)
    found = PageReading(page=page, missing=is_missing(page), cut=page.cut)
    if page.refresh is not None or (job.noindex_skipped and page.noindex):
        yield found
        return
    if job.items:
        yield replace(found, left=ReadingStage.ITEMS)
        items, unread = _items(job, page, extractors, units_max)
        found = replace(found, items=items, cut=joined(found.cut, unread))
    keeping = job.keeping
    if keeping.texts or keeping.redacted:
        yield replace(found, left=ReadingStage.KEEPING)
    if keeping.texts or keeping.bodies is not Bodies.OFF:
        kept, cut = _kept(job, page)
        found = replace(found, kept=kept, cut=joined(found.cut, cut))
    if job.digested and not page.noindex:
        # Of the page as it is: the text that is kept may be redacted, or none.
        found = replace(found, digest=_digest(job.url, page))
    yield found


def bare(reading: PageReading) -> PageReading:
    """Return a reading without what only this process has: the page's HTML and its tree."""
    if reading.page is None:
        return reading
    return replace(reading, page=replace(reading.page, html=b"", whole=None))


def _parsed(job: ReadingJob, prepared: Prepared | None) -> Generator[None, None, Page]:
    headers = job.answer.headers
    return parsing(
        job.body,
        job.url,
        headers.get("content-type"),
        robots_tag=headers.get("x-robots-tag"),
        refresh=headers.get("refresh"),
        link=headers.get("link"),
        links_per_page_max=job.links_max,
        tracking=job.tracking,
        agent=job.agent,
        obey_nofollow=job.obey_nofollow,
        prepared=prepared,
    )


def _items(
    job: ReadingJob, page: Page, extractors: Mapping[str, Extractor] | None, units_max: int | None
) -> tuple[tuple[Item, ...], Cuts]:
    from orbweaver.extraction.extract import items_and_cuts
    from orbweaver.extraction.work import UNITS_MAX

    items, cut = items_and_cuts(
        job.items,
        page,
        job.url,
        tracking=job.tracking,
        custom=extractors,
        units_max=units_max or UNITS_MAX,
    )
    if kinds := job.keeping.redacted:
        items = tuple(redacted_item(item, kinds) for item in items)
    return items, cut


def _is_small(html: bytes) -> bool:
    return len(html) <= SMALL_BYTES_MAX and html.count(b"<") <= SMALL_TAGS_MAX


# How much of the beginning of a page's text is digested.
DIGESTED_CHARS_MAX = 16 * 1024


def _digest(url: str, page: Page) -> tuple[int, ...]:
    """List runs of how the text of a page begins, but for what it repeats of its URL and title."""
    text = plain_words(page.html)[:DIGESTED_CHARS_MAX]
    return text_runs(text, f"{echo_of(url)} {page.title or ''}")


def _kept(job: ReadingJob, page: Page | None) -> tuple[Kept | None, Cuts]:
    found, answer = harvest(job.keeping, job.answer, page), job.answer
    kept = kept_of(job.url, job.at_ms, answer=answer, body=found.body, document=found.document)
    return kept, found.cut


class PageReader(Protocol):
    """What makes readings of answers, within what a page may cost."""

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        """Read an answer of a host, begun by then; never raises for what is in it.

        Raises Transient where it cannot be read for reasons of ours.
        """


# What reading a page may use, in a process of its own that has some 40 MB before it begins.
CPU_S = 0.7
MEMORY_BYTES = 160 * 1024 * 1024
BYTES_MAX = 2_700 * 1024
TAGS_MAX = 100_000
# A longer page is read in two turns: its outline takes 70 ms at worst, and the rest of it 40 where
# the outline has no more tags than this.
TURN_BYTES, KEPT_TAGS = 60_000, 40_000
SMALL_BYTES_MAX = 64 * 1024
SMALL_TAGS_MAX = 2_000
# Of items, in place: some 20 ms, at worst 100.
LIGHT_UNITS = 500_000
# A body of which nothing is read but what it is kept by.
OTHER_BYTES_MAX = 6 * 1024 * 1024


def is_light(job: ReadingJob) -> bool:
    """Whether an answer takes at most 100 ms to be read."""
    keeping, body = job.keeping, job.body
    if not job.html:
        return len(body) <= (SMALL_BYTES_MAX if keeping.redacted else OTHER_BYTES_MAX)
    if any(rule.extractor is not None for rule in job.items):
        return False
    rewritten = is_rewritten(body, job.answer.headers.get("content-type"))
    if job.items or keeping.texts or keeping.redacted or rewritten:
        bytes_max, tags_max = SMALL_BYTES_MAX, SMALL_TAGS_MAX
    else:
        bytes_max, tags_max = BYTES_MAX, TAGS_MAX
    if len(body) > bytes_max:
        return False
    return len(body) <= tags_max * TAG_BYTES_MIN or body.count(b"<") <= tags_max


def has_light_tree(prepared: Prepared) -> bool:
    """Whether the tree of a page that `is_light`, which its items need, is made in little time."""
    if prepared.outline is None:
        return True
    html = prepared.html
    return _is_small(html) and is_orderly(html)


def is_long(job: ReadingJob) -> bool:
    """Whether a page is to be read in two turns; going by its length alone, which costs nothing."""
    return job.html and len(job.body) > TURN_BYTES


def is_done_in_place(outline: bytes | None) -> bool:
    """Whether the second turn of a page, of which this is the outline, is light as well."""
    return outline is None or len(outline) <= KEPT_TAGS or outline.count(b"<") <= KEPT_TAGS
