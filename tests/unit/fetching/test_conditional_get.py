"""Conditional requests for pages that were fetched before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.fetching.conditional_get import complete_unchanged, condition_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Condition
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import HEADER_CHARS_MAX, PageRecord
from orbweaver.model.target import Target

URL = "https://example.com/a"
DATE = "Thu, 15 Jan 2026 12:00:00 GMT"
CRAWL = Crawl(id="c-2", name="c", started_at_ms=10, depth_max=3)
LEAF = PageRecord(
    crawl="c-1",
    url=URL,
    outcome=Outcome.FETCHED,
    reason=Reason.OK,
    fetched_at=5,
    depth=1,
    status=200,
    bytes=100,
    title="A",
    links=0,
    sha256="ab",
    etag='"1"',
    last_modified=DATE,
)


@pytest.mark.parametrize(
    ("changes", "depth", "etag", "last_modified"),
    [
        ({}, 1, '"1"', DATE),
        ({"etag": None}, 1, None, DATE),
        ({"last_modified": None}, 1, '"1"', None),
        ({"outcome": Outcome.UNCHANGED, "reason": Reason.NOT_MODIFIED}, 1, '"1"', DATE),
        (
            {"etag": "x" * HEADER_CHARS_MAX},
            1,
            None,
            DATE,
        ),  # a stored value of this length may be truncated
        ({"links": 9}, 3, '"1"', DATE),  # at the maximum depth, links are not followed
    ],
)
def test_page_without_needed_links_is_requested_conditionally(
    changes: dict[str, Any], depth: int, etag: str | None, last_modified: str | None
) -> None:
    condition = condition_of(CRAWL, Target(url=URL, depth=depth), replace(LEAF, **changes))
    assert condition == Condition(etag=etag, last_modified=last_modified)


@pytest.mark.parametrize(
    "before",
    [
        None,
        replace(LEAF, etag=None, last_modified=None),
        replace(LEAF, links=9),
        replace(LEAF, links=None),
        replace(LEAF, reason=Reason.TRUNCATED),
        replace(LEAF, outcome=Outcome.FAILED, reason=Reason.HTTP_CLIENT_ERROR),
    ],
)
def test_other_page_is_requested_unconditionally(before: PageRecord | None) -> None:
    assert condition_of(CRAWL, Target(url=URL, depth=1), before) is None


def test_unchanged_page_keeps_data_of_earlier_record() -> None:
    asked = PageRecord(
        crawl="c-2",
        url=URL,
        outcome=Outcome.UNCHANGED,
        reason=Reason.NOT_MODIFIED,
        fetched_at=20,
        depth=2,
        status=304,
        etag='"2"',
    )
    known = replace(
        asked,
        bytes=0,
        title="A",
        links=0,
        sha256="ab",
        last_modified=DATE,
        needs_rendering=True,
        rendered=True,
    )
    assert complete_unchanged(asked, replace(LEAF, needs_rendering=True, rendered=True)) == known


def test_changed_page_keeps_no_data_of_earlier_record() -> None:
    changed = replace(LEAF, crawl="c-2", title=None)
    assert complete_unchanged(changed, LEAF) is changed
