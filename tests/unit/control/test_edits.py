"""Edits of a running crawl: allowed changes, refused changes and the shares of a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.definition import DefinitionError, document_of
from orbweaver.control.definition_keys import BY_PATH
from orbweaver.control.edits import EDITABLE, apply_document, differences, distribute_budget
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.crawl import Counters, CounterShard, Crawl, default_crawl

NOW_MS = 1_795_251_600_000
PLAN = CrawlSpec(
    seeds=("https://example.com/a", "https://example.com/b?utm_id=1"),
    name="shop",
    pages_max=100,
    strip_parameters=("ref",),
    headers=(("Authorization", "secret"),),
    webhook="https://hooks.example.net/x",
)
CRAWL = crawl_of(PLAN, NOW_MS)


def problems(changes: object, crawl: Crawl = CRAWL) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        apply_document(crawl, changes)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"limits": {"pages": 7}}, {"pages_max": 7}),
        ({"limits": {"depth": 0, "duration": "2h"}}, {"depth_max": 0, "duration_max_s": 7_200}),
        ({"politeness": {"delay": "5s", "concurrency": 2}}, {"delay_ms": 5_000, "concurrency": 2}),
        ({"scope": {"include": ["/p"], "exclude": []}}, {"include": ("/p",), "exclude": ()}),
        (
            {"scope": {"exclude": ["/a"]}},
            {"exclude": ("/a",)},
        ),  # belongs to a seed that is in flight
    ],
)
def test_edit_changes_only_given_keys(changes: dict[str, Any], fields: dict[str, Any]) -> None:
    assert apply_document(CRAWL, changes) == replace(CRAWL, **fields)


def test_editable_keys_are_limits_pace_patterns_and_rules() -> None:
    assert {path.partition(".")[0] for path in EDITABLE} == {
        "items",
        "limits",
        "politeness",
        "records",
        "render",
        "rules",
        "scope",
    }
    assert "scope.links" not in EDITABLE
    kept = {"records.bodies", "records.text", "records.links", "records.redact"}
    assert {path for path in EDITABLE if path.startswith("records.")} == kept
    assert {path for path in BY_PATH if path.startswith("limits.")} <= set(EDITABLE)


def test_whole_definition_counts_only_its_differences() -> None:
    document = document_of(replace(PLAN, delay_ms=250))
    document["seeds"] = ["https://example.com/b", "HTTPS://example.com/a"]
    document["schedule"] = {"every": "1h"}
    assert apply_document(CRAWL, document) == replace(CRAWL, delay_ms=250)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seeds": ["https://example.org/"]}, "seeds: it cannot change while a crawl runs: start"),
        ({"seeds": ["no URL"]}, "seeds: it cannot change while a crawl runs: start another of"),
        ({"name": "other"}, "name: it cannot change while a crawl runs: cancel this one"),
        ({"scope": {"links": "any"}}, "scope.links: it cannot change while"),
        ({"dedup": {"window": "0s"}}, "dedup.window: it cannot change while"),
        ({"dedup": {"strip_parameters": []}}, "dedup.strip_parameters: it cannot change"),
        ({"notify": {"webhook": "https://hooks.example.net/y"}}, "notify.webhook: it cannot"),
        ({"identity": {"headers": {"Authorization": "guess"}}}, "identity.headers: it cannot"),
        ({"limits": {"page": 1}}, "limits.page: there is no such key: did you mean limits.pages?"),
        ({"limits": {"pages": 0}}, "limits.pages: 0 does not fit: give 1 to 100,000,000"),
        ({"limits": {"pages": "7"}}, "limits.pages: '7' does not fit: give a whole number"),
        ({"scope": {"include": ["("]}}, "scope.include: '('"),
        ({}, "nothing to change is given: it takes scope.include, "),
        ({"name": "shop"}, "nothing to change is given"),
        ([], "it is no table of keys"),
    ],
)
def test_edit_of_fixed_key_is_refused_without_secrets(changes: object, words: str) -> None:
    (problem,) = problems(changes)
    assert problem.startswith(words), problem
    assert "guess" not in problem


def test_all_problems_of_edit_are_reported() -> None:
    found = problems({"name": "x", "limits": {"pages": 0, "depth": "deep"}, "colour": "red"})
    assert len(found) == 4


def test_crawl_without_end_accepts_pace_and_no_duration() -> None:
    crawl = default_crawl(NOW_MS)
    assert apply_document(crawl, {"politeness": {"delay": 3}}).delay_ms == 3_000
    assert problems({"limits": {"duration": "1h"}}, crawl) == [
        "limits.duration: this crawl has no end: leave it out"
    ]


def test_retry_accepts_definition_of_first_run() -> None:
    crawl = replace(CRAWL, seeds=("https://example.com/c",), retry_of="shop-1")
    document = document_of(replace(PLAN, pages_max=3))
    assert apply_document(crawl, document) == replace(crawl, pages_max=3)


def test_differences_have_key_old_and_new_value() -> None:
    crawl = apply_document(CRAWL, {"limits": {"pages": 3}, "politeness": {"delay": 3}})
    assert differences(CRAWL, crawl) == (
        ("limits.pages", 100, 3),
        ("politeness.delay", "1000ms", "3000ms"),
    )


# --- the budget ---------------------------------------------------------------------------------


def quotas(pages_max: int, was: Crawl, *claimed: int) -> tuple[int, ...]:
    """Share a new budget among shards that have claimed this much."""
    counters = Counters.build(tuple(CounterShard(counts={"claimed": number}) for number in claimed))
    crawl = distribute_budget(replace(was, pages_max=pages_max), was, counters)
    return tuple(crawl.shard_quota(shard) for shard in range(crawl.shards))


@pytest.mark.parametrize(
    ("pages_max", "claimed", "expected"),
    [
        (16, (3, 0, 0), (6, 5, 5)),  # raised: each shard gets its part
        (10, (4, 3, 3), (4, 3, 3)),  # used up, then raised by nothing
        (7, (1, 1, 1), (3, 2, 2)),  # lowered: the unclaimed rest is shared
        (7, (3, 0, 2), (4, 1, 2)),
        (5, (4, 3, 3), (4, 3, 3)),  # less than is claimed: no new links
    ],
)
def test_quotas_add_up_to_budget_or_claims(
    pages_max: int, claimed: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    crawl = replace(CRAWL, pages_max=10, shards=3)
    shared = quotas(pages_max, crawl, *claimed)
    assert shared == expected
    assert sum(shared) == max(pages_max, sum(claimed))


def test_raised_budget_lowers_no_quota() -> None:
    """A commit under the old quotas cannot exceed the new ones."""
    crawl = replace(CRAWL, pages_max=10, shards=3)
    old = [crawl.shard_quota(shard) for shard in range(3)]
    new = quotas(11, crawl, 0, 0, 3)
    assert all(before <= after for before, after in zip(old, new, strict=True))


def test_budget_lowered_then_raised_shares_only_increase() -> None:
    crawl = replace(CRAWL, pages_max=10, shards=2)
    lowered = replace(crawl, pages_max=4, quotas=quotas(4, crawl, 5, 1))
    assert lowered.quotas == (5, 1)
    assert quotas(5, lowered, 5, 1) == (5, 1)
    assert quotas(9, lowered, 5, 1) == (7, 2)


def test_one_shard_has_whole_budget() -> None:
    assert quotas(250, CRAWL, 60) == (250,)
    assert quotas(50, CRAWL, 60) == (60,)
