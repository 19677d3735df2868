"""The key `api` of definitions: problems, and the crawl that follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.control.definition import document_of, parse
from orbweaver.control.edits import apply_document
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.crawl_codec import from_fields, to_fields
from tests.unit.control.defining import SEED, problems

URL = f"{SEED}v1"
ITEMS = [{"name": "a", "match": "/v1", "source": "json", "each": "$[*]", "fields": {"a": "$.a"}}]


@pytest.mark.parametrize(
    ("api", "path", "said"),
    [
        ({}, "url", "there is none: give the URL of the API's first page"),
        ({"url": "v1"}, "url", "'v1' cannot be crawled: not an absolute URL"),
        ({"pagin": {}}, "pagin", "there is no such key: did you mean paging?"),
        ({"links": "url"}, "links", "'url' is not a JSONPath: give one from $"),
        ({"pages": 0}, "pages", "0 does not fit: give 1 to 1,000,000"),
        ({"json": {}, "form": {}}, "form", "a request has one body: leave json or form out"),
        ({"method": "GET", "json": {}}, "json", 'a GET has no body: give method = "POST"'),
        ({"form": {"a": []}}, "form", "a table does not fit: give a table of"),
        ({"method": "PUT"}, "method", "'PUT' does not fit: "),
        ({"json": {"a": "b" * 3_000}}, "json", "the body is longer than"),
        ({"paging": "link"}, "paging", "'link' does not fit: give a table"),
        ({"paging": {}}, "paging.by", 'there is none: give "cursor"'),
        ({"paging": {"by": "pages"}}, "paging.by", "'pages' does not fit: did"),
    ],
)
def test_invalid_api_is_named_with_key_and_fix(api: dict[str, Any], path: str, said: str) -> None:
    found = problems({"api": [{"url": URL, **api} if api else {}]})
    assert [*found] == [f"api[0].{path}"]
    assert found[f"api[0].{path}"].startswith(said)


@pytest.mark.parametrize(
    ("paging", "path", "said"),
    [
        ({"by": "link", "parm": 1}, ".parm", "there is no such key: did you mean parameter?"),
        (
            *({"by": "cursor", "path": "$.a"}, ".parameter"),
            "there is none: give the name of the parameter",
        ),
        (
            *({"by": "next", "path": "next"}, ".path"),
            "'next' is not a JSONPath: give one from $, like '$.next'",
        ),
        ({"by": "link", "total": "$.n"}, ".total", 'paging by "link" has none: leave it out'),
        (
            *({"by": "offset", "parameter": "o", "total": "$.n"}, ".step"),
            "there is none: give the number of elements of a page",
        ),
        (
            *({"by": "page", "parameter": "p"}, ""),
            "nothing shows which page is the last one: give total",
        ),
    ],
)
def test_invalid_paging_of_api_is_named_with_key_and_fix(
    paging: dict[str, Any], path: str, said: str
) -> None:
    found = problems({"api": [{"url": URL, "paging": paging}]})
    assert [*found] == [f"api[0].paging{path}"]
    assert found[f"api[0].paging{path}"].startswith(said)


def test_apis_of_same_url_are_problem() -> None:
    assert problems({"api": [{"url": URL}, {"url": URL}]}) == {
        "api[1].url": "another API has the same URL: give each its own"
    }


def test_first_page_of_api_is_seed_of_crawl() -> None:
    paging = {"by": "page", "parameter": "p"}
    document = {"api": [{"url": f"{URL}?utm_source=a&b=1#c", "paging": paging}], "items": ITEMS}
    plan = parse(document)
    crawl = crawl_of(plan, 0)
    assert crawl.seeds == (f"{URL}?b=1",)
    assert [api.url for api in crawl.apis] == [f"{URL}?b=1"]
    assert crawl.name == "example.com"
    assert parse(document_of(plan)) == plan
    assert from_fields(to_fields(crawl)) == crawl


def test_api_cannot_change_while_crawl_runs() -> None:
    document = {"seeds": [SEED], "api": [{"url": URL}], "items": ITEMS}
    crawl = crawl_of(parse(document), 0)
    assert apply_document(crawl, {**document, "items": []}).items == ()
    changed = {**document, "api": [{"url": URL, "pages": 5}]}
    with pytest.raises(ValueError, match="api: it cannot change while a crawl runs"):
        apply_document(crawl, changed)
