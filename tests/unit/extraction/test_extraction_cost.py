"""Cost of rules on hostile pages: bounded, reported, and linear in the page size."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from orbweaver.extraction.css import Extent
from orbweaver.extraction.extract import extract
from orbweaver.extraction.json_ld import NAMES_MAX, json_ld, microdata
from orbweaver.extraction.work_budget import OBJECT_UNITS, UNITS_MAX, TooMuchError, WorkBudget
from orbweaver.model.item import Item
from orbweaver.parsing.page import parse
from tests.costs import LINEAR, peak_bytes, slope, within
from tests.unit.extraction.extracting import URL, rule

# Twice the measured time of the whole budget.
BUDGET_S = 8
ROWS = "<table>" + ("<tr>" + "<td>x</td>" * 10 + "</tr>") * 1_000


def found(html: str, **keys: Any) -> tuple[Item, ...]:
    page = parse(html.encode(), URL, "text/html; charset=utf-8")
    return extract(page, URL, (rule(**keys),))


# --- JSON-LD ------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        ('{"a": "', '\\"'),
        ('{"a": "', "\\n"),
        ('{"a": "x",', '"\\'),
        ('{"a": "x",', '",'),
        ("{", ", "),
        ("", "["),
        ("", "//"),
        ("{&quot;", "&"),
        ('["', "\\u"),
        ("[", "9"),
    ],
)
def test_malformed_json_ld_is_read_in_linear_time(start: str, repeated: str) -> None:
    def made(size: int) -> Callable[[], object]:
        text = start + repeated * (size // len(repeated))
        return lambda: json_ld([text]).problems

    assert json_ld([start + repeated * 40_000]).problems
    assert within(0.5, made(1_900_000))
    assert slope(made, [470_000, 940_000, 1_880_000]) < LINEAR


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "b,]",}', "b,]"),
        ('{"a": "b\\",}",}', 'b",}'),
        ('{"a": "b\n,]" ,\n}', "b\n,]"),
        ('{"a": "\\\\",}', "\\"),
    ],
)
def test_spare_commas_are_removed_outside_strings_only(text: str, value: str) -> None:
    objects = json_ld([text])
    assert [found for found, _ in objects.values("a", objects.roots[0])] == [value]


def test_references_to_one_object_do_not_multiply() -> None:
    """2,000 references to an object with 2,000 names would turn 44 KB into 1,380 MB."""
    shared = {"@id": "#x", "name": ["v"] * 2_000}
    product = {"@type": "Product", "offers": [{"@id": "#x"}] * 2_000}
    script = json.dumps([shared, product])
    html = f"<script type=application/ld+json>{script}</script>"
    field = {"path": "offers.name", "list": True}
    keys = {"source": "jsonld:Product", "fields": {"a": field}}
    page = parse(html.encode(), URL, None)
    assert peak_bytes(lambda: extract(page, URL, (rule(**keys),))) < 10_000_000
    assert within(0.3, lambda: extract(page, URL, (rule(**keys),)))
    (item,) = extract(page, URL, (rule(**keys),))
    assert item.problems == ("a: more than 100 values",)


def test_circular_references_end_with_budget() -> None:
    objects = json_ld([json.dumps([{"@id": "#x", "n": [{"@id": "#x"}] * 1_000}])])

    def asked() -> None:
        with pytest.raises(TooMuchError, match="refer to each other"):
            list(objects.values("n.n.n.n.none", objects.roots[0][0]))

    assert within(BUDGET_S, asked)
    assert peak_bytes(asked) < 1_000_000


def test_json_ld_values_are_evaluated_lazily() -> None:
    objects = json_ld([json.dumps({"name": [str(n) for n in range(40_000)]})])
    left = objects.work.left
    assert next(objects.values("name", objects.roots[0]))[0] == "0"
    assert left - objects.work.left < 200


def test_json_ld_spends_budget_of_page() -> None:
    found = json_ld(['[{"@type": "A"}, {"@type": "B"}]'], WorkBudget(OBJECT_UNITS))
    with pytest.raises(TooMuchError):
        found.with_type("A")


def test_objects_of_type_are_searched_once() -> None:
    objects = json_ld([json.dumps([{"@type": ["a", "B"], "@id": n} for n in range(10_000)])])
    assert len(objects.with_type("B")) == 10_000
    left = objects.work.left
    assert len(objects.with_type("B")) == 10_000
    assert objects.work.left == left


def test_json_ld_scripts_share_size_limit() -> None:
    scripts = [("[" + "1.5," * 470_000 + "1]").ljust(2_000_000)] * 5
    objects = json_ld(scripts)
    said = "more than 4,000,000 characters of JSON-LD: script 3 and the rest are not read"
    assert (len(objects.roots), objects.problems) == (2, [said])


# --- microdata ----------------------------------------------------------------------------------


def stated(html: str) -> Any:
    """Read the microdata of a page without its texts."""
    page = parse(html.encode(), URL, None)
    return microdata(page.tree, lambda _: "")


def test_microdata_items_with_two_names_do_not_multiply() -> None:
    """Without a limit, forty nested items with two names each would give 2^40 paths."""
    objects = stated(
        "<div itemscope itemtype=x/A itemprop='a b'>" * 40 + "<p itemscope itemtype=P>"
    )
    assert within(0.2, lambda: objects.with_type("P"))
    assert stated("<p itemscope><b itemscope itemprop='a b' itemtype=P>").with_type("P") == [
        {"@type": ["P"]}
    ]


def test_microdata_items_may_be_deeply_nested() -> None:
    objects = stated("<div itemscope itemprop=x>" * 1_900 + "<b itemscope itemtype=P itemprop=y>")
    assert len(objects.with_type("P")) == 1


def test_microdata_scopes_are_found_in_linear_time() -> None:
    def made(count: int) -> Callable[[], object]:
        html = f"{'<div>' * 250}{'<p itemprop=x>y</p>' * count}{'</div>' * 250}"
        tree = parse(html.encode(), URL, None).tree
        return lambda: microdata(tree, lambda _: "")

    assert within(0.5, made(20_000))
    assert slope(made, [5_000, 10_000, 20_000]) < LINEAR


def test_microdata_names_are_limited_and_counted() -> None:
    names = " ".join(map(str, range(100_000)))
    html = f"<div itemscope itemtype=x/P><p itemprop='{names}'>y</p></div>"
    (item,) = found(html, source="microdata:P", fields={"a": {"path": "none"}})
    said = f"1 properties with more than {NAMES_MAX} names: the rest of them is not read"
    assert said in item.problems


# --- selectors ----------------------------------------------------------------------------------


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "each nested 240 deep": (
        "<div>" * 240 + "<p>x</p>" * 15_000 + "</div>" * 240,
        {"each": "div", "fields": {"a": "p.none", "b": "p", "c": "p:first-child"}},
    ),
    "text nested 240 deep": (
        "<div>" * 240 + "x" * 1_000_000,
        {"each": "div", "fields": {"a": {"take": "text", "cut": 1}}},
    ),
    "places among 30,000 siblings": ("<p>x</p>y" * 30_000, {"fields": {"a": "p:nth-child(3)"}}),
    "places from the end": ("<p>x</p>y" * 30_000, {"fields": {"a": "p:nth-last-of-type(2)"}}),
    "places among comments": (
        "<div>" + ("<!---->" * 8 + "<b></b>") * 25_000,
        {"fields": {"a": "b:nth-child(3)"}},
    ),
    "kinds that are all different": (
        "".join(f"<a{n}>x</a{n}>" for n in range(30_000)),
        {"fields": {"a": {"css": ":first-of-type", "cut": 1}}},
    ),
    "siblings in brackets": ("<p>x</p>y" * 30_000, {"fields": {"a": "p:has(~ .none)"}}),
    "many combinators": (
        "<p>x</p>" * 30_000,
        {"fields": {f"f{n}": "p ~ p, p + p, div p, p" for n in range(30)}},
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("html", "keys"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_page_ends_with_budget_and_reports_rest(html: str, keys: dict[str, Any]) -> None:
    page = parse(html.encode(), URL, None)
    spent: list[tuple[Item, ...]] = []
    assert within(BUDGET_S, lambda: spent.append(extract(page, URL, (rule(**keys),))))
    (said,) = spent[0][-1].problems
    assert said.startswith("too much ")
    assert said.endswith(" items are left out")


@pytest.mark.thorough
def test_rules_of_page_share_budget() -> None:
    html, keys = HOSTILE["each nested 240 deep"]
    page = parse(html.encode(), URL, None)
    rules = tuple(rule(**keys) for _ in range(20))
    items: list[Item] = []
    assert within(BUDGET_S, lambda: items.__setitem__(slice(None), extract(page, URL, rules)))
    assert sum(not item.valid and "too much" in item.problems[0] for item in items) == 20


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("html", "keys"),
    [
        (ROWS, {"each": "tr", "fields": {f"f{n}": f"td:nth-child({n + 1})" for n in range(10)}}),
        (ROWS, {"fields": {f"f{n}": f"tr:nth-child({n + 1}) > td" for n in range(50)}}),
        (
            "<div class=item><h3>t</h3><ul><li>a<li>b</ul><p>10 EUR</p></div>" * 1_000,
            {"each": ".item", "fields": {"a": "h3", "b": "ul > li", "c": "p:last-of-type"}},
        ),
        (
            "<ul>" + "<li>x<ul>" * 20 + "<li>y" * 500,
            {"each": "li", "fields": {"a": "li:not(.x ~ .y) > ul li"}},
        ),
    ],
)
def test_ordinary_page_stays_within_budget(html: str, keys: dict[str, Any]) -> None:
    items = found(html, **keys)
    assert not [said for item in items for said in item.problems if "too much" in said]


def test_spent_budget_stays_spent() -> None:
    work = WorkBudget(10)
    work.spend(10, "text")
    for _ in range(2):
        with pytest.raises(TooMuchError, match="too much text"):
            work.spend(1, "text")
    assert WorkBudget().left == UNITS_MAX


def test_extent_counts_steps_to_siblings_and_ancestors() -> None:
    root = LexborHTMLParser("<body><ul><li>a<li>b<li>c</ul>").root
    assert root is not None
    beside = 1 + 2**2 + 1 + 3**2 + 3 * 1  # html; head and body; ul; li; a text in each
    upwards = 1 + 2 * 2 + 3 + 3 * 4 + 3 * 5
    assert Extent(tags=1_001, chars=4, root=root).steps == beside + upwards


def test_extent_is_freed_with_page() -> None:
    """The extent holds the page's tree (5 MB), so it must not wait for the garbage collector."""
    root = LexborHTMLParser("<p>x").root
    assert root is not None
    extent = Extent(tags=1_001, chars=4, root=root)
    assert extent.part(1_001, 4).steps == extent.steps
    gone = weakref.ref(extent)
    gc.disable()
    try:
        del extent
        assert gone() is None
    finally:
        gc.enable()
