"""Read a JSON response into data, links and facts about the next page of an API.

`worker/page_reading.py` extracts the items.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from orbweaver.extraction.json_document import decoded
from orbweaver.extraction.json_path import is_linear, is_singular, values_at
from orbweaver.model.api_source import ApiSource, Paging, PagingFacts
from orbweaver.model.cuts import counted
from orbweaver.model.http_exchange import Response
from orbweaver.model.item_rules import ItemRule
from orbweaver.model.value import value_class
from orbweaver.parsing.links import Links
from orbweaver.parsing.page import NOFOLLOW_WISHES, NOINDEX_WISHES, Page, without_content
from orbweaver.parsing.robots_tag import wishes_of

# Limit of the bytes of a response, times the number of its paths that visit many values.
BYTES_MAX = 512 * 1024


@value_class
class JsonRead:
    """Data of a JSON response. Its page is empty, except for the links of an API."""

    data: Any
    page: Page
    paging: PagingFacts | None = None


def reading_json(
    answer: Response,
    rules: Sequence[ItemRule],
    api: ApiSource | None,
    links: Links,
    *,
    obey_nofollow: bool,
) -> Generator[None, None, JsonRead]:
    """Read a response. `links` collects its links. Raises UnfitJson or JsonPathError."""
    data = decoded(answer.body or b"", truncated=answer.truncated)
    page = yield from _page(answer, data, api, links, obey_nofollow=obey_nofollow)
    facts = None if api is None else _facts(api, data, page, rules)
    return JsonRead(data=data, page=page, paging=facts)


def is_light_json(size: int, rules: Sequence[ItemRule], api: ApiSource | None) -> bool:
    """Return True if reading `size` bytes of JSON blocks the event loop for at most 100 ms."""
    paths = [rule.each or "$" for rule in rules]
    paths += [field.where for rule in rules for field in rule.fields]
    paths += [] if api is None else api.paths
    visiting = [path for path in paths if not is_singular(path)]
    weight = 1 + len(visiting) if all(map(is_linear, visiting)) else inf
    return size * weight <= BYTES_MAX


def _page(
    answer: Response, data: Any, api: ApiSource | None, links: Links, *, obey_nofollow: bool
) -> Generator[None, None, Page]:
    wishes = wishes_of(answer.headers.get("x-robots-tag", ""))
    nofollow = not NOFOLLOW_WISHES.isdisjoint(wishes)
    values = values_at(api.links, data) if api is not None and api.links else []
    references = [value for value in values if isinstance(value, str)]
    yield from links.adding(references)
    kept = links.kept()
    withdrawn = kept if nofollow and obey_nofollow else ()
    return replace(
        without_content(),
        nofollow=nofollow,
        noindex=not NOINDEX_WISHES.isdisjoint(wishes),
        links=() if withdrawn else kept,
        links_cut=links.cut,
        links_nofollow=len(withdrawn),
        links_foreign=links.foreign,
        links_invalid=links.invalid + sum(value is not None for value in values) - len(references),
        cut=counted({"links": links.cut}),
    )


def _facts(api: ApiSource, data: Any, page: Page, rules: Sequence[ItemRule]) -> PagingFacts:
    paging = api.paging
    if paging is None:
        return PagingFacts()
    found: dict[str, Any] = {}
    for name, path in (("value", paging.path), ("total", paging.total), ("more", paging.more)):
        value = next(iter(values_at(path, data)), None) if path else None
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            return PagingFacts(problem=f"{path} finds {kind}")
        found[name] = value
    return PagingFacts(empty=_is_empty(api, data, page, rules), **found)


def _is_empty(api: ApiSource, data: Any, page: Page, rules: Sequence[ItemRule]) -> bool:
    """Return True if a page has no item and no link. False if no rule finds items or links."""
    each = [rule.each for rule in rules if rule.each is not None]
    paging = api.paging or Paging()
    if not each and not api.links and (paging.total or paging.more):
        return False
    has_links = page.links or page.links_nofollow
    return not has_links and not any(values_at(path, data) for path in each)
