"""Extraction: items of any page and rules fit the columns of a table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.definition_keys import ITEMS
from orbweaver.control.spec_checks import crawl_of
from orbweaver.extraction.convert import UnfitValue, read
from orbweaver.extraction.css import found, parsed
from orbweaver.extraction.extract import (
    Field,
    ItemRule,
    ValueKind,
    ValueSource,
    ValueTake,
    columns_of,
    extract,
)
from orbweaver.extraction.rules import problems_of
from orbweaver.model.columns import Column, Type
from orbweaver.model.crawl_codec import from_fields, to_fields
from orbweaver.model.item import from_row, to_row
from orbweaver.parsing.page import parse

URL = "https://shop.example/books/1/"
SELECTORS = ["h1", "p.price", "ul > li", "a, b", "div p", "script", "title", "*", "a + b", "b ~ a"]
PATHS = ["name", "offers.price", "Product:offers.price", "offers.0.price", "@graph.name", "x..y"]
texts = st.text(max_size=12)
names = st.sampled_from(["a", "b", "c", "price", "d_1"])


def fields_of(name: str) -> st.SearchStrategy[Field]:
    css = st.builds(
        Field,
        name=st.just(name),
        where=st.sampled_from([*SELECTORS, ""]),
        attribute=st.none() | st.sampled_from(["href", "class"]),
        take=st.sampled_from(ValueTake),
        many=st.booleans(),
        type=st.sampled_from(ValueKind),
        required=st.booleans(),
        regex=st.none() | st.sampled_from([r"\d+", "(.)", "x(y)?"]),
        values=st.sampled_from([(), (("One", 1), ("x", True))]),
        format=st.none() | st.just("%d.%m.%Y"),
        currency=st.none() | st.just("EUR"),
        decimal=st.none() | st.sampled_from([".", ","]),
    )
    stated = st.builds(
        Field,
        name=st.just(name),
        source=st.sampled_from(
            [ValueSource.JSONLD, ValueSource.MICRODATA, ValueSource.OPENGRAPH, ValueSource.META]
        ),
        where=st.sampled_from(PATHS),
        many=st.booleans(),
        type=st.sampled_from(ValueKind),
        default=st.none(),
    )
    return css | stated


rules = st.builds(
    ItemRule,
    name=st.sampled_from(["x", "y"]),
    match=st.sampled_from(["/books/", "."]),
    each=st.none() | st.sampled_from(SELECTORS),
    least=st.integers(0, 3),
    fields=st.lists(names, min_size=1, max_size=4, unique=True).flatmap(
        lambda chosen: st.tuples(*map(fields_of, chosen))
    ),
)
objects = st.sampled_from([("jsonld", "Product"), ("microdata", "Product")])
rules_of_objects = st.builds(
    lambda rule, source: ItemRule(
        name=rule.name,
        match=rule.match,
        source=ValueSource(source[0]),
        of=source[1],
        least=rule.least,
        fields=rule.fields,
    ),
    rules,
    objects,
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@type", "@id", "@graph", "@value", "name", "offers", "price", "url"]),
            inner | st.sampled_from(["Product", "https://schema.org/Product", "12,50 €"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)
scripts = json_values.map(
    lambda value: f'<script type="application/ld+json">{json.dumps(value)}</script>'
)
snippets = st.sampled_from(
    [
        "<h1>Title", "<p class=price>£51.77</p>", "<ul><li>1<li>2,5<ul><li>x</ul></ul>",
        "<a href='/x?utm_source=y#z'>l</a><b>b</b>", "<div><p>a</p><div><p>b", "</div>", "<b>",
        "<div itemscope itemtype='https://schema.org/Product'><b itemprop=name>n</b>",
        "<meta property=og:price:amount content=12><meta property=og:price:currency content=eur>",
        "<meta itemprop=price content=1.5>", "<script type='application/ld+json'>{", "<table><td>",
        "<svg><a><title>", "<base href='//[', >", "<base href=/b/>", "03/04/2026", "\x00", "&#0;",
    ]
)  # fmt: skip
pages = (
    st.lists(scripts | snippets | texts, max_size=8)
    .map("".join)
    .map(lambda text: text.encode("utf-8", "replace"))
)


PATTERNS = {
    Type.DECIMAL: r"-?\d{1,14}(\.\d{1,4})?",
    Type.DATE: r"\d{4}-\d\d-\d\d",
    **dict.fromkeys((Type.INTEGER, Type.MOMENT, Type.NUMBER, Type.BOOLEAN), "(?!)"),
}


def fits(value: Any, kind: Type) -> bool:
    if value is None:
        return True
    match value:
        case bool():
            return kind is Type.BOOLEAN
        case int():
            return kind in (Type.INTEGER, Type.MOMENT) and -(2**63) <= value < 2**63
        case float():
            return kind is Type.NUMBER and abs(value) < 1e300
        case str():
            sound = "\0" not in value and value.encode().decode() == value
            return sound and re.fullmatch(PATTERNS.get(kind, "(?s:.*)"), value) is not None
        case _:
            return False


def check(column: Column, value: Any) -> None:
    assert isinstance(value, list) is column.many, (column, value)
    for one in value if column.many else [value]:
        assert fits(one, column.type), (column, value)


@pytest.mark.thorough
@given(
    st.binary(max_size=300) | pages,
    st.lists(rules | rules_of_objects, max_size=3, unique_by=lambda rule: rule.name),
)
def test_extracted_items_fit_their_columns(body: bytes, chosen: list[ItemRule]) -> None:
    page = parse(body, URL, "text/html")
    found_items = extract(page, URL, tuple(chosen))
    by_name = {rule.name: rule for rule in chosen}
    places: dict[str, int] = {}
    for item in found_items:
        columns = columns_of(by_name[item.table])
        assert [*item.fields] == [*dict.fromkeys(column.name for column in columns)]
        assert item.place == places.setdefault(item.table, 0)
        places[item.table] += 1
        for column in columns:
            if [one.name for one in columns].count(column.name) == 1:
                check(column, item.fields[column.name])
        assert from_row(json.loads(json.dumps(to_row(item)))) == item
        for problem in item.problems:
            assert problem
            assert problem.isprintable() or not problem.isascii()
    for rule in chosen:
        assert places.get(rule.name, 0) >= rule.least or places[rule.name] > 0
        if rule.each is None and rule.source is ValueSource.CSS:
            assert places[rule.name] == max(1, min(rule.least, 2))
        for item in found_items:
            if item.valid and item.table == rule.name:
                assert all(
                    item.fields[field.name] not in (None, [])
                    for field in rule.fields
                    if field.required
                )


def says_where(rule: ItemRule) -> bool:
    """True if a rule can be written: a CSS field needs a selector or the node itself."""
    return all(one.where or rule.source is ValueSource.CSS for one in rule.fields)


written = (rules | rules_of_objects).filter(says_where)


@pytest.mark.thorough
@settings(max_examples=50)
@given(st.lists(written, max_size=3, unique_by=lambda rule: rule.name))
def test_rules_survive_json_and_storage(chosen: list[ItemRule]) -> None:
    again = json.loads(json.dumps(ITEMS.write(tuple(chosen))))
    assert ITEMS.read(again) == tuple(chosen)
    crawl = crawl_of(CrawlSpec(seeds=(URL,)), 0)
    stored = json.loads(json.dumps(to_fields(replace(crawl, items=tuple(chosen)))))
    assert from_fields(stored).items == tuple(chosen)


@given(st.text(max_size=30) | st.sampled_from(SELECTORS))
def test_any_selector_is_valid_or_a_problem(text: str) -> None:
    rule = ItemRule(name="x", match=".", fields=(Field(name="a", where=text, regex=text or "."),))
    wrong = "items[0].fields.a.css" in dict(problems_of((rule,)))
    assert not (wrong and text in SELECTORS)
    if text and not wrong:
        root = LexborHTMLParser("<h1>a</h1><p>b</p>").root
        assert root is not None
        assert {node.tag for node in found(text, root)} <= {"head", "body", "h1", "p"}


@given(st.text(max_size=20) | st.from_regex(r"[-£$€]?[\d., ']{1,12}( ?(€|kr|EUR|,-))?"))
def test_text_fits_type_or_is_refused(text: str) -> None:
    for kind in ValueKind:
        field = Field(name="a", type=kind)
        try:
            value = read(field, text)
        except UnfitValue:
            continue
        (column, *_) = columns_of(ItemRule(name="x", match=".", fields=(field,)))
        assert kind is ValueKind.STRING or fits(value.value, column.type), (kind, text, value)


NODES = st.recursive(
    st.sampled_from(["a", "b", "i"]).map(lambda tag: f"<{tag}></{tag}>"),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{'x'.join(parts)}</{tag}>",
        st.sampled_from(["div", "ul", "span", "p"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)
CHAINS = st.lists(
    st.tuples(
        st.sampled_from([" ", " > ", " + ", " ~ "]), st.sampled_from(["div", "ul", "b", "*"])
    ),
    min_size=1,
    max_size=4,
).map(lambda steps: "".join(joint + name for joint, name in steps)[1:].lstrip(" >+~"))


@settings(max_examples=300)
@given(NODES, st.lists(CHAINS, min_size=1, max_size=2).map(", ".join))
def test_selector_steps_find_same_nodes_as_lexbor(html: str, selector: str) -> None:
    tree = LexborHTMLParser(html)
    assert tree.root is not None
    wanted = {node.mem_id: None for node in tree.css(selector)}
    ours = [node.mem_id for node in found(selector, tree.root, itself=True)]
    assert ours == [*wanted], (html, selector, parsed(selector))
