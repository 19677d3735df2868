"""Generated page records of the day, with the size of a shop's page. A number determines a page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from orbweaver.frontier import warc
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.item_rules import Field, ItemRule, ValueKind
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

DAY = "2026-11-21"
DAY_MS = 1_795_219_200_000
NAME = "books"
CRAWL = f"{NAME}-{DAY.replace('-', '')}-000000"
RULE = "book"
# Every twentieth page has an item without a price.
BROKEN_EVERY = 20
SEGMENT_PAGES = 200
SHARDS = 16


def crawl() -> Crawl:
    fields = (
        Field(name="title", where="h1", required=True),
        Field(name="price", where=".price", type=ValueKind.PRICE, required=True),
        Field(name="stock", where=".stock", type=ValueKind.INTEGER),
        Field(name="rating", where=".rating", type=ValueKind.NUMBER),
        Field(name="available", where=".stock", type=ValueKind.BOOLEAN),
        Field(name="published", where="time", type=ValueKind.DATE),
        Field(name="tags", where=".tag", many=True),
    )
    rule = ItemRule(name=RULE, match="/catalogue/", fields=fields)
    return Crawl(id=CRAWL, name=NAME, started_at_ms=DAY_MS, items=(rule,))


def url_of(number: int) -> str:
    return (
        f"https://books.example/catalogue/shelf-{number % 50}/a-book-of-a-name_{number}/index.html"
    )


def page(number: int, *, bodies: bool) -> PageRecord:
    """Make the record of a page. If `bodies`, it contains the places of body and text."""
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    stored = {}
    if bodies:
        # `segments` has stored the places; the table needs only these.
        place = PLACES[number]
        stored = dict(zip(STORED, place, strict=True))
    item = item_of(number)
    return PageRecord(
        crawl=CRAWL,
        url=url_of(number),
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=DAY_MS + number * 73 % 86_400_000,
        depth=number % 7,
        referrer=f"https://books.example/catalogue/page-{number // 20}.html",
        status=200,
        content_type="text/html; charset=utf-8",
        charset="utf-8",
        bytes=18_000 + number % 9_999,
        latency_ms=20 + number % 777,
        title=f"A book of a name, volume {number} | Books \u2014 to be read",
        description=f"What the {number}th of these books is about, in a few words that differ.",
        language="en-GB",
        canonical=url_of(number),
        links=number % 130,
        sha256=digest,
        etag=f'"{digest[:20]}"',
        last_modified="Sat, 21 Nov 2026 12:00:00 GMT",
        items=1,
        items_invalid=0 if item.valid else 1,
        extracted=(item,),
        **stored,  # type: ignore[arg-type]
    )


def item_of(number: int) -> Item:
    broken = number % BROKEN_EVERY == 0
    return Item(
        table=RULE,
        place=0,
        fields={
            "title": f"A book of a name, volume {number}",
            "price": None if broken else f"{number % 90}.{number % 100:02d}",
            "price_currency": None if broken else "GBP",
            "stock": number % 23,
            "rating": number % 50 / 10,
            "available": number % 23 > 0,
            "published": f"20{number % 27:02d}-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
            "tags": ["fiction", f"shelf {number % 50}"],
        },
        problems=("price: missing",) if broken else (),
    )


# --- bodies and texts ---------------------------------------------------------------------------

STORED = ("body_key", "body_offset", "body_length", "text_offset", "text_length")
# Places of body and text by page number. `segments` fills it.
PLACES: dict[int, tuple[str, int, int, int, int]] = {}


def segments(count: int) -> Iterator[tuple[str, bytes]]:
    """Yield the segments (files) with the bodies of `count` pages, and record each page's place."""
    for first in range(0, count, SEGMENT_PAGES):
        name = hashlib.blake2b(b"%d" % first, digest_size=16).hexdigest()
        key = f"bodies/{CRAWL}/dt={DAY}/{name}.warc.gz"
        body = warc.warcinfo(key, DAY_MS, {"software": "Orbweaver"})
        for number in range(first, min(first + SEGMENT_PAGES, count)):
            response, text = _members(number)
            offset, text_offset = len(body), len(body) + len(response)
            PLACES[number] = (key, offset, len(response), text_offset, len(text))
            body += response + text
        yield key, body


def _members(number: int) -> tuple[bytes, bytes]:
    record = page(number, bodies=False)
    words = " ".join(hashlib.sha256(b"%d %d" % (number, n)).hexdigest() for n in range(40))
    body = f"<title>{record.title}</title><main>{words}</main>".encode()
    headers = {"content-type": "text/html; charset=utf-8"}
    response = warc.response(
        record.url, record.fetched_at, status=200, headers=headers, body=body, truncated=False
    )
    document = {"title": record.title, "text": words, "markdown": words, "language": "en-GB"}
    return response, warc.conversion(record.url, record.fetched_at, document, stored=True)
