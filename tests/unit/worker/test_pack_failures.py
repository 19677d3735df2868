"""Failed and deferred packs, and links that need no write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.messages import Pack, SeedsMessage, child_id
from orbweaver.model.crawl import default_crawl
from orbweaver.model.http_exchange import Request
from orbweaver.model.settings import STRIKES_MAX
from orbweaver.politeness.host_schedule import Host
from orbweaver.worker.pack import REQUEUES_MAX
from orbweaver.worker.seen_store import CRAWLS_MAX
from tests.memory import Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    ROOT,
    SITE,
    Killed,
    Stage,
    fail_on,
    html,
    noting,
    outcomes,
    pack_of,
    survives,
    urls_of,
)
from tests.unit.worker.test_pack import SEEDS, A, B

# --- failed packs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receives", "failures", "buried"), [(4, 0, False), (5, 0, True), (2, 2, False), (2, 3, True)]
)
async def test_pack_is_dead_lettered_after_too_many_failures(
    receives: int, failures: int, *, buried: bool
) -> None:
    stage = Stage()
    stage.begin(CRAWL, A)
    pack = pack_of(A, failures=failures)
    assert await stage.deliver(pack, receives=receives) == []
    reasons = [mail.reason for mail in stage.world.buried]
    assert reasons == ([f"failed {receives + failures - 1} times"] if buried else [])
    assert (stage.web.urls == []) is buried


async def test_seeds_are_dead_lettered_after_too_many_failures() -> None:
    stage = Stage()
    stage.begin()
    assert await stage.deliver(SEEDS, receives=5) == []
    assert [mail.reason for mail in stage.world.buried] == ["failed 4 times"]


async def test_pack_received_again_is_split_before_requests() -> None:
    stage = Stage()
    pack = stage.begin(CRAWL, A, B)
    assert await stage.deliver(pack, receives=2) == []
    assert [mail.delay_s for mail in stage.world.sent] == [0, 0]
    one, other = stage.sent()
    assert (urls_of([one]), urls_of([other])) == ({A}, {B})
    assert stage.web.urls == []
    assert stage.counts() == {"claimed": 2}


async def test_url_crashing_worker_is_dead_lettered() -> None:
    dead: list[Request] = []

    def die(request: Request) -> None:
        dead.append(request)
        raise Killed

    async def gate(_effect: str, _moment: Moment) -> None:
        if dead:
            raise Killed

    stage = Stage()
    pack = stage.begin(CRAWL, A)
    stage.web.before = die
    for strike in range(STRIKES_MAX + 1):
        dead.clear()
        stage.restart(gate)
        assert not await survives(stage.deliver(replace(pack, failures=min(strike, 1))))
        assert stage.world.strikes == ({ROOT: strike} if strike else {})
    dead.clear()
    assert await stage.deliver(replace(pack, failures=1)) == []
    assert [mail.reason for mail in stage.world.buried] == ["crashed its worker 3 times"]
    assert len(stage.web.urls) == 1 + STRIKES_MAX


async def test_redriven_pack_is_tried_once_more() -> None:
    """The cause may be fixed (case 24)."""
    stage = Stage().serve({A: html()})
    stage.begin(CRAWL, A)
    pack = pack_of(A, failures=1)
    stage.world.strikes[ROOT] = STRIKES_MAX
    await stage.deliver(pack)
    (mail,) = stage.world.buried
    assert await stage.deliver(mail.body) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert len(stage.world.buried) == 1


@pytest.mark.parametrize("strikes", [0, 2])
async def test_deferred_suspect_keeps_its_strikes(strikes: int) -> None:
    stage = Stage()
    stage.begin(CRAWL, A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 90_000)
    stage.world.strikes[ROOT] = strikes
    assert await stage.deliver(pack_of(A), receives=3) == []
    assert stage.world.strikes[ROOT] == strikes
    (pack,) = stage.sent()
    assert pack == replace(pack_of(A, failures=1), requeues=1)


async def test_copies_of_deferred_suspect_merge_with_strikes() -> None:
    for strikes, left in ((2, {ROOT: 2, child_id(ROOT, 0): 2}), (0, {ROOT: 0})):
        stage = Stage()
        stage.begin(CRAWL, A)
        stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 90_000)
        stage.world.strikes[ROOT] = strikes
        pack = replace(pack_of(A, failures=1), requeues=REQUEUES_MAX)
        for _copy in range(2):
            assert await stage.deliver(pack) == []
        assert {sent.id for sent in stage.sent()} == {child_id(ROOT, 0)}
        assert stage.world.strikes == left


async def test_table_failure_is_no_strike() -> None:
    stage = Stage(gate=fail_on("hosts.reserve"))
    stage.begin(CRAWL, A)
    assert await stage.deliver(pack_of(A), receives=2) == []
    assert stage.sent() == [replace(pack_of(A, failures=1), requeues=1)]
    assert stage.world.strikes == {ROOT: 0}


# --- deferred packs ---------------------------------------------------------------------------


async def test_pack_without_slot_is_deferred_as_a_whole() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, delay_ms=1_000)
    pack = stage.begin(crawl, A, B)
    stage.world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    assert await stage.deliver(pack) == []
    assert [mail.delay_s for mail in stage.world.sent] == [90]
    assert stage.sent() == [replace(pack, requeues=1)]
    assert not {"packs.journal", "packs.commit"} & set(effects)


async def test_copies_of_often_deferred_pack_merge() -> None:
    """Otherwise the number of copies could double each time."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, delay_ms=1_000), A)
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 30 * 900_000)
    copies: list[Pack | SeedsMessage] = [pack]
    for place in range(REQUEUES_MAX + 1):
        assert [copy.id for copy in copies] == [ROOT] * 2**place
        for copy in copies * 2:
            await stage.deliver(copy)
        copies = stage.sent()
    assert [copy.id for copy in copies] == [child_id(ROOT, 0)]
    assert stage.counts()["deferrals"] == 1


