"""robots.txt: fetched in a slot, followed through redirects, cached for a day."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import pytest

from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from orbweaver.politeness import robots_cache as robots_module
from orbweaver.politeness.host_schedule import Host, RobotsEntry
from orbweaver.politeness.robots_cache import (
    BYTES_MAX,
    FRESH_MS,
    PARSED_BYTES_MAX,
    UNREACHABLE_FRESH_MS,
    Deferred,
    RobotsKeeper,
    RobotsUnreachable,
    Ruling,
)
from orbweaver.politeness.robots_txt import BODY_BYTES_MAX, Robots, parse
from tests.memory import ManualClock, MemoryHosts, World
from tests.unit.stage import CRAWL, NOW_MS, SITE, Answer, SmallWeb, answer

ROBOTS = f"{SITE}/robots.txt"
RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 3\n"
POLITE = replace(CRAWL, delay_ms=1_000, obey_robots=True)


@dataclass
class Keeping:
    """A robots.txt cache with a fake web and the hosts that store its results."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)
        self.restart()

    def restart(self) -> None:
        self.keeper = RobotsKeeper(
            fetcher=self.web,
            hosts=MemoryHosts(self.world),
            clock=self.clock,
            settings=Settings.of(user_agent="orbweaver/test"),
        )

    def serve(self, *answers: Answer) -> Self:
        """Set the answers to requests for the robots.txt."""
        self.web.put(ROBOTS, *answers)
        return self

    async def ask(self, ahead_ms: int = 60_000) -> Ruling:
        return await self.keeper.rules_for(SITE, POLITE, self.clock.at_ms + ahead_ms)

    async def rules(self) -> Robots:
        ruling = await self.ask()
        assert isinstance(ruling, Robots)
        return ruling


async def test_rules_are_fetched_once_for_all_containers() -> None:
    keeping = Keeping().serve(answer(200, RULES))
    for _ in range(2):
        rules = await keeping.ask()
        assert isinstance(rules, Robots)
        assert not rules.allows("orbweaver/test", f"{SITE}/private/a")
        assert rules.allows("orbweaver/test", f"{SITE}/a")
        keeping.restart()
    assert keeping.web.urls == [ROBOTS]


async def test_request_has_own_user_agent_and_size_limit() -> None:
    """Any content type is accepted, and up to 500 KiB are read (case 67)."""
    keeping = Keeping()
    await keeping.ask()
    (request,) = keeping.web.requests
    assert (request.user_agent, request.body_bytes_max) == ("orbweaver/test", BYTES_MAX)
    assert request.accept == frozenset({"*/*"})


async def test_robots_request_sent_late_delays_next_slot() -> None:
    keeping, sent_ms = Keeping(), 0

    async def connect_slowly(request: Request) -> Response:
        nonlocal sent_ms
        keeping.clock.at_ms += 300
        sent_ms = keeping.clock.at_ms
        assert request.sent is not None
        request.sent()
        return answer(404)

    keeping.web.fetch = connect_slowly  # type: ignore[method-assign]
    await keeping.ask()
    assert keeping.world.hosts[SITE].tat_ms >= sent_ms + POLITE.delay_ms


async def test_crawl_with_own_agent_uses_it_for_robots() -> None:
    keeping = Keeping()
    await keeping.keeper.rules_for(SITE, replace(POLITE, user_agent="mine/1"), NOW_MS + 60_000)
    assert keeping.web.requests[0].user_agent == "mine/1"


@pytest.mark.parametrize(
    "said",
    [
        *(answer(status) for status in (400, 401, 403, 404, 410, 451)),
        answer(302, location="file:///etc/passwd"),
        answer(302, location="http://[bad/"),
        answer(302, location="javascript:x"),
    ],
    ids=lambda said: f"{said.status} {said.headers}",
)
async def test_missing_file_allows_everything(said: Response) -> None:
    """RFC 9309, 2.3.1.3: an unavailable file means no rules. The result is cached (case 67).

    Redirects to other schemes and invalid URLs are not followed (case 42).
    """
    keeping = Keeping().serve(said)
    assert await keeping.ask() is None
    assert await keeping.ask() is None
    assert keeping.web.urls == [ROBOTS]


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (answer(500), "HTTP 500"),
        (answer(503), "HTTP 503"),
        (answer(429), "HTTP 429"),
        (answer(304), "HTTP 304"),
        (answer(301), "HTTP 301"),
        (Failure(reason=Reason.TIMEOUT, detail="took too long"), "took too long"),
        (Failure(reason=Reason.TLS, detail=""), "unreachable"),
    ],
)
async def test_unreachable_file_forbids_everything(said: Response | Failure, detail: str) -> None:
    """RFC 9309, 2.3.1.4: an unreachable file disallows all until the next fetch (case 67)."""
    keeping = Keeping().serve(said)
    ruling = await keeping.ask()
    asked_ms = keeping.clock.at_ms
    assert isinstance(ruling, RobotsUnreachable)
    assert (ruling.return_at_ms, ruling.detail) == (asked_ms + UNREACHABLE_FRESH_MS, detail)
    assert ruling.reason == (said.reason if isinstance(said, Failure) else None)
    keeping.clock.at_ms = asked_ms + UNREACHABLE_FRESH_MS - 1
    assert await keeping.ask() == ruling
    keeping.web.put(ROBOTS, answer(404))
    keeping.clock.at_ms = asked_ms + UNREACHABLE_FRESH_MS
    assert await keeping.ask() is None
    assert keeping.web.urls == [ROBOTS, ROBOTS]


