"""Reading and evaluating a robots.txt takes bounded time and memory for any content."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count, product

import pytest

from orbweaver.politeness.robots_rules import UNDECIDED, VERDICTS_MAX, AgentRules, RobotsRule
from orbweaver.politeness.robots_txt import BODY_BYTES_MAX, INDEXED_MAX, parse, whole_lines

SITE = "https://example.com"
AGENT = "orbweaver"


def allows(body: bytes, path: str) -> bool:
    return parse(body).allows(AGENT, SITE + path)


def test_first_500_kib_are_read_without_splitting_rule() -> None:
    start = b"User-agent: *\nDisallow: /first\n"
    last = b"Disallow: /last"
    padding = b"#" * (BODY_BYTES_MAX - len(start) - len(last) - 1) + b"\n"
    whole = start + padding + last
    assert len(whole) == BODY_BYTES_MAX
    for body in (whole, whole + b"\n", whole + b"\r\nDisallow: /after\n"):
        assert not allows(body, "/first")
        assert not allows(body, "/last")
        assert allows(body, "/after")
    assert allows(whole + b"-one\n", "/last")
    assert allows(b"User-agent: *\tDisallow: /" * 50_000, "/")


def test_incomplete_last_line_is_dropped() -> None:
    assert whole_lines(b"Disallow: /\nAllow: /") == b"Disallow: /\n"[:-1]
    assert whole_lines(b"Disallow: /\rAllow: /") == b"Disallow: /"
    assert whole_lines(b"Allow: /") == b""
    assert len(whole_lines(b"a\n" * BODY_BYTES_MAX)) <= BODY_BYTES_MAX


def test_line_is_read_up_to_16663_bytes() -> None:
    """Google's parser has the same limit."""
    text, path = b"User-agent: *\nDisallow: /" + b"x" * 16_663, "/".ljust(16_653, "x")
    assert not allows(text, path)
    assert allows(text, path[:-1])


def test_patterns_with_common_start_are_all_evaluated() -> None:
    rules = b"".join(b"Disallow: /*%s%04d$\n" % (b"a" * 20, number) for number in range(100))
    refused = [not allows(b"User-agent: *\n" + rules, f"/{'a' * 20}{n:04}") for n in range(101)]
    assert refused == [True] * 100 + [False]


AGENT_LINE = b"User-agent: orbweaver\n"


