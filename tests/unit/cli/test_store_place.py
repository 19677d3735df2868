"""Commands on a store (folder with an embedded database) and its processes."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.sqlite.crawls import write_shard
from orbweaver.adapters.sqlite.messages import Outgoing, QueueDepth, QueueName, SqliteMessages
from orbweaver.adapters.sqlite.processes import FOLDER, StoreProcesses
from orbweaver.adapters.sqlite.store import StoreUnusable
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_waiting import queued_urls
from orbweaver.cli.crawl_end import EndedCrawl, conclude, ended_crawl, unfinished_retries
from orbweaver.cli.live import lines
from orbweaver.cli.live.display import Lines
from orbweaver.cli.session import store_session
from orbweaver.cli.store import StorePlace, is_store, opened_store
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.progress.hosts import QueuedUrl
from orbweaver.control.progress.status import ProgressMeter
from orbweaver.frontier.backlog import WaitingPack
from orbweaver.frontier.journal import Ledger
from orbweaver.frontier.late_links import BANDS_MAX, LANE, place_at
from orbweaver.frontier.messages import Pack, encode
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State, finished
from orbweaver.model.http_exchange import Failure, Request
from orbweaver.model.metrics import Service
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from orbweaver.model.target import Target
from tests.unit.cli.fakes import Stage
from tests.unit.cli.views import CRAWL, view_of
from tests.unprivileged import unwritable

if TYPE_CHECKING:
    from pathlib import Path

HOLD_S = 360


async def test_read_only_store_can_be_inspected(open_folder: Path) -> None:
    async with opened_store(open_folder, {}) as ports:
        begun = await store_session(ports).control.start(CrawlSpec(seeds=("https://a.example/",)))
        await store_session(ports).read(begun.id)  # import before the tests' user loses access
    (open_folder / "store.db").chmod(0o644)
    with unwritable(open_folder):
        async with opened_store(open_folder, {}) as ports:
            session = store_session(ports)
            found = await session.read(None)
            assert (found.status.crawl.id, found.depths) == (begun.id, Depths(waiting=1))
            assert "No workers running" in (await session.place.idle_workers() or "")
            with pytest.raises(StoreUnusable, match=f"{open_folder} can be read, but not written"):
                await session.control.pause(begun.id)
        for works, writes in ((0, True), (1, False)):
            with pytest.raises(StoreUnusable, match="give this user the right to write"):
                async with opened_store(open_folder, {}, works=works, writes=writes):
                    pass


async def test_store_without_permission_is_reported(open_folder: Path) -> None:
    folder = open_folder / ".orbweaver"
    folder.mkdir(0)
    with unwritable(open_folder):
        assert is_store(folder)
        with pytest.raises(StoreUnusable, match="it cannot be opened"):
            async with opened_store(folder, {}):
                pass
    assert not is_store(open_folder)


@pytest.mark.parametrize("ended", [False, True])
async def test_waiting_links_of_store_are_read_while_watching(
    tmp_path: Path, *, ended: bool
) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        session = store_session(ports)
        spec = CrawlSpec(seeds=("https://a.example/",), pages_max=10)
        begun = await session.control.start(spec)
        with ports.store.writing() as db:
            write_shard(db, begun, 0, {"late_links": 3}, 1, commits=1)
        link = Target(url="https://a.example/late", depth=1)
        await ports.backlog.put(begun.id, LANE, [late_pack(begun, link, link)])
        if ended:
            counters = await ports.crawls.counters(begun)
            done = finished(begun, counters, ports.clock.now_ms())
            assert await ports.crawls.seal(begun, counters, done)
        close = await session.read_closely(None)
        assert close.spared is not None
        assert (close.spared.links, close.spared.exact) == (1, True)
        assert ((await session.read_closely(None, ended=True)).spared is not None) is ended


async def test_store_names_retry_and_silent_request_of_running_crawl(tmp_path: Path) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        session = store_session(ports)
        begun = await session.control.start(CrawlSpec(seeds=("https://a.example/",)))
        with ports.store.writing() as db:
            write_shard(db, begun, 0, {"claimed": 2, "retries": 1}, 1, commits=1)
        ports.held_by("other")
        again = Target(url="https://a.example/again", depth=0, attempt=2, failed="HTTP 500")
        retry = Pack(id="retry", crawl=begun.id, at_ms=1, targets=(again,))
        slow = Pack(
            id="slow", crawl=begun.id, at_ms=1, targets=(Target(url="https://a.example/", depth=0),)
        )
        some = [
            Outgoing(body=encode(retry), group=begun.id, delay_s=30),
            Outgoing(body=encode(slow), group=begun.id, delay_s=60, in_flight=True),
        ]
        ports.messages.send(QueueName.CRAWL, some)
        ports.messages.holder = "own"
        with ports.store.writing() as db:
            db.execute("UPDATE messages SET sent_at = sent_at - 8000 WHERE holder = 'other'")
        view = ProgressMeter().add(await session.read(begun.id))
        retried, silent = view.reading.waiting
        assert retried.startswith("waiting to retry https://a.example/again (HTTP 500), attempt 2")
        assert silent.startswith("no answer from https://a.example/ for 8 s; given up after 10 s")
        assert retried in lines.line(view)


def late_pack(crawl: Crawl, *links: Target) -> WaitingPack:
    """Return a late pack (links that are requested last) with these links."""
    place = place_at(BANDS_MAX, links, 1, "late")
    pack = Pack(id="late", crawl=crawl.id, at_ms=1, targets=links, place=place, late=True)
    return WaitingPack(place=place, body=encode(pack))


def test_store_without_living_process_is_idle(tmp_path: Path) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        place = StorePlace(ports=ports)
        assert place.reclaimed()
        with StoreProcesses(tmp_path).taking_part():
            assert not place.reclaimed()
        assert place.reclaimed()
        assert not StorePlace(ports=ports, works=True).reclaimed()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "The same `orbweaver crawl` command continues a crawl, and `orbweaver serve` works"),
        (
            {"state": State.STOPPING},
            "The same `orbweaver crawl` command or `orbweaver serve` ends shop-20261121-090000.",
        ),
        ({"state": State.STOPPING, "retry_of": "a"}, "`orbweaver serve` ends shop-20261121-09"),
        ({"retry_of": "a"}, "`orbweaver retry a --wait` or `orbweaver serve` requests the URLs of"),
        ({"retry_of": "a", "pages_max": 3}, "`orbweaver serve` requests the URLs of shop-2026"),
    ],
)
async def test_idle_workers_with_crawl_names_its_command(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        off = await StorePlace(ports=ports).idle_workers(replace(CRAWL, **changes))
    assert off is not None
    assert off.startswith(f"No workers running. {said}")


async def test_empty_run_with_unfinished_retry_names_its_command(tmp_path: Path) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        session = store_session(ports)
        first = await session.control.start(CrawlSpec(seeds=("https://a.example/",)))
        retry = replace(first, id=f"{first.id}-retry1", retry_of=first.id)
        assert await ports.crawls.create(retry)
        view = view_of({}, state=State.FINISHED, resumes=(first.id,))
        (said,) = await unfinished_retries(session, view)
        assert said == (
            f"{retry.id} has 1 URL to request: `orbweaver retry {first.id} --wait` or"
            " `orbweaver serve`"
        )
        stage = Stage(folder=tmp_path)
        ended = EndedCrawl(view=view, retries=(said,))
        assert conclude(ended, None, stage.surroundings(), Lines(stage.out)) == 0
        assert stage.said == f"\nnothing new: {said}\n"


async def test_ended_crawl_counts_no_acknowledged_messages(tmp_path: Path) -> None:
    """A worker acknowledges the last messages of a crawl after the crawl has ended."""
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        view = view_of({"fetched": 1}, depths=Depths(in_work=7), state=State.FINISHED)
        ended = await ended_crawl(store_session(ports), view)
    assert ended.view.reading.depths == Depths()


async def test_process_registered_after_session_counts_as_other(tmp_path: Path) -> None:
    """Two commands can start in the same second. The second one must join the first."""
    async with opened_store(tmp_path, {}, works=1) as ports:
        place = store_session(ports, works=True).place
        assert not place.has_others()
        with StoreProcesses(tmp_path).taking_part():
            assert place.has_others()
            assert place.others == (os.getpid(),)


def test_messages_of_killed_process_are_due_at_once(tmp_path: Path) -> None:
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending, StoreProcesses(tmp_path).taking_part() as alive:
        messages = SqliteMessages(ports.store, clock=ports.clock)
        messages.send(QueueName.CRAWL, [Outgoing(body="a"), Outgoing(body="b")])
        for process in (alive, "1-dead"):
            messages.holder = process
            assert messages.take(QueueName.CRAWL, 1, HOLD_S)
        (tmp_path / FOLDER / "1-dead").touch()
        assert not StorePlace(ports=ports).reclaimed()
        assert messages.depth(QueueName.CRAWL) == QueueDepth(waiting=1, in_flight=1)


async def test_opened_store_counts_uncommitted_pages_of_killed_processes(tmp_path: Path) -> None:
    """Late packs do not count, because no worker has claimed their links."""
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        begun = await store_session(ports).control.start(CrawlSpec(seeds=("https://a.example/",)))
        messages = ports.messages
        messages.holder = "1-dead"
        packs = {
            name: Pack(
                id=name,
                crawl=begun.id,
                at_ms=1,
                targets=tuple(
                    Target(url=f"https://a.example/{name}/{n}", depth=1) for n in range(4)
                ),
                late=name == "late",
            )
            for name in ("taken", "copy", "done", "late")
        }
        some = [
            Outgoing(body=encode(pack), group=begun.id, delay_s=60, in_flight=True)
            for pack in packs.values()
        ]
        messages.send(QueueName.CRAWL, [*some, some[0]])
        messages.send(QueueName.CRAWL, [Outgoing(body=encode(packs["taken"]), group=begun.id)])
        await ports.packs.commit(begun, Ledger(pack="done", children=()), {})
    left: Counter[str] = Counter()
    async with opened_store(tmp_path, {}, left_in_work=left):
        assert left == {begun.id: 8}


async def test_request_without_answer_is_listed_out_of_its_pack(tmp_path: Path) -> None:
    """The other URLs of this process wait for their slots."""
    ports = StorePorts(Settings(), tmp_path)
    slow = "https://a.example/slow"
    targets = tuple(Target(url=url, depth=1) for url in ("https://a.example/1", slow))
    found: list[QueuedUrl] = []

    class Slow:
        async def fetch(self, request: Request) -> Failure:
            del request
            found.extend(await queued_urls(ports, "x"))
            return Failure(reason=Reason.TIMEOUT, detail="slow")

    with ports.ending:
        ports.messages.holder = "1-alive"
        alone = (Target(url="https://a.example/2", depth=1),)
        packs = [
            Pack(id=name, crawl="x", at_ms=1, targets=some)
            for name, some in (("one", targets), ("other", alone))
        ]
        ports.messages.send(
            QueueName.CRAWL,
            [Outgoing(body=encode(one), group="x", delay_s=60, in_flight=True) for one in packs],
        )
        fetcher = ports.watched(Slow(), ports.metrics(Service.WORKER))
        request = Request(
            url=slow, user_agent="x", accept=frozenset(), body_bytes_max=1, total_s=1.0
        )
        await fetcher.fetch(request)
        assert [one.target.url for one in found] == [slow]
        assert await queued_urls(ports, "x") == []
