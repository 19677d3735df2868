"""Reading an answer: all that is done with the bytes of one answer, as a function of plain values.

Job and reading are frozen values, so that a process of its own can do the work
(`adapters/local/reader.py`); its page comes back `bare`, without HTML and tree. A reading grows by
stages; where it is broken off, the last one says what is left out, and what was found before it
counts.

    links     charset, tree or outline, links, title, whether it is a "not found" page
    items     what the rules of a crawl find on it
    keeping   redaction, main text, body; as the records that are stored

What a page may cost: `worker/reading_cost.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.frontier.body_file import Kept, kept_of
from orbweaver.frontier.stored_content import Keeping, harvest, redacted_item
from orbweaver.model.crawl import Bodies
from orbweaver.model.cuts import joined
from orbweaver.model.url import TRACKING_PARAMETERS
from orbweaver.parsing.page import LINKS_MAX, parse, prepare
from orbweaver.parsing.soft_404 import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orbweaver.extraction.extract import Extractor
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.cuts import Cuts
    from orbweaver.model.http_exchange import Response
    from orbweaver.model.item import Item
    from orbweaver.model.item_rules import ItemRule
    from orbweaver.parsing.page import Page, Prepared


class Stage(StrEnum):
    """A part of the work, as messages name it."""

    LINKS = "links"
    ITEMS = "items"
    KEEPING = "text and body"

    def __reduce_ex__(self, _protocol: object) -> tuple[type[Stage], tuple[str]]:
        """Pickle by value: Python 3.11.0 to 3.11.3 (Debian 12's) would call `getattr` for it."""
        return Stage, (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
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

    @property
    def body(self) -> bytes:
        """The decoded body."""
        return self.answer.body or b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer says; `items` and `kept` are redacted.

    `left` is the stage that the work was broken off at, and `why`; `cut` counts what is left out
    for its size (`model/cuts.py`).
    """

    page: Page | None = None
    missing: bool = False
    items: tuple[Item, ...] | None = None
    kept: Kept | None = None
    cut: Cuts = ()
    left: Stage | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costly:
    """Nothing of an answer could be read within what a page may cost."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """An answer was not read, because too many others wait for the same."""


Read: TypeAlias = Reading | Costly | Crowded


def job_of(
    crawl: Crawl,
    url: str,
    answer: Response,
    at_ms: int,
    *,
    html: bool,
    agent: str,
    links_max: int,
) -> Job:
    """Say what a crawl wants read of an answer, of which `agent` asked."""
    items: tuple[ItemRule, ...] = ()
    if crawl.items and html:
        # Most crawls have no items: what finds them is not for every cold start to import.
        from orbweaver.extraction.extract import rules_for

        items = rules_for(crawl.items, url)
    return Job(
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
    )


def read(
    job: Job,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
) -> Reading:
    """Read an answer to its end; `extractors` are the user's own functions by name."""
    *_, reading = stages(job, extractors, prepared)
    return reading


def prepared_of(job: Job) -> Prepared:
    """Do the first half of what reading a page takes, for `read` to go on with."""
    return prepare(job.body, job.answer.headers.get("content-type"))


def stages(
    job: Job,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
    units_max: int | None = None,
) -> Iterator[Reading]:
    """Read an answer; what is found so far, before each stage that may be costly, and at the end.

    What is thrown away in any case is not worked out: items and text of a page that leads on.
    Raises HeavyError where items take more than `units_max`.
    """
    if not job.html:
        kept, cut = _kept(job, None)
        yield Reading(kept=kept, cut=cut)
        return
    page = _parsed(job, prepared)
    found = Reading(page=page, missing=is_missing(page), cut=page.cut)
    if page.refresh is not None or (job.noindex_skipped and page.noindex):
        yield found
        return
    if job.items:
        yield replace(found, left=Stage.ITEMS)
        items, unread = _items(job, page, extractors, units_max)
        found = replace(found, items=items, cut=joined(found.cut, unread))
    keeping = job.keeping
    if keeping.texts or keeping.redacted:
        yield replace(found, left=Stage.KEEPING)
    if keeping.texts or keeping.bodies is not Bodies.OFF:
        kept, cut = _kept(job, page)
        found = replace(found, kept=kept, cut=joined(found.cut, cut))
    yield found


def bare(reading: Reading) -> Reading:
    """Return a reading without what only this process has: the page's HTML and its tree."""
    if reading.page is None:
        return reading
    return replace(reading, page=replace(reading.page, html=b"", whole=None))


def _parsed(job: Job, prepared: Prepared | None) -> Page:
    headers = job.answer.headers
    return parse(
        job.body,
        job.url,
        headers.get("content-type"),
        robots_tag=headers.get("x-robots-tag"),
        refresh=headers.get("refresh"),
        links_per_page_max=job.links_max,
        tracking=job.tracking,
        agent=job.agent,
        prepared=prepared,
    )


def _items(
    job: Job, page: Page, extractors: Mapping[str, Extractor] | None, units_max: int | None
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


def _kept(job: Job, page: Page | None) -> tuple[Kept | None, Cuts]:
    found, answer = harvest(job.keeping, job.answer, page), job.answer
    kept = kept_of(job.url, job.at_ms, answer=answer, body=found.body, document=found.document)
    return kept, found.cut
