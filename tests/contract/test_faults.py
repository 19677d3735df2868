"""Partial answers, lost answers, conflicts and throttles of AWS."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import pytest

from orbweaver.adapters.dynamodb.erasure import SEGMENTS, scan
from orbweaver.frontier.claims import AlreadyCommitted, Committed, OverBudget, Recalled
from orbweaver.frontier.messages import Pack, decode
from orbweaver.model.crawl import State, Stop, default_crawl
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.ports import Print
from tests.contract import faults, samples
from tests.contract.faults import faulty
from tests.contract.test_frontier import claimer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orbweaver.adapters.dynamodb.table import Dynamo
    from tests.contract.faults import Answer, Call
    from tests.contract.worlds import AwsWorld

ONE, TWO = samples.pack_ids(2)


async def test_only_failed_messages_are_sent_again(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "sqs", send_message_batch=faults.half_sent(times=3))
    outgoing_packs = [samples.outgoing(place) for place in range(10)]
    before_ms = moto_world.clock.now_ms()
    await container.queue.send(outgoing_packs, express=False)
    messages = [decode(received.body) for received in await moto_world.receive("crawl")]
    ids = [message.id for message in messages if isinstance(message, Pack)]
    assert sorted(ids) == sorted(outgoing.pack.id for outgoing in outgoing_packs)
    assert client.calls["send_message_batch"] == 4
    assert moto_world.clock.now_ms() > before_ms


async def test_persistent_refusal_fails_send(moto_world: AwsWorld) -> None:
    async def refuse(_call: Call, parameters: Answer) -> Answer:
        code = {"SenderFault": False, "Code": "InternalError"}
        return {"Failed": [{"Id": entry["Id"], **code} for entry in parameters["Entries"]]}

    container, client = faulty(moto_world, "sqs", send_message_batch=refuse)
    with pytest.raises(Transient):
        await container.queue.send([samples.outgoing(1), samples.outgoing(2)], express=False)
    assert client.calls["send_message_batch"] == 8


async def test_senders_fault_is_not_sent_again(moto_world: AwsWorld) -> None:
    script = faults.half_sent("InvalidMessageContents", sender_fault=True, times=99)
    container, client = faulty(moto_world, "sqs", send_message_batch=script)
    with pytest.raises(Permanent, match="InvalidMessageContents"):
        await container.queue.send([samples.outgoing(n) for n in range(10)], express=False)
    assert client.calls["send_message_batch"] == 1
    assert len(await moto_world.receive("crawl")) == 5


async def test_failed_batch_does_not_block_others(moto_world: AwsWorld) -> None:
    script = faults.failing(faults.refused("AccessDeniedException"))
    container, _ = faulty(moto_world, "sqs", send_message_batch=script)
    with pytest.raises(Permanent):
        await container.queue.send([samples.outgoing(n) for n in range(30)], express=False)
    assert len(await moto_world.receive("crawl")) == 20


async def test_persistent_unprocessed_keys_fail_read(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "dynamodb", batch_get_item=faults.nothing_read)
    with pytest.raises(Transient):
        await container.packs.recall([ONE])
    assert client.calls["batch_get_item"] == 8


async def test_unprocessed_items_are_written_again(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "dynamodb", batch_write_item=faults.HALF_WRITTEN)
    await container.pages.store([samples.record(number) for number in range(25)])
    pages = moto_world.container().pages
    rows = [
        row for shard in range(pages.shards) async for row in pages.read_shard("2026-01-15", shard)
    ]
    assert len(rows) == 25
    assert client.calls["batch_write_item"] == 5


async def test_persistent_unprocessed_items_fail_write(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "dynamodb", batch_write_item=faults.nothing_written)
    with pytest.raises(Transient):
        await container.pages.store([samples.record(1)])
    assert client.calls["batch_write_item"] == 8


CONFLICT = faults.cancelled("None", "TransactionConflict")
REFUSED_BEHIND_CONFLICT = faults.cancelled("TransactionConflict", "ConditionalCheckFailed")


@pytest.mark.parametrize(
    "error",
    [
        CONFLICT,
        REFUSED_BEHIND_CONFLICT,
        faults.cancelled("ThrottlingError", "None"),
        faults.cancelled("None", "ProvisionedThroughputExceeded"),
    ],
)
async def test_conflicting_commit_is_repeated(moto_world: AwsWorld, error: Exception) -> None:
    script = faults.failing(error, error, error)
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    before_ms = moto_world.clock.now_ms()
    result = await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert result == Committed()
    assert client.calls["transact_write_items"] == 4
    assert moto_world.clock.now_ms() > before_ms


async def test_persistent_conflict_fails_commit(moto_world: AwsWorld) -> None:
    script = faults.always(CONFLICT)
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    with pytest.raises(Transient):
        await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert client.calls["transact_write_items"] == 10


async def test_commit_refused_for_good_is_permanent_error(moto_world: AwsWorld) -> None:
    script = faults.always(faults.cancelled("None", "ValidationError"))
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    with pytest.raises(Permanent, match="ValidationError"):
        await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert client.calls["transact_write_items"] == 1


async def test_existing_ledger_counts_when_refusal_omits_it(moto_world: AwsWorld) -> None:
    crawl = samples.crawl(pages_max=2)
    standing = samples.ledger(ONE)
    await moto_world.container().packs.commit(crawl, standing, {"claimed": 2})
    refusal = faults.cancelled(
        "None", "ConditionalCheckFailed", item1={"k": {"S": "x"}, "n.claimed": {"N": "2"}}
    )
    for pack, expected in ((ONE, AlreadyCommitted(ledger=standing)), (TWO, OverBudget(left=0))):
        script = faults.always(refusal)
        container, _ = faulty(moto_world, "dynamodb", transact_write_items=script)
        result = await container.packs.commit(crawl, samples.ledger(pack, ()), {"claimed": 1})
        assert result == expected


async def test_decisions_use_consistent_reads(moto_world: AwsWorld) -> None:
    container, _ = faulty(moto_world, "dynamodb", **faults.LAGGING)
    crawl, asks = samples.crawl(state=State.PAUSED), claimer("a", samples.NOW_MS)
    urls = [samples.target(number).url for number in range(2)]
    await container.crawls.create(crawl)
    assert await container.crawls.get(crawl.id) == crawl
    for limit in (2, 0):
        assert await container.budgets.count(crawl, ONE, "example.com", urls, limit) == {*urls}
    ledger, journal = samples.ledger(ONE), samples.large_journal(1, 8_000)
    await container.packs.write_journal(ONE, journal)
    await container.packs.commit(crawl, ledger, {"claimed": 2})
    assert await container.packs.recall([ONE]) == {ONE: Recalled(journal=journal, ledger=ledger)}
    assert (await container.crawls.counters(crawl)).claimed == 2
    assert await container.packs.park(crawl.id, "body", TWO)
    assert await container.packs.parked(crawl.id) == {TWO: "body"}
    await container.hosts.keep_cookies(crawl.id, "example.com", "jar", samples.NOW_MS)
    assert await container.hosts.cookies(crawl.id, "example.com") == "jar"
    for _ in range(2):
        assert await container.frontier.claim(asks, [samples.target(1)]) == {urls[1]}
    assert await container.frontier.last_claim(asks.name, urls[1]) is not None
    await container.frontier.release(asks, urls)
    assert await container.frontier.last_claim(asks.name, urls[1]) is None


async def test_commit_with_lost_answer_is_found(moto_world: AwsWorld) -> None:
    script = faults.unanswered()
    container, _ = faulty(moto_world, "dynamodb", transact_write_items=script)
    ledger = samples.ledger(ONE)
    with pytest.raises(Transient, match="ReadTimeoutError"):
        await container.packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert await container.packs.recall([ONE]) == {ONE: Recalled(ledger=ledger)}
    again = await container.packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert again == AlreadyCommitted(ledger=ledger)
    assert (await container.crawls.counters(samples.crawl())).claimed == 2


async def test_writes_repeated_by_client_succeed(moto_world: AwsWorld) -> None:
    container, _ = faulty(
        moto_world,
        "dynamodb",
        batch_execute_statement=faults.repeated,
        put_item=faults.repeated,
        update_item=faults.repeated,
        delete_item=faults.repeated,
    )
    crawl = samples.crawl()
    assert await container.crawls.create(crawl)
    stopping = replace(crawl, state=State.STOPPING, stop=Stop.CANCELLED)
    assert await container.crawls.move(stopping, [State.RUNNING])
    assert await container.packs.write_journal(ONE, samples.journal()) == samples.journal()
    asks = claimer("a", moto_world.clock.now_ms())
    assert await container.frontier.claim(asks, [samples.target(1)]) == {samples.target(1).url}
    await container.frontier.release(asks, [samples.target(1).url])
    now_ms = moto_world.clock.now_ms()
    await container.hosts.block("https://example.com", now_ms + 5, 1, now_ms)


async def test_repeated_reservation_forfeits_slots(moto_world: AwsWorld) -> None:
    container, _ = faulty(moto_world, "dynamodb", update_item=faults.unanswered())
    now_ms = moto_world.clock.now_ms()
    asked: Any = ("https://example.com", 2, 1_000, now_ms, now_ms + 60_000)
    with pytest.raises(Transient):
        await container.hosts.reserve(*asked)
    slots = await container.hosts.reserve(*asked)
    assert slots.at_ms == (now_ms + 2_000, now_ms + 3_000)


async def test_ledger_with_unordered_children_is_refused(moto_world: AwsWorld) -> None:
    """A bitmap would lose the order."""
    with pytest.raises(ValueError, match="ascending"):
        await moto_world.container().packs.commit(
            samples.crawl(), samples.ledger(ONE, (2, 1)), {"claimed": 2}
        )


async def test_counters_of_default_crawl_never_expire(moto_world: AwsWorld) -> None:
    container, crawl = moto_world.container(), samples.crawl(duration_max_s=60)
    endless = default_crawl(samples.NOW_MS)
    for owner, pack in ((crawl, ONE), (endless, TWO)):
        await container.crawls.create(owner)
        await container.packs.commit(owner, samples.ledger(pack), {"claimed": 1})
    table = moto_world.table("crawls")
    items = (await moto_world.clients["dynamodb"].scan(TableName=table))["Items"]
    kept_s = {item["k"]["S"]: item.get("expires_at", {}).get("N") for item in items}
    expected = str(samples.NOW_MS // 1000 + 60 + 90 * 86_400)
    assert {key: at for key, at in kept_s.items() if at} == {
        "shop-1": expected,
        "shop-1#count#0": expected,
    }
    assert len(kept_s) == 4


async def test_noting_sent_outbox_does_not_recreate_expired_ledger(moto_world: AwsWorld) -> None:
    packs = moto_world.container().packs
    assert await packs.note_sent(ONE, 0)
    assert await packs.recall([ONE]) == {}


async def test_journal_with_missing_chunk_fails_pack(moto_world: AwsWorld) -> None:
    container = moto_world.container()
    await container.packs.write_journal(ONE, samples.large_journal(3, links=8_000))
    table = moto_world.table("packs")
    items = (await moto_world.clients["dynamodb"].scan(TableName=table))["Items"]
    (chunk,) = [item for item in items if item["part"]["S"].endswith(".1")]
    key = {name: chunk[name] for name in ("k", "part")}
    await moto_world.clients["dynamodb"].delete_item(TableName=table, Key=key)
    with pytest.raises(Permanent, match="1 of 2"):
        await container.packs.recall([ONE])


async def test_paginated_answers_are_read_to_end(moto_world: AwsWorld) -> None:
    container, _ = faulty(
        moto_world,
        "dynamodb",
        scan=faults.with_parameters(Limit=2),
        query=faults.with_parameters(Limit=3),
    )
    for number in range(5):
        await container.crawls.create(samples.crawl(f"c{number}"))
    assert len(await container.crawls.list()) == 5
    await container.pages.store([samples.record(number) for number in range(40)])
    keys = [key async for key, _ in container.pages.read_shard("2026-01-15", 0)]
    assert len(keys) > 3
    assert keys == sorted(set(keys))
    pages = container.pages
    counts = [await pages.count("2026-01-15", n, "shop-1", 100) for n in range(pages.shards)]
    assert sum(counts) == 40
    container, client = faulty(moto_world, "s3", list_objects_v2=faults.with_parameters(MaxKeys=2))
    for number in range(5):
        await container.files.put(f"part-{number}", b"")
    assert await container.files.list("part") == tuple(f"part-{number}" for number in range(5))
    assert client.calls["list_objects_v2"] == 3
    for number in range(5):
        await container.files.put(f"folder-{number}/x", b"")
    assert await container.files.folders("") == tuple(f"folder-{number}/" for number in range(5))


async def test_closed_scan_cancels_pending_reads() -> None:
    class Slow:
        """A table of which only the first segment answers."""

        async def pages(self, _operation: str, **asked: Any) -> AsyncIterator[list[Answer]]:
            if asked["Segment"]:
                await asyncio.Event().wait()
            yield [{"k": {"S": "a"}}]
            await asyncio.Event().wait()

    before = asyncio.all_tasks()
    items = scan(cast("Dynamo", Slow()), "urls")
    assert await anext(items) == {"k": {"S": "a"}}
    assert len(asyncio.all_tasks() - before) == SEGMENTS
    await items.aclose()
    assert asyncio.all_tasks() == before


async def test_file_deleted_during_look_is_none(moto_world: AwsWorld) -> None:
    await moto_world.container().files.put("file", b"123")
    for method in ("head_object", "get_object"):
        for code, status in (("404", 404), ("NoSuchKey", 404)):
            script = faults.always(faults.refused(code, status))
            container, _ = faulty(moto_world, "s3", **{method: script})
            assert await container.files.print_of("file") is None
        script = faults.always(faults.refused("AccessDenied", 403))
        container, _ = faulty(moto_world, "s3", **{method: script})
        with pytest.raises(Permanent, match="AccessDenied"):
            await container.files.print_of("file")


async def test_file_with_composite_checksum_is_read(
    moto_world: AwsWorld,
) -> None:
    """S3's checksum of the parts' checksums is not a checksum of the content."""
    await moto_world.container().files.put("file", b"123")
    other = sha256(b"456")
    known = {"ContentLength": 3, "ChecksumSHA256": b64encode(other.digest()).decode()}
    for kind, found, reads in (("FULL_OBJECT", other, 0), ("COMPOSITE", sha256(b"123"), 1)):
        script = faults.answering({**known, "ChecksumType": kind})
        container, client = faulty(moto_world, "s3", head_object=script)
        printed = await container.files.print_of("file")
        assert printed == Print(bytes=3, sha256=found.hexdigest())
        assert client.calls["get_object"] == reads


async def test_partly_failed_file_deletion_is_reported(moto_world: AwsWorld) -> None:
    """S3 answers 200 to a partly refused deletion."""
    for code, kind in (("AccessDenied", Permanent), ("InternalError", Transient)):
        script = faults.answering({"Errors": [{"Key": "a", "Code": code}]})
        container, _ = faulty(moto_world, "s3", delete_objects=script)
        with pytest.raises(kind, match=code):
            await container.files.delete(["a"])


async def test_event_not_accepted_is_reported(moto_world: AwsWorld) -> None:
    """The bus answers 200 to an event that it did not accept."""
    for code, kind in (("InternalFailure", Transient), ("MalformedDetail", Permanent)):
        script = faults.answering({"FailedEntryCount": 1, "Entries": [{"ErrorCode": code}]})
        container, _ = faulty(moto_world, "events", put_events=script)
        with pytest.raises(kind, match=code):
            await container.events.completed(samples.crawl(), {})
