"""What is said of item rules and of items found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.cli import item_text
from orbweaver.model.item_rules import Field, ItemRule, ValueKind, ValueSource
from tests.unit.cli.views import CRAWL

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
        (RULE, "one a page"),
        (replace(RULE, each="li.book"), "one for each li.book"),
        (replace(RULE, source=ValueSource.JSONLD, of="Product"), "one for each Product in jsonld"),
        (replace(RULE, source=ValueSource.OPENGRAPH), "one a page, of og"),
        (replace(RULE, extractor="books"), "what the function books yields"),
    ],
)
def test_a_rule_is_told_in_a_line(rule: ItemRule, what: str) -> None:
    """Where it holds, what becomes an item, its fields; then the tables with all their columns."""
    assert [*item_text.rules(replace(CRAWL, items=(rule,)))] == [
        (
            "items",
            f"books: where /book/ is found, {what}: title!, price (price), tags of many",
        ),
        ("exports", "items/shop/books: 4 columns in all; ! is required"),
    ]


def test_nothing_is_said_without_rules() -> None:
    """No rules, no lines."""
    assert [*item_text.rules(CRAWL)] == []


@pytest.mark.parametrize(
    ("total", "said"),
    [
        ({}, None),
        ({"items": 1}, "1 item, 0 invalid"),
        ({"items": 2_000, "items_invalid": 25}, "2,000 items, 25 invalid (1.2 %)"),
    ],
)
def test_items_are_counted_with_the_share_of_invalid_ones(
    total: dict[str, int], said: str | None
) -> None:
    """None found is nothing said; none invalid has no share."""
    assert item_text.found(total) == said
