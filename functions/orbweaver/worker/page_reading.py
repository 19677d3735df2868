"""Read the bytes of one response into links, items, text and body.

Jobs and readings are plain values, so that a separate process can do the work
(`adapters/local/reader.py`). A response is light if it blocks the event loop for at most 100 ms of
CPU at a time. Light responses are read in this process. Measured:
docs/adr/0015-reading-has-a-budget.md.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from orbweaver.extraction.work_budget import HeavyError
from orbweaver.frontier.body_file import Kept, kept_of
from orbweaver.frontier.kind_learner import echo_of
from orbweaver.frontier.stored_content import Keeping, content_to_store, redacted_item
from orbweaver.model.auth import Login, login_of_page
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.cuts import Cuts, joined
from orbweaver.model.item import Item
from orbweaver.model.item_rules import ValueSource
from orbweaver.model.url import TRACKING_PARAMETERS
from orbweaver.model.value import value_class
from orbweaver.parsing.html_scan import TAG_BYTES_MIN, TREE_BYTES_MAX, TREE_TAGS_MAX
from orbweaver.parsing.links import Links
from orbweaver.parsing.main_text import plain_words
from orbweaver.parsing.markup import is_rewritten
from orbweaver.parsing.page import LINKS_MAX, Page, Prepared, as_utf8, parsing, prepare
from orbweaver.parsing.pii_redaction import redact
from orbweaver.parsing.sniffing import is_json
from orbweaver.parsing.soft_404 import is_missing
from orbweaver.parsing.text_digest import text_runs

if TYPE_CHECKING:
    from orbweaver.extraction.document import JsonBody
    from orbweaver.extraction.extract import Extractor
    from orbweaver.model.api_source import ApiSource, PagingFacts
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.http_exchange import Response
    from orbweaver.model.item_rules import ItemRule


class ReadingStage(StrEnum):
    """Stage of reading, as log messages and errors name it."""

    LINKS = "links"
    ITEMS = "items"
    KEEPING = "text and body"

    def __reduce_ex__(self, _protocol: object) -> tuple[type[ReadingStage], tuple[str]]:
        # Pickled by value, because Python 3.11.0 to 3.11.3 (Debian 12) would call `getattr` for it.
        return ReadingStage, (self.value,)


@value_class
class ReadingJob:
    """A response with a body, and the parts of it that its crawl wants.

    `html`: it is a page. `json`: it is JSON that the crawl's rules read.
    """

    url: str
    at_ms: int
    answer: Response
    html: bool = True
    json: bool = False
    links_max: int = LINKS_MAX
    tracking: frozenset[str] = TRACKING_PARAMETERS
    agent: str = ""
    # Item rules for this URL.
    items: tuple[ItemRule, ...] = ()
    keeping: Keeping = field(default_factory=Keeping)
    noindex_skipped: bool = False
    obey_nofollow: bool = True
    # False if items and text are wanted even if the page redirects elsewhere.
    follows: bool = True
    # True if the page's text must be compared with other texts (frontier/kind_learner.py).
    digested: bool = False
    # True if a separate process must read the page, because it may have killed a worker.
    apart: bool = False
    # The crawl's login at this origin, if the page may ask for it again.
    login: Login | None = None
    # The API of which the response is a page.
    api: ApiSource | None = None

    @property
    def body(self) -> bytes:
        return self.answer.body or b""


@value_class
class PageReading:
    """Content of a response. `items` and `kept` (content to store) are redacted.

    `left` is the stage at which reading was interrupted, and `why` is the reason. `cut` counts
    parts omitted because of their size (`model/cuts.py`).
    """

    page: Page | None = None
    missing: bool = False
    items: tuple[Item, ...] | None = None
    kept: Kept | None = None
    cut: Cuts = ()
    # Sample of the text's runs of words, if the text must be compared with others.
    digest: tuple[int, ...] | None = None
    left: ReadingStage | None = None
    why: str | None = None
    # True if the page asks for the crawl's login again.
    lost: bool = False
    # True if the response is JSON. `unfit` is the reason if it cannot be read.
    json: bool = False
    unfit: str | None = None
    # Facts about the next page of an API.
    paging: PagingFacts | None = None


@value_class
class Costly:
    """Result if no part of a response could be read within the limits of a page."""

    why: str


@value_class
class ReaderBusy:
    """Result if a response was not read, because too many other responses wait to be read."""


Read: TypeAlias = PageReading | Costly | ReaderBusy


def job_of(  # noqa: PLR0913 - facts of a response and settings of its crawl
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
    api: ApiSource | None = None,
    page: int = 0,
) -> ReadingJob:
    """Return the job of reading a response: the parts that the crawl wants.

    `agent` is the product token of the robot that sent the request. `api` is the API of which the
    response is a page, and `page` the page's number.
    """
    items: tuple[ItemRule, ...] = ()
    json = html and (
        api is not None or (wants_json(crawl, url) and is_json(answer.headers, answer.body or b""))
    )
    if crawl.items and html:
        # Most crawls have no items, so cold starts skip this import.
        from orbweaver.extraction.extract import rules_about

        items = rules_about(crawl.items, url, json=json)
        if page > 1:  # the last page may be empty
            items = tuple(replace(rule, least=0) for rule in items)
    login: Login | None = None
    if crawl.auth and html and not json:
        login = login_of_page(crawl.auth, url, answer.body or b"")
    return ReadingJob(
        url=url,
        at_ms=at_ms,
        answer=answer,
        html=html and not json,
        json=json,
        links_max=links_max,
        tracking=crawl.removed_parameters,
        agent=agent,
        items=items,
        keeping=Keeping(
            bodies=crawl.bodies, texts=crawl.texts, links=crawl.links, redacted=crawl.redacted
        ),
        noindex_skipped=crawl.noindex_skipped,
        obey_nofollow=crawl.obey_nofollow,
        digested=digested,
        apart=apart,
        login=login,
        api=api,
    )


def wants_json(crawl: Crawl, url: str) -> bool:
    """Return True if a rule of the crawl reads JSON at a URL."""
    if not any(rule.source is ValueSource.JSON for rule in crawl.items):
        return False
    from orbweaver.extraction.extract import rules_about

    return bool(rules_about(crawl.items, url, json=True))


def read(
    job: ReadingJob,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
) -> PageReading:
    """Read a response completely. `extractors` are user-defined functions by name."""
    *_, reading = (found for found in stages(job, extractors, prepared) if found is not None)
    return reading


def prepared_of(job: ReadingJob) -> Prepared:
    return prepare(job.body, job.answer.headers.get("content-type"), rows=job.keeping.links)


def stages(
    job: ReadingJob,
    extractors: Mapping[str, Extractor] | None = None,
    prepared: Prepared | None = None,
    units_max: int | None = None,
) -> Iterator[PageReading | None]:
    """Read a response, and yield the results so far before each costly stage and at the end.

    Yields None between slices of a page's links. Raises HeavyError if items need more than
    `units_max` units of work.
    """
    if job.json:
        yield from _json_stages(job, units_max)
        return
    if not job.html:
        kept, cut = _kept(job, None)
        yield PageReading(kept=kept, cut=cut)
        return
    page = yield from _parsed(job, prepared)
    found = PageReading(page=page, missing=is_missing(page), cut=page.cut)
    if job.login is not None and _is_lost(job, page, units_max):
        yield replace(found, lost=True)
        return
    # Items and text of a page that leads to another URL would be dropped.
    if (job.follows and page.refresh is not None) or (job.noindex_skipped and page.noindex):
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
        # The original page is digested, because stored text may be redacted or absent.
        found = replace(found, digest=_digest(job.url, page))
    yield found


def _json_stages(job: ReadingJob, units_max: int | None) -> Iterator[PageReading | None]:
    # Only crawls that read JSON need these imports.
    from orbweaver.extraction.document import JsonBody
    from orbweaver.extraction.json_document import UnfitJson
    from orbweaver.extraction.json_path import JsonPathError
    from orbweaver.worker.json_reading import reading_json

    links = Links(base=job.url, charset="utf-8", links_max=job.links_max, tracking=job.tracking)
    obeys = job.obey_nofollow
    try:
        got = yield from reading_json(job.answer, job.items, job.api, links, obey_nofollow=obeys)
    except (UnfitJson, JsonPathError) as error:
        yield PageReading(json=True, unfit=str(error))
        return
    found = PageReading(page=got.page, json=True, paging=got.paging, cut=got.page.cut)
    if job.noindex_skipped and got.page.noindex:
        yield found
        return
    if job.items:
        yield replace(found, left=ReadingStage.ITEMS)
        items, cut = _items(job, got.page, None, units_max, JsonBody(got.data))
        found = replace(found, items=items, cut=joined(found.cut, cut))
    kept, cut = _kept(job, None)
    yield replace(found, kept=kept, cut=joined(found.cut, cut))


def light_stages(job: ReadingJob) -> Iterator[PageReading | None]:
    """Read a light page in this process, like `stages`. Raises HeavyError if it is not light."""
    prepared: Prepared | None = None
    if job.html:
        prepared = prepared_of(job)
        # As UTF-8, a page can be longer than its body.
        if needs_tree(job) and prepared.outline is not None:
            raise HeavyError
    if is_long(job):
        yield None
        if prepared is not None and not is_done_in_place(prepared.outline):
            raise HeavyError
    for found in stages(job, prepared=prepared, units_max=LIGHT_UNITS):
        yield found
        if found is not None and found.left is ReadingStage.KEEPING and _is_inflated(job, found):
            raise HeavyError


def _is_inflated(job: ReadingJob, found: PageReading) -> bool:
    """Return True if the tree of a page is much larger than the page."""
    # The HTML Standard copies unclosed formatting elements into each later paragraph.
    if found.page is None or found.page.whole is None or job.body.count(b"<") <= FLAT_TAGS_MAX:
        return False
    return len(found.page.whole.html or "") > INFLATED_CHARS_MIN


def with_items(
    job: ReadingJob, found: PageReading, extractors: Mapping[str, Extractor]
) -> PageReading:
    """Return a reading with the items of user-defined functions.

    The reading may come from a child process, which does not have these functions.
    """
    if found.page is None:
        return found
    html = found.page.html or as_utf8(job.body, job.answer.headers.get("content-type"))[1]
    items, unread = _items(job, replace(found.page, html=html), extractors, None)
    return replace(found, items=items, cut=joined(found.cut, unread))


def items_of(job: ReadingJob, found: Read) -> tuple[Item, ...]:
    """Return the items of a reading. If reading failed, return an invalid item for each rule."""
    if isinstance(found, PageReading) and found.items is not None:
        return found.items
    from orbweaver.extraction.extract import invalid

    unfit = found.unfit if isinstance(found, PageReading) else None
    why = (None if isinstance(found, ReaderBusy) else found.why) or unfit or "the page was not read"
    return tuple(invalid(rule, 0, why) for rule in job.items)


def bare(reading: PageReading) -> PageReading:
    """Return a reading without the page's HTML and tree, which exist only in this process."""
    if reading.page is None:
        return reading
    return replace(reading, page=replace(reading.page, html=b"", whole=None))


