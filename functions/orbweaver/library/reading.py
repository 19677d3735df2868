"""Read URLs, robots.txt and pages with the functions of a crawl.

Arguments of a wrong type raise TypeError, invalid values ValueError. The messages of both errors
name the fix. Invalid content of a page or robots.txt raises no error, as in a crawl. Small pages
are parsed in this process. All other pages are parsed in a child process with the limits of a
crawl.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from orbweaver.model.errors import is_fault, type_and_place
from orbweaver.model.item import Item
from orbweaver.model.item_rules import ItemRule
from orbweaver.model.url import TRACKING_PARAMETERS, is_base, redacted
from orbweaver.model.url import canonicalize as canonical
from orbweaver.model.value import positional_value_class
from orbweaver.parsing.html_scan import is_small
from orbweaver.parsing.page import Page, as_utf8, without_content
from orbweaver.parsing.page import parse as parsed_page
from orbweaver.parsing.robots_tag import PRODUCT
from orbweaver.politeness import robots_txt

if TYPE_CHECKING:
    from orbweaver.worker.page_reading import PageReading, ReadingJob

_log = logging.getLogger(__name__)
T = TypeVar("T")

_NO_PARAMETERS: frozenset[str] = frozenset()
_WHOLE_URL = "give a whole URL, like 'https://example.com/a'"


@positional_value_class
class RobotsTxt:
    """A parsed robots.txt. Pass agents as product token or User-Agent header."""

    _rules: robots_txt.Robots

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that the file lists, as written, without duplicates, at most 1,000."""
        return self._rules.sitemaps

    def allows(self, agent: str, url: str) -> bool:
        """Return whether an agent is allowed to request a URL. Rules can match the URL's query."""
        _check_text("agent", agent)
        return self._rules.allows(agent, _canonical(url, _NO_PARAMETERS))

    def crawl_delay(self, agent: str) -> float | None:
        """Return the crawl delay for an agent in seconds. None: the file sets no delay."""
        _check_text("agent", agent)
        return self._rules.crawl_delay(agent)


def canonicalize(reference: str, base: str | None = None) -> str:
    """Return the canonical URL of a link or typed URL. `base` is the URL of its page.

    Fragment, user, password and tracking parameters are removed. Raises ValueError for anything but
    http and https URLs.
    """
    _check_text("reference", reference)
    if base is not None:
        _check_text("base", base)
    try:
        return canonical(reference, base)
    except ValueError as error:
        if base is not None and not is_base(base):
            raise ValueError(
                f"base {redacted(base)!r} is no URL of the web: {_WHOLE_URL}"
            ) from error
        fix = _WHOLE_URL if base else f"{_WHOLE_URL}, or as `base` the page that contains it"
        raise ValueError(f"{redacted(reference)!r}: {error}: {fix}") from error


def parse_robots(body: bytes) -> RobotsTxt:
    """Parse a robots.txt (RFC 9309) of any content, up to 500 KiB.

    `body` is the body of a response with status 200. For a 404, which allows everything, call
    `parse_robots(b"")`.
    """
    return RobotsTxt(robots_txt.parse(_bytes(body)))


def parse_page(body: bytes, url: str, content_type: str | None = None) -> Page:
    """Parse the HTML page at `url`: title, links, canonical URL, language, text.

    `content_type` is the header of the response, which may contain the charset.
    """
    if content_type is not None:
        _check_text("content_type", content_type)
    given, page_url = _bytes(body), _canonical(url)
    if is_small(given):  # a job would take 13 us
        page = _unless_fault(lambda: parsed_page(given, page_url, content_type), page_url)
    else:
        job = _job(given, page_url, content_type)
        page = _unless_fault(lambda: _parsed(job, content_type), page_url)
    return without_content() if page is None else page


def extract(
    rules: Sequence[Mapping[str, Any]], body: bytes, url: str, content_type: str | None = None
) -> tuple[Item, ...]:
    """Extract the items of a page by rules: decoded `[[items]]` of a crawl.toml.

    A rule applies if its `match` is found in the URL. An invalid item has its mistakes in
    `problems`. Raises ValueError with all mistakes of the rules.
    """
    from orbweaver.extraction.extract import rules_about
    from orbweaver.library.page_budget import read_within_budget
    from orbweaver.parsing.sniffing import is_json
    from orbweaver.worker.page_reading import items_of

    job = _job(body, url, content_type)
    wanted, is_data = _rules(rules), is_json(job.answer.headers, job.body)
    found = rules_about(wanted, job.url, json=is_data)
    job = replace(job, items=found, html=not is_data, json=is_data)
    if not job.items:
        return ()
    return _unless_fault(lambda: items_of(job, read_within_budget(job)), job.url) or ()


