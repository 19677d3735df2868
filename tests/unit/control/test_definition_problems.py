"""Problems of definitions: all are reported at once, each with a fix."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from orbweaver.control.definition import (
    HINTS_MAX,
    NO_TABLE,
    DefinitionError,
    DefinitionProblem,
    check,
    parse,
    read,
)
from tests.unit.control.defining import SEED, problems

# --- invalid definitions ------------------------------------------------------------------------


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
def test_unknown_key_suggests_nearest(key: str, said: str) -> None:
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
        ("zzz", "dedup, records, render, schedule, notify"),
    ],
)
def test_unknown_table_is_one_problem_with_suggestion(table: str, said: str) -> None:
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
        ("limits.duration", "8d", "8d does not fit: give 1m to 7d"),
        ("limits.bytes", "10G", "'10G' does not fit: give a size like"),
        ("limits.bytes", -1, "-1 does not fit: give a size like"),
        ("limits.bytes", "99KB", "99KB does not fit: give 100KB to 1000TB"),
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
        ("identity.hosts", ["example.org"], "write [identity.hosts"),
        ("dedup.window", "367d", "give 0s to 366d"),
        ("dedup.strip_parameters", ["a=b"], "'a=b' is not a parameter's name"),
        ("records.noindex", "drop", "give record or skip"),
        ("records.bodies", "alle", "'alle' does not fit: did you mean all? It takes off or html"),
        ("records.text", "yes", "give true or false"),
        ("records.links", 1, "give true or false"),
        ("records.redact", "email", "give a list of texts"),
        ("records.redact", ["e-mail"], "give a list of email and phone"),
        ("schedule.every", 5, "5 does not fit: give a text in quotes"),
        ("schedule.every", "often", "'often' does not fit: give minutes, hours or days, like"),
        ("schedule.every", "1w", "'1w' does not fit: give minutes, hours or days"),
        ("schedule.every", "4m", "'4m' does not fit: give 5 minutes to 366 days"),
        ("network.timeout", "2m", "2m does not fit: give 1s to 1m"),
        ("network.retries", 11, "11 does not fit: give 0 to 10"),
        ("network.referer", "pages", "did you mean page? It takes off or page"),
        ("network.hosts", "a.test", 'write [network.hosts."example.org"] with timeout'),
        ("schedule.every", "367 days", "'367 days' does not fit: give 5 minutes to 366 days"),
        ("schedule.cron", "0 3 * * *", "it has 5 fields: give six, minutes hours"),
        ("schedule.cron", "0/4 * * * ? *", "leave 5 minutes between two times, and not 4"),
        ("schedule.timezone", "UTC", "'UTC' is for cron alone: leave it out, or give cron"),
        ("schedule.overlap", "skipp", "did you mean skip? It takes skip or allow"),
        ("notify.webhook", "http://secret.example/", "it is http: give an https URL"),
        ("notify.webhook", "https://me:secret@a.example/", "without user and password"),
        ("notify.webhook", "secret", "not an absolute URL: give an https URL"),
        ("auth", "basic:me:secret", "write [auth."),
    ],
)
def test_invalid_value_problem_has_key_value_and_fix(path: str, value: object, said: str) -> None:
    table, _, name = path.rpartition(".")
    document: dict[str, Any] = {"seeds": [SEED]}
    document.update({table: {name: value}} if table else {name: value})
    found = problems(document)
    assert list(found) == [path]
    assert said in found[path]
    assert "secret" not in found[path]


ACCESS = {
    "a.test": {"timeout": 0, "timout": "5s", "retries": 11},
    "b.test": {"referer": "pages"},
    "https://a.test": {},
    "a.test/b": {"retries": -1},
}
HEADERS = {
    "a.test": {"headers": {"Host": "s3cret"}, "header": {}},
    "b.test": {"headers": ["Host: s3cret"]},
    "https://a.test": {},
    "u:s3cret@a.test": {"headers": {"A": "s3cret"}},
    "c.test": "s3cret",
}
LOGINS = {
    "a.test": {"bearer": "s3cret", "bearre": "env:A"},
    "https://a.test": {"bearer": "env:A"},
    "a.test/b": {"basic": {"user": "", "password": "s3cret"}},
    "b.test": {"login": {"url": "ftp://b.test", "origins": ["a b", "c/d"]}},
    "c.test": "s3cret",
}


@pytest.mark.parametrize(
    ("table", "hosts", "expected"),
    [
        (
            "network.hosts",
            ACCESS,
            {
                "'a.test'.timeout": "0s does not fit: give 1s",
                "'a.test'.timout": "there is no such key: did you mean timeout?",
                "'a.test'.retries": "11 does not fit: give 0 to 10",
                "'b.test'.referer": "did you mean page?",
                "'https://a.test'": "https://a.test is given twice: put its keys in one table",
                "'a.test/b'": "is no host: give a host like example.org",
                "'a.test/b'.retries": "-1 does not fit",
            },
        ),
        (
            "identity.hosts",
            HEADERS,
            {
                "'a.test'.headers": "the header Host cannot be given",
                "'a.test'.header": "there is no such key: a host has headers",
                "'b.test'.headers": "give a table of names and texts",
                "'https://a.test'": "https://a.test is given twice: put its headers in one table",
                r"'\u2026@a.test'": "is no host: give a host like example.org",
                "'c.test'": "give a table: write [identity.hosts",
            },
        ),
        (
            "auth",
            LOGINS,
            {
                "'a.test'.bearer": "give a reference to the secret",
                "'a.test'.bearre": "did you mean bearer?",
                "'https://a.test'": "https://a.test is given twice: give one login for each origin",
                "'a.test/b'": "is no host: give a host like example.org",
                "'a.test/b'.basic.user": "there is none: give the user name",
                "'a.test/b'.basic.password": "give a reference to the secret",
                "'b.test'.login": "a URL of the login cannot be requested",
                "'b.test'.login.fields": "there is none",
                "'b.test'.login.check": "there is none",
                "'b.test'.login.origins": "is no host",
                "'c.test'": "give a table: write [auth",
            },
        ),
    ],
)
def test_all_problems_of_hosts_are_reported(
    table: str, hosts: dict[str, Any], expected: dict[str, str]
) -> None:
    outer, _, inner = table.partition(".")
    found = problems({"seeds": [SEED], outer: {inner: hosts} if inner else hosts})
    assert {path.removeprefix(f"{table}.") for path in found} == expected.keys()
    for path, said in expected.items():
        assert said in found[f"{table}.{path}"]
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("key", "path", "said"),
    [
        ("bearre", "auth.'https://a.test'.bearre", "did you mean bearer?"),
        ("s3cret-t0ken", "auth.'https://a.test'", "an origin has basic, bearer"),
    ],
)
def test_unknown_key_of_login_is_shown_only_if_similar(key: str, path: str, said: str) -> None:
    """A secret may have been typed in its place."""
    found = problems({"seeds": [SEED], "auth": {"https://a.test": {key: "env:A"}}})
    assert said in found[path]
    assert "s3cret" not in str(found)


ONE, SHOP = {"match": "/a", "depth": 1}, {"match": "/a", "mode": "auto"}


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
        ([{**ONE, "delay": "2d"}], "rules[0].delay", "2d does not fit: give 0s to 1d"),
        ([{**ONE, "delay": "soon"}], "rules[0].delay", "'soon' does not fit: give a time like"),
        ([{**ONE, "window": "367d"}], "rules[0].window", "give 0s to 366d"),
        ([{**ONE, "priority": "hihg"}], "rules[0].priority", "did you mean high? It takes normal"),
        ([{**ONE, "follow": "no"}], "rules[0].follow", "'no' does not fit: give true or false"),
        ([{**ONE, "record": 0}], "rules[0].record", "0 does not fit: give true or false"),
        ([{**ONE, "match": "a" * 900}] * 28, "rules", "25,200 characters are too many"),
        (SHOP, "render.rules", "a table does not fit: write [[render.rules]] above each of them"),
        ([SHOP] * 51, "render.rules", "51 rules are too many: give at most 50"),
        ([SHOP, 5], "render.rules[1]", "5 does not fit: give a table like { match = '/shop/'"),
        ([{"mode": "auto"}], "render.rules[0].match", "there is none: give a pattern of URLs"),
        ([{"match": "/a"}], "render.rules[0].mode", 'there is none: give "never", "auto" or'),
        ([{**SHOP, "match": "("}], "render.rules[0].match", "is not a regular expression: missing"),
        ([SHOP, {**SHOP, "match": ""}], "render.rules[1].match", "'' is found in every URL"),
        ([{**SHOP, "mode": "alwys"}], "render.rules[0].mode", "did you mean always?"),
        (
            [{**SHOP, "modes": 1}],
            "render.rules[0].modes",
            "there is no such key: did you mean mode?",
        ),
        ([{**SHOP, "match": "a" * 900}] * 28, "render.rules", "25,200 characters are too many"),
    ],
)
def test_invalid_rule_problem_has_place_value_and_fix(rules: object, path: str, said: str) -> None:
    document: dict[str, object] = {"rules": rules}
    document = {"render": document} if path.startswith("render.") else document
    found = problems({"seeds": [SEED], **document})
    assert list(found) == [path]
    assert said in found[path]


@pytest.mark.parametrize(
    ("records", "said"),
    [({"redact": ["email"]}, "cannot be redacted"), ({"bodies": "off"}, "stored beside bodies")],
)
def test_screenshots_with_redaction_are_refused(records: dict[str, Any], said: str) -> None:
    """A screenshot would show the redacted text."""
    document = {"seeds": [SEED], "render": {"screenshot": True}}
    assert parse(document).screenshots
    found = problems({**document, "records": records})
    assert list(found) == ["render.screenshot"]
    assert said in found["render.screenshot"]


def test_all_problems_of_rules_are_reported() -> None:
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


def test_all_problems_of_all_tables_are_reported() -> None:
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


def test_bad_seeds_beyond_twenty_are_only_counted() -> None:
    with pytest.raises(DefinitionError) as caught:
        parse({"seeds": [f"bad{place}" for place in range(50)]})
    assert len(caught.value.problems) == 21
    assert str(caught.value.problems[-1]) == "seeds: 30 more cannot be crawled"


def test_hints_for_unknown_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint compares a name with all keys, so only the first problems get one."""
    compared: list[str] = []
    nearest = difflib.get_close_matches

    def counted(word: str, *given: Any, **named: Any) -> list[str]:
        compared.append(word)
        return nearest(word, *given, **named)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    found = problems({"limits": {f"k{place}": 1 for place in range(5_000)}})
    assert len(found) > 5_000
    assert len(compared) <= 2 * HINTS_MAX
    assert found["limits.k4999"] == "there is no such key"


@pytest.mark.parametrize("document", [None, 5, "x", [], [{}]])
def test_document_of_other_type_is_one_problem(document: object) -> None:
    assert problems(document) == {"": NO_TABLE}
    assert "docs/definition.md" in NO_TABLE
    assert str(DefinitionProblem(path="", text="x")) == "x"


def test_unreadable_seeds_are_not_also_reported_missing() -> None:
    plan, found = read({"seeds": 5})
    assert [problem.path for problem in found] == ["seeds"]
    assert check(plan, found) == ()
