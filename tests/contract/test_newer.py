"""The product detects items that a newer version stored, and leaves them unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.aws import sqs
from orbweaver.adapters.dynamodb.table import to_item
from orbweaver.frontier.claims import Recalled, UnreadableCrawl
from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.model import crawl_codec
from orbweaver.model.errors import StoredNewer
from tests.contract import samples
from tests.contract.worlds import AwsWorld, MemoryWorld, SqliteWorld

if TYPE_CHECKING:
    from tests.contract.worlds import World

ONE, TWO, THREE = samples.pack_ids(3)
JOURNAL = {"k": ONE, "part": "journal", "v": 2, "expires_at": 2_000_000_000}
# Layout of a possible later release: this version finds no field that it expects.
LAYOUTS: dict[str, dict[str, Any]] = {
    "a journal": {**JOURNAL, "lumps": [b"\x01"]},
    "a journal in a blob": {**JOURNAL, "blob": b"\x78 no zlib"},
    "a journal in chunks": {**JOURNAL, "digest": 7, "chunks": "many"},
    "an unknown compression": {**JOURNAL, "v": 1, "blob": b"\x04\x22\x4d\x18 LZ4"},
    "an unknown compression, unsaid": {
        "k": ONE,
        "part": "journal",
        "blob": b"\x04\x22\x4d\x18 LZ4",
    },
    "a ledger": {"k": ONE, "part": "ledger", "v": 2, "children": "all"},
}


async def put(world: World, table: str, fields: dict[str, Any], said: str = "newer") -> None:
    if isinstance(world, MemoryWorld):
        world.state.newer[fields["k"]] = said
        return
    if isinstance(world, SqliteWorld):
        insert(world, table, fields)
        return
    assert isinstance(world, AwsWorld)
    await world.clients["dynamodb"].put_item(TableName=world.table(table), Item=to_item(fields))


def insert(world: SqliteWorld, table: str, fields: dict[str, Any]) -> None:
    """Insert a row as a newer version would; it keeps the columns that this version reads first."""
    key, version = fields["k"], fields.get("v", 1)
    with world.ports.store.writing() as db:
        if table == "crawls":
            row = (key, fields["state"], 0, fields["started_at_ms"], 0, None, json.dumps(fields))
            db.execute("INSERT OR REPLACE INTO crawls VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        elif fields["part"] == "ledger":
            ledger = (key, version, "all", 0, 0, 0, 2_000_000_000)
            db.execute("INSERT INTO ledgers VALUES (?, ?, ?, ?, ?, ?, ?)", ledger)
        else:
            db.execute(
                "INSERT INTO journals (pack, v, blob, expires) VALUES (?, ?, ?, 2000000000)",
                (key, version, fields.get("blob", b"")),
            )


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_unreadable_pack_does_not_fail_batch(world: World, layout: str) -> None:
    packs = world.container().packs
    await packs.write_journal(TWO, samples.journal())
    await packs.add_strike(THREE)
    await put(world, "packs", LAYOUTS[layout], "stored by a newer version: memory")
    recalled = await world.container().packs.recall([ONE, TWO, THREE])
    assert recalled.keys() == {ONE, TWO, THREE}
    assert recalled[TWO] == Recalled(journal=samples.journal())
    assert recalled[THREE] == Recalled(strikes=1)
    assert (recalled[ONE].newer or "").startswith("stored by a newer version: ")
    assert (recalled[ONE].journal, recalled[ONE].ledger) == (None, None)


async def test_newer_journal_is_kept(world: World) -> None:
    await put(world, "packs", LAYOUTS["a journal"])
    with pytest.raises(StoredNewer):
        await world.container().packs.write_journal(ONE, samples.journal())
    assert (await world.container().packs.recall([ONE]))[ONE].newer


async def test_newer_ledger_refuses_commit(aws_world: AwsWorld) -> None:
    await put(aws_world, "packs", LAYOUTS["a ledger"])
    container, crawl = aws_world.container(), samples.crawl()
    with pytest.raises(StoredNewer):
        await container.packs.commit(crawl, samples.ledger(ONE), {"fetched": 1})
    both = [(samples.ledger(ONE), {"fetched": 1}), (samples.ledger(TWO), {"fetched": 1})]
    assert not await container.packs.commit_together(crawl, both)
    assert samples.nonzero((await container.crawls.counters(crawl)).total) == {}


async def test_stored_items_have_version(aws_world: AwsWorld) -> None:
    container, crawl = aws_world.container(), samples.crawl()
    await container.crawls.create(crawl)
    await container.packs.write_journal(ONE, samples.journal())
    await container.packs.write_journal(TWO, samples.large_journal(1, 8_000))
    await container.packs.commit(crawl, samples.ledger(ONE), {})
    keys = [("packs", {"k": ONE, "part": "journal"}), ("packs", {"k": TWO, "part": "journal"})]
    keys += [("packs", {"k": ONE, "part": "ledger"}), ("crawls", {"k": crawl.id})]
    told = []
    for table, key in keys:
        answer = await aws_world.clients["dynamodb"].get_item(
            TableName=aws_world.table(table), Key=to_item(key)
        )
        told.append(answer["Item"]["v"]["N"])
    assert told == ["1"] * 4


async def test_newer_crawl_is_named_but_not_read(world: World) -> None:
    crawls = world.container().crawls
    await crawls.create(samples.crawl("old"))
    await crawls.create(samples.crawl("new"))
    # Its state is unknown to this version.
    said = (
        "stored by a newer version: the crawl 'new-1' of version 2, but this version reads up to 1"
    )
    fields = {"k": "new-1", "id": "new-1", "name": "new", "started_at_ms": samples.NOW_MS}
    await put(world, "crawls", {**fields, "v": 2, "state": "asleep", "seeds": 7}, said)
    crawls = world.container().crawls
    with pytest.raises(StoredNewer) as caught:
        await crawls.get("new-1")
    assert str(caught.value) == said
    assert [crawl.id for crawl in await crawls.list()] == ["old-1"]
    assert await crawls.newer() == (
        UnreadableCrawl(id="new-1", name="new", started_at_ms=samples.NOW_MS, said=said),
    )


async def test_edit_by_newer_release_raises_stored_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older release cannot end a crawl with stop rules of the newer one."""
    crawls, crawl = world.container().crawls, samples.crawl()
    await crawls.create(crawl)
    with monkeypatch.context() as later:
        later.setattr(crawl_codec, "VERSION", 2)
        assert await crawls.edit(replace(crawl, stop_when_nothing_new=True), crawl)
    if isinstance(world, MemoryWorld):
        return  # No versions are stored.
    with pytest.raises(StoredNewer, match="of version 2, but this version reads up to 1"):
        await world.container().crawls.get(crawl.id)


