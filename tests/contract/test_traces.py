"""Contract of traces: read and erase items of all tables, and write erase rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.frontier.claims import Claimer
from orbweaver.frontier.erase_rule import erase_rule, with_erased
from orbweaver.frontier.journal import Ledger
from orbweaver.model.crawl import State
from orbweaver.politeness.host_schedule import RobotsEntry
from tests.contract import samples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.worlds import AwsWorld, Container, World
    from tests.memory import ManualClock

HOST = "https://example.com"
CRAWL = samples.crawl()
CLAIMER = Claimer(
    name=CRAWL.name,
    crawl=CRAWL.id,
    pack="p1",
    at_ms=samples.NOW_MS,
    stale_before_ms=0,
    expires_s=samples.NOW_MS // 1000 + 60,
)


async def listed(found: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in found]


async def test_erasure_of_claims_keeps_changed_ones(world: World, container: Container) -> None:
    targets = [samples.target(number) for number in range(40)]
    claimer = CLAIMER
    await container.frontier.claim(claimer, targets)
    claims = {claim.url: claim for claim in await listed(container.traces.claims())}
    assert set(claims) == {target.url for target in targets}
    one = claims[targets[0].url]
    assert (one.name, one.crawl, one.pack, one.was) == (
        claimer.name,
        claimer.crawl,
        claimer.pack,
        "",
    )
    other = replace(claims[targets[1].url], pack="another")
    await container.traces.remove_claims([one, other])
    await container.traces.remove_claims([one])
    left = {claim.url for claim in await listed(world.container().traces.claims())}
    assert left == set(claims) - {one.url}


async def test_replacing_claim_names_replaced_claim_until_stripped(container: Container) -> None:
    target = samples.target(1)
    first = CLAIMER
    await container.frontier.claim(first, [target])
    later_ms = first.expires_s * 1000 + 1_000
    second = replace(
        first, crawl="shop-2", pack="p2", at_ms=later_ms, expires_s=later_ms // 1000 + 60
    )
    await container.frontier.claim(second, [target])
    (claim,) = await listed(container.traces.claims())
    assert (claim.crawl, claim.was) == ("shop-2", first.crawl)
    await container.traces.strip_claims([claim])
    (claim,) = await listed(container.traces.claims())
    assert (claim.crawl, claim.was) == ("shop-2", "")


async def test_records_of_all_days_are_read_and_removed(world: World, container: Container) -> None:
    records = [
        samples.record(number, fetched_at=samples.NOW_MS + number * 86_400_000)
        for number in range(5)
    ]
    await container.pages.store(records)
    found = {trace.record.url: trace for trace in await listed(container.traces.records())}
    assert {url: trace.record for url, trace in found.items()} == {
        record.url: record for record in records
    }
    await container.traces.remove_records([found[records[0].url], found[records[1].url]])
    left = {trace.record.url for trace in await listed(world.container().traces.records())}
    assert left == {record.url for record in records[2:]}


@pytest.mark.parametrize("more", [0, 500], ids=["short", "long"])
async def test_definition_changes_in_any_state_unless_edited(
    container: Container, more: int
) -> None:
    others = tuple(f"{HOST}/b/{place}/{'x' * 1_000}" for place in range(more))
    crawl = replace(CRAWL, seeds=(f"{HOST}/a", f"{HOST}/b", *others))
    await container.crawls.create(crawl)
    left = replace(crawl, seeds=(f"{HOST}/a",))
    assert await container.traces.redefine(left, crawl)
    left = replace(left, edits=1)
    assert await container.crawls.get(crawl.id) == left
    edited = replace(left, delay_ms=5)
    assert await container.crawls.edit(edited, left)
    assert not await container.traces.redefine(replace(left, seeds=()), left)
    found = await container.crawls.get(crawl.id)
    assert found is not None
    assert (found.seeds, found.delay_ms) == ((f"{HOST}/a",), 5)


@pytest.mark.parametrize("more", [0, 500], ids=["short", "long"])
async def test_erase_rule_survives_steering_edits_and_end(
    world: World, container: Container, more: int
) -> None:
    seeds = tuple(f"{HOST}/b/{place}/{'x' * 1_000}" for place in range(more))
    crawl = replace(CRAWL, seeds=(f"{HOST}/a", *seeds))
    await container.crawls.create(crawl)
    ruled = with_erased(crawl, [f"{HOST}/gone"], samples.NOW_MS)
    assert await container.traces.redefine(ruled, crawl)
    # A writer that read the crawl before does not overwrite the rule.
    assert not await container.traces.redefine(with_erased(crawl, ["b"], 0), crawl)
    assert not await container.crawls.edit(replace(crawl, delay_ms=5), crawl)
    assert await container.crawls.move(replace(crawl, state=State.PAUSED), [State.RUNNING])
    finished = replace(crawl, state=State.FINISHED, finished_at_ms=samples.NOW_MS)
    assert await container.crawls.move(replace(crawl, state=State.RUNNING), [State.PAUSED])
    counters = await container.crawls.counters(crawl)
    assert await container.crawls.seal(crawl, counters, finished)
    found = await world.container().crawls.get(crawl.id)
    assert found is not None
    assert (found.state, found.seeds) == (State.FINISHED, crawl.seeds)
    assert erase_rule(found).url(f"{HOST}/gone")
    assert not erase_rule(found).url(f"{HOST}/a")


async def test_samples_can_be_replaced(container: Container) -> None:
    await container.crawls.create(CRAWL)
    await container.crawls.keep_samples(CRAWL, {"scope": ("a", "b"), "depth": ("c",)})
    await container.traces.put_samples(CRAWL.id, {"scope": ("b",), "depth": ()})
    assert dict(await container.crawls.samples(CRAWL.id)) == {"scope": ("b",), "depth": ()}


async def test_erased_crawl_is_finished_and_unlisted(world: World, container: Container) -> None:
    finished = replace(
        CRAWL, seeds=(f"{HOST}/a",), state=State.FINISHED, finished_at_ms=samples.NOW_MS
    )
    await container.crawls.create(finished)
    await container.crawls.create(replace(CRAWL, id=f"{CRAWL.id}-2"))
    await container.crawls.keep_samples(finished, {"scope": ("a",)})
    await container.packs.commit(finished, Ledger(pack="aa", children=()), {"claimed": 0, "a": 1})
    for _ in range(2):
        await container.traces.tombstone_crawl(finished)
        left = await world.container().crawls.get(CRAWL.id)
        assert left is not None
        assert (left.state, left.seeds, left.name) == (State.FINISHED, (), CRAWL.id)
        assert [crawl.id for crawl in await container.crawls.list()] == [f"{CRAWL.id}-2"]
        assert (await container.crawls.counters(finished)).total == {}
        assert await container.crawls.samples(CRAWL.id) == {}


async def test_host_with_future_slots_loses_only_robots(world: World, container: Container) -> None:
    entry = RobotsEntry(fetched_at_ms=samples.NOW_MS, body=b"x", verdict="rules", detail=None)
    for host in (HOST, "https://other.example"):
        await container.hosts.keep_robots(host, entry)
        await container.hosts.reserve(host, 1, 60_000, samples.NOW_MS, samples.NOW_MS + 600_000)
    hosts = await listed(container.traces.hosts())
    assert sorted(hosts) == sorted({HOST, "https://other.example"})
    assert not await container.traces.remove_host(HOST, samples.NOW_MS)
    kept = await world.container().hosts.read_host(HOST)
    assert (kept.tat_ms, kept.robots) == (samples.NOW_MS + 60_000, None)
    for _ in range(2):
        assert await container.traces.remove_host(HOST, samples.NOW_MS + 3_600_000)
    gone = await world.container().hosts.read_host(HOST)
    assert (gone.tat_ms, gone.robots) == (0, None)
    assert await listed(container.traces.hosts()) == ["https://other.example"]


@pytest.mark.parametrize("quiet_ms", [1_800_000, 1_799_999])
async def test_host_with_strikes_stays_for_half_an_hour(
    world: World, container: Container, quiet_ms: int
) -> None:
    await container.hosts.block(HOST, samples.NOW_MS + 1, 1, samples.NOW_MS)
    gone = await container.traces.remove_host(HOST, samples.NOW_MS + quiet_ms)
    assert gone is (quiet_ms == 1_800_000)
    assert (await world.container().hosts.read_host(HOST)).strikes == (0 if gone else 1)
    await container.hosts.reserve(HOST, 1, 60_000, samples.NOW_MS + 2, samples.NOW_MS + 600_000)
    past_ms = samples.NOW_MS + 2 + 60_000
    assert not await container.traces.remove_host(HOST, past_ms - 1)
    assert await container.traces.remove_host(HOST, past_ms) is gone


async def test_cookies_are_removed_one_by_one(world: World, container: Container) -> None:
    for crawl_id, site in (("c-1", "example.com"), ("c-1", "[::1]"), ("c-2", "example.com")):
        await container.hosts.keep_cookies(crawl_id, site, "[]", samples.NOW_MS)
    named = await listed(container.traces.cookies())
    assert sorted(named) == [("c-1", "[::1]"), ("c-1", "example.com"), ("c-2", "example.com")]
    assert await listed(container.traces.hosts()) == []
    for _ in range(2):
        await container.traces.remove_cookies("c-1", "example.com")
    assert await world.container().hosts.cookies("c-1", "example.com") is None
    assert await world.container().hosts.cookies("c-2", "example.com") == "[]"


async def test_crawl_past_retention_is_absent(aws_world: AwsWorld, clock: ManualClock) -> None:
    crawls = aws_world.container().crawls
    await crawls.create(CRAWL)
    await crawls.create(replace(CRAWL, id="default", continuous=True))
    clock.at_ms += (CRAWL.duration_max_s + 90 * 86_400) * 1000 - 1_000
    assert await crawls.get(CRAWL.id) == CRAWL
    clock.at_ms += 2_000
    assert await crawls.get(CRAWL.id) is None
    assert [crawl.id for crawl in await crawls.list()] == ["default"]
