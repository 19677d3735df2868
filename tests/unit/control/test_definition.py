"""The definition of a crawl: how keys become a plan, and that the guide is correct."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from orbweaver.cli.crawl_options import OPTIONS
from orbweaver.cli.crawl_template import STARTER
from orbweaver.control.crawl_spec import SETTINGS, CrawlSpec, Overlap
from orbweaver.control.definition import document_of, lines_of, parse, seeds_file_of
from orbweaver.control.definition_keys import KEYS, TABLES
from orbweaver.control.spec_checks import crawl_of
from orbweaver.extraction.extract import Field, ItemRule
from orbweaver.model import crawl_codec
from orbweaver.model.api_source import ApiSource, Paging, PagingBy
from orbweaver.model.auth import Login, OriginAuth, PageCheck
from orbweaver.model.crawl import DAY_S
from orbweaver.model.crawl_settings import (
    WEEK_S,
    Bodies,
    CrawlSettings,
    HostAccess,
    Referer,
    RenderMode,
    RenderRule,
    Scope,
)
from orbweaver.model.url_rules import UrlRule
from tests.unit.control.defining import DOCUMENT, SEED, problems

GUIDE = (Path(__file__).parents[3] / "docs/definition.md").read_text()
PLAN = CrawlSpec(
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
    stop_when_nothing_new=True,
    host_pages_max=50,
    bytes_max=10_000_000_000,
    nanodollars_max=250_000_000,
    duration_max_s=7_200,
    delay_ms=250,
    concurrency=2,
    obey_robots=False,
    obey_nofollow=False,
    user_agents=("a/1",),
    headers=(("X-Key", "k"),),
    cookies=True,
    host_headers=(("example.org", (("X-Key", "s"),)),),
    proxied=False,
    ca_bundle="/ca.pem",
    client_cert="/me.pem:/me.key",
    insecure_hosts=("a.example.org",),
    timeout_ms=30_000,
    retries=2,
    referer=Referer.PAGE,
    host_access=(
        HostAccess(origin="example.org", timeout_ms=60_000, retries=0, referer=Referer.OFF),
    ),
    window_s=0,
    strip_parameters=("ref",),
    keep_parameters=True,
    canonical_only=True,
    noindex_skipped=True,
    bodies=Bodies.ALL,
    status_only=True,
    texts=True,
    links=True,
    redacted=("email", "phone"),
    render=RenderMode.AUTO,
    render_rules=(RenderRule(match="/c", mode=RenderMode.ALWAYS),),
    cron="0 3 * * ? *",
    timezone="Europe/Berlin",
    overlap=Overlap.ALLOW,
    webhook=f"{SEED}hook",
    auth=(
        OriginAuth(origin="example.org", bearer="env:TOKEN"),
        OriginAuth(
            origin="https://wiki.example.org",
            login=Login(
                url="/login",
                form="#login",
                inputs=(("user", "me"), ("password", "secret:wiki")),
                check=PageCheck(url="/me", status=200, selector="a.out", text="Hello"),
                lost=PageCheck(selector="#login", url="/login", status=404, without="a.out"),
                logout="/bye",
                origins=("https://sso.example.net",),
            ),
        ),
    ),
    apis=(
        ApiSource(url=f"{SEED}v1", links="$.u[*]", pages_max=5, paging=Paging(by=PagingBy.LINK)),
        ApiSource(
            url=f"{SEED}v2",
            paging=Paging(
                by=PagingBy.OFFSET, parameter="from", start=1, step=10, total="$.n", more="$.more"
            ),
        ),
        ApiSource(url=f"{SEED}v4#POST-json:{{%22q%22:[%22a%20b%22]}}"),
        ApiSource(url=f"{SEED}v5#POST-form:q%3Da%2Bb"),
        ApiSource(url=f"{SEED}v6#POST-form:"),
        ApiSource(url=f"{SEED}v3", paging=Paging(by=PagingBy.CURSOR, path="$.c", parameter="c")),
    ),
    rules=(
        UrlRule(
            match="/a",
            depth_max=2,
            express=True,
            delay_ms=1_500,
            window_s=3_600,
            follow=False,
            record=False,
        ),
        UrlRule(match="/b", express=False, follow=True, record=True),
    ),
    items=(ItemRule(name="books", match="/b/", fields=(Field(name="title", where="h1"),)),),
)


# --- valid definitions --------------------------------------------------------------------------


def test_definition_with_every_key_becomes_plan() -> None:
    assert parse(DOCUMENT) == PLAN
    for field in fields(CrawlSpec):
        # Keys that belong to the run, replace `cron`, or exclude redaction.
        if field.name not in ("id", "every", "screenshots"):
            assert getattr(PLAN, field.name) != getattr(CrawlSpec(), field.name), field.name


def test_plan_written_as_definition_reads_back() -> None:
    assert parse(document_of(PLAN)) == PLAN
    assert "name" not in document_of(CrawlSpec(seeds=(SEED,)))


def test_definition_of_one_seed_has_defaults() -> None:
    assert parse({"seeds": [SEED]}) == CrawlSpec(seeds=(SEED,))


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
def test_durations_are_texts_or_seconds(value: object, delay_ms: int) -> None:
    assert parse({"seeds": [SEED], "politeness": {"delay": value}}).delay_ms == delay_ms


def test_duration_and_patterns_reach_crawl() -> None:
    crawl = crawl_of(PLAN, 0)
    assert (crawl.duration_max_s, crawl.include, crawl.exclude) == (7_200, ("/a",), ("/b",))
    assert crawl_of(CrawlSpec(seeds=(SEED,)), 0).duration_max_s == WEEK_S


def test_every_setting_survives_stored_form() -> None:
    crawl = crawl_of(PLAN, 0)
    assert crawl_codec.from_fields(json.loads(json.dumps(crawl_codec.to_fields(crawl)))) == crawl
    for field in fields(CrawlSettings):
        if field.name != "screenshots":
            assert getattr(crawl, field.name) != field.default, field.name


def test_every_setting_is_declared_once() -> None:
    for names in (
        [one.key for one in SETTINGS],
        [one.name for one in SETTINGS],
        [one.flag for one in SETTINGS if one.flag],
    ):
        assert len(names) == len(set(names))
    assert all(one.help for one in SETTINGS if one.flag)


def test_seeds_file_skips_comments_and_empty_lines() -> None:
    """A # inside a line is part of the URL."""
    lines = "\ufeff# some\n\n  https://a.example/#x  \r\nhttps://b.example/\n  # no\n"
    assert lines_of(lines) == ("https://a.example/#x", "https://b.example/")
    document = {"seeds": [SEED], "seeds_file": "seeds.txt"}
    assert seeds_file_of(document) == "seeds.txt"
    assert parse(document, lines).seeds == (SEED, "https://a.example/#x", "https://b.example/")
    assert problems(document) == {
        "seeds_file": "'seeds.txt': no file can be read here: give its lines as seeds"
    }
    assert seeds_file_of({"seeds_file": 5}) is seeds_file_of([]) is None


