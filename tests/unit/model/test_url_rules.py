"""URL rules: which rule decides, and which properties it sets on a URL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.admission import (
    admit_child,
    admit_entry,
    admit_link,
    admit_redirect,
    admit_seed,
    admit_sitemap,
)
from orbweaver.frontier.messages import Pack, decode, encode
from orbweaver.model.crawl import DAY_S, Crawl
from orbweaver.model.crawl_codec import changes, from_fields, to_fields
from orbweaver.model.crawl_rules import by_delay, depth_limits, problems_of, rule_for_target
from orbweaver.model.crawl_settings import WEEK_S
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Prior, Target, TargetKind, extras_of, with_extras
from orbweaver.model.url_patterns import RULES_MAX
from orbweaver.model.url_rules import (
    NO_RULE,
    RULE_SETTINGS,
    UrlRule,
    by_window,
    combined_rule,
    deciding,
)
from orbweaver.parsing.sitemap import SitemapEntry

SITE = "https://example.com"
NOW_MS = 1_795_251_600_000
RULES = (
    UrlRule(match=r"^https://example\.com/$", express=True, window_s=3_600),
    UrlRule(match="/archive/", depth_max=1, delay_ms=5_000),
    UrlRule(match="/archive/deep/", depth_max=9, follow=False),
    UrlRule(match="/page/", record=False, express=False),
    UrlRule(match="/deep/", depth_max=7),
    UrlRule(match="/news/", express=True, window_s=0),
)
CRAWL = Crawl(id="c", name="c", started_at_ms=NOW_MS, seeds=(f"{SITE}/",), depth_max=3, rules=RULES)
PAGE = Target(url=f"{SITE}/x", depth=2)


def ruled(**said: object) -> Crawl:
    return replace(CRAWL, rules=(UrlRule(match="/a", **said),))  # type: ignore[arg-type]


# --- which rule decides -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "decided"),
    [
        ("/", {"express": 0, "window_s": 0}),
        ("/x", {}),
        ("/archive/x", {"depth_max": 1, "delay_ms": 1}),
        ("/archive/deep/x", {"depth_max": 1, "delay_ms": 1, "follow": 2}),
        ("/archive/page/2", {"depth_max": 1, "delay_ms": 1, "record": 3, "express": 3}),
        ("/deep/x", {"depth_max": 4}),
        # An earlier rule that sets normal priority wins over a later rule that sets high.
        ("/news/page/2", {"record": 3, "express": 3, "window_s": 5}),
    ],
)
def test_first_rule_setting_property_decides(path: str, decided: dict[str, int]) -> None:
    assert deciding(RULES, f"{SITE}{path}") == decided
    said = combined_rule(RULES, f"{SITE}{path}")
    assert {thing for thing in RULE_SETTINGS if getattr(said, thing) is not None} == set(decided)
    for thing, place in decided.items():
        assert getattr(said, thing) == getattr(RULES[place], thing)


def test_url_without_matching_rule_has_no_settings() -> None:
    assert combined_rule((), f"{SITE}/archive/") is NO_RULE
    assert combined_rule(RULES, f"{SITE}/x") is NO_RULE
    assert deciding((), "not looked at") == {}


def test_rules_do_not_apply_to_sitemaps() -> None:
    sitemap = Target(url=f"{SITE}/archive/s.xml", depth=0, kind=TargetKind.SITEMAP)
    assert rule_for_target(CRAWL, sitemap) is NO_RULE
    assert rule_for_target(CRAWL, replace(sitemap, kind=TargetKind.PAGE)).delay_ms == 5_000


# --- depth --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "depth", "refused"),
    [
        ("/x", 2, False),
        ("/x", 3, True),
        ("/archive/x", 0, False),
        ("/archive/x", 1, True),
        ("/archive/x", 2, True),
        ("/deep/x", 3, False),
        ("/deep/x", 6, False),
        ("/deep/x", 7, True),
        ("/deep/x", 99, True),
    ],
)
def test_rule_replaces_depth_limit_of_crawl(path: str, depth: int, *, refused: bool) -> None:
    url, page = f"{SITE}{path}", replace(PAGE, depth=depth)
    admitted = admit_link(CRAWL, url, page)
    assert (admitted is Refusal.DEPTH) is refused
    sitemap = replace(page, kind=TargetKind.SITEMAP)
    entry = admit_entry(CRAWL, SitemapEntry(url=url), sitemap, frozenset({SITE}))
    assert (entry is Refusal.DEPTH) is refused
    # A redirect stays on the depth of its page.
    redirected = admit_redirect(CRAWL, url, replace(page, depth=depth + 1))
    assert (redirected is Refusal.DEPTH) is refused
    if not refused:
        assert isinstance(admitted, Target)
        assert admitted.depth == depth + 1


def test_seeds_ignore_depth_limit_of_rule() -> None:
    crawl = ruled(depth_max=0)
    assert admit_seed(crawl, f"{SITE}/a") == Target(url=f"{SITE}/a", depth=0)
    assert admit_link(crawl, f"{SITE}/a", replace(PAGE, depth=0)) is Refusal.DEPTH


def test_sitemaps_are_read_if_rule_allows_deeper_links() -> None:
    url = f"{SITE}/s.xml"
    assert admit_sitemap(replace(CRAWL, depth_max=0, rules=()), url) is Refusal.DEPTH
    assert isinstance(admit_sitemap(replace(CRAWL, depth_max=0), url), Target)


@pytest.mark.parametrize(
    ("rules", "limits"),
    [((), (3, 3)), (RULES, (1, 9)), ((UrlRule(match="a", depth_max=5, record=False),), (3, 5))],
)
def test_depth_limits_cover_crawl_and_all_rules(
    rules: tuple[UrlRule, ...], limits: tuple[int, int]
) -> None:
    assert depth_limits(replace(CRAWL, rules=rules)) == limits


# --- properties set on a URL --------------------------------------------------------------------


def test_priority_and_window_of_rule_are_set_on_every_target() -> None:
    url = f"{SITE}/news/1"
    sitemap = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP)
    found = (
        admit_seed(CRAWL, url),
        admit_link(CRAWL, url, PAGE),
        admit_redirect(CRAWL, url, PAGE),
        admit_entry(CRAWL, SitemapEntry(url=url), sitemap, frozenset({SITE})),
    )
    for target in found:
        assert isinstance(target, Target)
        assert (target.url, target.express, target.window_s) == (url, True, 0)
    child = admit_child(CRAWL, SitemapEntry(url=f"{SITE}/news/s.xml"), sitemap, frozenset({SITE}))
    assert isinstance(child, Target)
    assert (child.express, child.window_s) == (False, None)


def test_normal_priority_is_not_stored_in_target() -> None:
    target = admit_link(CRAWL, f"{SITE}/page/1", PAGE)
    assert target == Target(url=f"{SITE}/page/1", depth=3, referrer=PAGE.url)


@pytest.mark.parametrize(
    ("window_s", "age_s", "asked"),
    [(None, 6 * DAY_S, True), (None, 8 * DAY_S, False), (30 * DAY_S, 8 * DAY_S, True)],
)
def test_sitemap_lastmod_is_kept_within_window_of_url(
    window_s: int | None, age_s: int, *, asked: bool
) -> None:
    crawl = ruled(window_s=window_s, record=False)
    modified_at_ms = NOW_MS - age_s * 1_000
    entry = SitemapEntry(url=f"{SITE}/a", modified_at_ms=modified_at_ms)
    sitemap = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP)
    target = admit_entry(crawl, entry, sitemap, frozenset({SITE}))
    assert isinstance(target, Target)
    assert target.modified_at_ms == (modified_at_ms if asked else None)


@pytest.mark.parametrize(
    "target",
    [
        replace(PAGE, express=True),
        replace(PAGE, window_s=0),
        replace(PAGE, express=True, window_s=60, prior=Prior(crawl="b", at_ms=1)),
    ],
)
def test_message_contains_settings_of_rules(target: Target) -> None:
    pack = Pack(id="p", crawl="c", at_ms=1, targets=(target, PAGE))
    assert decode(encode(pack)) == pack
    assert with_extras(PAGE, extras_of(target)) == target
    assert with_extras(PAGE, {"later": 1}) == PAGE


@pytest.mark.parametrize(
    "extras", [{"express": 1}, {"express": None}, {"window": "1h"}, {"window": -1}]
)
def test_extras_with_invalid_value_are_rejected(extras: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"express is true|window is a"):
        with_extras(PAGE, extras)


# --- delay and window ---------------------------------------------------------------------------


def test_by_delay_puts_shortest_delay_first() -> None:
    slow, plain, quick = (Target(url=f"{SITE}/{path}", depth=1) for path in ("s/1", "x", "q"))
    rules = (UrlRule(match="/s/", delay_ms=9_000), UrlRule(match="/q", delay_ms=10))
    crawl = replace(CRAWL, rules=rules)
    more = replace(slow, url=f"{SITE}/s/2")
    assert by_delay(crawl, [slow, plain, more, quick]) == [
        (10, [quick]),
        (1_000, [plain]),
        (9_000, [slow, more]),
    ]
    assert by_delay(replace(CRAWL, rules=()), [slow, quick]) == [(1_000, [slow, quick])]


def test_by_window_groups_targets_in_order() -> None:
    targets = [replace(PAGE, window_s=window_s) for window_s in (None, 5, 0, 5, None)]
    assert by_window(targets) == [
        (None, [PAGE, PAGE]),
        (5, [targets[1], targets[3]]),
        (0, [targets[2]]),
    ]
    assert by_window([]) == []


@pytest.mark.parametrize(
    ("window_s", "continuous", "stale_ms", "hold_s"),
    [
        (None, False, WEEK_S * 1_000, WEEK_S),
        (3_600, False, 3_600_000, WEEK_S),
        (0, False, 0, WEEK_S),
        (30 * DAY_S, False, 30 * DAY_S * 1_000, 30 * DAY_S),
        (3_600, True, 3_600_000, DAY_S),
        (30 * DAY_S, True, 30 * DAY_S * 1_000, 30 * DAY_S),
    ],
)
def test_claim_with_own_window_outlives_run(
    window_s: int | None, stale_ms: int, hold_s: int, *, continuous: bool
) -> None:
    crawl = replace(CRAWL, continuous=continuous)
    assert crawl.stale_before_ms(NOW_MS, window_s) == NOW_MS - stale_ms
    assert crawl.claim_expires_s(NOW_MS, window_s) == NOW_MS // 1_000 + hold_s


# --- stored form and invalid rules --------------------------------------------------------------


def test_crawl_with_rules_round_trips_through_stored_form() -> None:
    fields = to_fields(CRAWL)
    assert from_fields(fields) == CRAWL
    # A table stores no nulls and returns lists.
    stored = [
        {key: value for key, value in one.items() if value is not None} for one in fields["rules"]
    ]
    assert stored[3] == {"match": "/page/", "record": False, "express": False}
    later = [{**one, "later": 1} for one in stored]
    assert from_fields({**fields, "rules": later}) == CRAWL
    assert from_fields({"id": "c", "name": "c", "started_at_ms": 1}).rules == ()


def test_edit_of_rules_is_stored_as_change() -> None:
    changed = changes(CRAWL, replace(CRAWL, rules=RULES[:1]))
    assert list(changed) == ["rules"]
    assert from_fields({**to_fields(CRAWL), **changed}) == CRAWL


@pytest.mark.parametrize(
    ("rule", "path", "said"),
    [
        (UrlRule(match="/a"), "rules[0]", "it says nothing of its URLs"),
        (UrlRule(match="", record=False), "rules[0].match", "'' is found in every URL"),
        (UrlRule(match="é", record=False), "rules[0].match", "cannot match: URLs are ASCII"),
        (UrlRule(match="a" * 1_001, record=False), "rules[0].match", "has 1,001 characters"),
        (UrlRule(match="(?:a{1,99}b){500}", record=False), "rules[0].match", "not a regular"),
        (UrlRule(match="/a", depth_max=-1), "rules[0].depth", "-1 does not fit: give 0 to 1,000"),
        (UrlRule(match="/a", delay_ms=-1), "rules[0].delay", "give 0s to 1d"),
        (UrlRule(match="/a", window_s=-1), "rules[0].window", "give 0s to 366d"),
    ],
)
def test_invalid_rule_is_named_by_place_and_key(rule: UrlRule, path: str, said: str) -> None:
    ((found, text),) = problems_of((rule,))
    assert found == path
    assert said in text


def test_rules_are_limited_in_number_and_total_size() -> None:
    many = tuple(UrlRule(match=f"/{place}", record=False) for place in range(RULES_MAX + 1))
    assert list(problems_of(many[:-1])) == []
    assert list(problems_of(many)) == [("rules", "51 rules are too many: at most 50")]
    large = [
        UrlRule(match=f"/{place}" + 2 * "(?:a{1,90}b){10}", record=False) for place in range(50)
    ]
    ((path, text),) = problems_of(tuple(large))
    assert path == "rules"
    assert "do not fit together" in text
