"""robots.txt: fetched in a slot, followed through redirects, kept for a day."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from orbweaver.model.http_exchange import Failure, Response
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
from tests.unit.stage import CRAWL, NOW_MS, SITE, SmallWeb, answer

ROBOTS = f"{SITE}/robots.txt"
RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 3\n"
POLITE = replace(CRAWL, delay_ms=1_000, obey_robots=True)


@dataclass
class Keeping:
    """A keeper, the web it asks, and the hosts it keeps what it learns with."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)
        self.restart()

    def restart(self) -> None:
        """Start another container over the same hosts."""
        self.keeper = RobotsKeeper(
            fetcher=self.web,
            hosts=MemoryHosts(self.world),
            clock=self.clock,
            settings=Settings(user_agent="orbweaver/test"),
        )

    async def ask(self, ahead_ms: int = 60_000) -> Ruling:
        """Ask for the rules of the site."""
        return await self.keeper.of(SITE, POLITE, self.clock.at_ms + ahead_ms)


async def test_rules_are_fetched_once_for_all_containers() -> None:
    """The first to come fetches the file; everybody else finds it with the host."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, answer(200, RULES))
    for _ in range(2):
        rules = await keeping.ask()
        assert isinstance(rules, Robots)
        assert not rules.allows("orbweaver/test", f"{SITE}/private/a")
        assert rules.allows("orbweaver/test", f"{SITE}/a")
        keeping.restart()
    assert keeping.web.urls == [ROBOTS]


async def test_the_request_is_bounded_and_honest() -> None:
    """The file is asked for under our name, whatever its type, and read up to 500 KiB (case 67)."""
    keeping = Keeping()
    await keeping.ask()
    (request,) = keeping.web.requests
    assert (request.user_agent, request.body_bytes_max) == ("orbweaver/test", BYTES_MAX)
    assert request.accept == frozenset({"*/*"})


async def test_a_crawl_of_another_name_asks_under_it() -> None:
    """A crawl's own user agent goes before the stack's."""
    keeping = Keeping()
    await keeping.keeper.of(SITE, replace(POLITE, user_agent="mine/1"), NOW_MS + 60_000)
    assert keeping.web.requests[0].user_agent == "mine/1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
async def test_a_file_that_is_not_there_allows_everything(status: int) -> None:
    """RFC 9309 2.3.1.3: unavailable means no rules, and that is kept too (case 67)."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, answer(status))
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
async def test_a_file_that_cannot_be_had_forbids_everything(
    said: Response | Failure, detail: str
) -> None:
    """RFC 9309 2.3.1.4: unreachable means complete disallow, until asked again (case 67)."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, said)
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


async def test_an_empty_file_has_no_rules() -> None:
    """A success without a body is an empty file."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, answer(204, None))
    rules = await keeping.ask()
    assert isinstance(rules, Robots)
    assert rules.allows("orbweaver", f"{SITE}/private/a")


