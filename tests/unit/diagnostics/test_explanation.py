"""Explanations of URLs of every status, computed from given facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.diagnostics.explanation import explain
from orbweaver.diagnostics.url_status import UrlStatus, choose
from orbweaver.model.crawl_settings import Scope
from tests.unit.diagnostics.facts import CLAIM, CRAWL, RULES, SITE, URL, facts, said
from tests.unit.diagnostics.url_statuses import URL_STATUSES


@pytest.mark.parametrize(
    ("status", "name"), [(status, name) for status, rows in URL_STATUSES.items() for name in rows]
)
def test_explanation_has_status_and_its_facts(status: UrlStatus, name: str) -> None:
    known, words = URL_STATUSES[status][name]
    found = facts(**known)
    assert explain(found).url_status is status
    text = said(found)
    assert [part for part in words if part not in text] == [], text


def test_table_has_every_url_status() -> None:
    assert URL_STATUSES.keys() == set(UrlStatus)


def test_refusal_is_machine_readable_reason() -> None:
    assert explain(facts(reference="https://other.example/")).refusal == "scope"
    assert explain(facts(reference="x")).refusal == "invalid"
    assert explain(facts(robots=RULES)).refusal == "robots"
    assert explain(facts(claim=CLAIM, robots=RULES)).refusal is None
    assert explain(facts()).refusal is None


def test_request_headers_are_named_without_values() -> None:
    own = ((SITE, (("X-Key", "s3cret"),)), ("https://other.example", (("X-Other", "s3cret"),)))
    crawl = replace(CRAWL, host_headers=own, cookies=True)
    text = said(facts(crawl=crawl))
    assert "with the headers X-Key" in text
    assert "with the cookies that its site has set" in text
    assert "X-Other" not in text
    assert "s3cret" not in text
    assert "with the" not in said(facts())


@pytest.mark.parametrize(
    ("reference", "chosen"),
    [
        (f"{SITE}/b", "docs-2"),
        ("https://www.example.net/x", "net-1"),
        ("https://other.example/", "any-1"),
        ("nonsense", "any-1"),
    ],
)
def test_newest_crawl_with_matching_scope_is_chosen(reference: str, chosen: str) -> None:
    """A scope around the URL has precedence over the scope `any`."""
    crawls = [
        replace(CRAWL, id="any-1", scope=Scope.ANY),
        replace(CRAWL, id="docs-2"),
        replace(CRAWL, id="docs-1"),
        replace(CRAWL, id="net-1", scope=Scope.DOMAIN, seeds=("https://example.net/",)),
    ]
    found = choose(crawls, reference)
    assert found is not None
    assert found[0].id == chosen


def test_no_crawl_is_chosen_without_matching_scope() -> None:
    assert choose([CRAWL], "https://other.example/") is None
    assert choose([], URL) is None