def to_markdown(body: bytes, url: str, content_type: str | None = None) -> str:
    """Return the main text of a page as Markdown with absolute links, or an empty string."""
    job = _job(body, url, content_type)
    job = replace(job, keeping=replace(job.keeping, texts=True))
    return _unless_fault(lambda: _markdown(job, content_type), job.url) or ""


def _job(body: bytes, url: str, content_type: str | None) -> ReadingJob:
    from orbweaver.frontier.stored_content import Keeping
    from orbweaver.model.crawl_settings import Bodies
    from orbweaver.model.http_exchange import Response
    from orbweaver.worker.page_reading import ReadingJob

    if content_type is not None:
        _check_text("content_type", content_type)
    headers = {} if content_type is None else {"content-type": content_type}
    return ReadingJob(
        url=_canonical(url),
        at_ms=0,
        answer=Response(status=200, headers=headers, body=_bytes(body)),
        agent=PRODUCT,
        keeping=Keeping(bodies=Bodies.OFF),
        follows=False,
    )


def _parsed(job: ReadingJob, content_type: str | None) -> Page | None:
    from orbweaver.worker.page_reading import is_light

    if is_light(job):
        return parsed_page(job.body, job.url, content_type)
    page = _read_apart(job).page
    # The child process does not return the HTML, so it is decoded here.
    return None if page is None else replace(page, html=as_utf8(job.body, content_type)[1])


def _markdown(job: ReadingJob, content_type: str | None) -> str:
    from orbweaver.frontier import warc
    from orbweaver.parsing.main_text import main_text
    from orbweaver.worker.page_reading import is_light

    if is_light(job):
        page = parsed_page(job.body, job.url, content_type)
        if page.whole is not None:
            return main_text(page.html, page.base).markdown
    kept = _read_apart(job).kept
    if kept is None or kept.conversion is None:
        return ""
    markdown: str = json.loads(warc.read(kept.conversion).payload)["markdown"]
    return markdown


def _read_apart(job: ReadingJob) -> PageReading:
    """Parse a page in the child process, and log the parts that the limits left out."""
    from orbweaver.library.page_budget import read_within_budget
    from orbweaver.worker.page_reading import PageReading

    found = read_within_budget(job)
    if why := getattr(found, "why", None):
        _log.warning("page.costly", extra={"url": redacted(job.url), "error": why})
    return found if isinstance(found, PageReading) else PageReading()


def _unless_fault(reads: Callable[[], T], url: str) -> T | None:
    """Call `reads` for the page at `url`. If it raises, log the exception and return None."""
    try:
        return reads()
    except BaseException as error:
        if not is_fault(error):
            raise
        fields = {"url": redacted(url), "error": type_and_place(error)}
        _log.error("page.unreadable", extra=fields, exc_info=error)
        return None


def _rules(given: Sequence[Mapping[str, Any]]) -> tuple[ItemRule, ...]:
    from orbweaver.control.definition import read
    from orbweaver.extraction.rules import problems_of

    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        fix = 'give a list of tables, like [{"name": "books", "match": "/books/", "fields": {…}}]'
        raise TypeError(f"rules cannot be {_named(given)}: {fix}")
    plan, unread = read({"items": [*given]})
    unfit = [(one.path, one.text) for one in unread] or problems_of(plan.items)
    if problems := [f"{path}: {words}" for path, words in unfit]:
        raise ValueError("; ".join(problems))
    return plan.items


def _canonical(url: str, tracking: frozenset[str] = TRACKING_PARAMETERS) -> str:
    _check_text("url", url)
    try:
        return canonical(url, tracking=tracking)
    except ValueError as error:
        raise ValueError(f"{redacted(url)!r}: {error}: {_WHOLE_URL}") from error


def _bytes(body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    fix = "give bytes; encode a text by text.encode()"
    raise TypeError(f"body cannot be {_named(body)}: {fix}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        fix = "decode it" if isinstance(value, bytes) else "give a str"
        raise TypeError(f"{name} cannot be {_named(value)}: {fix}")


def _named(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
