"""`init`, `check` and `--config`: definitions, options that replace their keys, and items."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from orbweaver.cli.commands import init_check
from orbweaver.cli.commands.init_check import api_words, item_rules
from orbweaver.cli.crawl_template import STARTER
from orbweaver.cli.live import lines
from orbweaver.model.api_source import ApiSource
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.item_rules import Field, ItemRule, ValueKind, ValueSource
from tests.unit.cli.fakes import SITE, Stage
from tests.unit.cli.views import CRAWL, view_of

RUN = "example.com-20261121-090000"
WHOLE = f"""
seeds = ["{SITE}/a"]
sitemaps = ["{SITE}/s.xml"]
priority = "high"
[scope]
links = "prefix"
include = ["/a"]
exclude = ["/login"]
[limits]
depth = 1
pages = 7
duration = "2h"
[politeness]
delay = 0
robots = false
nofollow = false
[identity]
user_agents = ["mine/1"]
headers = {{ Authorization = "Bearer k", DNT = "1" }}
proxies = false
[dedup]
window = 0
[records]
canonical = true
noindex = "skip"
[[rules]]
match = '/a$'
priority = "high"
window = "1h"
[[rules]]
match = "/a/"
depth = 3
priority = "normal"
delay = "1500ms"
follow = false
record = false
[[rules]]
match = "/b"
follow = true
record = true
"""


@pytest.mark.parametrize(
    ("delay", "said"),
    [("50", "delay 50 s between two requests to a host (50ms for milliseconds)"), ("50ms", "")],
)
def test_long_delay_is_reported(delay: str, said: str, stage: Stage) -> None:
    assert stage.errors(f"start {SITE} --delay {delay}", code=0).startswith(said)
    assert said or "delay" not in stage.noted


def put(stage: Stage, text: str, name: str = "crawl.toml") -> None:
    (stage.folder / name).write_text(text)


# --- init ---------------------------------------------------------------------------------------


def test_init_writes_valid_definition_and_never_overwrites(stage: Stage) -> None:
    assert stage.run("init") == 0
    assert (stage.folder / "crawl.toml").read_text() == STARTER
    assert "edit its seeds, then run `orbweaver check crawl.toml`" in stage.said
    assert stage.run("check crawl.toml") == 0
    put(stage, "mine")
    assert "crawl.toml already exists: give another name" in stage.errors("init crawl.toml")
    assert (stage.folder / "crawl.toml").read_text() == "mine"
    assert stage.run("init no/such/folder.toml") == 2
    assert "cannot be written: No such file or directory" in stage.noted


# --- check --------------------------------------------------------------------------------------


def test_check_of_minimal_definition_shows_defaults(stage: Stage) -> None:
    put(stage, f'seeds = ["{SITE}"]')
    assert stage.run("check crawl.toml") == 0
    for words in (
        "crawl.toml is valid; no request was sent",
        "name      example.com: runs of this name share",
        f"begins    at {SITE}/\n",
        "with the sitemaps in robots.txt of the seeds' hosts",
        "follows   links to the host of their page, up to 20 links deep",
        "requests  every 1 s per host, 1 request at a time",
        "at most 3,428 pages an hour per host",
        "what robots.txt allows",
        "skips     URLs that a run of this name saw within 7 days",
        "ends      when nothing is left, or after 7 days",
        "at 1,000,000 URLs at most (by default)",
        "keeps     the bodies of HTML pages",
        "never     renders pages",
    ):
        assert words in stage.said
    assert stage.machine.asked == []
    put(stage, f'seeds = ["{SITE}"]\nrecords.bodies = "all"')
    assert stage.run("check crawl.toml") == 0
    assert "keeps     the bodies of whatever is fetched, HTML or not" in stage.said


def test_check_of_full_definition_shows_changes_and_no_secret(stage: Stage) -> None:
    put(stage, WHOLE)
    assert stage.run("check crawl.toml") == 0
    for words in (
        f"with the URLs in {SITE}/s.xml",
        "links below the folders of the seeds, up to 1 link deep",
        "only URLs that match one of /a",
        "no URL that matches one of /login",
        "as fast as a host responds, 16 requests at a time: for your own sites",
        "IGNORES robots.txt",
        "IGNORES nofollow",
        "as mine/1",
        "with the headers Authorization (the seeds' own origins only), DNT",
        "without proxies",
        "before other crawls",
        "nothing: every URL is requested again, once",
        "or after 2 hours",
        "at 7 URLs at most (exactly)",
        "records pages with noindex",
        "records pages that name another URL as canonical",
        "rules     [0] URLs that match /a$: priority high, window 1 h\n",
        "[1] URLs that match /a/: depth 3, priority normal, delay 1.5 s, links not followed, not",
        "[2] URLs that match /b: links followed, recorded\n",
    ):
        assert words in stage.said
    assert "Bearer" not in stage.said


@pytest.mark.parametrize(("seeds", "said"), [(5, "4\n"), (7, "4 and 2 more\n")])
def test_check_shows_five_seeds_and_counts_the_rest(stage: Stage, seeds: int, said: str) -> None:
    put(stage, f"seeds = {[f'{SITE}/{number}' for number in range(seeds)]}")
    assert f"{SITE}/3, {SITE}/{said}" in stage.output("check")


def test_check_marks_seeds_for_local_stacks_only(stage: Stage) -> None:
    """A store or a local stack may request its own machine, but no private network or odd port."""
    put(stage, f'seeds = ["{SITE}/"]')
    assert "this machine only" not in stage.output("check")
    seeds = ["http://localhost:8000/", "http://127.0.0.1:4711/", "http://10.0.0.1/", f"{SITE}:9/"]
    put(stage, f"seeds = {seeds}")
    stage.shows(
        "check",
        " on this machine only at http://localhost:8000/, http://127.0.0.1:4711/: a stack on AWS"
        " refuses that\n",
        "requests http://10.0.0.1/ (10.0.0.1 is private, unless a stack allows it), ",
        f"{SITE}:9/ (port 9 is not one of 80, 443, ",
    )


def test_check_notes_duplicate_seeds_and_http_webhooks(stage: Stage) -> None:
    webhook = '[notify]\nwebhook = "http://127.0.0.1:9000/"\n'
    put(stage, f'seeds = ["{SITE}/", "{SITE}/b", "{SITE}/#a", "{SITE}/?utm_source=x"]\n{webhook}')
    assert f"once at each seed; given more than once: {SITE}/\n" in stage.output("check")
    assert "over http: only a stack on this machine accepts the crawl" in stage.said


@pytest.mark.parametrize(
    ("seed", "scope", "warned"),
    [
        ("https://www.example.org/", "host", True),
        ("https://www.example.org/", "prefix", True),
        ("https://example.org/docs/", "prefix", False),
        ("http://example.org/", "host", False),
        ("https://www.example.org/", "domain", False),
        ("https://other.example/", "any", False),
    ],
)
def test_login_at_unrequested_origin_is_warned_about(
    stage: Stage, seed: str, scope: str, *, warned: bool
) -> None:
    auth = '[auth."https://example.org"]\nbearer = "secret:the/logins/a"\n'
    put(stage, f'seeds = ["{seed}"]\nscope.links = "{scope}"\n{auth}')
    said = "auth: https://example.org: no seed, sitemap or scope is at this origin"
    assert (said in stage.output("check")) == warned
    assert (f"warning: {said}" in stage.errors("start --config crawl.toml", code=0)) == warned


def test_check_refuses_schedule_without_future_times(stage: Stage) -> None:
    put(stage, f'seeds = ["{SITE}/"]\n[schedule]\ncron = "0 3 * * ? 2020-2024"\n')
    assert stage.run("check") == 2
    said = "line 3: schedule.cron: '0 3 * * ? 2020-2024' never comes: its last year is 2024, which"
    assert said in stage.noted
    assert stage.run("start --config crawl.toml") == 0


def test_check_as_json_has_definition_without_header_values(stage: Stage) -> None:
    put(stage, WHOLE)
    (line,) = stage.output("check crawl.toml --json").splitlines()
    told = json.loads(line)
    assert told["definition"]["rules"][0] == {"match": "/a$", "priority": "high", "window": "3600s"}
    limits = {"depth": 1, "pages": 7, "stop_when_nothing_new": False, "duration": "7200s"}
    assert told["definition"]["limits"] == limits
    assert "Bearer" not in line


@pytest.mark.parametrize(
    ("options", "reference", "said"),
    [
        ("", "ssm:/the/logins/a", "auth: ssm: is read by a stack on AWS only"),
        ("--target local", "secret:a", "store it below the/logins/, and give secret:the/logins/"),
        ("--target local", "env:A", "env: is on this machine"),
    ],
)
def test_check_of_login_needs_readable_references(
    stage: Stage, options: str, reference: str, said: str
) -> None:
    put(stage, f'seeds = ["{SITE}/"]\n[auth."{SITE}"]\nbearer = "{reference}"\n')
    stage.machine.up_already = True
    assert said in stage.errors(f"check --login {options}")


def test_check_names_all_problems_with_exit_code_2(stage: Stage) -> None:
    put(stage, 'seeds = ["x"]\nseeds_file = "no.txt"\nnmae = 1\n[scope]\ninclude = ["("]\n')
    first, *others = stage.errors("check crawl.toml").splitlines()
    assert first == "crawl.toml: 4 problems"
    assert [line.strip().split(": ")[:2] for line in others] == [
        ["line 1", "seeds"],
        ["line 2", "seeds_file"],
        ["line 3", "nmae"],
        ["line 5", "scope.include"],
    ]
    assert "seeds_file: no.txt cannot be read: No such file or directory" in stage.noted
    put(stage, 'seeds_file = "no.txt"\n')
    assert stage.run(f"crawl {SITE} --config crawl.toml") == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.yaml",
            b"seeds: x",
            "a.yaml: YAML is not supported: write the definition as TOML or JSON",
        ),
        ("a.toml", b"seeds = x", "a.toml is not TOML: Invalid value (at line 1, column 9)"),
        ("a.json", b"{", "a.json is not JSON: Expecting property name"),
        ("a.json", b"[" * 100_000, "a.json is nested too deeply"),
        ("a.json", b"[]", "it is no table of keys"),
        ("a.toml", b"\xff", "a.toml is not UTF-8 text (byte 0): save it as such"),
        ("a.toml", b'seeds_file = "\\u0000"', "seeds_file: "),
        ("a.toml", b"#" * 200, "a.toml has more than 100 B: give a smaller one"),
    ],
)
def test_unreadable_file_is_named_with_reason_and_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str
) -> None:
    if len(content) == 200:
        monkeypatch.setattr(init_check, "FILE_BYTES_MAX", 100)
    (stage.folder / name).write_bytes(content)
    assert said in stage.errors(f"check {name}")


def test_missing_definition_names_init(stage: Stage) -> None:
    assert stage.run("check mine.toml") == 2
    assert "there is no mine.toml: `orbweaver init mine.toml` creates one" in stage.noted
    (stage.folder / "folder").mkdir()
    assert "folder cannot be read: Is a directory" in stage.errors("check folder")


# --- crawls from a definition -------------------------------------------------------------------


def test_crawl_with_definition_has_all_its_parts(stage: Stage) -> None:
    put(stage, WHOLE)
    assert stage.run("crawl --config crawl.toml") == 0
    crawl = stage.world.crawls[RUN]
    assert (crawl.seeds, crawl.sitemap_urls) == ((f"{SITE}/a",), (f"{SITE}/s.xml",))
    assert (crawl.scope, crawl.include, crawl.exclude) == (Scope.PREFIX, ("/a",), ("/login",))
    assert (crawl.depth_max, crawl.pages_max, crawl.duration_max_s) == (1, 7, 7_200)
    assert (crawl.delay_ms, crawl.obey_robots, crawl.express) == (0, False, True)
    assert (crawl.window_s, crawl.proxied, crawl.user_agents) == (0, False, ("mine/1",))
    assert (crawl.canonical_only, crawl.noindex_skipped) == (True, True)


def test_options_replace_keys_of_definition(stage: Stage) -> None:
    put(stage, WHOLE.replace("depth = 1", "depth = -1"))
    words = f"{SITE}/b --max-depth 20 --delay 1s --scope host --noindex record --priority normal"
    assert stage.run(f"crawl --config crawl.toml {words} --proxies yes --include /b") == 0
    crawl = stage.world.crawls[RUN]
    assert (crawl.seeds, crawl.include, crawl.exclude) == ((f"{SITE}/b",), ("/b",), ("/login",))
    assert (crawl.depth_max, crawl.delay_ms, crawl.scope) == (20, 1_000, Scope.HOST)
    assert (crawl.noindex_skipped, crawl.express, crawl.proxied) == (False, False, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--max-pages 0", "--max-pages: 0 does not fit: give 1 to 100,000,000"),
        ("--exclude (", "--exclude: '(' is not a regular expression: missing )"),
        (f"{SITE}/login", f"scope.exclude: '/login' leaves out the seed '{SITE}/login'"),
        ("--config no.toml", "there is no no.toml"),
        ("--auth a.test=bearer:x", "crawl.toml: 1 problem\n  --auth: 'a.test'.bearer: give a"),
    ],
)
def test_problems_name_option_or_key_of_origin(stage: Stage, line: str, said: str) -> None:
    put(stage, WHOLE)
    assert said in stage.errors(f"crawl --config crawl.toml {line}")
    assert stage.machine.asked == []


def test_seeds_come_from_file_or_standard_input(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "jobs").mkdir()
    put(stage, 'seeds_file = "seeds.txt"\n[politeness]\ndelay = 0\n', "jobs/crawl.toml")
    (stage.folder / "jobs/seeds.txt").write_text(f"# mine\n\n{SITE}/1\n{SITE}/2\n")
    assert stage.run("crawl --config jobs/crawl.toml --name one") == 0
    typed = f"{SITE}/3\n# no\n{SITE}/4\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    put(stage, 'seeds_file = "-"', "input.toml")
    assert stage.run("crawl --config input.toml --name two") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert stage.run(f"crawl - {SITE}/5 --name three") == 0
    found = {crawl.name: crawl.seeds for crawl in stage.world.crawls.values()}
    assert (found["one"], found["two"]) == ((f"{SITE}/1", f"{SITE}/2"), (f"{SITE}/3", f"{SITE}/4"))
    assert found["three"] == (f"{SITE}/5", f"{SITE}/3", f"{SITE}/4")


def test_start_with_definition_prints_id_of_its_crawl(stage: Stage) -> None:
    stage.machine.up_already = True
    put(stage, json.dumps({"seeds": [SITE], "name": "site"}), "site.json")
    assert stage.run("start --config site.json") == 0
    assert stage.said.splitlines()[-1] in stage.world.crawls
    assert next(iter(stage.world.crawls.values())).name == "site"


# --- texts about items ----------------------------------------------------------------------------

RULE = ItemRule(
    name="books",
    match="/book/",
    fields=(
        Field(name="title", required=True),
        Field(name="price", type=ValueKind.PRICE),
        Field(name="tags", many=True),
    ),
)


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (RULE, "one per page"),
        (replace(RULE, each="li.book"), "one per li.book"),
        (replace(RULE, source=ValueSource.JSONLD, of="Product"), "one per Product in jsonld"),
        (replace(RULE, source=ValueSource.OPENGRAPH), "one per page, from og"),
        (replace(RULE, extractor="books"), "items of the function books"),
    ],
)
def test_rule_is_described_in_a_line_and_tables_with_columns(rule: ItemRule, what: str) -> None:
    assert [*item_rules(replace(CRAWL, items=(rule,)))] == [
        ("items", f"books: URLs that match /book/, {what}: title!, price (price), tags (list)"),
        ("exports", "items/shop/books: 4 columns in total; ! marks a required field"),
    ]


def test_crawl_without_rules_has_no_lines() -> None:
    assert [*item_rules(CRAWL)] == []


@pytest.mark.parametrize(
    ("total", "said"),
    [
        ({}, ""),
        ({"items": 1}, "1 item, 0 invalid"),
        ({"items": 2_000, "items_invalid": 25}, "2,000 items, 25 invalid (1.2 %)"),
    ],
)
def test_items_are_counted_with_share_of_invalid_ones(total: dict[str, int], said: str) -> None:
    assert lines.items(view_of(total)) == said


def test_post_without_body_is_shown_with_one_colon() -> None:
    url = "https://a.example/v1#POST-form:"
    words = dict(api_words(replace(CRAWL, apis=(ApiSource(url=url),))))
    assert words["api"] == f"{url} one page, up to 1,000 pages"
