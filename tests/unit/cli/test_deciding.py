"""The commands `url` and `robots`, which need no stack."""

from __future__ import annotations

import json

import pytest

from orbweaver.model.http_exchange import Response
from tests.unit.cli.fakes import SITE, Stage
from tests.unit.stage import answer

# --- url ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("url HTTP://Example.COM:80/a/../b?utm_source=x#y", 0, "http://example.com/b\n"),
        ("url ../c --base http://example.com/a/b", 0, "http://example.com/c\n"),
        ("url ../c", 2, "'../c': not an absolute URL: give"),
        ("url x --base ../c", 2, "'../c': not an absolute URL: give"),
        ("url http://me:secret@[/?token=x", 2, "'http://…@[/?…': not an absolute URL: give"),
        ("url http://x --seed example.com", 2, "URL: 'example.com' cannot be crawled"),
        ("url http://x --strip-parameter a=b", 2, "--strip-parameter: 'a=b' is not a parameter's"),
    ],
)
def test_url_resolves_reference_to_canonical_form(
    stage: Stage, line: str, code: int, said: str
) -> None:
    assert stage.run(line) == code
    assert (stage.said + stage.noted).startswith(said)


def test_url_names_rules_of_definition(stage: Stage) -> None:
    (stage.folder / "crawl.toml").write_text(
        'seeds = ["http://example.com/"]\n'
        '[[rules]]\nmatch = "/a"\ndepth = 0\npriority = "high"\n'
        '[[rules]]\nmatch = "b$"\ndepth = 3\nrecord = false\n'
    )
    told = json.loads(stage.output("url http://example.com/a/b --config crawl.toml --json"))
    assert (told["followed"], told["refusal"]) == (False, "depth")
    assert told["rules"] == ["[0] depth 0, priority high", "[1] not recorded"]
    assert stage.run("url http://example.com/b --config crawl.toml") == 0
    assert "  rules     [1] depth 3, not recorded\n" in stage.said
    assert stage.run("url http://example.com/b --config none.toml") == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "http://a:81/x",
            {"url": "http://a:81/x", "host": "http://a:81", "site": "a", "changes": []},
        ),
        (
            "HTTP://example.com/?utm_id=1",
            {"changes": ["scheme in lower case", "parameter utm_id taken out"]},
        ),
        (
            "http://example.com/?utm_id=1&ref=2 --keep-parameters --strip-parameter ref",
            {"url": "http://example.com/?utm_id=1", "changes": ["parameter ref taken out"]},
        ),
        (
            "/b --base http://example.com/a",
            {
                "followed": True,
                "refusal": None,
                "rule": "scope host: same host as the linking page (http://example.com)",
            },
        ),
        (
            "https://www.example.com/ --seed https://example.com/",
            {
                "followed": False,
                "refusal": "scope",
                "rule": "scope host: https://www.example.com is not https://example.com,"
                " the host of the linking page",
            },
        ),
        (
            "https://www.example.co.uk/ --scope domain --seed http://example.co.uk/",
            {
                "followed": True,
                "rule": "scope domain: same domain as the linking page (example.co.uk)",
            },
        ),
        (
            "https://b.github.io/ --scope domain --base https://a.github.io/",
            {"refusal": "scope", "site": "b.github.io"},
        ),
        (
            "https://x/docs/b --scope prefix --seed https://x/y --seed https://x/docs/a",
            {"followed": True, "rule": "scope prefix: below https://x/"},
        ),
        (
            "https://x/b --scope prefix --seed https://x/docs/a",
            {"followed": False, "rule": "scope prefix: not below https://x/docs/"},
        ),
        (
            "https://x/b --scope any --base https://y/",
            {"followed": True, "rule": "scope any: every host belongs"},
        ),
        (
            f"https://x{'/a/b' * 11}",
            {
                "refusal": "path_depth",
                "rule": "more than 20 segments in its path, or labels in its host",
            },
        ),
        ("https://x/a/b/a/b/a/b", {"refusal": "repetition"}),
        (f"https://x/?{'a&' * 30}", {"refusal": "query"}),
        ("http://x/", {"never_asked": None, "rule": "same URL as the page or seed"}),
        ("http://10.0.0.1/", {"never_asked": "10.0.0.1 is private"}),
        ("http://[::1]:8080/ --seed http://x/", {"never_asked": "::1 is loopback"}),
        (
            "http://[::1]:6379/",
            {
                "never_asked": None,
                "asked_by": "only by a stack on this machine, because the seeds name this server:"
                " ::1 is loopback",
            },
        ),
        ("http://x:6379/", {"never_asked": "port 6379 is not one of 80, 443, 8000, 8080, 8443"}),
    ],
)
def test_url_names_rule_of_scope_and_changes(
    stage: Stage, line: str, expected: dict[str, object]
) -> None:
    body = stage.run_json(f"url {line} --json")[0]
    assert {key: body[key] for key in expected} == expected
    assert len(body["hash"]) == 32