async def test_empty_file_has_no_rules() -> None:
    keeping = Keeping().serve(answer(204, None))
    rules = await keeping.rules()
    assert rules.allows("orbweaver", f"{SITE}/private/a")


@pytest.mark.parametrize(("hops", "followed"), [(1, True), (5, True), (6, False), (100, False)])
async def test_five_redirects_are_followed(hops: int, *, followed: bool) -> None:
    keeping = Keeping()
    chain = [ROBOTS, *(f"https://host{place}.example/robots.txt" for place in range(hops))]
    for url, location in pairwise(chain):
        keeping.web.put(url, answer(301, location=location))
    keeping.web.put(chain[-1], answer(200, RULES))
    rules = await keeping.ask()
    assert keeping.web.urls == chain[: min(hops, 5) + 1]
    if followed:
        assert isinstance(rules, Robots)
        assert not rules.allows("orbweaver", f"{SITE}/private/a")
    else:
        assert rules is None


@pytest.mark.parametrize("over", [-1, 0, 1, 5])
async def test_file_exceeding_limit_loses_only_last_line(over: int) -> None:
    """`Allow: /public/` cut after `Allow: /` would allow everything (RFC 9309 2.5)."""
    keeping = Keeping()
    start, last = b"User-agent: *\nDisallow: /\n", b"Allow: /public/\n"
    cut_at = len(b"Allow: /")
    size = BODY_BYTES_MAX - cut_at - over
    body = start + b"#" * (size - len(start) - 1) + b"\n" + last
    cut = replace(answer(200, body[:BYTES_MAX]), truncated=len(body) > BYTES_MAX)
    keeping.web.put(ROBOTS, cut)
    assert not (await keeping.rules()).allows("orbweaver", f"{SITE}/private")
    assert BYTES_MAX > BODY_BYTES_MAX  # otherwise a complete last line could not be recognised


@pytest.mark.parametrize(("status", "truncated"), [(200, True), (206, False)])
@pytest.mark.parametrize("lines", [b"Disallow: /\nAllow: /", b"Allow: /\nDisallow: /private"])
async def test_truncated_file_loses_incomplete_allow_rule(
    status: int, lines: bytes, *, truncated: bool
) -> None:
    part = replace(answer(status, b"User-agent: *\n" + lines), truncated=truncated)
    rules = await Keeping().serve(part).rules()
    assert not rules.allows("orbweaver", f"{SITE}/private")


@pytest.mark.parametrize(
    ("coding", "body", "known"),
    [
        ("none", RULES, True),
        ("utf-8", RULES + "# ü".encode(), True),
        ("lzma", "\ufeff".encode("utf-16-le") + RULES.decode().encode("utf-16-le"), True),
        ("lzma", b"]\0\0\x80\0\xff\xff\xff", False),
        ("gzip", RULES + b"# \xfc", True),
        ("", RULES + b"# \xfc", True),
    ],
)
async def test_wrong_content_encoding_is_ignored_for_text(
    coding: str, body: bytes, *, known: bool
) -> None:
    keeping = Keeping()
    said = answer(200, body)
    headers = {**said.headers, **({"content-encoding": coding} if coding else {})}
    keeping.web.put(ROBOTS, replace(said, headers=headers))
    rules = await keeping.ask()
    if known:
        assert isinstance(rules, Robots)
        assert not rules.allows("orbweaver", f"{SITE}/private/a")
    else:
        assert isinstance(rules, RobotsUnreachable)
        assert rules.detail == "its content coding is not known: lzma"


