"""Define an API whose pages a crawl requests one after the other, by a rule for the next page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from orbweaver.model.item import Scalar
from orbweaver.model.request_url import MARK
from orbweaver.model.value import value_class

PAGES_DEFAULT, PAGES_MAX = 1_000, 1_000_000


class PagingBy(StrEnum):
    """Source of the next page: a value, a count of pages or of elements, a URL or a header."""

    CURSOR = "cursor"
    PAGE = "page"
    OFFSET = "offset"
    NEXT = "next"
    LINK = "link"


@value_class
class Paging:
    """Rule for the next page of an API.

    `path` is the JSONPath of the cursor or of the next URL. `parameter` is the query parameter of
    the cursor or number. `total` is the JSONPath of the number of pages or elements, and `more` of
    a boolean that is false on the last page.
    """

    by: PagingBy = PagingBy.NEXT
    path: str = ""
    parameter: str = ""
    start: int | None = None
    step: int | None = None
    total: str = ""
    more: str = ""

    @property
    def first_number(self) -> int:
        """Number of the first page, if its URL does not contain it."""
        if self.start is not None:
            return self.start
        return 1 if self.by is PagingBy.PAGE else 0


@value_class
class ApiSource:
    """An API: the URL of its first page, and the JSONPath of links to pages of the crawl."""

    url: str
    links: str = ""
    pages_max: int = PAGES_DEFAULT
    paging: Paging | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All JSONPaths that are evaluated on each page."""
        paging = self.paging or Paging()
        return tuple(path for path in (self.links, paging.path, paging.total, paging.more) if path)


@value_class
class PagingFacts:
    """Facts about the next page, from a page of an API.

    `empty` means that no item and no link was found. `problem` is the reason if a value has a wrong
    type.
    """

    empty: bool = False
    value: Scalar = None
    total: Scalar = None
    more: Scalar = None
    problem: str | None = None


def api_of(apis: Iterable[ApiSource], url: str | None) -> ApiSource | None:
    """Return the API with this URL, or None."""
    return next((one for one in apis if one.url == url), None)


def api_at(apis: Collection[ApiSource], url: str) -> ApiSource | None:
    """Return the API to which a URL belongs by its path, or None."""
    path = endpoint_of(url)
    return api_of(apis, url) or next((one for one in apis if endpoint_of(one.url) == path), None)


def endpoint_of(url: str) -> str:
    return url.partition(MARK)[0].partition("?")[0]
