"""The shop as a site: its answers, and the expected result of a crawl."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypedDict

from tests.sites.bookshop import catalogue, corners, private, shelves, sitemap, spellings, world
from tests.sites.bookshop.markup import STYLE, STYLE_PATH
from tests.sites.bookshop.model import Expected, File, Missing, Page, Redirect, Resource, expect
from tests.sites.server import AccessLog, Answer, Asked

BOOKS = 1_000
SEED = 2026
SLOW_S = 1.5
RETRY_AFTER_S = 1
GZIP_BYTES_MIN = 1_000
GZIP_LEVEL = 5
LAST_MODIFIED = ("Last-Modified", "Mon, 02 Nov 2026 08:00:00 GMT")
HTML = ("Content-Type", "text/html; charset=utf-8")
TRACKING = re.compile(r"[?&](?:utm_[a-z]+|gclid|fbclid)=[^&]*")


@functools.lru_cache(maxsize=4)
def resources(seed: int, count: int, broken: float = 0.0) -> Mapping[str, Resource]:
    """Return the shop's resources by path; cached per seed and number of books."""
    books = catalogue.make(seed, count)
    lost = catalogue.broken(seed, count, broken)
    parts = (shelves.pages(books, lost), corners.make(books), spellings.make(books), world.make())
    found: dict[str, Resource] = {}
    for resource in itertools.chain(*parts):
        if resource.path in found:
            message = f"two resources at {resource.path}"
            raise ValueError(message)
        found[resource.path] = resource
    return found


class Options(TypedDict, total=False):
    """Options of a shop; `broken` is the share of books whose page has a broken template."""

    books: int
    seed: int
    slow_s: float
    broken: float


class Bookshop:
    """A shop; shops of one seed share their pages, but not log and state."""

    def __init__(
        self, *, books: int = BOOKS, seed: int = SEED, slow_s: float = SLOW_S, broken: float = 0.0
    ) -> None:
        self.url = ""
        self.log = AccessLog()
        self._slow_s = slow_s
        self._books = catalogue.make(seed, books)
        self._resources = resources(seed, books, broken)
        self._broken = catalogue.broken(seed, books, broken)
        self._answers: dict[tuple[str, bool], Answer] = {}
        self._recovered: set[str] = set()

    def expected(self, base_url: str | None = None) -> Expected:
        """Return the expected result of a crawl from the home page, below `base_url` or its own."""
        return expect(self._resources, corners.RULES, base_url or self.url)

    def titles(self, base_url: str | None = None) -> dict[str, str]:
        pages = (page for page in self._resources.values() if isinstance(page, Page))
        return {(base_url or self.url) + page.path: page.title for page in pages}

    def books(self, base_url: str | None = None) -> list[dict[str, str | int]]:
        """Return the books' data, to compare with extracted items."""
        base_url = base_url or self.url
        rows = ((book, dataclasses.asdict(book)) for book in self._books)
        return [
            {"url": base_url + book.path, **row, "amount": str(book.amount)} for book, row in rows
        ]

    def broken(self, base_url: str | None = None) -> dict[str, str]:
        """Return the lost parts of books' pages, by URL."""
        return {
            (base_url or self.url) + book.path: self._broken[book.number]
            for book in self._books
            if book.number in self._broken
        }

    def totals(self, *, without_broken: bool = False) -> dict[str, Any]:
        """Return the sum of all books' prices by currency, to the cent."""
        books = [b for b in self._books if not (without_broken and b.number in self._broken)]
        prices: defaultdict[str, Decimal] = defaultdict(Decimal)
        for book in books:
            prices[book.currency] += book.amount
        return {
            "books": len(books),
            "prices": {currency: f"{total:.2f}" for currency, total in sorted(prices.items())},
            "stock": sum(book.stock for book in books),
            "ratings": sum(book.rating for book in books),
        }

    def reset(self) -> None:
        """Let pages that answer 503 at first do so again."""
        self._recovered.clear()

    def documents(self) -> Mapping[str, Callable[[], object]]:
        return {
            "expected": lambda: self.expected().as_json(),
            "books": self.books,
            "titles": self.titles,
            "totals": self.totals,
            "broken": self.broken,
        }

    def answer(self, asked: Asked) -> Answer:
        if asked.method not in {"GET", "HEAD"}:
            return Answer(status=HTTPStatus.METHOD_NOT_ALLOWED, headers=(("Allow", "GET, HEAD"),))
        target = self._canonical(asked.target)
        resource = self._resources.get(target)
        if isinstance(resource, Page) and resource.recovers and target not in self._recovered:
            self._recovered.add(target)
            wait = ("Retry-After", str(RETRY_AFTER_S))
            return Answer(status=HTTPStatus.SERVICE_UNAVAILABLE, headers=(HTML, wait))
        if resource is None:
            return self._unlisted(target, asked.host)
        packed = "gzip" in asked.headers.get("Accept-Encoding", "")
        if (target, packed) not in self._answers:
            self._answers[target, packed] = self._answer(resource, packed=packed)
        return self._answers[target, packed]

    def _canonical(self, target: str) -> str:
        """Return a target without tracking parameters, which the shop ignores."""
        if target in self._resources or "?" not in target:
            return target
        path, _, query = target.partition("?")
        rest = TRACKING.sub("", f"?{query}")
        return path + (f"?{rest[1:]}" if rest else "")

    def _answer(self, resource: Resource, *, packed: bool) -> Answer:
        match resource:
            case Page():
                delay_s = self._slow_s if resource.slow else 0.0
                return _body(resource.headers, resource.body, packed=packed, delay_s=delay_s)
            case File():
                return _body((("Content-Type", resource.content_type),), resource.body)
            case Redirect():
                where = ("Location", resource.location)
                return Answer(status=resource.status, headers=(where, HTML))
            case Missing():
                return missing(resource.status)

    def _unlisted(self, target: str, host: str) -> Answer:
        """Answer a path outside the model: the shop's own files, and forbidden paths."""
        base_url = f"http://{host}"
        if target == STYLE_PATH:
            return _body((("Content-Type", "text/css; charset=utf-8"),), STYLE.encode())
        if target == "/robots.txt":
            text = corners.RULES.text.format(base_url=base_url)
            return _body((("Content-Type", "text/plain; charset=utf-8"),), text.encode())
        if corners.RULES.forbid(target):
            return private.answer(target)
        content_type, body = sitemap.files(self._books, base_url).get(target, ("", b""))
        return (
            _body((("Content-Type", content_type),), body)
            if body
            else missing(HTTPStatus.NOT_FOUND)
        )


def missing(status: int) -> Answer:
    phrase = HTTPStatus(status).phrase
    body = f'<!DOCTYPE html><title>{phrase}</title><h1>{phrase}</h1><p><a href="/">Home</a>'
    return Answer(status=status, headers=(HTML,), body=body.encode())


def _body(
    headers: tuple[tuple[str, str], ...], body: bytes, *, packed: bool = False, delay_s: float = 0.0
) -> Answer:
    """Return a 200 with validators, gzipped if accepted and useful."""
    etag = ("ETag", f'W/"{hashlib.sha256(body).hexdigest()[:16]}"')
    headers = (*headers, etag, LAST_MODIFIED, ("Vary", "Accept-Encoding"))
    if packed and len(body) >= GZIP_BYTES_MIN:
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        headers = (*headers, ("Content-Encoding", "gzip"))
    return Answer(headers=headers, body=body, delay_s=delay_s)
