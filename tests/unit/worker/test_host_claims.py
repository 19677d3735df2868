"""Known claims on a host's URLs, which containers share in files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.backlog import with_place
from orbweaver.frontier.claims import ClaimStates
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.known_claims import KnownClaims, decode
from orbweaver.frontier.late_links import place_at
from orbweaver.frontier.messages import Pack, child_id
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import NOTHING, Permanent, Transient
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind
from orbweaver.worker import host_claims, seen_store
from orbweaver.worker.host_claims import ClaimFiles, is_worth_saving, key_of
from orbweaver.worker.rounds import Round
from orbweaver.worker.seen_store import HOST_BYTES, HOSTS_BYTES_MAX, IN_USE_MS, SeenStore, SeenUrls
from orbweaver.worker.shutdown import ShutdownSignal
from tests.memory import ManualClock, MemoryFiles, MemoryFrontier, MemoryMetrics, Moment, World
from tests.memory.world import Claim, Gate
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, fail_on, html, noting, pack_of

POLITE = replace(CRAWL, delay_ms=1_000)
SETTINGS = Settings.of(claims_travel="yes")
KEY = key_of(POLITE.id, POLITE.pages_max, SITE)


def packed(name: str, crawl: Crawl = POLITE) -> Pack:
    pack = pack_of(f"{SITE}/{name}", crawl=crawl.id, pack=child_id("pack", name))
    return with_place(replace(pack, at_ms=NOW_MS))


def stored(*names: str) -> bytes:
    claims = KnownClaims()
    claims.add(f"{SITE}/{name}" for name in names)
    return claims.encode()


def staged(
    monkeypatch: pytest.MonkeyPatch, *, least: int = 1, last_ms: int = 3_000, **more: Any
) -> Stage:
    """Make a stage whose containers share claims."""
    monkeypatch.setattr(host_claims.ClaimFiles.__init__, "__kwdefaults__", {
        "metrics": None, "new_least": least, "last_ms": last_ms,
    })  # fmt: skip
    return Stage(settings=SETTINGS, **more)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records the looked-up URLs."""
    found: list[str] = []
    known = MemoryFrontier.known

    async def noted(self: Any, claimer: Any, urls: Any, modified: Any = NOTHING) -> Any:
        found.extend(urls)
        return await known(self, claimer, urls, modified)

    monkeypatch.setattr(MemoryFrontier, "known", noted)
    return found


def claimed(
    stage: Stage, *names: str, crawl: Crawl = POLITE, by: str = "", at_ms: int = NOW_MS
) -> None:
    for name in names:
        url = f"{SITE}/{name}"
        stage.world.claims[crawl.name, url] = Claim(
            url=url, pack="another", crawl=by or crawl.id, at_ms=at_ms, expires_s=2**40
        )


async def test_links_in_claims_file_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch, looked: list[str]
) -> None:
    stage = staged(monkeypatch)
    stage.begin(POLITE, f"{SITE}/page")
    stage.world.files[KEY] = stored("a", "b")
    claimed(stage, "a", "b")
    stage.web.put(f"{SITE}/page", html("/a", "/b", "/c"))
    assert await stage.deliver(packed("page")) == []
    assert looked == [f"{SITE}/c"]
    assert stage.counts()["claimed"] == 2
    # Links from the file are remembered as seen.
    urls = [f"{SITE}/{name}" for name in "abc"]
    assert stage.processor._seen.seen(POLITE, urls) == set(urls)


async def test_learned_claims_are_saved_for_next_container(
    monkeypatch: pytest.MonkeyPatch, looked: list[str]
) -> None:
    stage = staged(monkeypatch, last_ms=10**9)
    stage.begin(POLITE, f"{SITE}/page0", f"{SITE}/page1")
    claimed(stage, "old")
    claimed(stage, "other-run", by="site-0")
    stage.web.put(f"{SITE}/page0", html("/a", "/b", "/old", "/other-run"))
    await stage.deliver(packed("page0"))  # the links of this page become known claims
    assert stage.world.files[KEY] == stored("a", "b", "old")
    looked.clear()
    stage.restart()
    stage.web.put(f"{SITE}/page1", html("/a", "/b", "/old"))
    await stage.deliver(packed("page1"))
    assert looked == []