def _parsed(job: ReadingJob, prepared: Prepared | None) -> Generator[None, None, Page]:
    headers = job.answer.headers
    page = yield from parsing(
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
        rows=job.keeping.links,
        prepared=prepared,
    )
    if page.rows is not None and (kinds := job.keeping.redacted):
        return replace(page, rows=page.rows.redacted(lambda text: redact(text, kinds)))
    return page


def _is_lost(job: ReadingJob, page: Page, units_max: int | None) -> bool:
    # Only crawls with a login need these imports.
    from orbweaver.extraction.work_budget import UNITS_MAX
    from orbweaver.fetching.login_form import is_page_lost

    assert job.login is not None  # noqa: S101 - the caller checks it
    return is_page_lost(page, job.url, job.login.lost_page, units_max or UNITS_MAX)


def _items(
    job: ReadingJob,
    page: Page,
    extractors: Mapping[str, Extractor] | None,
    units_max: int | None,
    body: JsonBody | None = None,
) -> tuple[tuple[Item, ...], Cuts]:
    from orbweaver.extraction.extract import items_and_cuts
    from orbweaver.extraction.work_budget import UNITS_MAX

    items, cut = items_and_cuts(
        job.items,
        page,
        job.url,
        tracking=job.tracking,
        custom=extractors,
        units_max=units_max or UNITS_MAX,
        body=body,
    )
    if kinds := job.keeping.redacted:
        items = tuple(redacted_item(item, kinds) for item in items)
    return items, cut


