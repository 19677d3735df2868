"""What AWS does on a bad day: partial answers, lost ones, conflicts, throttles."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import pytest

from orbweaver.adapters.dynamodb.scan import SEGMENTS, scan
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
    """A batch that is taken in part has its rest sent again, so every message arrives once."""
    container, client = faulty(moto_world, "sqs", send_message_batch=faults.half_sent(times=3))
    outgoing_packs = [samples.outgoing(place) for place in range(10)]
    before_ms = moto_world.clock.now_ms()
    await container.queue.send(outgoing_packs, express=False)
    messages = [decode(received.body) for received in await moto_world.receive("crawl")]
    ids = [message.id for message in messages if isinstance(message, Pack)]
    assert sorted(ids) == sorted(outgoing.pack.id for outgoing in outgoing_packs)
    assert client.calls["send_message_batch"] == 4
    assert moto_world.clock.now_ms() > before_ms


async def test_messages_that_are_not_taken_fail_the_send(moto_world: AwsWorld) -> None:
    """A queue that goes on refusing is tried a bounded number of times."""

    async def refuse(_call: Call, parameters: Answer) -> Answer:
        code = {"SenderFault": False, "Code": "InternalError"}
        return {"Failed": [{"Id": entry["Id"], **code} for entry in parameters["Entries"]]}

    container, client = faulty(moto_world, "sqs", send_message_batch=refuse)
    with pytest.raises(Transient):
        await container.queue.send([samples.outgoing(1), samples.outgoing(2)], express=False)
    assert client.calls["send_message_batch"] == 8


async def test_a_senders_fault_is_not_sent_again(moto_world: AwsWorld) -> None:
    """A message that SQS will never take fails the send, after the others are through."""
    script = faults.half_sent("InvalidMessageContents", sender_fault=True, times=99)
    container, client = faulty(moto_world, "sqs", send_message_batch=script)
    with pytest.raises(Permanent, match="InvalidMessageContents"):
        await container.queue.send([samples.outgoing(n) for n in range(10)], express=False)
    assert client.calls["send_message_batch"] == 1
    assert len(await moto_world.receive("crawl")) == 5


async def test_one_failed_batch_does_not_hold_the_others_back(moto_world: AwsWorld) -> None:
    """Batches go on beside one that fails, so that a redelivery finds less to do."""
    script = faults.failing(faults.refused("AccessDeniedException"))
    container, _ = faulty(moto_world, "sqs", send_message_batch=script)
    with pytest.raises(Permanent):
        await container.queue.send([samples.outgoing(n) for n in range(30)], express=False)
    assert len(await moto_world.receive("crawl")) == 20


async def test_keys_that_stay_unprocessed_fail_the_read(moto_world: AwsWorld) -> None:
    """A read that gets nowhere ends, as something to try later."""
    container, client = faulty(moto_world, "dynamodb", batch_get_item=faults.nothing_read)
    with pytest.raises(Transient):
        await container.packs.recall([ONE])
    assert client.calls["batch_get_item"] == 8


async def test_unprocessed_items_are_written_again(moto_world: AwsWorld) -> None:
    """A write that is taken in part goes on until it is whole."""
    container, client = faulty(moto_world, "dynamodb", batch_write_item=faults.HALF_WRITTEN)
    await container.pages.store([samples.record(number) for number in range(25)])
    pages = moto_world.container().pages
    rows = [
        row for shard in range(pages.shards) async for row in pages.read_shard("2026-01-15", shard)
    ]
    assert len(rows) == 25
    assert client.calls["batch_write_item"] == 5


async def test_items_that_stay_unprocessed_fail_the_write(moto_world: AwsWorld) -> None:
    """A write that gets nowhere ends, as something to try later."""
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
async def test_a_conflicting_commit_is_repeated(moto_world: AwsWorld, error: Exception) -> None:
    """A transaction that met another one is tried again, after a pause."""
    script = faults.failing(error, error, error)
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    before_ms = moto_world.clock.now_ms()
    result = await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert result == Committed()
    assert client.calls["transact_write_items"] == 4
    assert moto_world.clock.now_ms() > before_ms


async def test_a_commit_in_conflict_for_long_fails(moto_world: AwsWorld) -> None:
    """A transaction that always meets another one ends, as something to try later."""
    script = faults.always(CONFLICT)
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    with pytest.raises(Transient):
        await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert client.calls["transact_write_items"] == 10


async def test_a_commit_that_can_never_succeed_says_so(moto_world: AwsWorld) -> None:
    """A reason that no repetition removes is permanent."""
    script = faults.always(faults.cancelled("None", "ValidationError"))
    container, client = faulty(moto_world, "dynamodb", transact_write_items=script)
    with pytest.raises(Permanent, match="ValidationError"):
        await container.packs.commit(samples.crawl(), samples.ledger(ONE), {"claimed": 1})
    assert client.calls["transact_write_items"] == 1


async def test_a_standing_ledger_counts_where_it_is_not_reported(moto_world: AwsWorld) -> None:
    """A refusal that names the budget alone does not hide a ledger that is there."""
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


async def test_a_replica_that_lags_behind_is_not_believed(moto_world: AwsWorld) -> None:
    """What was written a moment ago is read, wherever something is decided by it."""
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
    assert await container.frontier.standing(asks.name, urls[1]) is not None
    await container.frontier.release(asks, urls)
    assert await container.frontier.standing(asks.name, urls[1]) is None


async def test_a_commit_of_unknown_outcome_is_found(moto_world: AwsWorld) -> None:
    """When the answer is lost, the next delivery learns that the commit took place."""
    script = faults.unanswered()
    container, _ = faulty(moto_world, "dynamodb", transact_write_items=script)
    ledger = samples.ledger(ONE)
    with pytest.raises(Transient, match="ReadTimeoutError"):
        await container.packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert await container.packs.recall([ONE]) == {ONE: Recalled(ledger=ledger)}
    again = await container.packs.commit(samples.crawl(), ledger, {"claimed": 2})
    assert again == AlreadyCommitted(ledger=ledger)
    assert (await container.crawls.counters(samples.crawl())).claimed == 2


async def test_writes_that_a_client_repeats_have_succeeded(moto_world: AwsWorld) -> None:
    """A client that repeats what it got no answer to does not refuse itself."""
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


async def test_a_repeated_reservation_wastes_slots_and_shares_none(moto_world: AwsWorld) -> None:
    """Slots whose reservation was answered late are forfeited: never are two given twice."""
    container, _ = faulty(moto_world, "dynamodb", update_item=faults.unanswered())
    now_ms = moto_world.clock.now_ms()
    asked: Any = ("https://example.com", 2, 1_000, now_ms, now_ms + 60_000)
    with pytest.raises(Transient):
        await container.hosts.reserve(*asked)
    slots = await container.hosts.reserve(*asked)
    assert slots.at_ms == (now_ms + 2_000, now_ms + 3_000)


async def test_a_ledger_names_its_children_in_order(moto_world: AwsWorld) -> None:
    """A ledger whose order a bitmap would lose is refused rather than changed."""
    with pytest.raises(ValueError, match="ascending"):
        await moto_world.container().packs.commit(
            samples.crawl(), samples.ledger(ONE, (2, 1)), {"claimed": 2}
        )


async def test_the_default_crawls_counters_never_expire(moto_world: AwsWorld) -> None:
    """A crawl without an end has no day after which its books may go; any other has one."""
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


async def test_a_ledger_that_expired_stays_gone(moto_world: AwsWorld) -> None:
    """Noting that an outbox was sent makes no ledger out of nothing."""
    packs = moto_world.container().packs
    await packs.sent(ONE)
    assert await packs.recall([ONE]) == {}


async def test_a_journal_with_a_hole_is_not_replayed(moto_world: AwsWorld) -> None:
    """A chunk that is missing fails the pack rather than losing what it held."""
    container = moto_world.container()
    await container.packs.write_journal(ONE, samples.large_journal(3, links=8_000))
    table = moto_world.table("packs")
    items = (await moto_world.clients["dynamodb"].scan(TableName=table))["Items"]
    (chunk,) = [item for item in items if item["part"]["S"].endswith(".1")]
    key = {name: chunk[name] for name in ("k", "part")}
    await moto_world.clients["dynamodb"].delete_item(TableName=table, Key=key)
    with pytest.raises(Permanent, match="1 of 2"):
        await container.packs.recall([ONE])


async def test_long_answers_are_read_to_the_end(moto_world: AwsWorld) -> None:
    """Lists of crawls, of pages and of files go on where an answer ends."""
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


async def test_a_scan_that_is_left_leaves_no_read_behind() -> None:
    """Reads of its other segments have ended once it is closed."""

    class Slow:
        """A table whose first segment alone answers."""

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


async def test_a_file_that_is_deleted_while_it_is_looked_at_is_none(moto_world: AwsWorld) -> None:
    """Whether by the first look or the second; what may not be read is no file that is absent."""
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


async def test_a_file_is_read_unless_its_bucket_knows_the_sum_of_all_of_it(
    moto_world: AwsWorld,
) -> None:
    """The checksum of its parts' checksums says nothing of what is in it."""
    await moto_world.container().files.put("file", b"123")
    other = sha256(b"456")
    known = {"ContentLength": 3, "ChecksumSHA256": b64encode(other.digest()).decode()}
    for kind, found, reads in (("FULL_OBJECT", other, 0), ("COMPOSITE", sha256(b"123"), 1)):
        script = faults.answering({**known, "ChecksumType": kind})
        container, client = faulty(moto_world, "s3", head_object=script)
        printed = await container.files.print_of("file")
        assert printed == Print(bytes=3, sha256=found.hexdigest())
        assert client.calls["get_object"] == reads


async def test_files_that_cannot_be_deleted_are_told(moto_world: AwsWorld) -> None:
    """S3 answers 200 to a deletion that it refused in part."""
    for code, kind in (("AccessDenied", Permanent), ("InternalError", Transient)):
        script = faults.answering({"Errors": [{"Key": "a", "Code": code}]})
        container, _ = faulty(moto_world, "s3", delete_objects=script)
        with pytest.raises(kind, match=code):
            await container.files.delete(["a"])


async def test_an_event_that_is_not_taken_is_told(moto_world: AwsWorld) -> None:
    """The bus answers 200 to an event that it did not take."""
    for code, kind in (("InternalFailure", Transient), ("MalformedDetail", Permanent)):
        script = faults.answering({"FailedEntryCount": 1, "Entries": [{"ErrorCode": code}]})
        container, _ = faulty(moto_world, "events", put_events=script)
        with pytest.raises(kind, match=code):
            await container.events.completed(samples.crawl(), {})