async def test_deferred_pack_keeps_attempts_and_failures() -> None:
    """After thirty deferrals it has no failures (case 22)."""
    stage = Stage()
    crawl = replace(CRAWL, delay_ms=1_000, duration_max_s=30 * 86_400)
    pack = stage.begin(crawl, A)
    stage.web.put(A, html())
    stage.world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 30 * 900_000)
    for _ in range(30):
        await stage.deliver(pack)
        (mail,) = stage.world.sent
        assert mail.delay_s == 900
        (pack,) = (sent for sent in stage.sent() if isinstance(sent, Pack))
        assert (urls_of([pack]), pack.failures) == ({A}, 0)
        stage.clock.at_ms += 900_000
    await stage.deliver(pack)
    (record,) = stage.world.pages.values()
    assert record.attempt == 1
    assert stage.counts()["fetched"] == 1


async def test_requested_urls_are_committed_and_rest_returns() -> None:
    stage = Stage()
    crawl = replace(CRAWL, delay_ms=1_000)
    paths = [f"{SITE}/{place}" for place in range(25)]
    pack = stage.begin(crawl, *paths)
    assert await stage.deliver(pack) == []
    asked = stage.web.urls
    assert 0 < len(asked) < 25
    assert set(outcomes(stage.world)) == set(asked)
    (rest,) = stage.sent()
    assert urls_of([rest]) == set(paths) - set(asked)
    assert rest.id == child_id(ROOT, 0)
    assert stage.counts()["deferrals"] == 25 - len(asked)


@pytest.mark.parametrize(("remaining_ms", "asked"), [(28_000, False), (28_500, True)])
async def test_no_request_starts_too_late_for_commit(remaining_ms: int, *, asked: bool) -> None:
    """The URLs are returned well before the deadline (case 10)."""
    stage = Stage()
    pack = stage.begin(replace(CRAWL, delay_ms=1_000), A, B)
    assert await stage.deliver(pack, remaining_ms=remaining_ms) == []
    assert bool(stage.web.urls) is asked
    assert urls_of(stage.sent()) >= {B}
    assert stage.clock.at_ms < NOW_MS + remaining_ms


