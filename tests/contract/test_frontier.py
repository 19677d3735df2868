"""Contract of the frontier: claims, which decide the pack (batch of URLs) that owns a URL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.target import Prior, Target
from tests.contract import samples
from tests.contract.samples import NOW_MS
from tests.memory import MemoryFrontier
from tests.memory import World as MemoryState

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Frontier
    from tests.contract.worlds import World

WINDOW_S = 3_600
URLS = [f"https://example.com/{number}" for number in range(6)]


def claimer(pack: str, at_ms: int, *, name: str = "shop", window_s: int = WINDOW_S) -> Claimer:
    return Claimer(
        name=name,
        crawl=f"{name}-1",
        pack=pack,
        at_ms=at_ms,
        stale_before_ms=at_ms - window_s * 1000,
        expires_s=at_ms // 1000 + window_s,
    )


def targets(*urls: str) -> list[Target]:
    return [Target(url=url, depth=1) for url in urls]


def forcing(now_ms: int) -> Claimer:
    """Build the claimer of a forced run, five seconds later.

    No claim of an earlier run holds against a forced run.
    """
    return replace(claimer("b", now_ms + 5_000), crawl="shop-2", stale_before_ms=now_ms + 1_000)


async def test_absent_claims_are_won(frontier: Frontier) -> None:
    asks = claimer("a", NOW_MS)
    assert await frontier.claim(asks, targets(*URLS)) == set(URLS)


async def test_empty_claim_request_costs_no_call(frontier: Frontier) -> None:
    asks = claimer("a", NOW_MS)
    assert await frontier.claim(asks, []) == frozenset()
    assert (await frontier.known(asks, [])).held == frozenset()
    await frontier.release(asks, [])


async def test_claim_of_other_pack_is_lost(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(*URLS[:2]))
    later = claimer("b", NOW_MS + 1_000)
    assert (await frontier.known(later, URLS)).held == set(URLS[:2])
    assert await frontier.claim(later, targets(*URLS[1:4])) == set(URLS[2:4])


async def test_redelivered_pack_wins_own_claims_again(world: World) -> None:
    asks = claimer("a", NOW_MS)
    first = await world.container().frontier.claim(asks, targets(*URLS[:3]))
    other = world.container().frontier
    assert (await other.known(asks, URLS)).held == frozenset()
    assert await other.claim(asks, targets(*URLS[:3])) == first
    assert await other.claim(claimer("b", NOW_MS), targets(*URLS)) == set(URLS[3:])


async def test_crawl_names_have_separate_claims(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(*URLS))
    other = claimer("b", NOW_MS, name="news")
    assert (await frontier.known(other, URLS)).held == frozenset()
    assert await frontier.claim(other, targets(*URLS)) == set(URLS)


async def test_expired_claim_is_free_before_deletion(frontier: Frontier) -> None:
    asks = replace(claimer("a", NOW_MS), expires_s=NOW_MS // 1000 + 10)
    await frontier.claim(asks, targets(URLS[0]))
    for at_ms, holds in ((NOW_MS + 9_999, True), (NOW_MS + 10_000, False)):
        later = replace(claimer("b", at_ms), stale_before_ms=0)
        assert (URLS[0] in (await frontier.known(later, URLS)).held) is holds
        assert (URLS[0] in await frontier.claim(later, targets(URLS[0]))) is not holds


async def test_claim_older_than_window_is_free(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(URLS[0]))
    for stale_before_ms, holds in ((NOW_MS, True), (NOW_MS + 1, False)):
        later = replace(claimer("b", NOW_MS + 5_000), stale_before_ms=stale_before_ms)
        assert (URLS[0] in (await frontier.known(later, URLS)).held) is holds
        assert (URLS[0] in await frontier.claim(later, targets(URLS[0]))) is not holds


async def test_claim_older_than_page_change_is_free(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(*URLS[:3]))
    later = claimer("b", NOW_MS + 5_000)
    wanted = [
        replace(target, modified_at_ms=at_ms)
        for target, at_ms in zip(
            targets(*URLS[:4]), (None, NOW_MS, NOW_MS + 1, NOW_MS + 1), strict=True
        )
    ]
    modified = {
        target.url: target.modified_at_ms for target in wanted if target.modified_at_ms is not None
    }
    known = await frontier.known(later, URLS[:4], modified)
    assert known.held == set(URLS[:2])
    assert known.lapsed == {URLS[2]: Prior(crawl="shop-1", at_ms=NOW_MS)}
    assert await frontier.claim(later, wanted) == set(URLS[2:4])
    assert await frontier.claim(claimer("c", NOW_MS + 6_000), targets(*URLS[:4])) == frozenset()


async def test_lapsed_claim_returns_last_holder(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(*URLS[:2]))
    later = replace(claimer("b", NOW_MS + 5_000), stale_before_ms=NOW_MS + 1)
    known = await frontier.known(later, URLS)
    prior = Prior(crawl="shop-1", at_ms=NOW_MS)
    assert known == ClaimStates(lapsed={URLS[0]: prior, URLS[1]: prior})
    assert await frontier.known(claimer("a", NOW_MS), URLS) == ClaimStates()


async def test_taken_over_claim_holds_against_old_pack(frontier: Frontier) -> None:
    early = claimer("a", NOW_MS)
    await frontier.claim(early, targets(URLS[0]))
    later = claimer("b", NOW_MS + 2 * WINDOW_S * 1000)
    assert await frontier.claim(later, targets(URLS[0])) == {URLS[0]}
    assert await frontier.claim(early, targets(URLS[0])) == frozenset()


async def test_concurrent_claimers_win_each_url_once(world: World) -> None:
    packs = [f"pack-{number}" for number in range(8)]
    won = await asyncio.gather(
        *(world.container().frontier.claim(claimer(pack, NOW_MS), targets(*URLS)) for pack in packs)
    )
    assert sorted(url for urls in won for url in urls) == URLS


async def test_duplicate_deliveries_both_win(world: World) -> None:
    asks = claimer("a", NOW_MS)
    won = await asyncio.gather(
        *(world.container().frontier.claim(asks, targets(*URLS)) for _ in range(3))
    )
    assert won == [set(URLS)] * 3


async def test_released_claims_are_free(frontier: Frontier) -> None:
    first, second = claimer("a", NOW_MS), claimer("b", NOW_MS)
    await frontier.claim(first, targets(*URLS))
    await frontier.release(first, URLS[:2])
    assert await frontier.claim(second, targets(*URLS)) == set(URLS[:2])
    await frontier.release(first, URLS[:2])
    assert (await frontier.known(first, URLS)).held == set(URLS[:2])


async def test_released_forced_claim_restores_earlier_claim(frontier: Frontier) -> None:
    early = claimer("a", NOW_MS)
    await frontier.claim(early, [Target(url=url, depth=3) for url in URLS[:2]])
    forced = forcing(NOW_MS)
    for _ in range(2):  # From the second time on, the run owns it.
        assert await frontier.claim(forced, targets(*URLS[:2])) == set(URLS[:2])
    await frontier.release(forced, [URLS[0]])
    await frontier.release(forced, [URLS[0]])
    assert await frontier.last_claim("shop", URLS[0]) == StoredClaim(
        crawl="shop-1", pack="a", at_ms=NOW_MS, expires_s=early.expires_s, depth=3
    )
    asks = replace(early, pack="c", at_ms=NOW_MS + 9_000)
    assert await frontier.claim(asks, targets(*URLS[:2])) == frozenset()


@pytest.mark.parametrize("how", ["release", "claim again"])
async def test_released_takeover_leaves_no_claim(frontier: Frontier, how: str) -> None:
    early = claimer("a", NOW_MS)
    await frontier.claim(early, targets(URLS[0]))
    forced = forcing(NOW_MS)
    await frontier.claim(forced, targets(URLS[0]))
    for _ in range(2):
        match how:
            case "release":
                await frontier.release(early, [URLS[0]])
            case _:  # The claimer learns that the claim is lost.
                assert await frontier.claim(early, targets(URLS[0])) == frozenset()
    assert (await frontier.known(early, URLS)).held == {URLS[0]}
    await frontier.release(forced, [URLS[0]])
    assert await frontier.last_claim("shop", URLS[0]) is None


async def test_abandoned_claims_of_run_are_free_for_other_runs(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(*URLS[:2]))
    await frontier.claim(claimer("b", NOW_MS), targets(URLS[2]))
    third = replace(claimer("c", NOW_MS), crawl="shop-3")
    await frontier.claim(third, targets(URLS[3]))
    for _ in range(2):
        await frontier.abandon(samples.crawl(), URLS[1:])
    same, other = claimer("d", NOW_MS), replace(claimer("e", NOW_MS), crawl="shop-2")
    known = await frontier.known(same, URLS)
    assert known.held == set(URLS[:4])
    assert known.own == set(URLS[:3])
    assert await frontier.claim(same, targets(*URLS[:4])) == frozenset()
    assert await frontier.known(other, URLS) == ClaimStates(held=frozenset({URLS[0], URLS[3]}))
    assert await frontier.claim(other, targets(*URLS[:4])) == set(URLS[1:3])
    await frontier.release(other, [URLS[1]])
    assert await frontier.claim(third, targets(*URLS[1:3])) == {URLS[1]}


@pytest.mark.parametrize("first", ["abandoned", "taken over"])
async def test_run_never_claims_its_abandoned_urls_again(frontier: Frontier, first: str) -> None:
    early = claimer("a", NOW_MS)
    await frontier.claim(early, targets(URLS[0]))
    other = forcing(NOW_MS)
    if first == "abandoned":
        await frontier.abandon(samples.crawl(), [URLS[0]])
    assert await frontier.claim(other, targets(URLS[0])) == {URLS[0]}
    if first == "taken over":
        for _ in range(2):
            await frontier.abandon(samples.crawl(), [URLS[0]])
    await frontier.release(other, [URLS[0]])
    asks = replace(early, pack="c", at_ms=NOW_MS + 9_000)
    assert (await frontier.known(asks, URLS)).held == {URLS[0]}
    assert await frontier.claim(asks, targets(URLS[0])) == frozenset()
    third = replace(claimer("d", NOW_MS + 9_000), crawl="shop-3")
    assert await frontier.known(third, URLS) == ClaimStates(held=frozenset())
    assert await frontier.claim(third, targets(URLS[0])) == {URLS[0]}


async def test_abandoned_forced_claim_restores_earlier_claim(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(URLS[0]))
    forced = forcing(NOW_MS)
    await frontier.claim(forced, targets(URLS[0]))
    await frontier.abandon(samples.crawl(id="shop-2"), [URLS[0]])
    later = replace(claimer("c", NOW_MS + 9_000), crawl="shop-3")
    assert (await frontier.known(later, URLS)).held == {URLS[0]}
    assert await frontier.claim(later, targets(URLS[0])) == frozenset()
    forced = replace(later, stale_before_ms=NOW_MS + 8_000)
    prior = {URLS[0]: Prior(crawl="shop-1", at_ms=NOW_MS)}
    assert (await frontier.known(forced, URLS)).lapsed == prior
    assert await frontier.claim(forced, targets(URLS[0])) == {URLS[0]}


async def test_failed_forced_claim_frees_url_although_earlier_claim_is_fresh(
    frontier: Frontier,
) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(URLS[0]))
    forced = forcing(NOW_MS)
    await frontier.claim(forced, targets(URLS[0]))
    for _ in range(2):
        await frontier.abandon(samples.crawl(id="shop-2"), [URLS[0]], failed=True)
    same = replace(forced, pack="d")
    assert (await frontier.known(same, URLS)).held == {URLS[0]}
    later = replace(claimer("c", NOW_MS + 9_000), crawl="shop-3")
    assert await frontier.claim(later, targets(URLS[0])) == {URLS[0]}
    await frontier.release(later, [URLS[0]])
    assert await frontier.claim(later, targets(URLS[0])) == {URLS[0]}


async def test_only_own_claims_are_released(frontier: Frontier) -> None:
    await frontier.claim(claimer("a", NOW_MS), targets(URLS[0]))
    await frontier.release(claimer("b", NOW_MS), URLS)
    assert (await frontier.known(claimer("b", NOW_MS), URLS)).held == {URLS[0]}


async def test_claims_exceed_database_batch_size(frontier: Frontier) -> None:
    urls = [f"https://example.com/page/{number}?é=ü" for number in range(110)]
    assert await frontier.claim(claimer("a", NOW_MS), targets(*urls)) == set(urls)
    assert (await frontier.known(claimer("b", NOW_MS), [*urls, *URLS])).held == set(urls)


async def test_repeated_urls_are_claimed_once(frontier: Frontier) -> None:
    twice = targets(URLS[0], URLS[0])
    assert await frontier.claim(claimer("a", NOW_MS), twice) == {URLS[0]}
    assert (await frontier.known(claimer("b", NOW_MS), [URLS[0], URLS[0]])).held == {URLS[0]}
    await frontier.release(claimer("a", NOW_MS), [URLS[0], URLS[0]])


async def test_random_claim_history_matches_memory_adapter(world: World) -> None:
    random = Random(20_260_115)
    model = MemoryFrontier(MemoryState())
    changed_ms = NOW_MS + 2_000_000
    containers = [world.container().frontier for _ in range(3)]
    at_ms = NOW_MS
    asking: list[Claimer] = []
    for number in range(40):
        at_ms += random.choice((0, 400, 20_000, 900_000))
        window_s = random.choice((60, 1_800))
        run = random.choice(("shop-1", "shop-2"))
        asking.append(replace(claimer(f"pack-{number}", at_ms, window_s=window_s), crawl=run))
        asks = random.choice(asking[-5:])  # Now and then a redelivery.
        frontier = random.choice(containers)
        urls = random.sample(URLS, random.randint(1, len(URLS)))
        match random.choice(("known", "claim", "claim", "release", "abandon")):
            case "known":
                assert await frontier.known(asks, urls) == await model.known(asks, urls)
            case "claim":
                wanted = [
                    replace(target, modified_at_ms=random.choice((None, None, changed_ms)))
                    for target in targets(*urls)
                ]
                assert await frontier.claim(asks, wanted) == await model.claim(asks, wanted)
            case "release":
                await frontier.release(asks, urls)
                await model.release(asks, urls)
            case _:
                owner, failed = samples.crawl(id=asks.crawl), random.random() < 0.5
                await frontier.abandon(owner, urls, failed=failed)
                await model.abandon(owner, urls, failed=failed)


async def test_last_claim_of_url_is_read(world: World, frontier: Frontier) -> None:
    asks = claimer("a", NOW_MS)
    await frontier.claim(asks, [Target(url=URLS[0], depth=3)])
    read = await world.container().frontier.last_claim("shop", URLS[0])
    assert read == StoredClaim(
        crawl="shop-1", pack="a", at_ms=asks.at_ms, expires_s=asks.expires_s, depth=3
    )
    assert await frontier.last_claim("shop", URLS[1]) is None
    assert await frontier.last_claim("news", URLS[0]) is None


async def test_expired_claim_is_read_until_deleted(frontier: Frontier) -> None:
    old = claimer("a", NOW_MS - 3 * WINDOW_S * 1000)
    await frontier.claim(old, targets(*URLS[:2]))
    read = await frontier.last_claim("shop", URLS[0])
    assert read is not None
    assert read.expires_s < NOW_MS // 1000
    await frontier.release(old, [URLS[1]])
    assert await frontier.last_claim("shop", URLS[1]) is None
    await frontier.claim(claimer("b", NOW_MS), targets(URLS[0]))
    read = await frontier.last_claim("shop", URLS[0])
    assert read is not None
    assert read.pack == "b"
