"""The page record: its keys and its stored form."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from hashlib import sha256

import pytest

from orbweaver.fetching.response_verdict import End
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import (
    COLUMNS,
    PageRecord,
    day_of,
    from_fields,
    page_key,
    shard_of,
    to_fields,
)
from orbweaver.model.target import Target
from orbweaver.model.url import url_hash
from orbweaver.parsing.page import parse
from orbweaver.worker.pack_context import page_record

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
URL = "https://example.com/a"
TARGET = Target(url=URL, depth=3, attempt=2, referrer="https://example.com/")
FETCHED = End(outcome=Outcome.FETCHED, reason=Reason.OK)
BODY = b"""<html lang=en><title>Title</title><meta name=description content="All of it">
<link rel=canonical href=/c><a href=/b>b</a>"""


def test_page_record_contains_target_answer_and_page() -> None:
    headers = {
        "content-type": "text/html; charset=utf-8",
        "etag": '"e"',
        "last-modified": "Sat, 21 Nov 2026 09:00:00 GMT",
    }
    answer = Response(status=200, headers=headers, body=BODY, latency_ms=12)
    page = parse(BODY, URL, headers["content-type"])
    assert page_record("c", TARGET, FETCHED, NOW_MS, answer=answer, page=page) == PageRecord(
        crawl="c",
        url=URL,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=NOW_MS,
        depth=3,
        referrer="https://example.com/",
        status=200,
        content_type="text/html; charset=utf-8",
        charset="utf-8",
        bytes=len(BODY),
        latency_ms=12,
        attempt=2,
        title="Title",
        description="All of it",
        language="en",
        canonical="https://example.com/c",
        links=1,
        sha256=sha256(BODY).hexdigest(),
        etag='"e"',
        last_modified="Sat, 21 Nov 2026 09:00:00 GMT",
        h1=0,
    )


def test_page_record_marks_page_needing_scripts() -> None:
    body = b"<title>Shop</title><div id=root></div><script type=module src=/a.js></script>"
    page = parse(body, URL, "text/html")
    answer = Response(status=200, headers={}, body=body)
    record = page_record("c", TARGET, FETCHED, NOW_MS, answer=answer, page=page)
    assert record.needs_rendering is True
    assert from_fields(to_fields(record)) == record
    broken = replace(answer, truncated=True)
    record = page_record("c", TARGET, FETCHED, NOW_MS, answer=broken, page=page)
    assert record.needs_rendering is None
    whole = parse(BODY, URL, "text/html")
    record = page_record("c", TARGET, FETCHED, NOW_MS, answer=answer, page=whole)
    assert "needs_rendering" not in to_fields(record)


def test_page_record_headers_have_no_control_characters() -> None:
    headers = {"content-type": "text/\x1b[31m", "etag": '"a\tb\x85\u2028"', "last-modified": "\xa0"}
    answer = Response(status=200, headers=headers, body=b"x")
    record = page_record("c", TARGET, FETCHED, NOW_MS, answer=answer)
    assert (record.content_type, record.etag, record.last_modified) == (
        "text/ [31m",
        '"a b  "',
        None,
    )


def test_page_record_without_body_has_no_size() -> None:
    answer = Response(status=200, headers={"content-type": "image/png"}, body=None, latency_ms=3)
    end = End(outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)
    record = page_record("c", TARGET, end, NOW_MS, answer=answer)
    assert (record.status, record.content_type) == (200, "image/png")
    assert (record.bytes, record.sha256, record.title, record.links) == (None, None, None, None)


def test_page_record_of_failure_has_latency_and_truncated_error() -> None:
    failure = Failure(reason=Reason.DNS, detail="x" * 5_000, latency_ms=7)
    end = End(outcome=Outcome.FAILED, reason=Reason.DNS, error=failure.detail)
    record = page_record("c", TARGET, end, NOW_MS, answer=failure)
    assert (record.status, record.latency_ms, record.error) == (None, 7, "x" * 300)


def test_page_record_without_request_has_no_answer() -> None:
    end = End(outcome=Outcome.SKIPPED, reason=Reason.ROBOTS)
    record = page_record("c", TARGET, end, NOW_MS)
    assert (record.status, record.latency_ms, record.error) == (None, None, None)


def test_page_record_truncates_long_texts() -> None:
    """Headers and descriptions from servers cannot make an item too large (case 20)."""
    headers = {"content-type": "t" * 9_000, "etag": "e" * 9_000, "last-modified": "m" * 9_000}
    body = b"<title>" + b"t" * 100_000 + b'</title><meta name=description content="' + b"d" * 9_000
    body += b'">' + b"<a href=/x></a>" * 10_000
    page = parse(body, URL, None)
    answer = Response(status=200, headers=headers, body=body)
    record = page_record("c", TARGET, FETCHED, NOW_MS, answer=answer, page=page)
    assert len(json.dumps(to_fields(record))) < 4_000


@pytest.mark.parametrize(
    ("at_ms", "day"),
    [
        (0, "1970-01-01"),
        (NOW_MS, "2026-11-21"),
        (1_795_305_599_999, "2026-11-21"),
        (1_795_305_600_000, "2026-11-22"),
    ],
)
def test_day_of_is_utc(at_ms: int, day: str) -> None:
    assert day_of(at_ms) == day


def test_page_key_follows_from_crawl_url_and_day() -> None:
    record = page_record("c", TARGET, FETCHED, NOW_MS)
    digest = url_hash(URL)
    assert page_key(record, 16) == (f"2026-11-21#{shard_of(digest, 16)}", f"c#{digest}")


@pytest.mark.parametrize("name", ["p", "", "not hexadecimal", "0" * 64])
def test_shard_of_accepts_any_id(name: str) -> None:
    assert 0 <= shard_of(name, 16) < 16


def test_shard_of_spreads_one_host_over_all_partitions() -> None:
    """URLs of one host spread over all partitions, so that no partition is hot (case 21)."""
    shards = Counter(shard_of(url_hash(f"{URL}/{number}"), 16) for number in range(1_600))
    assert set(shards) == set(range(16))
    assert max(shards.values()) < 2 * 100


def test_page_record_round_trips_without_empty_columns() -> None:
    record = page_record("c", TARGET, FETCHED, NOW_MS)
    stored = to_fields(record)
    assert None not in stored.values()
    assert from_fields(stored) == record
    assert tuple(stored) == tuple(name for name in COLUMNS if name in stored)


def test_page_record_of_other_version_is_read() -> None:
    """Unknown fields are ignored (case 26)."""
    record = page_record("c", TARGET, FETCHED, NOW_MS)
    assert from_fields({**to_fields(record), "day": "x", "expires_at": 1}) == record
