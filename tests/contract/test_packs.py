"""Contract of packs (batches of URLs): results (journals), commits (ledgers) and their counters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.claims import AlreadyCommitted, Closed, Committed, OverBudget, Recalled
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.journal_codec import encode
from orbweaver.model.crawl import State
from tests.contract import samples
from tests.memory import MemoryPacks
from tests.memory import World as MemoryState

if TYPE_CHECKING:
    from tests.contract.worlds import World

ONE, TWO, THREE = samples.pack_ids(3)
ITEM_BYTES_MAX = 400 * 1024


async def test_unknown_pack_is_not_recalled(world: World) -> None:
    packs = world.container().packs
    assert await packs.recall([ONE, TWO]) == {}
    assert await packs.recall([]) == {}


async def test_journal_is_recalled_by_any_container(world: World) -> None:
    journal = samples.journal()
    assert await world.container().packs.write_journal(ONE, journal) == journal
    recalled = await world.container().packs.recall([ONE, TWO, ONE])
    assert recalled == {ONE: Recalled(journal=journal)}


async def test_first_journal_wins(world: World) -> None:
    first, second = samples.journal(links=3), samples.journal(links=5)
    await world.container().packs.write_journal(ONE, first)
    assert await world.container().packs.write_journal(ONE, second) == first


async def test_concurrent_journals_agree_on_one(world: World) -> None:
    journals = [samples.journal(links=number) for number in range(1, 6)]
    told = await asyncio.gather(
        *(world.container().packs.write_journal(ONE, journal) for journal in journals)
    )
    assert told[0] in journals
    assert told == [told[0]] * 5


async def test_journal_larger_than_item_is_recalled(world: World) -> None:
    journal = samples.large_journal(1, links=16_000)
    assert len(encode(journal)) > 2 * ITEM_BYTES_MAX
    assert await world.container().packs.write_journal(ONE, journal) == journal
    recalled = await world.container().packs.recall([ONE])
    assert recalled[ONE].journal == journal


@pytest.mark.parametrize(("first_links", "second_links"), [(8_000, 9_000), (8_000, 1), (1, 8_000)])
async def test_first_large_journal_wins(world: World, first_links: int, second_links: int) -> None:
    first, second = (samples.large_journal(links, links) for links in (first_links, second_links))
    await world.container().packs.write_journal(ONE, first)
    assert await world.container().packs.write_journal(ONE, second) == first
    assert (await world.container().packs.recall([ONE]))[ONE].journal == first


async def test_recall_exceeds_database_batch_size(world: World) -> None:
    packs = world.container().packs
    ids = samples.pack_ids(130)
    for pack in ids[:3]:
        await packs.write_journal(pack, samples.journal())
    assert sorted(await packs.recall(ids)) == sorted(ids[:3])


async def test_packs_are_committed_together(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    ledgers = [samples.ledger(pack, children=(place,)) for place, pack in enumerate((ONE, TWO))]
    counts = {"claimed": 1, "fetched": 2, "fetched.ok": 2}
    assert await container.packs.commit_together(crawl, [(one, counts) for one in ledgers])
    counters = await container.crawls.counters(crawl)
    assert samples.nonzero(counters.total) == {"claimed": 2, "fetched": 4, "fetched.ok": 4}
    assert sorted(shard.commits for shard in counters.shards)[-2:] in ([1], [0, 1])
    recalled = await world.container().packs.recall([ONE, TWO])
    assert [recalled[ledger.pack].ledger for ledger in ledgers] == ledgers


@pytest.mark.parametrize("why", ["a ledger stands", "over budget", "closed"])
async def test_packs_are_committed_together_or_not_at_all(world: World, why: str) -> None:
    container, crawl = world.container(), samples.crawl(pages_max=3, shards=1)
    claimed = 2 if why == "over budget" else 1
    if why == "a ledger stands":
        await container.packs.commit(crawl, samples.ledger(TWO), {"fetched": 1})
    if why == "closed":
        await container.crawls.create(crawl)
        counters = await container.crawls.counters(crawl)
        assert await container.crawls.seal(crawl, counters, replace(crawl, state=State.FINISHED))
    before = await container.crawls.counters(crawl)
    commits = [(samples.ledger(pack), {"claimed": claimed}) for pack in (ONE, TWO)]
    assert not await container.packs.commit_together(crawl, commits)
    assert await container.crawls.counters(crawl) == before
    assert ONE not in await container.packs.recall([ONE, TWO])


async def test_commit_adds_counts_and_stores_ledger(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    ledger = samples.ledger(ONE, children=(0, 7, 8, 4_000))
    counts = {"claimed": 4, "fetched": 1, "fetched.ok": 1, "refused.scope": 2, "retries": 0}
    assert await container.packs.commit(crawl, ledger, counts) == Committed()
    counters = await container.crawls.counters(crawl)
    assert samples.nonzero(counters.total) == samples.nonzero(counts)
    assert [shard.commits for shard in counters.shards] == [1]
    assert (await world.container().packs.recall([ONE]))[ONE].ledger == ledger


@pytest.mark.parametrize(
    "ledger",
    [
        Ledger(pack=ONE, children=()),
        Ledger(pack=ONE, children=(0,), surplus=True),
        Ledger(pack=ONE, children=tuple(range(5_000))),
        Ledger(pack=ONE, children=(125_000,)),
    ],
    ids=["empty", "surplus", "many", "far"],
)
async def test_ledgers_are_read_as_written(world: World, ledger: Ledger) -> None:
    container = world.container()
    await container.packs.commit(samples.crawl(), ledger, {"claimed": 0})
    assert await container.packs.recall([ONE]) == {ONE: Recalled(ledger=ledger)}


async def test_second_commit_counts_zero_and_returns_ledger(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    first, second = samples.ledger(ONE, (0, 1)), samples.ledger(ONE, (2,))
    await container.packs.commit(crawl, first, {"claimed": 2, "fetched": 1})
    result = await world.container().packs.commit(crawl, second, {"claimed": 1, "fetched": 1})
    assert result == AlreadyCommitted(ledger=first)
    counters = await container.crawls.counters(crawl)
    assert samples.nonzero(counters.total) == {"claimed": 2, "fetched": 1}


async def test_concurrent_commits_count_once(world: World) -> None:
    crawl = samples.crawl()
    ledgers = [samples.ledger(ONE, (number,)) for number in range(6)]
    results = await asyncio.gather(
        *(world.container().packs.commit(crawl, ledger, {"claimed": 1}) for ledger in ledgers)
    )
    stands = [
        ledger for ledger, result in zip(ledgers, results, strict=True) if result == Committed()
    ]
    assert len(stands) == 1
    others = [result for result in results if result != Committed()]
    assert others == [AlreadyCommitted(ledger=stands[0])] * 5
    assert (await world.container().crawls.counters(crawl)).claimed == 1


async def test_concurrent_counts_of_many_packs_add_up(world: World) -> None:
    crawl = samples.crawl(shards=3)
    results = await asyncio.gather(
        *(
            world.container().packs.commit(crawl, samples.ledger(pack), {"claimed": 2, "seeds": 1})
            for pack in samples.pack_ids(40)
        )
    )
    assert results == [Committed()] * 40
    counters = await world.container().crawls.counters(crawl)
    assert samples.nonzero(counters.total) == {"claimed": 80, "seeds": 40}
    assert sum(shard.commits for shard in counters.shards) == 40


async def test_budget_is_exact_to_last_claim(world: World) -> None:
    container, crawl = world.container(), samples.crawl(pages_max=5)
    assert await container.packs.commit(crawl, samples.ledger(ONE), {"claimed": 3}) == Committed()
    over = await container.packs.commit(crawl, samples.ledger(TWO), {"claimed": 3, "fetched": 9})
    assert over == OverBudget(left=2)
    assert samples.nonzero((await container.crawls.counters(crawl)).total) == {"claimed": 3}
    assert await container.packs.recall([TWO]) == {}
    assert await container.packs.commit(crawl, samples.ledger(TWO), {"claimed": 2}) == Committed()
    full = await container.packs.commit(crawl, samples.ledger(THREE), {"claimed": 1})
    assert full == OverBudget(left=0)
    none = await container.packs.commit(
        crawl, samples.ledger(THREE, ()), {"claimed": 0, "fetched": 1}
    )
    assert none == Committed()


async def test_returned_budget_can_be_claimed_again(world: World) -> None:
    container, crawl = world.container(), samples.crawl(pages_max=5)
    given = {"claimed": 5, "unspent": 2}
    assert await container.packs.commit(crawl, samples.ledger(ONE), given) == Committed()
    over = await container.packs.commit(crawl, samples.ledger(TWO), {"claimed": 3})
    assert over == OverBudget(left=2)
    assert await container.packs.commit(crawl, samples.ledger(TWO), {"claimed": 2}) == Committed()
    full = await container.packs.commit(crawl, samples.ledger(THREE), {"claimed": 1})
    assert full == OverBudget(left=0)
    counters = await container.crawls.counters(crawl)
    assert (counters.claimed, counters.urls_left(crawl)) == (7, 0)


async def test_first_commit_over_budget_is_refused(world: World) -> None:
    container, crawl = world.container(), samples.crawl(pages_max=5)
    over = await container.packs.commit(crawl, samples.ledger(ONE), {"claimed": 6})
    assert over == OverBudget(left=5)
    fits = await container.packs.commit(crawl, samples.ledger(ONE), {"claimed": 5})
    assert fits == Committed()


async def test_budget_is_exact_with_concurrent_commits(world: World) -> None:
    crawl = samples.crawl(pages_max=25, shards=2)

    async def one(pack: str) -> int:
        packs, claimed = world.container().packs, 3
        while True:
            result = await packs.commit(crawl, samples.ledger(pack), {"claimed": claimed})
            if not isinstance(result, OverBudget):
                assert result == Committed()
                return claimed
            assert result.left < claimed
            claimed = result.left

    taken = await asyncio.gather(*(one(pack) for pack in samples.pack_ids(24)))
    counters = await world.container().crawls.counters(crawl)
    assert counters.claimed == sum(taken) == 25
    claims = [shard.counts["claimed"] for shard in counters.shards]
    assert claims == [crawl.shard_quota(0), crawl.shard_quota(1)] == [13, 12]


async def test_committed_pack_returns_ledger_despite_used_budget(world: World) -> None:
    packs, crawl = world.container().packs, samples.crawl(pages_max=3)
    first = samples.ledger(ONE)
    await packs.commit(crawl, first, {"claimed": 3})
    again = await packs.commit(crawl, samples.ledger(ONE, (5,)), {"claimed": 2})
    assert again == AlreadyCommitted(ledger=first)


async def test_closed_shard_refuses_commit(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    first = samples.ledger(ONE)
    await container.packs.commit(crawl, first, {"claimed": 1, "fetched": 1})
    counters = await container.crawls.counters(crawl)
    assert await container.crawls.seal(crawl, counters, replace(crawl, state=State.FINISHED))
    late = await container.packs.commit(crawl, samples.ledger(TWO), {"fetched": 1})
    assert late == Closed()
    assert await container.packs.recall([TWO]) == {}
    assert (await container.crawls.counters(crawl)).total == counters.total
    again = await container.packs.commit(crawl, samples.ledger(ONE, ()), {"claimed": 1})
    assert again == AlreadyCommitted(ledger=first)


async def test_random_commit_history_matches_memory_adapter(world: World) -> None:
    random = Random(41)
    model = MemoryPacks(MemoryState())
    crawl = samples.crawl(pages_max=60, shards=3)
    ids = samples.pack_ids(25)
    for _ in range(40):
        ledger = samples.ledger(random.choice(ids), sorted(random.sample(range(40), 4)))
        counts = {"claimed": random.choice((0, 1, 3, 8)), "fetched": random.choice((0, 1))}
        result = await world.container().packs.commit(crawl, ledger, counts)
        assert result == await model.commit(crawl, ledger, counts)


async def test_strikes_are_counted_until_cleared(world: World) -> None:
    packs = world.container().packs
    assert [await packs.add_strike(ONE) for _ in range(3)] == [1, 2, 3]
    assert await world.container().packs.add_strike(TWO) == 1
    recalled = await world.container().packs.recall([ONE, TWO, THREE])
    assert recalled == {ONE: Recalled(strikes=3), TWO: Recalled(strikes=1)}
    await packs.set_strikes(ONE, 1)
    await packs.set_strikes(TWO, 0)
    recalled = await world.container().packs.recall([ONE, TWO])
    assert recalled == {ONE: Recalled(strikes=1), TWO: Recalled()}
    assert await packs.add_strike(ONE) == 2
    await packs.set_strikes(THREE, 2)
    assert await packs.recall([THREE]) == {THREE: Recalled(strikes=2)}


async def test_sent_outbox_is_noted_in_ledger(world: World) -> None:
    packs, ledger = world.container().packs, samples.ledger(ONE)
    await packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert await packs.note_sent(ONE, 0)
    assert await packs.note_sent(ONE, 0)
    noted = replace(ledger, sent=True)
    assert await world.container().packs.recall([ONE]) == {ONE: Recalled(ledger=noted)}
    again = await packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert again == AlreadyCommitted(ledger=noted)


async def test_recall_returns_journal_ledger_and_strikes(world: World) -> None:
    packs = world.container().packs
    journal, ledger = samples.journal(), samples.ledger(ONE)
    await packs.add_strike(ONE)
    await packs.write_journal(ONE, journal)
    await packs.commit(samples.crawl(), ledger, {"claimed": 2})
    recalled = await packs.recall([TWO, ONE])
    assert recalled == {ONE: Recalled(journal=journal, ledger=ledger, strikes=1)}


def test_sample_journals_are_above_and_below_item_size() -> None:
    assert len(encode(samples.large_journal(1, links=8_000))) > ITEM_BYTES_MAX
    assert len(encode(samples.journal())) < 2_000
    assert isinstance(samples.journal(), Journal)
