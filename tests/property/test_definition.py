"""Definitions: any JSON is a plan or problems, and plans survive encoding."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.control.crawl_spec import CrawlSpec, Overlap
from orbweaver.control.definition import DefinitionError, DefinitionProblem, document_of, parse
from orbweaver.control.definition_keys import KEYS, RULE_KEYS, TABLES
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.crawl_settings import WEEK_S, Bodies, RenderMode, Scope
from orbweaver.model.url_rules import UrlRule

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
times = st.sampled_from(["1s", "250ms", "7d", "x"]) | anything
leaves = [path for path in (key.path for key in KEYS) if "." not in path]
# Documents with valid keys and any values.
tables = {
    table: st.dictionaries(
        st.sampled_from([key.path.partition(".")[2] for key in KEYS if key.path.startswith(table)])
        | st.text(max_size=8),
        times,
        max_size=4,
    )
    | anything
    for table in TABLES
}
rules = st.lists(
    st.dictionaries(st.sampled_from([key.path for key in RULE_KEYS]) | st.text(max_size=8), times)
    | anything,
    max_size=3,
)
documents = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(leaves, anything),
        **tables,
        "rules": rules | anything,
        "odd": anything,
    },
)
plans = st.builds(
    CrawlSpec,
    seeds=st.sampled_from(
        [("https://example.com/",), ("https://a.example/", "http://b.example/x")]
    ),
    name=st.none() | st.sampled_from(["a", "site.2"]),
    scope=st.sampled_from(Scope),
    depth_max=st.integers(0, 1_000),
    pages_max=st.none() | st.integers(1, 10**8),
    host_pages_max=st.none() | st.integers(1, 10**8),
    bytes_max=st.none() | st.integers(10**5, 10**15),
    nanodollars_max=st.none() | st.integers(10**7, 10**15),
    delay_ms=st.integers(0, 86_400_000),
    concurrency=st.none() | st.integers(1, 64),
    window_s=st.integers(0, 366 * 86_400),
    duration_max_s=st.integers(60, WEEK_S),
    include=st.lists(st.sampled_from(["/a", "b$"]), max_size=3).map(tuple),
    exclude=st.lists(st.sampled_from(["/q", r"\.pdf$"]), max_size=3).map(tuple),
    obey_robots=st.booleans(),
    obey_nofollow=st.booleans(),
    express=st.booleans(),
    render=st.sampled_from(RenderMode),
    user_agents=st.lists(st.sampled_from(["a/1", "b/2 (x)"]), max_size=2).map(tuple),
    headers=st.sampled_from([(), (("X-Key", "k"),), (("X-Key", "k"), ("DNT", "1"))]),
    cookies=st.booleans(),
    host_headers=st.sampled_from([(), (("example.org", (("X-Key", "k"),)), ("http://x:8", ()))]),
    proxied=st.booleans(),
    strip_parameters=st.lists(st.sampled_from(["ref", "my_*"]), max_size=2).map(tuple),
    keep_parameters=st.booleans(),
    sitemaps=st.booleans(),
    sitemap_urls=st.sampled_from([(), ("https://example.com/s.xml",)]),
    canonical_only=st.booleans(),
    noindex_skipped=st.booleans(),
    bodies=st.sampled_from(Bodies),
    status_only=st.booleans(),
    texts=st.booleans(),
    redacted=st.sampled_from([(), ("email",), ("email", "phone")]),
    cron=st.none() | st.sampled_from(["0 3 * * ? *", "0/10 8-18 ? * MON-FRI *"]),
    overlap=st.sampled_from(Overlap),
    webhook=st.none() | st.sampled_from(["https://a.example/hook", "http://127.0.0.1:9/"]),
    rules=st.lists(
        st.builds(
            UrlRule,
            match=st.sampled_from(["/a", r"\.pdf$"]),
            depth_max=st.integers(0, 1_000),
            express=st.none() | st.booleans(),
            delay_ms=st.none() | st.integers(0, 86_400_000),
            window_s=st.none() | st.integers(0, 366 * 86_400),
            follow=st.none() | st.booleans(),
            record=st.none() | st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
)


@given(plans)
def test_plan_survives_json(plan: CrawlSpec) -> None:
    assert parse(json.loads(json.dumps(document_of(plan)))) == plan


def problems_of(document: Any, lines: str | None) -> tuple[DefinitionProblem, ...]:
    try:
        crawl_of(parse(document, lines), 0)
    except DefinitionError as error:
        return error.problems
    return ()


@given(anything | documents, st.none() | st.text(max_size=40))
def test_any_json_is_plan_or_problems(document: Any, lines: str | None) -> None:
    for problem in problems_of(document, lines):
        assert problem.text
        assert "\n" not in problem.path
