"""Rules of rendering: which mode holds for a URL, and what kind a page is of."""

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
def test_the_first_rule_decides(path: str, place: int | None, mode: RenderMode) -> None:
    """What none is found in goes by the mode of the crawl."""
    assert deciding(RULED, SITE + path) == place
    assert mode_of(RULED, SITE + path) is mode


def test_a_crawl_renders_if_its_mode_or_a_rule_says_so() -> None:
    """One whose rules say never does not."""
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
def test_a_kind_leaves_names_open(path: str, kind: str) -> None:
    """But for those that a program gives: with a number, an extension or a namespace."""
    assert kind_text(learned_kind(SITE + path)) == SITE + kind


@pytest.mark.parametrize("why", RenderWhy)
def test_an_explanation_says_why(why: RenderWhy) -> None:
    """In the words of the reason, with the kind of the page, or the rule."""
    record = replace(RECORD, url=facts().reference, needs_rendering=None, render_why=str(why))
    words = said(facts(record=record))
    assert f"scripts: {MEANS[why]}" in words
    always = replace(CRAWL, render_rules=(replace(SHOP, match="example"),))
    ruled = said(facts(record=record, crawl=always))
    by_rule = why in (RenderWhy.ALWAYS, RenderWhy.NEVER)
    assert ("(render.rules[0], where example is found)" in ruled) is by_rule
    assert "scripts" not in said(facts(record=replace(record, render_why="of another version")))
