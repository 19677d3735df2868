"""Command line options, their values, and errors for wrong ones."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from orbweaver.cli import crawl_options, option_types
from orbweaver.cli.arguments import parse
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.option_types import Threshold
from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.model.auth import OriginAuth
from orbweaver.model.crawl_settings import Bodies, Referer, RenderMode, Scope

URL = "http://example.com/"


def test_crawl_without_options_has_polite_defaults() -> None:
    given = parse(["crawl", URL])
    assert (given.seeds, given.seeds, given.fail_above) == ([URL], [URL], None)
    # An option that is not given is left to the plan or the definition.
    assert {
        part: value for part, value in crawl_options.given(given).items() if part != "seeds"
    } == {}
    assert (given.json, given.out, given.port, given.store) == (False, None, None, None)


# Words of `crawl`, and the part of the plan that they set.
OPTIONS: dict[str, tuple[str, object]] = {
    "--name site": ("name", "site"),
    f"--sitemap {URL}": ("sitemap_urls", (URL,)),
    "--priority high": ("express", True),
    "--scope any": ("scope", Scope.ANY),
    "--include /a --include /b": ("include", ("/a", "/b")),
    "--exclude /c": ("exclude", ("/c",)),
    "--no-sitemaps": ("sitemaps", False),
    "--max-depth 3": ("depth_max", 3),
    "--max-pages 1_000": ("pages_max", 1_000),
    "--stop-when-nothing-new": ("stop_when_nothing_new", True),
    "--max-host-pages 50": ("host_pages_max", 50),
    "--ca-bundle ca.pem": ("ca_bundle", "ca.pem"),
    "--client-cert me.pem": ("client_cert", "me.pem"),
    "--insecure a.test": ("insecure_hosts", ("a.test",)),
    "--timeout 30s": ("timeout_ms", 30_000),
    "--retries 2": ("retries", 2),
    "--referer page": ("referer", Referer.PAGE),
    "--max-bytes 10GB": ("bytes_max", 10**10),
    "--max-dollars 0.25": ("nanodollars_max", 250_000_000),
    "--duration 2h": ("duration_max_s", 7_200),
    "--delay 250ms": ("delay_ms", 250),
    "--concurrency 2": ("concurrency", 2),
    "--ignore-robots": ("obey_robots", False),
    "--ignore-nofollow": ("obey_nofollow", False),
    "--user-agent a/1": ("user_agents", ("a/1",)),
    "--header 'X-Key: k'": ("headers", (("X-Key", "k"),)),
    "--auth example.com=bearer:env:T": (
        "auth",
        (OriginAuth(origin="example.com", bearer="env:T"),),
    ),
    "--cookies": ("cookies", True),
    "--proxies no": ("proxied", False),
    "--window 0s": ("window_s", 0),
    "--strip-parameter ref": ("strip_parameters", ("ref",)),
    "--keep-parameters": ("keep_parameters", True),
    "--canonical": ("canonical_only", True),
    "--noindex skip": ("noindex_skipped", True),
    "--bodies all": ("bodies", Bodies.ALL),
    "--status-only": ("status_only", True),
    "--text": ("texts", True),
    "--links": ("links", True),
    "--redact phone --redact email": ("redacted", ("email", "phone")),
    "--render auto": ("render", RenderMode.AUTO),
    "--screenshot": ("screenshots", True),
}


def test_every_option_of_crawl_reaches_plan() -> None:
    parts = crawl_options.given(parse(["crawl", URL, *shlex.split(" ".join(OPTIONS))]))
    assert parts == {"seeds": (URL,), **dict(OPTIONS.values())}
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
        ("audit --quiet", "unknown option --quiet: only crawl, start and retry have it"),
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
        ("crawl http://x --delay -1s", "--delay: '-1s' is not a duration: give 0s, 250ms"),
        ("crawl http://x --max-bytes -3MB", "--max-bytes: '-3MB' is not a size: give 500MB"),
        ("crawl http://x --fail-above -1%", "--fail-above: '-1%' is neither"),
        ("crawl http://x --workers -2", "--workers: '-2' is too small: give 1 or more"),
        ("crawl http://x --workers 65", "--workers: '65' is too large: give 1 to 64"),
        ("crawl http://x --fail-above 101%", "--fail-above: '101%' is too large: give 100% or"),
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
        ("local up --prot 3", "orbweaver local up: unknown option --prot: did you mean --port?"),
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


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (option_types.duration_ms, "0", 0),
        (option_types.duration_ms, "0s", 0),
        (option_types.duration_ms, "250ms", 250),
        (option_types.duration_ms, "1.5s", 1_500),
        (option_types.duration_ms, "1.5", 1_500),
        (option_types.duration_ms, "2", 2_000),
        (option_types.duration_ms, "90m", 5_400_000),
        (option_types.duration_ms, "2H", 7_200_000),
        (option_types.duration_ms, "7d", 604_800_000),
        (option_types.duration_ms, " 1s ", 1_000),
        (option_types.duration_s, "0", 0),
        (option_types.duration_s, "1ms", 1),
        (option_types.duration_s, "1001ms", 2),
        (option_types.duration_s, "7d", 604_800),
        (option_types.count, "0", 0),
        (option_types.count, "1000", 1000),
        (option_types.count, "1_000", 1000),
        (option_types.count, "1,000", 1000),
        (option_types.day, "2026-11-21", "2026-11-21"),
        (option_types.pair, "a=b=c", ("a", "b=c")),
        (option_types.one_of(["host", "any"]), "any", "any"),
    ],
)
def test_value_of_option_is_read(read: Callable[[str], Any], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "threshold", "over", "under"),
    [
        ("0", Threshold(number=0), (1, 10), (0, 10)),
        ("10", Threshold(number=10), (11, 20), (10, 20)),
        ("2.5%", Threshold(number=2.5, percent=True), (26, 1_000), (25, 1_000)),
        ("0%", Threshold(number=0, percent=True), (1, 1_000), (0, 0)),
    ],
)
def test_threshold_is_a_count_or_a_share(
    text: str, threshold: Threshold, over: tuple[int, int], under: tuple[int, int]
) -> None:
    assert option_types.threshold(text) == threshold
    assert threshold.exceeded(*over)
    assert not threshold.exceeded(*under)


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (option_types.duration_ms, "1x", "give 0s, 250ms, 1.5s, 2h or 7d"),
        (option_types.duration_ms, "", "not a duration"),
        (option_types.duration_ms, "-1s", "'-1s' is not a duration"),
        (option_types.duration_ms, "1,5s", "not a duration"),
        (option_types.duration_ms, "nan", "not a duration"),
        (option_types.count, "1.5", "'1.5' is not a whole number"),
        (option_types.count, "-3", "'-3' is too small: give 0 or more"),
        (option_types.count, "1,00", "not a whole number"),
        (option_types.count, "٣", "not a whole number"),
        (option_types.threshold, "ten", "give 0, 10 or 2.5%"),
        (option_types.threshold, "1.5", "give 0, 10 or 2.5%"),
        (option_types.day, "21.11.2026", "a day is written YYYY-MM-DD"),
        (option_types.pair, "target", "give KEY=VALUE"),
        (option_types.pair, "=x", "give KEY=VALUE"),
        (option_types.one_of(["host", "any"]), "hots", "did you mean host? It takes host or any"),
        (option_types.one_of(["host", "prefix", "any"]), "?", "give host, prefix or any"),
        (option_types.one_of(["jsonl"]), "csv", "give jsonl"),
    ],
)
def test_invalid_value_error_has_value_and_fix(
    read: Callable[[str], Any], text: str, said: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert said in str(caught.value)
