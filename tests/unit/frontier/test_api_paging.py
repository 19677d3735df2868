"""The page that follows a page of an API, for each kind of paging."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.api_paging import PagingStep, parameter_of, step_of, with_parameter
from orbweaver.model.api_source import ApiSource, Paging, PagingBy, PagingFacts
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target
from orbweaver.model.url import canonicalize
from tests.unit.stage import CRAWL, SITE

URL = f"{SITE}/v1/books?limit=10"
POST = f"{URL}#POST-json:{{%22q%22:%22a%22}}"
CURSOR = Paging(by=PagingBy.CURSOR, path="$.next", parameter="cursor")
PAGE = Paging(by=PagingBy.PAGE, parameter="page")
OFFSET = Paging(by=PagingBy.OFFSET, parameter="offset", step=10)
NEXT = Paging(by=PagingBy.NEXT, path="$.next")
LINK = Paging(by=PagingBy.LINK)


def step(paging: Paging | None, url: str = URL, link: str = "", **facts: Any) -> PagingStep:
    api = ApiSource(url=URL, paging=paging)
    target = Target(url=url, depth=0, api=URL, page=1)
    crawl = replace(CRAWL, seeds=(URL,), apis=(api,))
    return step_of(crawl, api, target, PagingFacts(**facts), {"link": link})


def following(found: PagingStep) -> str | None:
    assert found.problem is None
    assert not found.found.refused
    return next((target.url for target in found.found.admitted), None)


@pytest.mark.parametrize(
    ("paging", "url", "facts", "expected"),
    [
        (CURSOR, URL, {"value": "a/b&c=ü"}, f"{URL}&cursor=a/b%26c%3D%C3%BC"),
        (CURSOR, f"{URL}&cursor=a&x=1", {"value": 7}, f"{URL}&cursor=7&x=1"),
        (CURSOR, f"{SITE}/v1", {"value": "a"}, f"{SITE}/v1?cursor=a"),
        (CURSOR, URL, {"value": None}, None),
        (CURSOR, URL, {"value": ""}, None),
        (CURSOR, URL, {"value": False}, None),
        (CURSOR, URL, {"value": 0}, f"{URL}&cursor=0"),
        (CURSOR, URL, {"value": "a", "empty": True}, f"{URL}&cursor=a"),
        (replace(CURSOR, more="$.more"), URL, {"value": "a", "more": True}, f"{URL}&cursor=a"),
        (replace(CURSOR, more="$.more"), URL, {"value": "a", "more": False}, None),
        (replace(CURSOR, more="$.more"), URL, {"value": "a"}, None),
        (PAGE, URL, {}, f"{URL}&page=2"),
        (PAGE, f"{URL}&page=9", {}, f"{URL}&page=10"),
        (PAGE, URL, {"empty": True}, None),
        (replace(PAGE, start=0), URL, {}, f"{URL}&page=1"),
        (replace(PAGE, total="$.pages"), f"{URL}&page=2", {"total": 3}, f"{URL}&page=3"),
        (replace(PAGE, total="$.pages"), f"{URL}&page=3", {"total": "3"}, None),
        (replace(PAGE, total="$.pages", start=0), f"{URL}&page=2", {"total": 3}, None),
        (replace(PAGE, total="$.pages"), URL, {"total": 1, "empty": True}, None),
        (replace(PAGE, parameter="page[number]"), URL, {}, f"{URL}&page[number]=2"),
        (OFFSET, URL, {}, f"{URL}&offset=10"),
        (replace(OFFSET, total="$.total"), f"{URL}&offset=10", {"total": 21}, f"{URL}&offset=20"),
        (replace(OFFSET, total="$.total"), f"{URL}&offset=10", {"total": 20}, None),
        (NEXT, URL, {"value": "/v1/more?a=1"}, f"{SITE}/v1/more?a=1"),
        (NEXT, URL, {"value": None}, None),
        (NEXT, URL, {"value": ""}, None),
        (None, URL, {"value": "a"}, None),
        (CURSOR, POST, {"value": 7}, f"{URL}#POST-json:{{%22q%22:%22a%22,%22cursor%22:7}}"),
        (
            replace(CURSOR, parameter="page.after"),
            POST,
            {"value": "b"},
            f"{URL}#POST-json:{{%22q%22:%22a%22,%22page%22:{{%22after%22:%22b%22}}}}",
        ),
        (
            replace(PAGE, parameter="n"),
            f"{URL}#POST-json:{{%22n%22:4}}",
            {},
            f"{URL}#POST-json:{{%22n%22:5}}",
        ),
        (PAGE, f"{URL}#POST-form:page%3D4%26a%3Db", {}, f"{URL}#POST-form:page%3D5%26a%3Db"),
        (NEXT, POST, {"value": "/v1/more?a=1"}, f"{SITE}/v1/more?a=1"),
    ],
)
def test_next_page_of_body(
    paging: Paging | None, url: str, facts: dict[str, Any], expected: str | None
) -> None:
    assert following(step(paging, url, **facts)) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<?from=2>; rel="next"', f"{SITE}/v1/books?from=2"),
        ('</a>; rel="prev", </b>; rel="last next"', f"{SITE}/b"),
        ("</b>; rel=prev", None),
        ("", None),
    ],
)
def test_next_page_of_link_header(link: str, expected: str | None) -> None:
    assert following(step(LINK, link=link)) == expected


@pytest.mark.parametrize(
    ("paging", "facts", "problem"),
    [
        (CURSOR, {"value": True}, "$.next finds no cursor: True"),
        (CURSOR, {"value": 1.5}, "$.next finds no cursor: 1.5"),
        (CURSOR, {"value": "x" * 1_001}, "$.next finds a cursor of 1,001 characters"),
        (CURSOR, {"problem": "$.next finds an object"}, "$.next finds an object"),
        (NEXT, {"value": 5}, "$.next finds no URL: 5"),
        (NEXT, {"value": "mailto:a@b.example"}, "the next page has no URL: not an http"),
        (replace(CURSOR, parameter="q.a"), {"value": 1}, "the next page has no URL: the body has"),
        (replace(PAGE, total="$.n"), {"total": None}, "$.n finds no number: None"),
        (replace(PAGE, total="$.n"), {"total": True}, "$.n finds no number: True"),
        (replace(LINK, more="$.m"), {"more": "yes"}, "$.m finds no boolean: 'yes'"),
        (replace(CURSOR, more="$.m"), {"more": True}, "$.m is true, but $.next finds nothing"),
        (
            replace(NEXT, more="$.m"),
            {"more": True, "value": ""},
            "$.m is true, but $.next finds ''",
        ),
        (replace(LINK, more="$.m"), {"more": True}, "$.m is true, but the header Link has no rel"),
        (replace(PAGE, more="$.m"), {"more": True, "empty": True}, "$.m is true, but the page has"),
        (replace(PAGE, total="$.n"), {"total": 4, "empty": True}, "$.n finds 4, but the page has"),
        (replace(OFFSET, total="$.n"), {"total": 35, "empty": True}, "$.n finds 35, but the page"),
    ],
)
def test_unfit_value_is_problem(paging: Paging, facts: dict[str, Any], problem: str) -> None:
    found = step(paging, POST if paging.parameter == "q.a" else URL, **facts)
    assert (found.problem or "").startswith(problem)
    assert not found.found.admitted


@pytest.mark.parametrize(
    ("url", "page", "value", "refusal"),
    [
        (f"{URL}&cursor=a", 2, "a", Refusal.API_REPEATED),
        (URL, 3, "b", Refusal.API_PAGES),
        (URL, 1, "seen", Refusal.API_REPEATED),
        (URL, 1, "private", Refusal.EXCLUDE),
    ],
)
def test_page_is_refused_with_count(url: str, page: int, value: str, refusal: Refusal) -> None:
    api = ApiSource(url=URL, paging=CURSOR, pages_max=3)
    crawl = replace(CRAWL, seeds=(URL,), apis=(api,), exclude=("private",))
    target = Target(url=url, depth=0, api=URL, page=page)
    seen = frozenset({f"{URL}&cursor=seen"}).intersection
    found = step_of(crawl, api, target, PagingFacts(value=value), {}, seen).found
    assert [(why, count) for why, count, _ in found.refused] == [(refusal, 1)]
    assert [one.page for one in found.left] == [4] * (refusal is Refusal.API_PAGES)
    assert not found.admitted


def test_next_page_of_another_origin_is_refused() -> None:
    found = step(NEXT, value="https://elsewhere.example/v1").found
    assert [why for why, _, _ in found.refused] == [Refusal.SCOPE]


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
def test_parameter_is_set_once_and_read_again(name: str, value: str) -> None:
    once = with_parameter(URL, name, value)
    assert with_parameter(once, name, value) == once
    assert canonicalize(once, tracking=frozenset()) == once
    key = with_parameter("", name, "").removeprefix("?").partition("=")[0]
    assert once.count(f"{key}=") >= 1
    assert parameter_of(once, name) is not None