# Maximum length of the text's beginning that is digested.
DIGESTED_CHARS_MAX = 16 * 1024


def _digest(url: str, page: Page) -> tuple[int, ...]:
    """Sample runs of words from the beginning of a page's text, without words of URL and title."""
    text = plain_words(page.html)[:DIGESTED_CHARS_MAX]
    return text_runs(text, f"{echo_of(url)} {page.title or ''}")


def _kept(job: ReadingJob, page: Page | None) -> tuple[Kept | None, Cuts]:
    found, answer = content_to_store(job.keeping, job.answer, page), job.answer
    kept = kept_of(job.url, job.at_ms, answer=answer, body=found.body, document=found.document)
    return kept, found.cut


class PageReader(Protocol):
    """Reads responses within the limits of a page."""

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        """Read a response, starting by `until_ms`. Raises Transient, but not for its content."""


# CPU limit in seconds for reading a page in a separate process, which uses about 40 MB before it
# starts. Reading has stages. If it is interrupted, the results of earlier stages are kept.
CPU_S = 0.7
MEMORY_BYTES = 160 * 1024 * 1024
# Up to these limits, reading links, title and body of a page is light. The page is read by its
# outline, in linear time (`parsing/html_scan.py`). A small page becomes a tree, which is faster at
# that size.
BYTES_MAX = 2_700 * 1024
TAGS_MAX = 100_000
# A longer page is read in two steps with a pause in between. Its outline takes at most 70 ms. The
# other work takes 40 ms if the outline has at most KEPT_TAGS tags.
TURN_BYTES, KEPT_TAGS = 60_000, 40_000
# Rows of the table of links take four times as long: 4 us per tag.
LINKED_TAGS_MAX = 25_000
# Redaction is ten times slower, so it has lower limits. Items and main text need a tree. In this
# process, they are read only from a page that becomes a tree for its links.
SMALL_BYTES_MAX = 64 * 1024
SMALL_TAGS_MAX = 2_000
# Limit of item work in this process: about 20 ms, at worst 100 ms. Rules can compare each part of a
# page with each other part. Beyond the limit, the separate process reads the page from the start.
LIGHT_UNITS = 500_000
# The tree of a page with fewer tags has at most 22,500 elements. In a larger tree, the main text
# can take more than 100 ms, so the separate process extracts it. Ordinary trees are as long as the
# page. On 101 such pages, the check took 2.9 % of the time of reading.
FLAT_TAGS_MAX, INFLATED_CHARS_MIN = 300, 4 * TREE_BYTES_MAX
# Limit of a body that is stored without being parsed.
OTHER_BYTES_MAX = 6 * 1024 * 1024


