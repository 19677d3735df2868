"""`deliver`: existing exports go to the delivery queue."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orbweaver.delivery.plan import DeliveryOrder, order_of
from orbweaver.delivery.plan import DeliveryOrder as Asked
from orbweaver.model.crawl import Crawl
from tests.unit.cli.fakes import NOW_MS, OUTPUTS, Stage

QUEUE = {"DeliveryQueueUrl": "the-queue", "DeliveryDeadLetterQueueUrl": "the-letters"}
DAY_MS = 86_400_000
MANIFEST = "exports/manifests/dt={}.json"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(folder=tmp_path)
    made.machine.up_already = True
    made.machine.deployed = {**OUTPUTS, **QUEUE}
    for name in ("2026-11-20", "2026-11-21", "2026-11-20/crawl=shop-1", "2026-11-21/crawl=shop-1"):
        made.world.files[MANIFEST.format(name)] = b"{}"
    return made


def asked(stage: Stage) -> list[Asked]:
    return [order_of(mail.body) for mail in stage.world.sent]


def test_deliver_without_day_uses_yesterday(stage: Stage) -> None:
    assert stage.run("deliver") == 0
    assert asked(stage) == [DeliveryOrder(day="2026-11-20", again=True)]
    assert stage.said == f"queued for delivery: {MANIFEST.format('2026-11-20')}\n"


def test_deliver_of_day_as_json(stage: Stage) -> None:
    assert stage.run("deliver --day 2026-11-21 --json") == 0
    assert asked(stage) == [DeliveryOrder(day="2026-11-21", again=True)]
    assert json.loads(stage.said) == {
        "type": "delivery",
        "day": "2026-11-21",
        "crawl": None,
        "manifest": MANIFEST.format("2026-11-21"),
    }


def test_deliver_of_crawl_covers_all_its_days_or_one(stage: Stage) -> None:
    crawl = Crawl(id="shop-1", name="shop", started_at_ms=NOW_MS - 2 * DAY_MS)
    stage.world.crawls[crawl.id] = crawl
    both = [DeliveryOrder(day=f"2026-11-{day}", crawl="shop-1", again=True) for day in (20, 21)]
    assert stage.run("deliver --crawl shop") == 0
    assert asked(stage) == both
    stage.world.sent.clear()
    assert stage.run("deliver --crawl shop-1 --day 2026-11-20") == 0
    assert asked(stage) == both[:1]
    stage.world.crawls[crawl.id] = replace(crawl, finished_at_ms=NOW_MS - DAY_MS)
    stage.world.sent.clear()
    assert stage.run("deliver --crawl shop") == 0
    assert asked(stage) == both[:1]


def test_deliver_of_missing_export_names_expected_manifest(stage: Stage) -> None:
    assert stage.run("deliver --day 2026-01-01") == 11
    assert "there is no export at exports/manifests/dt=2026-01-01.json" in stage.noted
    assert stage.world.sent == []


def test_deliver_on_stack_without_receivers_names_setting(stage: Stage) -> None:
    stage.machine.deployed = OUTPUTS
    assert "-c sftp_url" in stage.errors("deliver")


def test_deliver_on_store_is_refused_with_copy_command(stage: Stage) -> None:
    stage.make_store()
    assert "copy the files of `orbweaver export`" in stage.errors("deliver")
    assert stage.world.sent == []
