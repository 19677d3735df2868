"""The embedded store: metrics, secrets, expiry of rows, and size on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.adapters.sqlite.metrics import read_metrics
from orbweaver.adapters.sqlite.reaping import OF_PACKS, TABLES
from orbweaver.app.store_ports import StorePorts
from orbweaver.budget.budget_rules import ReservationRequest
from orbweaver.frontier.backlog import LeaseRequest, WaitingPack
from orbweaver.frontier.claims import Claimer
from orbweaver.frontier.messages import MessageSource
from orbweaver.model.crawl import LimitPart, State
from orbweaver.model.errors import Permanent
from orbweaver.model.metrics import Metric, Service
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import Settings
from orbweaver.model.target import Prior, Target
from orbweaver.politeness.host_schedule import RobotsEntry
from tests.contract import samples
from tests.memory import ManualClock

NOW_MS = samples.NOW_MS
DAY_MS = 86_400_000
HOST = "https://example.com"
COUNT = "SELECT count(*) FROM "


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def ports(tmp_path: Path, clock: ManualClock) -> Iterator[StorePorts]:
    opened = StorePorts(Settings(), tmp_path, clock=clock, environment={"POOL": "[]"})
    yield opened
    opened.ending.close()


def rows(ports: StorePorts) -> dict[str, int]:
    counts = {table: ports.store.rows(COUNT + table)[0][0] for table in TABLES}
    return {table: count for table, count in counts.items() if count}


def claimer(pack: str = "p", expires_s: int = NOW_MS // 1000 + 60) -> Claimer:
    crawl = samples.crawl()
    return Claimer(
        name=crawl.name,
        crawl=crawl.id,
        pack=pack,
        at_ms=NOW_MS,
        stale_before_ms=0,
        expires_s=expires_s,
    )


async def fill(ports: StorePorts) -> None:
    """Write a row into every table whose rows expire."""
    crawl = samples.crawl(state=State.PAUSED)
    await ports.crawls.create(crawl)
    await ports.crawls.keep_samples(crawl, {"scope": ["x"]})
    await ports.crawls.learn(crawl, {"a00": 1})
    await ports.frontier.claim(claimer(), [Target(url=f"{HOST}/1", depth=1)])
    await ports.pages.store([samples.record(1)])
    await ports.packs.write_journal("p", samples.journal())
    await ports.packs.commit(crawl, samples.ledger("p"), {"claimed": 1})
    await ports.packs.add_strike("p")
    await ports.packs.park(crawl.id, "body", "p")
    waiting = WaitingPack(place="1.p", body="body")
    await ports.backlog.put(crawl.id, HOST, [waiting])
    assert await ports.backlog.note_sent(crawl.id, HOST, waiting, NOW_MS)
    out = LeaseRequest(crawl=crawl.id, host=HOST, epoch=0, place="1.p", holder="p")
    assert await ports.backlog.acquire(out)
    await ports.budgets.begin(crawl, LimitPart.BYTES, 0)
    taking = ReservationRequest(crawl=crawl, part=LimitPart.BYTES, amount=1, limit=9, at_ms=NOW_MS)
    assert await ports.budgets.take(taking) is None
    await ports.budgets.count(crawl, "p", HOST, [f"{HOST}/1"], 9)
    await ports.hosts.reserve(HOST, 1, 1_000, NOW_MS, NOW_MS + 60_000)
    await ports.hosts.keep_robots(HOST, RobotsEntry(fetched_at_ms=NOW_MS))
    await ports.hosts.keep_cookies(crawl.id, "example.com", "[]", NOW_MS)


# --- expiry -----------------------------------------------------------------------------------


async def test_expired_rows_of_every_table_are_deleted(
    ports: StorePorts, clock: ManualClock
) -> None:
    await fill(ports)
    await ports.crawls.create(samples.crawl("default", continuous=True))
    assert rows(ports).keys() == TABLES.keys()
    assert await ports.reaper.reap() == 0
    clock.at_ms += 61_000
    assert await ports.reaper.reap() == 1
    assert "claims" not in rows(ports)
    clock.at_ms += 400 * DAY_MS
    await ports.reaper.reap()
    assert rows(ports) == {"crawls": 1}
    assert [crawl.id for crawl in await ports.crawls.list()] == ["default-1"]


async def test_files_are_deleted_after_retention(ports: StorePorts, tmp_path: Path) -> None:
    for key, days in {
        "bodies/old-1/dt=2026-01-01/a.warc.gz": 31,
        "bodies/new-1/dt=2026-01-01/a.warc.gz": 29,
        "exports/_snapshots/new/new-1/head.json": 31,
        "exports/pages/jsonl/dt=2026-01-01/old-1/part-00-00000.jsonl.gz": 400,
    }.items():
        await ports.files.put(key, b"body")
        path = tmp_path / "files" / key
        for changed in (path, path.parent):
            os.utime(changed, times=(0, NOW_MS / 1000 - days * 86_400))
    assert await ports.delete_expired_files() == 1
    assert await ports.files.folders("bodies/") == ("bodies/new-1/",)
    assert len(await ports.files.list("exports/")) == 2


async def test_ledger_outlives_every_copy_of_its_message(
    ports: StorePorts, clock: ManualClock
) -> None:
    """A message of a machine that was off for a year still needs its ledger (commit record)."""
    clock.at_ms -= 5_000
    await ports.events.completed(samples.crawl(), {})
    await ports.queue.dead_letter("{}", "some copy", MessageSource.PACKS)
    clock.at_ms += 5_000
    await fill(ports)
    clock.at_ms += 400 * DAY_MS
    await ports.reaper.reap()
    assert rows(ports).keys() == OF_PACKS
    (letter,) = await ports.dead_letters.take(10, 30)
    await ports.dead_letters.delete([letter])
    await ports.reaper.reap()
    assert rows(ports) == {}


async def test_reaper_continues_where_it_stopped(ports: StorePorts, clock: ManualClock) -> None:
    records = [samples.record(number) for number in range(10)]
    await ports.pages.store(records[:5])
    clock.at_ms += DAY_MS
    await ports.pages.store([replace(one, fetched_at=clock.at_ms) for one in records[5:]])
    clock.at_ms += 30 * DAY_MS - 1
    assert [await ports.reaper.reap(3) for _ in range(4)] == [3, 2, 0, 0]
    assert rows(ports) == {"pages": 5}
    clock.at_ms += 1
    assert sum([await ports.reaper.reap(3) for _ in range(4)]) == 5


# --- metrics ----------------------------------------------------------------------------------


def test_metrics_of_all_processes_add_up(ports: StorePorts) -> None:
    for _ in range(2):
        metrics = ports.metrics(Service.WORKER)
        metrics.add(Metric.FETCHED, 2)
        metrics.observe(Metric.FETCH_MS, 100)
        metrics.observe(Metric.FETCH_MS, 50)
        metrics.fail(Reason.DNS, 3)
        metrics.flush()
        metrics.flush()
    ports.metrics(Service.STARTER).flush()
    found = {key: (one.number, one.total) for key, one in read_metrics(ports.store).items()}
    assert found == {
        ("worker", "fetched"): (2, 4),
        ("worker", "FetchMs"): (4, 300),
        ("worker", "failed_dns"): (2, 6),
    }


# --- secrets and buckets ----------------------------------------------------------------------


async def test_secrets_are_variables_or_files(ports: StorePorts) -> None:
    assert await ports.secrets.read("env:POOL") == "[]"
    with pytest.raises(Permanent, match="'env:OTHER': set the variable"):
        await ports.secrets.read("env:OTHER")
    with pytest.raises(Permanent, match=r"there is no secret 'pool': put its text into .*/pool"):
        await ports.secrets.read("pool")
    with pytest.raises(Permanent, match="is not the name of a file"):
        await ports.secrets.read("../store.db")


async def test_bucket_delivery_needs_aws_stack(ports: StorePorts) -> None:
    with pytest.raises(Permanent, match="by a stack on AWS alone"):
        await ports.bucket_courier()


# --- size -------------------------------------------------------------------------------------


async def test_url_takes_less_than_1500_bytes_on_disk(ports: StorePorts) -> None:
    """1.5 GB for a million URLs include claims, records and shares of journals and ledgers."""
    urls = 5_000
    crawl = samples.crawl()
    await ports.crawls.create(crawl)
    for pack, start in zip(samples.pack_ids(urls // 25), range(0, urls, 25), strict=True):
        targets = tuple(
            Target(url=f"https://www.example.com/catalogue/{pack}/{place:08}.html", depth=3)
            for place in range(start, start + 25)
        )
        records = [
            samples.record(
                place,
                url=target.url,
                referrer=f"https://www.example.com/catalogue/{start}/index.html",
                status=200,
                content_type="text/html; charset=utf-8",
                charset="utf-8",
                bytes=30_000 + place,
                latency_ms=100 + place % 900,
                title=f"The page of thing {place:08}, and what it is about",
                description=f"What is to be said of it, in a sentence or two: {pack} " * 2,
                language="en",
                canonical=target.url,
                links=80,
                sha256=f"{place * 7919:064x}",
                etag=f'"{place:x}-{pack}"',
                last_modified="Thu, 15 Jan 2026 12:00:00 GMT",
                body_key=f"bodies/{pack}.warc.gz",
                body_offset=place * 9_000,
                body_length=9_000,
            )
            for place, target in enumerate(targets, start)
        ]
        journal = replace(samples.journal(), records=tuple(records), candidates=targets)
        await ports.packs.write_journal(pack, journal)
        await ports.frontier.claim(claimer(pack, NOW_MS // 1000 + 9_999), targets)
        await ports.pages.store(records)
        await ports.packs.commit(crawl, samples.ledger(pack, range(25)), {"claimed": 25})
    ports.store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (ports.folder / "store.db").stat().st_size / urls < 1_500


async def test_worker_statements_use_an_index(ports: StorePorts) -> None:
    """A table scan would become slower in a large store."""
    statements: list[str] = []
    db = ports.store._db
    db.set_trace_callback(statements.append)
    await fill(ports)
    crawl = samples.crawl()
    asks = claimer("q", 9)
    await ports.frontier.known(asks, [f"{HOST}/1"])
    await ports.frontier.release(asks, [f"{HOST}/1"])
    await ports.frontier.abandon(crawl, [f"{HOST}/1"])
    await ports.frontier.last_claim("shop", f"{HOST}/1")
    await ports.pages.earlier_records({f"{HOST}/1": Prior(crawl=crawl.id, at_ms=NOW_MS)})
    await ports.pages.crawls_of("2026-01-15")
    await ports.pages.count("2026-01-15", 0, crawl.id, 9)
    async for _ in ports.pages.read_shard("2026-01-15", 0):
        pass
    await ports.packs.recall(["p", "q"])
    await ports.packs.note_sent("p", 0)
    await ports.packs.set_strikes("p", 0)
    await ports.packs.parked(crawl.id)
    await ports.packs.unpark(crawl.id, ["p"])
    line = await ports.backlog.read(crawl.id, HOST, "1.p")
    beginning = LeaseRequest(crawl=crawl.id, host=HOST, epoch=line.epoch, place="1.q", holder="q")
    await ports.backlog.acquire(beginning)
    await ports.backlog.get(crawl.id, HOST, "1.q")
    await ports.backlog.first_places(crawl.id, HOST, 9)
    await ports.backlog.release(crawl.id, HOST, "1.p")
    await ports.crawls.get(crawl.id)
    await ports.crawls.counters(crawl)
    await ports.crawls.announced(crawl.id)
    await ports.crawls.samples(crawl.id)
    await ports.hosts.read_host(HOST)
    await ports.hosts.fail(HOST, NOW_MS, 0.5, probe=False)
    await ports.hosts.recover(HOST)
    await ports.hosts.cookies(crawl.id, "example.com")
    inbox = ports.inbox(QueueName.CRAWL)
    await ports.queue.send([samples.outgoing(place) for place in range(3)], express=False)
    taken = await inbox.receive(2, 30)
    await inbox.settle(taken, {taken[0].id})
    inbox.next_due_ms()
    db.set_trace_callback(None)
    asked = {text for text in statements if text.startswith(("SELECT", "UPDATE", "DELETE"))}
    assert len(asked) > 40
    tables = {*TABLES, "messages", "facts"}
    for text in sorted(asked):
        for *_, step in ports.store.rows(f"EXPLAIN QUERY PLAN {text}"):
            read = step.removeprefix("SCAN ").removeprefix("TABLE ").partition(" ")[0]
            assert read not in tables, (text, step)
