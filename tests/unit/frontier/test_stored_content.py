"""Stored parts of a page, and the redaction before storage."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orbweaver.fetching.response_verdict import End
from orbweaver.frontier.stored_content import Keeping, content_to_store, redacted
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target
from orbweaver.parsing.page import Page, parse
from orbweaver.parsing.pii_redaction import JUDGED_MAX
from orbweaver.worker.pack_context import page_record

URL = "https://example.com/jo@example.com"
TARGET = Target(url=URL, depth=0)
CRAWL = Crawl(id="site-1", name="site", started_at_ms=0)
BOTH = ("email", "phone")
HTML = (
    b"<!doctype html><html lang=en><title>Ask jo@example.com</title>"
    b'<meta name=description content="call +49 30 123456"><nav>about</nav><main><h1>Hi</h1>'
    b'<p><a href="mailto:jo@example.com">jo<b>@</b>example.com</a> or not</p></main>'
)
FETCHED = End(outcome=Outcome.FETCHED, reason=Reason.OK)


@dataclass
class Reaped:
    """A page's record with the stored body and document."""

    record: PageRecord
    body: bytes | None
    document: Any


def reap(crawl: Crawl, body: bytes | None = HTML, kind: str = "text/html") -> Reaped:
    answer = Response(status=200, headers={"content-type": kind}, body=body)
    page: Page | None = None
    if body is not None and kind.startswith("text/html"):
        page = parse(body, URL, kind)
    record = page_record(crawl.id, TARGET, FETCHED, 0, answer=answer, page=page)
    keeping = Keeping(bodies=crawl.bodies, texts=crawl.texts, redacted=crawl.redacted)
    found = content_to_store(keeping, answer, page)
    record = redacted(record, crawl.redacted) if crawl.redacted else record
    return Reaped(record, found.body, found.document)


def test_body_is_stored_unchanged_by_default() -> None:
    found = reap(CRAWL)
    assert (found.body, found.document) == (HTML, None)
    assert found.record.title == "Ask jo@example.com"


def test_document_has_text_title_description_and_language() -> None:
    assert reap(replace(CRAWL, bodies=Bodies.OFF, texts=True)) == Reaped(
        reap(CRAWL).record,
        None,
        {
            "title": "Ask jo@example.com",
            "description": "call +49 30 123456",
            "language": "en",
            "text": "Hi\n\njo@example.com or not",
            "markdown": "# Hi\n\n<jo@example.com> or not",
        },
    )


def test_record_body_and_texts_are_redacted() -> None:
    found = reap(replace(CRAWL, texts=True, redacted=BOTH))
    assert found.record.url == URL
    assert (found.record.title, found.record.description) == ("Ask [email]", "call [phone]")
    assert found.record.sha256 == reap(CRAWL).record.sha256
    assert found.body is not None
    assert b"jo@example.com" not in found.body
    assert b'<a href="mailto:[email]">' in found.body
    assert found.document is not None
    assert found.document["title"] == "Ask [email]"
    assert found.document["text"].startswith("Hi\n\n[email] ")
    assert "jo@example.com" not in found.document["markdown"]


def test_abandoned_redaction_is_counted() -> None:
    body = b"<p>" + b"a@b.de " * (JUDGED_MAX + 1)
    answer = Response(status=200, headers={}, body=body)
    for page in (parse(body, URL, "text/html"), None):
        found = content_to_store(Keeping(bodies=Bodies.ALL, redacted=BOTH), answer, page)
        assert dict(found.cut)["redaction"] == 1


def test_only_named_kind_is_redacted() -> None:
    found = reap(replace(CRAWL, redacted=("phone",)))
    assert (found.record.title, found.record.description) == ("Ask jo@example.com", "call [phone]")


def test_page_without_matches_is_stored_in_its_charset() -> None:
    body = "<p>Grüße</p>".encode("latin-1")
    kind = "text/html; charset=iso-8859-1"
    assert reap(replace(CRAWL, redacted=BOTH), body, kind).body == body


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "koi8-r", "utf-8-sig"])
def test_redacted_page_is_utf8_with_bom(charset: str) -> None:
    body = "<p>Жук é jo@example.com</p>".encode(charset, "ignore")
    kind = f"text/html; charset={charset.removesuffix('-sig')}"
    kept = reap(replace(CRAWL, redacted=BOTH), body, kind).body
    assert kept is not None
    assert kept.startswith(codecs.BOM_UTF8)
    page = parse(kept, URL, kind)
    assert (page.charset, page.text) == (
        "utf-8",
        parse(body, URL, kind).text.replace("jo@example.com", "[email]"),
    )


OTHERS = [
    ("application/pdf", b"%PDF-1.7 jo@example.com", None),
    ("image/png", b"\x89PNG\r\n\x1a\n", None),
    ("text/plain", b"jo@example.com", b"[email]"),
    ("application/ld+json", b'{"email":"jo@example.com"}', b'{"email":"[email]"}'),
    ("application/xml; charset=utf-8", b"<a>jo@example.com</a>", b"<a>[email]</a>"),
    ("text/plain", "jo@example.com".encode("utf-16"), None),
    ("text/css", b"a{}", b"a{}"),
    ("text/plain", None, None),
]


@pytest.mark.parametrize(("kind", "body", "kept"), OTHERS)
def test_other_content_is_stored_redacted_or_omitted(
    kind: str, body: bytes | None, kept: bytes | None
) -> None:
    assert reap(CRAWL, body, kind).body is None
    everything = replace(CRAWL, bodies=Bodies.ALL, texts=True)
    assert (reap(everything, body, kind).body, reap(everything, body, kind).document) == (
        body,
        None,
    )
    assert reap(replace(everything, redacted=BOTH), body, kind).body == kept


def test_error_of_failed_page_is_redacted() -> None:
    end = End(outcome=Outcome.FAILED, reason=Reason.DNS, error="no jo@example.com")
    record = page_record("site-1", TARGET, end, 0)
    assert redacted(record, BOTH) == replace(record, error="no [email]")
    leads = replace(record, error=f"{URL}/b")
    assert redacted(leads, BOTH) == leads


def test_extracted_items_are_redacted() -> None:
    item = Item(
        table="people",
        place=0,
        fields={"mail": "jo@example.com", "phones": ["+49 30 123456", 5], "age": 30, "n": None},
        problems=("price: 'jo@example.com' is none",),
    )
    record = PageRecord(
        crawl="site-1",
        url=URL,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=0,
        depth=0,
        extracted=(item,),
    )
    (clean,) = redacted(record, BOTH).extracted
    assert clean.fields == {"mail": "[email]", "phones": ["[phone]", 5], "age": 30, "n": None}
    assert clean.problems == ("price: '[email]' is none",)
