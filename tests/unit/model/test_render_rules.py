"""Render rules: the mode that applies to a URL, and the kind (group) of a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.model.crawl_settings import RenderMode, RenderRule
from orbweaver.model.render_rules import (
    MEANS,
    RenderWhy,
    deciding,
    learned_kind,
    mode_of,
    renders,
)
from orbweaver.model.url_kind import kind_text
from tests.unit.diagnostics.facts import CRAWL, facts, said
from tests.unit.model.test_needs_rendering import RECORD

SITE = "https://example.com"
SHOP = RenderRule(match="/shop/", mode=RenderMode.ALWAYS)
PRESS = RenderRule(match="/shop/press|/press", mode=RenderMode.NEVER)
RULED = replace(CRAWL, render=RenderMode.AUTO, render_rules=(SHOP, PRESS))


@pytest.mark.parametrize(
    ("path", "place", "mode"),
    [
        ("/", None, RenderMode.AUTO),
        ("/shop/1", 0, RenderMode.ALWAYS),
        ("/shop/press", 0, RenderMode.ALWAYS),
        ("/press", 1, RenderMode.NEVER),
    ],
)
def test_first_matching_render_rule_sets_mode(
    path: str, place: int | None, mode: RenderMode
) -> None:
    assert deciding(RULED, SITE + path) == place
    assert mode_of(RULED, SITE + path) is mode


def test_renders_if_mode_or_rule_allows() -> None:
    assert not renders(CRAWL)
    assert not renders(replace(CRAWL, render_rules=(PRESS,)))
    assert renders(replace(CRAWL, render_rules=(PRESS, SHOP)))
    assert renders(replace(CRAWL, render=RenderMode.AUTO))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "/"),
        ("/about", "/*"),
        ("/books/17", "/books/0"),
        ("/books/emma", "/books/*"),
        ("/books/a-novel-of-manners-in-three-volumes", "/books/*"),
        ("/books/item-17", "/books/item-0"),
        ("/books/list.html", "/books/list.html"),
        ("/books/?page=3", "/books/?page=0"),
        ("/wiki/Special:Log", "/wiki/Special:*"),
    ],
)
def test_learned_kind_replaces_names_and_numbers(path: str, kind: str) -> None:
    assert kind_text(learned_kind(SITE + path)) == SITE + kind


@pytest.mark.parametrize("why", RenderWhy)
def test_explanation_contains_render_reason(why: RenderWhy) -> None:
    record = replace(RECORD, url=facts().reference, needs_rendering=None, render_why=str(why))
    words = said(facts(record=record))
    assert f"scripts: {MEANS[why]}" in words
    always = replace(CRAWL, render_rules=(replace(SHOP, match="example"),))
    ruled = said(facts(record=record, crawl=always))
    by_rule = why in (RenderWhy.ALWAYS, RenderWhy.NEVER)
    assert ("(render.rules[0], where example is found)" in ruled) is by_rule
    assert "scripts" not in said(facts(record=replace(record, render_why="of another version")))
