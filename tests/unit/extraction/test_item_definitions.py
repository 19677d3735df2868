"""Invalid item rules in definitions: every problem is named with its fix."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.control.definition import DefinitionError, parse
from tests.unit.extraction.extracting import URL, rule

JSON: dict[str, Any] = {"source": "json", "fields": {"a": "$.a"}}


def problems_of(**keys: Any) -> dict[str, str]:
    """Return the problems of a rule by path."""
    with pytest.raises(DefinitionError) as caught:
        rule(**keys)
    return {problem.path: problem.text for problem in caught.value.problems}


def problems_of_items(items: Any) -> dict[str, str]:
    with pytest.raises(DefinitionError) as caught:
        parse({"seeds": [URL], "items": items})
    return {problem.path: problem.text for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("keys", "path", "said"),
    [
        ({"name": "Books!"}, "items[0].name", "'Books!' does not fit, a table is called so: give"),
        ({"match": "("}, "items[0].match", "'(' is not a regular expression: missing ): (: give"),
        ({"match": ""}, "items[0].match", "'' is found in every URL: give what some have"),
        ({"each": "li >"}, "items[0].each", "'li >' is not a CSS selector: give one"),
        ({"each": ":is(a b c)"}, "items[0].each", "':is(a b c)' has a selector of several parts"),
        ({"each": " ".join("abcdefghijklmnopqrstuvwxyz")}, "items[0].each", "'a b c d"),
        ({"source": "xml"}, "items[0].source", '\'xml\' does not fit: give "json", "jsonld:'),
        (JSON | {"source": "json:a"}, "items[0].source", '"json" has no types: give'),
        ({"source": "jsonld"}, "items[0].source", 'of which type? Give one, like "jsonld:Product"'),
        ({"source": "og", "each": "p"}, "items[0].each", "source and extractor say what the items"),
        ({"source": "og", "extractor": "f"}, "items[0].source", "extractor says what the items"),
        ({"extractor": "a-b"}, "items[0].extractor", "'a-b' is no name of a function"),
        ({"least": 2}, "items[0].least", "the rule finds one item a page: give each"),
        ({"least": -1}, "items[0].least", "-1 does not fit: give 0 to 1,000"),
        ({"fields": {}}, "items[0].fields", "there are none: give some, like title"),
        ({"fields": {"A b": "h1"}}, "items[0].fields", "'A b' does not fit, a column is called so"),
        ({"fields": {"url": "h1"}}, "items[0].fields.url", "every table has a column of this name"),
        ({"fields": 5}, "items[0].fields", "5 does not fit: write [items.fields] above them"),
        ({"fields": {"a": 5}}, "items[0].fields.a", "5 does not fit: give a table like"),
        ({"feilds": {}}, "items[0].feilds", "there is no such key: did you mean fields?"),
        ({"extra": 1}, "items[0].extra", "there is no such key: did you mean extractor?"),
        (JSON | {"each": "li"}, "items[0].each", ("'li' is not a JSONPath: give one from $, like"
         " '$.li'")),
        (JSON | {"each": "$.a["}, "items[0].each", ("'$.a[' is not a JSONPath: unexpected end of"
         " query")),
        (JSON | {"each": "$.a | $.b"}, "items[0].each", "'$.a | $.b' is not a JSONPath"),
        (JSON | {"fields": {"a": "title"}}, "items[0].fields.a.json", "'title' is not a JSONPath"),
        (JSON | {"fields": {"a": {"css": "h1"}}}, "items[0].fields.a",
         'a rule with source = "json"'),
        (JSON | {"fields": {"a": {"json": "$", "take": "html"}}}, "items[0].fields.a",
         "attribute and take are about nodes"),
        ({"source": "og", "fields": {"a": {"json": "$"}}}, "items[0].fields.a", "a rule with"),
    ],
)  # fmt: skip
def test_invalid_rule_is_named_with_key_and_fix(keys: dict[str, Any], path: str, said: str) -> None:
    found = problems_of(**keys)
    assert [*found] == [path]
    assert found[path].startswith(said)


@pytest.mark.parametrize(
    ("field", "at", "said"),
    [
        ({}, "", "where is it? Give css, jsonld, microdata, og or meta, like css ="),
        ({"css": "a:text"}, ".css", "'a:text' is not a CSS selector: give one like"),
        ({"css": "p::text"}, ".css", "'p::text' has a pseudo-element, which is not needed: text"),
        ({"css": "a", "og": "b"}, "", "css and og each say where it is: give one of them"),
        ({"path": "a"}, ".path", "the rule has no source that it leads through: give css"),
        ({"og": ""}, ".og", "'' does not fit: give 1 to 200 printable characters"),
        ({"og": "a", "attribute": "b"}, "", "attribute and take are about nodes: give css"),
        ({"css": "a", "attribute": "b", "take": "html"}, "", "attribute and take say the same"),
        ({"css": "a", "take": "exists"}, ".take", "whether something exists is true or false"),
        ({"css": "a", "take": "txt"}, ".take", "'txt' does not fit: did you mean text? It takes"),
        ({"css": "a", "type": "int"}, ".type", "'int' does not fit: did you mean integer?"),
        ({"css": "a", "regex": "(?=x)"}, ".regex", "'(?=x)' is not a regular expression: inv"),
        ({"css": "a", "regex": "(a)(b)"}, ".regex", "'(a)(b)' has several groups: give one"),
        ({"css": "a", "regex": ""}, ".regex", "'' has 0 characters: give 1 to 500"),
        ({"css": "a", "format": "%d"}, ".format", "it is about dates, and this is of type string"),
        ({"css": "a", "type": "date", "format": "%d"}, ".format", "'%d' does not say day, month"),
        ({"css": "a", "type": "date", "format": "%Q"}, ".format", "'%Q' holds %Q, which is no"),
        ({"css": "a", "type": "price", "currency": "Euro"}, ".currency", "'Euro' is no ISO 4217"),
        ({"css": "a", "type": "price", "decimal": "·"}, ".decimal", "'·' does not fit: give"),
        ({"css": "a", "cut": 0}, ".cut", "0 does not fit: give 1 to 20,000"),
        ({"css": "a", "required": True, "default": "x"}, ".default", "what is required has none"),
        ({"css": "a", "list": True, "default": "x"}, ".default", "give a list for a list"),
        ({"css": "a", "type": "integer", "default": "x"}, ".default", "not an integer: 'x' (no"),
        ({"css": "a", "default": None}, ".default", "null does not fit: give a text, a number"),
        ({"css": "a", "values": ["x"]}, ".values", "a list does not fit: give a table of texts"),
        ({"css": "a", "values": {str(n): n for n in range(101)}}, ".values", "101 are too many"),
        ({"xpath": "//a"}, ".xpath", "XPath is not supported: give css"),
        ({"css": "a", "requierd": True}, ".requierd", "there is no such key: did you mean requi"),
    ],
)
def test_invalid_field_is_named_with_key_and_fix(field: dict[str, Any], at: str, said: str) -> None:
    assert problems_of(fields={"a": field})[f"items[0].fields.a{at}"].startswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x"}, "a table does not fit: write [[items]] above each of them"),
        ([{"name": "x", "match": "."}] * 21, "a list does not fit: 21 rules are too many"),
        ([{"name": f"x{n}", "match": ".", "fields": {f"f{m}": "a" for m in range(50)}}
          for n in range(9)], "450 fields are too many: together at most 400"),
        ([{"name": "x", "match": ".", "fields": {f"f{m}": "a" * 500 for m in range(50)}},
          {"name": "y", "match": ".", "fields": {f"f{m}": "a" * 500 for m in range(50)}}],
         "50,200 characters in fields are too many: together at most 40,000"),
    ],
)  # fmt: skip
def test_rules_exceeding_limits_together_are_rejected(given: Any, said: str) -> None:
    assert problems_of_items(given)["items"].startswith(said)


def test_duplicate_table_and_column_names_are_rejected() -> None:
    one: dict[str, Any] = {
        "name": "x",
        "match": ".",
        "fields": {"p": {"css": "a", "type": "price"}},
    }
    two = {**one, "fields": {**one["fields"], "p_currency": "b"}}
    assert problems_of_items([one, two]) == {
        "items[1].name": "'x' is another one's name: give each its own",
        "items[1].fields.p_currency": "the price's currency is called so: give the field another"
        " name",
    }


@pytest.mark.parametrize(
    ("css", "fix"),
    [
        ("p.price::text", "text is taken by default; give css = 'p.price'"),
        ("a::attr(href)", "for an attribute give css = 'a' and attribute = \"href\""),
        (
            "ul > li a::attr( data-x )",
            "for an attribute give css = 'ul > li a' and attribute = \"data-x\"",
        ),
        ("::text", "text is taken by default; give no css, which is the item itself"),
        ("q::before", "text is taken by default; give css = 'q'"),
    ],
)
def test_pseudo_elements_are_rejected_with_replacement(css: str, fix: str) -> None:
    said = f"{css!a} has a pseudo-element, which is not needed: {fix}"
    found = problems_of(each="div", fields={"a": {"css": css}})
    assert found == {"items[0].fields.a.css": said}


def test_colons_in_attribute_values_are_allowed() -> None:
    assert rule(fields={"a": 'a[href="x::text"]'}).fields[0].where == 'a[href="x::text"]'