# --- the guide and the starter ------------------------------------------------------------------


def uncommented(*, examples: bool) -> dict[str, Any]:
    """Return the starter with all commented keys active, or without the examples."""
    lines = []
    for line in STARTER.splitlines():
        named = re.match(r"# (\w+ = |\[)", line)
        if named and (examples or not line.endswith("# e.g.")):
            lines.append(line.removeprefix("# "))
        else:
            lines.append(line)
    return tomllib.loads("\n".join(lines))


def paths(document: dict[str, Any]) -> list[str]:
    return [
        path
        for name, value in document.items()
        for path in ([f"{name}.{key}" for key in value] if name in TABLES else [name])
    ]


def test_guide_table_has_every_key_in_order() -> None:
    keys = GUIDE.partition("## Patterns")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \|.*\| ([^|]*) \|$", keys, re.MULTILINE)
    assert [path for path, _ in rows] == [key.path for key in KEYS]
    of_the_guide = dict(rows)
    for key in KEYS:
        option = OPTIONS.get(key.part)
        shown = of_the_guide[key.path].strip("`").split()
        assert shown == ["no"] if option is None and key.part else option in (None, *shown), (
            key.path
        )


def test_guide_table_has_words_and_bounds() -> None:
    keys = GUIDE.partition("## Patterns")[0]
    for one in SETTINGS:
        (row,) = re.findall(rf"^\| `{re.escape(one.key)}` \|.*$", keys, re.MULTILINE)
        assert all(f'`"{word}"`' in row for word in one.words), one.key
        if one.bounds is not None and one.kind == "number":
            low, high = one.bounds
            assert f"| {low} to {high:,}" in row, one.key


def test_guide_shows_starter_verbatim() -> None:
    assert f"```toml\n{STARTER}```\n" in GUIDE


def test_starter_is_valid_with_and_without_comments() -> None:
    assert parse(tomllib.loads(STARTER)) == CrawlSpec(seeds=(SEED,), pages_max=1_000)
    everything = uncommented(examples=True)
    assert paths(everything) == [key.path for key in KEYS]
    assert problems(everything, SEED) == {
        "schedule.cron": "'0 3 * * ? *' and every are both given: give one of them"
    }
    del everything["schedule"]["every"]
    parse(everything, "https://example.org/")


def test_starter_shows_defaults_in_comments() -> None:
    defaults = replace(parse(uncommented(examples=False)), pages_max=None)
    assert defaults == CrawlSpec(seeds=(SEED,))
    assert (defaults.window_s, defaults.delay_ms) == (7 * DAY_S, 1_000)
