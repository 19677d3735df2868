"""Limits of bytes, dollars and hosts' pages: kept by whatever is delivered how often."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orbweaver.budget import prices
from orbweaver.budget.budget_rules import DEAD_MS, BudgetState, Later
from orbweaver.budget.reservation import (
    REACH_TRIES,
    REACH_WAIT_S,
    ROOM_BYTES_FIRST,
    ROOM_BYTES_MAX,
    ROOM_BYTES_MIN,
    TAKE_TRIES,
    Room,
)
from orbweaver.frontier.admission import admit_child, admit_redirect
from orbweaver.frontier.messages import SeedsMessage
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure
from orbweaver.model.limits import LimitPart
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
    pack_of,
    survives,
)

OTHER = "https://other.example"
# Bodies of 1,000 bytes at most, so that a scrap is 15.
SMALL = Settings(body_bytes_max=1_000)
PAGES = [f"{SITE}/{place}" for place in range(5)]
SEEDS = SeedsMessage(
    id="5eed", crawl=CRAWL.id, at_ms=NOW_MS, references=tuple(PAGES), planned=False
)


def page(size: int) -> object:
    """Answer with a page of so many bytes."""
    return replace(html(), body=b"<title>t</title>".ljust(size))


def stage_of(crawl: Crawl, *urls: str, size: int = 100) -> Stage:
    """Set a stage for a crawl that has claimed these URLs, each a page of so many bytes."""
    stage = Stage(settings=SMALL)
    stage.begin(crawl, *urls)
    for url in urls:
        stage.web.put(url, page(size))  # type: ignore[arg-type]
    return stage


def ends(stage: Stage, crawl: Crawl) -> dict[str, int]:
    """Say how URLs ended, by the books."""
    return {key: count for key, count in stage.counts(crawl).items() if "." in key}


def budget_state(stage: Stage, part: LimitPart) -> BudgetState:
    """Read what is used of a limit."""
    return stage.world.budgets[CRAWL.id, part]


# --- bytes ------------------------------------------------------------------------------------


async def test_bytes_are_never_exceeded() -> None:
    """The last body is cut to what is left, the rest ends unasked, and other runs may ask."""
    crawl = replace(CRAWL, bytes_max=250)
    stage = stage_of(crawl, *PAGES)
    assert await stage.deliver(pack_of(*PAGES)) == []
    assert stage.web.urls == PAGES[:3]
    assert budget_state(stage, LimitPart.BYTES).used == 250
    assert ends(stage, crawl)["cut.bytes"] == 1
    assert ends(stage, crawl)["skipped.bytes"] == 2
    assert stage.world.crawls[crawl.id].state is State.FINISHED
    assert stage.world.crawls[crawl.id].stop is Stop.BYTES
    assert stage.world.journals[ROOT].unasked == tuple(PAGES[3:])


async def test_a_crawl_below_its_bytes_is_not_cut() -> None:
    """What a body might have taken and did not goes back for the next ones."""
    crawl = replace(CRAWL, bytes_max=1_100)
    stage = stage_of(crawl, *PAGES)
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == PAGES
    assert stage.world.crawls[crawl.id].stop is Stop.FINISHED
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=500, taken_at_ms=NOW_MS)


async def test_a_page_that_was_cut_by_the_limit_is_a_reason_to_say_so() -> None:
    """What it linked to behind that may be missing, though nothing else was left out."""
    crawl = replace(CRAWL, bytes_max=150)
    stage = stage_of(crawl, *PAGES[:2])
    assert await stage.deliver(pack_of(*PAGES[:2])) == []
    assert budget_state(stage, LimitPart.BYTES).used == 150
    assert ends(stage, crawl)["cut.bytes"] == 1
    assert stage.world.crawls[crawl.id].stop is Stop.BYTES


async def test_a_page_that_is_too_long_by_itself_is_no_such_reason() -> None:
    """It is cut in every crawl."""
    stage = stage_of(CRAWL, PAGES[0])
    stage.web.put(PAGES[0], replace(answer(200), body=b"x" * 50, truncated=True))
    assert await stage.deliver(pack_of(PAGES[0])) == []
    assert stage.world.crawls[CRAWL.id].stop is Stop.FINISHED


async def test_what_others_have_reserved_may_come_back() -> None:
    """A pack waits for it, unopened, and not for ever."""
    crawl = replace(CRAWL, bytes_max=1_500)
    stage = stage_of(crawl, *PAGES)
    stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState(
        used=1_500, reserved=1_400, taken_at_ms=NOW_MS
    )
    assert await stage.deliver(pack_of(*PAGES)) == []
    assert stage.web.urls == []
    (mail,) = stage.world.sent
    assert mail.delay_s == 5
    assert stage.sent() == [replace(pack_of(*PAGES), put_offs=1)]
    stage.clock.at_ms += DEAD_MS
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == []
    assert ends(stage, crawl) == {"skipped.bytes": 5}


async def test_bodies_that_come_to_nothing_count() -> None:
    """What was received of an answer that failed is received."""
    crawl = replace(CRAWL, bytes_max=5_000)
    stage = stage_of(crawl, PAGES[0], PAGES[1])
    stage.web.put(PAGES[0], Failure(reason=Reason.TLS, detail="", received=400))
    stage.web.put(PAGES[1], replace(answer(404), received=30))
    await stage.deliver(pack_of(*PAGES[:2]))
    assert budget_state(stage, LimitPart.BYTES).used == 430
    assert stage.world.journals[ROOT].counts["received_bytes"] == 430


async def test_what_a_dead_worker_reserved_is_taken_for_received() -> None:
    """Its pack reserves anew; what it had asked for may have come, up to that."""
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
async def test_a_commit_that_is_repeated_settles_once(moment: Moment) -> None:
    """Whether it was refused or its answer lost: what goes back goes back once."""
    crawl = replace(CRAWL, bytes_max=10_000)
    stage = stage_of(crawl, *PAGES)
    stage.restart(fail_on("packs.commit", moment))
    assert await stage.deliver(pack_of(*PAGES)) == [0]
    assert await stage.deliver(pack_of(*PAGES), receives=2) == []
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=500, taken_at_ms=NOW_MS)


async def test_a_limit_that_came_later_counts_from_the_start() -> None:
    """What the books say was received before there was a limit counts."""
    crawl = replace(CRAWL, bytes_max=1_000)
    stage = stage_of(crawl, *PAGES)
    stage.count(crawl, received_bytes=900)
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == PAGES[:1]
    assert stage.world.crawls[crawl.id].stop is Stop.BYTES


async def test_a_limit_that_is_raised_holds_at_once() -> None:
    """A container that has seen it used up looks again."""
    crawl = replace(CRAWL, bytes_max=150)
    stage = stage_of(crawl, *PAGES)
    stage.count(crawl, claimed=1)
    await stage.deliver(pack_of(*PAGES[:3]))
    assert stage.web.urls == PAGES[:2]
    stage.world.crawls[crawl.id] = replace(crawl, bytes_max=5_000)
    stage.clock.at_ms += 6_000
    await stage.deliver(pack_of(*PAGES[3:], pack="b"))
    assert stage.web.urls == [*PAGES[:2], *PAGES[3:]]


async def test_a_request_waits_for_what_others_of_its_delivery_may_bring_back() -> None:
    """While one is out with all that is left, the next one waits, and then gets the rest."""
    crawl = replace(CRAWL, bytes_max=100)
    reservation = stage_of(crawl).budget_keeper.open(crawl, ROOT).bytes
    assert reservation is not None
    assert await reservation.take(100, 10) == 100
    assert await reservation.take(100, 10) == Later()
    reservation.put_back(80)
    assert await reservation.take(100, 10) == 80


async def test_a_limit_that_others_take_from_all_the_time_is_tried_again_later() -> None:
    """What changes between being read and being taken from is not used up."""
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
    assert await reservation.take(100, 1) == Later()
    assert budget_state(stage, LimitPart.BYTES).used == TAKE_TRIES
    stage.world.budgets[crawl.id, LimitPart.BYTES] = BudgetState()
    assert await reservation.take(50, 1) == 50


@pytest.mark.parametrize(("fails", "later_ms"), [(False, 0), (False, 1), (True, 1)])
async def test_of_two_deliveries_at_once_one_gives_back_what_it_reserved(
    fails: bool, later_ms: int
) -> None:
    """Its journal does not stand, so no commit does; what it has received is used all the same.

    In the same millisecond, too, when both journals say the same. Where that fails, it is reserved
    until it is taken for dead, and the delivery goes on.
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


