"""The definition of a crawl: what keys become, what does not fit, and that the guide is true."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli.options import OPTIONS
from orbweaver.cli.starter import STARTER
from orbweaver.core.crawl import DAY_S, WEEK_S, Bodies, Scope
from orbweaver.core.definition import (
    DefinitionError,
    Problem,
    check,
    document_of,
    lines_of,
    parse,
    read,
    seeds_file_of,
)
from orbweaver.core.definition_keys import KEYS
from orbweaver.core.extraction import Field, ItemRule
from orbweaver.core.plan import Plan, crawl_of
from orbweaver.core.rules import Rule
from orbweaver.core.schedule import Overlap

GUIDE = (Path(__file__).parents[3] / "docs/definition.md").read_text()
SEED = "https://example.com/"
DOCUMENT: dict[str, Any] = {
    "name": "site",
    "seeds": [SEED],
    "sitemaps": [f"{SEED}s.xml"],
    "priority": "high",
    "scope": {"links": "prefix", "include": ["/a"], "exclude": ["/b"], "robots_sitemaps": False},
    "limits": {
        "depth": 3,
        "pages": 100,
        "host_pages": 50,
        "duration": "2h",
        "bytes": "10GB",
        "dollars": 0.25,
    },
    "politeness": {"delay": "250ms", "concurrency": 2, "robots": False},
    "identity": {"user_agents": ["a/1"], "headers": {"X-Key": "k"}, "proxies": False},
    "dedup": {"window": 0, "strip_parameters": ["ref"], "keep_parameters": True},
    "records": {
        "canonical": True,
        "noindex": "skip",
        "bodies": "all",
        "text": True,
        "redact": ["email", "phone"],
    },
    "schedule": {"cron": "0 3 * * ? *", "timezone": "Europe/Berlin", "overlap": "allow"},
    "notify": {"webhook": f"{SEED}hook"},
    "rules": [
        {
            "match": "/a",
            "depth": 2,
            "priority": "high",
            "delay": "1.5s",
            "window": "1h",
            "follow": False,
            "record": False,
        },
        {"match": "/b", "priority": "normal", "follow": True, "record": True},
    ],
    "items": [{"name": "books", "match": "/b/", "fields": {"title": "h1"}}],
}
PLAN = Plan(
    name="site",
    seeds=(SEED,),
    sitemap_urls=(f"{SEED}s.xml",),
    express=True,
    scope=Scope.PREFIX,
    include=("/a",),
    exclude=("/b",),
    sitemaps=False,
    depth_max=3,
    pages_max=100,
    host_pages_max=50,
    bytes_max=10_000_000_000,
    nanodollars_max=250_000_000,
    duration_s=7_200,
    delay_ms=250,
    concurrency=2,
    obey_robots=False,
    user_agents=("a/1",),
    headers=(("X-Key", "k"),),
    proxied=False,
    window_s=0,
    strip_parameters=("ref",),
    keep_parameters=True,
    canonical_only=True,
    noindex_skipped=True,
    bodies=Bodies.ALL,
    texts=True,
    redacted=("email", "phone"),
    cron="0 3 * * ? *",
    timezone="Europe/Berlin",
    overlap=Overlap.ALLOW,
    webhook=f"{SEED}hook",
    rules=(
        Rule(
            match="/a",
            depth_max=2,
            express=True,
            delay_ms=1_500,
            window_s=3_600,
            follow=False,
            record=False,
        ),
        Rule(match="/b", express=False, follow=True, record=True),
    ),
    items=(ItemRule(name="books", match="/b/", fields=(Field(name="title", where="h1"),)),),
)


def problems(document: object, lines: str | None = None) -> dict[str, str]:
    """Name what does not fit, by key."""
    with pytest.raises(DefinitionError) as caught:
        parse(document, lines)
    return {problem.path: problem.text for problem in caught.value.problems}


# --- what fits ----------------------------------------------------------------------------------


def test_every_key_becomes_its_part_of_the_plan() -> None:
    """A document that has every key, each with another value than the default."""
    assert parse(DOCUMENT) == PLAN
    for field in fields(Plan):
        if field.name not in ("id", "every"):  # of the run; given instead of cron
            assert getattr(PLAN, field.name) != getattr(Plan(), field.name), field.name


def test_a_plan_is_written_as_it_is_read() -> None:
    """What is written reads as the same plan; what has no value is left out."""
    assert parse(document_of(PLAN)) == PLAN
    assert "name" not in document_of(Plan(seeds=(SEED,)))


def test_the_least_is_one_seed() -> None:
    """Everything else takes the default of a plan."""
    assert parse({"seeds": [SEED]}) == Plan(seeds=(SEED,))


@pytest.mark.parametrize(
    ("value", "delay_ms"),
    [
        (0, 0),
        (1, 1_000),
        (1.5, 1_500),
        ("250ms", 250),
        ("2", 2_000),
        ("1m", 60_000),
        (100, 100_000),
    ],
)
def test_times_are_texts_or_seconds(value: object, delay_ms: int) -> None:
    """As on the command line; plain numbers are seconds."""
    plan = parse({"seeds": [SEED], "politeness": {"delay": value}})
    assert plan.delay_ms == delay_ms


def test_duration_and_patterns_reach_the_crawl() -> None:
    """What the plan asks for is in the crawl that it becomes."""
    crawl = crawl_of(PLAN, 0)
    assert (crawl.duration_max_s, crawl.include, crawl.exclude) == (7_200, ("/a",), ("/b",))
    assert crawl_of(Plan(seeds=(SEED,)), 0).duration_max_s == WEEK_S


def test_seeds_may_stand_in_a_file() -> None:
    """Comments and empty lines are passed over; a sign within a line is part of the URL."""
    lines = "\ufeff# some\n\n  https://a.example/#x  \r\nhttps://b.example/\n  # no\n"
    assert lines_of(lines) == ("https://a.example/#x", "https://b.example/")
    document = {"seeds": [SEED], "seeds_file": "seeds.txt"}
    assert seeds_file_of(document) == "seeds.txt"
    assert parse(document, lines).seeds == (SEED, "https://a.example/#x", "https://b.example/")
    assert problems(document) == {
        "seeds_file": "'seeds.txt': no file can be read here: give its lines as seeds"
    }
    assert seeds_file_of({"seeds_file": 5}) is seeds_file_of([]) is None


# --- what does not fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("nmae", "nmae: there is no such key: did you mean name?"),
        ("seed", "did you mean seeds?"),
        ("sitemap", "did you mean sitemaps?"),
        ("depth", "did you mean limits.depth?"),
        ("delay", "did you mean politeness.delay?"),
        ("limits.max_pages", "limits.max_pages: there is no such key: did you mean limits.pages?"),
        ("limits.max-depth", "did you mean limits.depth?"),
        ("limits.delay", "did you mean politeness.delay?"),
        ("politeness.robot", "did you mean politeness.robots?"),
        ("identity.user_agent", "did you mean identity.user_agents?"),
        ("identity.header", "did you mean identity.headers?"),
        ("scope.includes", "did you mean scope.include?"),
        ("scope.zzz", "[scope] has links, include, exclude, robots_sitemaps"),
        ("zzz", "outside of tables there are name, seeds, seeds_file, sitemaps, priority"),
        ("a\nb" * 40, "there is no such key"),
    ],
)
def test_unknown_keys_are_named_with_the_nearest(key: str, said: str) -> None:
    """A key that is mistyped, or stands in the wrong table, leads to the one that is meant."""
    table, _, name = key.rpartition(".")
    document = {"seeds": [SEED], **({table: {name: 1}} if table else {name: 1})}
    with pytest.raises(DefinitionError) as caught:
        parse(document)
    (problem,) = caught.value.problems
    assert said in str(problem)
    assert "\n" not in str(problem)
    assert len(problem.path) < 100


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("limit", "limit: there is no such table: did you mean [limits]?"),
        ("zzz", "tables are scope, limits, politeness, identity, dedup, records, schedule, notify"),
    ],
)
def test_unknown_tables_are_named_with_the_nearest(table: str, said: str) -> None:
    """A table that is mistyped is one problem, not one for each of its keys."""
    with pytest.raises(DefinitionError) as caught:
        parse({"seeds": [SEED], table: {"a": 1, "b": 2}})
    (problem,) = caught.value.problems
    assert said in str(problem)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("name", 5, "5 does not fit: give a text in quotes"),
        ("name", "My Site", "'My Site' does not fit: 1 to 80 of a-z"),
        ("seeds", SEED, f"'{SEED}' does not fit: give a list of texts"),
        ("seeds", [5], "a list does not fit: give a list of texts"),
        ("seeds", ["example.com"], "did you mean https://example.com/?"),
        ("seeds", [], "there is no seed: give at least one URL"),
        ("sitemaps", ["s.xml"], "'s.xml' cannot be crawled"),
        ("priority", "hihg", "'hihg' does not fit: did you mean high? It takes normal or high"),
        ("priority", None, "null does not fit: give normal or high"),
        ("scope", "host", "'host' does not fit: it is a table, [scope], of links, include"),
        ("scope.links", "hots", "did you mean host? It takes host or domain or prefix or any"),
        ("scope.include", ["("], "'(' is not a regular expression: missing )"),
        ("scope.exclude", ["^https"], f"'^https' leaves out the seed '{SEED}': change one of them"),
        ("scope.robots_sitemaps", "yes", "'yes' does not fit: give true or false"),
        ("limits.pages", "100", "'100' does not fit: give a whole number without quotes"),
        ("limits.pages", 1.5, "1.5 does not fit: give a whole number"),
        ("limits.pages", True, "true does not fit: give a whole number"),
        ("limits.pages", 0, "0 does not fit: give 1 to 100,000,000"),
        ("limits.pages", 10**30, "a very large number does not fit"),
        ("limits.depth", 1_001, "1001 does not fit: give 0 to 1,000"),
        ("limits.duration", "8d", "691200 s does not fit: give 60 to 604,800 s"),
        ("limits.bytes", "10G", "'10G' does not fit: give a size like"),
        ("limits.bytes", -1, "-1 does not fit: give a size like"),
        ("limits.bytes", "99KB", "99000 bytes does not fit: give 100000 to"),
        ("limits.dollars", "much", "'much' does not fit: give an amount of dollars, like 5 or"),
        ("limits.dollars", 0.001, "0.001 does not fit: give 0.01 to 1,000,000 dollars"),
        ("limits.dollars", 1e9, "1000000000 does not fit: give 0.01 to 1,000,000 dollars"),
        ("limits.host_pages", 0, "0 does not fit: give 1 to 100,000,000"),
        ("politeness.delay", "soon", "'soon' does not fit: give a time like \"250ms\""),
        ("politeness.delay", -1, "-1 does not fit: give a time"),
        ("politeness.delay", float("nan"), "nan does not fit: give a time"),
        ("politeness.delay", float("inf"), "inf does not fit: give a time"),
        ("politeness.delay", 10**31, "a very large number does not fit: give a time"),
        ("politeness.delay", False, "false does not fit: give a time"),
        ("politeness.concurrency", 65, "65 does not fit: give 1 to 64"),
        ("identity.user_agents", ["\n"], "is not a user agent"),
        ("identity.headers", ["Cookie: secret"], "give a table of names and texts"),
        ("identity.headers", {"Cookie": 5}, "give a table of names and texts"),
        ("identity.headers", {"Host": "secret"}, "the header Host cannot be given"),
        ("dedup.window", "367d", "give 0 to 31,622,400 s"),
        ("dedup.strip_parameters", ["a=b"], "'a=b' is not a parameter's name"),
        ("records.noindex", "drop", "give record or skip"),
        ("records.bodies", "alle", "'alle' does not fit: did you mean all? It takes off or html"),
        ("records.text", "yes", "give true or false"),
        ("records.redact", "email", "give a list of texts"),
        ("records.redact", ["e-mail"], "give a list of email and phone"),
        ("schedule.every", 5, "5 does not fit: give a text in quotes"),
        ("schedule.every", "often", "'often' does not fit: give minutes, hours or days, like"),
        ("schedule.every", "1w", "'1w' does not fit: give minutes, hours or days"),
        ("schedule.every", "4m", "'4m' does not fit: give 5 minutes to 366 days"),
        ("schedule.every", "367 days", "'367 days' does not fit: give 5 minutes to 366 days"),
        ("schedule.cron", "0 3 * * *", "it has 5 fields: give six, minutes hours"),
        ("schedule.cron", "0/4 * * * ? *", "leave 5 minutes between two times, and not 4"),
        ("schedule.timezone", "UTC", "'UTC' is for cron alone: leave it out, or give cron"),
        ("schedule.overlap", "skipp", "did you mean skip? It takes skip or allow"),
        ("notify.webhook", "http://secret.example/", "it is http: give an https URL"),
        ("notify.webhook", "https://me:secret@a.example/", "without user and password"),
        ("notify.webhook", "secret", "not an absolute URL: give an https URL"),
    ],
)
def test_values_that_do_not_fit_are_named(path: str, value: object, said: str) -> None:
    """The problem has the key, the value unless it may be a secret, and the fix."""
    table, _, name = path.rpartition(".")
    document: dict[str, Any] = {"seeds": [SEED]}
    document.update({table: {name: value}} if table else {name: value})
    found = problems(document)
    assert list(found) == [path]
    assert said in found[path]
    assert "secret" not in found[path]


ONE = {"match": "/a", "depth": 1}


@pytest.mark.parametrize(
    ("rules", "path", "said"),
    [
        ({"match": "/a"}, "rules", "a table does not fit: write [[rules]] above each of them"),
        ("/a", "rules", "'/a' does not fit: write [[rules]]"),
        ([ONE] * 51, "rules", "51 rules are too many: give at most 50"),
        ([ONE, 5], "rules[1]", "5 does not fit: give a table like { match ="),
        ([ONE, {"match": "/b"}], "rules[1]", "it says nothing of its URLs: give one of depth,"),
        ([{"depth": 1}], "rules[0].match", "there is none: give a pattern of URLs"),
        ([{**ONE, "match": ""}], "rules[0].match", "'' is found in every URL: give what some have"),
        ([{**ONE, "match": "("}], "rules[0].match", "'(' is not a regular expression: missing )"),
        ([{**ONE, "match": 5}], "rules[0].match", "5 does not fit: give a text in quotes"),
        ([{**ONE, "match": "(?=a)"}], "rules[0].match", "give one that RE2 takes (no lookaround"),
        ([{**ONE, "deph": 1}], "rules[0].deph", "there is no such key: did you mean depth?"),
        ([{**ONE, "x\ny": 1}], "rules[0].'x\\ny'", "a rule has match, depth, priority, delay,"),
        ([ONE, ONE, {**ONE, "depth": "2"}], "rules[2].depth", "'2' does not fit: give a whole"),
        ([{**ONE, "depth": 1_001}], "rules[0].depth", "1001 does not fit: give 0 to 1,000"),
        ([{**ONE, "delay": "2d"}], "rules[0].delay", "172800000 ms does not fit: give 0 to"),
        ([{**ONE, "delay": "soon"}], "rules[0].delay", "'soon' does not fit: give a time like"),
        ([{**ONE, "window": "367d"}], "rules[0].window", "give 0 to 31,622,400 s"),
        ([{**ONE, "priority": "hihg"}], "rules[0].priority", "did you mean high? It takes normal"),
        ([{**ONE, "follow": "no"}], "rules[0].follow", "'no' does not fit: give true or false"),
        ([{**ONE, "record": 0}], "rules[0].record", "0 does not fit: give true or false"),
        ([{**ONE, "match": "a" * 900}] * 28, "rules", "25,200 characters are too many"),
    ],
)
def test_rules_that_do_not_fit_are_named(rules: object, path: str, said: str) -> None:
    """The problem has the rule by its place, the key in it, the value and the fix."""
    found = problems({"seeds": [SEED], "rules": rules})
    assert list(found) == [path]
    assert said in found[path]


def test_all_problems_of_rules_are_found_at_once() -> None:
    """What cannot be read and what does not fit, each under its own place."""
    rules = [{"depth": "x"}, {"match": "(", "delay": -1, "x": 1}, 5, {"match": "/a", "depth": -1}]
    assert list(problems({"seeds": [SEED], "rules": rules})) == [
        "rules[0].match",
        "rules[0].depth",
        "rules[1].delay",
        "rules[1].x",
        "rules[2]",
        "rules[1].match",
        "rules[3].depth",
    ]


def test_all_problems_are_found_at_once() -> None:
    """Unknown keys, wrong types and values that do not fit, of all tables together."""
    document = {
        "seeds": ["example.com", SEED, "x y"],
        "nmae": "x",
        "scope": {"include": ["(", ")"]},
        "limits": {"pages": "many", "depth": -1},
        "politeness": {"concurrency": 0},
        "identity": {"user_agents": ["\n"], "headers": {"Host": "x"}},
        "dedup": {"window": "367d"},
    }
    with pytest.raises(DefinitionError) as caught:
        parse(document)
    assert sorted(problem.path for problem in caught.value.problems) == [
        "dedup.window",
        "identity.headers",
        "identity.user_agents",
        "limits.depth",
        "limits.pages",
        "nmae",
        "politeness.concurrency",
        "scope.include",
        "scope.include",
        "seeds",
        "seeds",
    ]


def test_many_bad_seeds_are_cut_short() -> None:
    """Twenty are named, the rest counted."""
    with pytest.raises(DefinitionError) as caught:
        parse({"seeds": [f"bad{place}" for place in range(50)]})
    assert len(caught.value.problems) == 21
    assert str(caught.value.problems[-1]) == "seeds: 30 more cannot be crawled"


@pytest.mark.parametrize("document", [None, 5, "x", [], [{}]])
def test_what_is_no_table_is_said_once(document: object) -> None:
    """A document of another shape is one problem."""
    assert problems(document) == {"": "it is no table of keys: see the guide"}
    assert str(Problem(path="", text="x")) == "x"


def test_a_list_that_could_not_be_read_is_not_missed() -> None:
    """What is wrong with seeds is said once, and not that there are none."""
    plan, found = read({"seeds": 5})
    assert [problem.path for problem in found] == ["seeds"]
    assert check(plan, found) == ()


# --- the guide and the starter ------------------------------------------------------------------


def uncommented(*, examples: bool) -> dict[str, Any]:
    """Read the starter with all keys that are comments, or with those that are no examples."""
    lines = []
    for line in STARTER.splitlines():
        named = re.match(r"# (\w+ = |\[\[)", line)
        if named and (examples or not line.endswith("# e.g.")):
            lines.append(line.removeprefix("# "))
        else:
            lines.append(line)
    return tomllib.loads("\n".join(lines))


def paths(document: dict[str, Any]) -> list[str]:
    """List the keys of a document."""
    return [
        path
        for name, value in document.items()
        for path in ([f"{name}.{key}" for key in value] if isinstance(value, dict) else [name])
    ]


def test_the_guide_has_every_key_in_order() -> None:
    """The table names all keys of the parser and no other, and options that there are."""
    keys = GUIDE.partition("## Patterns")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \|.*\| ([^|]*) \|$", keys, re.MULTILINE)
    assert [path for path, _ in rows] == [key.path for key in KEYS]
    of_the_guide = dict(rows)
    for key in KEYS:
        option = OPTIONS.get(key.part)
        shown = of_the_guide[key.path].strip("`").split()
        assert option is None or option in shown, key.path


def test_the_guide_shows_the_starter() -> None:
    """The example is what `orbweaver init` writes, to the letter."""
    assert f"```toml\n{STARTER}```\n" in GUIDE


def test_the_starter_is_in_order() -> None:
    """As written, and with every key that it names taken in."""
    assert parse(tomllib.loads(STARTER)) == Plan(seeds=(SEED,), pages_max=1_000)
    everything = uncommented(examples=True)
    assert paths(everything) == [key.path for key in KEYS]
    assert problems(everything, SEED) == {
        "schedule.cron": "'0 3 * * ? *' stands beside every: give one of them"
    }
    del everything["schedule"]["every"]
    parse(everything, "https://example.org/")


def test_the_starter_shows_defaults() -> None:
    """What it has as a comment, and is no example, is what holds without it."""
    defaults = replace(parse(uncommented(examples=False)), pages_max=None)
    assert defaults == Plan(seeds=(SEED,))
    assert (defaults.window_s, defaults.delay_ms) == (7 * DAY_S, 1_000)