def test_url_decides_as_local_stack_for_local_seeds(stage: Stage) -> None:
    """A local stack may request addresses that its seeds name. A stack on AWS may not."""
    stage.machine.up_already = True
    stage.machine.function = {"ORBWEAVER_ALLOW_ADDRESSES": "127.0.0.0/8"}
    line = "url http://127.0.0.1:8800/a --seed http://127.0.0.1:8800/ --json"
    assert stage.run_json(line)[0]["never_asked"] is None
    stage.machine.function = {}
    assert stage.run_json(f"{line} --target aws")[0]["never_asked"] == "127.0.0.1 is loopback"
    assert "omit --target aws" in stage.errors(f"{line} --target aws --port 4566")


def test_url_prints_canonical_form_first_then_reasons(stage: Stage) -> None:
    stage.run("url HTTP://u:p@example.com/a/a/a#x --seed http://example.com/")
    url, *lines = stage.said.splitlines()
    assert url == "http://example.com/a/a/a"
    assert [line for line in lines if "hash" not in line] == [
        "  changes   scheme in lower case",
        "            user name and password dropped",
        "            fragment dropped",
        "  host      http://example.com",
        "  site      example.com",
        "  followed  no",
        "  refusal   repetition",
        "  rule      a segment of its path, or a label of its host, more than 2 times",
    ]


# --- robots -------------------------------------------------------------------------------------


RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 5\nSitemap: https://example.com/s.xml"


@pytest.mark.parametrize(
    ("url", "robots", "expected"),
    [
        (
            f"{SITE}/a",
            answer(200, RULES),
            {"allowed": True, "why": "no rule matches", "crawl_delay_s": 5.0},
        ),
        (
            f"{SITE}/private/x",
            answer(200, RULES),
            {
                "allowed": False,
                "why": "line 2: Disallow: /private",
                "line": 2,
                "rule": "Disallow: /private",
                "group": "User-agent: *",
                "sitemaps": ["https://example.com/s.xml"],
            },
        ),
        (f"{SITE}/a", answer(404), {"allowed": True, "bytes": None}),
        (
            f"{SITE}/a",
            answer(503),
            {"allowed": False, "why": "unreachable, so nothing is allowed: HTTP 503"},
        ),
        # Status 429 does not reveal the rules, so the host refuses all URLs for now.
        (f"{SITE}/", answer(429), {"allowed": False}),
        ("https://down.example/", answer(200), {"allowed": False}),
    ],
)
def test_robots_prints_decision_and_line_of_crawl(
    stage: Stage, url: str, robots: Response, expected: dict[str, object]
) -> None:
    stage.answers[f"{SITE}/robots.txt"] = robots
    body = stage.run_json(f"robots {url} --json")[0]
    assert {key: body[key] for key in expected} == expected


def test_robots_quotes_deciding_rule(stage: Stage) -> None:
    stage.answers[f"{SITE}/robots.txt"] = answer(200, RULES)
    assert "allowed        no" in stage.output(f"robots {SITE}/private/x --user-agent me/1.0")
    assert "why            line 2: Disallow: /private\n" in stage.said
    assert "group          User-agent: *\n" in stage.said
    assert "rule" not in stage.said
    assert "user_agent     me/1.0" in stage.said
    assert "sitemaps       https://example.com/s.xml" in stage.said
