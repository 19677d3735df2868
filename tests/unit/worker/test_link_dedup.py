"""Links of packs that are committed together: one pack claims each link."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier import admission
from orbweaver.frontier.backlog import WaitingPack
from orbweaver.frontier.messages import Pack, child_id
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import NOTHING
from orbweaver.model.page_record import shard_of
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.model.url import host_of
from orbweaver.worker import link_dedup, response_handling
from orbweaver.worker.seen_store import ASKED_MIN
from tests.memory import MemoryFrontier, Moment
from tests.memory.world import Claim
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, fail_on, html, noting, pack_of, urls_of

OTHER = "https://other.example"


def batch(stage: Stage, *links: tuple[str, ...]) -> list[Pack]:
    urls = [f"{SITE}/page{number}" for number in range(len(links))]
    stage.begin(CRAWL, *urls)
    for url, paths in zip(urls, links, strict=True):
        stage.web.put(url, html(*paths))
    return [pack_of(url, pack=child_id("pack", url)) for url in urls]


async def test_packs_of_batch_claim_shared_links_once() -> None:
    effects: list[str] = []
    stage = Stage(gate=noting(effects))
    shared = tuple(f"/shared{place}" for place in range(10))
    packs = batch(stage, *((*shared, f"/own{number}") for number in range(5)))
    assert await stage.deliver(*packs) == []
    assert effects.count("frontier.claim") == 15
    assert effects.count("frontier.known") == 1
    (sent,) = stage.sent()
    assert len(urls_of([sent])) == 15
    assert stage.counts()["claimed"] == 20


@pytest.mark.parametrize(
    ("waiting", "links", "now"),
    [
        # Number of packs in the other host's backlog, links to both hosts, and links to claim now.
        (0, (30, 0), (30, 0)),
        (0, (30, 3), (25, 3)),
        (1, (30, 30), (25, 25)),
        (2, (30, 30), (25, 0)),
    ],
)
async def test_links_of_hosts_with_waiting_pack_are_surplus(
    waiting: int, links: tuple[int, int], now: tuple[int, int]
) -> None:
    stage = Stage(settings=Settings.of(waits_billed="no"))
    crawl = replace(CRAWL, seeds=(f"{SITE}/",), delay_ms=1_000)
    packs = [WaitingPack(place=f"0.{number}", body="") for number in range(waiting)]
    await stage.backlog.put(crawl.id, OTHER, packs)
    found = [
        Target(url=f"{host}/{number}", depth=1)
        for host, count in zip((SITE, OTHER), links, strict=True)
        for number in range(count)
    ]
    prompt, surplus = await stage.processor._link_dedup._split_by_host(crawl, found)
    assert tuple(sum(host_of(one.url) == host for one in prompt) for host in (SITE, OTHER)) == now
    assert {*prompt, *surplus} == {*found}


async def test_links_survive_failed_journal_of_other_pack() -> None:
    stage = Stage(gate=fail_on("packs.journal"))
    packs = batch(stage, ("/a", "/x"), ("/b", "/x"), ("/c", "/x"))
    (failed,) = await stage.deliver(*packs)
    missing = f"{SITE}/{'abc'[failed]}"
    assert urls_of(stage.sent()) == {f"{SITE}/{name}" for name in "abcx"} - {missing}
    assert await stage.deliver(packs[failed]) == []
    assert urls_of(stage.sent()) == {missing}


async def test_slow_pack_does_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_dedup, "TURN_WAIT_S", 0.01)
    slow = asyncio.Event()
    journals: list[str] = []

    async def first_is_slow(effect: str, moment: Moment) -> None:
        if effect == "packs.journal" and moment is Moment.BEFORE:
            journals.append(effect)
            if len(journals) == 1:
                await slow.wait()
            elif len(journals) == 3:
                slow.set()

    stage = Stage(gate=first_is_slow)
    packs = batch(stage, ("/a",), ("/b",), ("/c",))
    assert await stage.deliver(*packs) == []
    assert len(urls_of(stage.sent())) == 3
    assert stage.counts()["claimed"] == 6


async def test_lookups_are_sampled_after_few_claimed_links(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    looked: set[str] = set()
    known = MemoryFrontier.known

    async def noted(self: Any, claimer: Any, urls: Any, modified: Any = NOTHING) -> Any:
        looks.append(len(urls))
        looked.update(urls)
        return await known(self, claimer, urls, modified)

    monkeypatch.setattr(MemoryFrontier, "known", noted)
    stage = Stage()
    first, second, third = batch(
        stage,
        tuple(f"/a{place}" for place in range(ASKED_MIN)),
        tuple(f"/b{place}" for place in range(50)),
        tuple(f"/c{place}" for place in range(40)),
    )
    await stage.deliver(first)
    await stage.deliver(second)
    assert looks == [ASKED_MIN, 17]
    another = Claim(url=f"{SITE}/c0", pack="another", crawl=CRAWL.id, at_ms=NOW_MS, expires_s=2**40)
    stage.world.claims[CRAWL.name, another.url] = another
    await stage.deliver(third)
    assert looks == [ASKED_MIN, 17, 20, 20]
    assert len(looked) == sum(looks)
    assert stage.counts()["claimed"] == 3 + ASKED_MIN + 50 + 39


async def test_released_links_are_found_after_raised_budget() -> None:
    stage = Stage()
    crawl = replace(CRAWL, pages_max=2)
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    for name in ("page0", "page1"):
        stage.web.put(f"{SITE}/{name}", html("/a"))
    await stage.deliver(pack_of(f"{SITE}/page0", pack=child_id("one", 0)))
    assert not stage.world.sent
    stage.world.crawls[crawl.id] = replace(crawl, pages_max=3)
    stage.clock.at_ms += 10_000
    await stage.deliver(pack_of(f"{SITE}/page1", pack=child_id("two", 0)))
    assert len(urls_of(stage.sent())) == 1


async def test_late_link_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    admit = admission.admit_link

    def noting_url(crawl: Crawl, url: str, *more: Any) -> Any:
        judged.append(url.removeprefix(SITE))
        return admit(crawl, url, *more)

    monkeypatch.setattr(response_handling, "admit_link", noting_url)
    stage = Stage()
    crawl = replace(CRAWL, pages_max=500)
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    for name in ("page0", "page1"):
        stage.web.put(f"{SITE}/{name}", html("/new?x=1", "/new?x=2", "/new?x=3", f"/of/{name}"))
        await stage.deliver(pack_of(f"{SITE}/{name}", pack=child_id(name, 0)))
    waiting = ["/new?x=1", "/new?x=2", "/new?x=3"]
    assert [url for url in judged if url in waiting] == waiting
    assert {"/of/page0", "/of/page1"} < set(judged)


async def test_full_shard_does_not_affect_other_shards() -> None:
    stage = Stage()
    crawl = replace(CRAWL, shards=2, quotas=(0, 9))
    ids = {shard_of(pack, 2): pack for pack in (child_id("pack", place) for place in range(99))}
    stage.begin(crawl, f"{SITE}/page0", f"{SITE}/page1")
    stage.serve({"/page0": html("/a"), "/page1": html("/b")})
    await stage.deliver(pack_of(f"{SITE}/page0", pack=ids[0]))
    assert not stage.world.sent
    await stage.deliver(pack_of(f"{SITE}/page1", pack=ids[1]))
    assert urls_of(stage.sent()) == {f"{SITE}/b"}
