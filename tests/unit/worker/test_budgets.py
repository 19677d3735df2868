"""Limits of bytes, dollars and pages per host, also with repeated deliveries."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orbweaver.budget import prices
from orbweaver.budget.budget_rules import DEAD_MS, BudgetState, TryLater
from orbweaver.budget.reservation import (
    REACH_TRIES,
    REACH_WAIT_S,
    ROOM_BYTES_FIRST,
    ROOM_BYTES_MAX,
    ROOM_BYTES_MIN,
    TAKE_TRIES,
    AllowedSize,
)
from orbweaver.frontier.admission import admit_child, admit_redirect
from orbweaver.frontier.messages import SeedsMessage
from orbweaver.model.crawl import Crawl, LimitPart, State, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target, TargetKind
from orbweaver.parsing.sitemap import SitemapEntry
from tests.memory import ManualClock, Moment
from tests.unit.stage import (
    CRAWL,
    NOW_MS,
    ROOT,
    SITE,
    Stage,
    answer,
    fail_on,
    html,
    kill_on,
    noting,
    pack_of,
    survives,
)

OTHER = "https://other.example"
# Bodies have at most 1,000 bytes, so the smallest useful rest (1/64) is 15.
SMALL = Settings.of(body_bytes_max=1_000)
PAGES = [f"{SITE}/{place}" for place in range(5)]
SEEDS = SeedsMessage(
    id="5eed", crawl=CRAWL.id, at_ms=NOW_MS, references=tuple(PAGES), planned=False
)


def page(size: int) -> Response:
    return replace(html(), body=b"<title>t</title>".ljust(size))


def stage_of(crawl: Crawl, *urls: str, size: int = 100) -> Stage:
    stage = Stage(settings=SMALL)
    stage.begin(crawl, *urls)
    for url in urls:
        stage.web.put(url, page(size))
    return stage


def ends(stage: Stage, crawl: Crawl) -> dict[str, int]:
    return {key: count for key, count in stage.counts(crawl).items() if "." in key}


def budget_state(stage: Stage, part: LimitPart) -> BudgetState:
    return stage.world.budgets[CRAWL.id, part]


# --- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "before", "pages", "asked", "cuts", "stop"),
    [
        (250, 0, 5, 3, 1, Stop.BYTES),
        (1_100, 0, 5, 5, 0, Stop.FINISHED),  # unused reservations are returned
        (150, 0, 2, 2, 1, Stop.BYTES),  # links behind the cut may be missing
        (1_000, 900, 5, 1, 0, Stop.BYTES),  # bytes received before the limit was set
    ],
)
async def test_byte_limit_truncates_last_body_and_skips_rest(
    limit: int, before: int, pages: int, asked: int, cuts: int, stop: Stop
) -> None:
    crawl = replace(CRAWL, bytes_max=limit)
    stage = stage_of(crawl, *PAGES[:pages])
    if before:
        stage.count(crawl, received_bytes=before)
    assert await stage.deliver(pack_of(*PAGES[:pages])) == []
    assert stage.web.urls == PAGES[:asked]
    used = min(limit, before + 100 * pages)
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=used, taken_at_ms=NOW_MS)
    assert ends(stage, crawl).get("cut.bytes", 0) == cuts
    assert ends(stage, crawl).get("skipped.bytes", 0) == pages - asked
    assert stage.world.journals[ROOT].unasked == tuple(PAGES[asked:pages])
    ended = stage.world.crawls[crawl.id]
    assert (ended.state, ended.stop) == (State.FINISHED, stop)


async def test_page_over_body_limit_sets_no_stop_reason() -> None:
    """Every crawl truncates such a page."""
    stage = stage_of(CRAWL, PAGES[0])
    stage.web.put(PAGES[0], replace(answer(200), body=b"x" * 50, truncated=True))
    assert await stage.deliver(pack_of(PAGES[0])) == []
    assert stage.world.crawls[CRAWL.id].stop is Stop.FINISHED


async def test_pack_waits_for_bytes_reserved_by_others() -> None:
    crawl = replace(CRAWL, bytes_max=1_500)
    stage = stage_of(crawl, *PAGES)
    stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState(
        used=1_500, reserved=1_400, taken_at_ms=NOW_MS
    )
    assert await stage.deliver(pack_of(*PAGES)) == []
    assert stage.web.urls == []
    (mail,) = stage.world.sent
    assert mail.delay_s == 5
    assert stage.sent() == [replace(pack_of(*PAGES), requeues=1)]
    stage.clock.at_ms += DEAD_MS
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == []
    assert ends(stage, crawl) == {"skipped.bytes": 5}


async def test_received_bytes_of_failed_answers_count() -> None:
    crawl = replace(CRAWL, bytes_max=5_000)
    stage = stage_of(crawl, PAGES[0], PAGES[1])
    stage.web.put(PAGES[0], Failure(reason=Reason.TLS, detail="", received=400))
    stage.web.put(PAGES[1], replace(answer(404), received=30))
    await stage.deliver(pack_of(*PAGES[:2]))
    assert budget_state(stage, LimitPart.BYTES).used == 430
    assert stage.world.journals[ROOT].counts["received_bytes"] == 430


async def test_reservation_of_dead_worker_counts_as_received() -> None:
    crawl = replace(CRAWL, bytes_max=10_000)
    stage = stage_of(crawl, PAGES[0])
    stage.restart(kill_on("packs.journal", Moment.BEFORE))
    assert not await survives(stage.deliver(pack_of(PAGES[0])))
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(
        used=1_000, reserved=1_000, taken_at_ms=NOW_MS
    )
    stage.restart()
    await stage.deliver(pack_of(PAGES[0]), receives=2)
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(
        used=1_100, reserved=1_000, taken_at_ms=NOW_MS
    )


@pytest.mark.parametrize("moment", Moment)
async def test_repeated_commit_settles_reservation_once(moment: Moment) -> None:
    crawl = replace(CRAWL, bytes_max=10_000)
    stage = stage_of(crawl, *PAGES)
    stage.restart(fail_on("packs.commit", moment))
    assert await stage.deliver(pack_of(*PAGES)) == [0]
    assert await stage.deliver(pack_of(*PAGES), receives=2) == []
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=500, taken_at_ms=NOW_MS)


async def test_raised_byte_limit_applies_at_once() -> None:
    crawl = replace(CRAWL, bytes_max=150)
    stage = stage_of(crawl, *PAGES)
    stage.count(crawl, claimed=1)
    await stage.deliver(pack_of(*PAGES[:3]))
    assert stage.web.urls == PAGES[:2]
    stage.world.crawls[crawl.id] = replace(crawl, bytes_max=5_000)
    stage.clock.at_ms += 6_000
    await stage.deliver(pack_of(*PAGES[3:], pack="b"))
    assert stage.web.urls == [*PAGES[:2], *PAGES[3:]]


async def test_request_waits_for_reservation_in_same_delivery() -> None:
    crawl = replace(CRAWL, bytes_max=100)
    reservation = stage_of(crawl).budget_keeper.open(crawl, ROOT).bytes
    assert reservation is not None
    assert await reservation.take(100, 10) == 100
    assert await reservation.take(100, 10) == TryLater()
    reservation.put_back(80)
    assert await reservation.take(100, 10) == 80


async def test_contended_limit_is_tried_again_later() -> None:
    crawl = replace(CRAWL, bytes_max=100)
    stage = stage_of(crawl)

    async def others(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("allowances.take", Moment.BEFORE):
            used = budget_state(stage, LimitPart.BYTES).used
            stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState(used=used + 1)

    stage.restart(others)
    stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState()
    reservation = stage.budget_keeper.open(crawl, ROOT).bytes
    assert reservation is not None
    assert await reservation.take(100, 1) == TryLater()
    assert budget_state(stage, LimitPart.BYTES).used == TAKE_TRIES
    stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState()
    assert await reservation.take(50, 1) == 50


@pytest.mark.parametrize(("fails", "later_ms"), [(False, 0), (False, 1), (True, 1)])
async def test_second_delivery_returns_its_reservation(fails: bool, later_ms: int) -> None:
    """Only one of two journals wins, even within a millisecond, but received bytes count for both.

    If the return fails, the reservation stays until it counts as dead.
    """
    crawl = replace(CRAWL, bytes_max=10_000)
    stage = stage_of(crawl, PAGES[0])
    twin = Stage(settings=SMALL, world=stage.world, clock=ManualClock(NOW_MS + later_ms))
    twin.web = stage.web
    begun = asyncio.Barrier(2)

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("packs.journal", Moment.BEFORE):
            await begun.wait()
        if fails and effect == "allowances.settle":
            raise Transient("lost")

    for each in (stage, twin):
        each.restart(gate)
    pack = pack_of(PAGES[0])
    async with asyncio.timeout(10):
        one, other = await asyncio.gather(stage.deliver(pack), twin.deliver(pack))
    assert (one, other) == ([], [])
    assert stage.web.urls == [PAGES[0]] * 2
    assert stage.world.journals[ROOT].counts["received_bytes"] == 100
    standing = budget_state(stage, LimitPart.BYTES)
    assert bool(standing.reserved) is fails
    assert standing.used == 100 + (standing.reserved if fails else 100)


async def test_crawl_without_limits_accesses_no_budget() -> None:
    effects: list[str] = []
    stage = stage_of(CRAWL, *PAGES)
    stage.restart(noting(effects))
    await stage.deliver(pack_of(*PAGES))
    assert not [effect for effect in effects if effect.startswith("allowances")]
    assert stage.world.journals[ROOT].counts["received_bytes"] == 500
    assert stage.world.journals[ROOT].counts["nanodollars"] > 0


# --- reserved bytes for one body --------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "size", "stored", "stop"),
    [
        (2_000_000, 300_000, 300_000, Stop.FINISHED),  # longer than the bytes reserved first
        (1_000_000, 900_000, 900_000, Stop.FINISHED),
        (200_000, 150_000, 150_000, Stop.FINISHED),
        (200_000, 200_000, 200_000, Stop.FINISHED),  # exactly the limit
        (200_000, 200_001, 200_000, Stop.BYTES),
    ],
)
async def test_body_is_truncated_only_at_limit(
    limit: int, size: int, stored: int, stop: Stop
) -> None:
    crawl = replace(CRAWL, bytes_max=limit)
    stage = Stage()
    stage.begin(crawl, PAGES[0])
    stage.web.put(PAGES[0], page(size))
    assert await stage.deliver(pack_of(PAGES[0])) == []
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=stored, taken_at_ms=NOW_MS)
    assert stage.world.crawls[crawl.id].stop is stop


async def test_requests_reserve_the_observed_size_of_bodies() -> None:
    """A crawl of small pages keeps most of its limit free for other requests."""
    crawl = replace(CRAWL, bytes_max=100_000_000)
    budget_keeper = stage_of(crawl).budget_keeper
    assert budget_keeper.room_bytes(crawl, 100_000_000) == ROOM_BYTES_FIRST
    budget_keeper.received(crawl, 20_000)
    assert budget_keeper.room_bytes(crawl, 100_000_000) == 40_000
    budget_keeper.received(crawl, 50_000_000)
    assert budget_keeper.room_bytes(crawl, 100_000_000) == ROOM_BYTES_MAX
    for _ in range(100):
        budget_keeper.received(crawl, 500)
    assert budget_keeper.room_bytes(crawl, 100_000_000) == ROOM_BYTES_MIN
    assert budget_keeper.room_bytes(crawl, 100) == ROOM_BYTES_MIN


async def test_growing_body_waits_for_returned_bytes() -> None:
    crawl = replace(CRAWL, bytes_max=100_000)
    stage = stage_of(crawl)
    reservations = stage.budget_keeper.open(crawl, ROOT)
    assert reservations.bytes is not None
    assert await reservations.bytes.take(4_000, 1) == 4_000
    others = stage.budget_keeper.open(crawl, "b").bytes
    assert others is not None
    assert await others.take(96_000, 1) == 96_000
    sleeps: list[float] = []

    async def settled(seconds: float) -> None:
        sleeps.append(seconds)
        state = budget_state(stage, LimitPart.BYTES)
        stage.world.budgets[crawl.id, LimitPart.BYTES] = replace(state, used=14_000, reserved=4_000)

    stage.clock.sleep = settled  # type: ignore[method-assign]
    room = AllowedSize(bytes_max=4_000, most=1_000_000, reservation=reservations.bytes)
    await room.grow(50_000)
    assert (room.bytes_max, room.cut, sleeps) == (50_000, False, [REACH_WAIT_S])
    await room.grow(500_000)
    assert (room.bytes_max, room.cut) == (90_000, True)


# --- pages of a host --------------------------------------------------------------------------


async def test_host_page_limit_skips_further_urls_of_host() -> None:
    crawl = replace(CRAWL, host_pages_max=2)
    urls = [*PAGES, f"{OTHER}/a"]
    stage = stage_of(crawl, *urls)
    await stage.deliver(pack_of(*urls))
    assert sorted(stage.web.urls) == sorted([*PAGES[:2], f"{OTHER}/a"])
    assert ends(stage, crawl)["skipped.host_pages"] == 3
    assert stage.world.crawls[crawl.id].stop is Stop.FINISHED


@pytest.mark.parametrize(
    ("answers", "failing"), [([answer(503)], ""), ([], "hosts.reserve")], ids=["retry", "deferral"]
)
async def test_returning_url_counts_once_for_host(answers: list[Response], failing: str) -> None:
    """URLs that return because of a table error are marked as counted."""
    crawl = replace(CRAWL, host_pages_max=2 if answers else 5, delay_ms=1_000 if failing else 0)
    stage = stage_of(crawl, *PAGES[:2])
    stage.web.put(PAGES[0], *answers, page(100))
    stage.restart(fail_on(failing))
    await stage.deliver(pack_of(*PAGES[:2]))
    await stage.drain()
    assert ends(stage, crawl)["fetched.ok"] == 2
    assert stage.world.host_pages == {(crawl.id, SITE): 2}


async def test_redelivered_pack_counts_once_for_host() -> None:
    crawl = replace(CRAWL, host_pages_max=2)
    stage = stage_of(crawl, *PAGES[:3])
    stage.restart(kill_on("packs.journal", Moment.BEFORE))
    assert not await survives(stage.deliver(pack_of(*PAGES[:3])))
    stage.restart()
    await stage.deliver(pack_of(*PAGES[:3]), receives=2)
    await stage.drain()
    assert ends(stage, crawl)["fetched.ok"] == 2
    assert stage.world.host_pages == {(crawl.id, SITE): 2}


async def test_unanswered_host_count_is_repeated_once() -> None:
    crawl = replace(CRAWL, host_pages_max=1)
    stage = stage_of(crawl, PAGES[0])
    stage.restart(fail_on("allowances.count", Moment.AFTER, times=2))
    await stage.deliver(pack_of(PAGES[0]))
    assert ends(stage, crawl)["fetched.ok"] == 1


# --- dollars ----------------------------------------------------------------------------------


async def test_dollar_limit_skips_unpaid_visit() -> None:
    crawl = replace(CRAWL, nanodollars_max=1_000)
    stage = stage_of(crawl, *PAGES)
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == []
    assert ends(stage, crawl) == {"skipped.dollars": 5}
    assert stage.world.crawls[crawl.id].stop is Stop.DOLLARS


async def test_links_beyond_dollar_limit_are_refused() -> None:
    a_second = prices.second(memory_mb=Settings().function.memory_mb)
    least = prices.visit_cost_max(urls=1, seconds=40, a_second=a_second)
    crawl = replace(CRAWL, nanodollars_max=least)
    stage = stage_of(crawl, PAGES[0])
    links = [f"/{place}/x" for place in range(1_000)]
    stage.web.put(PAGES[0], html(*links))
    await stage.deliver(pack_of(PAGES[0]))
    counts = stage.world.journals[ROOT].counts
    kept = len(stage.world.journals[ROOT].candidates)
    assert 0 < kept < 1_000
    assert counts["refused.dollars"] == 1_000 - kept
    assert counts["nanodollars"] + kept * prices.CLAIM <= least
    assert budget_state(stage, LimitPart.NANODOLLARS).used <= least
    assert budget_state(stage, LimitPart.NANODOLLARS).reserved == 0


async def test_seeds_beyond_dollar_limit_are_refused() -> None:
    crawl = replace(CRAWL, nanodollars_max=2 * prices.CLAIM + 5 * prices.LOOK_UP)
    stage = stage_of(crawl)
    await stage.deliver(SEEDS)
    assert len(stage.world.claims) == 2
    assert ends(stage, crawl) == {"refused.dollars": 3}


async def test_paid_pack_is_deferred_by_commit() -> None:
    crawl = replace(CRAWL, nanodollars_max=10**9, delay_ms=1_000)
    stage = stage_of(crawl, PAGES[0])
    stage.world.hosts[SITE] = replace(
        await stage.hosts.read_host(SITE), blocked_until_ms=NOW_MS + 300_000
    )
    await stage.deliver(pack_of(PAGES[0]))
    assert budget_state(stage, LimitPart.NANODOLLARS).reserved == 0
    assert 0 < budget_state(stage, LimitPart.NANODOLLARS).used < 50_000


@pytest.mark.parametrize(
    ("standing", "got", "waits"),
    [
        (BudgetState(), 100, 0),
        (BudgetState(used=60), 40, 0),
        (BudgetState(used=100), 0, 0),
        (BudgetState(used=100, reserved=100, taken_at_ms=NOW_MS), 0, REACH_TRIES - 1),
    ],
    ids=["all of it", "a part", "nothing", "others have it"],
)
async def test_links_wait_only_for_dollars_reserved_by_others(
    standing: BudgetState, got: int, waits: int
) -> None:
    crawl = replace(CRAWL, nanodollars_max=100)
    stage = stage_of(crawl)
    stage.world.budgets[crawl.id, LimitPart.NANODOLLARS] = standing
    reservation = stage.budget_keeper.open(crawl, ROOT).dollars
    assert reservation is not None
    assert await reservation.reserve_up_to(100, 10) == got
    assert stage.clock.at_ms - NOW_MS == waits * REACH_WAIT_S * 1_000


async def test_links_get_dollars_returned_during_wait() -> None:
    crawl = replace(CRAWL, nanodollars_max=100)
    stage = stage_of(crawl)
    key = (crawl.id, LimitPart.NANODOLLARS)
    stage.world.budgets[key] = BudgetState(used=100, reserved=100, taken_at_ms=NOW_MS)

    async def given_back(_effect: str, moment: Moment) -> None:
        if moment is Moment.BEFORE and stage.clock.at_ms > NOW_MS:
            stage.world.budgets[key] = BudgetState(used=30)

    stage.restart(given_back)
    reservation = stage.budget_keeper.open(crawl, ROOT).dollars
    assert reservation is not None
    assert await reservation.reserve_up_to(70, 10) == 70
    assert stage.clock.at_ms - NOW_MS == REACH_WAIT_S * 1_000


async def test_concurrent_packs_share_function_time() -> None:
    alone, both = stage_of(CRAWL, *PAGES[:1]), stage_of(CRAWL, *PAGES[:2])
    alone.web.takes_ms = both.web.takes_ms = 2_000
    await alone.deliver(pack_of(PAGES[0]))
    await both.deliver(pack_of(PAGES[0]), pack_of(PAGES[1], pack="b"))
    single = alone.world.journals[ROOT].counts["nanodollars"]
    shared = [both.world.journals[pack].counts["nanodollars"] for pack in (ROOT, "b")]
    # Two requests, one after the other, in 4 s.
    assert sum(shared) + prices.FILE == pytest.approx(2 * single, rel=0.05)


# --- targets of a counted URL -----------------------------------------------------------------


def test_children_of_counted_sitemap_are_not_counted() -> None:
    index = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP, counted=True)
    moved = admit_redirect(CRAWL, f"{SITE}/t.xml", index)
    child = admit_child(CRAWL, SitemapEntry(url=f"{SITE}/u.xml"), index, frozenset({SITE}))
    assert isinstance(moved, Target)
    assert isinstance(child, Target)
    assert (moved.counted, child.counted) == (False, False)
