"""Pages that are too expensive to read, and the other pages of their pack."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from orbweaver.adapters.local.reader import BudgetReader
from orbweaver.frontier.messages import child_id
from orbweaver.model.crawl_settings import Bodies
from orbweaver.worker.page_reading import Costly, Read, ReaderBusy, ReadingJob, read
from orbweaver.worker.page_reading import ReadingStage as Part
from tests.attacks import BY_NAME, CHOSEN
from tests.memory import ManualClock
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, html, outcomes, pack_of

A, B, C = (f"{SITE}/{path}" for path in "abc")
HOLD_S = 0.1


@dataclass
class Fussy:
    """A reader that raises for some pages."""

    says: dict[str, list[Read | None]]
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        self.asked.append((job.url, until_ms))
        found = self.says[job.url].pop(0) if self.says.get(job.url) else None
        return read(job) if found is None else found


async def test_costly_page_fails_with_reason() -> None:
    stage = Stage(reader=Fussy({A: [Costly(why="reading its links: more than 1 s of CPU")]}))
    stage.web.put(A, html("/c"))
    stage.web.put(B, html())
    assert await stage.deliver(stage.begin(CRAWL, A, B)) == []
    assert outcomes(stage.world) == {A: "failed.costly", B: "fetched.ok"}
    records = {record.url: record for record in stage.world.pages.values()}
    assert records[A].error == "reading its links: more than 1 s of CPU"
    assert (records[A].links, records[A].title, records[A].body_key) == (None, None, None)
    assert stage.sent() == []


async def test_partly_read_page_keeps_found_links() -> None:
    page = html("/c")

    class Broken(Fussy):
        async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
            found = read(job)
            if job.url != A:
                return found
            return replace(found, kept=None, left=Part.KEEPING, why="text and body: too much")

    stage = Stage(reader=Broken({})).serve({A: page})
    assert await stage.deliver(stage.begin(CRAWL, A)) == []
    assert outcomes(stage.world) == {A: "fetched.costly"}
    (record,) = stage.world.pages.values()
    assert (record.error, record.links, record.title, record.body_key) == (
        "text and body: too much",
        1,
        "page",
        None,
    )
    assert {target.url for pack in stage.sent() for target in pack.targets} == {C}


async def test_page_returns_while_reader_is_busy() -> None:
    reader = Fussy({A: [ReaderBusy()]})
    stage = Stage(reader=reader).serve({A: html()})
    assert await stage.deliver(stage.begin(CRAWL, A)) == []
    assert outcomes(stage.world) == {}
    await stage.drain()
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert [record.attempt for record in stage.world.pages.values()] == [1]
    assert [until_ms > NOW_MS for _, until_ms in reader.asked] == [True, True]


async def test_costly_redaction_omits_body() -> None:
    stage = Stage(reader=Fussy({A: [Costly(why="text and body: too much")]}))
    stage.web.put(A, replace(html(), headers={"content-type": "text/plain"}))
    await stage.deliver(stage.begin(replace(CRAWL, bodies=Bodies.ALL), A))
    assert outcomes(stage.world) == {A: "failed.costly"}


# --- one hostile page of each kind, and ten ordinary hosts ------------------------------------


@dataclass
class Holds:
    """Records the longest CPU time for which one callback blocked the event loop."""

    longest_s: float = 0.0

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Time every callback of the loop. Garbage of other tests is frozen first."""
        gc.collect()
        gc.freeze()
        plain = asyncio.events.Handle._run

        def timed(handle: Any) -> None:
            began_s = time.thread_time()
            plain(handle)
            self.longest_s = max(self.longest_s, time.thread_time() - began_s)

        monkeypatch.setattr(asyncio.events.Handle, "_run", timed)


@dataclass
class Watched:
    """A reader that records the order of finished hosts."""

    inner: BudgetReader
    done: list[str] = field(default_factory=list)

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        found = await self.inner.read(job, host, until_ms)
        self.done.append(host)
        return found


@pytest.mark.long
async def test_hostile_pages_do_not_delay_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page blocks the loop for more than 100 ms."""
    clock = ManualClock(NOW_MS)
    reader = Watched(BudgetReader(clock=clock))
    stage = Stage(clock=clock, reader=reader)
    packs = []
    for place, name in enumerate(CHOSEN):
        url = f"https://{name}.example/"
        stage.web.put(url, BY_NAME[name].answer)
        crawl = replace(CRAWL, id=f"{name}-1", name=name, **BY_NAME[name].crawl)
        packs.append(stage.begin(crawl, url, pack=child_id("hostile", place)))
    innocent = replace(CRAWL, id="innocent-1", name="innocent")
    hosts = [f"https://host{number}.example" for number in range(10)]
    for place, host in enumerate(hosts):
        urls = [f"{host}/{page}" for page in range(3)]
        for url in urls:
            stage.web.put(url, html("/0", "/1", "/2"))
        stage.begin(innocent, *urls)
        packs.append(pack_of(*urls, crawl=innocent.id, pack=child_id("innocent", place)))
    holds = Holds()
    holds.watch(monkeypatch)
    try:
        assert await stage.deliver(*packs) == []
        done = [*reader.done]
        await stage.drain()  # on a slow machine some pages that wait for the child return
    finally:
        reader.inner.close()
        gc.unfreeze()
    ended = outcomes(stage.world)
    assert {ended[f"{host}/{page}"] for host in hosts for page in range(3)} == {"fetched.ok"}
    for name in CHOSEN:
        assert ended[f"https://{name}.example/"] in {
            *("fetched.ok", "fetched.costly", "failed.costly", "redirected.refresh")
        }
    last = max(place for place, host in enumerate(done) if host in hosts)
    # Light attacks are read in place; at this point the child reads the first other page.
    assert sum(host not in hosts for host in done[:last]) <= len(CHOSEN) // 2
    assert holds.longest_s <= HOLD_S