async def test_every_redirect_hop_waits_for_slot_of_host() -> None:
    keeping = Keeping()
    keeping.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 4_000)
    keeping.web.put(ROBOTS, answer(301, location="/other.txt"))
    keeping.web.put(f"{SITE}/other.txt", answer(404))
    await keeping.ask()
    first_ms, second_ms = (at_ms for _, at_ms in keeping.web.asked)
    assert first_ms >= NOW_MS + 4_000
    assert second_ms >= first_ms + POLITE.delay_ms


async def test_robots_request_without_slot_is_deferred() -> None:
    keeping = Keeping()
    keeping.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    assert await keeping.ask() == Deferred(return_at_ms=NOW_MS + 90_000)
    assert keeping.web.urls == []
    assert keeping.world.hosts[SITE].robots is None


async def test_blocked_host_gets_no_robots_request() -> None:
    keeping = Keeping()
    entry = RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow")
    blocked = Host(name=SITE, blocked_until_ms=NOW_MS + 5_000, robots=entry)
    keeping.world.hosts[SITE] = blocked
    assert await keeping.ask() == Deferred(return_at_ms=NOW_MS + 5_000)
    assert keeping.web.urls == []


@pytest.mark.parametrize(
    ("age_ms", "asked"),
    [
        (0, False),
        (FRESH_MS - 1, False),
        (FRESH_MS, True),
        # Clocks differ slightly, and a copy from the far future would never expire.
        (-UNREACHABLE_FRESH_MS, False),
        (-UNREACHABLE_FRESH_MS - 1, True),
        (-10 * 60_000, True),
    ],
)
async def test_cached_rules_are_used_for_a_day(age_ms: int, *, asked: bool) -> None:
    """A copy from the future is not used, because a clock was wrong (cases 25, 67)."""
    keeping = Keeping()
    entry = RobotsEntry(fetched_at_ms=NOW_MS - age_ms, body=b"")
    keeping.world.hosts[SITE] = Host(name=SITE, robots=entry)
    keeping.web.put(ROBOTS, answer(200, RULES))
    rules = await keeping.rules()
    assert bool(keeping.web.urls) is asked
    assert rules.allows("orbweaver", f"{SITE}/private/a") is not asked


async def test_changed_rules_are_seen_within_a_day() -> None:
    """A host can start to forbid during a crawl (case 67)."""
    keeping = Keeping().serve(answer(404), answer(200, RULES))
    assert await keeping.ask() is None
    keeping.clock.at_ms += FRESH_MS
    assert isinstance(await keeping.ask(), Robots)


async def test_parsed_rules_are_cached_for_limited_number_of_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(robots_module, "PARSED_MAX", 2)
    keeping = Keeping()
    entry = RobotsEntry(fetched_at_ms=NOW_MS, body=RULES)
    hosts = [f"https://host{place}.example" for place in range(3)]
    for host in hosts:
        keeping.world.hosts[host] = Host(name=host, robots=entry)

    async def rules(host: str) -> Ruling:
        return await keeping.keeper.rules_for(host, POLITE, NOW_MS)

    first = await rules(hosts[0])
    assert await rules(hosts[0]) is first
    await rules(hosts[1])
    await rules(hosts[2])
    again = await rules(hosts[0])
    assert again is not first
    assert isinstance(again, Robots)


async def test_long_file_is_parsed_outside_event_loop() -> None:
    keeping = Keeping()
    lines = b"".join(b"Disallow: /*%d$\n" % number for number in range(25_000))
    keeping.web.put(ROBOTS, answer(200, b"User-agent: *\n" + lines))
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(take_turns())
    rules = await keeping.ask()
    other.cancel()
    assert isinstance(rules, Robots)
    assert turns > 10
    assert not rules.allows("orbweaver/test", f"{SITE}/24999")


async def test_parsed_rules_cache_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def noted(body: bytes) -> Robots:
        parsed.append(body)
        return parse(body)

    monkeypatch.setattr(robots_module, "parse", noted)
    keeping = Keeping()
    hosts = [f"https://{number}.example" for number in range(8)]
    for host in hosts:
        keeping.web.put(f"{host}/robots.txt", answer(200, RULES + b"#" * (BYTES_MAX - 100)))
    for host in (*hosts, hosts[-1], hosts[0]):
        await keeping.keeper.rules_for(host, POLITE, keeping.clock.at_ms + 60_000)
    assert len(parsed) == len(hosts) + 1  # the last is still cached, the first is not
    kept = keeping.keeper._parsed
    assert sum(size_bytes for _, size_bytes in kept.values()) == keeping.keeper._parsed_bytes
    assert keeping.keeper._parsed_bytes <= PARSED_BYTES_MAX
