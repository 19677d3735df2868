"""Readers of URLs, robots.txt and pages: a crawl's own functions, with a worker's results.

Rules
- A URL may be in any form: it is read as a crawl reads a seed.
- Arguments of the wrong type raise TypeError, values that do not fit ValueError; both say the fix.
  What a page or a robots.txt holds raises nothing, as in a crawl.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orbweaver.model.errors import is_fault, type_and_place
from orbweaver.model.item import Item
from orbweaver.model.item_rules import ItemRule
from orbweaver.model.url import TRACKING_PARAMETERS, is_base, redacted
from orbweaver.model.url import canonicalize as canonical
from orbweaver.parsing.page import Page, without_content
from orbweaver.parsing.page import parse as parsed_page
from orbweaver.politeness import robots_txt

_log = logging.getLogger(__name__)
T = TypeVar("T")

_NO_PARAMETERS: frozenset[str] = frozenset()
_WHOLE_URL = "give a whole URL, like 'https://example.com/a'"


@dataclass(frozen=True, slots=True)
class RobotsTxt:
    """A parsed robots.txt; an agent is given by its product token or its User-Agent header."""

    _rules: robots_txt.Robots

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that it names, as they are written: at most 1,000, each once."""
        return self._rules.sitemaps

    def allows(self, agent: str, url: str) -> bool:
        """Whether an agent may ask for a URL, with all parameters that it has."""
        _check_text("agent", agent)
        return self._rules.allows(agent, _canonical(url, _NO_PARAMETERS))

    def crawl_delay(self, agent: str) -> float | None:
        """Return the delay asked of an agent, in seconds; None if there is none."""
        _check_text("agent", agent)
        return self._rules.crawl_delay(agent)


def canonicalize(reference: str, base: str | None = None) -> str:
    """Return the canonical URL that a reference means, seen from the page `base`.

    Fragment, user, password and tracking parameters go. Raises ValueError for what is no http or
    https URL.
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
        fix = _WHOLE_URL if base else f"{_WHOLE_URL}, or as `base` the page that it stands on"
        raise ValueError(f"{redacted(reference)!r}: {error}: {fix}") from error


def parse_robots(body: bytes) -> RobotsTxt:
    """Read a robots.txt (RFC 9309), whatever it holds; of a long one the first 500 KiB.

    It is the body of an answer 200. An answer 404 allows everything: `parse_robots(b"")`.
    """
    return RobotsTxt(robots_txt.parse(_bytes(body)))


def parse_page(body: bytes, url: str, content_type: str | None = None) -> Page:
    """Read the HTML page that `url` answered with: title, links, canonical URL, language, text.

    `content_type` is the answer's header, which may name the charset.
    """
    if content_type is not None:
        _check_text("content_type", content_type)
    given, canonical_url = _bytes(body), _canonical(url)
    page = _unless_fault(lambda: parsed_page(given, canonical_url, content_type), canonical_url)
    return without_content() if page is None else page


def extract(
    rules: Sequence[Mapping[str, Any]], body: bytes, url: str, content_type: str | None = None
) -> tuple[Item, ...]:
    """Find the items of a page by rules, which are `[[items]]` of a crawl.toml as it is decoded.

    Those apply whose `match` is found in the URL. An item that does not fit its rule says why in
    `problems`. Raises ValueError for rules that do not fit, with all that is wrong in them.
    """
    from orbweaver.extraction.extract import extract as extracted

    read = _rules(rules)
    page, page_url = parse_page(body, url, content_type), _canonical(url)
    return _unless_fault(lambda: extracted(page, page_url, read), page_url) or ()


def to_markdown(body: bytes, url: str, content_type: str | None = None) -> str:
    """Return the main text of a page as Markdown, links absolute; empty if it has none."""
    from orbweaver.parsing.main_text import main_text

    page = parse_page(body, url, content_type)
    found = _unless_fault(lambda: main_text(page.html, page.base), _canonical(url))
    return "" if found is None else found.markdown


def _unless_fault(reads: Callable[[], T], url: str) -> T | None:
    """Return a reading of a page; log the fault and return None if reading it raises one."""
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
    fix = "give the bytes as they came; those of a text are text.encode()"
    raise TypeError(f"body cannot be {_named(body)}: {fix}")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        fix = "decode it" if isinstance(value, bytes) else "give a text"
        raise TypeError(f"{name} cannot be {_named(value)}: {fix}")


def _named(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