def is_light(job: ReadingJob) -> bool:
    """Return True if reading a response blocks the event loop for at most 100 ms."""
    keeping, body = job.keeping, job.body
    if job.json:
        from orbweaver.worker.json_reading import is_light_json

        return is_light_json(len(body), job.items, job.api)
    if not job.html:
        return len(body) <= (SMALL_BYTES_MAX if keeping.redacted else OTHER_BYTES_MAX)
    # User-defined extractors are never light.
    if any(rule.extractor is not None for rule in job.items):
        return False
    # The limits are counts, because counting costs a hundredth of the time of reading.
    rewritten = is_rewritten(body, job.answer.headers.get("content-type"))
    if needs_tree(job):
        bytes_max, tags_max = TREE_BYTES_MAX, TREE_TAGS_MAX
    elif keeping.redacted or rewritten:
        bytes_max, tags_max = SMALL_BYTES_MAX, SMALL_TAGS_MAX
    else:
        bytes_max, tags_max = BYTES_MAX, LINKED_TAGS_MAX if keeping.links else TAGS_MAX
    if len(body) > bytes_max:
        return False
    return len(body) <= tags_max * TAG_BYTES_MIN or body.count(b"<") <= tags_max


def needs_tree(job: ReadingJob) -> bool:
    return bool(job.items) or job.keeping.texts or job.login is not None


def is_long(job: ReadingJob) -> bool:
    return job.html and len(job.body) > TURN_BYTES


def is_done_in_place(outline: bytes | None) -> bool:
    return outline is None or len(outline) <= KEPT_TAGS or outline.count(b"<") <= KEPT_TAGS
