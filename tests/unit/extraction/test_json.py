"""Items of JSON responses: decoding, paths, values and limits."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.extraction.document import JsonBody
from orbweaver.extraction.extract import items_and_cuts
from orbweaver.extraction.json_document import UnfitJson, decoded
from orbweaver.extraction.json_path import (
    JsonPathError,
    is_linear,
    is_singular,
    problem_of,
    values_at,
)
from orbweaver.extraction.work_budget import UNITS_MAX, HeavyError
from orbweaver.parsing.page import without_content
from orbweaver.parsing.sniffing import is_json
from tests.unit.extraction.extracting import rule

URL = "https://api.example/v1/books?page=2"
BOOKS = {
    "results": [
        {
            "title": " A  b ",
            "price": 19.5,
            "url": "/books/1#x",
            "tags": ["x", None, "y"],
            "more": {"stock": 0},
        },
        {"title": None, "price": "1.299", "url": "mailto:a@b.example", "tags": []},
    ]
}


def items(
    data: Any, units_max: int = UNITS_MAX, **keys: Any
) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    one = rule(**{"match": "/books", "source": "json", "each": "$.results[*]"} | keys)
    found, _ = items_and_cuts(
        (one,), without_content(), URL, units_max=units_max, body=JsonBody(data)
    )
    return [(dict(item.fields), item.problems) for item in found]


def test_fields_are_read_relative_to_item() -> None:
    fields = {
        "title": "$.title",
        "price": {"json": "$.price", "type": "price", "currency": "EUR"},
        "link": {"json": "$.url", "type": "url"},
        "tags": {"list": True},
        "stock": {"json": "$.more.stock", "type": "integer"},
    }
    first, second = items(BOOKS, fields=fields)
    assert first == (
        {
            "title": "A b",
            "price": "19.5",
            "price_currency": "EUR",
            "link": "https://api.example/books/1",
            "tags": ["x", "y"],
            "stock": 0,
        },
        (),
    )
    assert second[0]["title"] is None
    assert second[0]["price"] == "1.299"
    assert [problem.partition(":")[0] for problem in second[1]] == ["link"]


@pytest.mark.parametrize(
    ("data", "keys", "values", "problem"),
    [
        ([1, 2], {"each": "$[*]", "fields": {"a": "$"}}, [1, 2], ""),
        ({"a": 1}, {"each": None, "fields": {"a": {}}}, [1], ""),
        ({"a": 1}, {"each": "$.b[*]", "fields": {"a": {}}}, [None], "0 of at least 1 found (json"),
        ({"a": {"b": 1}}, {"each": "$", "fields": {"a": {}}}, [None], "a: $.a finds an object"),
        ({"a": [[1]]}, {"each": "$", "fields": {"a": {}}}, [None], "a: $.a finds a list in a list"),
        ({"a": {"b": [1, "ü"]}}, {"each": "$", "fields": {"a": {"take": "raw"}}}, ['{"b":[1,"ü"]}'],
         ""),
        ({"a": [1] * 1_001}, {"each": "$.a[*]", "fields": {"a": "$"}}, [1] * 1_000 + [None],
         "more"),
    ],
)  # fmt: skip
def test_item_of_value(data: Any, keys: dict[str, Any], values: list[Any], problem: str) -> None:
    keys = {key: value for key, value in keys.items() if value is not None}
    kind = {} if keys["fields"]["a"] == {"take": "raw"} else {"type": "integer"}
    given_field = keys["fields"]["a"]
    field = {"json": given_field} if isinstance(given_field, str) else given_field
    one = rule(**{"match": "/books", "source": "json"} | keys | {"fields": {"a": field | kind}})
    found, _ = items_and_cuts((one,), without_content(), URL, body=JsonBody(data))
    assert [item.fields["a"] for item in found] == values
    assert " ".join(found[-1].problems).startswith(problem)


def test_reduced_budget_raises_and_full_budget_leaves_items_out() -> None:
    data = {"results": [{"a": 1}] * 900}
    with pytest.raises(HeavyError):
        items(data, 10_000, fields={"a": {}})


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "not JSON: Expecting value (character 0)"),
        (b"<html>", "not JSON: Expecting value (character 0)"),
        (b'{"a": 1', "not JSON: Expecting ',' delimiter (character 7)"),
        (b'{"a": "\xff"}', "not JSON: byte 7 is not utf-8"),
        (b"[" * 100_000, "JSON nested more than 64 deep"),
        (b"[" * 65 + b"]" * 65, "JSON that exceeds a limit: nested more than 64 deep"),
        (b"[" + b"[]," * 200_000 + b"[]]", "JSON that exceeds a limit: more than 200,000"),
        (b"9" * 5_000, "JSON that exceeds a limit: Exceeds the limit"),
    ],
)
def test_unfit_body_has_reason(body: bytes, problem: str) -> None:
    with pytest.raises(UnfitJson) as caught:
        decoded(body)
    assert str(caught.value).startswith(problem)


def test_truncated_body_is_unfit() -> None:
    with pytest.raises(UnfitJson, match="cut at 2 bytes"):
        decoded(b"{}", truncated=True)


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_body_in_unicode_is_decoded(charset: str) -> None:
    assert decoded('{"a": "ü"}'.encode(charset)) == {"a": "ü"}


@pytest.mark.parametrize(
    ("kind", "body", "json"),
    [
        ("application/json; charset=utf-8", b"", True),
        ("application/vnd.api+json", b"x", True),
        ("text/plain", b' \n{"a": 1}', True),
        (None, b"[1]", True),
        ("text/javascript", b"f({})", False),
        ("text/html", b"{}", False),
        ("text/csv", b"[1]", False),
    ],
)
def test_json_is_detected(kind: str | None, body: bytes, *, json: bool) -> None:
    headers = {} if kind is None else {"content-type": kind}
    assert is_json(headers, body) is json


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.results[*].title", [" A  b ", None]),
        ("$..stock", [0]),
        ("$.results[?@.price == 19.5].url", ["/books/1#x"]),
        ("$.results[?match(@.url, '/books/[0-9]#x')].price", [19.5]),
        ("$.results[?search(@.url, 'mailto')].price", ["1.299"]),
        ("$.results[?match(@.url, '(a+)+$')].price", []),
        ("$.results[?match(@.url, '(')].price", []),
        ("$.nothing", []),
    ],
)
def test_path_finds_values(path: str, found: list[Any]) -> None:
    assert problem_of(path) is None
    assert values_at(path, BOOKS) == found


def test_filter_with_expensive_regex_ends() -> None:
    data = [{"a": "a" * 5_000 + "!"}]
    assert values_at("$[?match(@.a, '(a+)+b')]", data) == []


@pytest.mark.parametrize("path", ["$" + "[?@" * 60 + "]" * 60, "$.a | $.b", "$.é[", "$" * 300])
def test_invalid_path_has_problem(path: str) -> None:
    assert problem_of(path) is not None


@pytest.mark.parametrize(
    ("path", "singular", "linear"),
    [
        ("$", True, True),
        ("$.a['b c'][-1].d_1", True, True),
        ("$.a[*].b", False, True),
        ("$..a", False, False),
        ("$[?@.a]", False, False),
        ("$[0,0]", False, False),
    ],
)
def test_shape_of_path(path: str, *, singular: bool, linear: bool) -> None:
    assert (is_singular(path), is_linear(path)) == (singular, linear)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_extraction_never_raises(data: Any) -> None:
    body = decoded(json.dumps(data).encode())
    fields = {"a": {"json": "$"}, "b": {"json": "$..*", "list": True, "type": "number"}}
    for fields_found, _ in items(body, each="$..*", least=0, fields=fields):
        assert fields_found.keys() == {"a", "b"}


@given(st.text(max_size=30))
def test_path_is_refused_or_evaluated(path: str) -> None:
    if problem_of("$" + path) is None:
        with suppress(JsonPathError):
            values_at("$" + path, BOOKS)


@given(st.binary(max_size=200))
def test_body_is_decoded_or_unfit(body: bytes) -> None:
    with suppress(UnfitJson):
        decoded(body)
