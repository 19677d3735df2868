"""Texts about item rules and items."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.cli.commands.init_check import api_words, item_rules
from orbweaver.cli.live import lines
from orbweaver.model.api_source import ApiSource
from orbweaver.model.item_rules import Field, ItemRule, ValueKind, ValueSource
from tests.unit.cli.views import CRAWL, view_of

RULE = ItemRule(
    name="books",
    match="/book/",
    fields=(
        Field(name="title", required=True),
        Field(name="price", type=ValueKind.PRICE),
        Field(name="tags", many=True),
    ),
)


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (RULE, "one per page"),
        (replace(RULE, each="li.book"), "one per li.book"),
        (replace(RULE, source=ValueSource.JSONLD, of="Product"), "one per Product in jsonld"),
        (replace(RULE, source=ValueSource.OPENGRAPH), "one per page, from og"),
        (replace(RULE, extractor="books"), "items of the function books"),
    ],
)
def test_rule_is_described_in_a_line_and_tables_with_columns(rule: ItemRule, what: str) -> None:
    assert [*item_rules(replace(CRAWL, items=(rule,)))] == [
        (
            "items",
            f"books: URLs that match /book/, {what}: title!, price (price), tags (list)",
        ),
        ("exports", "items/shop/books: 4 columns in total; ! marks a required field"),
    ]


def test_crawl_without_rules_has_no_lines() -> None:
    assert [*item_rules(CRAWL)] == []


@pytest.mark.parametrize(
    ("total", "said"),
    [
        ({}, ""),
        ({"items": 1}, "1 item, 0 invalid"),
        ({"items": 2_000, "items_invalid": 25}, "2,000 items, 25 invalid (1.2 %)"),
    ],
)
def test_items_are_counted_with_share_of_invalid_ones(total: dict[str, int], said: str) -> None:
    assert lines.items(view_of(total)) == said


def test_post_without_body_is_shown_with_one_colon() -> None:
    url = "https://a.example/v1#POST-form:"
    words = dict(api_words(replace(CRAWL, apis=(ApiSource(url=url),))))
    assert words["api"] == f"{url} one page, up to 1,000 pages"
