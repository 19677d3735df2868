"""Products of a shop as JSON: one endpoint for each form of paging, and a page per product.

The answer depends only on path, query and body, so tests can compare the crawled items.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

PER_PAGE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response of the shop."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def product(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "title": f"Product {number}",
        "price": {"amount": number + 0.5, "currency": "EUR"},
        "tags": ["new"] if number % 2 else [],
        "url": f"/products/{number}",
    }


class Shop:
    """Answers requests for `size` products."""

    def __init__(self, size: int = 35) -> None:
        self.size = size

    def reply(self, method: str, path: str, query: str, body: bytes) -> Reply:
        if path == "/robots.txt":
            return Reply(body=b"User-agent: *\nDisallow: /private/\n", kind="text/plain")
        if path.startswith("/products/"):
            title = f"<title>Product {path.rpartition('/')[2]}</title>"
            return Reply(body=title.encode(), kind="text/html")
        given = {name: values[-1] for name, values in parse_qs(query).items()}
        answers = {
            "/v1/cursor": self._cursor,
            "/v1/pages": self._pages,
            "/v1/offset": self._offset,
            "/v1/next": self._next,
            "/v1/link": self._link,
        }
        if method == "POST" and path == "/v1/search":
            return self._search(body)
        if method == "POST" and path == "/v1/form":
            form = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
            return self._cursor(form)
        if method != "GET" or path not in answers:
            return Reply(status=404, body=b'{"error": "not found"}')
        return answers[path](given)

    def _part(self, first: int) -> list[dict[str, Any]]:
        return [product(number) for number in range(first, min(first + PER_PAGE, self.size))]

    def _cursor(self, given: dict[str, str]) -> Reply:
        first = int(given.get("cursor", "c0")[1:])
        following = first + PER_PAGE
        cursor = f"c{following}" if following < self.size else None
        return _json({"results": self._part(first), "meta": {"next_cursor": cursor}})

    def _pages(self, given: dict[str, str]) -> Reply:
        return _json({"results": self._part((int(given.get("page", "1")) - 1) * PER_PAGE)})

    def _offset(self, given: dict[str, str]) -> Reply:
        first = int(given.get("offset", "0"))
        return _json({"results": self._part(first), "total": self.size})

    def _next(self, given: dict[str, str]) -> Reply:
        first = int(given.get("from", "0"))
        following = first + PER_PAGE
        reference = f"?from={following}" if following < self.size else None
        return _json({"results": self._part(first), "next": reference})

    def _link(self, given: dict[str, str]) -> Reply:
        first = int(given.get("from", "0"))
        following = first + PER_PAGE
        link = (("Link", f'</v1/link?from={following}>; rel="next"'),)
        return _json({"results": self._part(first)}, link if following < self.size else ())

    def _search(self, body: bytes) -> Reply:
        try:
            asked = json.loads(body)
            first = int(asked.get("page", {}).get("after", "c0")[1:])
        except ValueError:
            return Reply(status=400, body=b'{"error": "no query"}')
        following = first + PER_PAGE
        cursor = f"c{following}" if following < self.size else None
        return _json({"results": self._part(first), "query": asked.get("query"), "after": cursor})


def _json(data: Any, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    return Reply(body=json.dumps(data).encode(), headers=headers)