@pytest.mark.parametrize(("hops", "followed"), [(1, True), (5, True), (6, False), (100, False)])
async def test_five_redirects_are_followed(hops: int, *, followed: bool) -> None:
    """Redirects lead to the rules, across hosts; more than five mean that there are none."""
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


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://[bad/", "javascript:x"])
async def test_a_redirect_to_nowhere_is_no_file(location: str) -> None:
    """Another scheme, or what is no URL, is never followed (case 42)."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, answer(302, location=location))
    assert await keeping.ask() is None
    assert keeping.web.urls == [ROBOTS]


@pytest.mark.parametrize("over", [-1, 0, 1, 5])
async def test_a_file_that_is_too_long_loses_its_last_line_and_no_more(over: int) -> None:
    """`Allow: /public/` cut after `Allow: /` would allow everything (RFC 9309 2.5)."""
    keeping = Keeping()
    start, last = b"User-agent: *\nDisallow: /\n", b"Allow: /public/\n"
    cut_at = len(b"Allow: /")
    size = BODY_BYTES_MAX - cut_at - over
    body = start + b"#" * (size - len(start) - 1) + b"\n" + last
    cut = replace(answer(200, body[:BYTES_MAX]), truncated=len(body) > BYTES_MAX)
    keeping.web.put(ROBOTS, cut)
    rules = await keeping.ask()
    assert isinstance(rules, Robots)
    assert not rules.allows("orbweaver", f"{SITE}/private")
    assert BYTES_MAX > BODY_BYTES_MAX  # or nothing tells whether the last line is whole


async def test_a_file_that_ends_early_loses_half_an_allow() -> None:
    """A body that broke off, or a part of a file, may end within a rule: half an Allow goes."""
    for status, truncated in ((200, True), (206, False)):
        keeping = Keeping()
        part = answer(status, b"User-agent: *\nDisallow: /\nAllow: /")
        keeping.web.put(ROBOTS, replace(part, truncated=truncated))
        rules = await keeping.ask()
        assert isinstance(rules, Robots)
        assert not rules.allows("orbweaver", f"{SITE}/private")
        keeping = Keeping()
        part = answer(status, b"User-agent: *\nAllow: /\nDisallow: /private")
        keeping.web.put(ROBOTS, replace(part, truncated=truncated))
        rules = await keeping.ask()
        assert isinstance(rules, Robots)
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
async def test_a_coding_that_is_none_is_no_trouble(
    coding: str, body: bytes, *, known: bool
) -> None:
    """Text is read whatever it is called; what is no text says nothing, so nothing is allowed."""
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


async def test_every_hop_has_a_slot_of_its_host() -> None:
    """The file is asked for like a page: no sooner than the host may be asked."""
    keeping = Keeping()
    keeping.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 4_000)
    keeping.web.put(ROBOTS, answer(301, location="/other.txt"))
    keeping.web.put(f"{SITE}/other.txt", answer(404))
    await keeping.ask()
    first_ms, second_ms = (at_ms for _, at_ms in keeping.web.asked)
    assert first_ms >= NOW_MS + 4_000
    assert second_ms >= first_ms + POLITE.delay_ms


async def test_without_a_slot_the_question_is_deferred() -> None:
    """Nothing is asked, and nothing kept, when the host's slots lie beyond the horizon."""
    keeping = Keeping()
    keeping.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    assert await keeping.ask() == Deferred(return_at_ms=NOW_MS + 90_000)
    assert keeping.web.urls == []
    assert keeping.world.hosts[SITE].robots is None


async def test_a_blocked_host_is_not_asked() -> None:
    """Not even for its rules, and not even if they are known."""
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
        # Clocks differ a little, and a copy from far ahead would never grow old.
        (-UNREACHABLE_FRESH_MS, False),
        (-UNREACHABLE_FRESH_MS - 1, True),
        (-10 * 60_000, True),
    ],
)
async def test_a_copy_is_used_for_a_day(age_ms: int, *, asked: bool) -> None:
    """A copy of up to 24 hours is used; one from a clock that jumped is not (cases 25, 67)."""
    keeping = Keeping()
    entry = RobotsEntry(fetched_at_ms=NOW_MS - age_ms, body=b"")
    keeping.world.hosts[SITE] = Host(name=SITE, robots=entry)
    keeping.web.put(ROBOTS, answer(200, RULES))
    rules = await keeping.ask()
    assert isinstance(rules, Robots)
    assert bool(keeping.web.urls) is asked
    assert rules.allows("orbweaver", f"{SITE}/private/a") is not asked


async def test_rules_that_change_are_seen_within_a_day() -> None:
    """A host that begins to forbid in mid-crawl is obeyed (case 67)."""
    keeping = Keeping()
    keeping.web.put(ROBOTS, answer(404), answer(200, RULES))
    assert await keeping.ask() is None
    keeping.clock.at_ms += FRESH_MS
    assert isinstance(await keeping.ask(), Robots)


async def test_what_is_parsed_is_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are parsed once while they are remembered, of a bounded number of hosts."""
    monkeypatch.setattr(robots_module, "PARSED_MAX", 2)
    keeping = Keeping()
    entry = RobotsEntry(fetched_at_ms=NOW_MS, body=RULES)
    hosts = [f"https://host{place}.example" for place in range(3)]
    for host in hosts:
        keeping.world.hosts[host] = Host(name=host, robots=entry)

    async def rules(host: str) -> Ruling:
        return await keeping.keeper.of(host, POLITE, NOW_MS)

    first = await rules(hosts[0])
    assert await rules(hosts[0]) is first
    await rules(hosts[1])
    await rules(hosts[2])
    again = await rules(hosts[0])
    assert again is not first
    assert isinstance(again, Robots)


async def test_a_long_file_is_read_beside_the_event_loop() -> None:
    """While half a megabyte of rules is read and indexed, others get their turns."""
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


async def test_what_is_kept_parsed_is_bounded_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of many rules make room for one another, the oldest first; small ones stay."""
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
        await keeping.keeper.of(host, POLITE, keeping.clock.at_ms + 60_000)
    assert len(parsed) == len(hosts) + 1  # the last is still there, the first is not
    kept = keeping.keeper._parsed
    assert sum(size_bytes for _, size_bytes in kept.values()) == keeping.keeper._parsed_bytes
    assert keeping.keeper._parsed_bytes <= PARSED_BYTES_MAX
