"""Dead letters: cause, kind, hosts, redacted body, and the messages of a redrive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orbweaver.frontier.dead_letters import (
    CAUSE_CHARS_MAX,
    Case,
    DeadLetter,
    DeadLetterSelection,
    group_by_cause,
    message_to_resend,
    outline,
    read,
)
from orbweaver.frontier.messages import Loose, Pack, SeedsMessage, encode
from orbweaver.model.target import Target

NOW_MS = 1_795_251_600_000


def pack(*urls: str, failures: int = 0, crawl: str = "shop-1") -> Pack:
    targets = tuple(Target(url=url, depth=1) for url in urls or ("https://example.com/",))
    return Pack(id="p1", crawl=crawl, at_ms=NOW_MS - 5_000, targets=targets, failures=failures)


def case(
    body: str | Pack | SeedsMessage | Loose = "{", reason: str | None = None, **fields: Any
) -> Case:
    text = body if isinstance(body, str) else encode(body)
    told = {"id": "m1", "receives": 1, "sent_at_ms": NOW_MS, **fields}
    return read(DeadLetter(body=text, reason=reason, **told))


@pytest.mark.parametrize(
    ("body", "reason", "cause"),
    [
        ("{", "unknown crawl 'shop-1'", "unknown crawl"),
        ("{", "no usable URL: not an absolute URL", "no usable URL"),
        ("{", "failed 4 times", "failed too often"),
        ("{", "crashed its worker 3 times", "crashed its worker"),
        ("{", "unknown field 'x': use url, urls and crawl", "unknown field"),
        ("{", "version 2 is not 1", "unknown version"),
        ("{", "body must be a URL or a JSON object", "body must be a URL or a JSON object"),
        ("{", "x" * 256, "x" * CAUSE_CHARS_MAX),
        ("{", None, "body is neither a URL nor valid JSON"),
        ('{"v":7}', None, "newer version"),
        ('{"v":0}', None, "unknown version"),
        ("https://example.com/", None, "received too often (loose)"),
        (encode(pack()), None, "received too often (pack)"),
    ],
)
def test_cause_is_reason_without_variable_parts(body: str, reason: str | None, cause: str) -> None:
    assert case(body, reason).cause == cause


def test_kind_crawl_urls_and_failures_are_read_from_body() -> None:
    seeds = SeedsMessage(id="s1", crawl="news", at_ms=NOW_MS, references=("https://a.example/",))
    found = [case(pack(failures=3)), case(seeds), case("https://b.example/x"), case("{")]
    assert [one.kind for one in found] == ["pack", "seeds", "loose", "malformed"]
    assert [one.crawl for one in found] == ["shop-1", "news", "default", None]
    assert [one.failures for one in found] == [3, 0, 0, 0]
    assert [len(one.references) for one in found] == [1, 1, 1, 0]


def test_first_and_last_seen_times() -> None:
    buried = case(pack(), "failed 4 times", first_received_at_ms=NOW_MS + 9_000)
    moved = case(pack(), first_received_at_ms=NOW_MS + 9_000)
    loose = case("https://example.com/")
    assert (buried.first_seen_ms, buried.last_seen_ms) == (NOW_MS - 5_000, NOW_MS)
    assert (moved.first_seen_ms, moved.last_seen_ms) == (NOW_MS - 5_000, NOW_MS + 9_000)
    assert (loose.first_seen_ms, loose.last_seen_ms) == (NOW_MS, NOW_MS)


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (DeadLetterSelection(), True),
        (DeadLetterSelection(reason="Unknown Crawl"), True),
        (DeadLetterSelection(reason="shop-1"), True),
        (DeadLetterSelection(reason="failed"), False),
        (DeadLetterSelection(host="EXAMPLE.com"), True),
        (DeadLetterSelection(host="example.com:8443"), True),
        (DeadLetterSelection(host="https://example.com:8443/"), True),
        (DeadLetterSelection(host="ample.com"), False),
        (DeadLetterSelection(reason="unknown crawl", host="other.example"), False),
    ],
)
def test_selection_by_reason_and_host(selection: DeadLetterSelection, *, chosen: bool) -> None:
    letter = case(
        pack("https://a.example/", "https://example.com:8443/x"), "unknown crawl 'shop-1'"
    )
    assert selection.matches(letter) is chosen


def test_letter_without_urls_has_no_host() -> None:
    assert not case("{").hosts()
    assert not case("nothing").hosts()


def test_groups_start_with_most_frequent_cause() -> None:
    cases = [
        case("{", "failed 4 times", id="a", sent_at_ms=1_000),
        case("{", "unknown crawl 'x'", id="b", sent_at_ms=3_000),
        case(pack(), "unknown crawl 'y'", id="c", sent_at_ms=2_000),
    ]
    first, second = group_by_cause(reversed(cases))
    assert (first.cause, first.count, first.kinds) == (
        "unknown crawl",
        2,
        {"malformed": 1, "pack": 1},
    )
    assert (first.oldest_ms, first.newest_ms, first.sample.letter.id) == (2_000, 3_000, "b")
    assert (second.cause, second.count) == ("failed too often", 1)
    assert group_by_cause([]) == ()


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"urls": 5, "token": "hunter2"}', "{urls: number, token: text of 7}"),
        ('{"url": "https://u:hunter2@a.example/?k=hunter2"}', "{url: https://…@a.example/?…}"),
        ('{"a": ["hunter2"], "b": {"c": 1}}', "{a: list of 1, b: object of 1}"),
        ('{"d": null, "e": true}', "{d: null, e: true or false}"),
        ("[1, 2]", "list of 2"),
        ("https://a.example/?key=hunter2", "https://a.example/?…"),
        ('{"password": "hunter2', '{"password":… (21 characters)'),
        ("{", "{"),
        (json.dumps(dict.fromkeys(map(str, range(11)))), None),
    ],
)
def test_outline_shows_field_names_and_redacted_urls_only(body: str, shown: str | None) -> None:
    told = outline(case(body))
    assert SECRET not in told
    assert told == shown if shown is not None else told.endswith(", …}")


def test_revived_pack_has_no_failures() -> None:
    assert message_to_resend(case(pack(failures=4)), NOW_MS) == pack(failures=0)


def test_revived_loose_references_have_stable_ids() -> None:
    body = Loose(crawl="news", references=tuple(f"https://a.example/{n}" for n in range(150)))
    first, second = message_to_resend(case(body), NOW_MS), message_to_resend(case(body), NOW_MS)
    assert isinstance(first, tuple)
    assert first == second
    assert [len(seeds.references) for seeds in first] == [100, 50]
    assert {seeds.crawl for seeds in first} == {"news"}
    assert not any(seeds.planned for seeds in first)


def test_revived_seeds_stay_planned() -> None:
    seeds = SeedsMessage(
        id="s", crawl="c", at_ms=1, references=("https://a.example/",), planned=True
    )
    assert message_to_resend(case(seeds), NOW_MS) == (seeds,)


@pytest.mark.parametrize("body", ["{", "nothing", '{"urls": ["ftp://a.example/", "x"]}'])
def test_hopeless_letter_is_not_revived(body: str) -> None:
    assert case(body).is_hopeless
    assert message_to_resend(case(body), NOW_MS) is None