async def test_crawls_without_limits_pay_nothing_for_them() -> None:
    """No budget is read or written; what was received and spent is counted all the same."""
    effects: list[str] = []

    async def gate(effect: str, _moment: Moment) -> None:
        effects.append(effect)

    stage = stage_of(CRAWL, *PAGES)
    stage.restart(gate)
    await stage.deliver(pack_of(*PAGES))
    assert not [effect for effect in effects if effect.startswith("allowances")]
    assert stage.world.journals[ROOT].counts["received_bytes"] == 500
    assert stage.world.journals[ROOT].counts["nanodollars"] > 0


# --- room for one body ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "size", "stored", "stop"),
    [
        (2_000_000, 300_000, 300_000, Stop.FINISHED),  # longer than its first room
        (1_000_000, 900_000, 900_000, Stop.FINISHED),
        (200_000, 150_000, 150_000, Stop.FINISHED),
        (200_000, 200_000, 200_000, Stop.FINISHED),  # exactly the limit
        (200_000, 200_001, 200_000, Stop.BYTES),
    ],
)
async def test_body_longer_than_its_room_is_cut_at_the_limit_alone(
    limit: int, size: int, stored: int, stop: Stop
) -> None:
    """The reader of a body asks for more room as long as the limit has any."""
    crawl = replace(CRAWL, bytes_max=limit)
    stage = Stage()
    stage.begin(crawl, PAGES[0])
    stage.web.put(PAGES[0], page(size))  # type: ignore[arg-type]
    assert await stage.deliver(pack_of(PAGES[0])) == []
    assert budget_state(stage, LimitPart.BYTES) == BudgetState(used=stored, taken_at_ms=NOW_MS)
    assert stage.world.crawls[crawl.id].stop is stop


