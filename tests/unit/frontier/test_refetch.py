"""Pages of which a crawl stores other content than an earlier run did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.refetch import MissingContent, is_reusable
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies, RenderMode, RenderRule
from orbweaver.model.item import Item
from orbweaver.model.item_rules import Field, ItemRule, ValueSource
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

URL = "https://example.com/a"
CRAWL = Crawl(id="c-2", name="c", started_at_ms=10)
RULE = ItemRule(name="books", match="/a", fields=(Field(name="title", where="h1"),))
OTHER = replace(RULE, fields=(Field(name="title", where="h2"),))
ELSEWHERE = replace(RULE, name="else", match="/b")
JSON = replace(OTHER, source=ValueSource.JSON)
OWN = replace(RULE, extractor="books")
ITEMS = (Item(table="books", place=0, fields={"title": "A"}),)
PAGE = PageRecord(
    crawl="c-1", url=URL, outcome=Outcome.FETCHED, reason=Reason.OK, fetched_at=5, depth=1
)
REFUSED = replace(PAGE, outcome=Outcome.SKIPPED, reason=Reason.CONTENT_TYPE)
AUTO, ALWAYS = RenderMode.AUTO, RenderMode.ALWAYS


@pytest.mark.parametrize(
    ("was", "now", "record", "named"),
    [
        ({}, {}, {}, ""),
        ({}, {"items": (RULE,)}, {}, "items"),
        ({"items": (RULE,)}, {"items": (OTHER,)}, {}, "items"),
        ({"items": (RULE, ELSEWHERE)}, {"items": (ELSEWHERE, RULE)}, {}, ""),
        ({"items": (RULE,)}, {"items": (RULE, ELSEWHERE)}, {}, ""),
        ({"items": (RULE,)}, {"items": (ELSEWHERE,)}, {}, "items"),
        ({"items": (RULE,)}, {}, {}, ""),
        ({"items": (RULE,)}, {"items": (OTHER,)}, {"reason": Reason.SITEMAP}, ""),
        ({"items": (RULE,)}, {"items": (OTHER,)}, {"outcome": Outcome.FAILED}, ""),
        ({"texts": True}, {}, {}, ""),
        ({"status_only": True}, {"texts": True}, {}, "status_only texts"),
        ({}, {"links": True}, {}, "links"),
        ({"redacted": ("email",)}, {"redacted": ("email", "phone")}, {}, "redacted"),
        ({"bodies": Bodies.OFF}, {}, {}, "bodies"),
        ({}, {"bodies": Bodies.ALL}, {}, ""),
        ({}, {"bodies": Bodies.OFF}, {}, ""),
        ({}, {"render": AUTO}, {}, ""),
        ({}, {"render": AUTO}, {"needs_rendering": True}, "render"),
        ({"render": AUTO}, {"render": ALWAYS}, {"rendered": True}, ""),
        ({}, {"render_rules": (RenderRule(match="/a", mode=ALWAYS),)}, {}, "render"),
        ({}, {"render_rules": (RenderRule(match="/b", mode=ALWAYS),)}, {}, ""),
        ({}, {"screenshots": True}, {"rendered": True}, "screenshots"),
    ],
)
def test_page_is_requested_again_if_its_content_differs(
    was: dict[str, Any], now: dict[str, Any], record: dict[str, Any], named: str
) -> None:
    content = MissingContent(crawl=replace(CRAWL, **now), run=replace(CRAWL, **was))
    assert " ".join(content.settings(replace(PAGE, **record))) == named


@pytest.mark.parametrize(
    ("now", "named"),
    [({"items": (JSON,)}, "items"), ({"items": (OTHER,)}, ""), ({"bodies": Bodies.ALL}, "bodies")],
)
def test_refused_type_is_requested_again_if_crawl_reads_it(now: dict[str, Any], named: str) -> None:
    content = MissingContent(crawl=replace(CRAWL, **now), run=CRAWL)
    assert " ".join(content.settings(REFUSED)) == named


@pytest.mark.parametrize(
    ("was", "now", "record", "reusable"),
    [
        ({}, {}, {}, True),
        ({"items": (RULE,)}, {"items": (RULE,)}, {"extracted": ITEMS}, True),
        ({"items": (RULE,)}, {"items": (RULE,)}, {}, True),
        ({"items": (RULE,)}, {"items": (OTHER,)}, {"extracted": ITEMS}, False),
        ({"items": (RULE,)}, {"items": (ELSEWHERE,)}, {"extracted": ITEMS}, False),
        ({}, {"items": (RULE,)}, {}, False),
        ({}, {"items": (ELSEWHERE,)}, {}, True),
        ({"items": (RULE,)}, {}, {"extracted": ITEMS}, False),
        ({"items": (RULE,), "edits": 1}, {"items": (RULE,)}, {"extracted": ITEMS}, False),
        ({"edits": 1}, {}, {}, True),
        ({"items": (OWN,)}, {"items": (OWN,)}, {"extracted": ITEMS}, False),
        ({"bodies": Bodies.OFF}, {}, {}, False),
        ({"redacted": ("email",)}, {}, {}, False),
    ],
)
def test_unchanged_page_keeps_content_of_same_settings_only(
    was: dict[str, Any], now: dict[str, Any], record: dict[str, Any], reusable: bool
) -> None:
    crawl, run = replace(CRAWL, **now), replace(CRAWL, **was)
    assert is_reusable(crawl, run, replace(PAGE, **record)) is reusable
