"""Truncated parts of a page: counted while reading, kept in the record and in the counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.adapters.web.headers import HEADERS_CHARS_MAX, response_headers
from orbweaver.diagnostics.explanation import explain
from orbweaver.diagnostics.refusal_report import Examples, report_of
from orbweaver.fetching.conditional_get import complete_unchanged
from orbweaver.fetching.response_verdict import End
from orbweaver.frontier.pack_result import EndedPage, PackResult, PageResult
from orbweaver.frontier.stored_content import Keeping
from orbweaver.model import cuts
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.cuts import Cuts
from orbweaver.model.http_exchange import Response
from orbweaver.model.item_rules import Field, ItemRule, ValueSource
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target
from orbweaver.parsing.html_scan import outline_of
from orbweaver.worker.pack_context import page_record
from orbweaver.worker.page_reading import ReadingJob, read
from tests.contract import samples
from tests.unit.diagnostics.facts import CRAWL, facts, said

URL = "https://example.com/a"
SEED = Target(url=URL, depth=0)
OK = End(outcome=Outcome.FETCHED, reason=Reason.OK)
RECORD = samples.record(0, url=URL, cut="text=12 links=3")
SCRIPT = b'<script type="application/ld+json">{"@type":"Product","name":"x"}</script>'
NAMED = ItemRule(
    name="products",
    match="/",
    source=ValueSource.JSONLD,
    of="Product",
    fields=(Field(name="name", source=ValueSource.JSONLD, where="name"),),
)
EACH = ItemRule(name="each", match="/", each="p", fields=(Field(name="text", where=""),))


def job(body: bytes, **more: Any) -> ReadingJob:
    kind = more.pop("kind", "text/html; charset=utf-8")
    answer = Response(status=200, headers={"content-type": kind}, body=body)
    return ReadingJob(url=URL, at_ms=0, answer=answer, **more)


def cuts_of(body: bytes, **more: Any) -> dict[str, int]:
    return dict(read(job(body, **more)).cut)


TEXTS = Keeping(texts=True, bodies=Bodies.OFF)
PDF = {"kind": "application/pdf", "html": False}


@pytest.mark.parametrize(
    ("found", "more", "parts"),
    [
        (b"<title>x</title><p>all of it", {"keeping": TEXTS}, {}),
        (b"<a href=/1><a href=/2><a href=/3>", {"links_max": 2}, {"links": 1}),
        (b"<title>" + b"x" * 507 + b"</title>", {}, {"title": 7}),
        (b"<meta name=description content=" + b"x" * 503 + b">", {}, {"description": 3}),
        (b"<html lang=" + b"x" * 40 + b">", {}, {"language": 5}),
        (b'<link rel=canonical href="http://">', {}, {"canonical": 1}),
        (b"<p>" * 1_100 + b"<a href=/1 " + b"a=1 " * 40 + b">", {}, {"tags": 1}),
        (b"<p>x" * 60_001, {"keeping": TEXTS}, {"layout": 2 * 60_001 - 1}),
        (b"<div>" * 250 + b"deep", {"keeping": TEXTS}, {"layout": 4}),
        (b"<p>x" * 1_003, {"items": (EACH,)}, {"items": 3}),
        (b"<p>" + b"x" * 15_000 + b"</p>" + b"<p>y" * 20, {"items": (EACH,)}, {}),
        ((b"<p>" + b"x" * 15_000) * 15, {"items": (EACH,)}, {"items": 1}),
        (SCRIPT * 53, {"items": (NAMED,)}, {"data": 3}),
        (SCRIPT + b"<script type=application/ld+json>{</script>", {"items": (NAMED,)}, {"data": 1}),
        (b"%PDF", {**PDF, "keeping": Keeping(bodies=Bodies.ALL)}, {}),
        (b"%PDF", {**PDF, "keeping": Keeping(bodies=Bodies.OFF, redacted=("email",))}, {}),
        (b"%PDF", {**PDF, "keeping": Keeping(bodies=Bodies.ALL, redacted=("email",))},
         {"withheld": 1}),
    ],
)  # fmt: skip
def test_read_counts_truncated_parts_of_page(
    found: bytes, more: dict[str, Any], parts: dict[str, int]
) -> None:
    assert cuts_of(found, **more) == parts
    assert parts.keys() <= cuts.PARTS.keys()


def test_read_counts_text_beyond_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbweaver.parsing.main_text.HTML_BYTES_MAX", 20)
    monkeypatch.setattr("orbweaver.parsing.main_text.CHARS_MAX", 10)
    assert cuts_of(b"<p>" + b"x" * 30, keeping=TEXTS) == {"text": 13, "text_chars": 7}


@pytest.mark.parametrize(
    ("end", "more", "words"),
    [
        (OK, {}, None),
        (OK, {"truncated": True}, "body=1"),
        (End(outcome=Outcome.FETCHED, reason=Reason.TRUNCATED), {}, "body=1"),
        (End(outcome=Outcome.FETCHED, reason=Reason.COSTLY, error="e" * 310), {},
         "unread=1 error=10"),
        (End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE), {"truncated": True}, None),
        (OK, {"headers": {"etag": "x" * 203}, "headers_cut": 2}, "etag=3 headers=2"),
        (OK, {"headers": {"content-type": "x" * 201, "last-modified": "y" * 202}},
         "content_type=1 last_modified=2"),
    ],
)  # fmt: skip
def test_page_record_lists_truncated_parts(
    end: End, more: dict[str, Any], words: str | None
) -> None:
    answer = replace(Response(status=200, headers={}, body=b""), **more)
    assert page_record("c", SEED, end, 0, answer=answer).cut == words


def test_cuts_are_joined_in_fixed_order() -> None:
    read_cut: Cuts = (("links", 2), ("text", 1))
    answer = Response(status=200, headers={}, body=b"", truncated=True)
    record = page_record("c", SEED, OK, 0, answer=answer, cut=read_cut)
    assert record.cut == "body=1 text=1 links=2"
    assert cuts.joined(read_cut, read_cut) == (("text", 2), ("links", 4))


def test_parts_of_reads_columns_of_other_versions() -> None:
    assert dict(cuts.parts_of("text=1 what even=so later=2 odd=²")) == {"text": 1, "later": 2}
    assert list(cuts.counters(None)) == []
    assert cuts.describe_cuts("links=1200") == f"links 1,200: {cuts.PARTS['links']}"


def test_pages_are_counted_by_truncated_part() -> None:
    result = PackResult("c")
    records = (
        RECORD,
        replace(RECORD, url=f"{URL}2", cut=None),
        replace(RECORD, url=f"{URL}3", cut="links=9"),
    )
    result.add(*(PageResult(end=EndedPage(record=record)) for record in records))
    counts = result.journal([], 0).counts
    assert {key: number for key, number in counts.items() if key.startswith("incomplete")} == {
        "incomplete.links": 2,
        "incomplete.pages": 2,
        "incomplete.text": 1,
    }


def test_report_lists_truncated_parts_with_samples() -> None:
    counts = {"incomplete.text": 1, "incomplete.pages": 1, "refused.scope": 1, "incomplete.new": 2}
    examples = Examples.for_crawl(counts)
    examples.add(RECORD)
    *_, new, text = report_of(CRAWL, counts, examples, {}).skipped
    assert (text.kind, text.reason, text.samples) == ("incomplete", "text", (URL,))
    assert text.means == cuts.PARTS["text"]
    assert (new.reason, new.means) == ("new", "")


def test_explanation_lists_truncated_parts() -> None:
    found = facts(record=replace(RECORD, url=facts().reference))
    assert "text 12: bytes of the main part" in said(found)
    assert any(one.about == "cut" for one in explain(found).statements)


def test_unchanged_page_keeps_cut_of_stored_record() -> None:
    again = replace(RECORD, outcome=Outcome.UNCHANGED, cut=None)
    assert complete_unchanged(again, RECORD).cut == RECORD.cut


def test_dropped_response_headers_are_counted() -> None:
    raw = [(b"Age", b"1"), (b"Age", b"2"), (b"Server", b"x"), (b"Server", b"x")]
    assert response_headers(raw)[1] == 1
    # Cookies are collected elsewhere, in crawls that keep them.
    assert response_headers([(b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2")])[1] == 0
    assert response_headers([(b"Link", b"<a>"), (b"Link", b"<b>")]) == ({"link": "<a>, <b>"}, 0)
    assert response_headers([(b"x", b"v" * HEADERS_CHARS_MAX), (b"y", b"1"), (b"z", b"")])[1] == 3


def test_outline_counts_shortened_tags() -> None:
    whole = b"<a href=1><a href='>' b=2>" + b"<p>" * 10
    assert outline_of(whole)[1] == 0
    values = b" ".join(b"a%d=%d" % (number, number) for number in range(40))
    assert outline_of(whole + b"<a " + values + b">" + b"<a " + b"x " * 200 + b">")[1] == 2