@pytest.mark.parametrize("fault", [Transient, Permanent, asyncio.Event])
async def test_failing_claims_files_do_not_stop_packs(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[str], Exception] | type[asyncio.Event]
) -> None:
    async def gate(effect: str, moment: Moment) -> None:
        if effect.startswith("files.") and moment is Moment.BEFORE:
            if fault is asyncio.Event:
                await asyncio.Event().wait()
            raise fault("files")  # type: ignore[call-arg, misc]

    stage = staged(monkeypatch, last_ms=10**9, gate=gate)
    crawl = replace(POLITE, bodies=POLITE.bodies.OFF)
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    for number in range(2):
        stage.web.put(f"{SITE}/page{number}", html(f"/{number}"))
        assert await stage.deliver(packed(f"page{number}", crawl)) == []
    await stage.drain()  # a pack whose slot is too late has returned by then
    assert stage.counts()["claimed"] == 4
    assert stage.world.files == {}


@pytest.mark.parametrize(
    "change",
    [{"delay_ms": 0}, {"continuous": True}, {"place": ""}, {"claims_travel": "no"}],
    ids=str,
)
async def test_other_packs_access_no_claims_file(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    effects: list[str] = []
    stage = staged(monkeypatch, last_ms=10**9, gate=noting(effects))
    if "claims_travel" in change:
        stage.settings = Settings()
        stage.restart(noting(effects))
    known = {key: value for key, value in change.items() if hasattr(POLITE, key)}
    crawl = replace(POLITE, bodies=POLITE.bodies.OFF, **known)
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    for number in range(2):
        pack = packed(f"page{number}", crawl)
        stage.web.put(f"{SITE}/page{number}", html())
        await stage.deliver(replace(pack, place=change.get("place", pack.place)))
    assert not [effect for effect in effects if effect.startswith("files.")]


async def test_released_claims_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = staged(monkeypatch, last_ms=10**9)
    crawl = replace(POLITE, pages_max=3)
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    # Each page is new, so its links are requested at once.
    found = html("/a", "/b", title="ant")
    text = " ".join(f"ant{letter} hill" for letter in "abcdefghijklmnopqrst")
    found = replace(found, body=(found.body or b"") + f"<p>{text}".encode())
    stage.web.put(f"{SITE}/page0", found)
    stage.web.put(f"{SITE}/page1", html("/c"))
    await stage.deliver(packed("page0", crawl))
    await stage.deliver(packed("page1", crawl))
    standing = [name for name in "ab" if ("site", f"{SITE}/{name}") in stage.world.claims]
    assert len(standing) == 1
    assert stage.world.files[key_of(crawl.id, 3, SITE)] == stored(*standing)
    more = replace(crawl, pages_max=4)
    stage.world.crawls[crawl.id] = more
    stage.restart()
    assert key_of(more.id, more.pages_max, SITE) not in stage.world.files


class Visits:
    """Known claims of a container, with its file accesses in a round."""

    def __init__(self, gate: Gate | None = None, **more: Any) -> None:
        self.world, self.clock = World(), ManualClock(NOW_MS)
        self.effects: list[str] = []
        files = MemoryFiles(self.world, gate or noting(self.effects))
        self.metrics = MemoryMetrics()
        self.seen = SeenStore(self.clock)
        self.claim_files = ClaimFiles(
            self.seen,
            files=files,
            clock=self.clock,
            settings=SETTINGS,
            metrics=self.metrics,
            **more,
        )
        self.round = Round(
            clock=self.clock,
            settings=SETTINGS,
            deadline_ms=NOW_MS + 90_000,
            ending=ShutdownSignal(),
        )

    def visit(
        self, host: str = SITE, *, crawl: Crawl = POLITE, early: bool = False, until_s: int = 60
    ) -> Callable[[], None]:
        target = Target(url=f"{host}/page", depth=0)
        pack = replace(packed("page", crawl), targets=(target,))
        return self.claim_files.visit(crawl, pack, self.round, NOW_MS + until_s * 1000, early=early)

    def claim(self, urls: list[str]) -> None:
        self.seen._note_final(POLITE, urls)

    async def known(self, urls: list[str], crawl: Crawl = POLITE) -> set[str]:
        """Return the URLs that a file of a host contains."""
        seen = copy(self.seen)
        seen._claimed = SeenUrls()
        await seen.note_host_claims(crawl, urls)
        return set(seen.seen(crawl, urls))

    async def settle(self) -> None:
        for _ in range(9):
            await asyncio.sleep(0)


def urls(count: int, host: str = SITE) -> list[str]:
    return [f"{host}/{place}" for place in range(count)]


async def test_round_reads_file_once_and_writes_near_its_end() -> None:
    visits = Visits(new_least=5)
    asking = visits.visit()
    early = visits.visit(early=True)
    early()
    await visits.settle()
    assert visits.effects == []
    asking()
    asking()
    visits.visit()()
    await visits.settle()
    assert visits.effects == ["files.get"]
    visits.claim(urls(4))
    visits.clock.at_ms += 58_000
    asking()
    await visits.settle()
    assert visits.effects == ["files.get"]
    visits.claim(urls(9))
    early()
    early()
    await visits.settle()
    assert visits.effects == ["files.get", "files.put"]
    assert len(decode(visits.world.files[KEY])) == 9
    visits.claim(urls(20))
    visits.visit(until_s=120)()
    await visits.settle()
    assert visits.effects == ["files.get", "files.put", "files.get"]


async def test_failed_write_is_repeated_in_next_round() -> None:
    visits = Visits(fail_on("files.put"), new_least=5, last_ms=10**9)
    visits.visit()
    visits.claim(urls(9))
    for until_s, there in ((60, False), (120, True)):
        visits.visit(until_s=until_s)()
        await visits.settle()
        assert (KEY in visits.world.files) is there


@pytest.mark.parametrize(
    ("denied", "fault", "counted"),
    [
        ("files.put", Permanent, 1),
        ("files.put", Transient, 0),
        ("files.get", Permanent, 1),  # only once the file was written here
        ("files.get", Transient, 0),
        ("", Permanent, 0),
    ],
)
async def test_denied_claims_file_is_counted(
    denied: str, fault: Callable[[str], Exception], counted: int
) -> None:
    visits = Visits(fail_on(denied, times=9, error=fault), new_least=5, last_ms=10**9)
    visits.visit()
    visits.claim(urls(9))
    for until_s in (60, 120):
        visits.visit(until_s=until_s)()
        await visits.settle()
        if denied == "files.put":
            break
    assert visits.metrics.totals["ClaimsRefused"] == counted


async def test_claims_of_unvisited_hosts_are_not_kept() -> None:
    visits = Visits()
    visits.visit()
    other = "https://other.example"
    visits.claim([*urls(3), *urls(3, other)])
    assert await visits.known([*urls(4), *urls(3, other)]) == set(urls(3))
    assert await visits.known(urls(3), replace(POLITE, id="site-2")) == set()
    assert await visits.known(urls(3), replace(POLITE, pages_max=9)) == set()
    links = tuple(Target(url=url, depth=1) for url in urls(3))
    journal = Journal(at_ms=NOW_MS, candidates=links)
    await visits.seen.note_commit(POLITE, journal, Ledger(pack="p", children=(1, 2), surplus=True))
    assert await visits.known(urls(3)) == set(urls(3)[1:])


async def test_reads_are_not_learned_if_limits_are_sharded() -> None:
    visits = Visits()
    shared = replace(POLITE, id="site-2", shards=2, quotas=(1, 9))
    for crawl, known in ((POLITE, 3), (shared, 0)):
        visits.visit(crawl=crawl)
        found = ClaimStates(held=frozenset(urls(3)), own=frozenset(urls(3)))
        visits.seen.note_lookup(crawl, urls(3), found, None)
        assert len(await visits.known(urls(3), crawl)) == known


async def test_unused_hosts_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_store, "HOSTS_BYTES_MAX", 3 * HOST_BYTES + 3_000)
    visits = Visits()
    hosts = [f"https://{number}.example" for number in range(4)]
    for host in hosts[:3]:
        visits.visit(host)
        visits.claim(urls(10, host))
    assert visits.visit(hosts[3]) is host_claims._nothing
    visits.claim(urls(11, hosts[2]))
    assert len(await visits.known(urls(11, hosts[2]))) == 10
    visits.clock.at_ms += IN_USE_MS + 1
    visits.visit(hosts[1])
    visits.visit(hosts[3])
    known = [len(await visits.known(urls(10, host))) for host in hosts]
    assert known == [0, 10, 10, 0]


