"""Item rules applied to pages: values found, values missing, and limits."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from orbweaver.extraction import json_ld
from orbweaver.extraction.extract import columns_of, extract, items_and_cuts
from orbweaver.model.columns import Column, Type
from orbweaver.model.item import Item
from orbweaver.parsing.page import parse as parse_page
from tests.unit.extraction.extracting import URL, rule


def items(html: str, custom: Any = None, **keys: Any) -> tuple[Item, ...]:
    page = parse_page(html.encode(), URL, "text/html; charset=utf-8")
    return extract(page, URL, (rule(**keys),), custom=custom)


def values(html: str, field: str | dict[str, Any], **keys: Any) -> list[Any]:
    found = items(html, fields={"a": field}, **keys)
    assert all(item.valid for item in found), [item.problems for item in found]
    return [item.fields["a"] for item in found]


def problems(html: str, field: str | dict[str, Any], **keys: Any) -> tuple[str, ...]:
    (item,) = items(html, fields={"a": field}, **keys)
    assert item.fields["a"] in (None, [])
    return item.problems


def script(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f'<script type="application/ld+json">{text}</script>'


# --- code ---------------------------------------------------------------------------------------

CODE = (
    "<h1>T</h1><section><pre class='highlight-sql x'>\n    city  |  &lt;t&gt;\r\n\t----+---\n"
    "<b>a</b>  <!-- no -->b\n\n</pre></section><section><pre>one<br>two <i>three</i><br/></pre>"
    "<pre>  \n</pre></section>"
)
PLAIN = "    city  |  <t>\n\t----+---\na  b\n\n"


@pytest.mark.parametrize(
    ("field", "keys", "found"),
    [
        ({"css": "pre", "take": "raw"}, {}, [PLAIN]),
        ({"css": "pre", "take": "raw", "list": True}, {}, [[PLAIN, "one\ntwo three\n"]]),
        ({"take": "raw"}, {"each": "pre:not(:nth-child(2))"}, [PLAIN, "one\ntwo three\n"]),
        (
            {"css": "pre", "take": "raw", "list": True},
            {"each": "section"},
            [[PLAIN], ["one\ntwo three\n"]],
        ),
        ({"css": "pre", "take": "raw", "regex": r"\n(\s+-+)"}, {}, ["\t----"]),
        ({"css": "h1", "take": "raw", "required": True}, {}, ["T"]),
    ],
)
def test_raw_code_keeps_white_space(
    field: dict[str, Any], keys: dict[str, Any], found: list[Any]
) -> None:
    assert values(CODE, field, **keys) == found


def test_raw_value_of_white_space_is_missing() -> None:
    html = "<pre> \n\t</pre>"
    assert problems(html, {"css": "pre", "take": "raw", "required": True})[0].startswith(
        "a: missing"
    )


# --- selectors ----------------------------------------------------------------------------------

LIST = (
    "<base href='https://other.example/x/'><h1> One  <b>two</b></h1><ul class=l><li data-id=7>"
    "<a href='../p?utm_source=x'>p &amp; <i>q</i></a><script>no()</script><li><a>r</a></ul>"
    "<div class=d>a<br>b<p>c</p></div><p class=z>"
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("h1", "One two"),
        ({"css": "h1", "take": "html"}, "One  <b>two</b>"),
        ({"css": "ul.l > li:first-child a"}, "p & q"),
        ({"css": "ul.l li", "attribute": "data-id", "type": "integer"}, 7),
        ({"css": "li a", "attribute": "href", "type": "url"}, "https://other.example/p"),
        ({"css": "li", "list": True}, ["p & q", "r"]),
        ({"css": ".d"}, "a b c"),
        ({"css": "script"}, "no()"),
        ({"css": "h1, .d", "list": True}, ["One two", "a b c"]),
        ({"css": "p.z, h1"}, "One two"),  # the first selector with a text
        ({"css": "li", "regex": "r"}, "r"),  # and with a match of the pattern
        ({"css": "li", "regex": "(.) &"}, "p"),
        ({"css": "h1 ~ div p"}, "c"),
        ({"css": "h1", "values": {"One two": 12}, "type": "integer"}, 12),
        ({"css": "h2", "default": 3, "type": "integer"}, 3),
        ({"css": "h2", "default": ["x"], "list": True}, ["x"]),
        ({"css": "p.z", "take": "exists", "type": "boolean"}, True),
    ],
)
def test_selector_takes_text_attribute_html_or_existence(
    field: str | dict[str, Any], value: Any
) -> None:
    (item,) = items(LIST, fields={"a": field, "z": "h1"})
    assert (item.fields["a"], item.problems) == (value, ())


def test_missing_value_is_null_unless_required() -> None:
    found = items(LIST, fields={"a": "h1", "b": "h2", "c": {"css": "h2", "list": True}})
    assert [(item.fields, item.problems) for item in found] == [
        ({"a": "One two", "b": None, "c": []}, ())
    ]
    assert problems(LIST, {"css": "h2", "required": True}) == ("a: missing (css 'h2')",)
    regex = {"css": "h1", "required": True, "regex": "x+"}
    assert problems(LIST, regex) == ("a: missing (css 'h1', regex 'x+')",)
    said = "nothing of it was found: has the page's template changed?"
    assert problems(LIST, "h2") == (said,)
    (item,) = items(LIST, fields={"a": {"css": "h2", "take": "exists", "type": "boolean"}})
    assert (item.fields["a"], item.problems) == (False, (said,))


def test_price_has_value_and_currency_column() -> None:
    fields = {
        "p": {"css": "b", "type": "price"},
        "q": {"css": "b", "type": "price", "list": True},
    }
    (item,) = items("<b>£5.50</b><b>6 kr</b>", fields=fields)
    assert item.fields == {
        "p": "5.50",
        "p_currency": "GBP",
        "q": ["5.50", "6"],
        "q_currency": ["GBP", None],
    }
    assert columns_of(rule(fields=fields)) == (
        Column(name="p", type=Type.DECIMAL),
        Column(name="p_currency"),
        Column(name="q", type=Type.DECIMAL, many=True),
        Column(name="q_currency", many=True),
    )


def test_each_matching_node_is_an_item() -> None:
    html = "<ul><li id=1><a>x</a></li><li id=2></li><li id=3><a>y</a><b><a>z</a></b></li></ul>"
    fields = {"n": {"attribute": "id", "type": "integer"}, "a": "a", "deep": "li > b > a"}
    found = items(html, each="ul > li", fields=fields)
    assert [(item.place, *item.fields.values()) for item in found] == [
        (0, 1, "x", None),
        (1, 2, None, None),
        (2, 3, "y", "z"),
    ]
    assert values("<p>a</p><p>b</p>", {"take": "text"}, each="p") == ["a", "b"]


def test_too_few_items_give_invalid_item() -> None:
    (item,) = items("<p>", each="li")
    assert item.problems == ("0 of at least 1 found (css 'li')",)
    assert items("<p>", each="li", least=0) == ()
    *found, last = items("<h1>a</h1>", each="h1", least=3, fields={"a": {"take": "text"}})
    assert [item.valid for item in found] == [True]
    assert (last.place, last.problems) == (1, ("1 of at least 3 found (css 'h1')",))


# --- structured data ----------------------------------------------------------------------------

BOOK = {
    "@type": ["Book", "https://schema.org/Product"],
    "@id": "#b",
    "name": "One\nTwo",
    "author": [{"@type": "Person", "name": "A"}, {"@id": "#p"}],
    "offers": [
        {"price": None},
        {"price": "12,50", "priceCurrency": "EUR", "url": "/o"},
        {"price": 7},
    ],
    "image": {"@type": "ImageObject", "contentUrl": "i.png"},
    "isRelatedTo": [{"@type": "Book", "name": "Three"}],
    "datePublished": "2026-11-03",
    "flag": True,
}
GRAPH = {"@graph": [{"@id": "#p", "name": "B"}, {"@type": "WebPage", "mainEntity": BOOK}]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"path": "name"}, "One Two"),
        ({"path": "author.name", "list": True}, ["A", "B"]),
        ({"path": "author", "list": True}, ["A", "B"]),
        ({"path": "author.1.name"}, "B"),
        ({"path": "offers.price", "type": "price"}, "12.50"),
        ({"path": "offers.price", "list": True}, ["12,50", "7"]),
        ({"path": "offers.url", "type": "url"}, "https://shop.example/o"),
        ({"path": "image", "type": "url"}, "https://shop.example/books/1/i.png"),
        ({"path": "flag", "type": "boolean"}, True),
        ({"path": "datePublished", "type": "date"}, "2026-11-03"),
        ({"jsonld": "WebPage:mainEntity.name"}, "One Two"),
        ({"jsonld": "name"}, "One Two"),
        ({"css": "h1"}, "H"),
    ],
)
def test_json_ld_paths_follow_lists_references_and_objects(
    field: dict[str, Any], value: Any
) -> None:
    html = f"<h1>H</h1>{script(GRAPH)}"
    assert values(html, field, source="jsonld:Book") == [value]


def test_json_ld_field_without_rule_source() -> None:
    fields = {"a": {"jsonld": "Book:offers.price", "type": "price"}, "b": {"jsonld": "name"}}
    (item,) = items(f"{script({'name': 'first'})}{script([BOOK])}", fields=fields)
    assert item.fields == {"a": "12.50", "a_currency": "EUR", "b": "first"}


@pytest.mark.parametrize(
    "text",
    [
        '\n//<![CDATA[\n{"@type": "Book", "name": "n",}\n//]]>\n',
        '<!-- {"@type": "Book", "name": "n"} -->',
        '/*<![CDATA[*/ [{"@type": "Book", "name": "n"},] /*]]>*/',
        '{"@type": "Book", "name": "n"};',
        '{"@type": "Book", "name":\t"n", "text": "line\nbreak // no comment, ]"}',
        "{&quot;@type&quot;: &quot;Book&quot;, &quot;name&quot;: &quot;n&quot;}",
        '\ufeff{"@type": "Book", "name": "n", "count": NaN}',
    ],
)
def test_malformed_json_ld_is_repaired(text: str) -> None:
    assert values(script(text), {"path": "name"}, source="jsonld:Book") == ["n"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"@type": "Book"', "is malformed: Expecting ',' delimiter (character 16)"),
        ("[" * 100_000, "is nested too deeply"),
        ("[" * 70 + "]" * 70, "is malformed: nested more than 64 deep"),
        (f"[{'{},' * 50_001}0]", "is malformed: more than 50,000 objects and lists"),
        (f'"{"x" * 2_000_001}"', "is malformed: more than 2,000,000 characters"),
        ("9" * 5_000, "is malformed: Exceeds the limit"),
    ],
)
def test_unreadable_json_ld_is_reported_beside_missing_item(text: str, said: str) -> None:
    (item,) = items(script(text), source="jsonld:Book", fields={"a": "name"})
    missing, reason = item.problems
    assert missing == "0 of at least 1 found (jsonld:Book)"
    assert reason.startswith(f"JSON-LD script 1 {said}")
    found = items(script(text) + script(BOOK), source="jsonld:Book", fields={"a": "name"})
    assert [item.valid for item in found] == [True]


MICRODATA = """
<div itemscope itemtype="https://schema.org/Product"><h2 itemprop="name">N <i>m</i></h2>
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><b itemprop="price"
content="12.50">12,50</b><meta itemprop="priceCurrency" content="EUR"><link itemprop="availability"
href="https://schema.org/InStock"></div><img itemprop="image" src="/i.png"><time itemprop="day"
datetime="2026-11-03">today</time><data itemprop="sku" value="7">seven</data></div>
<div itemscope itemtype="https://schema.org/Product"><b itemprop="name">O</b></div>
"""


def test_microdata_values_follow_html_standard() -> None:
    fields = {
        "name": "name",
        "price": {"path": "offers.price", "type": "price"},
        "stock": {"path": "offers.availability", "regex": "[^/]+$"},
        "image": {"type": "url"},
        "day": {"type": "date"},
        "sku": {"type": "integer"},
    }
    first, second = items(MICRODATA, source="microdata:Product", fields=fields)
    assert first.fields == {
        "name": "N m",
        "price": "12.50",
        "price_currency": "EUR",
        "stock": "InStock",
        "image": "https://shop.example/i.png",
        "day": "2026-11-03",
        "sku": 7,
    }
    assert second.fields["name"] == "O"


def test_opengraph_and_meta_names_ignore_case() -> None:
    html = (
        "<meta property=og:title content=''><meta property=OG:Title content=T><meta name=Keywords"
        " content='a, b'><meta property=product:price:amount content='9.90'>"
        "<meta property=product:price:currency content=chf>"
    )
    og = {"title": {"required": True}, "price": {"path": "product:price:amount", "type": "price"}}
    (item,) = items(html, source="og", fields=og)
    assert item.fields == {"title": "T", "price": "9.90", "price_currency": "CHF"}
    assert values(html, {"meta": "keywords"}) == ["a, b"]
    assert values(html, {"path": "keywords"}, source="meta") == ["a, b"]
    assert values(html, {"og": "title"}) == ["T"]
    listed = "<meta property='twitter:title og:title' content=M>"
    assert values(listed, {"og": "title"}) == values(listed, {"og": "twitter:title"}) == ["M"]


# --- limits -------------------------------------------------------------------------------------


def test_omitted_items_and_data_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def cuts(html: str, **keys: Any) -> dict[str, int]:
        page = parse_page(html.encode(), URL, "text/html; charset=utf-8")
        return dict(items_and_cuts((rule(**keys),), page, URL)[1])

    each = {"each": "p", "fields": {"a": {"take": "text"}}}
    assert cuts("<p>x" * 1_003, **each) == {"items": 3}
    nested = "<div>" * 200 + "x" * 400_000
    assert cuts(nested, fields={"a": {"css": "div", "list": True, "regex": "y"}}) == {"items": 1}
    monkeypatch.setattr(json_ld, "NODES_MAX", 2)
    html = "<div itemscope itemtype=https://schema.org/Book>" + "<p itemprop=name>x" * 4
    books = {"source": "microdata:Book", "fields": {"price": {"required": True}}}
    assert cuts(html, **books) == {"data": 3}
    (item,) = items(html, **books)
    assert "more than 2 elements of microdata: the rest is not read" in item.problems


def test_limits_of_extraction_are_reported() -> None:
    *found, last = items("<p>x" * 1_001, each="p", fields={"a": {"take": "text"}})
    assert (len(found), all(item.valid for item in found)) == (1_000, True)
    assert last.problems == ("more than 1,000 items are on this page: the rest is left out",)
    many = {"css": "p", "list": True}
    assert problems("<p>x" * 101, many) == ("a: more than 100 values",)
    assert problems(f"<p>{'x' * 20_001}", "p")[0].startswith("a: longer than 20,000 characters: ")
    *found, last = items(f"<p>{'x' * 9_000}" * 30, each="p", fields={"a": {"take": "text"}})
    assert 20 <= len(found) < 30
    said = "more than 200,000 bytes of items are on this page: the rest is left out"
    assert last.problems == (said,)
    html = "<div>" * 200 + "x" * 400_000
    (last,) = items(html, fields={"a": {"css": "div", "list": True, "regex": "y"}})
    said = "too much text in elements that lie in each other: 1 of 1 items are left out"
    assert last.problems == (said,)


def test_page_without_matching_rule_has_no_items() -> None:
    page = parse_page(b"", URL, "text/html")
    assert extract(page, "https://shop.example/", (rule(),)) == ()
    assert extract(page, URL, ()) == ()


# --- custom extractors --------------------------------------------------------------------------


def test_custom_extractor_values_are_converted_by_type() -> None:
    def books(page: Any, url: str) -> Any:
        assert url == URL
        for node in page.tree.css("li"):
            yield {"t": node.text(), "p": Decimal("1.50"), "d": date(2026, 11, 3), "more": object()}
        yield {"t": None, "p": 2, "d": datetime(2026, 11, 3, tzinfo=UTC), "l": ("a", 1)}

    fields = {
        "t": {},
        "p": {"type": "price", "currency": "GBP"},
        "d": {"type": "date"},
        "l": {"list": True},
    }
    found = items("<li>x", {"books": books}, extractor="books", fields=fields)
    assert [(item.fields, item.problems) for item in found] == [
        ({"t": "x", "p": "1.50", "p_currency": "GBP", "d": "2026-11-03", "l": []}, ()),
        ({"t": None, "p": "2", "p_currency": "GBP", "d": "2026-11-03", "l": ["a", "1"]}, ()),
    ]


class Odd:
    """An object whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError


def fail(_page: Any, _url: str) -> Any:
    message = "no\nbooks"
    raise LookupError(message)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (fail, "extractor f: LookupError: no books"),
        (lambda *_: 5, "extractor f: TypeError: 'int' object is not iterable"),
        (lambda *_: ["x"], "extractor f: it gave a str instead of a dict"),
        (lambda *_: None, "0 of at least 1 found (extractor f)"),
        (lambda *_: {"a": Odd()}, "a: the extractor gave a Odd: 'RuntimeError'"),
        (None, "extractor f: there is no such function (there are g)"),
    ],
)
def test_error_of_custom_extractor_gives_invalid_item(function: Any, said: str) -> None:
    custom = {"g": fail} if function is None else {"f": function}
    (item,) = items("", custom, extractor="f", fields={"a": {}})
    assert item.problems == (said,)
