"""`deliver`: exports that stand are put on the delivery queue."""

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
    """Give a machine with a stack that delivers, and exports of two days."""
    made = Stage(folder=tmp_path)
    made.machine.up_already = True
    made.machine.deployed = {**OUTPUTS, **QUEUE}
    for name in ("2026-11-20", "2026-11-21", "2026-11-20/crawl=shop-1", "2026-11-21/crawl=shop-1"):
        made.world.files[MANIFEST.format(name)] = b"{}"
    return made


def asked(stage: Stage) -> list[Asked]:
    """List what was put on the queue."""
    return [order_of(mail.body) for mail in stage.world.sent]


def test_yesterday_is_delivered(stage: Stage) -> None:
    """Without a day it is the one that was exported last night; every file is looked at."""
    assert stage.run("deliver") == 0
    assert asked(stage) == [DeliveryOrder(day="2026-11-20", again=True)]
    assert stage.said == f"queued for delivery: {MANIFEST.format('2026-11-20')}\n"


def test_a_day_is_delivered(stage: Stage) -> None:
    """The day that was asked for, in words for programs."""
    assert stage.run("deliver --day 2026-11-21 --json") == 0
    assert asked(stage) == [DeliveryOrder(day="2026-11-21", again=True)]
    assert json.loads(stage.said) == {
        "type": "delivery",
        "day": "2026-11-21",
        "crawl": None,
        "manifest": MANIFEST.format("2026-11-21"),
    }


def test_a_crawl_is_delivered(stage: Stage) -> None:
    """All of its days of which there are exports, or the one that was asked for."""
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


def test_what_does_not_stand_is_not_delivered(stage: Stage) -> None:
    """It is said where a manifest was looked for."""
    assert stage.run("deliver --day 2026-01-01") == 1
    assert "there is no export at exports/manifests/dt=2026-01-01.json" in stage.noted
    assert stage.world.sent == []


def test_a_stack_that_delivers_to_nobody(stage: Stage) -> None:
    """It says what to deploy with."""
    stage.machine.deployed = OUTPUTS
    assert stage.run("deliver") == 2
    assert "-c sftp_host" in stage.noted


def test_a_store_delivers_nowhere(stage: Stage) -> None:
    """It says what to copy instead; nothing is put on a queue."""
    stage.make_store()
    assert stage.run("deliver") == 2
    assert "copy the files of `orbweaver export`" in stage.noted
    assert stage.world.sent == []