async def test_newer_record_is_not_used_as_prior(aws_world: AwsWorld) -> None:
    """The URL is fetched in full, even if the day before has an older record."""
    from orbweaver.model.page_record import page_key, to_fields
    from orbweaver.model.target import Prior
    from tests.contract.worlds import PAGES_SHARDS

    pages = aws_world.container().pages
    known, newer, strange = (samples.record(number) for number in range(3))
    await pages.store([known])
    for record, change in ((newer, {"v": 2}), (strange, {"reason": "asleep"})):
        day, key = page_key(record, PAGES_SHARDS)
        fields = {**to_fields(record), **change, "day": day, "k": key, "expires_at": 2_000_000_000}
        await put(aws_world, "pages", fields)
    prior = Prior(crawl="shop-1", at_ms=samples.NOW_MS)
    urls = [record.url for record in (known, newer, strange)]
    assert await pages.earlier_records(dict.fromkeys(urls, prior)) == {known.url: known}


async def test_unreadable_message_is_held_back(world: World) -> None:
    queue = world.container().queue
    waiting = WaitingMessage(body="{}", crawl="shop-1", since_ms=samples.NOW_MS)
    await queue.hold([waiting] * 12, express=False)
    await queue.hold([waiting], express=True)
    assert (await world.delayed("crawl"), await world.delayed("express")) == (12, 1)
    assert await world.receive("crawl") == []


async def test_unreadable_message_is_sent_byte_for_byte(
    aws_world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps group and waiting time, but a message of maximum size has no room for the time."""
    monkeypatch.setattr(sqs, "DELAY_S_MAX", 0)
    bodies = ['{"v": 2,\n "x":"ü\U0001f578"}', "x" * (1024 * 1024 - 10)]
    waiting = [
        WaitingMessage(body=body, crawl="shop-1", since_ms=samples.NOW_MS) for body in bodies
    ]
    await aws_world.container().queue.hold(waiting, express=True)
    found: dict[str, Any] = {}
    while len(found) < len(bodies):
        answer = await aws_world.clients["sqs"].receive_message(
            QueueUrl=aws_world.urls["express"],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        found |= {message["Body"]: message for message in answer.get("Messages", [])}
    assert found.keys() == set(bodies)
    small, large = (found[body] for body in bodies)
    since = small["MessageAttributes"]["waiting_since"]
    assert since == {"DataType": "Number", "StringValue": str(samples.NOW_MS)}
    assert "MessageAttributes" not in large
    assert {small["Attributes"]["MessageGroupId"], large["Attributes"]["MessageGroupId"]} == {
        "shop-1"
    }
