"""Commits of several packs of a batch in one transaction."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace

import pytest

from orbweaver.frontier.claims import AlreadyCommitted, Closed, CommitResult, Committed, OverBudget
from orbweaver.frontier.journal import Ledger
from orbweaver.model.crawl import Crawl, LimitPart, Settlement
from orbweaver.model.errors import Permanent, Transient
from orbweaver.worker import group_commit
from orbweaver.worker.call_batching import CallBatcher
from orbweaver.worker.group_commit import Commits
from tests.memory import MemoryPacks, Moment, World
from tests.unit.stage import CRAWL

COUNTS = {"claimed": 1, "fetched": 1}


class Batch:
    """Packs that are committed concurrently over tables in memory."""

    def __init__(self, *failures: Exception) -> None:
        self.world = World()
        self.effects: list[str] = []
        self.failures = list(failures)
        self.commits = Commits(MemoryPacks(self.world, self._gate))

    async def _gate(self, effect: str, moment: Moment) -> None:
        await asyncio.sleep(0)
        if moment is Moment.BEFORE:
            self.effects.append(effect)
            if self.failures:
                raise self.failures.pop(0)

    async def settle(
        self, *packs: str, crawl: Crawl = CRAWL, coming: tuple[str, ...] = ()
    ) -> list[CommitResult | BaseException]:
        with ExitStack() as stack:
            for pack in (*packs, *coming):
                stack.enter_context(self.commits.awaited(crawl.id, pack))
            return await asyncio.gather(
                *(
                    self.commits.commit(crawl, Ledger(pack=pack, children=()), COUNTS)
                    for pack in packs
                ),
                return_exceptions=True,
            )

    @property
    def counts(self) -> dict[str, int]:
        (shard,) = self.world.shards.values()
        return dict(shard.counts)


@pytest.mark.parametrize(
    ("names", "together_max", "failures", "commits"),
    [
        ("abc", group_commit.TOGETHER_MAX, [], 1),
        ("abcd", 2, [], 2),
        # A failed commit is repeated for each pack.
        ("ab", group_commit.TOGETHER_MAX, [Transient("lost")], 3),
        ("ab", group_commit.TOGETHER_MAX, [Permanent("too large")], 3),
    ],
)
async def test_ready_packs_share_a_commit(
    monkeypatch: pytest.MonkeyPatch,
    names: str,
    together_max: int,
    failures: list[Exception],
    commits: int,
) -> None:
    monkeypatch.setattr(group_commit, "TOGETHER_MAX", together_max)
    batch = Batch(*failures)
    assert await batch.settle(*names) == [Committed()] * len(names)
    assert batch.effects == ["packs.commit"] * commits
    assert batch.counts == {"claimed": len(names), "fetched": len(names)}
    assert sorted(batch.world.ledgers) == [*names]


async def test_single_pack_is_committed_alone() -> None:
    batch = Batch()
    other = replace(CRAWL, id="other")
    with batch.commits.awaited(other.id, "b"):
        assert await batch.settle("a") == [Committed()]
    assert batch.effects == ["packs.commit"]


async def test_failed_pack_is_not_waited_for() -> None:
    batch = Batch()
    with batch.commits.awaited(CRAWL.id, "late"):
        settling = asyncio.create_task(batch.settle("a", "b"))
        await asyncio.sleep(0.01)
        assert not batch.effects
    assert await settling == [Committed()] * 2
    assert batch.effects == ["packs.commit"]


async def test_wait_for_other_packs_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "WAIT_S", 0.01)
    batch = Batch()
    assert await batch.settle("a", "b", coming=("late",)) == [Committed()] * 2
    assert batch.effects == ["packs.commit"]


async def test_one_call_serves_all_waiting_tasks() -> None:
    gathering: CallBatcher[list[str], str] = CallBatcher(wait_s=1_000_000)
    for name in ("waits", "calls", "never comes"):
        gathering.expect("commit", name)
    group = gathering.group("commit", list)

    async def carry_out(_what: list[str]) -> str:
        return "done"

    async with asyncio.timeout(60):
        waits = asyncio.create_task(gathering.outcome(group, lambda _: False, carry_out))
        await asyncio.sleep(0)
        assert await gathering.outcome(group, lambda _: True, carry_out) == ("done", True)
        assert await waits == ("done", False)


async def test_refused_pack_does_not_affect_others() -> None:
    batch = Batch()
    await batch.settle("b")
    batch.effects.clear()
    standing = batch.world.ledgers["b"]
    assert await batch.settle("a", "b", "c") == [
        Committed(),
        AlreadyCommitted(ledger=standing),
        Committed(),
    ]
    assert batch.counts["claimed"] == 3


@pytest.mark.parametrize("limit", [1, 2])
async def test_page_budget_is_kept_exactly(limit: int) -> None:
    batch = Batch()
    told = await batch.settle("a", "b", "c", crawl=replace(CRAWL, pages_max=limit))
    assert told.count(Committed()) == limit
    assert told.count(OverBudget(left=0)) == 3 - limit
    assert batch.counts["claimed"] == limit


async def test_commits_after_crawl_end_are_closed() -> None:
    batch = Batch()
    await batch.settle("first")
    next(iter(batch.world.shards.values())).closed = True
    assert await batch.settle("a", "b") == [Closed()] * 2
    assert batch.counts["claimed"] == 1


async def test_copies_of_pack_count_once() -> None:
    batch = Batch()
    told = await batch.settle("a", "a", "b")
    assert told.count(Committed()) == 2
    assert batch.counts["claimed"] == 2


async def test_packs_of_edited_crawl_are_committed_separately() -> None:
    batch = Batch()
    edited = replace(CRAWL, pages_max=CRAWL.pages_max + 1)
    with batch.commits.awaited(CRAWL.id, "a"), batch.commits.awaited(CRAWL.id, "b"):
        told = await asyncio.gather(
            batch.commits.commit(CRAWL, Ledger(pack="a", children=()), COUNTS),
            batch.commits.commit(edited, Ledger(pack="b", children=()), COUNTS),
        )
    assert list(told) == [Committed()] * 2
    assert batch.effects == ["packs.commit"] * 2


async def test_pack_with_settlement_is_committed_alone() -> None:
    batch = Batch()
    crawl = replace(CRAWL, bytes_max=100)
    settled = (Settlement(part=LimitPart.BYTES, reserved=0, spent=0),)
    ledger = Ledger(pack="a", children=())
    with batch.commits.awaited(crawl.id, "b"), pytest.raises(KeyError):
        # The commit does not wait. The KeyError shows that it tries to settle.
        await batch.commits.commit(crawl, ledger, COUNTS, settled)
    assert batch.effects == ["packs.commit"]


async def test_cancelled_committer_fails_other_packs() -> None:
    batch = Batch()
    with batch.commits.awaited(CRAWL.id, "a"), batch.commits.awaited(CRAWL.id, "b"):
        first = asyncio.create_task(
            batch.commits.commit(CRAWL, Ledger(pack="a", children=()), COUNTS)
        )
        await asyncio.sleep(0)
        last = asyncio.create_task(
            batch.commits.commit(CRAWL, Ledger(pack="b", children=()), COUNTS)
        )
        await asyncio.sleep(0)
        last.cancel()
        with pytest.raises(Transient):
            await first
    assert not batch.world.ledgers