async def test_requests_reserve_the_observed_size_of_bodies() -> None:
    """A crawl of small pages keeps most of its limit free, so that others need not wait."""
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


async def test_body_that_grows_waits_for_what_others_give_back() -> None:
    """Another delivery has reserved the rest of the limit, and settles while the body waits."""
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
    room = Room(bytes_max=4_000, most=1_000_000, reservation=reservations.bytes)
    await room.grow(50_000)
    assert (room.bytes_max, room.cut, sleeps) == (50_000, False, [REACH_WAIT_S])
    await room.grow(500_000)
    assert (room.bytes_max, room.cut) == (90_000, True)


# --- pages of a host --------------------------------------------------------------------------


async def test_no_host_is_asked_for_more_pages() -> None:
    """Others go on, and the crawl ends for itself."""
    crawl = replace(CRAWL, host_pages_max=2)
    urls = [*PAGES, f"{OTHER}/a"]
    stage = stage_of(crawl, *urls)
    await stage.deliver(pack_of(*urls))
    assert sorted(stage.web.urls) == sorted([*PAGES[:2], f"{OTHER}/a"])
    assert ends(stage, crawl)["skipped.host_pages"] == 3
    assert stage.world.crawls[crawl.id].stop is Stop.FINISHED


async def test_a_url_that_comes_back_is_counted_already() -> None:
    """Retried by another pack, it is still the one page."""
    crawl = replace(CRAWL, host_pages_max=2)
    stage = stage_of(crawl, *PAGES[:2])
    stage.web.put(PAGES[0], answer(503), page(100))  # type: ignore[arg-type]
    await stage.deliver(pack_of(*PAGES[:2]))
    await stage.drain()
    assert ends(stage, crawl)["fetched.ok"] == 2
    assert stage.world.host_pages == {(crawl.id, SITE): 2}


async def test_a_pack_that_comes_again_has_been_counted() -> None:
    """Also where it is cut into single URLs, each with a pack of its own."""
    crawl = replace(CRAWL, host_pages_max=2)
    stage = stage_of(crawl, *PAGES[:3])
    stage.restart(kill_on("packs.journal", Moment.BEFORE))
    assert not await survives(stage.deliver(pack_of(*PAGES[:3])))
    stage.restart()
    await stage.deliver(pack_of(*PAGES[:3]), receives=2)
    await stage.drain()
    assert ends(stage, crawl)["fetched.ok"] == 2
    assert stage.world.host_pages == {(crawl.id, SITE): 2}


async def test_a_count_whose_answer_was_lost_is_asked_again() -> None:
    """The page is counted once."""
    crawl = replace(CRAWL, host_pages_max=1)
    stage = stage_of(crawl, PAGES[0])
    stage.restart(fail_on("allowances.count", Moment.AFTER, times=2))
    await stage.deliver(pack_of(PAGES[0]))
    assert ends(stage, crawl)["fetched.ok"] == 1


