"""URL rules: the first matching rule that sets an option decides it."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.admission import admit_link
from orbweaver.frontier.messages import Pack, decode, encode
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_codec import from_fields, to_fields
from orbweaver.model.crawl_rules import by_delay, depth_limits, problems_of
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target
from orbweaver.model.url_rules import (
    RULE_SETTINGS,
    UrlRule,
    by_window,
    combined_rule,
    deciding,
)

SITE = "https://example.com"
# Expressions with the same meaning in RE2 and Python.
PATTERNS = st.sampled_from(["/a", "/b$", "^https://example", "[0-9]", "a.*b", "(?i)C", "x|/b/"])
RULE = st.builds(
    UrlRule,
    match=PATTERNS,
    depth_max=st.none() | st.integers(0, 5),
    express=st.none() | st.booleans(),
    delay_ms=st.none() | st.integers(0, 9_000),
    window_s=st.none() | st.integers(0, 90),
    follow=st.none() | st.booleans(),
    record=st.none() | st.booleans(),
)
RULES = st.lists(RULE, max_size=6).map(tuple)
URLS = st.lists(st.sampled_from(["a", "b", "c", "7", "x", "/"]), max_size=6).map(
    lambda parts: f"{SITE}/{''.join(parts)}"
)
CRAWL = Crawl(id="c", name="c", started_at_ms=0, seeds=(f"{SITE}/",), depth_max=2)


def expected(rules: tuple[UrlRule, ...], url: str, thing: str) -> int | None:
    """Return the first matching rule that sets an option."""
    for place, rule in enumerate(rules):
        if re.search(rule.match, url) and getattr(rule, thing) is not None:
            return place
    return None


@given(RULES, URLS)
def test_first_matching_rule_sets_each_option(rules: tuple[UrlRule, ...], url: str) -> None:
    decided, said = deciding(rules, url), combined_rule(rules, url)
    for thing in RULE_SETTINGS:
        place = expected(rules, url, thing)
        assert decided.get(thing) == place
        assert getattr(said, thing) == (None if place is None else getattr(rules[place], thing))


@given(RULES, RULE, URLS)
def test_later_rule_keeps_options_already_set(
    rules: tuple[UrlRule, ...], late: UrlRule, url: str
) -> None:
    before = deciding(rules, url)
    after = deciding((*rules, late), url)
    assert {thing: after[thing] for thing in before} == before


@given(RULES, URLS, st.integers(0, 6))
def test_link_is_admitted_up_to_depth_of_its_rule(
    rules: tuple[UrlRule, ...], url: str, depth: int
) -> None:
    crawl = replace(CRAWL, rules=rules)
    admitted = admit_link(crawl, url, Target(url=f"{SITE}/", depth=depth))
    own = combined_rule(rules, url).depth_max
    limit = CRAWL.depth_max if own is None else own
    least, most = depth_limits(crawl)
    assert least <= limit <= most
    if depth + 1 > limit:
        assert admitted is Refusal.DEPTH
    else:
        assert admitted is not Refusal.DEPTH


@given(RULES, URLS)
def test_options_of_rule_survive_queue(rules: tuple[UrlRule, ...], url: str) -> None:
    admitted = admit_link(replace(CRAWL, rules=rules), url, Target(url=f"{SITE}/", depth=0))
    if isinstance(admitted, Target):
        said = combined_rule(rules, url)
        assert (admitted.express, admitted.window_s) == (bool(said.express), said.window_s)
        pack = Pack(id="p", crawl="c", at_ms=0, targets=(admitted,))
        assert decode(encode(pack)) == pack


@given(RULES, st.lists(URLS, max_size=8))
def test_groups_have_every_target_once(rules: tuple[UrlRule, ...], urls: list[str]) -> None:
    crawl = replace(CRAWL, rules=rules)
    targets = [
        Target(url=url, depth=0, window_s=combined_rule(rules, url).window_s) for url in urls
    ]
    walks = by_delay(crawl, targets)
    delays = [delay_ms for delay_ms, _ in walks]
    assert delays == sorted(set(delays)) or not rules
    for groups in ([group for _, group in walks], [group for _, group in by_window(targets)]):
        places = [[id(target) for target in group] for group in groups]
        order = [id(target) for target in targets]
        assert sorted(itertools.chain.from_iterable(places)) == sorted(order)
        for group in places:
            assert group == [one for one in order if one in group]


@given(RULES)
def test_rules_survive_storage(rules: tuple[UrlRule, ...]) -> None:
    crawl = replace(CRAWL, rules=rules)
    assert from_fields(to_fields(crawl)) == crawl
    empty = [
        f"rules[{place}]" for place, rule in enumerate(rules) if rule == UrlRule(match=rule.match)
    ]
    assert [path for path, _ in problems_of(rules)] == empty