# --- links ------------------------------------------------------------------------------------


async def test_claimed_links_make_no_write() -> None:
    stage = Stage()
    stage.begin(CRAWL, A)
    links = [f"/{place}" for place in range(5)]
    stage.web.put(A, html(*links))
    await stage.deliver(pack_of(A))
    for name, effects_expected in (
        ("same container", {"frontier.known": 0, "frontier.claim": 0}),
        ("another container", {"frontier.known": 1, "frontier.claim": 0}),
    ):
        effects: list[str] = []
        seen = stage.processor._seen
        stage.restart(noting(effects))
        if name == "same container":
            stage.processor._link_dedup._seen = seen
        await stage.deliver(pack_of(A, pack=child_id(name, 0)))
        assert {key: effects.count(key) for key in effects_expected} == effects_expected, name
    assert stage.counts()["claimed"] == 6


async def test_seen_urls_are_not_kept_longer_than_window() -> None:
    stage = Stage()
    crawl = replace(default_crawl(NOW_MS), window_s=60, obey_robots=False, delay_ms=0)
    stage.begin(crawl)
    stage.web.put(A, html("/b"))
    for name in ("one", "two"):
        await stage.deliver(pack_of(A, crawl=crawl.id, pack=child_id(name, 0)))
        assert urls_of(stage.sent()) == {B}
        stage.clock.at_ms += 61_000


@pytest.mark.parametrize("other_crawls", [0, CRAWLS_MAX])
async def test_links_beyond_spent_budget_are_late(other_crawls: int) -> None:
    """They need no lookup, unless other crawls have evicted the crawl from the worker's memory."""
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    crawl = replace(CRAWL, pages_max=2)
    stage.begin(crawl, A, B)
    for url, links, word in ((A, ("/1", "/2", "/3"), "ant"), (B, ("/4", "/5"), "bee")):
        # Links of kinds with new pages are never late.
        text = " ".join(f"{word}{letter} hill" for letter in "abcdefghijklmnopqrst")
        found = html(*links, title=word)
        stage.web.put(url, replace(found, body=(found.body or b"") + f"<p>{text}".encode()))
    await stage.deliver(pack_of(A))
    assert stage.sent() == []
    seen = stage.processor._link_dedup._seen
    empty = Journal(at_ms=NOW_MS)
    for number in range(other_crawls):
        other = replace(crawl, id=f"other-{number}")
        await seen.note_commit(other, empty, Ledger(pack="other", children=(), surplus=True))
    assert seen.is_spent(crawl) is not bool(other_crawls)
    effects.clear()
    await stage.deliver(pack_of(B, pack=child_id("b", 0)))
    asked = {"frontier.known", "frontier.claim", "queue.send"} & set(effects)
    assert asked == ({"frontier.known", "frontier.claim"} if other_crawls else set())
    assert seen.is_spent(crawl)
    assert len(seen._spent) <= CRAWLS_MAX
    assert stage.counts()["claimed"] == 2
    assert stage.counts()["late_links"] == 5
    assert "refused.budget" not in stage.counts()


async def test_outcomes_and_failures_are_metrics() -> None:
    stage = Stage().serve({A: html()})
    stage.begin(CRAWL, A, B)
    await stage.deliver(pack_of(A, B))
    ended = {"fetched": 1, "failed": 1, "UrlsEnded": 2}
    assert stage.metrics.totals == {**ended, "bytes": 19}
    assert stage.metrics.failures == {"http_client_error": 1}


async def test_failed_journal_write_returns_pack() -> None:
    """No claim or record is written before the journal (case 3)."""
    stage = Stage(gate=fail_on("packs.journal")).serve({A: html("/b")})
    pack = stage.begin(CRAWL, A)
    assert await stage.deliver(pack) == [0]
    assert (stage.world.claims, stage.world.pages) == ({}, {})
    known = await stage.packs.recall([ROOT])
    assert ROOT not in known