async def test_trouble_with_a_host_does_not_count_its_pages_again() -> None:
    """URLs that come back because a table does not answer say that they are counted."""
    crawl = replace(CRAWL, host_pages_max=5, delay_ms=1_000)
    stage = stage_of(crawl, *PAGES[:2])
    stage.restart(fail_on("hosts.reserve"))
    await stage.deliver(pack_of(*PAGES[:2]))
    await stage.drain()
    assert stage.world.host_pages == {(crawl.id, SITE): 2}
    assert ends(stage, crawl)["fetched.ok"] == 2


# --- dollars ----------------------------------------------------------------------------------


async def test_dollars_are_never_exceeded() -> None:
    """A visit that they do not pay for is not made; its URLs end, for that is paid for."""
    crawl = replace(CRAWL, nanodollars_max=1_000)
    stage = stage_of(crawl, *PAGES)
    await stage.deliver(pack_of(*PAGES))
    assert stage.web.urls == []
    assert ends(stage, crawl) == {"skipped.dollars": 5}
    assert stage.world.crawls[crawl.id].stop is Stop.DOLLARS


async def test_links_are_claimed_as_far_as_dollars_reach() -> None:
    """The rest is refused, and counted."""
    a_second = prices.second(memory_mb=Settings().memory_mb)
    least = prices.visit_most(urls=1, seconds=40, a_second=a_second)
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


async def test_seeds_are_paid_for() -> None:
    """Those that nothing is left for are refused."""
    crawl = replace(CRAWL, nanodollars_max=2 * prices.CLAIM + 5 * prices.LOOK_UP)
    stage = stage_of(crawl)
    await stage.deliver(SEEDS)
    assert len(stage.world.claims) == 2
    assert ends(stage, crawl) == {"refused.dollars": 3}


async def test_a_pack_that_was_paid_for_is_not_put_off_unopened() -> None:
    """Its reservation goes back with a commit, so its URLs go on by another pack."""
    crawl = replace(CRAWL, nanodollars_max=10**9, delay_ms=1_000)
    stage = stage_of(crawl, PAGES[0])
    stage.world.hosts[SITE] = replace(
        await stage.hosts.look(SITE), blocked_until_ms=NOW_MS + 300_000
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
async def test_links_wait_for_nothing_but_what_others_may_give_back(
    standing: BudgetState, got: int, waits: int
) -> None:
    """What is there is reserved at once, what is spent is missing at once; the rest has a while."""
    crawl = replace(CRAWL, nanodollars_max=100)
    stage = stage_of(crawl)
    stage.world.budgets[crawl.id, LimitPart.NANODOLLARS] = standing
    reservation = stage.budget_keeper.open(crawl, ROOT).dollars
    assert reservation is not None
    assert await reservation.reach(100, 10) == got
    assert stage.clock.at_ms - NOW_MS == waits * REACH_WAIT_S * 1_000


async def test_links_get_what_others_give_back_meanwhile() -> None:
    """It is asked for again after each wait."""
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
    assert await reservation.reach(70, 10) == 70
    assert stage.clock.at_ms - NOW_MS == REACH_WAIT_S * 1_000


async def test_packs_share_the_time_of_their_function() -> None:
    """Two packs that are visited at once pay half of it each, and one of them their file."""
    alone, both = stage_of(CRAWL, *PAGES[:1]), stage_of(CRAWL, *PAGES[:2])
    alone.web.takes_ms = both.web.takes_ms = 2_000
    await alone.deliver(pack_of(PAGES[0]))
    await both.deliver(pack_of(PAGES[0]), pack_of(PAGES[1], pack="b"))
    single = alone.world.journals[ROOT].counts["nanodollars"]
    shared = [both.world.journals[pack].counts["nanodollars"] for pack in (ROOT, "b")]
    # Both asked, one after the other, in 4 s.
    assert sum(shared) + prices.FILE == pytest.approx(2 * single, rel=0.05)


# --- where a counted URL leads ----------------------------------------------------------------


def test_what_a_sitemap_leads_to_is_not_counted_for_it() -> None:
    """Where it redirects to, and what an index lists, are URLs of their own."""
    index = Target(url=f"{SITE}/s.xml", depth=0, kind=TargetKind.SITEMAP, counted=True)
    moved = admit_redirect(CRAWL, f"{SITE}/t.xml", index)
    child = admit_child(CRAWL, SitemapEntry(url=f"{SITE}/u.xml"), index, frozenset({SITE}))
    assert isinstance(moved, Target)
    assert isinstance(child, Target)
    assert (moved.counted, child.counted) == (False, False)
