"""Delivery orders: how they end, and which files receivers have afterwards."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from orbweaver.delivery.plan import TRIES_MAX, decode_ledger, encode_ledger, ledger_path, order_of
from orbweaver.exporting.manifest import PREFIX, encode_manifest, manifest_path
from orbweaver.model.errors import Permanent, Transient
from tests.memory import Moment
from tests.unit.delivering import DAY, Stage, exported, lies, order

EVENT = json.dumps(
    {
        "source": "orbweaver",
        "detail-type": "ExportCompleted",
        "detail": {"id": "x", "day": DAY, "crawl": None, "bucket": "b", "manifest": "m"},
    }
)
DAYS, CRAWLS = manifest_path(DAY), manifest_path(DAY, "c")


@pytest.fixture(name="stage")
def make_stage() -> Stage:
    return Stage()


async def test_event_delivers_export_with_manifest(stage: Stage) -> None:
    manifest = exported(stage.world.files, {"c": [b"1", b"22"], "d": [b"333"]})
    assert await stage.run(EVENT) == ()
    lies(stage.shelf, manifest, stage.world.files)
    assert stage.shelf[DAYS] == encode_manifest(manifest)
    assert stage.metrics.totals == {"Deliveries": 1, "DeliveredFiles": 3, "DeliveredBytes": 6}


async def test_delivered_export_is_not_delivered_again(stage: Stage) -> None:
    """The receiver may have removed files, so they are not checked."""
    manifest = exported(stage.world.files, {"c": [b"1"]})
    await stage.run()
    del stage.shelf[manifest.files[0].path]
    assert await stage.run() == ()
    assert manifest.files[0].path not in stage.shelf
    assert stage.metrics.totals["DeliveredFiles"] == 1


async def test_order_with_again_delivers_missing_files(stage: Stage) -> None:
    manifest = exported(stage.world.files, {"c": [b"1", b"22", b"333"]})
    await stage.run()
    del stage.shelf[manifest.files[1].path]
    assert await stage.run(order(again=True)) == ()
    lies(stage.shelf, manifest, stage.world.files)
    assert stage.metrics.totals["DeliveredFiles"] == 4


async def test_only_configured_formats_are_delivered() -> None:
    stage = Stage(formats=["csv"])
    manifest = exported(stage.world.files, {"c": [b"1"]}, formats=("jsonl", "csv"))
    await stage.run()
    wanted = tuple(file for file in manifest.files if file.format == "csv")
    lies(stage.shelf, replace(manifest, files=wanted), stage.world.files)


async def test_new_version_replaces_changed_files(stage: Stage) -> None:
    exported(stage.world.files, {"c": [b"same", b"old", b"gone"]})
    await stage.run()
    manifest = exported(stage.world.files, {"c": [b"same", b"new"]})
    await stage.run()
    lies(stage.shelf, manifest, stage.world.files)
    assert stage.metrics.totals["DeliveredFiles"] == 4


async def test_foreign_files_are_kept(stage: Stage) -> None:
    old = exported(stage.world.files, {"c": [b"1", b"22"]})
    theirs = old.files[1].path.replace("00001", "00007")
    stage.shelf.update({"notes.txt": b"theirs", theirs: b"theirs", old.files[0].path: b"?"})
    await stage.run()
    exported(stage.world.files, {"c": [b"1"]})
    await stage.run()
    assert stage.shelf["notes.txt"] == stage.shelf[theirs] == b"theirs"
    assert stage.shelf[old.files[0].path] == b"1"
    assert old.files[1].path not in stage.shelf


async def test_file_of_equal_length_without_ledger_entry_is_replaced(stage: Stage) -> None:
    """Equal length does not prove equal content."""
    manifest = exported(stage.world.files, {"c": [b"new"]})
    stage.shelf[manifest.files[0].path] = b"old"
    await stage.run()
    lies(stage.shelf, manifest, stage.world.files)


@pytest.mark.parametrize(
    "path", ["notes.txt", "../../etc/passwd", "../pages/jsonl/dt=2026-11-21/c/part-00-00000.x"]
)
async def test_manipulated_ledger_removes_no_foreign_file(stage: Stage, path: str) -> None:
    stage.shelf[path] = b"theirs"
    lines = json.loads(encode_ledger(DAY, {path: "0" * 64}))
    stage.shelf[ledger_path(DAY)] = json.dumps(lines).encode()
    exported(stage.world.files, {"c": [b"1"]})
    await stage.run()
    assert stage.shelf[path] == b"theirs"
    assert path not in decode_ledger(DAY, stage.shelf[ledger_path(DAY)])


async def test_export_of_one_crawl_withdraws_outdated_manifest_of_day(stage: Stage) -> None:
    exported(stage.world.files, {"c": [b"1", b"2"], "d": [b"d"]})
    await stage.run()
    exported(stage.world.files, {"d": [b"d"]}, crawl="d")
    await stage.run(order(crawl="d"))
    assert {DAYS, manifest_path(DAY, "d")} <= stage.shelf.keys()
    mine = exported(stage.world.files, {"c": [b"3"]}, crawl="c")
    await stage.run(order(crawl="c"))
    assert {name for name in stage.shelf if name.startswith("manifests/")} == {
        CRAWLS,
        manifest_path(DAY, "d"),
    }
    assert [stage.shelf.get(file.path) for file in mine.files] == [b"3"]
    assert [body for name, body in stage.shelf.items() if "/d/" in name] == [b"d"]
    assert not [name for name in stage.shelf if "/c/part-00-00001" in name]


# --- deadlines and concurrent orders ----------------------------------------------------------


async def test_order_without_enough_time_is_sent_again(stage: Stage) -> None:
    manifest = exported(stage.world.files, {"c": [b"1", b"22"]})
    assert await stage.run(EVENT, minutes=0.5) == ()
    assert [mail.body for mail in stage.world.sent] == [EVENT]
    assert stage.metrics.totals["Deliveries"] == 0
    assert DAYS not in stage.shelf
    assert await stage.run(EVENT) == ()
    lies(stage.shelf, manifest, stage.world.files)


async def test_order_for_missing_export_ends(stage: Stage) -> None:
    assert await stage.run() == ()
    assert (stage.opened, stage.shelf, stage.world.sent, stage.world.buried) == (0, {}, [], [])


@pytest.mark.parametrize("gone", [True, False])
async def test_export_replaced_during_delivery_delivers_no_manifest(gone: bool) -> None:
    async def gate(effect: str, moment: Moment) -> None:
        if effect == "courier.bring" and moment is Moment.AFTER:
            stage.clock.at_ms += 10_000
            if gone:
                stage.world.files.pop(PREFIX + DAYS, None)
            else:
                stage.world.files[PREFIX + DAYS] = b"another"

    stage = Stage(gate=gate)
    exported(stage.world.files, {"c": [b"1"] * 9})
    assert await stage.run() == ()
    assert DAYS not in stage.shelf
    assert 0 < sum(name.startswith("pages/") for name in stage.shelf) < 9
    assert stage.world.sent == []


async def test_each_receiver_gets_own_order() -> None:
    stage = Stage("bucket", "sftp")
    manifest = exported(stage.world.files, {"c": [b"1"]})
    assert await stage.run(EVENT) == ()
    sent = [mail.body for mail in stage.world.sent]
    assert [order_of(body).to for body in sent] == ["bucket", "sftp"]
    assert stage.shelves == {"bucket": {}, "sftp": {}}
    assert await stage.run(sent[1]) == ()
    lies(stage.shelves["sftp"], manifest, stage.world.files)
    assert stage.shelves["bucket"] == {}


# --- faults -----------------------------------------------------------------------------------


def failing(error: Exception) -> Callable[[str, Moment], Awaitable[None]]:
    async def gate(effect: str, _moment: Moment) -> None:
        if effect == "courier.bring":
            raise error

    return gate


@pytest.mark.parametrize(
    ("receives", "delay_s"), [(1, 60), (2, 120), (6, 1_920), (7, 3_600), (29, 3_600)]
)
async def test_transient_fault_postpones_order(receives: int, delay_s: int) -> None:
    """The delay grows up to an hour.

    The message stays the same, so its receives count the attempts.
    """
    stage = Stage(gate=failing(Transient("no answer")))
    exported(stage.world.files, {"c": [b"1"]})
    assert await stage.run(receives=receives) == ("m1",)
    assert [(mail.body, mail.delay_s) for mail in stage.world.sent] == [("h1", delay_s)]
    assert stage.world.buried == []


async def test_order_failing_for_a_day_is_put_aside_with_reason() -> None:
    """SQS would move it to the dead letters without a reason."""
    stage = Stage(gate=failing(Transient("no answer")))
    exported(stage.world.files, {"c": [b"1"]})
    assert await stage.run(receives=TRIES_MAX) == ()
    assert [mail.reason for mail in stage.world.buried] == ["no answer"]


async def test_permanent_fault_puts_order_aside_at_once() -> None:
    stage = Stage(gate=failing(Permanent("permission denied")))
    exported(stage.world.files, {"c": [b"1"]})
    assert await stage.run(EVENT) == ()
    assert [(mail.body, mail.reason) for mail in stage.world.buried] == [
        (EVENT, "permission denied")
    ]
    assert (stage.world.sent, stage.metrics.totals) == ([], {"DeliveriesRefused": 1})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "no event"),
        ("[]", "no event"),
        ("{}", "no event"),
        ('{"day": "yesterday"}', "no event"),
        ('{"day": "2026-11-21", "crawl": "../x"}', "no event"),
        ('{"day": "2026-11-21", "again": 1}', "no event"),
        ('{"day": "2026-11-21", "to": "moon"}', "delivers nothing to 'moon'"),
    ],
)
async def test_invalid_order_is_put_aside_with_example(body: str, reason: str) -> None:
    stage = Stage()
    assert await stage.run(body) == ()
    (mail,) = stage.world.buried
    assert mail.body == body
    assert reason in (mail.reason or "")


@pytest.mark.parametrize("body", [b"{}", b'{"schema": 1}', b"gone"])
async def test_manifest_of_other_version_is_put_aside(stage: Stage, body: bytes) -> None:
    stage.world.files[PREFIX + DAYS] = body
    assert await stage.run() == ()
    assert "not a manifest of this version" in (stage.world.buried[0].reason or "")


async def test_manifest_with_foreign_path_is_put_aside(stage: Stage) -> None:
    manifest = exported(stage.world.files, {"c": [b"1"]})
    file = replace(manifest.files[0], path="pages/jsonl/../../evil")
    stage.world.files[PREFIX + DAYS] = encode_manifest(replace(manifest, files=(file,)))
    assert await stage.run() == ()
    assert "names a file that no export has" in (stage.world.buried[0].reason or "")
    assert stage.shelf == {}


async def test_concurrent_orders_of_day_merge_ledger(stage: Stage) -> None:
    mine = exported(stage.world.files, {"c": [b"1"]}, crawl="c")
    theirs = {"pages/jsonl/dt=2026-11-21/d/part-00-00000.jsonl.gz": "1" * 64}

    async def gate(effect: str, moment: Moment) -> None:
        if effect == "courier.bring" and moment is Moment.AFTER:
            stage.shelf[ledger_path(DAY)] = encode_ledger(DAY, theirs)

    stage.gate = gate
    assert await stage.run(order(crawl="c")) == ()
    ours = {file.path: file.sha256 for file in mine.files}
    assert decode_ledger(DAY, stage.shelf[ledger_path(DAY)]) == ours | theirs


async def test_concurrent_versions_withdraw_manifest_and_retry(stage: Stage) -> None:
    mine = exported(stage.world.files, {"c": [b"1"]}, crawl="c")

    async def gate(effect: str, moment: Moment) -> None:
        if effect == "courier.bring" and moment is Moment.AFTER:
            stage.shelf[ledger_path(DAY)] = encode_ledger(DAY, {mine.files[0].path: "1" * 64})

    stage.gate = gate
    assert await stage.run(order(crawl="c")) == ("m1",)
    assert CRAWLS not in stage.shelf
