"""Erasure of single values: matches are removed, mentions are cut, the rest is unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.erasure.scope import ErasureScope, definition_left, samples_left
from orbweaver.frontier.erase_rule import KEPT_D, NO_RULE, UrlMatcher, erase_rule, with_erased
from orbweaver.model.crawl import Crawl
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

URL = "https://example.com/jane?a=1"
OTHER = "https://example.com/"
THERE = "https://other.example/x"
WHOLE = ErasureScope(urls=frozenset({URL}))
HOST = ErasureScope(host="example.com")
RUN = ErasureScope(runs=frozenset({"c-1"}))
CRAWL = Crawl(id="c-1", name="c", started_at_ms=0)
SAME = object()
RULE, HOST_RULE = (erase_rule(with_erased(CRAWL, scope.rule, now_ms=0)) for scope in (WHOLE, HOST))


def record(**fields: Any) -> PageRecord:
    known: dict[str, Any] = {"crawl": "c-1", "url": THERE} | fields
    return PageRecord(outcome=Outcome.FETCHED, reason=Reason.OK, fetched_at=1, depth=0, **known)


# --- records and rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [WHOLE, RULE], ids=["scope", "rule"])
@pytest.mark.parametrize("name", ["referrer", "canonical", "title", "description", "error"])
@pytest.mark.parametrize("text", [URL, f"see {URL}, {OTHER}", f"see ({URL})."])
def test_mentions_in_record_are_cut(name: str, text: str, scope: UrlMatcher) -> None:
    full = dict.fromkeys(("referrer", "canonical", "title", "description", "error"), THERE)
    known = record(**full | {name: text})
    assert scope.record_left(known) == record(**full | {name: None})
    whole = record(**full)
    assert scope.record_left(whole) is whole


@pytest.mark.parametrize("scope", [HOST, RUN, HOST_RULE], ids=["host", "run", "rule"])
def test_record_of_scope_is_removed(scope: UrlMatcher) -> None:
    assert scope.record_left(record(url=URL)) is None
    other = record(crawl="c-2")
    assert scope.record_left(other) is other
    assert WHOLE.record_left(record(url=URL)) is None


@pytest.mark.parametrize(
    ("item", "left"),
    [
        (Item(table="t", place=0, fields={"a": URL, "b": 1}), {"a": None, "b": 1}),
        (Item(table="t", place=0, fields={"a": [URL, THERE]}), {"a": [THERE]}),
        (Item(table="t", place=0, fields={"a": THERE}), None),
    ],
)
def test_mentions_in_items_of_record_are_cut(item: Item, left: dict[str, Any] | None) -> None:
    other = Item(table="t", place=1, fields={"a": THERE}, problems=("x",))
    known = record(extracted=(item, other))
    for scope in (WHOLE, RULE):
        found = scope.record_left(known)
        if left is None:
            assert found is known
        else:
            assert found is not None
            assert found.extracted[0].fields == left
            assert found.extracted[1] is other


def test_problems_quoting_url_are_removed() -> None:
    item = Item(table="t", place=0, fields={"a": 1}, problems=(f"{URL} is no price", "b"))
    found = WHOLE.record_left(record(extracted=(item,)))
    assert found is not None
    assert found.extracted == (replace(item, problems=("b",)),)


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (URL, None),
        (f"see {URL}!", None),
        (THERE, SAME),
        ([URL, None, THERE], [None, THERE]),
        ((URL,), []),
        ([None, THERE], SAME),
        (7, SAME),
        (None, SAME),
    ],
)
def test_mentions_in_cell_are_cut(value: object, left: object) -> None:
    for scope in (WHOLE, RULE):
        found = scope.value_left(value)
        assert found is value if left is SAME else found == left


def test_row_of_scope_is_removed_and_mentions_are_cut() -> None:
    row = {"url": THERE, "crawl": "c-2", "text": f"see {URL}", "markdown": URL, "title": URL}
    assert WHOLE.row_left(row) == row | {"title": None}
    cut = {"title": None, "text": None, "markdown": None}
    assert replace(WHOLE, mentions=True).row_left(row) == row | cut
    assert WHOLE.row_left(row | {"url": URL}) is None
    assert RUN.row_left(row | {"crawl": "c-1"}) is None
    changed = {"url": THERE, "crawl": "c-2", "previous_crawl": "c-1", "title": "c-1"}
    assert RUN.row_left(changed) == changed | {"previous_crawl": None}
    other = changed | {"previous_crawl": "c-0"}
    assert RUN.row_left(other) is other


# --- crawls -------------------------------------------------------------------------------------


def test_definition_loses_seeds_sitemaps_and_headers_of_scope() -> None:
    crawl = replace(
        CRAWL,
        seeds=(OTHER, URL, THERE),
        seed_depths=(1, 2, 3),
        sitemap_urls=(f"{OTHER}s.xml", f"{THERE}.xml"),
        anchors=(OTHER, THERE),
        roots=(URL, THERE),
        host_headers=(("https://example.com", (("a", "b"),)), ("https://o.example", ())),
        hosts_counted=("https://example.com", "https://other.example"),
        exclude=("example.com",),
    )
    left = definition_left(crawl, WHOLE)
    assert left == replace(crawl, seeds=(OTHER, THERE), seed_depths=(1, 3), roots=(THERE,))
    assert definition_left(crawl, HOST) == replace(
        crawl,
        seeds=(THERE,),
        seed_depths=(3,),
        sitemap_urls=(f"{THERE}.xml",),
        anchors=(THERE,),
        roots=(THERE,),
        host_headers=(("https://o.example", ()),),
        hosts_counted=("", "https://other.example"),
    )
    without = replace(crawl, seed_depths=())
    assert definition_left(without, WHOLE).seed_depths == ()


def test_samples_possibly_of_scope_are_removed() -> None:
    samples = {"scope": ("https://example.com/jane?…", THERE), "depth": (THERE,), "budget": (URL,)}
    assert samples_left(samples, WHOLE) == {"scope": (THERE,), "depth": (THERE,), "budget": ()}


# --- erase rules --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["example.com", "example.com:8443", "https://example.com:8443"])
@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:8443/a",
        "https://example.com/a",
        "http://example.com:8443/",
        "https://www.example.com:8443/a",
        "https://example.com.example/",
        "example.com",
        "x" * 9,
        "",
        None,
    ],
)
def test_rule_matches_urls_of_scope(host: str, url: str | None) -> None:
    scope = ErasureScope(host=host)
    rule = erase_rule(with_erased(CRAWL, scope.rule, now_ms=0))
    assert rule.url(url) is (scope.url(url) or url == host)


def test_rule_stores_digests_and_drops_them_after_a_year() -> None:
    assert erase_rule(CRAWL) is NO_RULE
    assert not NO_RULE.url(URL)
    assert ErasureScope(runs=frozenset({"c-1"})).rule == frozenset()
    day_ms = 86_400_000
    first = with_erased(CRAWL, [URL], now_ms=5 * day_ms)
    assert "jane" not in str(first)
    assert with_erased(first, [URL], now_ms=5 * day_ms + 1) == first
    both = with_erased(first, [OTHER], now_ms=(4 + KEPT_D) * day_ms)
    assert all(map(erase_rule(both).url, (URL, OTHER)))
    later = with_erased(both, [], now_ms=(5 + KEPT_D) * day_ms)
    assert [erase_rule(later).url(url) for url in (URL, OTHER)] == [False, True]
