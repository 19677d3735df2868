"""Kinds (groups of similar URLs) that containers learn, and how they share them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orbweaver.frontier.kind_count import TRIED_MIN
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from orbweaver.worker import kind_learning
from orbweaver.worker.kind_learning import LOOKS_MAX, KindLearning
from tests.memory import MemoryCrawls, MemoryFiles, Moment, World
from tests.memory.world import Gate
from tests.unit.stage import CRAWL, SITE, noting

ORDERED = replace(CRAWL, pages_max=500)
FOLDER = f"claimed/{ORDERED.id}/kinds/"
HANDED_ON, KEPT = Settings.of(claims_travel="yes"), Settings()
LETTERS = "abcdefghijklmnopqrst"


def container(world: World, settings: Settings = KEPT, *, gate: Gate | None = None) -> KindLearning:
    ports = (world,) if gate is None else (world, gate)
    return KindLearning(crawls=MemoryCrawls(*ports), files=MemoryFiles(*ports), settings=settings)


def learn(kinds: KindLearning, *letters: str, query: str = "") -> None:
    for letter in letters:
        record = PageRecord(
            crawl=ORDERED.id,
            url=f"{SITE}/d/{letter}_1_x{query}",
            outcome=Outcome.FETCHED,
            reason=Reason.OK,
            fetched_at=0,
            depth=1,
            status=200,
            title=f"Page {letter * 3}",
            sha256="00",
        )
        kinds.learn(ORDERED, record, None)


def fruitful(kinds: KindLearning, query: str = "") -> int:
    return kinds.learner_for(ORDERED).scores.score_of(f"{SITE}/d/z_1_x{query}").count.fruitful


async def test_page_known_to_other_container_is_not_new() -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world, HANDED_ON), container(world, HANDED_ON)
    learn(one, *LETTERS[:5])
    await one.share(ORDERED)
    assert list(world.files) == [f"{FOLDER}1"]
    await other.before_sorting(ORDERED)
    assert fruitful(other) == 5
    learn(other, *LETTERS[:5], query="?sort=up")
    assert fruitful(other, "?sort=up") == 0
    await other.share(ORDERED)
    assert sorted(world.files) == [f"{FOLDER}1", f"{FOLDER}2"]


async def test_infrequent_container_reads_all_shared_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_learning, "READ_AT_ONCE", 2)
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world, HANDED_ON), container(world, HANDED_ON)
    for start in range(0, 20, 4):
        learn(one, *LETTERS[start : start + 4])
        await one.share(ORDERED)
    assert len(world.files) == 5
    await other.before_sorting(ORDERED)
    learn(other, *LETTERS, query="?sort=up")
    assert fruitful(other, "?sort=up") == 0


async def test_concurrent_containers_share_kinds() -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world), container(world)
    learn(one, *LETTERS[:5])
    await one.share(ORDERED)
    assert not world.files
    learn(other, *LETTERS[5:10])
    await other.share(ORDERED)
    assert list(world.files) == [f"{FOLDER}1"]
    learn(one, *LETTERS[10:15])
    await one.share(ORDERED)
    assert list(world.files) == [f"{FOLDER}1"]  # now the other container is known
    learn(one, *LETTERS[5:10])
    assert fruitful(one) == 15
    await one.share(ORDERED)
    assert sorted(world.files) == [f"{FOLDER}1", f"{FOLDER}2"]


async def test_counts_are_shared_without_files() -> None:
    world, barred = World(crawls={ORDERED.id: ORDERED}), Settings.of(claims_travel="no")
    containers = [container(world, barred) for _ in range(3)]
    for place, kinds in enumerate(containers):
        learn(kinds, *LETTERS[5 * place : 5 * place + 5])
        await kinds.share(ORDERED)
    assert fruitful(containers[-1]) == 15
    assert not world.files


async def test_single_container_reads_counts_rarely() -> None:
    calls: list[str] = []
    kinds = container(World(crawls={ORDERED.id: ORDERED}), gate=noting(calls))
    learn(kinds, *LETTERS[:5])
    await kinds.share(ORDERED)
    before = len(calls)
    assert before
    for _ in range(3):
        await kinds.before_sorting(ORDERED)
    await kinds.before_sorting(replace(ORDERED, pages_max=10**7))
    assert len(calls) == before


async def times_told(settings: Settings, *letters: str) -> int:
    """Return how often a container shares its counts while it learns pages one by one."""
    calls: list[str] = []
    kinds = container(World(crawls={ORDERED.id: ORDERED}), settings, gate=noting(calls))
    for letter in letters:
        learn(kinds, letter)
        await kinds.share(ORDERED)
    return calls.count("crawls.learn")


NEW = [one + other for one in LETTERS[:10] for other in LETTERS[:10]]


@pytest.mark.parametrize("settings", [KEPT, HANDED_ON])
async def test_single_container_shares_rarely(settings: Settings) -> None:
    assert 13 < await times_told(settings, *NEW) <= 26


async def test_barren_kinds_are_shared_soon() -> None:
    old = [*LETTERS[:3], *LETTERS[:1] * 97]
    assert await times_told(KEPT, *old) <= 26
    assert await times_told(HANDED_ON, *old) > 2 * await times_told(HANDED_ON, *NEW)


async def test_concurrent_containers_release_one_link_per_kind() -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    one, *others = (container(world, HANDED_ON) for _ in range(4))
    learn(one, *LETTERS[:2], *LETTERS[:1] * 30)  # a kind without new pages (barren) is shared soon
    await one.share(ORDERED)
    links = [Target(url=f"{SITE}/e/{LETTERS[n]}_1_y?q={n}", depth=1) for n in range(5)]
    for kinds in others:
        await kinds.before_sorting(ORDERED)
    found = await asyncio.gather(
        *(
            kinds.sort_links(ORDERED, [link], None)
            for kinds, link in zip((one, *others), links, strict=False)
        )
    )
    assert sum(len(prompt) for prompt, _ in found) == 1
    assert sum(len(late) for _, late in found) == 3
    await one.before_sorting(ORDERED)
    assert one.learner_for(ORDERED).scores.score_of(links[4].url).count.scheduled == 1
    assert not (await one.sort_links(ORDERED, links[4:], None))[0]


async def test_late_links_are_checked_soon_with_several_learners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world), container(world)
    for query in ("", "?a=1", "?b=2", "?c=3"):
        learn(one, *LETTERS[:4], query=query)
    await one.share(ORDERED)
    one.note_waiting(ORDERED, 1)
    assert not one.looks_soon(ORDERED)  # it is alone
    learn(other, *LETTERS[4:8])
    await other.share(ORDERED)
    assert not other.looks_soon(ORDERED)  # no link is late
    other.note_waiting(ORDERED, 1)
    assert other.looks_soon(ORDERED)
    assert not other.looks_soon(replace(ORDERED, pages_max=ORDERED_PAGES_MAX + 1))
    monkeypatch.setattr(kind_learning, "SOON_DONE", 20)
    assert not other.looks_soon(ORDERED)


async def test_shared_counts_are_read_before_first_judgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    reads: list[str] = []
    one, other = container(world), container(world, gate=noting(reads))
    learn(
        one, *LETTERS[:1] * 40
    )  # the same page again and again makes the kind barren (no new pages)
    await one.share(ORDERED)
    await other.before_judging(replace(ORDERED, pages_max=ORDERED_PAGES_MAX + 1))
    assert not reads
    await other.before_judging(ORDERED)
    assert reads == ["crawls.read_kinds"]
    assert other.learner_for(ORDERED).scores.has_relevant_barren
    await other.before_judging(ORDERED)
    assert len(reads) == 2
    monkeypatch.setattr(kind_learning, "SOON_DONE", 40)
    await other.before_judging(ORDERED)
    assert len(reads) == 2  # this is no longer an early crawl
    alone = container(World(crawls={ORDERED.id: ORDERED}), gate=noting(reads))
    for _ in range(3):
        await alone.before_judging(ORDERED)
    assert len(reads) == 3


async def test_missing_kinds_file_is_tried_a_few_times() -> None:
    """The number of a file is published before the file is written. A broken file is skipped."""
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world, HANDED_ON), container(world)
    learn(one, *LETTERS[:5])
    await one.share(ORDERED)
    put = world.files.pop(f"{FOLDER}1")
    looks: list[str] = []
    found = other._files.get

    async def get(key: str, bytes_max: int | None = None) -> bytes | None:
        looks.append(key)
        if len(looks) == 1:
            raise Permanent("it may not be read")
        return await found(key, bytes_max)

    other._files.get = get  # type: ignore[method-assign]
    for _ in range(LOOKS_MAX + 2):
        await other.before_sorting(ORDERED)
    assert looks == [f"{FOLDER}1"] * LOOKS_MAX
    learn(one, *LETTERS[5:10])
    world.files[f"{FOLDER}1"] = put[:-1]
    await one.share(ORDERED)
    await other.before_sorting(ORDERED)
    assert looks[-1] == f"{FOLDER}2"
    learn(other, *LETTERS[5:10])
    assert fruitful(other) == 10


@pytest.mark.parametrize("broken", ["crawls.learn", "crawls.read_kinds", "files.put"])
@pytest.mark.parametrize("hangs", [False, True])
async def test_failed_share_is_repeated_and_delays_no_page(
    broken: str, hangs: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [True]

    async def gate(at: str, _moment: Moment) -> None:
        if failing[0] and at.startswith(broken):
            if hangs:
                await asyncio.Event().wait()
            raise Transient(at)

    world = World(crawls={ORDERED.id: ORDERED})
    kinds, other = container(world, HANDED_ON, gate=gate), container(world)
    learn(kinds, *LETTERS[:5])
    with monkeypatch.context() as patched:
        patched.setattr(kind_learning, "SHARED_WITHIN_S", 0.02)
        await kinds.share(ORDERED)
    assert "kinds.not_shared" in caplog.text
    failing[0] = False
    learn(kinds, *LETTERS[5 : 5 + TRIED_MIN])
    await kinds.share(ORDERED)
    await other.before_sorting(ORDERED)
    assert fruitful(other) == 5 + TRIED_MIN


async def test_concurrent_shares_are_made_once() -> None:
    world = World(crawls={ORDERED.id: ORDERED})
    one, other = container(world, HANDED_ON), container(world, HANDED_ON)
    learn(other, *LETTERS[10:15])
    await other.share(ORDERED)
    learn(one, *LETTERS[:5])
    await asyncio.gather(*(ask(ORDERED) for ask in (one.share, one.before_sorting) * 3))
    await other.before_sorting(ORDERED)
    assert fruitful(one) == fruitful(other) == 10
