"""Command line options, and errors for wrong ones."""

from __future__ import annotations

import pytest

from orbweaver.cli import crawl_options
from orbweaver.cli.arguments import parse
from orbweaver.cli.exit_codes import UsageError
from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.model.auth import OriginAuth
from orbweaver.model.crawl_settings import Bodies, Referer, RenderMode, Scope

URL = "http://example.com/"


def test_crawl_without_options_has_polite_defaults() -> None:
    given = parse(["crawl", URL])
    assert given.seeds == [URL]
    assert (given.seeds, given.fail_above) == ([URL], None)
    # An option that is not given is left to the plan or the definition.
    assert {
        part: value for part, value in crawl_options.given(given).items() if part != "seeds"
    } == {}
    assert (given.json, given.out, given.port, given.store) == (False, None, None, None)


def test_every_option_of_crawl_reaches_plan() -> None:
    line = [
        *("--name", "site", "--sitemap", URL, "--priority", "high", "--scope", "any"),
        *("--include", "/a", "--include", "/b", "--exclude", "/c", "--no-sitemaps"),
        *(
            "--max-depth",
            "3",
            "--max-pages",
            "1_000",
            "--stop-when-nothing-new",
            "--max-host-pages",
            "50",
            "--max-bytes",
        ),
        *("10GB", "--max-dollars", "0.25", "--duration", "2h", "--delay", "250ms"),
        *("--concurrency", "2", "--ignore-robots", "--ignore-nofollow", "--user-agent", "a/1"),
        *("--header", "X-Key: k", "--auth", "example.com=bearer:env:T"),
        *("--cookies", "--proxies", "no", "--window", "0s", "--strip-parameter", "ref"),
        *("--keep-parameters", "--canonical", "--noindex", "skip", "--bodies", "all", "--text"),
        *("--links", "--redact", "phone", "--redact", "email", "--render", "auto"),
        *("--ca-bundle", "ca.pem", "--client-cert", "me.pem", "--insecure", "a.test"),
        *("--screenshot", "--status-only"),
        *("--timeout", "30s", "--retries", "2", "--referer", "page"),
    ]
    parts = crawl_options.given(parse(["crawl", URL, *line]))
    assert parts == {
        "seeds": (URL,),
        "name": "site",
        "sitemap_urls": (URL,),
        "express": True,
        "scope": Scope.ANY,
        "include": ("/a", "/b"),
        "exclude": ("/c",),
        "sitemaps": False,
        "depth_max": 3,
        "pages_max": 1_000,
        "stop_when_nothing_new": True,
        "host_pages_max": 50,
        "ca_bundle": "ca.pem",
        "client_cert": "me.pem",
        "insecure_hosts": ("a.test",),
        "timeout_ms": 30_000,
        "retries": 2,
        "referer": Referer.PAGE,
        "bytes_max": 10**10,
        "nanodollars_max": 250_000_000,
        "duration_max_s": 7_200,
        "delay_ms": 250,
        "concurrency": 2,
        "obey_robots": False,
        "obey_nofollow": False,
        "user_agents": ("a/1",),
        "headers": (("X-Key", "k"),),
        "auth": (OriginAuth(origin="example.com", bearer="env:T"),),
        "cookies": True,
        "proxied": False,
        "window_s": 0,
        "strip_parameters": ("ref",),
        "keep_parameters": True,
        "canonical_only": True,
        "noindex_skipped": True,
        "bodies": Bodies.ALL,
        "status_only": True,
        "texts": True,
        "links": True,
        "redacted": ("email", "phone"),
        "render": RenderMode.AUTO,
        "screenshots": True,
    }
    assert parts.keys() - {"seeds"} == {one.name for one in SETTINGS if one.option}


def test_option_word_turns_key_of_definition_off() -> None:
    line = ["crawl", URL, "--priority", "normal", "--noindex", "record", "--proxies", "yes"]
    parts = {"seeds": (URL,), "express": False, "noindex_skipped": False, "proxied": True}
    assert crawl_options.given(parse(line)) == parts


def test_options_are_accepted_in_any_position() -> None:
    given = parse(["crawl", "--delay", "0", URL, "--max-pages=1,000", f"{URL}b", "--json"])
    assert given.seeds == [URL, f"{URL}b"]
    assert (given.delay, given.max_pages, given.json) == (0, 1_000, True)


