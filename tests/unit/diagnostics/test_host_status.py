"""Status of a host in a crawl."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import crawl_of
from orbweaver.diagnostics.host_status import HostView, host_view, named
from orbweaver.politeness.host_schedule import DOWN_S, FAILURES_MAX, ROUNDS_MAX, Host, RobotsEntry

NOW_MS = 1_795_251_600_000
SITE, OTHER = "https://example.com", "https://other.example"
CRAWL = crawl_of(CrawlSpec(seeds=(f"{SITE}/", f"{OTHER}/a", f"{SITE}/b"), name="shop"), NOW_MS)
COUNTS = {"host.0.claimed": 9, "host.0.done": 4, "host.0.failed": 1, "host.1.claimed": 2}


def view(name: str = SITE, **host: Any) -> HostView:
    return host_view(CRAWL, COUNTS, Host(name=name, **host), NOW_MS, "bot/1.0")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (SITE, (9, 4, 1, 5)),
        (OTHER, (2, 0, 0, 2)),
        ("https://stranger.example", (None, None, None, None)),
    ],
)
def test_host_counts_come_from_crawl_counters(name: str, counts: tuple[int | None, ...]) -> None:
    seen = view(name)
    assert (seen.claimed, seen.done, seen.failed, seen.queued) == counts


def test_queued_is_zero_after_crawl_end() -> None:
    ended = replace(CRAWL, finished_at_ms=NOW_MS)
    assert host_view(ended, COUNTS, Host(name=SITE), NOW_MS, "bot").queued == 0
    early = {"host.0.claimed": 3, "host.0.done": 4}  # shards are not read at the same moment
    assert host_view(CRAWL, early, Host(name=SITE), NOW_MS, "bot").queued == 0


@pytest.mark.parametrize(
    ("host", "fields"),
    [
        ({}, {"next_slot_ms": None, "blocked_until_ms": None, "why": None, "down": False}),
        ({"tat_ms": NOW_MS + 5_000}, {"next_slot_ms": NOW_MS + 5_000}),
        ({"line_ms": NOW_MS + 7_000, "tat_ms": NOW_MS}, {"next_slot_ms": NOW_MS + 7_000}),
        (
            {"blocked_until_ms": NOW_MS + 60_000, "strikes": 1},
            {"blocked_until_ms": NOW_MS + 60_000, "why": "it answered 429 or 503"},
        ),
        (
            {"blocked_until_ms": NOW_MS + 60_000, "failures": FAILURES_MAX},
            {"why": "it did not answer 5 times in a row", "failures": 5, "down": False},
        ),
        (
            {"blocked_until_ms": NOW_MS + DOWN_S, "failures": FAILURES_MAX + ROUNDS_MAX},
            {"why": "it did not answer 9 times in a row: its URLs end unasked", "down": True},
        ),
        ({"blocked_until_ms": NOW_MS, "failures": 2}, {"blocked_until_ms": None, "failures": 2}),
    ],
)
def test_next_slot_and_block_are_shown_until_they_pass(
    host: dict[str, Any], fields: dict[str, Any]
) -> None:
    seen = view(**host)
    assert {name: getattr(seen, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("entry", "words", "delay_ms"),
    [
        (None, "not fetched yet", 1_000),
        (RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow"), "none", 1_000),
        (RobotsEntry(fetched_at_ms=NOW_MS, verdict="unreachable"), "unreachable: no answer", 1_000),
        (RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: *\nDisallow: /x"), "found", 1_000),
        (
            RobotsEntry(fetched_at_ms=NOW_MS, body=b"User-agent: bot\nCrawl-delay: 2.5"),
            "found, Crawl-delay 2.5 s",
            2_500,
        ),
    ],
)
def test_robots_state_and_delay_of_host(
    entry: RobotsEntry | None, words: str, delay_ms: int
) -> None:
    seen = view(robots=entry)
    assert (seen.robots, seen.delay_ms) == (words, delay_ms)
    ignoring = replace(CRAWL, obey_robots=False)
    seen = host_view(ignoring, COUNTS, Host(name=SITE, robots=entry), NOW_MS, "bot")
    assert (seen.robots, seen.delay_ms) == ("ignored", 1_000)


@pytest.mark.parametrize(
    ("word", "host"),
    [
        ("example.com", SITE),
        ("Example.com:8443", f"{SITE}:8443"),
        ("https://example.com/a?b", SITE),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_host_name_is_completed_to_origin(word: str, host: str) -> None:
    assert named(word) == host


def test_invalid_host_name_is_refused_with_example() -> None:
    with pytest.raises(ValueError, match=r"'ex ample' is no host: give one like example\.com"):
        named("ex ample")