async def test_file_without_room_is_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [f"{SITE}/x{place}" for place in range(100)]
    # The second file seems to fit into the remaining memory.
    for count, kept in ((190, own), (150, [])):
        monkeypatch.undo()
        visits = Visits(new_least=100, last_ms=10**9)
        asking = visits.visit()
        visits.claim(own)
        visits.visit(until_s=50, early=True)()  # it is saved, and then takes less room
        await visits.settle()
        monkeypatch.setattr(seen_store, "HOSTS_BYTES_MAX", HOST_BYTES + 1_500)
        claims = KnownClaims()
        claims.add(urls(count))
        visits.world.files[KEY] = claims.encode()
        asking()
        await visits.settle()
        assert await visits.known([*own, *urls(200)]) == set(kept)


@pytest.mark.parametrize(
    ("new", "left_ms", "saved"),
    [(200, 2_999, True), (199, 2_999, False), (200, 3_000, False), (10**6, -5, True)],
)
def test_claims_are_saved_at_round_end_if_enough(new: int, left_ms: int, saved: bool) -> None:
    assert is_worth_saving(new, left_ms) is saved


def test_six_largest_files_fit_in_memory() -> None:
    assert HOSTS_BYTES_MAX // 800_000 == 6


async def test_late_packs_and_modified_links_ignore_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may contain a claim that was released or is outdated."""
    stage = staged(monkeypatch)
    crawl = replace(POLITE, pages_max=10)
    stage.begin(crawl, f"{SITE}/page", f"{SITE}/another")
    stage.world.files[key_of(crawl.id, crawl.pages_max, SITE)] = stored("given-back", "changed")
    claimed(stage, "changed", crawl=crawl, at_ms=NOW_MS - 3 * 86_400_000)
    sitemap = replace(packed("sitemap.xml", crawl), targets=(
        Target(url=f"{SITE}/sitemap.xml", depth=0, kind=TargetKind.SITEMAP),
    ))  # fmt: skip
    entry = f"<url><loc>{SITE}/changed</loc><lastmod>2026-11-20</lastmod></url>"
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entry}</urlset>'.encode()
    stage.web.put(f"{SITE}/sitemap.xml", answer(200, body, content_type="application/xml"))
    await stage.deliver(sitemap)
    assert f"{SITE}/changed" in stage.web.urls
    waited = Target(url=f"{SITE}/given-back", depth=1, express=True)
    late = pack_of(waited.url, crawl=crawl.id, pack=child_id("late", 0))
    late = replace(late, late=True, place=place_at(2, [waited], NOW_MS, late.id), targets=(waited,))
    await stage.deliver(late)
    assert stage.world.claims[crawl.name, waited.url].pack == late.id


@pytest.mark.parametrize(
    ("settings", "used"),
    [
        (Settings(), False),
        (Settings.of(waits_billed="yes"), True),
        (Settings.of(waits_billed="yes", claims_travel="no"), False),
        (Settings.of(claims_travel="yes"), True),
    ],
)
def test_claims_travel_by_default_where_waits_are_billed(settings: Settings, *, used: bool) -> None:
    clock = ManualClock(NOW_MS)
    claims = ClaimFiles(
        SeenStore(clock), files=MemoryFiles(World()), clock=clock, settings=settings
    )
    round_ = Round(clock=clock, settings=settings, deadline_ms=NOW_MS, ending=ShutdownSignal())
    asking = claims.visit(POLITE, packed("page"), round_, NOW_MS, early=True)
    assert (asking is not host_claims._nothing) is used
