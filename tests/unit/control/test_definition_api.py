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
        ({}, "api[0].url", "there is none: give the URL of the API's first page"),
        ({"url": "v1"}, "api[0].url", "'v1' cannot be crawled: not an absolute URL"),
        ({"url": URL, "pagin": {}}, "api[0].pagin", "there is no such key: did you mean paging?"),
        ({"url": URL, "links": "url"}, "api[0].links", "'url' is not a JSONPath: give one from $"),
        ({"url": URL, "pages": 0}, "api[0].pages", "0 does not fit: give 1 to 1,000,000"),
        ({"url": URL, "paging": "link"}, "api[0].paging", "'link' does not fit: give a table"),
        ({"url": URL, "paging": {}}, "api[0].paging.by", 'there is none: give "cursor"'),
        ({"url": URL, "paging": {"by": "pages"}}, "api[0].paging.by", "'pages' does not fit: did"),
        (
            {"url": URL, "paging": {"by": "link", "parm": 1}},
            "api[0].paging.parm",
            "there is no such key: did you mean parameter?",
        ),
        (
            {"url": URL, "paging": {"by": "cursor", "path": "$.a"}},
            "api[0].paging.parameter",
            "there is none: give the name of the parameter",
        ),
        (
            {"url": URL, "paging": {"by": "next", "path": "next"}},
            "api[0].paging.path",
            "'next' is not a JSONPath: give one from $, like '$.next'",
        ),
        (
            {"url": URL, "paging": {"by": "link", "total": "$.n"}},
            "api[0].paging.total",
            'paging by "link" has none: leave it out',
        ),
        (
            {"url": URL, "paging": {"by": "offset", "parameter": "o", "total": "$.n"}},
            "api[0].paging.step",
            "there is none: give the number of elements of a page",
        ),
        (
            {"url": URL, "json": {}, "form": {}},
            "api[0].form",
            "a request has one body: leave json or form out",
        ),
        (
            {"url": URL, "method": "GET", "json": {}},
            "api[0].json",
            'a GET has no body: give method = "POST"',
        ),
        ({"url": URL, "form": {"a": []}}, "api[0].form", "a table does not fit: give a table of"),
        ({"url": URL, "method": "PUT"}, "api[0].method", "'PUT' does not fit: "),
        ({"url": URL, "json": {"a": "b" * 3_000}}, "api[0].json", "the body is longer than"),
        (
            {"url": URL, "paging": {"by": "page", "parameter": "p"}},
            "api[0].paging",
            "nothing shows which page is the last one: give total",
        ),
    ],
)
def test_invalid_api_is_named_with_key_and_fix(api: dict[str, Any], path: str, said: str) -> None:
    found = problems({"api": [api]})
    assert [*found] == [path]
    assert found[path].startswith(said)


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