@pytest.mark.parametrize(
    "body",
    [
        b"Disallow: /" + b"*" * 10_000 + b"b",
        b"Disallow: /" + b"*a" * 5_000 + b"$",
        (b"Disallow: /" + b"a*" * 7_000 + b"b\n") * 36,
        (b"Disallow: /" + b"*a" * 900 + b"b$\n") * 250,
        b"Disallow:/b\n" * 40_000,
        AGENT_LINE * 15_000 + b"Disallow:/b\n" * 15_000,
        (AGENT_LINE + b"Disallow:/b\n") * 14_000,
        (AGENT_LINE + b"Crawl-delay:1\n") * 14_000,
        AGENT_LINE * 11_000 + b"Crawl-delay:1\n" * 18_000,
        b"\r" * BODY_BYTES_MAX,
        b":" * BODY_BYTES_MAX,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_hostile_file_is_evaluated_quickly(body: bytes) -> None:
    before = time.process_time()
    robots = parse(AGENT_LINE + body)
    robots.crawl_delay(AGENT)
    assert robots.allows(AGENT, f"{SITE}/" + "a" * 2_000)
    assert time.process_time() - before < 10  # a second or less on an idle machine


# --- wildcards ----------------------------------------------------------------------------------

LONG = 2_000
# A sample line of each file, and a path that is expensive for it.
WORST: dict[str, tuple[Callable[[int], str], str]] = {
    "numbers": (lambda n: f"Disallow: /*{n}", "/" + "1234567890" * (LONG // 10)),
    "ends": (lambda n: f"Disallow: /*{n}$", "/" + "1234567890" * (LONG // 10)),
    "letters": (lambda n: f"allow:*{n:x}z", "/" + "abcdef" * (LONG // 6)),
    "many pieces": (lambda n: f"Disallow: /*a*a*a*b{n}", "/" + "a" * LONG),
    "letters in turn": (lambda n: f"Disallow: /*{'*'.join(f'{n:014b}')}*x", "/" + "10" * 1_000),
    "long pieces": (lambda n: f"Disallow: /*{'a' * (n % 300)}b{'a' * 250}", "/" + "a" * LONG),
    "heads": (lambda n: f"Disallow: /{'a' * n}*b*c", "/" + "a" * LONG),
    "escapes": (lambda n: f"Allow: /*%61{n}", "/" + "%611234567890" * (LONG // 14)),
    "groups": (lambda n: f"user-agent:{AGENT}\ndisallow:*{n}", "/" + "9876543210" * (LONG // 10)),
}


def worst(name: str) -> tuple[bytes, str]:
    """Return 500 KiB of a costly robots.txt, and a path that is expensive to check."""
    line, path = WORST[name]
    lines, size = ["User-agent: *"], 14
    for number in count():
        text = line(number)
        size += len(text) + 1
        if size > BODY_BYTES_MAX:
            break
        lines.append(text)
    return "\n".join(lines).encode(), path


@pytest.mark.thorough
@pytest.mark.parametrize("name", WORST)
def test_batch_of_urls_is_judged_in_bounded_time(name: str) -> None:
    body, path = worst(name)
    before_s = time.process_time()
    robots = parse(body)
    for number in range(250):
        robots.allows(AGENT, f"{SITE}{path[:-4]}{number}")
    assert time.process_time() - before_s < 3  # 0.2 to 0.6 s on an idle machine


def test_rules_without_inner_wildcards_are_fast() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d*\n" % number for number in range(5_000))
    rules = parse(body).rules_of(AGENT)
    assert not rules.slow
    assert not parse(body).allows(AGENT, f"{SITE}/4999/x")


def test_verdicts_are_cached_per_url() -> None:
    rules = parse(worst("letters in turn")[0]).rules_of(AGENT)
    assert rules.slow
    with pytest.MonkeyPatch.context() as patch:
        judged: list[str] = []
        judge = AgentRules._judge

        def noted(self: AgentRules, path: str) -> RobotsRule | None:
            judged.append(path)
            return judge(self, path)

        patch.setattr(AgentRules, "_judge", noted)
        verdicts = {rules.deciding(f"/{'10' * 99}{number % 25}") for number in range(100)}
        assert len(judged) == 25
        for number in range(VERDICTS_MAX + 5):
            rules.deciding(f"/{number}")
        assert len(rules._verdicts) == VERDICTS_MAX
    assert verdicts == {UNDECIDED}


def test_many_word_wildcards_are_decided_exactly() -> None:
    words = ["".join(word) for word in product("abcdefghij", repeat=4)]
    body = "User-agent: *\nAllow: /\n" + "".join(f"Disallow: /*-{word}.html\n" for word in words)
    robots = parse(body.encode())
    verdict = robots.decide(AGENT, f"{SITE}/news/2026/an-article-of-some-length-jihg.html?page=2")
    assert (verdict.allowed, verdict.rule) == (False, "Disallow: /*-jihg.html")
    verdict = robots.decide(AGENT, f"{SITE}/news/2026/an-article-of-some-length-jihx.html?page=2")
    assert (verdict.allowed, verdict.rule, verdict.decided) == (True, "Allow: /", True)


def test_path_exceeding_step_limit_is_forbidden() -> None:
    """A rule that was not compared might forbid it."""
    body, path = worst("letters in turn")
    robots = parse(body)
    verdict = robots.decide(AGENT, f"{SITE}{path}")
    assert (verdict.allowed, verdict.decided, verdict.line) == (False, False, None)
    assert verdict.why == UNDECIDED.pattern


def test_only_few_agents_are_indexed_at_once() -> None:
    robots = parse(b"User-agent: *\nDisallow: /x")
    assert not any(robots.allows(f"bot{number}", f"{SITE}/x") for number in range(20))
    assert len(robots._indexed) <= INDEXED_MAX