def test_crawl_accepts_sitemaps_with_or_without_seeds() -> None:
    given = parse(["crawl", "--sitemap", URL, "--sitemap", f"{URL}b"])
    assert (given.seeds, given.sitemap, given.no_sitemaps) == ([], [URL, f"{URL}b"], False)
    given = parse(["start", "--no-sitemaps", URL])
    assert (given.seeds, given.sitemap, given.no_sitemaps) == ([URL], [], True)


def test_words_after_two_hyphens_are_no_options() -> None:
    assert parse(["url", "--base", URL, "--", "--x"]).reference == "--x"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "usage: orbweaver"),
        ("crwl http://x", "unknown command 'crwl': did you mean `orbweaver crawl`?"),
        ("xyzzy", "unknown command 'xyzzy': see `orbweaver --help`"),
        ("local upp", "unknown command 'local upp': did you mean `orbweaver local up`?"),
        ("local", "orbweaver local: missing argument: up|down|status"),
        ("--json status", "'--json' must follow the command"),
        (
            "--store books crawl https://a.example/",
            "'--store' must follow the command: write `orbweaver crawl … --store …`",
        ),
        ("crawl", "orbweaver crawl: missing argument: URL"),
        ("crawl http://x --dealy 0", "unknown option --dealy: did you mean --delay?"),
        (
            "crawl http://x --dealy 0 --qqq=1 --",
            "did you mean --delay?\norbweaver crawl: unknown option --qqq",
        ),
        ("crawl http://x --csv", "unknown option --csv: did you mean --format?"),
        ("crawl http://x --limit 3", "unknown option --limit: --max-pages limits the URLs"),
        ("crawl http://x -o x.csv", "unknown option -o: did you mean --out?"),
        ("check --exclude", "unknown option --exclude\nsee"),
        ("crawl http://x --dealy=0", "unknown option --dealy: did you mean --delay?"),
        ("crawl http://x --max-page 3", "did you mean --max-pages?"),
        ("crawl http://x --del 0", "unknown option --del: did you mean --delay?"),
        ("crawl http://x --limit 5", "unknown option --limit: --max-pages limits the URLs"),
        ("crawl http://x --post a=b", "unknown option --post: a definition has POST requests"),
        ("crawl http://x --qqq", "orbweaver crawl: unknown option --qqq\nsee"),
        ("crawl http://x -x", "unknown option -x"),
        ("crawl http://x --delay", "orbweaver crawl: --delay: needs a value"),
        ("crawl http://x --delay 1x", "--delay: '1x' is not a duration: give 0s, 250ms"),
        ("crawl http://x --delay -1", "--delay: '-1' is not a duration"),
        ("crawl http://x --delay -1s", "--delay: needs a value"),
        ("crawl http://x --max-pages many", "--max-pages: 'many' is not a whole number"),
        ("crawl http://x --scope hots", "--scope: 'hots' is invalid: did you mean host?"),
        ("crawl http://x --scope domian", "--scope: 'domian' is invalid: did you mean domain?"),
        ("page http://x http://me:secret@y?z", "'http://…@y?…' is an extra argument"),
        ("http://me:secret@y", "unknown command 'http://…@y'"),
        ("crawl http://x --priority low", "--priority: 'low' is invalid: give normal or high"),
        ("crawl http://x --fail-above few", "--fail-above: 'few' is neither"),
        ("crawl http://x --region x", "unknown option --region"),
        ("start http://x --target gcp", "--target: 'gcp' is invalid: give local or aws"),
        ("pages", "orbweaver pages: missing argument: ID"),
        ("pages a b", "orbweaver pages: 'b' is an extra argument"),
        ("pages a --outcome fail", "did you mean failed? It takes fetched, unchanged"),
        ("pages --outcme failed", "unknown option --outcme: did you mean --outcome?"),
        ("export --day today", "--day: a day is written YYYY-MM-DD"),
        ("export --format xml", "'xml' is no format: give some of jsonl,csv,parquet,warc"),
        ("deploy -c target", "orbweaver deploy: --context: 'target' is invalid: give KEY=VALUE"),
        (
            "local up --prot 3",
            "orbweaver local up: unknown option --prot: did you mean --port?",
        ),
    ],
)
def test_error_names_option_value_fix_and_nearest(line: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert said in str(caught.value)


@pytest.mark.parametrize("line", ["--help", "--version", "crawl --help", "local up -h"])
def test_help_and_version_exit_with_0(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(line.split())
    assert not caught.value.code
    assert "orbweaver" in capsys.readouterr().out


def test_context_values_are_pairs() -> None:
    given = parse(["deploy", "-cremoval=destroy", "-c", "contact=me", "--yes"])
    assert given.context == [("removal", "destroy"), ("contact", "me")]
    assert given.yes
