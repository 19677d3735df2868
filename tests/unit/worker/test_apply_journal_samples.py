"""Examples of refused URLs that workers store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.model.crawl import State
from orbweaver.model.errors import Permanent, PortError, Transient
from orbweaver.worker import apply_journal
from orbweaver.worker.apply_journal import Samples
from tests.memory import MemoryCrawls, Moment, World
from tests.unit.stage import CRAWL, SITE, Stage, html, noting

HOME = f"{SITE}/"


async def test_container_writes_examples_once_per_reason() -> None:
    world = World()
    effects: list[str] = []
    mine = Samples(MemoryCrawls(world, noting(effects)))
    await mine.keep(CRAWL, {})
    await mine.keep(CRAWL, {"scope": ("a",), "depth": ("b",)})
    await mine.keep(CRAWL, {"scope": ("c",)})
    await mine.keep(CRAWL, {"scope": ("c",), "query": ("d",)})
    assert effects == ["crawls.samples"] * 2
    await mine.keep(replace(CRAWL, id="other-1"), {"scope": ("e",)})
    await Samples(MemoryCrawls(world)).keep(CRAWL, {"scope": ("f",), "exclude": ("g",)})
    kept = {"scope": ("a",), "depth": ("b",), "query": ("d",), "exclude": ("g",)}
    assert world.samples == {CRAWL.id: kept, "other-1": {"scope": ("e",)}}


@pytest.mark.parametrize("error", [Transient("busy"), Permanent("denied")])
async def test_failed_write_of_examples_is_ignored(error: PortError) -> None:
    tries: list[str] = []

    async def refuse(effect: str, moment: Moment) -> None:
        tries.append(effect)
        raise error

    mine = Samples(MemoryCrawls(World(), refuse))
    for _ in range(2):
        await mine.keep(CRAWL, {"scope": ("a",)})
    assert tries == ["crawls.samples"]


async def test_memory_of_stored_examples_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_journal, "KNOWN_MAX", 1)
    world = World()
    mine = Samples(MemoryCrawls(world))
    for urls in (("a",), ("b",)):
        await mine.keep(CRAWL, {"scope": urls})
        await mine.keep(CRAWL, {"depth": urls})
    assert world.samples[CRAWL.id] == {"scope": ("a",), "depth": ("a",)}


async def test_worker_stores_examples_of_refused_links() -> None:
    stage = Stage()
    crawl = replace(CRAWL, pages_max=2, shards=2, exclude=("/no",))
    stage.web.put(HOME, html("https://other.example/?secret=1", "/no", "/a", "/b", "/c"))
    assert await stage.deliver(stage.begin(crawl, HOME)) == []
    kept = stage.world.samples[crawl.id]
    assert kept["scope"] == ("https://other.example/?…",)
    assert kept["exclude"] == (f"{SITE}/no",)
    assert set(kept["budget"]) <= {f"{SITE}/{name}" for name in "abc"}
    assert len(kept["budget"]) >= 2


async def test_hosts_are_counted_without_metrics() -> None:
    stage = Stage()
    crawl = replace(CRAWL, hosts_counted=("https://nobody.example", SITE))
    stage.web.put(HOME, html("/gone", "/a"))
    stage.web.put(f"{SITE}/a", html())
    await stage.crawl(crawl, HOME)
    counts = stage.counts(crawl)
    hosts = {key: count for key, count in counts.items() if key.startswith("host.")}
    # No worker claimed the URL that the test stored at the start.
    assert hosts == {"host.1.claimed": 2, "host.1.done": 3, "host.1.failed": 1}
    assert stage.world.crawls[crawl.id].state is State.FINISHED
    assert not [name for name in stage.metrics.totals if "host." in name]


async def test_unasked_urls_are_counted_at_their_host() -> None:
    stage = Stage()
    crawl = replace(CRAWL, hosts_counted=(SITE,), state=State.STOPPING)
    await stage.deliver(stage.begin(crawl, HOME))
    assert stage.counts(crawl)["host.0.done"] == 1
    assert stage.counts(crawl).get("host.0.failed", 0) == 0
